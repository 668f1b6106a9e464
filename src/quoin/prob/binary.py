"""Two labels, -1 and 1, and one score s: the decision by its sign, and the distribution that softmax makes of the
scores s and -s.
"""

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes, logsumexp
from quoin.tensor.array_like import ArrayLike, number_tensor

__all__ = ["binary_decision", "binary_log_prob", "binary_log_prob_definition", "check_signs", "margin"]


def check_signs(y: Real[Tensor, "*batch"] | ArrayLike) -> None:
    """Raise an error for labels that are not -1 or 1."""
    y = number_tensor(y, "y")
    if torch.compiler.is_compiling() or y.numel() == 0:
        return  # reading values would break the graph: a compiled step trusts its data
    wrong = y[(y != 1) & ((y != -1) | (not y.is_signed()))]  # torch takes -1 for 255 beside uint8
    if len(wrong):
        raise UserError(f"expected labels -1 and 1, got {wrong[0].item()}; convert labels 0 and 1 with 2 * y - 1")


def binary_decision(score: Real[Tensor, "*batch"] | ArrayLike) -> Int[Tensor, "*batch"]:
    """1 where s >= 0, else -1.

    >>> binary_decision(torch.tensor([-0.1, 0.0, 3.0]))
    tensor([-1,  1,  1])

    Notes: M7.
    """
    score = number_tensor(score, "score")
    if score.isnan().any():
        raise UserError("expected scores to decide by, got NaN; find where the model lost its numbers")
    return torch.where(score >= 0, 1, -1)


def margin(score: Real[Tensor, "*batch"] | ArrayLike, y: Real[Tensor, "*batch"] | ArrayLike) -> Float[Tensor, "*batch"]:
    """m = 2 y s: positive where the decision is right, and the larger the surer.

    Args:
        score: s.
        y: Labels, -1 or 1.

    Notes: M8.
    """
    score = number_tensor(score, "score", y)
    y = number_tensor(y, "y", score)
    check_shapes("..., ...", score=score, y=y)
    check_signs(y)
    return 2 * y * as_floating(score)


def binary_log_prob_definition(
    score: Real[Tensor, "*batch"] | ArrayLike, y: Real[Tensor, "*batch"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """log P(y) = log(e^{ys} / (e^{ys} + e^{-ys})), the softmax of the two scores s and -s.

    Args:
        score: s.
        y: Labels, -1 or 1.

    Notes: M8.
    """
    score = number_tensor(score, "score", y)
    y = number_tensor(y, "y", score)
    ys = margin(score, y) / 2
    return ys - logsumexp(torch.stack([ys, -ys], dim=-1))


def binary_log_prob(
    score: Real[Tensor, "*batch"] | ArrayLike, y: Real[Tensor, "*batch"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """`binary_log_prob_definition` as log(1 / (1 + e^{-m})), which loses nothing where the probability is near one.

    Args:
        y: Labels, -1 or 1.

    Notes: M8.
    """
    score = number_tensor(score, "score", y)
    y = number_tensor(y, "y", score)
    return functional.logsigmoid(margin(score, y))
