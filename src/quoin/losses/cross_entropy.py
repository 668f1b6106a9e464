"""Cross-entropy on logits: from its definition, and on torch's fused kernel. One value per example.

The target is a label per example (integers), or a distribution over the classes per example (floats).
"""

from contextlib import suppress

import torch
from jaxtyping import Float, Integer
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.prob import check_probs
from quoin.tensor import check_labels, check_shapes, logsumexp, one_hot

_NEVER_A_LABEL = -(2**63)  # torch passes over -100, which would hide a wrong label

__all__ = ["balanced_class_weights", "cross_entropy", "cross_entropy_definition"]


def cross_entropy_definition(
    logits: Float[Tensor, "*batch classes"],
    target: Integer[Tensor, "*batch"] | Float[Tensor, "*batch classes"],
    *,
    class_weights: Float[Tensor, "classes"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Tensor, "*batch"]:
    """log sum_k exp(o_k) - sum_j y_j o_j for logits o and target distribution y; sum_j w_j y_j (log sum_k exp(o_k) -
    o_j) with weights.

    Label smoothing ε puts (1 - ε) y + ε/q in the place of y, for q classes.

    Notes: Z4.8.
    """
    _check(logits, target, class_weights)
    _check_smoothing(label_smoothing)
    q = logits.shape[-1]
    y = target if target.is_floating_point() else one_hot(target, q, dtype=logits.dtype)
    if label_smoothing:
        y = (1 - label_smoothing) * y + label_smoothing / q
    # As y sums to one, a common shift of o cancels; subtracted first, it cannot drown the small difference of two large
    # terms.
    o = logits - logits.detach().amax(dim=-1, keepdim=True)
    if class_weights is None:
        return logsumexp(o) - torch.where(y == 0, 0, y * o).sum(
            dim=-1
        )  # a class of no weight does not count, even at -inf
    surprise = logsumexp(o).unsqueeze(-1) - o
    return torch.where(y == 0, 0, class_weights * y * surprise).sum(dim=-1)


def cross_entropy(
    logits: Float[Tensor, "*batch classes"],
    target: Integer[Tensor, "*batch"] | Float[Tensor, "*batch classes"],
    *,
    class_weights: Float[Tensor, "classes"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Tensor, "*batch"]:
    """`cross_entropy_definition` on torch's kernel.

    A weighted loss is that of each example times its class's weight; `empirical_risk` divides by the number of
    examples, where torch's own mean would divide by the sum of weights.

    Args:
        target: Labels, or for each example a distribution over the classes.
        class_weights: w_j, one for each class; every class counts 1 unless given.
        label_smoothing: ε, the fraction of each target that is spread evenly over all classes.

    Notes: Z4.8, M4.
    """
    _check_smoothing(label_smoothing)
    if class_weights is None and _is_plain(logits, target):
        with suppress(IndexError):  # a label out of range: the error is raised below
            return functional.cross_entropy(
                logits, target, reduction="none", ignore_index=_NEVER_A_LABEL, label_smoothing=label_smoothing
            )
    _check(logits, target, class_weights)
    target = target if target.is_floating_point() else target.long()
    if logits.ndim == 2:
        return functional.cross_entropy(
            logits, target, class_weights, reduction="none", label_smoothing=label_smoothing
        )
    rows = logits.reshape(-1, logits.shape[-1])
    targets = target.reshape(-1, target.shape[-1]) if target.is_floating_point() else target.reshape(-1)
    found = functional.cross_entropy(rows, targets, class_weights, reduction="none", label_smoothing=label_smoothing)
    return found.reshape(logits.shape[:-1])


def balanced_class_weights(labels: Integer[Tensor, "n"], num_classes: int) -> Float[Tensor, "{num_classes}"]:
    """n / (q n_c) for each class c of q, which n_c of the n labels name: every class then weighs the same in the loss,
    and the mean weight of an example is one.

    >>> balanced_class_weights(torch.tensor([0, 0, 0, 1]), 2)
    tensor([0.6667, 2.0000])
    """
    check_shapes("n", labels=labels)
    check_labels(labels, num_classes)
    counts = torch.bincount(labels.long(), minlength=num_classes)
    if (counts == 0).any():
        absent = int((counts == 0).nonzero()[0])
        raise UserError(
            f"expected every one of {num_classes} classes among the labels, got none of class {absent}; leave it out"
        )
    return (len(labels) / (num_classes * counts)).to(torch.get_default_dtype())


def _is_plain(logits: Tensor, target: Tensor) -> bool:
    """A batch of float logits and int64 labels on the CPU: there the kernel itself checks every label, and we need not.

    It is the shape of every step of a classifier, in which our checks would cost a quarter of the kernel's time.
    """
    return (
        logits.ndim == 2
        and target.ndim == 1
        and len(logits) == len(target) > 0
        and logits.device.type == target.device.type == "cpu"
        and target.dtype is torch.int64
        and logits.is_floating_point()
        and logits.shape[1] > 0
        and not torch.compiler.is_compiling()
    )


def _check(logits: Tensor, target: Tensor, class_weights: Tensor | None) -> None:
    soft = target.is_floating_point()
    check_shapes("... q, ... q" if soft else "... q, ...", logits=logits, target=target)
    if not logits.is_floating_point() or logits.shape[-1] == 0:
        got = f"{logits.dtype} of shape {tuple(logits.shape)}"
        raise UserError(f"expected logits as floats for at least one class, got {got}; give the model's scores")
    if class_weights is not None:
        _check_weights(logits, class_weights)
    if torch.compiler.is_compiling():
        return  # reading values would break the graph: a compiled step trusts its data
    if soft:
        check_probs(target, "soft targets")
    else:
        check_labels(target, logits.shape[-1])


def _check_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise UserError(f"expected a label smoothing from 0 to 1, got {label_smoothing}; 0 is for none")


def _check_weights(logits: Tensor, class_weights: Tensor) -> None:
    check_shapes("... q, q", logits=logits, class_weights=class_weights)
    if class_weights.dtype != logits.dtype:
        raise UserError(
            f"expected class weights of the logits' {logits.dtype}, got {class_weights.dtype}; convert with .to(logits)"
        )
    if not torch.compiler.is_compiling() and not ((class_weights >= 0) & class_weights.isfinite()).all():
        raise UserError(
            "expected class weights that are finite and not negative, got others; see balanced_class_weights"
        )
