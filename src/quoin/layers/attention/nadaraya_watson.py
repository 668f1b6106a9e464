"""Kernel pooling: a query gathers values by how near their keys lie, with nothing to train.

Kernels are in tensor/smoothing.py. Where no key lies in a query's window the estimator is 0/0, and a rule says what is looked at
instead; the Gaussian window is never empty. Scikit-learn faces, which choose a width too, are in estimators/kernel_regression.py.

n queries, m keys, d width, v value width
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from quoin.errors import Mistake
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.checks import check_attention
from quoin.layers.attention.exact import spread_heads
from quoin.layers.attention.interface import AttentionState, Room, Stepped
from quoin.layers.attention.pooling import Pooled
from quoin.layers.attention.seen import each_query_alone, hidden_from_some
from quoin.tensor import (
    GaussianWindow,
    SmoothingKernel,
    Width,
    as_floating,
    as_width,
    attention_mask,
    causal_mask,
    check_finite,
    check_floating,
    check_mask,
    check_same_dtype,
    check_shapes,
    scaled_offsets,
    squared_distances,
    zero_unseen,
)
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "EmptyRule",
    "NadarayaWatson",
    "every_key",
    "nadaraya_watson",
    "nadaraya_watson_definition",
    "nadaraya_watson_weights",
    "nearest_key",
    "no_key",
    "undefined",
]

# Squared distances (..., m) of a query from its keys, infinite where it may not look -> weights (..., m), up to a factor.
EmptyRule = Callable[[Tensor], Tensor]

FUSED_PAIRS_PER_BLOCK = 2**26  # of a query and a key in torch's fused attention, which holds none of them on most devices
CLOSE = 128  # roundings by which a score may be off


def nearest_key(square: Tensor) -> Tensor:
    """An empty window looks at the nearest key, and at all that are equally near alike: where a narrowing Gaussian window leads.

    No query stays unanswered, and the order of the keys does not matter.

    Notes: ZE23.
    """
    square = as_floating(square)
    return (square == square.amin(dim=-1, keepdim=True)).to(square.dtype)


def every_key(square: Tensor) -> Tensor:
    """An empty window looks at all keys alike, and gives the mean of all values."""
    return square.isfinite().to(square.dtype)


def no_key(square: Tensor) -> Tensor:
    """An empty window looks at nothing, and gives zeros."""
    return torch.zeros_like(square)


def undefined(square: Tensor) -> Tensor:
    """An empty window has no answer: NaN, as 0/0 is."""
    return torch.full_like(as_floating(square), torch.nan)


def nadaraya_watson_definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kernel: SmoothingKernel,
    width: Width,
    *,
    empty: EmptyRule = nearest_key,
    mask: Tensor | None = None,
) -> Pooled:  # (..., n, d), (..., m, d), (..., m, v)
    """f(q) = sum_i v_i K(u_i) / sum_j K(u_j) with u_i = (q - k_i)/h: regression where v_i = y_i, classification where v_i is one-hot.

    As the equation says it: a Gaussian that has vanished by rounding leaves an empty window.

    >>> from quoin.tensor import BoxcarWindow
    >>> keys, values = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([[10.0], [20.0], [50.0]])
    >>> nadaraya_watson_definition(torch.tensor([[0.5]]), keys, values, BoxcarWindow(), 1.0)
    Pooled(output=tensor([[15.]]), weights=tensor([[0.5000, 0.5000, 0.0000]]))

    Notes: Z11.7, Z11.9, Z11.10.
    """
    _check(query, key, value, mask)
    if mask is not None:
        if hidden_from_some(mask, key, value):
            pool = partial(nadaraya_watson_definition, empty=empty)
            return Pooled(*each_query_alone(lambda q, k, v, seen: pool(q, k, v, kernel, width, mask=seen), query, (key, value), mask))
        key, value = zero_unseen(key, mask), zero_unseen(value, mask)
    u = scaled_offsets(query, key, width)
    similarity = kernel(u)
    if mask is not None:
        similarity = similarity.masked_fill(~mask, 0)
    similarity, total = _or_by_rule(similarity, u.square().sum(dim=-1), empty, mask)
    weights = similarity / total
    return Pooled(weights @ value, weights)


def nadaraya_watson(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kernel: SmoothingKernel,
    width: Width,
    *,
    empty: EmptyRule = nearest_key,
    mask: Tensor | None = None,
) -> Tensor:  # (..., n, d), (..., m, d), (..., m, v) -> (..., n, v)
    """`nadaraya_watson_definition(...).output` in memory that does not grow with n m, backwards too; no Gaussian vanishes.

    Gaussian pooling is attention: -‖q - k‖²/2 = q^T k - ‖k‖²/2 - ‖q‖²/2, where the last term is the same for all keys, so that (q, 1)
    and (k, -‖k‖²/2) go to torch's fused kernel. The other kernels are worked off a few queries at a time.

    Notes: Z11.7, Z11.9, Z11.10.
    """
    _check(query, key, value, mask)
    width = as_width(width, query)
    if mask is not None:
        key, value = zero_unseen(key, mask), zero_unseen(value, mask)
    for name, given in (("query", query), ("key", key), ("value", value)):
        check_finite(given, name)
    if not query.numel():
        return query @ key.mT @ value
    fused = _safe_dtype(query, key, width) if isinstance(kernel, GaussianWindow) else None

    def pool(query: Tensor, key: Tensor, value: Tensor, width: Tensor, mask: Tensor | None) -> Tensor:
        if fused is not None:
            return _gaussian_attention(query, key, value, width, mask, fused)
        similarity, total = _similarities(query, key, kernel, width, empty, mask)
        return (similarity @ value.to(similarity.dtype) / total).to(value.dtype)

    pairs = query.shape[:-2].numel() * key.shape[-2]  # of one query in each sequence
    rows = rows_per_block(pairs) if fused is None else rows_per_block(pairs, FUSED_PAIRS_PER_BLOCK)
    pieces = query.split(rows, dim=-2)
    masks = [mask] * len(pieces) if mask is None or mask.ndim < 2 or mask.shape[-2] == 1 else mask.split(rows, dim=-2)
    learns = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value, width))
    if not learns or len(pieces) == 1:
        return torch.cat([pool(piece, key, value, width, seen) for piece, seen in zip(pieces, masks)], dim=-2)
    # Each piece is computed again on the way back, for its pairs would together fill the memory that pieces are to save.
    kept = [
        checkpoint(pool, piece, key, value, width, seen, use_reentrant=False, preserve_rng_state=False)
        for piece, seen in zip(pieces, masks)
    ]
    return torch.cat(kept, dim=-2)  # type: ignore[arg-type]


def nadaraya_watson_weights(
    query: Tensor, key: Tensor, kernel: SmoothingKernel, width: Width, *, empty: EmptyRule = nearest_key, mask: Tensor | None = None
) -> Tensor:  # (..., n, d), (..., m, d) -> (..., n, m)
    """The weights K(u_i) / sum_j K(u_j) that `nadaraya_watson` gathers by, n m numbers.

    Notes: Z11.7.
    """
    _check(query, key, key, mask)
    key = key if mask is None else zero_unseen(key, mask)
    similarity, total = _similarities(query, key, kernel, as_width(width, query), empty, mask)
    return (similarity / total).to(query.dtype)


class NadarayaWatson(nn.Module):
    """`nadaraya_watson` as an attention: every head pools by the same kernel. A width given as an `nn.Parameter` learns.

    >>> from quoin.tensor import EpanechnikovWindow
    >>> attend = NadarayaWatson(EpanechnikovWindow(), 0.5)
    >>> attend(torch.rand(2, 4, 6, 3), torch.rand(2, 4, 9, 3), torch.rand(2, 4, 9, 5)).shape
    torch.Size([2, 4, 6, 5])

    Notes: Z11.7.
    """

    width: Tensor

    def __init__(self, kernel: SmoothingKernel, width: Width, *, empty: EmptyRule = nearest_key):
        super().__init__()
        self.kernel, self.empty = kernel, empty
        if isinstance(width, nn.Parameter):
            self.width = width
        else:
            self.register_buffer("width", torch.as_tensor(width))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, h, n, d), (b, g, m, d), (b, g, m, v) -> (b, h, n, v)
        check_attention(query, key, value, mask, causal=causal)
        mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=causal, device=query.device)
        key, value = spread_heads(key, query.shape[1]), spread_heads(value, query.shape[1])
        return nadaraya_watson(query, key, value, self.kernel, self.width, empty=self.empty, mask=mask)

    def weights(
        self, query: Tensor, key: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, h, n, d), (b, g, m, d) -> (b, h, n, m)
        """The weights by which values are gathered, n m numbers a head."""
        check_attention(query, key, None, mask, causal=causal)
        mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=causal, device=query.device)
        return nadaraya_watson_weights(query, spread_heads(key, query.shape[1]), self.kernel, self.width, empty=self.empty, mask=mask)

    def start(self, room: Room) -> KeyValueCache:
        """A cache with memory for `room.capacity` positions."""
        return KeyValueCache.empty(room)

    def step(self, state: AttentionState, query: Tensor, key: Tensor, value: Tensor) -> Stepped:
        """Pool from the new positions over themselves and all before: what `forward` gives there on the whole, causal."""
        if not isinstance(state, KeyValueCache):
            raise Mistake(f"expected the state that start gave, came {type(state).__name__}; each attention keeps its own kind")
        check_attention(query, key, value, causal=True)
        state = state.append(key, value)
        mask = causal_mask(query.shape[2], state.seen, device=query.device)
        return Stepped(self(query, state.keys, state.values, mask=mask), state)


def _similarities(
    query: Tensor, key: Tensor, kernel: SmoothingKernel, width: Tensor, empty: EmptyRule, mask: Tensor | None
) -> tuple[Tensor, Tensor]:  # -> (..., n, m), (..., n, 1)
    """K(u_i) up to a factor for each query, and their sums; in float32 at least."""
    wide = torch.promote_types(query.dtype, torch.float32)
    square = squared_distances(query.to(wide), key.to(wide), width.to(wide))
    if mask is not None:
        square = square.masked_fill(~mask, torch.inf)
    return _or_by_rule(kernel.weigh(square).values, square, empty, mask)


def _or_by_rule(similarity: Tensor, square: Tensor, empty: EmptyRule, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The similarities, by the rule where they are all zero, and their sums; where there is nothing to look at, zeros and a sum of 1."""
    alone = similarity.detach().sum(dim=-1, keepdim=True) == 0
    if bool(alone.any()):
        if mask is not None:
            square = square.masked_fill(~mask, torch.inf)
            alone = alone & mask.any(dim=-1, keepdim=True)
        similarity = torch.where(alone, empty(square.detach()), similarity)
    total = similarity.sum(dim=-1, keepdim=True)
    return similarity, torch.where(total == 0, 1, total)


