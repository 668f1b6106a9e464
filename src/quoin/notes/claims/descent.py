"""Descent: steepest directions, learning rates, minibatches; and the points where descent is led astray. Momentum:
momentum.py."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from quoin.autodiff import directional_derivative, gradient, hessian
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal, uniform
from quoin.notes.claims.rounding import excess, gap, max, min, randint, roundings
from quoin.optim import (
    DiagonalNewton,
    GradientDescent,
    MinibatchGradient,
    Newton,
    argmin,
    cubic,
    descend,
    minibatch_gradient,
    plateau,
    ravine,
    rippled,
    rosenbrock,
    saddle,
    wavy,
)

CASES = 20


def bowl(dim: int, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A random quadratic, lowest at 0."""
    root = normal(dim, dim, generator=generator)
    return lambda x: (root @ x).square().sum() / 2


# ---- the landscape ----------------------------------------------------------------------------------------------


@claim(
    "Z12.1",
    "a saddle attracts descent along x, as (1 - 2η)ᵗ, and lets it go along y, as (1 + 2η)ᵗ: no gradient is no minimum",
)
def saddles_let_go(generator: torch.Generator) -> Evidence:
    steps = 40

    def case() -> float:
        lr, start = uniform(0.01, 0.4, generator), normal(2, generator=generator)
        path = descend(saddle, start, GradientDescent(lr), steps).points
        t = torch.arange(steps + 1, dtype=torch.float64)
        flat = gradient(saddle, torch.zeros(2, dtype=torch.float64))
        # Of a number that is tiny or huge by now, the relative error counts.
        along, away = path[:, 0] / (start[0] * (1 - 2 * lr) ** t) - 1, path[:, 1] / (start[1] * (1 + 2 * lr) ** t) - 1
        return max(gap(along, torch.zeros_like(along)), gap(away, torch.zeros_like(away)), float(flat.abs().max()))

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "largest relative error of the formula for either coordinate",
        worst,
        roundings(40 * steps),
        "rounding of 40 steps",
        CASES,
    )


@claim(
    "Z12.1",
    "x³ is flat at 0 to the second order, yet lower to the left: no test of gradient or curvature there finds a "
    "minimum",
)
def flat_is_not_lowest(generator: torch.Generator) -> Evidence:
    zero = torch.zeros((), dtype=torch.float64)
    flat = max(abs(float(gradient(cubic, zero))), abs(float(hessian(cubic, zero))))
    left = -normal(CASES, generator=generator).abs()
    lower = int((cubic(left) < cubic(zero)).sum())
    assert flat == 0
    return Evidence("points to the left that are lower", lower, CASES, "all of them, -|x|³ < 0", CASES, "==")


@claim(
    "Z12.1",
    "on tanh's plateau the derivative is 1/cosh² x <= 4 e^{-2|x|}, and t steps of gradient descent get no farther "
    "than that allows",
)
def plateaus_hold(generator: torch.Generator) -> Evidence:
    steps, lr = 50, 1.0

    def case() -> float:
        start = torch.tensor(uniform(4, 15, generator), dtype=torch.float64)
        path = descend(plateau, start, GradientDescent(lr), steps)
        assert gap(path.gradient_norms, 1 / torch.cosh(path.points).square()) <= roundings(4)
        # The gradient grows towards 0, so every step is at most the learning rate times the bound at the end.
        reach = lr * steps * 4 * math.exp(-2 * float(path.points[-1]))
        return max(excess(path.gradient_norms, 4 * torch.exp(-2 * path.points)), float(start - path.points[-1]) - reach)

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "excess over what the gradient allows", worst, roundings(16 * steps), "rounding of 50 points up to 15", CASES
    )


@claim("Z12.1", "where the loss on finite data is least, the risk is not: minimising one is not minimising the other")
def training_is_not_generalising(generator: torch.Generator) -> Evidence:
    spacing = 1e-3 * uniform(0.5, 1, generator)
    grid = torch.arange(0.5, 1.5, spacing, dtype=torch.float64)
    price = float(wavy(argmin(rippled, grid)[0]) - wavy(argmin(wavy, grid)[0]))
    curvature = 2 * math.pi + 1.5 * math.pi**2  # of x cos(πx), at most
    bound = 10 * curvature * spacing**2 / 8
    return Evidence(
        "risk given away", price, bound, "ten times what the spacing of the grid could hide", len(grid), ">="
    )


