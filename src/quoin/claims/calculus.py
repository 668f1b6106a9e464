"""Derivatives: the chain rule, Taylor's expansion, differences and their cost, and automatic differentiation by tape and by trace."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from quoin.autodiff import (
    RELU,
    SIGMOID,
    TANH,
    Var,
    backward,
    backward_pass,
    derivatives,
    directional_derivative,
    finite_differences,
    forward_pass,
    gradient,
    gradient_definition,
    hessian,
    hessian_definition,
    jacobian,
    jacobian_definition,
    quadratic_model,
    replay,
    same_bits,
    taylor,
    trace,
)
from quoin.claims.claim import Evidence, claim
from quoin.claims.rounding import gap, randint, roundings
from quoin.models import mlp_definition
from quoin.objectives import cross_entropy, empirical_risk

CASES = 20
DIFFERENCES = 1000 * torch.finfo(torch.float64).eps ** (2 / 3)
DIFFERENCES_SOURCE = "1000 ε^(2/3): the error of central differences at their best step, for derivatives of moderate size"


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def uniform(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator, dtype=torch.float64))


# ---- the chain rule, and what it needs ----------------------------------------------------------------------------------


@claim("Z2.7", "the Jacobian of a composition is the product of the Jacobians: ∂y/∂x_i = Σ_j (∂y/∂u_j)(∂u_j/∂x_i)")
def chain_rule(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, m, q = (randint(1, 6, generator) for _ in range(3))
        A, B = normal(m, d, generator=generator), normal(q, m, generator=generator)
        inner: Callable[[Tensor], Tensor] = lambda x: torch.tanh(A @ x) * (A @ x)  # noqa: E731, B023
        outer: Callable[[Tensor], Tensor] = lambda u: torch.sin(B @ u) + (u**2).sum()  # noqa: E731, B023
        x = normal(d, generator=generator)
        product = jacobian_definition(outer, inner(x)) @ jacobian_definition(inner, x)
        for form in (jacobian_definition, jacobian):
            worst = max(worst, gap(form(lambda x: outer(inner(x)), x), product))  # noqa: B023
    return Evidence("largest |J(f∘g) - J(f) J(g)|, relative", worst, roundings(512), "512 float64 roundings, sums of 6", CASES)


@claim("Z2.7", "partial derivatives alone do not give the chain rule: where f is not differentiable, the sum can be wrong by ½")
def partials_do_not_suffice(generator: torch.Generator) -> Evidence:
    def f(u: Tensor) -> Tensor:  # u² v / (u² + v²), whose partial derivatives at 0 are both 0
        return torch.where((u == 0).all(), 0.0, u[0] ** 2 * u[1] / (u.square().sum() + (u == 0).all()))

    zero = torch.zeros(2, dtype=torch.float64)
    along = finite_differences(lambda t: f(t.expand(2)), zero[:1], step=2.0**-10).output.sum()
    by_partials = finite_differences(f, zero, step=2.0**-10).output.sum()
    return Evidence("slope of f(t, t) at 0 less the sum of partials", along - by_partials, 0.5, "exact: t³/2t² = t/2", 1, "==")


# ---- Taylor -------------------------------------------------------------------------------------------------------------


def convex(weight: float) -> Callable[[Tensor], Tensor]:
    """eˣ + a sin x; with |a| ≤ 0.2 and x in [0, 1.1] its derivatives from the second on lie between 0.8 and 3.3."""
    return lambda x: x.exp() + weight * x.sin()


@claim("Z12.24", "the remainder of the linear approximation shrinks with the square of the step")
def first_order_remainder(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        f, x = convex(0.4 * uniform(generator) - 0.2), uniform(generator)
        line = taylor(f, x, 1)
        left = [abs(float(f(point) - line(point))) for point in (torch.tensor(x + 2.0**-k, dtype=torch.float64) for k in (8, 10))]
        worst = max(worst, abs(math.log2(left[0] / left[1]) / 2 - 2))
    source = "Lagrange: the slope is off by at most ε max f‴/(3 min f″)/log 4 < 0.004 for ε = 2⁻⁸"
    return Evidence("largest |log-log slope of the remainder - 2|", worst, 0.004, source, CASES)


@claim("Z13.3", "the table of derivatives, and the rules of sum, product, quotient and chain")
def table_of_derivatives(generator: torch.Generator) -> Evidence:
    table: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[float], float]]] = {
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
    worst, cases = 0.0, 0

    def hold(f: Callable[[Tensor], Tensor], x: float, expected: float) -> None:
        nonlocal worst, cases
        worst, cases = max(worst, gap(derivatives(f, x, 1)[1], torch.tensor(expected, dtype=torch.float64))), cases + 1

    for f, slope_f in table.values():
        for g, slope_g in table.values():
            x = 0.2 + uniform(generator)  # tan is finite, log and sqrt are defined
            u, v = (float(each(torch.tensor(x, dtype=torch.float64))) for each in (f, g))
            hold(f, x, slope_f(x))
            hold(lambda x: f(x) + g(x), x, slope_f(x) + slope_g(x))  # noqa: B023
            hold(lambda x: f(x) * g(x), x, slope_f(x) * v + u * slope_g(x))  # noqa: B023
            if abs(v) > 1e-2:
                hold(lambda x: f(x) / g(x), x, (slope_f(x) * v - u * slope_g(x)) / v**2)  # noqa: B023
            hold(lambda x: f(torch.sin(g(x)) + 1.5), x, slope_f(math.sin(v) + 1.5) * math.cos(v) * slope_g(x))  # noqa: B023
    source = "2^20 float64 roundings: a quotient of 1/x² and a number of 0.01, where digits are lost"
    return Evidence("largest |derivative - rule|, relative", worst, roundings(2**20), source, cases)


@claim("Z13.3", "the Taylor coefficients of exp, sin, cos, log(1 + x) and 1/(1 - x) at 0 are those of their series")
def taylor_series(generator: torch.Generator) -> Evidence:
    order = 8
    sine = [0, 1, 0, -1]
    series: list[tuple[Callable[[Tensor], Tensor], list[float]]] = [
        (torch.exp, [1 / math.factorial(k) for k in range(order + 1)]),
        (torch.sin, [sine[k % 4] / math.factorial(k) for k in range(order + 1)]),
        (torch.cos, [sine[(k + 1) % 4] / math.factorial(k) for k in range(order + 1)]),
        (lambda x: torch.log(1 + x), [0.0] + [(-1) ** (k + 1) / k for k in range(1, order + 1)]),
        (lambda x: 1 / (1 - x), [1.0] * (order + 1)),
    ]
    worst = max(gap(taylor(f, 0.0, order).coefficients, torch.tensor(terms, dtype=torch.float64)) for f, terms in series)
    return Evidence("largest |coefficient - series|", worst, roundings(64), "64 float64 roundings", len(series) * (order + 1))


@claim("Z13.4", "gradient and Hessian give the second-order model: its remainder shrinks with the cube of the step")
def second_order_remainder(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = randint(1, 5, generator)
        A = torch.rand(4, p, generator=generator, dtype=torch.float64) + 0.2
        f: Callable[[Tensor], Tensor] = lambda x: (A @ x).exp().sum()  # noqa: E731, B023
        x = normal(p, generator=generator) / p
        v = torch.rand(p, generator=generator, dtype=torch.float64) + 0.1
        v = v / (A @ v).max()  # then every derivative along v is positive, and none exceeds the one before
        model = quadratic_model(f, x)
        left = [float(f(point) - model(point)) for point in (x + v / 2**6, x + v / 2**8)]
        slope = math.log2(left[0] / left[1]) / 2
        gaps = gap(hessian(f, x), hessian(f, x).T), gap(hessian(f, x), hessian_definition(f, x))
        along = gap(directional_derivative(f, x, v), (gradient(f, x) * v).sum())
        worst = max(worst, abs(slope - 3) / 0.01, *(each / roundings(256) for each in (*gaps, along)))
    source = "1: the slope off by at most ε/(4 log 4) < 0.01 for ε = 2⁻⁶, symmetry and ∇f·v by 256 float64 roundings"
    return Evidence("largest deviation, in units of its bound", worst, 1.0, source, CASES)


# ---- gradients, and what they cost --------------------------------------------------------------------------------------


@claim("D1.5-2", "the gradient is the column of partial derivatives: of ½ xᵀAx - bᵀx it is ½ (A + Aᵀ) x - b")
def gradient_of_a_quadratic(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = randint(1, 9, generator)
        A, b, x = normal(p, p, generator=generator), normal(p, generator=generator), normal(p, generator=generator)
        for form in (gradient_definition, gradient):
            found = form(lambda x: x @ A @ x / 2 - b @ x, x)  # noqa: B023
            worst = max(worst, gap(found, (A + A.T) @ x / 2 - b))
    return Evidence("largest |∇f - formula|, relative", worst, roundings(64), "64 float64 roundings, sums of 9", 2 * CASES)


@claim("D6-22", "central differences take 2p evaluations, and their error shrinks with the square of the step")
def central_differences(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = randint(1, 6, generator)
        theta, f = torch.rand(p, generator=generator, dtype=torch.float64), convex(0.4 * uniform(generator) - 0.2)
        calls = 0

        def cost(theta: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return f(theta).sum()  # noqa: B023

        exact = gradient(cost, theta)
        calls = 0
        coarse = finite_differences(cost, theta, step=2.0**-4)
        wrong_count = abs(calls - 2 * p) + abs(coarse.evaluations - 2 * p)
        fine = finite_differences(cost, theta, step=2.0**-6)
        slopes = ((coarse.output - exact).abs() / (fine.output - exact).abs()).log2() / 2
        worst = max(worst, wrong_count, gap(slopes, torch.full_like(slopes, 2.0)))
    source = "h²/20 max f⁽⁵⁾/min f‴ / log 4 < 0.001 for h = 2⁻⁴, relative; the count is exact"
    return Evidence("largest |log-log slope - 2|, and error of the count", worst, 0.001, source, CASES)


@claim("D6-22", "a gradient by reverse mode costs at most three evaluations of a network whatever p, by differences 2p of them")
def cost_of_a_gradient(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(3):
        sizes = [randint(2, 5, generator), randint(2, 6, generator), 1]
        shapes = [(sizes[1], sizes[0]), (sizes[2], sizes[1])]
        x = normal(8, sizes[0], generator=generator)

        def cost(theta: Tensor) -> Tensor:
            parts = theta.split([a * b for a, b in shapes])  # noqa: B023
            W = [part.reshape(shape) for part, shape in zip(parts, shapes)]  # noqa: B023
            return (torch.tanh(x @ W[0].T) @ W[1].T).square().mean()  # noqa: B023

        theta = normal(sum(a * b for a, b in shapes), generator=generator)
        once, reverse, differences = (_flops(lambda way=way: way(cost, theta)) for way in (lambda f, x: f(x), gradient, finite_differences))  # noqa: B023
        worst = max(worst, reverse / once, math.inf if differences != 2 * len(theta) * once else 0.0)
    source = "exact: each product of matrices needs two on the way back, the first layer one"
    return Evidence("multiplications of a gradient over those of f", worst, 3.0, source, 3)


def _flops(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


# ---- backpropagation ----------------------------------------------------------------------------------------------------


@claim(("Z5.14", "Z5.15"), "back-propagation by hand through what the forward pass kept gives autograd's gradient, weight decay included")
def backpropagation_by_hand(generator: torch.Generator) -> Evidence:
    worst, functions = 0.0, {RELU: torch.relu, TANH: torch.tanh, SIGMOID: torch.sigmoid}
    for case in range(CASES):
        sizes = [randint(1, 6, generator) for _ in range(randint(2, 5, generator))]
        weights = [normal(b, a, generator=generator).requires_grad_() for a, b in zip(sizes, sizes[1:])]
        biases = [normal(b, generator=generator).requires_grad_() for b in sizes[1:]]
        x, decay = normal(7, sizes[0], generator=generator).requires_grad_(), uniform(generator)
        labels = torch.randint(sizes[-1], (7,), generator=generator)
        activation = list(functions)[case % 3]
        with torch.no_grad():
            forward = forward_pass(x, weights, biases, activation)
            adjoint = (torch.softmax(forward.output, -1) - nn.functional.one_hot(labels, sizes[-1])) / 7
            ours = backward_pass(forward, weights, adjoint, activation, weight_decay=decay)
        through = mlp_definition(x, weights, biases, functions[activation])
        loss = empirical_risk(cross_entropy, through.output, labels) + decay / 2 * sum(W.square().sum() for W in weights)
        theirs = torch.autograd.grad(loss, [*weights, *biases, x])
        worst = max(worst, *(gap(a, b) for a, b in zip([*ours.weights, *ours.biases, ours.x], theirs, strict=True)))
        worst = max(worst, *(gap(a, b) for a, b in zip(forward.after[1:], through.hidden, strict=True)), 0.0)
    return Evidence("largest |by hand - autograd|, relative", worst, roundings(1024), "1024 float64 roundings, 4 layers", CASES)


Program = Callable[[Any], Any]


def random_program(generator: torch.Generator) -> Program:
    """A program of a square matrix, as well of a `Var` as of a tensor: six steps, with a loop, a branch and a detach."""
    steps: list[Program] = [
        lambda x: x.tanh() * x,
        lambda x: x.sin() - x.cos(),
        lambda x: (x.tanh()).exp() / (1 + x**2),
        lambda x: (x * x + 1).log() + x.relu(),
        lambda x: (x**2 + 0.5).sqrt() - x.abs(),
        lambda x: x.sigmoid() @ x.mT,
        lambda x: x - x.mean(0, keepdim=True) * x[:1],
        lambda x: x[torch.tensor([0, 0, 2])] + x.sum(1, keepdim=True) / 3,
        lambda x: x.reshape((9,)).reshape((3, 3)).mT * x.detach(),
        lambda x: x @ x[0] + x if x.sum() > 0 else 2 / (x**2 + 1) - x**3 / 9,
    ]
    chosen = [steps[randint(0, len(steps) - 1, generator)] for _ in range(6)]

    def program(x: Any) -> Any:
        for step in chosen:
            x = step(x).tanh()
        return (x * x[0]).mean()

    return program


@claim("Z2.6", "the tape's adjoints, and those of its adjoints, are autograd's on random programs with loops and branches")
def tape_agrees_with_torch(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        program, start, direction = random_program(generator), normal(3, 3, generator=generator), normal(3, 3, generator=generator)
        variable, tensor = Var(start), start.clone().requires_grad_()
        slope = backward(program(variable))[variable]
        bend = backward((slope * direction).sum())[variable]
        (expected,) = torch.autograd.grad(program(tensor), tensor, create_graph=True)
        (expected_bend,) = torch.autograd.grad((expected * direction).sum(), tensor)
        for ours, theirs in ((slope.value, expected), (bend.value, expected_bend)):
            worst = max(worst, gap(ours / theirs.abs().max(), theirs / theirs.abs().max()))
    source = "2^16 float64 roundings, for two sweeps through 6 steps of about 10 operations, where terms cancel"
    return Evidence("largest |tape - autograd|, relative", worst, roundings(2**16), source, 2 * CASES)


class Twisted(nn.Module):
    """A network with what makes recording hard: a layer used twice, dropout, a view, writing in place, two outputs of one call."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.twice, self.drop, self.last = nn.Linear(4, 4), nn.Dropout(0.4), nn.Linear(4, 3)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.twice(torch.tanh(self.twice(x))))
        h += x  # which also breaks the ties among what was dropped: sorting has no derivative there
        left, right = h.sin().chunk(2, dim=-1)
        largest, _ = torch.cat([right, left], dim=-1).sort(dim=-1)
        return self.last(largest * h)


