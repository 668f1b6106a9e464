"""The rank of the Jacobian: how many directions of the input a model still depends on."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError

__all__ = ["jacobian_rank"]


def jacobian_rank(model: nn.Module, x: Float[Tensor, "..."]) -> int:
    """The rank of the Jacobian of `model` at the example `x`, at most the size of the narrowest layer it passed.

    Singular values below max(m, n) eps s_1 count as zero. The rank of a *matrix of activations* shows less: an
    activation after the narrow layer can raise it.

    Notes: D1.6-7.
    """
    if not x.is_floating_point():
        raise UserError(f"expected an example of a float type, got {x.dtype}; convert it with .double()")
    jacobian = torch.func.jacrev(lambda example: model(example.unsqueeze(0)).reshape(-1))(x).reshape(-1, x.numel())
    if not jacobian.isfinite().all():
        raise UserError("expected a finite Jacobian, got infinity or NaN; check the input and the weights first")
    return int(torch.linalg.matrix_rank(jacobian))
