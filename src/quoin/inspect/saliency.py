"""Saliency: the gradient of a score with respect to the image, and two ways to make it easier to read.

s_k is the score of class k
"""

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.tensor import as_floating
from quoin.tensor.eval_mode import eval_mode

__all__ = ["input_gradient", "input_x_gradient", "saliency", "smoothgrad"]


@torch.enable_grad()
def input_gradient(
    model: nn.Module, x: Float[Tensor, "batch *shape"], classes: Int[Tensor, "batch"] | None = None
) -> Float[Tensor, "batch *shape"]:
    """d s_k(x) / dx, for each example the gradient of the score of its class k; of its highest score where no classes
    are given.

    A model that puts out one number for each example is its own score.

    >>> input_gradient(nn.Linear(2, 1, bias=False).requires_grad_(False), torch.ones(5, 2)).shape
    torch.Size([5, 2])
    """
    if x.ndim < 2 or len(x) == 0 or not x.is_floating_point():
        raise UserError(
            f"expected a batch (n, ...) of a float type, got {x.dtype} {tuple(x.shape)}; add an axis or convert it"
        )
    x = x.detach().requires_grad_()
    with eval_mode(model):
        scores = model(x)
    if scores.shape[:1] != x.shape[:1] or scores.ndim > 2:
        raise UserError(
            f"expected scores (n, q) or (n,) of the {len(x)} examples, got {tuple(scores.shape)}; give a classifier"
        )
    scores = scores.reshape(len(x), -1)
    chosen = scores.detach().argmax(dim=1) if classes is None else classes.to(scores.device)
    if (
        chosen.shape != (len(x),)
        or chosen.is_floating_point()
        or not ((chosen >= 0) & (chosen < scores.shape[1])).all()
    ):
        raise UserError(
            f"expected {len(x)} classes from 0 to {scores.shape[1] - 1}, got {chosen.tolist()}; give one for each "
            "example"
        )
    # At rest the examples do not see each other, so the gradient of the sum is each one's own.
    return torch.autograd.grad(scores.gather(1, chosen[:, None]).sum(), x)[0]


def input_x_gradient(
    model: nn.Module, x: Float[Tensor, "batch *shape"], classes: Int[Tensor, "batch"] | None = None
) -> Float[Tensor, "batch *shape"]:
    """x_i d s_k(x) / dx_i: what each pixel gives to the score of its class.

    For a ReLU network without biases the terms add up to the score itself, s_k(x) = x . ds_k/dx (Euler).

    Args:
        classes: k of each example; that of its highest score unless given.
    """
    return x * input_gradient(model, x, classes)


def smoothgrad(
    model: nn.Module,
    x: Float[Tensor, "batch *shape"],
    classes: Int[Tensor, "batch"] | None = None,
    *,
    noise: float,
    num_samples: int = 25,
    generator: torch.Generator,
) -> Float[Tensor, "batch *shape"]:
    """The mean over z ~ N(0, noise^2 I) of d s_k(x + z) / dx, which leaves out the details of a single point
    (SmoothGrad).

    Args:
        classes: k of each example; that of the highest score at `x` itself unless given.
        noise: The standard deviation of z, in the units of `x`.
        num_samples: How many z the mean is taken over.
    """
    if num_samples < 1 or noise < 0:
        raise UserError(
            f"expected noise of at least 0 and at least one sample, got {noise} and {num_samples}; raise them"
        )
    if classes is None:
        with torch.no_grad(), eval_mode(model):
            classes = model(x).reshape(len(x), -1).argmax(dim=1)
    total = torch.zeros_like(x)
    for _ in range(num_samples):
        z = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(x.device)
        total += input_gradient(model, x + noise * z, classes)
    return total / num_samples


def saliency(gradient: Real[Tensor, "batch channels height width"]) -> Float[Tensor, "batch height width"]:
    """max_c |g_chw| / max_chw |g_chw|: one number from 0 to 1 for each pixel of an image; a gradient of zero stays
    zero."""
    if gradient.ndim != 4:
        raise UserError(f"expected gradients (n, c, h, w) of images, got shape {tuple(gradient.shape)}; reshape them")
    size = as_floating(gradient).abs().amax(dim=1)
    largest = size.amax(dim=(1, 2), keepdim=True)
    return size / torch.where(largest == 0, 1.0, largest)
