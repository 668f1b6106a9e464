"""The entropy rate of a source: bits for each symbol that no model of it can save. In nats, unless a base is given.

H' = lim H(O_n | O_1, ..., O_{n-1}),   k states, m symbols
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.info.entropy import entropy, joint_entropy
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, stationary_distribution
from quoin.prob.units import convert_base

__all__ = ["RateBounds", "RateEstimate", "entropy_rate", "hmm_entropy_rate", "hmm_entropy_rate_bounds"]

MOST_TEXTS = 2**20  # texts listed at once, each with a message for every state to begin in


@shown
class RateBounds(NamedTuple):
    """Between what the entropy rate lies."""

    lower: Float[Tensor, ""]
    upper: Float[Tensor, ""]


@shown
class RateEstimate(NamedTuple):
    """A mean over independent sequences, and its standard error."""

    output: Float[Tensor, ""]
    standard_error: Float[Tensor, ""]


def entropy_rate(chain: MarkovChain, base: float = math.e) -> Float[Tensor, ""]:
    """H' = -sum_i π_i sum_j A_ij log A_ij: the entropy of the next step, in the distribution π that the
    chain settles in.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> chain = MarkovChain(torch.tensor([1.0, 0.0]), torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    >>> entropy_rate(chain, base=2)  # two of three steps are tossed
    tensor(0.6667)
    """
    return (stationary_distribution(chain.transition) * entropy(chain.transition, base)).sum()


def hmm_entropy_rate_bounds(model: HiddenMarkovModel, num_symbols: int, base: float = math.e) -> RateBounds:
    """H(O_n | O_1 .. O_{n-1}, X_1) <= H' <= H(O_n | O_1 .. O_{n-1}) in the long run, by listing all texts of
    n = `num_symbols` symbols.

    Both come nearer with each symbol, the gap shrinking as fast as the chain forgets where it began.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.
    """
    initial, transition, emission = _stationary(model)
    k, m = emission.shape
    if num_symbols < 1 or k * m**num_symbols > MOST_TEXTS:
        raise UserError(
            f"expected 1 symbol or more and at most {MOST_TEXTS} texts times states, got {k} * {m}^{num_symbols}; "
            "lower it"
        )
    messages = torch.diag(initial).unsqueeze(0)  # (texts, k, k): P[X_1 = i, text so far, X_now = j]
    shorter = longer = RateBounds(torch.zeros(()), torch.zeros(()))
    for time in range(num_symbols):
        messages = messages @ transition if time else messages
        messages = (messages.unsqueeze(1) * emission.T[:, None, :]).flatten(0, 1)  # the next symbol o: times B_jo
        texts = messages.sum(dim=-1)  # (texts, k): P[text, X_1 = i]
        known = joint_entropy(texts.T.contiguous()) - entropy(initial)  # H(text | X_1)
        shorter, longer = longer, RateBounds(known, entropy(texts.sum(dim=-1)))
    return RateBounds(*(convert_base(after - before, base) for after, before in zip(longer, shorter)))


def hmm_entropy_rate(
    model: HiddenMarkovModel,
    num_symbols: int,
    num_paths: int,
    *,
    generator: torch.Generator,
    burn_in: int = 100,
    base: float = math.e,
) -> RateEstimate:
    """E[-log P(O_t | all before)] over t = b + 1 .. b + n and over independent sequences, by the forward filter.

    Where the bounds cannot be listed. That the beginning is not known makes it too large, by less than the bounds'
    gap at `burn_in`.

    Args:
        num_symbols: n, those of each sequence that count.
        num_paths: Independent sequences, two or more.
        burn_in: b, the symbols of each sequence before those that count.
        base: Of the logarithm: 2 for bits, e for nats.
    """
    initial, transition, emission = _stationary(model)
    stationary = HiddenMarkovModel(MarkovChain(initial, transition), CategoricalEmission(emission))
    if num_symbols < 1 or num_paths < 2 or burn_in < 1:
        raise UserError(
            f"expected 1 symbol or more, 2 paths or more, got {num_symbols}, {num_paths} and burn-in {burn_in}; "
            "raise them"
        )
    seen = stationary.sample(burn_in + num_symbols, num_paths, generator=generator).output
    surprises = (stationary.log_prob(seen[:, :burn_in]) - stationary.log_prob(seen)) / num_symbols
    return RateEstimate(
        *(convert_base(each, base) for each in (surprises.mean(), surprises.std() / math.sqrt(num_paths)))
    )


def _stationary(model: HiddenMarkovModel) -> tuple[Tensor, Tensor, Tensor]:
    """π, A and B in double precision."""
    if not isinstance(model.emission, CategoricalEmission):
        raise UserError(
            f"expected a model that emits symbols, got {type(model.emission).__name__}; numbers have no entropy "
            "rate in bits"
        )
    transition = model.chain.transition.detach().double()
    transition = transition / transition.sum(dim=-1, keepdim=True)
    return stationary_distribution(transition), transition, model.emission.probabilities.detach().double()
