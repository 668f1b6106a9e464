"""Derivatives of functions of many variables: gradient, Jacobian, Hessian, and their products with vectors.

Each stands once as its definition, one partial derivative or one row at a time, and once at the cost that automatic
differentiation has: a gradient for about one more evaluation, a product with J for another, and never the matrix in
between.
A derivative that does not exist (|x| at 0) is what torch takes by convention.   p numbers in, m numbers out
"""

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = [
    "Derivative",
    "directional_derivative",
    "directional_derivative_definition",
    "gradient",
    "gradient_definition",
    "hessian",
    "hessian_definition",
    "jacobian",
    "jacobian_definition",
    "jvp",
    "vjp",
]

Function = Callable[[Tensor], Tensor]


@shown
class Derivative(NamedTuple):
    """f(x), and its derivative there applied to something."""

    output: Float[Tensor, "..."]
    product: Float[Tensor, "..."]


def gradient_definition(f: Function, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """∇f = (∂f/∂x_1, ..., ∂f/∂x_p)ᵀ, each partial derivative by itself: p evaluations in forward mode.

    Notes: D1.5-2.
    """
    partials = [jvp(_single(f), x, unit).product for unit in _units(_point(x))]
    return _stacked(partials, x, x.shape)


def gradient(f: Function, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`gradient_definition` in one reverse sweep; zero where f does not depend on x.

    >>> gradient(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0]))
    tensor([2., 4.])

    Notes: D1.5-2, Z13.4.
    """
    return vjp(_single(f), x).product


def vjp(f: Function, x: Float[Tensor, "..."], adjoint: Real[Tensor, "..."] | None = None) -> Derivative:
    """f(x) and Jᵀu for an adjoint u of f(x), in one reverse sweep; u may be left out where f(x) is one number, and is
    1.

    Notes: Z2.6.
    """
    point = _point(x).clone().requires_grad_()
    with torch.enable_grad():
        output = _output(f, point)
    if adjoint is None:
        if output.numel() != 1:
            raise UserError(f"expected an adjoint for an output of shape {tuple(output.shape)}; give one of that shape")
        adjoint = torch.ones_like(output)
    if adjoint.shape != output.shape:
        raise UserError(
            f"expected an adjoint of the output's shape {tuple(output.shape)}, got {tuple(adjoint.shape)}; reshape it"
        )
    if not output.requires_grad:  # a constant function
        return Derivative(output, torch.zeros_like(x))
    (product,) = torch.autograd.grad(output, point, adjoint.to(output), allow_unused=True, materialize_grads=True)
    return Derivative(output.detach(), product)


def jvp(f: Function, x: Float[Tensor, "*shape"], tangent: Real[Tensor, "*shape"]) -> Derivative:
    """f(x) and Jv for a tangent v of x, in one evaluation in forward mode.

    Notes: Z2.6, Z13.4.
    """
    if tangent.shape != x.shape:
        raise UserError(
            f"expected a direction of the shape of x, {tuple(x.shape)}, got {tuple(tangent.shape)}; reshape it"
        )
    _ready_for_forward_mode()
    found = torch.func.jvp(lambda x: _output(f, x), (_point(x),), (tangent.detach().to(x),))
    return Derivative(found[0].detach(), found[1].detach())


def directional_derivative_definition(
    f: Function, x: Float[Tensor, "*shape"], direction: Real[Tensor, "*shape"]
) -> Float[Tensor, ""]:
    """∇f(x) · v, the sum of partial derivatives times entries of v."""
    return (gradient_definition(f, x) * direction).sum()


def directional_derivative(
    f: Function, x: Float[Tensor, "*shape"], direction: Real[Tensor, "*shape"]
) -> Float[Tensor, ""]:
    """The derivative of f at x along v, d/dt f(x + tv) at t = 0, in one evaluation; v is not made of length one.

    Notes: Z13.4.
    """
    return jvp(_single(f), x, direction).product


def jacobian_definition(f: Function, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """J_ij = ∂f_i/∂x_j, row by row: a reverse sweep for each number that f gives. Its axes are those of f(x), then
    those of x."""
    point = _point(x)
    output = _output(f, point)
    rows = [vjp(f, point, unit).product for unit in _units(output.detach())]
    return _stacked(rows, x, output.shape + x.shape)


def jacobian(f: Function, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """`jacobian_definition` with all its sweeps in one vectorised one: by rows, or by columns where x has fewer
    numbers.

    Notes: Z13.4.
    """
    point = _point(x)
    checked = lambda x: _output(f, x)  # noqa: E731
    output = checked(point)
    _ready_for_forward_mode()
    # A sweep a row in reverse mode, a sweep a column in forward mode; of equal numbers reverse, which more operations
    # support.
    transform = torch.func.jacrev if output.numel() <= point.numel() else torch.func.jacfwd
    found = transform(checked)(point)
    assert isinstance(found, Tensor)
    return found.detach()


def hessian_definition(f: Function, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """H_ij = ∂²f/∂x_i∂x_j, row by row: the gradient of each entry of the gradient. Its axes are those of x, twice."""
    point = _point(x).clone().requires_grad_()
    with torch.enable_grad():
        first = torch.zeros_like(point) + 0 * point.sum()  # so that it has a graph even where f is constant or linear
        output = _single(f)(point)
        if output.requires_grad:
            first = (
                first
                + torch.autograd.grad(output, point, create_graph=True, allow_unused=True, materialize_grads=True)[0]
            )
    rows = [torch.autograd.grad(first, point, unit, retain_graph=True)[0] for unit in _units(first.detach())]
    return _stacked(rows, x, x.shape + x.shape)


def hessian(f: Function, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """`hessian_definition` with all its rows in one vectorised sweep, forward over reverse.

    >>> hessian(lambda x: x[0] ** 2 * x[1], torch.tensor([1.0, 3.0]))
    tensor([[6., 2.],
            [2., 0.]])

    Notes: Z13.4.
    """
    _ready_for_forward_mode()
    found = torch.func.hessian(_single(f))(_point(x))
    assert isinstance(found, Tensor)
    return found.detach()


@functools.cache
def _ready_for_forward_mode() -> None:
    """torch loads a part of its forward mode at first use, which warns of torch's own old ways; the caller need not
    hear it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.func.jvp(torch.neg, (torch.zeros(()),), (torch.ones(()),))


def _point(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = str(x.dtype) if isinstance(x, Tensor) else format_value(x)
        raise UserError(f"expected a float tensor to differentiate at, got {got}; convert it with .double()")
    return x.detach()


def _output(f: Function, x: Tensor) -> Tensor:
    output = f(x)
    if not isinstance(output, Tensor) or not output.is_floating_point():
        got = str(output.dtype) if isinstance(output, Tensor) else format_value(output)
        raise UserError(
            f"expected a function that gives a float tensor, got {got}; stay in torch and do not call .item()"
        )
    return output


def _single(f: Function) -> Function:
    """f, once its output is seen to be one number."""

    def single(x: Tensor) -> Tensor:
        output = _output(f, x)
        if output.numel() != 1:
            raise UserError(
                f"expected a function that gives one number, got shape {tuple(output.shape)}; sum it, or use jacobian"
            )
        return output.reshape(())

    return single


def _units(x: Tensor) -> Tensor:  # (...) -> (p, ...)
    """The p unit vectors of the shape of x."""
    return torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape((x.numel(), *x.shape))


def _stacked(parts: list[Tensor], like: Tensor, shape: torch.Size) -> Tensor:
    return torch.stack(parts).reshape(shape) if parts else like.new_zeros(shape)
