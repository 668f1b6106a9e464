"""tanh and the dense layer by oneDNN's kernels, which torch's builds for x86 carry and torch itself does not ask.

Measured in float32 on one thread of an AMD EPYC (Zen 5). tanh of 128 x 6 x 28 x 28 numbers: torch 1.18 ms, oneDNN
0.27, with the copies in and out of its layout; both err by less than 1e-7 of the value. A dense layer 784-400 on 128
rows: torch 0.70 ms, oneDNN 0.34, and the same for either gradient; for torch asks Intel's MKL, which leaves the AVX-512
of other makers' processors alone and so reaches half of what these can do. On Zen 4, whose units are half as wide, MKL
is within a tenth of oneDNN, and quicker for the gradient of the weights: there, as in all other cases, for little work
and where something looks on (`is_plain_cpu`), the blocks are torch's own.
"""

import functools
import platform
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from quoin.processor import processor_family, processor_text

__all__ = ["Linear", "Tanh", "is_plain_cpu", "is_traced"]

FEWEST = 2**14  # numbers: below, the copies and the calls take longer than torch's kernel
FIRST_FULL_WIDTH = 26  # the family of Zen 5
FEWEST_PRODUCTS = 2**21  # of a dense layer, as well: the function with its own gradient costs some 30 µs


def is_traced() -> bool:
    """Whether a program is being made of what runs: a size that is asked for now would be a constant of it."""
    return torch.compiler.is_compiling() or torch._C._is_tracing()


def is_plain_cpu(*tensors: Float[Tensor, "..."]) -> bool:
    """Whether these are ordinary tensors on the CPU, and no compiler, export, function transform or mode looks on.

    Those know torch's own operations, and would find a kernel that is called past them missing or in the way.
    """
    return (
        not is_traced()
        and all(type(each) in (Tensor, nn.Parameter) and each.device.type == "cpu" for each in tensors)
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._len_torch_function_stack() == 0
    )


class Tanh(nn.Tanh):
    """`nn.Tanh`, which is `quoin.layers.tanh`; of many float32 numbers on the CPU by oneDNN's kernel.

    Notes: D1-4.
    """

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if is_traced() or input.numel() < FEWEST or not _may_ask(input):
            return torch.tanh(input)
        return _Tanh.apply(input) if torch.is_grad_enabled() and input.requires_grad else _onednn_tanh(input)


class Linear(nn.Linear):
    """`nn.Linear`, which is `affine_definition`; large ones in float32 by oneDNN's kernel where MKL's is slow.

    Notes: D1-16.
    """

    def forward(self, input: Float[Tensor, "*batch in_features"]) -> Float[Tensor, "*batch out_features"]:
        weight, bias = self.weight, self.bias
        little = is_traced() or input.numel() * self.out_features < FEWEST_PRODUCTS
        if little or not _onednn_is_quicker(input, weight):
            return nn.functional.linear(input, weight, bias)
        if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in (input, weight, bias)):
            return _Affine.apply(input, weight, bias)
        return _onednn_product(input, weight, bias)


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        output = _onednn_tanh(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.ops.aten.tanh_backward(grad, *ctx.saved_tensors)


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn_product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, weight = ctx.saved_tensors
        # By create_graph=True: oneDNN's kernel knows no gradient.
        product = nn.functional.linear if torch.is_grad_enabled() else _onednn_product
        for_x, for_weight, for_bias = ctx.needs_input_grad
        rows = grad.flatten(0, -2)
        return (
            product(grad, weight.mT) if for_x else None,
            product(rows.mT, x.flatten(0, -2).mT) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def _onednn_tanh(x: Tensor) -> Tensor:
    if x.ndim == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
        # A view whose entries lie in order: oneDNN would copy the images to channels first.
        return _onednn_tanh(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    return torch.tanh(x.to_mkldnn()).to_dense()


def _onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X Wᵀ + b, of matrices in any order of their entries."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _onednn_is_quicker(x: Tensor, weight: Tensor) -> bool:
    shaped = x.ndim > 1 and x.shape[-1] == weight.shape[1]
    return shaped and _mkl_is_slow() and not torch.is_autocast_enabled("cpu") and _may_ask(x, weight)


def _may_ask(*tensors: Tensor) -> bool:
    if any(each.dtype != torch.float32 for each in tensors) or not is_plain_cpu(*tensors):
        return False
    return _is_x86() and torch.backends.mkldnn.is_available() and torch._C._get_mkldnn_enabled()


@functools.cache
def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


@functools.cache
def _mkl_is_slow() -> bool:
    """By the processor's family and not by the clock, which would let the last bits of a run depend on the load.

    From Zen 5 on (family 26) AMD computes 512 bits at a time; Zen 4 takes them in two halves, and MKL loses nothing.
    """
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    is_amd = "AMD" in found.get("cpu_name", "") and found.get("avx512_f", False)
    return is_amd and torch.backends.mkl.is_available() and processor_family(processor_text()) >= FIRST_FULL_WIDTH
