"""A descent kept whole, for study: every point an update rule goes through, the value there and how steep it was.

`slope` puts another gradient in the place of ∇f, such as that of a minibatch (stochastic.py). Training, which keeps no path, is
quoin.train's work; least loss without caring about the way is `fit`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.autodiff import vjp
from quoin.errors import Mistake, shown
from quoin.optim.rules import State, UpdateRule
from quoin.tensor import as_floating

__all__ = ["Objective", "Path", "argmin", "descend"]

Objective = Callable[[Tensor], Tensor]  # from a point of any shape to one number


class Path(NamedTuple):
    """x_0, ..., x_T with C(x_t) and the size of the gradient followed from there."""

    points: Tensor  # (T + 1, ...)
    values: Tensor  # (T + 1,)
    gradient_norms: Tensor  # (T + 1,)


def argmin(f: Objective, points: Tensor, *, tolerance: float = 0.0) -> Tensor:  # (n, ...) -> (k, ...)
    """argmin C = {θ : C(θ) <= C(θ') for all θ'} among the points given, all of them: a set, of one point or of many.

    `tolerance` admits values that much above the least, where rounding parts what is equal.

    >>> argmin(lambda x: x**2, torch.tensor([-1.0, 2.0, 1.0]))
    tensor([-1.,  1.])

    Notes: D1.5-1.
    """
    if points.ndim == 0 or len(points) == 0:
        raise Mistake(f"expected at least one point along the first axis, came shape {tuple(points.shape)}; stack the candidates")
    with torch.no_grad():
        values = torch.stack([_number(f, point) for point in as_floating(points)])
    if values.isnan().any():
        place = int(values.isnan().nonzero()[0])
        raise Mistake(f"expected values that can be compared, came NaN at point {place}, {shown(points[place].tolist())}; leave it out")
    return points[values <= values.min() + tolerance]


def descend(
    f: Objective,
    x0: Tensor,
    rule: UpdateRule[State],
    steps: int,
    *,
    slope: Callable[[Tensor], Tensor] | None = None,
    domain: Callable[[Tensor], Tensor | bool] | None = None,
) -> Path:
    """x_{t+1}, state_{t+1} = rule.step(x_t, ∇f(x_t), state_t) from x_0, for t < `steps`.

    `domain` says of a point whether f is defined there; a start outside it, and a step out of it, are refused.

    >>> from quoin.optim import GradientDescent
    >>> descend(lambda x: x**2, torch.tensor(1.0), GradientDescent(0.25), 3).points
    tensor([1.0000, 0.5000, 0.2500, 0.1250])

    Notes: D1.5-4, Z12.11.
    """
    if not isinstance(x0, Tensor) or not x0.is_floating_point():
        came = str(x0.dtype) if isinstance(x0, Tensor) else shown(x0)
        raise Mistake(f"expected a float tensor to start from, came {came}; give e.g. torch.tensor([1.0, 2.0])")
    if not isinstance(steps, int) or steps < 0:
        raise Mistake(f"expected a number of steps of 0 or more, came {shown(steps)}; give e.g. 100")
    x, state = x0.detach().clone(), rule.start(x0.detach())
    points, values, norms = [], [], []
    for t in range(steps + 1):
        if not x.isfinite().all() or (domain is not None and not bool(domain(x))):
            raise Mistake(_outside(x, t))
        value, gradient = _looked(f, x, slope)
        if not value.isfinite() or not gradient.isfinite().all():
            what = "value" if not value.isfinite() else "gradient"
            raise Mistake(_not_finite(what, x, t))
        points.append(x)
        values.append(value)
        norms.append(torch.linalg.vector_norm(gradient))
        if t < steps:
            x, state = rule.step(x, gradient, state)
    return Path(torch.stack(points), torch.stack(values), torch.stack(norms))


def _looked(f: Objective, x: Tensor, slope: Callable[[Tensor], Tensor] | None) -> tuple[Tensor, Tensor]:
    """The value at x, and the gradient to follow from there."""
    if slope is None:
        return vjp(lambda x: _number(f, x), x)
    with torch.no_grad():
        value = _number(f, x)
    gradient = slope(x).detach()
    if gradient.shape != x.shape:
        raise Mistake(f"expected a slope of the shape of the point, {tuple(x.shape)}, came {tuple(gradient.shape)}; give one such")
    return value, gradient


def _number(f: Objective, x: Tensor) -> Tensor:
    value = f(x)
    if not isinstance(value, Tensor) or value.numel() != 1:
        came = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else shown(value)
        raise Mistake(f"expected an objective that gives one number as a tensor, came {came}; sum or average it")
    return value.reshape(())


def _outside(x: Tensor, step: int) -> str:
    if step == 0:
        return f"expected a start inside the domain, came {shown(x.tolist())}; start where the objective is defined"
    return f"expected step {step} to stay inside the domain, came {shown(x.tolist())}; take a smaller learning rate"


def _not_finite(what: str, x: Tensor, step: int) -> str:
    if step == 0:
        return f"expected a finite {what} at the start, came one that is not at {shown(x.tolist())}; start where the objective is defined"
    return f"expected a finite {what} after step {step}, came one that is not at {shown(x.tolist())}; take a smaller learning rate"
