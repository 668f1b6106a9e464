"""Shannon's code: each symbol gets its surprise in bits, rounded up, which costs no symbol more than a bit."""

from jaxtyping import Float
from torch import Tensor

from quoin.info.prefix import PrefixCode, canonical_code, exact_weights, kraft_sum
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["shannon_code", "shannon_lengths"]


def shannon_lengths(probs: Float[Tensor, "k"] | ArrayLike) -> list[int | None]:
    """l_s = ceil(-log2 q_s), so that q_s/2 < 2^(-l_s) <= q_s, hence Kraft's sum is at most 1; None where q_s = 0.

    >>> import torch
    >>> shannon_lengths(torch.tensor([0.5, 0.3, 0.2, 0.0]))
    [1, 2, 3, None]

    Notes: M21.
    """
    probs = float_tensor(probs, "probs")
    weights, one = exact_weights(probs)
    lengths = _rounded_up(weights, one)
    # A distribution that rounding made sum to more than one may break Kraft's inequality; its exact fractions of that
    # sum cannot.
    return lengths if kraft_sum(lengths) <= 1 else _rounded_up(weights, sum(weights))


def _rounded_up(weights: list[int], total: int) -> list[int | None]:
    """The least l with 2^l weight >= total, for each: the difference of their bit lengths, or one more."""
    least = [total.bit_length() - weight.bit_length() for weight in weights]
    return [length + (weight << length < total) if weight else None for length, weight in zip(least, weights)]


def shannon_code(probs: Float[Tensor, "k"] | ArrayLike) -> PrefixCode:
    """The canonical code of `shannon_lengths`: H(q) <= sum_s q_s l_s < H(q) + 1 in bits.

    >>> import torch
    >>> shannon_code(torch.tensor([0.5, 0.3, 0.2])).codewords
    ('0', '10', '110')

    Notes: M21.
    """
    probs = float_tensor(probs, "probs")
    return canonical_code(shannon_lengths(probs))
