"""What is computed over the seen positions only: softmax, values to be pooled, means.

A mask is boolean, True where something may be seen, and broadcasts to what it masks. Making masks is in masks.py. Where
nothing is seen the answer is zero, and so is every gradient; what stands at masked positions, be it NaN, never
matters.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Integer, Num, Shaped
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.entries import check_floating
from quoin.tensor.masks import causal_mask, sequence_mask

__all__ = ["attention_mask", "check_mask", "masked_mean", "masked_softmax", "masked_softmax_definition", "zero_masked"]


def masked_softmax_definition(
    scores: Float[Tensor, "*query key"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "*query key"]:
    """Softmax over the keys that each query may see: exp(a_i) / sum_{j seen} exp(a_j) for i seen, and 0 for the others.

    Args:
        mask: True where a query may see a key; it broadcasts to the scores.

    Notes: Z11.18.
    """
    check_floating(scores, "scores")
    _check_scores(scores.shape)
    check_mask(mask, scores.shape)
    seen = scores.masked_fill(~mask, -math.inf)
    nothing = scores.new_full((*scores.shape[:-1], 1), -math.inf)  # the largest of no scores
    # Subtracted, so that no exponential overflows.
    largest = torch.cat([seen.detach(), nothing], dim=-1).amax(dim=-1, keepdim=True)
    weights = (scores - largest).masked_fill(~mask, -math.inf).exp()
    return weights / weights.sum(dim=-1, keepdim=True).masked_fill(_empty(mask), 1)


def masked_softmax(
    scores: Float[Tensor, "*query key"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    lengths: Integer[Tensor, "..."] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*query key"]:
    """`masked_softmax_definition` on torch's kernel, seeing what `mask`, `lengths` and `causal` all allow
    (`attention_mask`).

    Hidden scores become -inf before the softmax, so their weights and gradients are exactly 0 in every float type; a
    number such as -10^6 would not do, as half precision has none so large and a query with nothing to see would see all
    of its padding.

    Args:
        mask: True where a query may see a key; it broadcasts to the scores.
        lengths: How many keys are seen, from the first on, for each index of the scores' leading axes.
        causal: Queries are the last positions, and see none after their own.

    >>> masked_softmax(torch.zeros(3, 4), lengths=torch.tensor([1, 4, 0]))
    tensor([[1.0000, 0.0000, 0.0000, 0.0000],
            [0.2500, 0.2500, 0.2500, 0.2500],
            [0.0000, 0.0000, 0.0000, 0.0000]])

    Notes: Z11.18.
    """
    check_floating(scores, "scores")
    mask = attention_mask(scores.shape, mask, lengths=lengths, causal=causal, device=scores.device)
    if mask is None:
        return torch.softmax(scores, dim=-1)
    empty = _empty(mask)
    # Over nothing but -inf the softmax would be NaN, and NaN times zero on the way back; an empty row is a softmax of
    # zeros instead.
    hidden = torch.full_like(empty, -math.inf, dtype=scores.dtype).masked_fill(empty, 0)
    return torch.softmax(torch.where(mask, scores, hidden), dim=-1).masked_fill(empty, 0)


def attention_mask(
    shape: Sequence[int],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    lengths: Integer[Tensor, "..."] | None = None,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "..."] | None:
    """What may be seen in scores of this shape where all that is given allows it, as a mask that broadcasts to them;
    None where nothing is given.

    Args:
        mask: True where a query may see a key; it broadcasts to the shape.
        lengths: How many keys are seen, for each index of the scores' leading axes: (batch,) for all queries of a
            sequence, or (batch, query), each query its own; () for all alike, and for the scores (key,) of one query.
        causal: The queries are the last positions, and see none after theirs.
        device: Of a causal mask; other masks are where their tensors are.

    >>> attention_mask((2, 2, 2), lengths=torch.tensor([1, 2]), causal=True)
    tensor([[[ True, False],
             [ True, False]],
    <BLANKLINE>
            [[ True, False],
             [ True,  True]]])
    """
    _check_scores(shape, causal=causal)
    if mask is not None:
        check_mask(mask, shape)
    if lengths is not None:
        leading = tuple(shape[:-1])[: lengths.ndim]
        if len(leading) < lengths.ndim or any(size not in (1, full) for size, full in zip(lengths.shape, leading)):
            raise UserError(
                f"expected valid lengths for leading axes of the scores {tuple(shape)}, such as shape "
                f"{tuple(shape[:-1][:1])}, "
                f"got {tuple(lengths.shape)}; give one length a sequence, or one a query"
            )
        rest = (1,) * (len(shape) - 1 - lengths.ndim)
        mask = _both(mask, sequence_mask(lengths.reshape((*lengths.shape, *rest)), shape[-1]))
    if causal:
        mask = _both(mask, causal_mask(shape[-2], shape[-1], device=device))
    return mask


def check_mask(mask: Shaped[Tensor, "..."], shape: Sequence[int]) -> None:
    """Raise an error for a mask that is not boolean, or that has not one entry, or one for many, for each entry of this
    shape.
    """
    if mask.dtype != torch.bool:
        raise UserError(
            f"expected a boolean mask, True where something may be seen, got {mask.dtype}; compare it, as in mask != 0"
        )
    fits = mask.ndim <= len(shape) and all(
        size in (1, full) for size, full in zip(reversed(mask.shape), reversed(tuple(shape)))
    )
    if not fits:
        raise UserError(
            f"expected a mask that broadcasts to {tuple(shape)}, got shape {tuple(mask.shape)}; "
            "put axes of size 1 where one entry serves many, as in mask.unsqueeze(-2)"
        )


def zero_masked(x: Num[Tensor, "*#batch key dim"], mask: Bool[Tensor, "..."]) -> Num[Tensor, "*#batch key dim"]:
    """The keys or values with zeros at positions that no query may see, for a weight of 0 times NaN would be NaN.

    Args:
        mask: (..., query, key), or (..., key) or less where one entry serves many.

    Notes: Z11.18.
    """
    if x.ndim < 2:
        raise UserError(
            f"expected keys or values (..., positions, dim), got shape {tuple(x.shape)}; give them both axes"
        )
    if mask.ndim and mask.shape[-1] not in (1, x.shape[-2]):
        raise UserError(
            f"expected a mask over {x.shape[-2]} positions, got shape {tuple(mask.shape)}; give one entry a position"
        )
    seen = mask.any(dim=-2) if mask.ndim > 1 else mask
    return torch.where(seen.unsqueeze(-1), x, 0)


def masked_mean(
    values: Float[Tensor, "*shape"], mask: Bool[Tensor, "*#shape"], *, dim: int | None = None
) -> Float[Tensor, "..."]:
    """The mean over seen entries, along `dim` or over all: sum_{i seen} x_i / #seen, 0 where none is seen.

    A loss or a metric of a padded batch is the masked mean of that of each position, whatever was computed at the
    padding.

    Args:
        mask: True where an entry is seen.
        dim: The axis to average over; all of them unless given.

    >>> masked_mean(torch.tensor([[1.0, 2.0], [6.0, torch.nan]]), sequence_mask(torch.tensor([2, 1]), 2))
    tensor(3.)

    Notes: Z11.18p.
    """
    check_floating(values, "values")
    check_mask(mask, values.shape)
    seen = mask.expand(values.shape)
    kept = values.masked_fill(~seen, 0)
    wide = torch.promote_types(values.dtype, torch.float32)  # half precision counts to 65,504 only
    total, count = kept.sum(dim=dim, dtype=wide), seen.sum(dim=dim)
    return (total / count.clamp(min=1)).to(values.dtype)


def _check_scores(shape: Sequence[int], *, causal: bool = False) -> None:
    if len(shape) < 1 or (causal and len(shape) < 2):
        raise UserError(
            f"expected scores with axes of queries and keys, got shape {tuple(shape)}; give them as (..., queries, "
            "keys)"
        )


def _empty(mask: Tensor) -> Tensor:  # (..., n, m) -> (..., n, 1)
    """Where a query may see nothing."""
    return ~mask.any(dim=-1, keepdim=True)


def _both(mask: Tensor | None, other: Tensor) -> Tensor:
    return other if mask is None else mask & other
