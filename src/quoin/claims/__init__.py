"""Sentences of the notes as checks that can fail, one file per area, one function per claim."""

from quoin.claims.claim import Claim, Evidence, Outcome, claim
from quoin.claims.runner import check, collect, select

__all__ = ["Claim", "Evidence", "Outcome", "check", "claim", "collect", "select"]