@claim(
    "Z12.1",
    "descent finds the minimum of its own valley: of two initial points either side of a maximum, one ends above "
    "the other",
)
def local_minima(generator: torch.Generator) -> Evidence:
    def end(low: float, high: float) -> tuple[float, float, float]:
        start = torch.tensor(uniform(low, high, generator), dtype=torch.float64)
        path = descend(wavy, start, GradientDescent(0.05), 120)
        return float(path.points[-1]), float(path.values[-1]), float(path.gradient_norms[-1])

    pairs = [(end(-0.9, 0.2), end(0.4, 1.9)) for _ in range(5)]
    assert all(steep <= 1e-8 for pair in pairs for *_, steep in pair)
    higher = min(left - right for (_, left, _), (_, right, _) in pairs)
    return Evidence(
        "how much lower the right valley ends", higher, 0.5, "x cos πx >= -0.3 on [-0.5, 0.5], and -1 at 1", 5, ">="
    )


# ---- gradient descent -------------------------------------------------------------------------------------------


@claim(
    "D1.5-3",
    "among directions of length one the directional derivative <y, ∇C> is least for y = -∇C/|∇C|, where it is -|∇C|",
)
def steepest_descent(generator: torch.Generator) -> Evidence:
    def case() -> float:
        dim = randint(1, 6, generator)
        weights, x = normal(dim, dim, generator=generator), normal(dim, generator=generator)

        def cost(x: Tensor) -> Tensor:
            return torch.tanh(weights @ x).sum() + (weights @ x).square().mean()

        grad = gradient(cost, x)
        size = grad.norm()
        steepest = directional_derivative(cost, x, -grad / size)
        directions = normal(50, dim, generator=generator)
        others = torch.stack([directional_derivative(cost, x, y / y.norm()) for y in directions])
        return max(abs(float(steepest / size) + 1), excess(-others / size, torch.ones(50, dtype=torch.float64)))

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "error at -∇C/|∇C|, or depth below it, over |∇C|", worst, roundings(100), "a few dozen roundings", CASES * 50
    )


@claim(("Z12.11", "D1.5-4"), "a small step lowers f by η f'(x)², but for at most η² f'(x)² max|f''| / 2")
def first_order_decrease(generator: torch.Generator) -> Evidence:
    def case() -> tuple[float, float]:
        lr, start = 10 ** uniform(-5, -1, generator), normal(generator=generator)
        path = descend(lambda x: torch.sin(3 * x), start, GradientDescent(lr), 1)  # |f''| <= 9
        guaranteed = lr * path.gradient_norms[0] ** 2
        slack = 9 / 2 * lr * guaranteed
        off = (path.values[0] - path.values[1] - guaranteed).abs()
        return float(off - slack), float(off / slack)

    cases = [case() for _ in range(200)]
    assert max(ratio for _, ratio in cases) > 0.5  # so that a bound of half the size would not do
    return Evidence(
        "excess of the error over its bound", max(over for over, _ in cases), roundings(8), "rounding of f", 200
    )


@claim(
    ("Z12.11", "D1.5-4"),
    "on ½Lx² gradient descent is (1 - ηL)ᵗ x₀: it creeps, converges, swings or bursts as ηL passes 1 and 2",
)
def learning_rates(generator: torch.Generator) -> Evidence:
    def case(product: float) -> float:
        curvature, start, steps = uniform(0.1, 10, generator), normal(generator=generator), 60
        path = descend(lambda x: curvature * x**2 / 2, start, GradientDescent(product / curvature), steps).points
        swings = (path[1:] * path[:-1] < 0).all()
        assert bool(swings) == (product > 1)
        assert (path[-1].abs() < path[0].abs()) == (product < 2)
        distribution = start * (1 - product) ** torch.arange(steps + 1, dtype=torch.float64)
        return gap(path / distribution, torch.ones_like(distribution))

    worst = max(case(low + uniform(0.05, 0.95, generator)) for low in (0, 1, 2) for _ in range(7))
    # An ηL near 1 leaves 1 - ηL with a relative error of up to 20 roundings, once a step.
    return Evidence("largest relative error of the formula", worst, roundings(60 * 60), "rounding of 60 steps", 21)


