"""Class labels: their check and their one-hot form. A label is an integer 0, ..., q - 1."""

import torch
from jaxtyping import Int64, Integer, Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["as_indices", "check_labels", "one_hot"]


def check_labels(labels: Shaped[Tensor, "..."], num_classes: int) -> None:
    """Raise an error for labels that are not integers in 0, ..., num_classes - 1 (a CUDA kernel would abort the process
    instead).
    """
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise UserError(f"expected integer labels, got {labels.dtype}; convert them with labels.long()")
    if labels.numel() == 0 or torch.compiler.is_exporting():  # a program has no values yet
        return
    low, high = (int(bound) for bound in labels.aminmax())
    if low < 0 or high >= num_classes:
        wrong = low if low < 0 else high
        raise UserError(
            f"expected labels from 0 to {num_classes - 1} for {num_classes} classes, got {wrong}; "
            "relabel the data or give the model more classes"
        )


def as_indices(index: Integer[Tensor, "*shape"], name: str = "index") -> Int64[Tensor, "*shape"]:
    """Whole numbers as int64, to look entries up by: torch takes bytes, like booleans, for a mask."""
    if index.dtype == torch.int64:
        return index
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
        raise UserError(
            f"expected {name} of an integer dtype, got {index.dtype}; convert it with .long(), or a mask with "
            ".nonzero()[:, 0]"
        )
    return index.long()


def one_hot(
    labels: Integer[Tensor, "*batch"], num_classes: int, *, dtype: torch.dtype | None = None
) -> Shaped[Tensor, "*batch {num_classes}"]:
    """Label i as the unit vector e_i: one at index i, zero elsewhere, in the default float type unless `dtype` is
    given.

    >>> one_hot(torch.tensor([0, 2]), 3)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])

    Notes: Z4.4.
    """
    check_labels(labels, num_classes)
    indices = torch.arange(num_classes, device=labels.device)
    return (labels.unsqueeze(-1) == indices).to(dtype or torch.get_default_dtype())
