"""Sentences of the notes as checks that can fail, one file per area, one function per claim."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.claims.claim import Claim, Evidence, Outcome, claim
    from quoin.notes.claims.runner import check, collect, select

__all__ = [
    "Claim",
    "Evidence",
    "Outcome",
    "check",
    "claim",
    "collect",
    "select",
]

export_lazily(__name__)
