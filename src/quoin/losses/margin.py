"""Losses of a margin m = 2 y s (see `quoin.prob.margin`): one value per example, zero or falling as the margin grows.

A margin that is not a number gives a loss that is none.   n examples, d features
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.prob import margin
from quoin.tensor import as_floating, check_shapes, logsumexp

__all__ = ["hinge_loss", "kernel_svm_objective", "logistic_loss", "logistic_loss_definition", "svm_objective"]


def logistic_loss_definition(margins: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """ln(1 + e^{-m}) = ln(e^0 + e^{-m}): what logistic regression minimises.

    Args:
        margins: m of each example, as `margin` gives them: positive where the decision is right.

    Notes: M9.
    """
    margins = as_floating(margins)
    return logsumexp(torch.stack([torch.zeros_like(margins), -margins], dim=-1))


def logistic_loss(margins: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`logistic_loss_definition` on torch's kernel, exact to rounding for margins of any size.

    Its mean has no minimiser on data that a hyperplane separates: longer weights always give less. Add an l2 penalty
    there.

    Notes: M9.
    """
    return -functional.logsigmoid(
        as_floating(margins)
    )  # softplus(-m) drops e^m below m = -20, up to a million float64 roundings


def hinge_loss(margins: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """max(0, 1 - m): nothing for an example that is right by a margin of one.

    Args:
        margins: m of each example, as `margin` gives them: positive where the decision is right.

    >>> hinge_loss(torch.tensor([-1.0, 0.0, 0.5, 1.0, 7.0]))
    tensor([2.0000, 1.0000, 0.5000, 0.0000, 0.0000])

    Notes: M11.
    """
    return torch.relu(1 - as_floating(margins))


def svm_objective(margins: Real[Tensor, "n"], weight: Real[Tensor, "d"], l2: float) -> Float[Tensor, ""]:
    """The linear support vector machine: mean hinge loss plus (l2 / 2) |w|^2.

    Args:
        margins: m of each example, as `margin` gives them: positive where the decision is right.
        weight: w.

    Notes: D5.2-4.
    """
    _check(margins, l2)
    check_shapes("n, d", margins=margins, weight=weight)
    return hinge_loss(margins).mean() + l2 / 2 * as_floating(weight, margins).square().sum()


def kernel_svm_objective(
    coefficients: Real[Tensor, "n"],
    gram: Real[Tensor, "n n"],
    y: Real[Tensor, "n"],
    l2: float,
    *,
    bias: Real[Tensor, ""] | None = None,
) -> Float[Tensor, ""]:
    """The same with scores s_i = sum_j K_ij a_j + b for a kernel's Gram matrix K, and |w|^2 = a^T K a: no w is ever
    written down.

    With K = X X^T and w = X^T a it is `svm_objective` of the margins 2 y (X w + b).

    Args:
        coefficients: a.
        gram: K.
        y: Labels, -1 or 1.
        bias: b; none unless given.

    Notes: D5.2-4.
    """
    check_shapes("n, n n, n", coefficients=coefficients, gram=gram, y=y)
    gram, coefficients, y = (as_floating(each, coefficients, gram) for each in (gram, coefficients, y))
    scores = gram @ coefficients if bias is None else gram @ coefficients + bias
    margins = margin(scores, y)
    _check(margins, l2)
    return hinge_loss(margins).mean() + l2 / 2 * (coefficients @ gram @ coefficients)


def _check(margins: Tensor, l2: float) -> None:
    if margins.numel() == 0:
        raise UserError("expected at least one example to average over, got none; leave out empty batches")
    if not l2 >= 0:
        raise UserError(f"expected an l2 penalty of at least 0, got {l2}; a negative one has no minimum")
