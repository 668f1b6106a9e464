"""A descent kept whole, for study: every point an update rule goes through, the value there and how steep it was.

`gradient` replaces ∇f by another gradient, such as that of a minibatch (stochastic.py). Training, which keeps no path,
is quoin.train's work; least loss without caring about the way is `minimize_lbfgs`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.autodiff import vjp
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.optim.rules import State, UpdateRule
from quoin.tensor import as_floating

__all__ = ["Objective", "Trajectory", "argmin", "descend"]

Objective = Callable[[Tensor], Tensor]  # from a point of any shape to one number


@shown
class Trajectory(NamedTuple):
    """x_0, ..., x_T with C(x_t) and the size of the gradient followed from there."""

    points: Float[Tensor, "points *shape"]
    values: Float[Tensor, "points"]
    gradient_norms: Float[Tensor, "points"]


def argmin(f: Objective, points: Real[Tensor, "n *shape"], *, tol: float = 0.0) -> Real[Tensor, "k *shape"]:
    """argmin C = {θ : C(θ) <= C(θ') for all θ'} among the points given, all of them: a set, of one point or of many.

    `tol` admits values that much above the least, where rounding separates what is equal.

    >>> argmin(lambda x: x**2, torch.tensor([-1.0, 2.0, 1.0]))
    tensor([-1.,  1.])

    Notes: D1.5-1.
    """
    if points.ndim == 0 or len(points) == 0:
        raise UserError(
            f"expected at least one point along the first axis, got shape {tuple(points.shape)}; stack the candidates"
        )
    with torch.no_grad():
        values = torch.stack([_number(f, point) for point in as_floating(points)])
    if values.isnan().any():
        index = int(values.isnan().nonzero()[0])
        raise UserError(
            f"expected values that can be compared, got NaN at point {index}, {format_value(points[index].tolist())}; "
            "leave it out"
        )
    return points[values <= values.min() + tol]


def descend(
    f: Objective,
    x0: Float[Tensor, "..."],
    rule: UpdateRule[State],
    num_steps: int,
    *,
    gradient: Callable[[Tensor], Tensor] | None = None,
    domain: Callable[[Tensor], Tensor | bool] | None = None,
) -> Trajectory:
    """x_{t+1}, state_{t+1} = rule.step(x_t, ∇f(x_t), state_t) from x_0, for t < `num_steps`.

    Args:
        gradient: ∇f at a point, such as a `MinibatchGradient`; by autograd unless given.
        domain: Whether f is defined at a point; a start outside, and a step out of it, raise an error.

    >>> from quoin.optim import GradientDescent
    >>> descend(lambda x: x**2, torch.tensor(1.0), GradientDescent(0.25), 3).points
    tensor([1.0000, 0.5000, 0.2500, 0.1250])

    Notes: D1.5-4, Z12.11.
    """
    if not isinstance(x0, Tensor) or not x0.is_floating_point():
        got = str(x0.dtype) if isinstance(x0, Tensor) else format_value(x0)
        raise UserError(f"expected a float tensor to start from, got {got}; give e.g. torch.tensor([1.0, 2.0])")
    if not isinstance(num_steps, int) or num_steps < 0:
        raise UserError(f"expected a number of steps of 0 or more, got {format_value(num_steps)}; give e.g. 100")
    x, state = x0.detach().clone(), rule.init(x0.detach())
    points, values, norms = [], [], []
    for t in range(num_steps + 1):
        if not x.isfinite().all() or (domain is not None and not bool(domain(x))):
            raise UserError(_outside(x, t))
        value, g = _evaluated(f, x, gradient)
        if not value.isfinite() or not g.isfinite().all():
            what = "value" if not value.isfinite() else "gradient"
            raise UserError(_not_finite(what, x, t))
        points.append(x)
        values.append(value)
        norms.append(torch.linalg.vector_norm(g))
        if t < num_steps:
            x, state = rule.step(x, g, state)
    return Trajectory(torch.stack(points), torch.stack(values), torch.stack(norms))


def _evaluated(f: Objective, x: Tensor, gradient: Callable[[Tensor], Tensor] | None) -> tuple[Tensor, Tensor]:
    """The value at x, and the gradient to follow from there."""
    if gradient is None:
        return vjp(lambda x: _number(f, x), x)
    with torch.no_grad():
        value = _number(f, x)
    g = gradient(x).detach()
    if g.shape != x.shape:
        raise UserError(
            f"expected a gradient of the shape of the point, {tuple(x.shape)}, got {tuple(g.shape)}; give one such"
        )
    return value, g


def _number(f: Objective, x: Tensor) -> Tensor:
    value = f(x)
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else format_value(value)
        raise UserError(f"expected an objective that gives one number as a tensor, got {got}; sum or average it")
    return value.reshape(())


def _outside(x: Tensor, step: int) -> str:
    if step == 0:
        return (
            f"expected a start inside the domain, got {format_value(x.tolist())}; start where the objective is defined"
        )
    return (
        f"expected step {step} to stay inside the domain, got {format_value(x.tolist())}; take a smaller learning rate"
    )


def _not_finite(what: str, x: Tensor, step: int) -> str:
    if step == 0:
        got = f"got one that is not at {format_value(x.tolist())}"
        return f"expected a finite {what} at the start, {got}; start where the objective is defined"
    return (
        f"expected a finite {what} after step {step}, got one that is not at {format_value(x.tolist())}; take a "
        "smaller learning rate"
    )
