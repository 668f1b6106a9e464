"""What every attention asks of its arguments, said in the caller's words before a kernel says it in its own.

b sequences, h query heads, g key and value heads, n queries, m keys, d width, v value width
"""

import torch
from torch import Size, Tensor

from quoin.errors import Mistake
from quoin.tensor import check_mask, check_shapes

__all__ = ["beside_heads", "check_attention", "check_rows", "check_sequences", "check_sizes"]


def check_attention(query: Tensor, key: Tensor, value: Tensor | None, mask: Tensor | None = None, *, causal: bool = False) -> None:
    """Hold (b, h, n, d), (b, g, m, d) and (b, g, m, v) against each other, and the mask against (b, h, n, m)."""
    if not _fit(query.shape, key.shape, key.shape if value is None else value.shape):  # a glance first: the check takes ten times as long
        check_shapes("b h n d, b g m d, b g m v", query=query, key=key, value=value)
    (batch, heads, queries, _), (_, groups, keys, _) = query.shape, key.shape
    if groups == 0 or heads % groups:
        raise Mistake(f"expected query heads that are a multiple of the {groups} key heads, came {heads}; share the heads out evenly")
    if causal and queries != keys:
        raise Mistake(
            f"expected as many keys as queries where attention is causal, came {keys} keys for {queries} queries; "
            "cross attention sees all keys: leave causal out, or give a mask"
        )
    if mask is not None:
        check_mask(mask, (batch, heads, queries, keys))


def check_sizes(sizes: dict[str, int]) -> None:
    """Every size is a whole number of at least one."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise Mistake(f"expected {name} to be a positive whole number, came {size!r}; give e.g. {name}=1")


def check_sequences(name: str, x: Tensor, width: int, *, batched: bool = True) -> None:
    """Sequences of vectors of this width, (batch, positions, width), or one sequence alone."""
    if x.ndim != 2 + batched or x.shape[-1] != width:
        wanted = f"({'batch, ' if batched else ''}positions, {width})"
        raise Mistake(f"expected {name} {wanted}, came shape {tuple(x.shape)}; give it that width and number of axes")


def check_rows(rows: Tensor, batch: int) -> None:
    """Numbers of sequences of a batch, each counted from 0."""
    if rows.ndim != 1 or rows.dtype not in (torch.int64, torch.int32):  # torch takes bytes for a mask
        came = f"{rows.dtype} of shape {tuple(rows.shape)}"
        raise Mistake(f"expected the numbers of sequences as integers (r,), came {came}; give e.g. torch.tensor([0, 0, 2])")
    if rows.is_cpu and len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= batch):
        raise Mistake(f"expected sequences from 0 to {batch - 1}, came {rows.tolist()}; the state holds {batch}")


def beside_heads(mask: Tensor | None) -> Tensor | None:  # (n, m), (b, n, m) or (b, h, n, m)
    """The mask with an axis for the heads, which all share a mask of three axes."""
    return mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask


def _fit(query: Size, key: Size, value: Size) -> bool:
    if not len(query) == len(key) == len(value) == 4:
        return False
    return query[0] == key[0] == value[0] and query[3] == key[3] and key[1] == value[1] and key[2] == value[2]
