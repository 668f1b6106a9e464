"""What queries may see of a store, and nothing else: hidden keys and values are zeros before anything is computed of
them.

A weight of 0 is not enough: 0 times NaN is NaN, and so is the gradient of what it was computed from.

n queries, m keys with values; leading axes are those of the store
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from quoin.tensor import check_mask, check_shapes, sequence_mask, zero_masked

__all__ = ["Shown", "each_query_alone", "hidden_from_some", "seen_by_group", "show", "zero_padding"]


class Shown(NamedTuple):
    """Inputs of an attention with zeros where nothing may be seen, and the mask of all that hides."""

    query: Float[Tensor, "*batch query query_dim"]
    key: Float[Tensor, "*batch key key_dim"]
    value: Float[Tensor, "*batch key value_dim"]
    mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None


def show(
    query: Float[Tensor, "*batch query query_dim"],
    key: Float[Tensor, "*batch key key_dim"],
    value: Float[Tensor, "*batch key value_dim"],
    mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None,
    lengths: Int[Tensor, "*batch"] | None = None,
) -> Shown:
    """Zeros at padding and at keys that no query may see, before any map: the gradients of its weights hang on its
    inputs.

    A mask, (n, m), (b, n, m) or (b, h, n, m), hides keys and values alone. Lengths (b,) cut off what is padding
    altogether: where the keys or values are the queries themselves, these too.
    """
    if mask is None and lengths is None:
        return Shown(query, key, value, None)
    check_shapes("b, b n w", lengths=lengths, query=query if lengths is not None else None)
    if mask is not None:
        heads = mask.shape[1:2] if mask.ndim == 4 else ()
        check_mask(mask, (*query.shape[:-2], *heads, query.shape[-2], key.shape[-2]))
    padding = None if lengths is None else sequence_mask(lengths, key.shape[-2]).unsqueeze(-2)  # (b, 1, m)
    whole = _both(mask, padding)
    seen = whole.any(dim=1) if whole.ndim == 4 else whole
    shown = zero_masked(query, padding) if padding is not None and (query is key or query is value) else query
    keys = shown if key is query else zero_masked(key, seen)
    values = keys if value is key else shown if value is query else zero_masked(value, seen)
    return Shown(shown, keys, values, whole)


def hidden_from_some(mask: Bool[Tensor, "..."] | None, *stores: Float[Tensor, "..."] | None) -> bool:
    """Whether queries see different keys, and there is a number among these keys or values that is not finite.

    Definitions then give each query a store of its own, so that no other query's NaN reaches it.
    """
    if mask is None or mask.ndim < 2 or mask.shape[-2] < 2 or torch.compiler.is_exporting():
        return False  # a program that is exported has no values to look at
    return not all(bool(store.isfinite().all()) for store in stores if store is not None)


def each_query_alone(
    attend: Callable[..., tuple[Tensor, ...]],
    query: Float[Tensor, "*batch query query_dim"],
    store: tuple[Float[Tensor, "*#batch key _dim"], ...],
    *pairs: Shaped[Tensor, "*#batch #query #key"] | None,
) -> list[Float[Tensor, "*batch query _dim"]]:
    """`attend(query, *store, *pairs)` with an axis for the queries before the store, so that each has one of its
    own."""
    queries = query.shape[-2]
    stores = (x.unsqueeze(-3).expand(*x.shape[:-2], queries, *x.shape[-2:]) for x in store)
    rows = (None if x is None else x.unsqueeze(-2) for x in pairs)
    return [x.squeeze(-2) for x in attend(query.unsqueeze(-2), *stores, *rows)]


def seen_by_group(mask: Bool[Tensor, "..."], groups: int) -> Bool[Tensor, "..."]:
    """Which keys a head of keys shows to any of the heads of queries that share it.

    The mask broadcasts to (batch, heads, query, key), and what comes back to (batch, kv_heads, query, key).
    """
    if mask.ndim < 4 or mask.shape[1] in (1, groups):
        return mask
    return mask.unflatten(1, (groups, -1)).any(dim=2)


def zero_padding(
    x: Float[Tensor, "batch seq features"], lengths: Int[Tensor, "batch"] | None
) -> Float[Tensor, "batch seq features"]:
    """The sequences with zeros after the first `lengths` positions of each: padding goes into no norm, no map and no
    gradient."""
    return x if lengths is None else zero_masked(x, sequence_mask(lengths, x.shape[-2]).unsqueeze(-2))


def _both(mask: Tensor | None, padding: Tensor | None) -> Tensor:
    if mask is None or padding is None:
        given = padding if mask is None else mask
        assert given is not None
        return given
    return mask & (padding.unsqueeze(1) if mask.ndim == 4 else padding)
