"""The copy task: random symbols, a separator, and the same symbols again, which nothing but memory can predict.

l symbols in each sequence
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["CopySequences", "make_copy_sequences"]


@shown
class CopySequences(NamedTuple):
    """The input and the targets of its last l positions; the separator is the symbol after the last of the alphabet."""

    symbols: Int[Tensor, "rows seq"]  # l symbols, the separator, and the first l - 1 again
    answers: Int[Tensor, "rows seq//2"]


def make_copy_sequences(num_rows: int, length: int, num_symbols: int, *, generator: torch.Generator) -> CopySequences:
    """`num_rows` sequences s_1 ... s_l | s_1 ... s_{l-1} of independent, equally probable symbols: at each position
    from | on, s_i is next.

    Without memory the accuracy is 1 / `num_symbols`.

    Args:
        length: l; a row of inputs has 2 l positions.

    >>> made = make_copy_sequences(1, 3, 10, generator=torch.Generator().manual_seed(0))
    >>> made.symbols, made.answers
    (tensor([[ 4,  9,  3, 10,  4,  9]]), tensor([[4, 9, 3]]))
    """
    if min(num_rows, length, num_symbols) < 1:
        raise UserError(
            f"expected at least one row, position and symbol, got {num_rows}, {length} and {num_symbols}; raise "
            "the least"
        )
    answers = torch.randint(num_symbols, (num_rows, length), generator=generator)
    separator = torch.full((num_rows, 1), num_symbols)
    return CopySequences(torch.cat([answers, separator, answers[:, :-1]], dim=1), answers)
