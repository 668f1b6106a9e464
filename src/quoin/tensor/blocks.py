"""Many rows worked off block by block, so that not all that is computed of them stands in memory at once."""

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["NUMBERS_PER_BLOCK", "in_blocks", "rows_per_block"]

NUMBERS_PER_BLOCK = 2**21  # 8 MB in float32


def rows_per_block(numbers_per_row: int, numbers_per_block: int = NUMBERS_PER_BLOCK) -> int:
    """How many rows to take together where each makes so many numbers; one at least.

    >>> rows_per_block(1000), rows_per_block(10**9)
    (2097, 1)
    """
    return max(1, numbers_per_block // max(1, numbers_per_row))


def in_blocks(x: Shaped[Tensor, "..."], rows: int, *, dim: int = 0) -> tuple[Shaped[Tensor, "..."], ...]:
    """`x` in pieces of so many rows along `dim`; in a program that is exported in one, or their number would be a
    constant of it, and with it that of the rows."""
    return (x,) if torch.compiler.is_exporting() else x.split(rows, dim)
