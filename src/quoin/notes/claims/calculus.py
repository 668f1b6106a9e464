"""Derivatives: the chain rule, Taylor's expansion, gradients, differences and their cost."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from quoin.autodiff import (
    derivatives,
    directional_derivative,
    finite_differences,
    gradient,
    gradient_definition,
    hessian,
    hessian_definition,
    jacobian,
    jacobian_definition,
    quadratic_model,
    taylor,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings

CASES = 20


Function = Callable[[Tensor], Tensor]
Derivative = Callable[[float], float]


def uniform(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator, dtype=torch.float64))


# ---- the chain rule, and what it needs --------------------------------------------------------------------------


@claim(
    "Z2.7",
    "the Jacobian of a composition is the product of the Jacobians: ∂y/∂x_i = Σ_j (∂y/∂u_j)(∂u_j/∂x_i)",
    not_shown="all differentiable functions: random compositions of smooth ones",
)
def chain_rule(generator: torch.Generator) -> Evidence:
    def case() -> float:
        d, m, q = (randint(1, 6, generator) for _ in range(3))
        A, B = normal(m, d, generator=generator), normal(q, m, generator=generator)

        def inner(x: Tensor) -> Tensor:
            return torch.tanh(A @ x) * (A @ x)

        def outer(u: Tensor) -> Tensor:
            return torch.sin(B @ u) + (u**2).sum()

        x = normal(d, generator=generator)
        product = jacobian_definition(outer, inner(x)) @ jacobian_definition(inner, x)
        return max(gap(form(lambda x: outer(inner(x)), x), product) for form in (jacobian_definition, jacobian))

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "largest |J(f∘g) - J(f) J(g)|, relative", worst, roundings(512), "512 float64 roundings, sums of 6", CASES
    )


@claim(
    "Z2.7",
    "partial derivatives alone do not give the chain rule: where f is not differentiable, the sum can be wrong by ½",
)
def partials_do_not_suffice(generator: torch.Generator) -> Evidence:
    def f(u: Tensor) -> Tensor:  # u² v / (u² + v²), whose partial derivatives at 0 are both 0
        return torch.where((u == 0).all(), 0.0, u[0] ** 2 * u[1] / (u.square().sum() + (u == 0).all()))

    zero = torch.zeros(2, dtype=torch.float64)
    along = finite_differences(lambda t: f(t.expand(2)), zero[:1], step=2.0**-10).output.sum()
    by_partials = finite_differences(f, zero, step=2.0**-10).output.sum()
    return Evidence(
        "derivative of f(t, t) at 0 less the sum of partials",
        float(along - by_partials),
        0.5,
        "exact: t³/2t² = t/2",
        1,
        "==",
    )


# ---- Taylor -----------------------------------------------------------------------------------------------------


def convex(weight: float) -> Function:
    """eˣ + a sin x; with |a| ≤ 0.2 and x in [0, 1.1] its derivatives from the second on lie between 0.8 and 3.3."""
    return lambda x: x.exp() + weight * x.sin()


@claim("Z12.24", "the remainder of the linear approximation shrinks with the square of the step")
def first_order_remainder(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        f, x = convex(0.4 * uniform(generator) - 0.2), uniform(generator)
        line = taylor(f, x, 1)
        left = [
            abs(float(f(point) - line(point)))
            for point in (torch.tensor(x + 2.0**-k, dtype=torch.float64) for k in (8, 10))
        ]
        worst = max(worst, abs(math.log2(left[0] / left[1]) / 2 - 2))
    source = "Lagrange: the slope is off by at most ε max f‴/(3 min f″)/log 4 < 0.004 for ε = 2⁻⁸"
    return Evidence("largest |log-log slope of the remainder - 2|", worst, 0.004, source, CASES)


@claim("Z13.3", "the table of derivatives, and the rules of sum, product, quotient and chain")
def table_of_derivatives(generator: torch.Generator) -> Evidence:
    table: dict[str, tuple[Function, Derivative]] = {
        "x^5": (lambda x: x**5, lambda x: 5 * x**4),
        "x^-2": (lambda x: x**-2, lambda x: -2 * x**-3),
        "exp": (torch.exp, math.exp),
        "log": (torch.log, lambda x: 1 / x),
        "sqrt": (torch.sqrt, lambda x: 0.5 / math.sqrt(x)),
        "sin": (torch.sin, math.cos),
        "cos": (torch.cos, lambda x: -math.sin(x)),
        "tan": (torch.tan, lambda x: 1 + math.tan(x) ** 2),
        "arctan": (torch.arctan, lambda x: 1 / (1 + x * x)),
        "tanh": (torch.tanh, lambda x: 1 - math.tanh(x) ** 2),
    }

    def gaps(f: Function, derivative_f: Derivative, g: Function, derivative_g: Derivative) -> list[float]:
        x = 0.2 + uniform(generator)  # tan is finite, log and sqrt are defined
        u, v = (float(each(torch.tensor(x, dtype=torch.float64))) for each in (f, g))
        rules: list[tuple[Function, float]] = [
            (f, derivative_f(x)),
            (lambda x: f(x) + g(x), derivative_f(x) + derivative_g(x)),
            (lambda x: f(x) * g(x), derivative_f(x) * v + u * derivative_g(x)),
            (
                lambda x: f(x) / (1 + g(x) ** 2),
                (derivative_f(x) * (1 + v * v) - u * 2 * v * derivative_g(x)) / (1 + v * v) ** 2,
            ),
            (lambda x: f(torch.sin(g(x)) + 1.5), derivative_f(math.sin(v) + 1.5) * math.cos(v) * derivative_g(x)),
        ]
        return [
            gap(derivatives(rule, x, 1)[1], torch.tensor(expected, dtype=torch.float64)) for rule, expected in rules
        ]

    found = [each for f, df in table.values() for g, dg in table.values() for each in gaps(f, df, g, dg)]
    source = "2^12 float64 roundings: of x⁻² up to 25, its sine and the tangent of that"
    return Evidence("largest |derivative - rule|, relative", max(found), roundings(2**12), source, len(found))


@claim("Z13.3", "the Taylor coefficients of exp, sin, cos, log(1 + x) and 1/(1 - x) at 0 are those of their series")
def taylor_series(generator: torch.Generator) -> Evidence:
    order = 8
    sine = [0, 1, 0, -1]
    series: list[tuple[Function, list[float]]] = [
        (torch.exp, [1 / math.factorial(k) for k in range(order + 1)]),
        (torch.sin, [sine[k % 4] / math.factorial(k) for k in range(order + 1)]),
        (torch.cos, [sine[(k + 1) % 4] / math.factorial(k) for k in range(order + 1)]),
        (lambda x: torch.log(1 + x), [0.0] + [(-1) ** (k + 1) / k for k in range(1, order + 1)]),
        (lambda x: 1 / (1 - x), [1.0] * (order + 1)),
    ]
    worst = max(
        gap(taylor(f, 0.0, order).coefficients, torch.tensor(terms, dtype=torch.float64)) for f, terms in series
    )
    return Evidence(
        "largest |coefficient - series|", worst, roundings(64), "64 float64 roundings", len(series) * (order + 1)
    )


@claim("Z13.4", "gradient and Hessian give the second-order model: its remainder shrinks with the cube of the step")
def second_order_remainder(generator: torch.Generator) -> Evidence:
    def case() -> float:
        p = randint(1, 5, generator)
        A = torch.rand(4, p, generator=generator, dtype=torch.float64) + 0.2

        def f(x: Tensor) -> Tensor:
            return (A @ x).exp().sum()

        x = normal(p, generator=generator) / p
        v = torch.rand(p, generator=generator, dtype=torch.float64) + 0.1
        v = v / (A @ v).max()  # then every derivative along v is positive, and none exceeds the one before
        model = quadratic_model(f, x)
        left = [float(f(point) - model(point)) for point in (x + v / 2**6, x + v / 2**8)]
        slope = math.log2(left[0] / left[1]) / 2
        gaps = gap(hessian(f, x), hessian(f, x).T), gap(hessian(f, x), hessian_definition(f, x))
        along = gap(directional_derivative(f, x, v), (gradient(f, x) * v).sum())
        return max(abs(slope - 3) / 0.01, *(each / roundings(256) for each in (*gaps, along)))

    source = "1: the slope off by at most ε/(4 log 4) < 0.01 for ε = 2⁻⁶, symmetry and ∇f·v by 256 float64 roundings"
    return Evidence("largest deviation, in units of its bound", max(case() for _ in range(CASES)), 1.0, source, CASES)


# ---- gradients, and what they cost ------------------------------------------------------------------------------


@claim("D1.5-2", "the gradient is the column of partial derivatives: of ½ xᵀAx - bᵀx it is ½ (A + Aᵀ) x - b")
def gradient_of_a_quadratic(generator: torch.Generator) -> Evidence:
    def case() -> float:
        p = randint(1, 9, generator)
        A, b, x = normal(p, p, generator=generator), normal(p, generator=generator), normal(p, generator=generator)
        expected = (A + A.T) @ x / 2 - b
        return max(gap(form(lambda x: x @ A @ x / 2 - b @ x, x), expected) for form in (gradient_definition, gradient))

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "largest |∇f - formula|, relative", worst, roundings(64), "64 float64 roundings, sums of 9", 2 * CASES
    )


class Counted:
    """A cost of p numbers, and how often it was asked."""

    def __init__(self, f: Function):
        self.f, self.calls = f, 0

    def __call__(self, theta: Float[Tensor, "p"]) -> Float[Tensor, ""]:
        self.calls += 1
        return self.f(theta).sum()


@claim("D6-22", "central differences take 2p evaluations, and their error shrinks with the square of the step")
def central_differences(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        theta = torch.rand(randint(1, 6, generator), generator=generator, dtype=torch.float64)
        cost = Counted(convex(0.4 * uniform(generator) - 0.2))
        coarse = finite_differences(cost, theta, step=2.0**-4)
        wrong_count = abs(cost.calls - 2 * len(theta)) + abs(coarse.num_evaluations - 2 * len(theta))
        fine, exact = finite_differences(cost, theta, step=2.0**-6), gradient(cost, theta)
        slopes = ((coarse.output - exact).abs() / (fine.output - exact).abs()).log2() / 2
        worst = max(worst, wrong_count, gap(slopes, torch.full_like(slopes, 2.0)))
    source = "h²/20 max f⁽⁵⁾/min f‴ / log 4 < 0.001 for h = 2⁻⁴, relative; the count is exact"
    return Evidence("largest |log-log slope - 2|, and error of the count", worst, 0.001, source, CASES)


@claim(
    "D6-22",
    "a gradient by reverse mode costs at most three evaluations of a network whatever p, by differences 2p of them",
)
def cost_of_a_gradient(generator: torch.Generator) -> Evidence:
    def case() -> float:
        d, h, n = randint(2, 5, generator), randint(2, 6, generator), 8
        x, theta = normal(n, d, generator=generator), normal(h * d + h, generator=generator)

        def cost(theta: Tensor) -> Tensor:
            return (torch.tanh(x @ theta[: h * d].reshape(d, h)) @ theta[h * d :].reshape(h, 1)).square().mean()

        once, by_reverse, by_differences = (
            _flops(work)
            for work in (lambda: cost(theta), lambda: gradient(cost, theta), lambda: finite_differences(cost, theta))
        )
        return by_reverse / once if by_differences == 2 * len(theta) * once else math.inf

    source = "exact: each product of matrices needs two on the way back, the first layer's only one"
    return Evidence("multiplications of a gradient over those of f", max(case() for _ in range(3)), 3.0, source, 3)


def _flops(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()
