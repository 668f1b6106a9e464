"""Token ids: integers 0, ..., vocab_size - 1, and their check."""

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["check_token_ids"]


def check_token_ids(tokens: Shaped[Tensor, "..."], vocab_size: int, *, ndim: int) -> None:
    """Raise an error unless `tokens` are integers from 0 to vocab_size - 1 in a tensor of `ndim` dimensions."""
    if tokens.ndim != ndim or tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        got = f"{str(tokens.dtype).removeprefix('torch.')} of shape {tuple(tokens.shape)}"
        raise UserError(f"expected token ids as a tensor of integers of ndim {ndim}, got {got}; reshape or encode them")
    if tokens.numel() == 0 or torch.compiler.is_exporting():  # a program has no values yet
        return
    ids = tokens.long()  # torch has no minimum of uint16
    low, high = map(int, ids.aminmax())
    if low < 0 or high >= vocab_size:
        at = [int(i) for i in ((ids < 0) | (ids >= vocab_size)).nonzero()[0]]
        wrong = f"{int(ids[tuple(at)])} at position {at[-1]}" + (f" of sequence {at[0]}" if ndim > 1 else "")
        raise UserError(
            f"expected token ids from 0 to {vocab_size - 1}, got {wrong}; use the vocabulary they were encoded with"
        )
