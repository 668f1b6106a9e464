"""Linear regression: its loss, its gradient steps, its closed forms.

Its likelihood is in linear_models_likelihood.py, what holds where the distribution is known in
linear_models_population.py, classification in linear_models_classes.py.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.losses import squared_loss
from quoin.metrics import empirical_risk
from quoin.models import (
    LinearRegression,
    least_squares,
    least_squares_by_qr,
    linear_regression_definition,
    normal_equations,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.optim import sgd_step

CASES = 50
ROUNDING = roundings(256)
ROUNDING_SOURCE = "256 float64 roundings, for sums of at most 32 examples of at most 8 features"


class Problem(NamedTuple):
    """A minibatch and the point from which a step is taken."""

    X: Float[Tensor, "n d"]
    y: Float[Tensor, "n"]
    weight: Float[Tensor, "d"]
    bias: Float[Tensor, ""]
    lr: float
    decay: float

    @property
    def residual(self) -> Float[Tensor, "n"]:
        return self.X @ self.weight + self.bias - self.y


def random_problem(generator: torch.Generator, *, overdetermined: bool = False) -> Problem:
    num_features = randint(1, 8, generator)
    num_examples = randint(2 * num_features + 2, 32, generator) if overdetermined else randint(2, 32, generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    lr, decay = (0.05 + 0.45 * torch.rand(2, generator=generator, dtype=torch.float64)).tolist()
    return Problem(normal(num_examples, num_features), normal(num_examples), normal(num_features), normal(), lr, decay)


def model_at(problem: Problem) -> LinearRegression:
    model = LinearRegression(len(problem.weight)).double()
    with torch.no_grad():
        model.linear.weight.copy_(problem.weight.unsqueeze(0))
        model.linear.bias.copy_(problem.bias.unsqueeze(0))
    return model


def autograd_step(problem: Problem, *, penalty: float = 0.0) -> tuple[Float[Tensor, "d"], Float[Tensor, ""]]:
    """(w, b) after one SGD step on the model, by automatic differentiation of the loss plus penalty * |w|^2 / 2."""
    model = model_at(problem)
    losses = squared_loss(model(problem.X), problem.y) + penalty * model.linear.weight.square().sum() / 2
    weight, bias = sgd_step([model.linear.weight, model.linear.bias], losses, problem.lr)
    return weight.detach().squeeze(0), bias.detach().squeeze(0)


def decayed_step(problem: Problem) -> tuple[Float[Tensor, "d"], Float[Tensor, ""]]:
    """(w, b) after one step of torch's SGD with its own weight decay, on w alone."""
    model = model_at(problem)
    groups = [{"params": [model.linear.weight], "weight_decay": problem.decay}, {"params": [model.linear.bias]}]
    optimizer = torch.optim.SGD(groups, lr=problem.lr)
    empirical_risk(squared_loss, model(problem.X), problem.y).backward()
    optimizer.step()
    return model.linear.weight.detach().squeeze(0), model.linear.bias.detach().squeeze(0)


@claim("Z3.4", "the half in the squared loss cancels: its derivative in the prediction is the residual")
def derivative_of_the_squared_loss(generator: torch.Generator) -> Evidence:
    prediction, target = torch.randn(2, 1000, generator=generator, dtype=torch.float64)
    prediction.requires_grad_()
    squared_loss(prediction, target).sum().backward()
    assert prediction.grad is not None
    worst = gap(prediction.grad, prediction.detach() - target)
    return Evidence("largest |dl/dŷ - (ŷ - y)|", worst, roundings(2), "2 float64 roundings", 1000)


@claim("Z3.5", "doubling a residual quadruples its loss")
def quadratic_growth(generator: torch.Generator) -> Evidence:
    residual = torch.randn(1000, generator=generator, dtype=torch.float64)
    at_zero = torch.zeros_like(residual)
    ratio = squared_loss(2 * residual, at_zero) / squared_loss(residual, at_zero)
    worst = gap(ratio, torch.full_like(ratio, 4))
    return Evidence("largest |l(2r) / l(r) - 4|, relative", worst, 0.0, "exact: powers of two do not round", 1000)


