"""Copies of tensors that keep what `clone` does not: strides, gaps, and which tensors lie in one storage.

A kernel may take another path for another layout, and end in other bits.
"""

from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["copy_storage", "restride", "storage_key", "writable_copy"]


def storage_key(tensor: Shaped[Tensor, "..."]) -> int | None:
    """A number for the memory under a tensor, or None where it has no plain memory (sparse, or a lazy conjugate)."""
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized or tensor.is_nested:
        return None
    return tensor.untyped_storage()._cdata


def copy_storage(tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    """A copy of the whole storage under `tensor`, and the tensor laid out on it as it was."""
    if storage_key(tensor) is None:
        return tensor.detach().clone()
    return restride(tensor, tensor.untyped_storage().clone())


def restride(like: Shaped[Tensor, "*shape"], storage: Any) -> Shaped[Tensor, "*shape"]:
    """A tensor on `storage` with the type, the shape, the strides and the offset of `like`."""
    with torch.no_grad():
        made = torch.empty(0, dtype=like.dtype, device=like.device)
        return made.set_(storage, like.storage_offset(), like.size(), like.stride())


class _WritableCopy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
        return copy_storage(tensor)

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor) -> Tensor:
        return adjoints[0]


def writable_copy(tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    """A copy that f may do anything with, in-place writing too, which autograd forbids on a leaf."""
    copied = copy_storage(tensor)
    if not (copied.is_floating_point() or copied.is_complex()):
        return copied
    made = _WritableCopy.apply(copied.requires_grad_())
    assert isinstance(made, Tensor)
    return made
