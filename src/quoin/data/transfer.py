"""From the memory of the machine to that of a GPU."""

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["to_device"]


def to_device(tensor: Shaped[Tensor, "*shape"], device: torch.device | str | None) -> Shaped[Tensor, "*shape"]:
    """`tensor` on `device`; to a GPU without waiting for it.

    A copy from ordinary memory would wait until all that is queued on the GPU is done. From pinned memory it is queued
    too, so that the batches of coming steps are read and copied while the GPU computes. torch keeps pinned memory and
    gives it out again only when the copy was made.
    """
    if tensor.device.type == "cpu" and device is not None and torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
