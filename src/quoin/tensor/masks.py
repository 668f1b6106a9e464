"""Which positions may be seen: True is seen, False is hidden. Masks combine with `&`.   n queries, m positions"""

import torch
from torch import Tensor

from quoin.errors import Mistake

__all__ = ["causal_mask", "valid_mask"]


def causal_mask(num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None) -> Tensor:  # (n, m)
    """Query i sees key j when j <= i; where there are more keys than queries, the queries are the last n of the m positions.

    >>> causal_mask(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    num_keys = num_queries if num_keys is None else num_keys
    if not 0 <= num_queries <= num_keys:
        raise Mistake(f"expected at least as many keys as queries, came {num_keys} for {num_queries}; each query needs itself to see")
    own = torch.arange(num_keys - num_queries, num_keys, device=device)
    return torch.arange(num_keys, device=device) <= own.unsqueeze(-1)


def valid_mask(valid_lengths: Tensor, num_positions: int) -> Tensor:  # (...) -> (..., m)
    """Position j of a sequence of valid length l is seen when j < l: the rest is padding.

    >>> valid_mask(torch.tensor([1, 3]), 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    if valid_lengths.is_floating_point() or valid_lengths.is_complex() or valid_lengths.dtype == torch.bool:
        raise Mistake(f"expected integer valid lengths, came {valid_lengths.dtype}; convert them with valid_lengths.long()")
    if valid_lengths.numel() and not torch.compiler.is_compiling():
        low, high = (int(bound) for bound in valid_lengths.aminmax())
        if low < 0 or high > num_positions:
            wrong = low if low < 0 else high
            raise Mistake(f"expected valid lengths from 0 to {num_positions}, came {wrong}; a length counts real positions only")
    return torch.arange(num_positions, device=valid_lengths.device) < valid_lengths.unsqueeze(-1)
