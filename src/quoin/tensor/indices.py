"""The notes' way of counting beside torch's: theirs starts at 1, ours and torch's at 0."""

from quoin.errors import UserError

__all__ = ["index_set", "zero_based"]


def index_set(n: int) -> range:
    """[n] = {1, ..., n} for a natural number n, of which 0 is the first: [0] is empty.

    >>> list(index_set(3))
    [1, 2, 3]

    Notes: D0-2.
    """
    if n < 0:
        raise UserError(f"expected a natural number 0, 1, 2, ..., got {n}; give the size of the set")
    return range(1, n + 1)


def zero_based(*indices: int) -> tuple[int, ...]:
    """The index in a torch tensor of the entry that the notes write T_{i_1, ..., i_n}: each index less one.

    >>> import torch
    >>> int(torch.tensor([[11, 12], [21, 22]])[zero_based(2, 1)])
    21

    Notes: D0-2.
    """
    if any(index < 1 for index in indices):
        raise UserError(f"expected indices that count from 1, got {indices}; an index 0 is already torch's")
    return tuple(index - 1 for index in indices)
