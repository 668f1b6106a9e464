"""Many rows worked off block by block, so that not all that is computed of them stands in memory at once."""

__all__ = ["NUMBERS_PER_BLOCK", "rows_per_block"]

NUMBERS_PER_BLOCK = 2**21  # 8 MB in float32


def rows_per_block(numbers_per_row: int, numbers_per_block: int = NUMBERS_PER_BLOCK) -> int:
    """How many rows to take together where each makes so many numbers; one at least.

    >>> rows_per_block(1000), rows_per_block(10**9)
    (2097, 1)
    """
    return max(1, numbers_per_block // max(1, numbers_per_row))
