"""Linear regression: the model, and the distribution of its targets under Gaussian noise. The closed-form fits are in
closed_form.py.

d features
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = ["LinearGaussian", "LinearRegression", "linear_regression_definition"]


def linear_regression_definition(
    x: Real[Tensor, "*batch features"], weight: Float[Tensor, "features"], bias: Float[Tensor, ""]
) -> Float[Tensor, "*batch"]:
    """w_1 x_1 + ... + w_d x_d + b for each example.

    Notes: Z3.1.
    """
    check_shapes("... d, d, ()", x=x, weight=weight, bias=bias)
    return (as_floating(x, weight) * weight).sum(dim=-1) + bias


def zero_init_linear(in_features: int, out_features: int) -> nn.Linear:
    """A linear layer that starts at zero: under a loss convex in (W, b) no start is better than another."""
    linear = nn.Linear(in_features, out_features)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


class LinearRegression(nn.Module):
    """X w + b: one prediction for each row of the design matrix, starting from w = 0 and b = 0.

    Notes: Z3.1, Z3.2, D1.3-12.
    """

    def __init__(self, num_features: int):
        super().__init__()
        if num_features < 1:
            raise UserError(f"expected at least one feature, got {num_features}; give the number of columns")
        self.linear = zero_init_linear(num_features, 1)

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        if x.ndim == 0 or x.shape[-1] != self.linear.in_features:
            raise UserError(
                f"expected examples of {self.linear.in_features} features on the last axis, got shape "
                f"{tuple(x.shape)}; "
                "reshape the data or build LinearRegression with its number of features"
            )
        return self.linear(x).squeeze(-1)


class LinearGaussian(LinearRegression):
    """A distribution of y for each x: p(y | x) = N(y; w^T x + b, scale^2), a density, so that its values may exceed
    one.

    A `quoin.prob.ConditionalModel`; for examples sampled independently, log p(y | X) is the sum of `log_prob`.

    Notes: Z3.11, Z3.12.
    """

    def __init__(self, num_features: int, *, scale: float):
        super().__init__(num_features)
        if not (scale > 0 and math.isfinite(scale)):
            raise UserError(f"expected a positive, finite scale (standard deviation), got {scale}; give e.g. 1.0")
        self.scale = float(scale)

    def log_prob(self, y: Real[Tensor, "*batch"], x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        """-log(2 pi scale^2) / 2 - (y - w^T x - b)^2 / (2 scale^2)."""
        check_shapes("..., ... d", y=y, x=x)
        return -((y - self(x)) / self.scale).square() / 2 - math.log(2 * math.pi) / 2 - math.log(self.scale)

    @torch.no_grad()
    def sample(self, x: Float[Tensor, "*batch features"], *, generator: torch.Generator) -> Float[Tensor, "*batch"]:
        """w^T x + b + noise, the noise sampled from N(0, scale^2)."""
        mean = self(x)
        return mean + self.scale * torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
