"""Triton kernels, for CUDA alone, and imported only there: each computes what a definition of `quoin.layers` says."""

import importlib.util
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["has_kernels", "on_device_of"]

KERNEL_DEVICES = ("cuda",)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
HAS_TRITON = importlib.util.find_spec("triton") is not None  # it comes with torch for CUDA


def has_kernels(tensor: Shaped[Tensor, "..."]) -> bool:
    """Whether there are kernels for tensors of this dtype where it lies."""
    return HAS_TRITON and tensor.device.type in KERNEL_DEVICES and tensor.dtype in DTYPES


def on_device_of(tensor: Shaped[Tensor, "..."]) -> AbstractContextManager[object]:
    """Inside, kernels are launched where `tensor` lies: Triton goes by the current device, not by its arguments."""
    device = tensor.device
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)
