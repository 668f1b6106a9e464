"""Claims checked while a page is read: one at a time, in one process of its own, so that no hand has to wait.

A claim seeds torch's generator and takes one thread while it runs, and to have them all is an import of a second and
more: in the process of the pages both would disturb.
"""

from __future__ import annotations

import functools
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

from quoin import notes
from quoin.lab.parts.marks import escape, scripts
from quoin.workers import worker_pool

if TYPE_CHECKING:
    from quoin.notes.claims import Claim, Outcome

__all__ = ["has_claims", "outcome_html", "outcomes", "submit"]

_lock = threading.Lock()
_pool: list[ProcessPoolExecutor] = []


def has_claims(ids: tuple[str, ...]) -> bool:
    """Whether a claim checks one of these ids."""
    return any(entry.claims for entry in notes.entries() if entry.id in ids)


def outcomes(ids: tuple[str, ...], seed: int = 0) -> list[Outcome]:
    """What the claims that check one of these ids find, in the order of the notes."""
    return [claim.run(seed) for claim in _claims() if set(claim.ids) & set(ids)]


@functools.cache
def _claims() -> list[Claim]:
    from quoin.notes.claims import collect

    return collect()


def submit(ids: tuple[str, ...], seed: int = 0) -> Future[list[Outcome]]:
    """`outcomes` in the process of the claims, after those that were asked for before."""
    with _lock:
        for _ in range(2):  # a worker that was killed is replaced once
            if not _pool:
                _pool.append(worker_pool(1))
            try:
                return _pool[0].submit(outcomes, ids, seed)
            except BrokenProcessPool:
                _pool.pop().shutdown(wait=False, cancel_futures=True)
    raise RuntimeError("no process could be started to check claims; restart the lab")


def shutdown() -> None:
    """End the process; for a server that stops."""
    with _lock:
        while _pool:
            pool = _pool.pop()
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(cancel_futures=True)  # soon, for its process is gone


def outcome_html(outcome: Outcome) -> str:
    """Evidence as a line: quantity, value, bound, its source, the number of cases; of an erratum also how the printed
    form fails."""
    mark = "✓ holds" if outcome.verdict == "holds" else "✗ fails"
    printed: Any = outcome.printed
    lines = [
        f'<p class="verdict {outcome.verdict}"><b>{mark}</b> <span class="id">{escape(" ".join(outcome.ids))}</span> '
        f"{scripts(outcome.statement)}. <span class=evidence>{scripts(str(outcome.evidence))}</span></p>"
    ]
    if printed is not None:
        lines.append(
            f'<p class="verdict printed"><b>as printed: {"passes too" if printed.holds else "fails"}</b> '
            f"<span class=evidence>{scripts(str(printed.counterexample or printed))}</span></p>"
        )
    return "".join(lines)
