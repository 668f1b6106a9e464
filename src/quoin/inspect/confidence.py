"""How sure a classifier is far away from all data."""

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.tensor import as_floating, softmax

__all__ = ["confidence_along_ray"]


@torch.no_grad()
def confidence_along_ray(
    model: nn.Module, x: Real[Tensor, "..."], scales: Real[Tensor, "scales"]
) -> Float[Tensor, "scales"]:
    """max_i softmax(f(a x))_i for each factor a in `scales`, where f gives logits and x is one example.

    A ReLU network is affine beyond some point of the ray, a u + v: where u has one largest entry the confidence tends
    to one, however foreign the input; where u is zero it stays what it is.

    Notes: D1-14.
    """
    if scales.ndim != 1 or len(scales) == 0:
        raise UserError(
            f"expected a vector of at least one scale, got shape {tuple(scales.shape)}; give e.g. "
            "torch.arange(1.0, 10.0)"
        )
    x = as_floating(x, scales)
    ray = scales.to(x.dtype).reshape(-1, *[1] * x.ndim) * x
    logits = model(ray)
    if logits.ndim != 2 or logits.shape[-1] < 2:
        raise UserError(
            f"expected logits (n, q) of q >= 2 classes from the model, got shape {tuple(logits.shape)}; give a "
            "classifier"
        )
    if not logits.isfinite().all():
        raise UserError("expected finite logits along the ray, got infinity or NaN; take smaller scales or float64")
    return softmax(logits).amax(dim=-1)
