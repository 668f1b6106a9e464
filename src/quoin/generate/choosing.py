"""The next token from its scores: the likeliest, or one drawn from the law that the scores give, sharpened or cut short.

b sequences, v tokens of the vocabulary
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.tensor import as_floating

__all__ = ["Sampling", "likeliest", "nucleus_law", "tempered_law", "top_k_law"]


def likeliest(logits: Tensor) -> Tensor:  # (..., v) -> (...)
    """argmax_i P(i), the first of equals."""
    return logits.argmax(dim=-1)


def tempered_law(logits: Tensor, temperature: float) -> Tensor:  # (..., v) -> (..., v)
    """P(i)^{1/τ} / sum_j P(j)^{1/τ}: a temperature τ below 1 sharpens the law, one above flattens it.

    >>> tempered_law(torch.tensor([0.8, 0.2]).log(), 0.5)
    tensor([0.9412, 0.0588])
    """
    _check_temperature(temperature)
    logits = as_floating(logits)
    largest = logits.amax(dim=-1, keepdim=True)  # taken off first: a small temperature then overflows nothing
    return torch.softmax((logits - largest) / temperature, dim=-1)


def top_k_law(law: Tensor, k: int) -> Tensor:  # (..., v) -> (..., v)
    """The k likeliest tokens and no other, their chances scaled to sum to one; of equals at the edge the first.

    >>> top_k_law(torch.tensor([0.5, 0.1, 0.3, 0.1]), 2)
    tensor([0.6250, 0.0000, 0.3750, 0.0000])
    """
    _check_top_k(k)
    if k >= law.shape[-1]:
        return law
    ranked = law.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return _renormalised(law, torch.zeros_like(law, dtype=torch.bool).scatter(-1, ranked, True))


def nucleus_law(law: Tensor, mass: float) -> Tensor:  # (..., v) -> (..., v)
    """The fewest likeliest tokens that together have the chance `mass`, their chances scaled to sum to one.

    >>> nucleus_law(torch.tensor([0.5, 0.1, 0.3, 0.1]), 0.7)
    tensor([0.6250, 0.0000, 0.3750, 0.0000])
    """
    _check_mass(mass)
    if mass == 1:  # sums of chances round: the last of them must not fall out
        return law
    ranked, places = law.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(dim=-1) - ranked  # what the likelier ones have together
    return _renormalised(law, torch.zeros_like(law, dtype=torch.bool).scatter(-1, places, before < mass))


@dataclass(frozen=True)
class Sampling:
    """Draw from the law at this temperature, then cut to the `top_k` likeliest, then to the `nucleus` of that chance.

    Called with logits (b, v) it gives a token for each row; `generator`, which lies where the logits do, decides which.

    >>> draw = Sampling(temperature=0.5, top_k=2, generator=torch.Generator().manual_seed(0))
    >>> draw(torch.tensor([[0.0, 9.0, -1.0], [8.0, 0.0, 0.0]]))
    tensor([1, 0])
    """

    temperature: float = 1.0
    top_k: int | None = None
    nucleus: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)
        _check_mass(self.nucleus)
        if self.top_k is not None:
            _check_top_k(self.top_k)

    def law(self, logits: Tensor) -> Tensor:  # (..., v) -> (..., v)
        """The law that is drawn from."""
        law = tempered_law(logits, self.temperature)
        law = law if self.top_k is None else top_k_law(law, self.top_k)
        return law if self.nucleus == 1 else nucleus_law(law, self.nucleus)

    def __call__(self, logits: Tensor) -> Tensor:  # (b, v) -> (b,)
        return torch.multinomial(self.law(logits), 1, generator=self.generator).squeeze(-1)


def _renormalised(law: Tensor, kept: Tensor) -> Tensor:
    law = law.masked_fill(~kept, 0)
    return law / law.sum(dim=-1, keepdim=True)


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise Mistake(f"expected a temperature above 0, got {shown(temperature)}: raise it, or take the likeliest token (greedy)")


def _check_top_k(k: int) -> None:
    if k < 1:
        raise Mistake(f"expected the number of likeliest tokens to be 1 or more, got {shown(k)}: raise top-k, or leave it out")


def _check_mass(mass: float) -> None:
    if not 0 < mass <= 1:
        raise Mistake(f"expected a nucleus above 0 and at most 1, got {shown(mass)}: choose a chance, such as 0.9")
