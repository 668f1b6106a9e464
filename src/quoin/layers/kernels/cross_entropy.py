"""The gradient of cross-entropy on CUDA, by the kernel of cross_entropy_triton.py."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.layers.kernels import cross_entropy_triton as kernels
from quoin.layers.kernels import on_device_of

__all__ = ["softmax_gradient"]

BLOCK = 4096


def softmax_gradient(
    logits: Float[Tensor, "n columns"],
    targets: Int[Tensor, "n"],
    token_weights: Float[Tensor, "n"] | None,
    classes: int,
) -> Float[Tensor, "n"]:
    """The loss of each row; the logits become softmax - one_hot(target), times the row's weight, and padding zero."""
    targets = targets.contiguous()  # a column of a table is read as it lies
    if token_weights is not None:
        token_weights = token_weights.contiguous()  # a gradient of a sum is one number, expanded
    losses = torch.empty(len(logits), dtype=torch.float32, device=logits.device)
    with on_device_of(logits):
        kernels.softmax_gradient[(len(logits),)](
            logits, targets, token_weights, losses, logits.stride(0), classes, logits.shape[1],
            WEIGHTED=token_weights is not None, BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip
    return losses
