"""Linear regression: the model, and its least-squares fit in closed form. Fitting it step by step is quoin.train's work.

n examples, d features
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.tensor import check_shapes

__all__ = ["LinearFit", "LinearRegression", "least_squares", "linear_regression_definition"]


def linear_regression_definition(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # (..., d), (d,), () -> (...)
    """w_1 x_1 + ... + w_d x_d + b for each example.

    Notes: Z3.1.
    """
    check_shapes("... d, d, ()", x=x, weight=weight, bias=bias)
    return (x * weight).sum(dim=-1) + bias


class LinearRegression(nn.Module):
    """X w + b: one prediction for each row of the design matrix, starting from w = 0 and b = 0.

    Notes: Z3.1, Z3.2.
    """

    def __init__(self, num_features: int):
        super().__init__()
        self.linear = nn.Linear(num_features, 1)
        # The squared loss is convex in (w, b), so no start is better than another and none needs chance.
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:  # (..., d) -> (...)
        if x.ndim == 0 or x.shape[-1] != self.linear.in_features:
            raise Mistake(
                f"expected examples of {self.linear.in_features} features on the last axis, came shape {tuple(x.shape)}; "
                "reshape the data or build LinearRegression with its number of features"
            )
        return self.linear(x).squeeze(-1)


class LinearFit(NamedTuple):
    """What `least_squares` finds."""

    weight: Tensor  # (d,)
    bias: Tensor  # ()


def least_squares(X: Tensor, y: Tensor) -> LinearFit:  # (n, d), (n,)
    """The (w, b) of least mean squared error, and among several the shortest: [X, 1]^+ y.

    For columns of full rank this is ([X, 1]^T [X, 1])^-1 [X, 1]^T y, found without squaring the condition number.

    Notes: Z3.7.
    """
    check_shapes("n d, n", X=X, y=y)
    if len(y) == 0:
        raise Mistake("expected at least one example to fit, came none; give X and y with rows")
    if not X.is_floating_point() or X.dtype != y.dtype:
        raise Mistake(f"expected X and y of one float type, came {X.dtype} and {y.dtype}; convert both, e.g. with .double()")
    if not (X.isfinite().all() and y.isfinite().all()):
        raise Mistake("expected finite X and y, came NaN or infinity; drop or fill those rows")
    design = torch.cat([X, torch.ones_like(y).unsqueeze(-1)], dim=-1).detach()
    # Only LAPACK's gelsd, on the CPU, gives the shortest solution when the columns depend on one another.
    found = torch.linalg.lstsq(design.cpu(), y.detach().cpu().unsqueeze(-1), driver="gelsd").solution.squeeze(-1).to(X.device)
    return LinearFit(found[:-1], found[-1])
