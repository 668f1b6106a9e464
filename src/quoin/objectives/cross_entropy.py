"""Cross-entropy on logits: from its definition, and on torch's fused kernel. One value per example.

The target is a label per example (integers), or a distribution over the classes per example (floats).   q classes
"""

import torch
from torch import Tensor
from torch.nn import functional

from quoin.errors import Mistake
from quoin.tensor import check_labels, check_shapes, log_sum_exp, one_hot

__all__ = ["cross_entropy", "cross_entropy_definition"]


def cross_entropy_definition(logits: Tensor, target: Tensor) -> Tensor:  # (..., q), (...) or (..., q) -> (...)
    """log sum_k exp(o_k) - sum_j y_j o_j for logits o and target distribution y.

    Notes: Z4.8.
    """
    _check(logits, target)
    y = target if target.is_floating_point() else one_hot(target, logits.shape[-1], dtype=logits.dtype)
    # As y sums to one, a common shift of o cancels; taken off first, it cannot drown the small difference of two large terms.
    o = logits - logits.detach().amax(dim=-1, keepdim=True)
    return log_sum_exp(o) - torch.where(y == 0, 0, y * o).sum(dim=-1)  # a class of no weight does not count, even at -inf


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:  # (..., q), (...) or (..., q) -> (...)
    """`cross_entropy_definition` on torch's kernel.

    Notes: Z4.8.
    """
    _check(logits, target)
    rows = logits.reshape(-1, logits.shape[-1])
    if target.is_floating_point():
        losses = functional.cross_entropy(rows, target.reshape(-1, target.shape[-1]), reduction="none")
    else:
        losses = functional.cross_entropy(rows, target.reshape(-1).long(), reduction="none")
    return losses.reshape(logits.shape[:-1])


def _check(logits: Tensor, target: Tensor) -> None:
    if not target.is_floating_point():
        check_shapes("... q, ...", logits=logits, target=target)
    else:
        check_shapes("... q, ... q", logits=logits, target=target)
    if torch.compiler.is_compiling():
        return  # reading values would break the graph: a compiled step trusts its data
    if not target.is_floating_point():
        check_labels(target, logits.shape[-1])
        return
    if target.numel() == 0:
        return
    low, far = float(target.min()), float((target.sum(dim=-1) - 1).abs().max())
    if not (low >= 0 and far <= max(1e-4, 2 * torch.finfo(target.dtype).eps)):
        raise Mistake(
            f"expected soft targets that are non-negative and sum to one over the last axis, came a least entry of {low:.3g} and "
            f"a sum {far:.3g} away from one; normalise them, or give integer labels"
        )