def _safe_dtype(query: Tensor, key: Tensor, width: Tensor) -> torch.dtype | None:
    """The dtype in which q^T k - ‖k‖²/2 is close to -‖q - k‖²/2, none where only differences will do.

    Terms as large as R², the largest squared distance from the keys' mean, cancel there: R² roundings may be left. So what is given
    in float32 and spreads over more than eleven widths is worked out in float64.
    """
    query, key, width = query.detach(), key.detach(), width.detach()
    centre = key.mean(dim=-2, keepdim=True)
    reach = max(float(((each - centre) / width).square().sum(dim=-1).max()) for each in (query, key))
    given = torch.promote_types(query.dtype, torch.float32)
    allowed = max(CLOSE * torch.finfo(given).eps, 1e-11)
    return next((dtype for dtype in (given, torch.float64) if torch.finfo(dtype).eps * reach <= allowed), None)


def _gaussian_attention(query: Tensor, key: Tensor, value: Tensor, width: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """softmax over the keys of q^T k - ‖k‖²/2, both measured in widths from the keys' mean, which moves no distance."""
    centre = key.detach().mean(dim=-2, keepdim=True)
    q, k = ((each - centre).to(dtype) / width.to(dtype) for each in (query, key))
    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -k.square().sum(dim=-1, keepdim=True) / 2], dim=-1)
    size = max(q.shape[-1], value.shape[-1])  # the fused kernel wants one width for all three
    q, k, v = (pad(each, (0, size - each.shape[-1])).reshape(-1, 1, *each.shape[-2:-1], size) for each in (q, k, value.to(dtype)))
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2]).reshape(-1, 1, query.shape[-2], key.shape[-2])
    pooled = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    return pooled[..., : value.shape[-1]].reshape(*query.shape[:-1], value.shape[-1]).to(value.dtype)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    check_shapes("... n d, ... m d, ... m v", query=query, key=key, value=value)
    if not (key.shape[-2] and key.shape[-1]):
        raise Mistake(f"expected at least one key with a coordinate, came shape {tuple(key.shape)}; give the store a pair")
    check_floating(query, "query")
    check_same_dtype(query, key, value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
