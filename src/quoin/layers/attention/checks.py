"""What every attention requires of its arguments, with errors in the caller's words before a kernel fails in its
own.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Size, Tensor

from quoin.errors import UserError
from quoin.tensor import check_mask, check_shapes

__all__ = ["beside_heads", "check_attention", "check_batch_indices", "check_sequences", "check_sizes"]


def check_attention(
    query: Float[Tensor, "batch heads query head_dim"],
    key: Float[Tensor, "batch kv_heads key head_dim"],
    value: Float[Tensor, "batch kv_heads key value_dim"] | None,
    mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
    *,
    causal: bool = False,
) -> None:
    """Hold queries, keys and values against each other, and the mask against (batch, heads, queries, keys)."""
    # a glance first: the check takes ten times as long
    if not _fit(query.shape, key.shape, key.shape if value is None else value.shape):
        check_shapes("b h n d, b g m d, b g m v", query=query, key=key, value=value)
    (batch_size, num_heads, queries, _), (_, groups, keys, _) = query.shape, key.shape
    if groups == 0 or num_heads % groups:
        raise UserError(
            f"expected num_heads that are a multiple of num_kv_heads {groups}, got {num_heads}; choose a multiple"
        )
    if causal and queries != keys:
        raise UserError(
            f"expected as many keys as queries where attention is causal, got {keys} keys for {queries} queries; "
            "cross attention sees all keys: leave causal out, or give a mask"
        )
    if mask is not None:
        check_mask(mask, (batch_size, num_heads, queries, keys))


def check_sizes(sizes: dict[str, int]) -> None:
    """Every size is a whole number of at least one."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UserError(f"expected {name} to be a positive whole number, got {size!r}; give e.g. {name}=1")


def check_sequences(name: str, x: Float[Tensor, "*batch seq embed"], embed_dim: int, *, batched: bool = True) -> None:
    """Sequences of vectors of this embed_dim, (batch, positions, embed_dim), or one sequence alone."""
    if x.ndim != 2 + batched or x.shape[-1] != embed_dim:
        wanted = f"({'batch, ' if batched else ''}positions, {embed_dim})"
        raise UserError(f"expected {name} {wanted}, got shape {tuple(x.shape)}; give it that shape")


def check_batch_indices(indices: Int[Tensor, "selected"], batch_size: int) -> None:
    """Numbers of sequences of a batch, each counted from 0."""
    if indices.ndim != 1 or indices.dtype not in (torch.int64, torch.int32):  # torch takes bytes for a mask
        got = f"{indices.dtype} of shape {tuple(indices.shape)}"
        raise UserError(
            f"expected the numbers of sequences as integers (r,), got {got}; give e.g. torch.tensor([0, 0, 2])"
        )
    if indices.is_cpu and indices.shape[0] and (int(indices.min()) < 0 or int(indices.max()) >= batch_size):
        raise UserError(
            f"expected sequences from 0 to {batch_size - 1}, got {indices.tolist()}; the cache holds {batch_size}"
        )


def beside_heads(mask: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """The mask with an axis for the heads, which all share a mask of three axes."""
    return mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask


def _fit(query: Size, key: Size, value: Size) -> bool:
    if not len(query) == len(key) == len(value) == 4:
        return False
    return query[0] == key[0] == value[0] and query[3] == key[3] and key[1] == value[1] and key[2] == value[2]
