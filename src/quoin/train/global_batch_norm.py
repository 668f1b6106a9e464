"""Batch normalisation over the rows that all processes have in their hands: the mean and variance of one process with
all of them, on any device (torch's SyncBatchNorm refuses the CPU), and the same gradients.

What it computes is `quoin.layers.batch_norm_definition` of all rows.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn

from quoin.train.processes import num_processes, sum_over_processes

__all__ = ["global_batch_norm", "global_batch_norm_forward"]

KINDS = tuple(kind.forward for kind in (nn.BatchNorm1d, nn.SyncBatchNorm))  # 1d, 2d and 3d share one


def global_batch_norm_forward(module: nn.Module, is_live: Callable[[], bool]) -> Callable | None:
    """How `module` is to be computed in a step, where it is a batch normalisation; `is_live` says whether the rows that
    come count."""
    if type(module).forward not in KINDS:
        return None

    def forward(x: Float[Tensor, "batch channels ..."]) -> Float[Tensor, "batch channels ..."]:
        if not module.training:
            return type(module).forward(module, x)
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module._check_input_dim(x)
        return global_batch_norm(module, x, is_live=is_live())

    return forward


def global_batch_norm(
    module: Any, x: Float[Tensor, "batch channels ..."], *, is_live: bool = True
) -> Float[Tensor, "batch channels ..."]:
    """`module(x)` in training mode of a fraction of the rows, normalised by the mean and variance of all. Every process
    calls it.

    Args:
        module: A batch normalisation of torch's, whose running averages follow.
        is_live: Whether these rows count; those that do not are normalised like the others, and that is all.
    """
    count, mean, squares = _all_statistics(x.detach(), is_live)
    variance = squares / count
    # a backward pass that computes activations again would count them twice
    if module.track_running_stats and torch._C._current_graph_task_id() == -1:
        _follow(module, mean, squares / (count - 1).clamp(min=1))
    return GlobalBatchNormFunction.apply(
        x, module.weight, module.bias, mean, torch.rsqrt(variance + module.eps), count, is_live
    )


def _all_statistics(x: Tensor, is_live: bool) -> tuple[Tensor, Tensor, Tensor]:
    """How many values a channel has over all processes, their mean, and the sum of their squared distances from it."""
    dims = [dim for dim in range(x.ndim) if dim != 1]
    exact = torch.float32 if x.device.type == "mps" else torch.float64
    own = torch.zeros(3, x.shape[1], dtype=exact, device=x.device)
    if is_live:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        own[0] = x.numel() / x.shape[1]
        own[1] = wide.mean(dims)
        own[2] = (wide - own[1].to(wide).reshape(_channels(x))).square().sum(dims)
    if num_processes() == 1:
        return own[0], own[1], own[2]
    found = [torch.empty_like(own) for _ in range(num_processes())]
    dist.all_gather(found, own)
    counts, means, squares = torch.stack(found).unbind(1)  # (processes, channels) each
    count = counts.sum(0)
    mean = (counts * means).sum(0) / count
    return count, mean, (squares + counts * (means - mean).square()).sum(0)  # Chan, Golub and LeVeque 1979


def _follow(module: Any, mean: Tensor, variance: Tensor) -> None:
    """Let the running averages follow, as torch's own do."""
    factor = module.momentum
    if module.num_batches_tracked is not None:
        module.num_batches_tracked.add_(1)
        if factor is None:
            factor = 1 / float(module.num_batches_tracked)
    for running, found in ((module.running_mean, mean), (module.running_var, variance)):
        running.lerp_(found.to(running), factor)


def _channels(x: Tensor) -> list[int]:
    return [1, -1, *[1] * (x.ndim - 2)]


class GlobalBatchNormFunction(torch.autograd.Function):
    """γ (x - μ)/σ + β, whose μ and σ depend on the rows of all processes."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Float[Tensor, "batch channels ..."]:
        x, weight, bias, mean, inverse_std, count, is_live = inputs
        wide = torch.promote_types(x.dtype, torch.float32)
        shape = _channels(x)
        normalised = (x.to(wide) - mean.to(wide).reshape(shape)) * inverse_std.to(wide).reshape(shape)
        ctx.save_for_backward(normalised, weight, inverse_std, count)
        ctx.is_live = is_live
        output = (
            normalised
            if weight is None
            else torch.addcmul(bias.to(wide).reshape(shape), normalised, weight.to(wide).reshape(shape))
        )
        return output.to(x.dtype, copy=weight is None)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Float[Tensor, "..."] | None, ...]:
        (gradient,) = grad_outputs
        normalised, weight, inverse_std, count = ctx.saved_tensors
        dims = [dim for dim in range(gradient.ndim) if dim != 1]
        shape, wide = _channels(gradient), gradient.to(normalised.dtype)
        sums = torch.stack([wide.sum(dims), (wide * normalised).sum(dims)])
        if not ctx.is_live:
            sums = torch.zeros_like(sums)
        total = sum_over_processes(sums.to(count.dtype)) / count
        by_bias, by_weight = total.to(wide)
        change = wide - by_bias.reshape(shape) - normalised * by_weight.reshape(shape)
        scale = inverse_std.to(wide) if weight is None else inverse_std.to(wide) * weight.to(wide)
        by_x = (change * scale.reshape(shape)).to(gradient.dtype)
        if not ctx.is_live:
            by_x = torch.zeros_like(by_x)
        if weight is None:
            return by_x, None, None, None, None, None, None
        return by_x, sums[1].to(weight), sums[0].to(weight), None, None, None, None
