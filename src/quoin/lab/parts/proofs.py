"""Claims checked while a page is read: one at a time, in one process of its own, so that no hand has to wait.

A claim seeds torch's generator and takes one thread while it runs; in the process of the pages it would disturb them.
"""

from __future__ import annotations

import functools
import multiprocessing
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from quoin.lab.parts.marks import escape
from quoin.notes.claims import Claim, Outcome, collect

__all__ = ["claims_of", "outcome_html", "submit"]

_lock = threading.Lock()
_pool: list[ProcessPoolExecutor] = []


@functools.cache
def _claims() -> dict[str, Claim]:
    """Every claim by each of its ids; where two have one id, both stand in `_all`."""
    return {claim.name: claim for claim in collect()}


@functools.cache
def claims_of(ids: tuple[str, ...]) -> tuple[Claim, ...]:
    """The claims that check one of these ids, in the order of the notes."""
    return tuple(claim for claim in _claims().values() if set(claim.ids) & set(ids))


def submit(claim: Claim, seed: int = 0) -> Future[Outcome]:
    """Check the claim, after those that were asked for before."""
    with _lock:
        for _ in range(2):  # a worker that was killed is replaced once
            if not _pool:
                _pool.append(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")))
            try:
                return _pool[0].submit(Claim.run, claim, seed)
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
        f"{escape(outcome.statement)}. <span class=evidence>{escape(outcome.evidence)}</span></p>"
    ]
    if printed is not None:
        lines.append(
            f'<p class="verdict printed"><b>as printed: {"passes too" if printed.holds else "fails"}</b> '
            f"<span class=evidence>{escape(printed.counterexample or printed)}</span></p>"
        )
    return "".join(lines)
