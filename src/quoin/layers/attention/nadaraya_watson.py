"""Kernel pooling: a query gathers values by how near their keys lie, with nothing to train.

Kernels are in tensor/smoothing.py. Where no key lies in a query's window the estimator is 0/0, and a rule says what it
attends to instead; the Gaussian window is never empty. Scikit-learn estimators, which choose a bandwidth too, are in
estimators/kernel_regression.py.

n queries, m keys
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from quoin.errors import UserError
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.checks import check_attention
from quoin.layers.attention.exact import repeat_kv
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec
from quoin.layers.attention.pooling import Pooled
from quoin.layers.attention.seen import each_query_alone, hidden_from_some
from quoin.tensor import (
    Bandwidth,
    GaussianKernel,
    SmoothingKernel,
    as_bandwidth,
    as_floating,
    attention_mask,
    causal_mask,
    check_finite,
    check_floating,
    check_mask,
    check_same_dtype,
    check_shapes,
    scaled_offsets,
    squared_distances,
    zero_masked,
)
from quoin.tensor.blocks import in_blocks, rows_per_block

__all__ = [
    "FallbackRule",
    "NadarayaWatson",
    "every_key",
    "nadaraya_watson",
    "nadaraya_watson_definition",
    "nadaraya_watson_weights",
    "nearest_key",
    "no_key",
    "undefined",
]

# Squared distances (..., m) of a query from its keys, infinite where a mask hides them -> weights (..., m), up to a
# factor.
FallbackRule = Callable[[Tensor], Tensor]

FUSED_PAIRS_PER_BLOCK = (
    2**26
)  # of a query and a key in torch's fused attention, which holds none of them on most devices
CLOSE = 128  # roundings by which a score may be off


def nearest_key(square: Real[Tensor, "*batch key"]) -> Float[Tensor, "*batch key"]:
    """An empty window attends to the nearest key, and to all that are equally near alike: where a narrowing Gaussian
    window leads.

    No query stays unanswered, and the order of the keys does not matter.

    Args:
        square: Squared distances of the keys from a query, infinite where a mask hides one.

    Notes: ZE23.
    """
    square = as_floating(square)
    return (square == square.amin(dim=-1, keepdim=True)).to(square.dtype)


def every_key(square: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch key"]:
    """An empty window attends to all keys alike, and gives the mean of all values.

    Args:
        square: Squared distances of the keys from a query, infinite where a mask hides one.
    """
    return square.isfinite().to(square.dtype)


def no_key(square: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch key"]:
    """An empty window attends to nothing, and gives zeros."""
    return torch.zeros_like(square)


def undefined(square: Real[Tensor, "*batch key"]) -> Float[Tensor, "*batch key"]:
    """An empty window has no value: NaN, as 0/0 is."""
    return torch.full_like(as_floating(square), torch.nan)


def nadaraya_watson_definition(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
    kernel: SmoothingKernel,
    bandwidth: Bandwidth,
    *,
    fallback: FallbackRule = nearest_key,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Pooled:
    """f(q) = sum_i v_i K(u_i) / sum_j K(u_j) with u_i = (q - k_i)/h: regression where v_i = y_i, classification where
    v_i is one-hot.

    As the equation says it: a Gaussian that has vanished by rounding leaves an empty window.

    Args:
        bandwidth: h above 0, one number or one for each coordinate.
        fallback: What a query attends to that has no key in its window: `nearest_key`, `every_key`, `no_key` or
            `undefined`.
        mask: True where a query may attend to a key; None lets it attend to all.

    >>> from quoin.tensor import BoxcarKernel
    >>> keys, values = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([[10.0], [20.0], [50.0]])
    >>> pooled = nadaraya_watson_definition(torch.tensor([[0.5]]), keys, values, BoxcarKernel(), 1.0)
    >>> pooled.weights, pooled.output
    (tensor([[0.5000, 0.5000, 0.0000]]), tensor([[15.]]))

    Notes: Z11.7, Z11.9, Z11.10.
    """
    _check(query, key, value, mask)
    if mask is not None:
        if hidden_from_some(mask, key, value):
            pool = partial(nadaraya_watson_definition, fallback=fallback)
            return Pooled(
                *each_query_alone(
                    lambda q, k, v, seen: pool(q, k, v, kernel, bandwidth, mask=seen), query, (key, value), mask
                )
            )
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    u = scaled_offsets(query, key, bandwidth)
    similarity = kernel(u)
    if mask is not None:
        similarity = similarity.masked_fill(~mask, 0)
    similarity, total = _or_by_rule(similarity, u.square().sum(dim=-1), fallback, mask)
    weights = similarity / total
    return Pooled(weights @ value, weights)


def nadaraya_watson(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
    kernel: SmoothingKernel,
    bandwidth: Bandwidth,
    *,
    fallback: FallbackRule = nearest_key,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query value_dim"]:
    """`nadaraya_watson_definition(...).output` in memory that does not grow with n m, backwards too; no Gaussian
    vanishes.

    Gaussian pooling is attention: -‖q - k‖²/2 = q^T k - ‖k‖²/2 - ‖q‖²/2, where the last term is the same for all keys,
    so that (q, 1) and (k, -‖k‖²/2) go to torch's fused kernel. The other kernels are worked off a few queries at a
    time.

    Args:
        bandwidth: h above 0, one number or one for each coordinate.
        fallback: What a query attends to that has no key in its window: `nearest_key`, `every_key`, `no_key` or
            `undefined`.
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.7, Z11.9, Z11.10.
    """
    _check(query, key, value, mask)
    bandwidth = as_bandwidth(bandwidth, query)
    if mask is not None:
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    for name, given in (("query", query), ("key", key), ("value", value)):
        check_finite(given, name)
    if not query.numel():
        return query @ key.mT @ value
    # Whether the fused form is close enough is a question of values, which a program that is exported does not have.
    may_fuse = isinstance(kernel, GaussianKernel) and not torch.compiler.is_exporting()
    fused = _safe_dtype(query, key, bandwidth) if may_fuse else None

    def pool(query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor, mask: Tensor | None) -> Tensor:
        if fused is not None:
            return _gaussian_attention(query, key, value, bandwidth, mask, fused)
        similarity, total = _similarities(query, key, kernel, bandwidth, fallback, mask)
        return (similarity @ value.to(similarity.dtype) / total).to(value.dtype)

    pairs = math.prod(query.shape[:-2]) * key.shape[-2]  # of one query in each sequence
    rows = rows_per_block(pairs) if fused is None else rows_per_block(pairs, FUSED_PAIRS_PER_BLOCK)
    pieces = in_blocks(query, rows, dim=-2)
    masks = (
        [mask] * len(pieces) if mask is None or mask.ndim < 2 or mask.shape[-2] == 1 else in_blocks(mask, rows, dim=-2)
    )
    learns = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value, bandwidth))
    if not learns or len(pieces) == 1:
        return torch.cat([pool(piece, key, value, bandwidth, seen) for piece, seen in zip(pieces, masks)], dim=-2)
    # Each piece is recomputed in the backward pass, for its pairs would together fill the memory that pieces are to
    # save.
    kept = [
        checkpoint(pool, piece, key, value, bandwidth, seen, use_reentrant=False, preserve_rng_state=False)
        for piece, seen in zip(pieces, masks)
    ]
    return torch.cat(kept, dim=-2)  # type: ignore[arg-type]


def nadaraya_watson_weights(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    kernel: SmoothingKernel,
    bandwidth: Bandwidth,
    *,
    fallback: FallbackRule = nearest_key,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """The weights K(u_i) / sum_j K(u_j) that `nadaraya_watson` gathers by, n m numbers.

    Args:
        bandwidth: h above 0, one number or one for each coordinate.
        fallback: What a query attends to that has no key in its window: `nearest_key`, `every_key`, `no_key` or
            `undefined`.
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.7.
    """
    _check(query, key, key, mask)
    key = key if mask is None else zero_masked(key, mask)
    similarity, total = _similarities(query, key, kernel, as_bandwidth(bandwidth, query), fallback, mask)
    return (similarity / total).to(query.dtype)


class NadarayaWatson(nn.Module):
    """`nadaraya_watson` as an attention: every head pools by the same kernel.

    Args:
        bandwidth: Above 0, one number or one for each coordinate; an `nn.Parameter` learns.
        fallback: What a query attends to that has no key in its window: `nearest_key`, `every_key`, `no_key` or
            `undefined`.

    >>> from quoin.tensor import EpanechnikovKernel
    >>> attend = NadarayaWatson(EpanechnikovKernel(), 0.5)
    >>> attend(torch.rand(2, 4, 6, 3), torch.rand(2, 4, 9, 3), torch.rand(2, 4, 9, 5)).shape
    torch.Size([2, 4, 6, 5])

    Notes: Z11.7.
    """

    bandwidth: Real[Tensor, "..."]

    def __init__(self, kernel: SmoothingKernel, bandwidth: Bandwidth, *, fallback: FallbackRule = nearest_key):
        super().__init__()
        self.kernel, self.fallback = kernel, fallback
        if isinstance(bandwidth, nn.Parameter):
            self.bandwidth = bandwidth
        else:
            self.register_buffer("bandwidth", torch.as_tensor(bandwidth))

    def forward(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        value: Float[Tensor, "batch kv_heads key value_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query value_dim"]:
        check_attention(query, key, value, mask, causal=causal)
        mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=causal, device=query.device)
        key, value = repeat_kv(key, query.shape[1]), repeat_kv(value, query.shape[1])
        return nadaraya_watson(query, key, value, self.kernel, self.bandwidth, fallback=self.fallback, mask=mask)

    def weights(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query key"]:
        """The weights by which values are gathered, n m numbers a head."""
        check_attention(query, key, None, mask, causal=causal)
        mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=causal, device=query.device)
        return nadaraya_watson_weights(
            query, repeat_kv(key, query.shape[1]), self.kernel, self.bandwidth, fallback=self.fallback, mask=mask
        )

    def init_cache(self, spec: CacheSpec) -> KeyValueCache:
        """An empty cache with memory for `spec.max_seq_len` positions."""
        return KeyValueCache.empty(spec)

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new head_dim"],
        key: Float[Tensor, "batch kv_heads new head_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """Pool from the new positions over themselves and all before: what `forward` gives there on the whole,
        causal."""
        if not isinstance(cache, KeyValueCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each attention keeps its "
                "own kind"
            )
        check_attention(query, key, value, causal=True)
        cache = cache.append(key, value)
        mask = causal_mask(query.shape[2], cache.seq_len, device=query.device)
        return AttentionStepOutput(self(query, cache.keys, cache.values, mask=mask), cache)


def _similarities(
    query: Tensor, key: Tensor, kernel: SmoothingKernel, bandwidth: Tensor, fallback: FallbackRule, mask: Tensor | None
) -> tuple[Tensor, Tensor]:  # -> (..., n, m), (..., n, 1)
    """K(u_i) up to a factor for each query, and their sums; in float32 at least."""
    wide = torch.promote_types(query.dtype, torch.float32)
    square = squared_distances(query.to(wide), key.to(wide), bandwidth.to(wide))
    if mask is not None:
        square = square.masked_fill(~mask, torch.inf)
    return _or_by_rule(kernel.scaled_values(square).values, square, fallback, mask)


def _or_by_rule(
    similarity: Tensor, square: Tensor, fallback: FallbackRule, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The similarities, by the rule where they are all zero, and their sums; where there is nothing to attend to, zeros
    and a sum of 1.
    """
    alone = similarity.detach().sum(dim=-1, keepdim=True) == 0
    if torch.compiler.is_exporting() or bool(alone.any()):
        if mask is not None:
            square = square.masked_fill(~mask, torch.inf)
            alone = alone & mask.any(dim=-1, keepdim=True)
        similarity = torch.where(alone, fallback(square.detach()), similarity)
    total = similarity.sum(dim=-1, keepdim=True)
    return similarity, torch.where(total == 0, 1, total)


