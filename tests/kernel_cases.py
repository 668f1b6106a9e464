"""Linear attention by a kernel beside its definition: the cases, and what each must keep. Run on a GPU by
test_gpu_kernels.py, and on the CPU in Triton's interpreter by test_kernels_interpreted.py."""

import torch
from torch import Tensor

from quoin.layers.attention import LinearAttention, PerformerAttention
from quoin.layers.attention.features import Features
from quoin.layers.attention.linear_forms import feature_attention_definition

# sequences, query heads, key heads, queries, keys, key width, value width
SHAPES = [(1, 4, 2, 150, 150, 16, 16), (2, 2, 2, 70, 70, 16, 24), (1, 2, 1, 256, 256, 16, 16)]
CROSS = [(2, 2, 2, 70, 100, 16, 24), (1, 4, 2, 1, 40, 16, 16)]
KINDS = ("elu", "given", "scaled", "performer")


def inputs(shape, dtype, device, masked: bool, size: float = 1.0):
    b, h, g, n, m, d, v = shape
    generator = torch.Generator().manual_seed(n * 1000 + m + d)
    query = torch.randn(b, h, n, d, generator=generator) * size
    key = torch.randn(b, g, m, d, generator=generator) * size
    value = torch.randn(b, g, m, v, generator=generator)
    grad = torch.randn(b, h, n, v, generator=generator)
    mask = torch.rand(b, 1, 1, m, generator=generator) > 0.3 if masked else None
    if mask is not None:  # what nobody may see is not even read as a number
        key, value = (each.masked_fill(~mask.mT, torch.nan) for each in (key, value))
    moved = [each.to(device, dtype) for each in (query, key, value, grad)]
    return *moved, None if mask is None else mask.to(device)


def defined(kind: str, query, key, value, mask, causal: bool) -> Tensor:
    """The definition in float64: nothing but scores and sums."""
    if kind == "elu":
        return LinearAttention()(query, key, value, mask=mask, causal=causal)
    if kind == "performer":
        return performer(query.shape[-1], query.device).double()(query, key, value, mask=mask, causal=causal)
    groups = query.shape[1] // key.shape[1]
    if mask is not None:
        key, value = key.masked_fill(~mask.mT, 0), value.masked_fill(~mask.mT, 0)
    keys, values = (each.repeat_interleave(groups, 1) for each in (key, value))
    scale = log_scale(key).double().repeat_interleave(groups, 1).unsqueeze(-1) if kind == "scaled" else None
    features = Features(query.exp()), Features(keys.exp(), scale)
    return feature_attention_definition(*features, values, mask, causal=causal).output


def by_kernel(kind: str, query, key, value, mask, causal: bool) -> Tensor:
    from quoin.layers.kernels import linear_attention as kernels

    seen = None if mask is None else mask[:, 0].expand(key.shape[:3])
    if kind == "elu":
        return kernels.attend_elu_plus_one(query, key, value, seen, causal=causal)
    if kind == "performer":
        features = performer(query.shape[-1], query.device).feature_map
        matrix, scale = features.projection.matrix, features.scale
        return kernels.attend_exponential(query, key, value, seen, matrix, scale=scale, causal=causal)
    scale = log_scale(key) if kind == "scaled" else None
    if mask is not None:  # of the features, not of the kernel: e^NaN has no gradient of 0
        key = key.masked_fill(~mask.mT, 0)
    return kernels.attend_by_features(query.exp(), key.exp(), value, seen, scale, causal=causal)


def performer(head_dim: int, device) -> PerformerAttention:
    return PerformerAttention(head_dim, 32, generator=torch.Generator().manual_seed(1)).eval().to(device)


def log_scale(key: Tensor) -> Tensor:  # of any size, growing and falling
    positions = torch.arange(key.shape[2], device=key.device, dtype=torch.float32)
    return ((positions * 0.37).sin() * 30).expand(key.shape[:3]).contiguous()


def errors(kind: str, shape, dtype, device, *, masked: bool, causal: bool, size: float = 1.0) -> list[float]:
    """Of the output and the gradients of query, key and value: the largest relative to the largest number."""
    *tensors, grad, mask = inputs(shape, dtype, device, masked, size)
    exact = [each.double().requires_grad_() for each in tensors]
    quick = [each.clone().requires_grad_() for each in tensors]
    want, got = defined(kind, *exact, mask, causal), by_kernel(kind, *quick, mask, causal)
    want.backward(grad.double())
    got.backward(grad)
    pairs = [(want, got), *((one.grad, other.grad) for one, other in zip(exact, quick))]
    return [_distance(one.detach().double(), other.detach().double()) for one, other in pairs]


def _distance(one: Tensor, other: Tensor) -> float:
    return float(((one - other).abs().max() / one.abs().max()).nan_to_num(torch.inf))