@claim("Z5.16", "a traced graph, run again, gives every one of its values bit for bit")
def replay_is_exact(generator: torch.Generator) -> Evidence:
    wrong = count = 0
    for case in range(CASES):
        model = Twisted(generator).to(torch.float64 if case % 2 else torch.float32)
        x = normal(5, 4, generator=generator).to(model.last.weight.dtype)
        labels = torch.randint(3, (5,), generator=generator)
        graph = trace(lambda x: empirical_risk(cross_entropy, model(x), labels), x)  # noqa: B023
        wrong += sum(not same_bits(node.value, value) for node, value in zip(graph.nodes, replay(graph), strict=True))
        count += len(graph.nodes)
    return Evidence("values with other bits", wrong, 0, "exact: the same operations on the same numbers", count, "==")


@claim("Z5.16", "the adjoint at each node is the derivative of the output by that node's value, all else computed from it")
def adjoints_are_derivatives(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(5):
        model, x = Twisted(generator).double(), normal(5, 4, generator=generator)
        labels = torch.randint(3, (5,), generator=generator)
        graph = trace(lambda x: empirical_risk(cross_entropy, model(x), labels), x)  # noqa: B023
        for node in graph.nodes:
            if node.adjoint is None:
                continue
            direction = normal(*node.shape, generator=generator)

            def moved(t: Tensor) -> Tensor:
                return replay(graph, {node.index: node.value + t * direction})[graph.outputs[0]]  # noqa: B023

            slope = finite_differences(moved, torch.zeros((), dtype=torch.float64)).output
            worst, cases = max(worst, gap(slope, (node.adjoint * direction).sum())), cases + 1
    return Evidence("largest |difference quotient - adjoint|, relative", worst, DIFFERENCES, DIFFERENCES_SOURCE, cases)