def _safe_dtype(query: Tensor, key: Tensor, bandwidth: Tensor) -> torch.dtype | None:
    """The dtype in which q^T k - ‖k‖²/2 is close to -‖q - k‖²/2, none where only differences will do.

    Terms as large as R², the largest squared distance from the keys' mean, cancel there: R² roundings may be left. So
    what is given in float32 and spreads over more than eleven widths is worked out in float64.
    """
    query, key, bandwidth = query.detach(), key.detach(), bandwidth.detach()
    center = key.mean(dim=-2, keepdim=True)
    squared_radius = max(float(((each - center) / bandwidth).square().sum(dim=-1).max()) for each in (query, key))
    given = torch.promote_types(query.dtype, torch.float32)
    allowed = max(CLOSE * torch.finfo(given).eps, 1e-11)
    return next((dtype for dtype in (given, torch.float64) if torch.finfo(dtype).eps * squared_radius <= allowed), None)


def _gaussian_attention(
    query: Tensor, key: Tensor, value: Tensor, bandwidth: Tensor, mask: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """softmax over the keys of q^T k - ‖k‖²/2, both measured in bandwidths from the keys' mean, which moves no
    distance.
    """
    center = key.detach().mean(dim=-2, keepdim=True)
    q, k = ((each - center).to(dtype) / bandwidth.to(dtype) for each in (query, key))
    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -k.square().sum(dim=-1, keepdim=True) / 2], dim=-1)
    size = max(q.shape[-1], value.shape[-1])  # the fused kernel wants one width for all three
    q, k, v = (
        pad(each, (0, size - each.shape[-1])).reshape(-1, 1, *each.shape[-2:-1], size)
        for each in (q, k, value.to(dtype))
    )
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2]).reshape(-1, 1, query.shape[-2], key.shape[-2])
    pooled = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    return pooled[..., : value.shape[-1]].reshape(*query.shape[:-1], value.shape[-1]).to(value.dtype)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    check_shapes("... n d, ... m d, ... m v", query=query, key=key, value=value)
    if not (key.shape[-2] and key.shape[-1]):
        raise UserError(
            f"expected at least one key with a coordinate, got shape {tuple(key.shape)}; give the store a pair"
        )
    check_floating(query, "query")
    check_same_dtype(query, key, value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
