"""The two forms of an erratum, as its claim tests them."""

from collections.abc import Callable
from typing import Any

from quoin.notes.claims.claim import Claim

__all__ = ["form_of"]


def form_of(claim: Claim, printed: bool) -> Callable[..., Any]:
    """What the notes print, or what is right: the very function that the claim is given."""
    form = claim.printed if printed else claim.right
    if form is None:
        raise TypeError(f"expected a claim of an erratum, got {claim.ids}, which has one form alone")
    return form
