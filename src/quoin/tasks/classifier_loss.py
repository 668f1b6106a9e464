"""The loss that a classifier is trained on, as its options say. It is evaluated on plain cross-entropy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.losses import balanced_class_weights, cross_entropy
from quoin.tasks.options import LabelOptions

__all__ = ["ClassifierLoss", "training_loss"]


@dataclass(frozen=True)
class ClassifierLoss:
    """Cross-entropy with label smoothing and class weights, one value per example.

    An example counts by the weight of its class; the mean of a batch divides by its examples, where torch's own would
    divide by their weights. The mean weight of balanced classes is one, so over an epoch it comes to the same.
    """

    label_smoothing: float = 0.0
    class_weights: Float[Tensor, "classes"] | None = None

    def __call__(
        self, logits: Float[Tensor, "batch classes"], targets: Real[Tensor, "batch *classes"]
    ) -> Float[Tensor, "batch"]:
        # Weights and mixed targets are float32; logits under autocast may be less.
        return cross_entropy(
            logits.float(), targets, class_weights=self.class_weights, label_smoothing=self.label_smoothing
        )


def training_loss(
    options: LabelOptions, labels: Int[Tensor, "rows"], class_names: Sequence[str], *, soft_targets: bool = False
) -> Callable[[Tensor, Tensor], Tensor]:
    """What `options` say to minimise; cross-entropy itself where they say nothing.

    Args:
        labels: Those of the training rows, which alone decide the weights.
        soft_targets: Whether the targets will be distributions, as mixup makes them.
    """
    if not options.label_smoothing and options.class_weight == "none" and not soft_targets:
        return cross_entropy
    weights = None
    if options.class_weight == "balanced":
        absent = torch.bincount(labels.cpu(), minlength=len(class_names)).argmin()
        if not (labels == absent).any():
            raise UserError(
                f"--class-weight balanced: expected training rows of every class, got none of "
                f"{format_value(class_names[int(absent)])}; add some, or leave the class out"
            )
        weights = balanced_class_weights(labels.cpu(), len(class_names)).to(labels.device)
    return ClassifierLoss(options.label_smoothing, weights)
