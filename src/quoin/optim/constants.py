"""How curved a cost is, at most and at least: the constants L and μ that decide which learning rates are safe and how
fast descent is.

L bounds how fast the gradient changes, |∇C(a) - ∇C(b)| <= L |a - b|; μ how firmly C curves upwards, ⟨∇C(a) - ∇C(b), a -
b⟩ >= μ |a - b|². For C ∈ C² they are the bounds μ I ⪯ ∇²C ⪯ L I. What follows from them is in bounds.py.   n examples,
d features, p parameters
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.autodiff import gradient
from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.descend import Objective
from quoin.tensor import check_finite, check_floating, check_shapes, symmetric_eigendecomposition

__all__ = ["Constants", "least_squares_constants", "logistic_constants", "observed_constants", "quadratic_constants"]


@shown
class Constants(NamedTuple):
    """Smoothness L and strong convexity μ of a cost: convex if μ >= 0, strongly so if μ > 0, and not convex if μ <
    0."""

    smoothness: float
    strong_convexity: float

    @property
    def condition_number(self) -> float:
        """L / μ: in about that many steps with η = 1/L the distance to the minimiser falls by a factor e; infinite
        where μ is 0."""
        return self.smoothness / self.strong_convexity if self.strong_convexity > 0 else math.inf


def observed_constants(f: Objective, a: Float[Tensor, "n *shape"], b: Float[Tensor, "n *shape"]) -> Constants:
    """The definition over n pairs: max |∇f(a) - ∇f(b)| / |a - b| and min ⟨∇f(a) - ∇f(b), a - b⟩ / |a - b|².

    So a lower bound on L and an upper bound on μ, whatever f is: a search, where the others below compute.

    >>> observed_constants(lambda x: 3 * x.square().sum(), torch.zeros(1, 2), torch.tensor([[3.0, 4.0]])).smoothness
    6.0
    """
    if a.shape != b.shape or a.dim() < 1 or len(a) == 0:
        raise UserError(
            f"expected two stacks of as many points of one shape, got {tuple(a.shape)} and {tuple(b.shape)}; pair "
            "them up"
        )
    ratios, along = [], []
    for left, right in zip(a, b):
        offset, change = left - right, gradient(f, left) - gradient(f, right)
        length = float(offset.norm())
        if length == 0:
            raise UserError("expected pairs of different points, got a pair of equal ones; drop it")
        ratios.append(float(change.norm()) / length)
        along.append(float((change * offset).sum()) / length**2)
    return Constants(max(ratios), min(along))


def quadratic_constants(Q: Float[Tensor, "p p"]) -> Constants:
    """Of C(θ) = ½ θᵀQθ + bᵀθ + c, Q symmetric: L = max |λ_i| and μ = min λ_i over the eigenvalues of Q.

    An eigenvalue that is 0 to rounding counts as 0, so that a singular Q is convex and not strongly so.

    >>> quadratic_constants(torch.tensor([[3.0, 1.0], [1.0, 3.0]]))
    Constants(smoothness=4.0, strong_convexity=2.0)
    """
    check_shapes("p p", Q=Q)
    if Q.numel() == 0:
        raise UserError("expected a matrix with entries, got an empty one; a quadratic needs a variable")
    values = symmetric_eigendecomposition(Q.detach()).values
    largest = float(values.abs().max())
    return Constants(largest, _without_rounding(float(values.min()), largest, Q))


def least_squares_constants(X: Float[Tensor, "n d"], *, l2: float = 0.0) -> Constants:
    """Of C(w) = (1/n) Σ_i ½ (x_i w - y_i)² + (l2/2) |w|²: the squares of X's extreme singular values over n, plus l2.

    The targets do not matter. A bias is a column of ones in X. With fewer examples than features, or dependent columns,
    only l2 is left of μ.

    >>> least_squares_constants(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), l2=0.5)
    Constants(smoothness=2.5, strong_convexity=1.0)
    """
    largest, least = _squared_stretch(X, l2)
    return Constants(largest + l2, least + l2)


def logistic_constants(X: Float[Tensor, "n d"], *, l2: float = 0.0, radius: float = math.inf) -> Constants:
    """Of C(w) = (1/n) Σ_i ln(1 + e^{-y_i x_i w}) + (l2/2) |w|², y_i = ±1: L = σ_max(X)² / 4n + l2 and μ = l2, both best
    possible.

    The Hessian is XᵀDX / n + l2 with D_ii = s(1 - s) at s = sigmoid(x_i w): at most ¼, reached at w = 0, and falling to
    0 as w grows. So without l2 nothing is left of μ on the whole space. Where |w| <= radius is known, D_ii is at least
    s(1 - s) at radius · max |x_i|, and μ is that times σ_min(X)² / n, plus l2: a lower bound.

    >>> logistic_constants(torch.tensor([[1.0]]))
    Constants(smoothness=0.25, strong_convexity=0.0)
    """
    if not radius >= 0:
        raise UserError(f"expected a radius of at least 0, got {radius}; leave it out for the whole space")
    largest, least = _squared_stretch(X, l2)
    max_score = radius * float(X.detach().norm(dim=1).max())
    # s(1 - s) = 1 / (2 + 2 cosh r), written so that e^r cannot overflow; a NaN (∞ · 0) is a row of zeros, on which
    # nothing depends
    flattest = 0.0 if math.isnan(max_score) else math.exp(-max_score) / (1 + math.exp(-max_score)) ** 2
    return Constants(largest / 4 + l2, flattest * least + l2)


def _squared_stretch(X: Tensor, l2: float) -> tuple[float, float]:
    """The extreme eigenvalues of XᵀX / n, from the singular values of X: squaring X first would lose half of the
    digits."""
    check_shapes("n d", X=X)
    check_floating(X, "X")
    check_finite(X, "X")
    if X.numel() == 0:
        raise UserError(
            f"expected at least one example and one feature, got shape {tuple(X.shape)}; give X with rows and columns"
        )
    if not (l2 >= 0 and math.isfinite(l2)):
        raise UserError(f"expected an l2 penalty of at least 0, got {l2}; a negative one has no minimum")
    values = torch.linalg.svdvals(X.detach().double())
    largest = float(values.max())
    least = float(values.min()) if len(X) >= X.shape[1] else 0.0
    return largest**2 / len(X), _without_rounding(least, largest, X) ** 2 / len(X)


def _without_rounding(value: float, largest: float, of: Tensor) -> float:
    """0 where the value is no more than what rounding of the matrix's own type leaves of 0."""
    return 0.0 if abs(value) <= max(of.shape) * torch.finfo(of.dtype).eps * largest else value