@claim(
    "Z12.11",
    "Newton's step solves a quadratic at once, whatever its condition; near a minimum each step squares the error",
)
def newton(generator: torch.Generator) -> Evidence:
    def quadratic() -> float:
        f, start = bowl(3, generator), normal(3, generator=generator)
        condition = float(torch.linalg.cond(hessian(f, start)))
        left = descend(f, start, Newton(f), 1).points[1]
        return float(left.norm() / (start.norm() * condition))

    def square(error: Tensor) -> float:
        """e_{t+1} / e_t² on Rosenbrock's valley, from as near as its curvature asks."""
        path = descend(rosenbrock, 1 + error, Newton(rosenbrock), 1).points
        return float((path[1] - 1).norm() / (path[0] - 1).norm() ** 2)

    exact = max(quadratic() for _ in range(10))
    assert exact <= roundings(50)
    ratios = []
    for size in (1e-4, 1e-5, 1e-5):
        towards = normal(2, generator=generator)
        ratios.append(square(size * towards / towards.norm()))
    # At (1, 1) the error (a, b) becomes (400a² - 200ab, 799a² - 400ab) but for O(e³), which is 999 e² at most.
    return Evidence(
        "largest e_{t+1} / e_t²", max(ratios), 1100, "999 from the derivatives there, and a tenth for what is beyond", 3
    )


@claim("Z12.11", "scaling each coordinate by its curvature makes descent in a ravine independent of how narrow it is")
def preconditioning(generator: torch.Generator) -> Evidence:
    def case() -> tuple[float, float]:
        condition, lr, start = (
            10 ** uniform(1, 5, generator),
            uniform(0.1, 0.9, generator),
            normal(2, generator=generator),
        )

        def narrow(x: Tensor) -> Tensor:
            return ravine(x, condition_number=condition)

        path = descend(narrow, start, DiagonalNewton(narrow, lr), 5).points
        plain = descend(
            narrow, start, GradientDescent(2 / (1 + condition)), 5
        ).points  # the best that one learning rate for both can do
        rounds = torch.arange(6, dtype=torch.float64)[:, None]
        return gap(path / start, ((1 - lr) ** rounds).expand(6, 2)), float(plain[-1].norm() / start.norm())

    cases = [case() for _ in range(8)]
    assert (
        min(kept for _, kept in cases) > 0.999 * (9 / 11) ** 5
    )  # ((κ - 1)/(κ + 1))⁵ for κ >= 10: one learning rate for both is slow
    return Evidence(
        "largest distance from (1 - η)ᵗ x₀", max(found for found, _ in cases), roundings(50), "rounding of 5 steps", 8
    )


@claim("D1.5-6", "the gradient of a random minibatch is the whole gradient in the mean, over all batches of its size")
def minibatches_are_unbiased(generator: torch.Generator) -> Evidence:
    def case() -> float:
        count, dim = randint(2, 7, generator), randint(1, 3, generator)
        size = randint(1, count, generator)
        inputs, labels, x = (normal(*shape, generator=generator) for shape in ((count, dim), (count,), (dim,)))

        def losses(x: Tensor, i: Tensor) -> Tensor:
            return torch.nn.functional.softplus(labels[i] * (inputs[i] @ x))

        every = [torch.tensor(batch) for batch in itertools.combinations(range(count), size)]
        mean = torch.stack([minibatch_gradient(losses, x, batch) for batch in every]).mean(0)
        return gap(mean, gradient(lambda x: losses(x, torch.arange(count)).mean(), x))

    worst = max(case() for _ in range(CASES))
    return Evidence(
        "largest distance of the mean to the whole gradient", worst, roundings(50), "rounding of a mean of 35", CASES
    )


@claim("D1.5-6", "stochastic gradient descent samples every example equally often")
def minibatches_are_fair(generator: torch.Generator) -> Evidence:
    count, size, num_samples = 10, 3, 2000
    # The loss of example i is x_i, so the gradient of a batch shows who is in it.
    minibatch_gradient = MinibatchGradient(lambda x, i: x[i], count, batch_size=size, generator=generator)
    x = torch.zeros(count, dtype=torch.float64)
    seen = sum((minibatch_gradient(x) * size for _ in range(num_samples)), x)
    worst = float((seen / num_samples - size / count).abs().max())
    bound = math.sqrt(math.log(2 * count / 1e-7) / (2 * num_samples))
    return Evidence(
        "largest error of a frequency", worst, bound, "Hoeffding for ten frequencies, level 1e-7", num_samples
    )
