"""Running claims: find them, choose some, and check them side by side in processes of their own."""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from quoin import notes
from quoin.callbacks import current_listener
from quoin.notes.claims.claim import Claim, Outcome, raised
from quoin.processor import num_cores
from quoin.workers import worker_pool

__all__ = ["check", "collect", "select"]


def collect() -> list[Claim]:
    """Every claim of this package, in the order of the notes."""
    return notes.declared("quoin.notes.claims", Claim)


def select(claims: Sequence[Claim], words: Sequence[str]) -> list[Claim]:
    """The claims that `words` name: ids, area numbers or area names; all of them when no word is given."""
    return notes.choose(claims, words, "claim")


def check(claims: Sequence[Claim], *, seed: int = 0, num_workers: int | None = None) -> Iterator[Outcome]:
    """Run the claims and yield their outcomes in order, each as soon as it and those before it are done.

    By default one worker for each core, and none where there is one claim or one core: a worker costs an import of
    torch.
    """
    with current_listener().progress("claims") as on_progress:
        for done, outcome in enumerate(_outcomes(claims, seed, min(num_workers or num_cores(), len(claims))), start=1):
            on_progress(done, len(claims))
            yield outcome


def _outcomes(claims: Sequence[Claim], seed: int, num_workers: int) -> Iterator[Outcome]:
    if num_workers <= 1:
        yield from (claim.run(seed) for claim in claims)
        return
    pool = worker_pool(num_workers)
    try:
        futures = [pool.submit(Claim.run, claim, seed) for claim in claims]
        for claim, future in zip(claims, futures):
            try:
                yield future.result()
            except BrokenProcessPool as error:  # a worker was killed; which claim it ran cannot be known
                yield Outcome(claim.ids, claim.statement, "fails", raised(error), 0.0, not_shown=claim.not_shown)
    finally:
        pool.shutdown(cancel_futures=True)
