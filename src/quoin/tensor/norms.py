"""The length of a vector: p-norms, the distances they give, and a test of what makes a norm.

An empty vector has length 0, a vector with a NaN has length NaN.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor.entries import check_floating, check_same_dtype
from quoin.tensor.shapes import check_shapes

__all__ = ["NormTest", "frobenius_norm", "is_norm", "manhattan_distance", "norm", "norm_definition"]


def norm_definition(x: Float[Tensor, "..."], p: float = 2, dim: int = -1) -> Float[Tensor, "..."]:
    """‖x‖_p = (sum_i |x_i|^p)^(1/p) along `dim` for p >= 1, and max_i |x_i| for p = inf; p = 2 is the length, p = 1 the
    sum.

    As the equation stands, so |x_i|^p may overflow, and at x = 0 the derivative is not a number.

    Notes: Z2.2, Z2.3, Z2.4.
    """
    _check(x, p)
    if p == math.inf:
        return x.abs().amax(dim=dim) if x.shape[dim] else x.sum(dim=dim)
    return x.abs().pow(p).sum(dim=dim).pow(1 / p)


def norm(x: Float[Tensor, "..."], p: float = 2, dim: int = -1) -> Float[Tensor, "..."]:
    """`norm_definition` on torch's kernel, safe for any finite x: no power overflows or vanishes, and the gradient at 0
    is 0.

    >>> norm(torch.tensor([3e30, 4e30]))
    tensor(5.0000e+30)

    Notes: Z2.2, Z2.3, Z2.4.
    """
    _check(x, p)
    if x.shape[dim] == 0:
        return x.sum(dim=dim)
    if p in (1, math.inf):
        return torch.linalg.vector_norm(x, p, dim=dim)
    # ‖x‖ = m ‖x/m‖ for every m > 0, so m = max |x_i| carries no gradient.
    largest = x.detach().abs().amax(dim=dim, keepdim=True)
    largest = torch.where((largest > 0) & largest.isfinite(), largest, 1)
    return largest.squeeze(dim) * torch.linalg.vector_norm(x / largest, p, dim=dim)


def power_of_two(x: Float[Tensor, "..."]) -> Float[Tensor, ""]:
    """The power of two at or below max |x_i|, by which dividing rounds nothing; one where there is nothing to
    divide. It carries no gradient."""
    largest = x.detach().abs().amax() if x.numel() else x.new_ones(())
    power = torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1)
    return torch.where((largest > 0) & largest.isfinite(), power, 1)


def _check(x: Tensor, p: float) -> None:
    check_floating(x)
    if x.ndim == 0:
        raise UserError("expected x with at least 1 axis, got a single number; use x.abs()")
    if not p >= 1:
        raise UserError(
            f"expected p >= 1 (or inf), got {p}; below 1 the triangle inequality fails and there is no norm"
        )


def manhattan_distance(x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """The city-block distance ‖x - y‖_1 = sum_i |x_i - y_i|.

    Notes: Z2.3.
    """
    check_shapes("... n, ... n", x=x, y=y)
    check_same_dtype(x, y)
    return norm(x - y, 1)


def frobenius_norm(A: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch"]:
    """‖A‖_F = sqrt(sum_ij A_ij^2): the length of a matrix read as one vector.

    Notes: Z2.L.
    """
    check_shapes("... m n", A=A)
    return norm(A.flatten(start_dim=-2))


# ---- what makes a norm ------------------------------------------------------------------------------------------


@shown
@dataclass(frozen=True)
class NormTest:
    """What a search for a broken axiom gave: true when it found none, else the axiom and the vectors that break it."""

    broken: str = ""
    counterexample: tuple[Float[Tensor, "..."], ...] = ()

    def __bool__(self) -> bool:
        return not self.broken


def is_norm(
    f: Callable[[Tensor], Tensor], dim: int = 3, *, num_cases: int = 200, generator: torch.Generator, tol: float = 1e-9
) -> NormTest:
    """Search R^dim for vectors that break an axiom of `f`; a counterexample refutes, while none after `num_cases` only
    suggests.

    f(a x) = |a| f(x);  f(x + y) <= f(x) + f(y);  f(x) > 0 for x ≠ 0 and f(0) = 0

    Unit vectors, their sums and differences are tried first, then random vectors of sizes from 1e-3 to 1e3, some of
    them sparse.

    Args:
        f: Takes a vector to one number.
        dim: Entries of the vectors.
        tol: How far, relative to its right side, an axiom may be missed by rounding.

    >>> is_norm(lambda x: x.abs().pow(0.5).sum() ** 2, dim=2, generator=torch.Generator().manual_seed(0))
    NormTest(broken='f(x + y) <= f(x) + f(y)', counterexample=(tensor([1., 0.], ...), ...) of 2)
    """
    if dim < 1 or num_cases < 1:
        raise UserError(
            f"expected dim and num_cases of at least 1, got {dim} and {num_cases}; a search of nothing finds nothing"
        )

    def of(x: Tensor) -> float:
        value = torch.as_tensor(f(x))
        if value.numel() != 1:
            raise UserError(
                f"expected one number from f, got shape {tuple(value.shape)} for x of shape {tuple(x.shape)}; reduce it"
            )
        return float(value)

    zero = torch.zeros(dim, dtype=torch.float64)
    if of(zero) != 0:
        return NormTest("f(0) = 0", (zero,))
    for x, y, factor in _trials(dim, num_cases, generator):
        fx, fy, scaled, total = of(x), of(y), of(factor * x), of(x + y)
        if not all(map(math.isfinite, (fx, fy, scaled, total))):
            return NormTest("f is a finite number", (x, y))
        for vector, value in ((x, fx), (y, fy), (x + y, total)):
            if bool(vector.any()) and value <= 0:
                return NormTest("f(x) > 0 for x ≠ 0", (vector,))
        if abs(scaled - abs(factor) * fx) > tol * abs(factor) * fx:
            return NormTest("f(a x) = |a| f(x)", (torch.tensor(factor, dtype=torch.float64), x))
        if total > (fx + fy) * (1 + tol):
            return NormTest("f(x + y) <= f(x) + f(y)", (x, y))
    return NormTest()


def _trials(dim: int, num_cases: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    units = torch.eye(dim, dtype=torch.float64)
    for i in range(dim):
        yield from ((units[i], sign * units[j], -2.0) for j in range(dim) for sign in (1, -1))
    for _ in range(num_cases):
        pair = torch.randn(2, dim, generator=generator, dtype=torch.float64)
        pair = pair * 10 ** (6 * torch.rand(2, 1, generator=generator, dtype=torch.float64) - 3)
        kept = torch.rand(2, dim, generator=generator) < torch.rand((), generator=generator)
        x, y = pair * kept if bool(kept.any(dim=1).all()) else pair
        yield x, y, float(torch.randn((), generator=generator, dtype=torch.float64)) * 3