@claim(
    "Z3.5",
    "one outlier of size t drags a least-squares constant by t/n, without limit, and leaves the median where it was",
)
def outlier_moves_the_fit(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        y = torch.randn(2 * randint(2, 15, generator) + 1, generator=generator, dtype=torch.float64)
        moved, size = y.clone(), 10.0 ** randint(1, 6, generator)
        moved[y.argmax()] += size
        no_features = y.new_empty(len(y), 0)
        shift = least_squares(no_features, moved).bias - least_squares(no_features, y).bias
        worst = max(worst, gap(shift * len(y) / size, torch.ones_like(shift)), gap(moved.median(), y.median()))
    return Evidence("largest |shift · n/t - 1| and shift of the median", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "Z3.7",
    "normal equations, QR, singular values and gradient descent find one and the same minimiser of the squared loss",
)
def four_ways_to_least_squares(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(10):
        num_features, y = randint(1, 8, generator), torch.randn(32, generator=generator, dtype=torch.float64)
        samples = torch.randn(32, num_features, generator=generator, dtype=torch.float64)
        # Columns at right angles to the ones and to each other, of mean square 1 to 2: each step then thirds the error
        # at least.
        apart = torch.linalg.qr(torch.cat([torch.ones(32, 1, dtype=torch.float64), samples], dim=1)).Q[:, 1:]
        X = apart * (32 * (1 + torch.rand(num_features, generator=generator, dtype=torch.float64))).sqrt()
        found = [
            normal_equations(X, y),
            least_squares_by_qr(X, y),
            least_squares(X, y),
            descended(X, y, 2 / 3, steps=60),
        ]
        parameters = [torch.cat([weight, bias.reshape(1)]) for weight, bias in found]
        worst = max(worst, *(gap(each, parameters[0]) for each in parameters[1:]))
    return Evidence(
        "largest difference among four solutions", worst, ROUNDING, f"{ROUNDING_SOURCE}; 3^-60 is less than one", 10
    )


@claim(
    "Z3.7",
    "where columns depend on one another, SGD from zero finds the shortest minimiser, the pseudo-inverse's; the "
    "inverse fails",
)
def shortest_of_many_minimisers(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(5):
        num_examples = 2 * randint(1, 4, generator)
        num_features = num_examples + randint(1, 8, generator)
        samples = torch.randn(num_features, num_examples, generator=generator, dtype=torch.float64)
        X, y = torch.linalg.qr(samples).Q.mT, torch.randn(num_examples, generator=generator, dtype=torch.float64)
        # Rows of length sqrt(n): the Gram matrix of [X, 1] then has no eigenvalue below n and none above 2n.
        X, fit = X * math.sqrt(num_examples), least_squares(X * math.sqrt(num_examples), y)
        for solver in (normal_equations, least_squares_by_qr):
            try:
                solver(X, y)
            except UserError:
                continue
            worst = math.inf
        pinv = torch.linalg.pinv(torch.cat([X, torch.ones(num_examples, 1, dtype=torch.float64)], dim=1)) @ y
        walked = descended(X, y, 2 / (num_examples + 2), steps=60 * num_examples, batch_size=2)
        for weight, bias in (fit, walked):
            worst = max(worst, gap(torch.cat([weight, bias.reshape(1)]), pinv))
    return Evidence("largest |solution - [X, 1]⁺y|", worst, 4 * ROUNDING, f"4 · {ROUNDING_SOURCE}", 5)


def descended(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], lr: float, *, steps: int, batch_size: int | None = None
) -> tuple[Float[Tensor, "d"], Float[Tensor, ""]]:
    """(w, b) after `steps` minibatch steps from zero, the batches taken in turn; the whole data set is one batch if no
    size is given."""
    weight, bias = X.new_zeros(X.shape[1]), X.new_zeros(())
    batches = list(torch.arange(len(y)).split(batch_size or len(y)))
    for step in range(steps):
        rows = batches[step % len(batches)]
        parameters = [weight.requires_grad_(), bias.requires_grad_()]
        losses = squared_loss(linear_regression_definition(X[rows], *parameters), y[rows])
        weight, bias = (each.detach() for each in sgd_step(parameters, losses, lr))
    return weight, bias


@claim("Z3.9", "a minibatch step moves w by -(η/|B|) Σ x (wᵀx + b - y)")
def weight_update(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        stepped, _bias = autograd_step(p)
        closed = p.weight - p.lr / len(p.y) * sum(r * x for r, x in zip(p.residual, p.X))
        worst = max(worst, gap(closed, stepped))
    return Evidence("largest |closed form - autograd step| in w", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def bias_from_bias(p: Problem) -> Float[Tensor, ""]:
    return p.bias - p.lr / len(p.y) * p.residual.sum()


def bias_from_weight(p: Problem) -> Float[Tensor, "d"]:
    return p.weight - p.lr / len(p.y) * p.residual.sum()


@claim("Z3.10", "a minibatch step moves b by -(η/|B|) Σ (wᵀx + b - y)")
def bias_update(generator: torch.Generator) -> Evidence:
    return bias_update_evidence(bias_from_bias, generator)


@claim(
    "ZE7", "the new bias starts from the old bias, not from the weights", right=bias_from_bias, printed=bias_from_weight
)
def bias_update_starts_from_the_bias(form: Callable[[Problem], Tensor], generator: torch.Generator) -> Evidence:
    return bias_update_evidence(form, generator)


def bias_update_evidence(form: Callable[[Problem], Tensor], generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = max(gap(form(p), autograd_step(p)[1]) for p in problems)
    return Evidence("largest |closed form - autograd step| in b", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def one_row(p: Problem, row: int) -> Float[Tensor, ""]:
    return p.X[row] @ p.weight + p.bias


def all_rows(p: Problem, row: int) -> Float[Tensor, "n"]:
    return p.X @ p.weight + p.bias


@claim(
    "ZE4",
    "the prediction for one example is wᵀx + b, one entry of the vector Xw + b·1",
    right=one_row,
    printed=all_rows,
)
def one_example_is_one_row(form: Callable[[Problem, int], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        with torch.no_grad():
            predictions = model_at(p)(p.X)
        worst = max(worst, *(gap(form(p, row), predictions[row]) for row in range(len(p.y))))
    return Evidence("largest |formula - prediction of the row|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.32", "a step on the loss plus λ|w|²/2 shrinks w by 1 - ηλ and then descends; it is SGD with weight decay λ")
def weight_decay_update(generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = 0.0
    for p in problems:
        penalized, decayed = autograd_step(p, penalty=p.decay), decayed_step(p)
        worst = max(worst, gap(shrunk(p), penalized[0]), gap(decayed[0], penalized[0]), gap(decayed[1], penalized[1]))
    return Evidence("largest difference among the three steps", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def shrunk(p: Problem) -> Float[Tensor, "d"]:
    return (1 - p.lr * p.decay) * p.weight - p.lr / len(p.y) * p.residual @ p.X


def not_shrunk(p: Problem) -> Float[Tensor, "d"]:
    return p.weight - p.lr / len(p.y) * p.residual @ p.X


@claim("ZE11", "the factor 1 - ηλ stays in the weight-decay step to its end", right=shrunk, printed=not_shrunk)
def weight_decay_keeps_its_factor(form: Callable[[Problem], Tensor], generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = max(gap(form(p), autograd_step(p, penalty=p.decay)[0]) for p in problems)
    return Evidence("largest |closed form - penalised autograd step| in w", worst, ROUNDING, ROUNDING_SOURCE, CASES)
