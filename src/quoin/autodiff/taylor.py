"""Taylor polynomials: of any order in one variable, of the second order in many."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.autodiff.derivatives import gradient, hessian
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor import as_floating, check_shapes

__all__ = ["QuadraticModel", "TaylorPolynomial", "derivatives", "quadratic_model", "taylor"]

Function = Callable[[Tensor], Tensor]


def derivatives(f: Function, x: float | Float[Tensor, ""], order: int) -> Float[Tensor, "{order}+1"]:
    """f(x), f'(x), ..., f⁽ⁿ⁾(x) of a function of one variable, each by differentiating the one before.

    The cost grows about as 2ⁿ; a plain number x is taken in float64.

    Notes: Z13.3.
    """
    if not isinstance(order, int) or order < 0:
        raise UserError(f"expected an order of 0 or more, got {format_value(order)}; give e.g. 3")
    point = x.detach().clone() if isinstance(x, Tensor) else torch.tensor(x, dtype=torch.float64)
    if point.shape != () or not point.is_floating_point():
        raise UserError(
            f"expected one float to differentiate at, got {point.dtype} of shape {tuple(point.shape)}; give a float"
        )
    point.requires_grad_()
    with torch.enable_grad():
        value = f(point)
        if not isinstance(value, Tensor) or value.shape != ():
            raise UserError(
                f"expected a function that gives one number, got {format_value(value)}; use quadratic_model for "
                "many variables"
            )
        found = [value]
        for _ in range(order):
            # A constant has no graph, and its derivatives are zero.
            value = (
                torch.autograd.grad(value, point, create_graph=True)[0]
                if value.requires_grad
                else torch.zeros_like(point)
            )
            found.append(value)
    return torch.stack([value.detach() for value in found])


@shown
@dataclass(frozen=True)
class TaylorPolynomial:
    """c_0 + c_1 (x - a) + ... + c_n (x - a)ⁿ about the centre a."""

    center: Float[Tensor, ""]
    coefficients: Float[Tensor, "terms"]

    def __call__(self, x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """By Horner's rule."""
        step = as_floating(x) - as_floating(self.center)
        value = torch.zeros_like(step)
        for coefficient in self.coefficients.flip(0):
            value = value * step + coefficient
        return value


def taylor(f: Function, x: float | Float[Tensor, ""], order: int) -> TaylorPolynomial:
    """The Taylor polynomial of f about x, Σ_k f⁽ᵏ⁾(x)/k! (· - x)ᵏ for k up to `order`; of order 1, the linear
    approximation.

    >>> taylor(torch.exp, 0.0, 3).coefficients
    tensor([1.0000, 1.0000, 0.5000, 0.1667], dtype=torch.float64)

    Notes: Z13.3.
    """
    values = derivatives(f, x, order)
    factorials = torch.tensor([math.factorial(k) for k in range(order + 1)], dtype=values.dtype, device=values.device)
    return TaylorPolynomial(torch.as_tensor(x, dtype=values.dtype, device=values.device).detach(), values / factorials)


@shown
@dataclass(frozen=True)
class QuadraticModel:
    """f(a) + ∇f(a)·(x - a) + ½ (x - a)ᵀ H (x - a) about the centre a."""

    center: Float[Tensor, "p"]
    value: Float[Tensor, ""]
    gradient: Float[Tensor, "p"]
    hessian: Float[Tensor, "p p"]

    def __call__(self, x: Real[Tensor, "*batch p"]) -> Float[Tensor, "*batch"]:
        check_shapes("... p, p", x=x, center=self.center)
        step = as_floating(x) - as_floating(self.center)
        return self.value + step @ self.gradient + torch.einsum("...i,ij,...j->...", step, self.hessian, step) / 2


def quadratic_model(f: Function, x: Float[Tensor, "p"]) -> QuadraticModel:
    """The second-order Taylor polynomial of f about the vector x.

    Notes: Z13.4.
    """
    check_shapes("p", x=x)
    first, curvature = gradient(f, x), hessian(f, x)
    with torch.no_grad():
        return QuadraticModel(x.detach().clone(), f(x).reshape(()), first, curvature)
