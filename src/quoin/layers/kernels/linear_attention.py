"""Linear attention on CUDA: the operator around the Triton kernels, with its gradient.

`torch.compile` and `torch.export` see one operator each way. What the kernels compute is in linear_attention_triton.py.

    b sequences, h query heads, g key and value heads, n queries, m keys, d key_dim, f features, v value_dim
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.layers.kernels import linear_attention_grads_triton as grad_kernels
from quoin.layers.kernels import linear_attention_triton as kernels
from quoin.layers.kernels import on_device_of
from quoin.layers.kernels.features_triton import ELU_PLUS_ONE, EXPONENTIAL, GIVEN

__all__ = ["MAX_FEATURES", "MAX_WIDTH", "attend_by_features", "attend_elu_plus_one", "attend_exponential"]

R = TypeVar("R")

MAX_FEATURES, MAX_WIDTH = 256, 128  # whose sums fit into the registers of a multiprocessor
PROGRAMS = 528  # that keep a large device busy: four for each of 132 multiprocessors
SCANNED = 4  # features of a program that adds up segments


def attend_elu_plus_one(
    query: Float[Tensor, "b h n d"],
    key: Float[Tensor, "b g m d"],
    value: Float[Tensor, "b g m v"],
    mask: Bool[Tensor, "b g m"] | None,
    *,
    causal: bool,
) -> Float[Tensor, "b h n v"]:
    """Linear attention with φ = elu + 1, which is computed where it is used."""
    return _attend(query, key, value, mask, None, None, 0.0, ELU_PLUS_ONE, causal)


def attend_exponential(
    query: Float[Tensor, "b h n d"],
    key: Float[Tensor, "b g m d"],
    value: Float[Tensor, "b g m v"],
    mask: Bool[Tensor, "b g m"] | None,
    directions: Float[Tensor, "f d"],
    *,
    scale: float,
    causal: bool,
) -> Float[Tensor, "b h n v"]:
    """Linear attention with Performer's features φ_i(x) = e^{√s ω_i·x - s‖x‖²/2} / √f, computed where they are used."""
    weight = (directions.float() * math.sqrt(scale)).contiguous()
    return _attend(query, key, value, mask, None, weight, scale, EXPONENTIAL, causal)


def attend_by_features(
    query: Float[Tensor, "b h n f"],
    key: Float[Tensor, "b g m f"],
    value: Float[Tensor, "b g m v"],
    mask: Bool[Tensor, "b g m"] | None,
    log_scale: Float[Tensor, "b g m"] | None,
    *,
    causal: bool,
) -> Float[Tensor, "b h n v"]:
    """Linear attention of given features; a key's count e^log_scale times, to which no gradient flows."""
    scale = None if log_scale is None else log_scale.detach().float().contiguous()
    return _attend(query, key, value, mask, scale, None, 0.0, GIVEN, causal)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    log_scale: Tensor | None,
    weight: Tensor | None,
    scale: float,
    kind: int,
    causal: bool,
) -> Tensor:
    query, key, value = (each if each.stride(-1) == 1 else each.contiguous() for each in (query, key, value))
    if torch.compiler.is_compiling():
        return torch.ops.quoin.linear_attention(query, key, value, mask, log_scale, weight, scale, kind, causal)[0]
    return _Eager.apply(query, key, value, mask, log_scale, weight, scale, kind, causal)  # pyright: ignore[reportReturnType]


