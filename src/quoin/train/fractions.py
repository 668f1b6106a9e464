"""Evaluation and sampling shared out over the processes: which rows a process takes, some at a time.

Where nothing is random, a process takes the rows of its fraction in batches (`own_batches`). Where noise is drawn, rows
are cut into blocks that are the same for any number of processes, each block has a generator of its own, and a process
takes whole blocks (`own_blocks`): the noise of a row then depends on neither. In one process both are all rows.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.train.processes import fraction_of, gather_rows

__all__ = ["own_batches", "own_blocks", "sample_in_blocks"]


def own_batches(num_rows: int, batch_size: int) -> Iterator[slice]:
    """The rows of this process's fraction, at most `batch_size` at a time.

    >>> list(own_batches(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    own = fraction_of(num_rows)
    for start in range(own.start, own.stop, batch_size):
        yield slice(start, min(start + batch_size, own.stop))


def own_blocks(num_rows: int, block_size: int) -> Iterator[tuple[int, slice]]:
    """This process's blocks, each with its number: blocks of equal size but for one row, at most `block_size`.

    >>> list(own_blocks(5, 2))
    [(0, slice(0, 1, None)), (1, slice(1, 3, None)), (2, slice(3, 5, None))]
    """
    num_blocks = -(-num_rows // block_size)
    for number in range(num_blocks)[fraction_of(num_blocks)]:
        yield number, slice(num_rows * number // num_blocks, num_rows * (number + 1) // num_blocks)


def sample_in_blocks(
    sample: Callable[[int, slice], Shaped[Tensor, "block ..."]],
    num_samples: int,
    block_size: int,
    device: torch.device,
) -> Shaped[Tensor, "{num_samples} ..."]:
    """`num_samples` samples by calls of `sample(number, rows)`, one for each block: the samples of its rows, by noise
    that is a function of its number. Each process samples its blocks, and all have all of them."""
    found = [sample(number, rows) for number, rows in own_blocks(num_samples, block_size)]
    return gather_rows(torch.cat(found) if found else torch.empty(0, device=device))
