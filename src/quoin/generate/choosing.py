"""The next token from its logits: the most probable, or one sampled from the distribution that they give, sharpened or
cut short."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor import as_floating

__all__ = ["TokenSampler", "first_arrival", "greedy_token", "temperature_softmax", "top_k_filter", "top_p_filter"]


def greedy_token(logits: Real[Tensor, "*batch vocab"]) -> Int[Tensor, "*batch"]:
    """argmax_i P(i), the first of equals."""
    return logits.argmax(dim=-1)


def temperature_softmax(logits: Real[Tensor, "*batch vocab"], temperature: float) -> Float[Tensor, "*batch vocab"]:
    """P(i)^{1/τ} / sum_j P(j)^{1/τ}: a temperature τ below 1 sharpens the distribution, one above flattens it.

    >>> temperature_softmax(torch.tensor([0.8, 0.2]).log(), 0.5)
    tensor([0.9412, 0.0588])
    """
    _check_temperature(temperature)
    logits = as_floating(logits)
    largest = logits.amax(dim=-1, keepdim=True)  # taken off first: a small temperature then overflows nothing
    return torch.softmax((logits - largest) / temperature, dim=-1)


def top_k_filter(probs: Float[Tensor, "*batch vocab"], top_k: int) -> Float[Tensor, "*batch vocab"]:
    """The k most probable tokens and no other, their probabilities scaled to sum to one; of equals at the edge the
    first.

    >>> top_k_filter(torch.tensor([0.5, 0.1, 0.3, 0.1]), 2)
    tensor([0.6250, 0.0000, 0.3750, 0.0000])
    """
    _check_top_k(top_k)
    if top_k >= probs.shape[-1]:
        return probs
    ranked = probs.argsort(dim=-1, descending=True, stable=True)[..., :top_k]
    return _renormalized(probs, torch.zeros_like(probs, dtype=torch.bool).scatter(-1, ranked, True))


def top_p_filter(probs: Float[Tensor, "*batch vocab"], top_p: float) -> Float[Tensor, "*batch vocab"]:
    """The fewest most probable tokens that together have the probability `top_p`, their probabilities scaled to sum to
    one.

    >>> top_p_filter(torch.tensor([0.5, 0.1, 0.3, 0.1]), 0.7)
    tensor([0.6250, 0.0000, 0.3750, 0.0000])
    """
    _check_top_p(top_p)
    if top_p == 1:  # sums of probabilities round: the last of them must not fall out
        return probs
    ranked, indices = probs.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(dim=-1) - ranked  # what the more probable ones have together
    return _renormalized(probs, torch.zeros_like(probs, dtype=torch.bool).scatter(-1, indices, before < top_p))


def first_arrival(
    probs: Float[Tensor, "*batch vocab"], generator: torch.Generator | None = None
) -> Int[Tensor, "*batch"]:
    """An index of each row, i with probability p_i: the first of arrivals that come at the rates p, argmax_i p_i / e_i
    with e_i of the exponential distribution.

    The draw that `torch.multinomial` makes of one sample, without its check of the probabilities, for which the host
    would wait at every token.
    """
    waits = torch.empty_like(probs, memory_format=torch.contiguous_format).exponential_(generator=generator)
    return (probs / waits).argmax(dim=-1)


@shown
@dataclass(frozen=True)
class TokenSampler:
    """Sample from the distribution at this temperature, cut to the `top_k` most probable, then to the nucleus of
    probability `top_p`.

    Called with logits it gives a token for each row; `generator`, which lies where the logits do, decides which.

    >>> sampler = TokenSampler(temperature=0.5, top_k=2, generator=torch.Generator().manual_seed(0))
    >>> sampler(torch.tensor([[0.0, 9.0, -1.0], [8.0, 0.0, 0.0]]))
    tensor([1, 0])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        _check_temperature(self.temperature)
        _check_top_p(self.top_p)
        if self.top_k is not None:
            _check_top_k(self.top_k)

    def probs(self, logits: Real[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
        """The distribution that is sampled from."""
        probs = temperature_softmax(logits, self.temperature)
        probs = probs if self.top_k is None else top_k_filter(probs, self.top_k)
        return probs if self.top_p == 1 else top_p_filter(probs, self.top_p)

    def __call__(self, logits: Real[Tensor, "batch vocab"]) -> Int[Tensor, "batch"]:
        probs = self.probs(logits)
        probs = probs.to(torch.promote_types(probs.dtype, torch.float32))  # in bfloat16 many arrivals would be equal
        if probs.is_cpu:
            return torch.multinomial(probs, 1, generator=self.generator).squeeze(-1)
        return first_arrival(probs, self.generator)


def _renormalized(probs: Tensor, kept: Tensor) -> Tensor:
    probs = probs.masked_fill(~kept, 0)
    return probs / probs.sum(dim=-1, keepdim=True)


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise UserError(
            f"expected a temperature above 0, got {format_value(temperature)}: raise it, or take the most probable "
            "token (greedy)"
        )


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise UserError(
            f"expected the number of most probable tokens to be 1 or more, got {format_value(top_k)}: raise top-k, "
            "or leave it out"
        )


def _check_top_p(top_p: float) -> None:
    if not 0 < top_p <= 1:
        raise UserError(
            f"expected a nucleus above 0 and at most 1, got {format_value(top_p)}: choose a probability, such as 0.9"
        )
