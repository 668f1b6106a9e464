"""Which positions may be seen: True is seen, False is hidden. Masks combine with `&`."""

import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from quoin.errors import UserError

__all__ = ["causal_mask", "sequence_mask"]


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "query key"]:
    """Query i sees key j when j <= i; where there are more keys than queries, the queries are the last positions.

    Args:
        num_keys: As many as queries unless given.

    >>> causal_mask(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    num_keys = num_queries if num_keys is None else num_keys
    if not 0 <= num_queries <= num_keys:
        raise UserError(
            f"expected at least as many keys as queries, got {num_keys} for {num_queries}; each query needs itself "
            "to see"
        )
    own = torch.arange(num_keys - num_queries, num_keys, device=device)
    return torch.arange(num_keys, device=device) <= own.unsqueeze(-1)


def sequence_mask(lengths: Integer[Tensor, "*batch"], max_length: int) -> Bool[Tensor, "*batch {max_length}"]:
    """Position j of a sequence of valid length l is seen when j < l: the rest is padding.

    >>> sequence_mask(torch.tensor([1, 3]), 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise UserError(f"expected integer valid lengths, got {lengths.dtype}; convert them with lengths.long()")
    if lengths.numel() and not torch.compiler.is_compiling():
        low, high = (int(bound) for bound in lengths.aminmax())
        if low < 0 or high > max_length:
            wrong = low if low < 0 else high
            raise UserError(
                f"expected valid lengths from 0 to {max_length}, got {wrong}; a length counts real positions only"
            )
    return torch.arange(max_length, device=lengths.device) < lengths.unsqueeze(-1)
