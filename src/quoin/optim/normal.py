"""The normal equations of least squares, (X^T S X + l2 I) w = X^T S y, solved without a matrix where that is quicker.

n examples, d features, S the diagonal of the examples' weights, which sum to one. Centre X and y first where there is a bias.
"""

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.optim.products import gram, on_one_pool, times, transposed_times
from quoin.tensor import check_shapes

__all__ = ["conjugate_gradients", "solve_normal"]

FEW_FEATURES = 128  # up to here X^T X costs less than a few products with X
FEW_PRODUCTS = 24  # X^T X costs about as much as thirty rounds of conjugate gradients, and takes no luck
FIRST_LOOK = 3  # steps of conjugate gradients that tell whether the others are worth taking
ROUNDINGS = 64  # of the data's type: a right side met as nearly as this is met


def conjugate_gradients(product, right: Tensor, *, tolerance: float, max_steps: int) -> Tensor | None:  # (d,) -> (d,)
    """The shortest solution of A x = right for a symmetric A >= 0 known by `product(x) = A x`; None if `max_steps` will not reach it.

    It has met the right side when |A x - right| <= tolerance |right|. Directions are conjugate, p_i^T A p_j = 0, so d steps are
    enough but for rounding, and as many as A has distinct eigenvalues if they are fewer. It gives up early where the first
    steps, going on as they did, would not get there.

    >>> conjugate_gradients(lambda x: 4 * x, torch.tensor([8.0, 4.0]), tolerance=1e-6, max_steps=2)
    tensor([2., 1.])
    """
    x, residual = torch.zeros_like(right), right.clone()
    direction, size = residual.clone(), residual @ residual
    goal, first = tolerance**2 * size, size
    for taken in range(max_steps):
        if size <= goal:
            return x
        if taken == FIRST_LOOK and size > first * tolerance ** (2 * FIRST_LOOK / max_steps):
            return None
        moved = product(direction)
        step = size / (direction @ moved)
        x += step * direction
        residual -= step * moved
        size, last = residual @ residual, size
        direction = residual + (size / last) * direction
    return x if size <= goal else None


@on_one_pool
def solve_normal(X: Tensor, y: Tensor, *, l2: float = 0.0, weights: Tensor | None = None) -> Tensor:  # (n, d), (n,) -> (d,)
    """argmin_w sum_i s_i (x_i w - y_i)^2 + l2 |w|^2, from (X^T S X + l2 I) w = X^T S y in float64; s_i = 1/n if none are given.

    Conjugate gradients find it in a few products with X where the columns are much alike in size and little correlated; else a
    Cholesky factor of the matrix does. If columns depend on
    one another to rounding, which squares their condition number, it raises a Mistake: `quoin.models.least_squares` squares nothing.

    >>> x, y = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2.0, 4.0, 6.0])
    >>> solve_normal(x, y)
    tensor([2.], dtype=torch.float64)

    Notes: Z3.7.
    """
    check_shapes("n d, n", X=X, y=y)
    if len(y) == 0 or X.shape[1] == 0:
        raise Mistake(f"expected at least one example and one feature, came shape {tuple(X.shape)}; give X and y with rows")
    if not X.is_floating_point() or X.dtype != y.dtype:
        raise Mistake(f"expected X and y of one float type, came {X.dtype} and {y.dtype}; convert both, e.g. with .double()")
    if not l2 >= 0:
        raise Mistake(f"expected an l2 penalty of at least 0, came {l2}; a negative one has no minimum")
    share = X.new_full((len(y),), 1 / len(y)) if weights is None else weights

    def back(values: Tensor) -> Tensor:  # X^T S values
        return transposed_times(X, share * values).double()

    def product(w: Tensor) -> Tensor:
        return back(times(X, w.to(X.dtype))) + l2 * w

    right = back(y)
    if not right.isfinite().all():
        raise Mistake("expected finite X and y, came NaN or infinity, or numbers whose squares overflow; drop, fill or scale them")
    def missing(w: Tensor) -> Tensor:
        """What the equations lack at w, from the data themselves: solved for once more, it undoes most of the rounding."""
        return back(y - times(X, w.to(X.dtype))) - l2 * w

    if X.shape[1] > FEW_FEATURES:
        near = ROUNDINGS * torch.finfo(X.dtype).eps
        met = conjugate_gradients(product, right, tolerance=near, max_steps=FEW_PRODUCTS)
        more = None if met is None else conjugate_gradients(product, missing(met), tolerance=near**0.5, max_steps=FEW_PRODUCTS)
        if met is not None and more is not None:
            return met + more
    matrix = gram(X, share).double()
    matrix.diagonal().add_(l2)
    factor = _factor(matrix, X.dtype)
    w = torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1)
    return w + torch.cholesky_solve(missing(w).unsqueeze(-1), factor).squeeze(-1)


def _factor(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """The Cholesky factor; a Mistake where a column is, to the rounding of the data's type, a sum of those before it."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    # A pivot over its diagonal entry is the share of a column that the columns before it do not explain.
    unexplained = factor.diagonal().square() / matrix.diagonal()
    if int(failed) or not (unexplained > len(matrix) * ROUNDINGS * torch.finfo(dtype).eps).all():
        raise Mistake(
            "expected columns that do not depend on one another, came dependent ones (to rounding); "
            "drop them, give l2 > 0, or take quoin.models.least_squares"
        )
    return factor