@dataclass(frozen=True)
class _Plan:
    """How the work is cut up, from shapes alone."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value_dim: int
    features: int
    kind: int
    scaled: bool
    dtype: torch.dtype

    @property
    def block(self) -> int:
        wide = self.dtype != torch.bfloat16 and max(self.query[3], self.value_dim, self.features) > 64
        return 32 if self.features > 128 or wide else 64  # what the shared memory of a multiprocessor holds

    def segment(self, pairs: int, length: int) -> int:
        """Blocks of a segment: as many segments as keep the device busy, and no more."""
        return max(1, min(64, -(-length * pairs // (self.block * PROGRAMS))))

    @property
    def segments(self) -> int:
        """Into which the keys are cut; where it is causal the queries are cut into the same."""
        return -(-self.key[2] // (self.block * self.segment(self.query[0] * self.query[1], self.key[2])))

    def widths(self) -> tuple[int, ...]:
        # Triton 3.6 computes wrong products of narrower bfloat16 tiles on Hopper.
        least = 64 if self.dtype == torch.bfloat16 else 16
        return tuple(_padded(each, least) for each in (self.query[3], self.features, self.value_dim))


def _padded(width: int, least: int = 16) -> int:
    """The next power of two, at least as wide as a tile of a matrix product."""
    return max(least, 1 << (width - 1).bit_length())


@functools.lru_cache(maxsize=256)
def _constants(plan: _Plan, pairs: int, length: int, stages: int) -> dict[str, Any]:
    blocks, widths = plan.segment(pairs, length), plan.widths()
    rows = plan.block * blocks
    whole = plan.query[2] % rows == 0 and plan.key[2] % rows == 0
    return {
        "BLOCK": plan.block,
        "BLOCKS": blocks,
        "BD": widths[0],
        "BF": widths[1],
        "BV": widths[2],
        "EVEN": whole and widths == (plan.query[3], plan.features, plan.value_dim),
        # Sums in float16 would overflow.
        "DOT": tl.bfloat16 if plan.dtype == torch.bfloat16 else tl.float32,
        "PRECISION": "ieee" if plan.dtype == torch.bfloat16 else "tf32x3",
        "KIND": plan.kind,
        "SCALED": plan.scaled,
        "num_warps": 4 if plan.features <= 64 else 8,
        "num_stages": stages,
    }


def _plan(
    query: Tensor, key: Tensor, value: Tensor, log_scale: Tensor | None, weight: Tensor | None, kind: int
) -> _Plan:
    features = query.shape[3] if weight is None else weight.shape[0]
    scaled = kind == EXPONENTIAL or log_scale is not None
    return _Plan(tuple(query.shape), tuple(key.shape), value.shape[3], features, kind, scaled, value.dtype)


def _strides(*tensors: Tensor | None) -> list[int]:
    return [step for each in tensors for step in ((0, 0, 0) if each is None else each.stride()[:3])]


def _sizes(plan: _Plan) -> tuple[int, ...]:
    (_, heads, n, d), (_, groups, m, _) = plan.query, plan.key
    return n, m, heads, heads // groups, d, plan.features, plan.value_dim


def _launched_there(function: Callable[..., R]) -> Callable[..., R]:
    """`function`, whose kernels run where its first argument lies."""

    @functools.wraps(function)
    def launch(*arguments: Any) -> R:
        with on_device_of(arguments[0]):
            return function(*arguments)

    return launch


@_launched_there
def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    log_scale: Tensor | None,
    weight: Tensor | None,
    scale: float,
    kind: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The output, and for its gradient: denominators, the largest scale that each query sees, sums before each segment
    (of all, where it is not causal) and their scales."""
    plan = _plan(query, key, value, log_scale, weight, kind)
    output, den, largest, sums, totals, scales = _empty(query, key, value, mask, log_scale, weight, scale, kind, causal)
    (b, h, n, _), (_, g, m, _) = plan.query, plan.key
    segment_sums = query.new_empty(b * g, plan.segments, plan.features, plan.value_dim, dtype=torch.float32)
    segment_totals = query.new_empty(b * g, plan.segments, plan.features, dtype=torch.float32)
    segment_scales = query.new_empty((b * g, plan.segments) if plan.scaled else (0,), dtype=torch.float32)
    step = 0 if weight is None else weight.stride(0)
    features = (scale, 0.5 * math.log(plan.features))
    kernels.segment_sums[(plan.segments, b * g)](
        key, value, mask, log_scale, weight, segment_sums, segment_totals, segment_scales,
        *_strides(key, value, mask), step, m, g, key.shape[3], plan.features, plan.value_dim, *features,
        MASKED=mask is not None, **_constants(plan, b * h, m, 3),
    )  # fmt: skip
    _add_up(plan, (segment_sums, segment_totals, segment_scales), (sums, totals, scales), causal, reverse=False)
    if plan.scaled and not causal:
        largest.copy_(scales.view(b, g, 1).expand(b, g, n))
    constants = _constants(plan, b * h, n, 3)
    kernels.attend[(-(-n // (constants["BLOCK"] * constants["BLOCKS"])), b * h)](
        query, key, value, mask, log_scale, weight, sums, totals, scales, output, den, largest,
        *_strides(query, key, value, mask), step, *_strides(output),
        *_sizes(plan), *features, torch.finfo(torch.float32).tiny ** (2 / 3),
        MASKED=mask is not None, CAUSAL=causal, **constants,
    )  # fmt: skip
    return output, den, largest, sums, totals, scales


def _empty(query, key, value, mask, log_scale, weight, scale, kind, causal):
    plan = _plan(query, key, value, log_scale, weight, kind)
    (b, h, n, _), (_, g, _, _) = plan.query, plan.key
    lead = (b * g, plan.segments) if causal else (b * g,)
    numbers = {"dtype": torch.float32}
    return (
        value.new_empty(b, n, h, plan.value_dim).transpose(1, 2),  # heads side by side, as what comes next reads them
        query.new_empty(b, h, n, **numbers),
        query.new_empty((b, g, n) if plan.scaled else (0,), **numbers),
        query.new_empty(*lead, plan.features, plan.value_dim, **numbers),
        query.new_empty(*lead, plan.features, **numbers),
        query.new_empty(lead if plan.scaled else (0,), **numbers),
    )


def _add_up(plan: _Plan, of_segments: tuple[Tensor, ...], out: tuple[Tensor, ...], causal: bool, reverse: bool) -> None:
    """The sums before each segment (`reverse`: after it), or where it is not causal of all."""
    sums, totals, scales = of_segments
    if causal:
        kernels.scan_sums[(-(-plan.features // SCANNED), len(sums))](
            sums, totals, scales, *out, sums.shape[1], plan.features, plan.value_dim,
            REVERSE=reverse, SCALED=plan.scaled, BF=SCANNED, BV=_padded(plan.value_dim), num_warps=2,
        )  # fmt: skip
        return
    if plan.scaled:
        torch.amax(scales, dim=1, out=out[2])
        shrink = (scales - out[2][:, None]).exp()
        sums, totals = sums * shrink[..., None, None], totals * shrink[..., None]
    torch.sum(sums, dim=1, out=out[0])
    torch.sum(totals, dim=1, out=out[1])


@_launched_there
def _backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    log_scale: Tensor | None,
    weight: Tensor | None,
    scale: float,
    kind: int,
    causal: bool,
    output: Tensor,
    den: Tensor,
    largest: Tensor,
    sums: Tensor,
    totals: Tensor,
    scales: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value."""
    plan = _plan(query, key, value, log_scale, weight, kind)
    (b, h, n, _), (_, g, m, _) = plan.query, plan.key
    grads = _empty_grads(grad, query, key, value)
    step, features = 0 if weight is None else weight.stride(0), (scale, 0.5 * math.log(plan.features))
    constants = _constants(plan, b * h, n, 1)
    segments = -(-n // (constants["BLOCK"] * constants["BLOCKS"]))
    later = query.new_empty(b * h, segments, plan.features, plan.value_dim, dtype=torch.float32)
    later_totals = query.new_empty(b * h, segments, plan.features, dtype=torch.float32)
    later_scales = query.new_empty((b * h, segments) if plan.scaled else (0,), dtype=torch.float32)
    den_grad = torch.empty_like(den)
    grad_kernels.grad_queries[(segments, b * h)](
        query, key, value, mask, log_scale, weight, sums, totals, scales, output, den, largest, grad, grads[0],
        den_grad, later, later_totals, later_scales,
        *_strides(query, key, value, mask), step, *_strides(output, grad, grads[0]), *_sizes(plan), *features,
        MASKED=mask is not None, CAUSAL=causal, **constants,
    )  # fmt: skip
    if h > g:  # the query heads of a group see the same keys, so their scales are the same
        later = later.view(b * g, h // g, *later.shape[1:]).sum(1)
        later_totals = later_totals.view(b * g, h // g, *later_totals.shape[1:]).sum(1)
        later_scales = later_scales.view(b * g, h // g, -1)[:, 0].contiguous() if plan.scaled else later_scales
    lead = slice(None) if causal else 0
    after = tuple(
        torch.empty_like(each[:, lead] if each.ndim > 1 else each) for each in (later, later_totals, later_scales)
    )
    _add_up(plan, (later, later_totals, later_scales), after, causal, reverse=True)
    constants = _constants(plan, b * h, m, 2)
    grad_kernels.grad_keys[(-(-m // (constants["BLOCK"] * constants["BLOCKS"])), b * g)](
        query, key, value, mask, log_scale, weight, *after, den_grad, den, largest, grad, grads[1], grads[2],
        *_strides(query, key, value, mask), step, *_strides(grad, grads[1], grads[2]), *_sizes(plan), *features,
        MASKED=mask is not None, CAUSAL=causal, **constants,
    )  # fmt: skip
    return grads


class _Eager(torch.autograd.Function):
    """The same without the operator, whose bookkeeping takes longer than the kernels do of a short sequence."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        found = _forward(*inputs)
        _keep(ctx, inputs, found)
        return found[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _differentiate(ctx, grad, backward=_backward)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:6], *output)
    ctx.how = inputs[6:]


def _differentiate(ctx: Any, grad: Tensor, *unused: Tensor, backward: Any = None) -> tuple[Tensor | None, ...]:
    *inputs, output, den, largest, sums, totals, scales = ctx.saved_tensors
    grad = grad if grad.stride(-1) == 1 else grad.contiguous()
    backward = backward or torch.ops.quoin.linear_attention_backward
    found = backward(grad, *inputs, *ctx.how, output, den, largest, sums, totals, scales)
    return (*found, None, None, None, None, None, None)


def _empty_grads(grad, query, key, value, *rest):
    return tuple(torch.empty_like(each) for each in (query, key, value))


# What torch.compile and torch.export see: two operators, of which they know the shapes and the gradient.
linear_attention = torch.library.custom_op("quoin::linear_attention", _forward, mutates_args=())
linear_attention_backward = torch.library.custom_op("quoin::linear_attention_backward", _backward, mutates_args=())
linear_attention.register_fake(_empty)
linear_attention_backward.register_fake(_empty_grads)
linear_attention.register_autograd(_differentiate, setup_context=_keep)
