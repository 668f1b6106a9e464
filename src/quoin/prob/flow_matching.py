"""Straight lines from noise to data: the path that flow matching learns a velocity field for.

    x_t = (1 - t) ε + t x,   dx_t/dt = x - ε,   v(x_t, t) = E[x - ε | x_t]

Time runs from noise at 0 to data at 1, as is the custom here, not as in diffusion.py. Many lines cross at a point;
the field goes with their mean, and its flow carries the distribution of ε to that of x.
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.normal import MultivariateNormal
from quoin.tensor import as_floating
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["GaussianFlow", "linear_path", "linear_path_velocity"]


def linear_path(
    noise: Float[Tensor, "batch *shape"] | ArrayLike,
    data: Float[Tensor, "batch *shape"] | ArrayLike,
    t: Float[Tensor, "batch"] | ArrayLike,
) -> Float[Tensor, "batch *shape"]:
    """x_t = (1 - t) ε + t x.

    >>> linear_path(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([0.25]))
    tensor([[0.2500, 0.2500]])

    Notes: D0-T.
    """
    noise = float_tensor(noise, "noise", data, t)
    data = float_tensor(data, "data", noise, t)
    t = float_tensor(t, "t", noise, data)
    if noise.shape != data.shape or t.shape != data.shape[:1]:
        got = f"{tuple(noise.shape)}, {tuple(data.shape)} and {tuple(t.shape)}"
        raise UserError(
            f"expected noise and data of one shape (b, ...) and a time for each example (b,), got {got}; sample as many"
        )
    return torch.lerp(noise, data, t.reshape(-1, *[1] * (data.ndim - 1)))


def linear_path_velocity(
    noise: Real[Tensor, "batch *shape"] | ArrayLike, data: Real[Tensor, "batch *shape"] | ArrayLike
) -> Float[Tensor, "batch *shape"]:
    """x - ε, the same all the way.

    Notes: D0-T.
    """
    noise = number_tensor(noise, "noise", data)
    data = number_tensor(data, "data", noise)
    return as_floating(data) - as_floating(noise)


@shown
class GaussianFlow:
    """The exact velocity field of x ~ N(μ, Σ): with S = t² Σ + (1 - t)² I, v = μ + [t Σ - (1 - t) I] S^-1 (x_t - t μ).

    Its flow takes ε to μ + Σ^(1/2) ε: the oracle of solvers and of learnt fields.

    Notes: D0-T.
    """

    def __init__(self, distribution: MultivariateNormal):
        if distribution.mean.ndim != 1:
            raise UserError(
                f"expected one normal distribution, its mean (d,), got {tuple(distribution.mean.shape)}; give one "
                "without batch axes"
            )
        self.distribution = distribution

    def __call__(self, x: Real[Tensor, "batch d"], t: Real[Tensor, "batch"]) -> Float[Tensor, "batch d"]:
        t = t.reshape(-1, 1, 1).to(self.distribution.covariance)
        eye = torch.eye(len(self.distribution.mean)).to(self.distribution.covariance)
        covariance = t**2 * self.distribution.covariance + (1 - t) ** 2 * eye
        away = (x - t[:, :, 0] * self.distribution.mean).unsqueeze(-1)
        return self.distribution.mean + (
            (t * self.distribution.covariance - (1 - t) * eye) @ torch.linalg.solve(covariance, away)
        ).squeeze(-1)
