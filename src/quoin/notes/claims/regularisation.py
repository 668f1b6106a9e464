"""Dropout and penalties, and why they are wanted: a network with a unit for each example can fit any labels at all."""

import math
from collections.abc import Callable
from itertools import product

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quoin.layers import dropout_definition, dropout_mask
from quoin.losses import cross_entropy, input_dropout_penalty
from quoin.metrics import accuracy, empirical_risk
from quoin.models import MLP, relu_interpolant
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.optim import minimize_lbfgs

LEVEL = 6.0
LEVEL_SOURCE = "6 standard deviations, passed by chance less than once in ten million"


@claim(
    "D1.6-2",
    "dropout keeps the mean, drops a fraction p of the units and gives these no gradient; at test it is the identity",
)
def dropout_properties(generator: torch.Generator) -> Evidence:
    worst, num_samples = 0.0, 100_000
    for p in (0.1, 0.2, 0.5, 0.8):
        layer = nn.Dropout(p)
        units = torch.ones(num_samples, dtype=torch.float64, requires_grad=True)
        dropped_out = dropout_definition(units, dropout_mask(units.shape, p, generator=generator), p)
        for output in (dropped_out, layer(units)):
            (gradient,) = torch.autograd.grad(output.sum(), units, retain_graph=True)
            output = output.detach()
            dropped = output == 0
            off_mean = abs(float(output.mean()) - 1) / math.sqrt(p / (1 - p) / num_samples)
            off_fraction = abs(float(dropped.double().mean()) - p) / math.sqrt(p * (1 - p) / num_samples)
            exact = gap(gradient, (~dropped).double() / (1 - p)) <= roundings(4) and not gradient[dropped].any()
            worst = max(worst, off_mean, off_fraction) if exact else math.inf
        if not torch.equal(layer.eval()(units), units):
            worst = math.inf
    return Evidence(
        "largest |mean - x| and |fraction - p| in standard deviations, gradients exact",
        worst,
        LEVEL,
        LEVEL_SOURCE,
        8 * num_samples,
    )


def scaled_up(x: Float[Tensor, "*batch"], mask: Bool[Tensor, "*batch"], probability: float) -> Float[Tensor, "*batch"]:
    return dropout_definition(x, mask, probability)


def only_zeroed(
    x: Float[Tensor, "*batch"], mask: Bool[Tensor, "*batch"], probability: float
) -> Float[Tensor, "*batch"]:
    return x * mask


@claim(
    "DE22",
    "each unit is zeroed with probability p and the others are scaled by 1/(1-p)",
    right=scaled_up,
    printed=only_zeroed,
)
def dropout_scales_the_survivors(
    form: Callable[[Tensor, Tensor, float], Tensor], generator: torch.Generator
) -> Evidence:
    p, x, num_samples = 0.2, 3.0, 200_000
    units = torch.full((num_samples,), x, dtype=torch.float64)
    mean = float(form(units, dropout_mask(units.shape, p, generator=generator), p).mean())
    bound = LEVEL * x * math.sqrt(p / (1 - p) / num_samples)
    message = f"the mean output for x = 3 and p = 0.2 is {mean:.3f}"
    return Evidence("|mean output - x|", abs(mean - x), bound, LEVEL_SOURCE, num_samples, counterexample=message)


def linear_problem(
    n: int, d: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n"], Float[Tensor, "d"]]:
    shapes = ((n, d), (n,), (d,))
    X, y, w = (normal(*shape, generator=generator) for shape in shapes)
    return X, y, w


def expected_squares(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], weight: Float[Tensor, "d"], p: float
) -> Float[Tensor, ""]:
    """E |y - (X * M) w|², the mean over all masks of each row, by trying them all."""
    total = torch.zeros((), dtype=torch.float64)
    for kept in product([True, False], repeat=len(weight)):
        mask = torch.tensor(kept)
        mask_probability = math.prod((1 - p) if each else p for each in kept)
        total = total + mask_probability * (y - dropout_definition(X, mask.expand(X.shape), p) @ weight).square().sum()
    return total


@claim(
    "D1.6-16",
    "dropout on the inputs of a linear model adds p/(1-p) Σ_j w_j² Σ_i X_ij² to the expected squares: a ridge penalty",
)
def dropout_is_a_ridge_penalty(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 20
    for _ in range(cases):
        n, d = randint(2, 10, generator), randint(1, 5, generator)
        X, y, w = linear_problem(n, d, generator)
        p = float(0.1 + 0.7 * torch.rand((), generator=generator, dtype=torch.float64))
        closed = (y - X @ w).square().sum() + input_dropout_penalty(X, w, p)
        worst = max(worst, gap(expected_squares(X, y, w, p), closed))
        # Its minimiser is that of a ridge regression with a penalty for each feature.
        gram = X.T @ X
        weight = torch.linalg.solve(gram + p / (1 - p) * gram.diagonal().diag(), X.T @ y).requires_grad_()
        (gradient,) = torch.autograd.grad(expected_squares(X, y, weight, p), weight)
        worst = max(worst, gap(gradient, torch.zeros_like(gradient)))
    source = "4096 float64 roundings, for sums over at most 32 masks of 10 rows"
    quantity = "largest |mean over all masks - closed form|, and gradient at the ridge solution"
    return Evidence(quantity, worst, roundings(4096), source, cases)


@claim("D1.6-16", "the same by sampling: torch.nn.Dropout on the inputs averages to the closed form")
def dropout_averages_to_a_ridge_penalty(generator: torch.Generator) -> Evidence:
    n, d, p, num_samples = 20, 5, 0.3, 20_000
    X, y, w = linear_problem(n, d, generator)
    losses = (y - nn.Dropout(p)(X.expand(num_samples, n, d)) @ w).square().sum(dim=1)
    closed = (y - X @ w).square().sum() + input_dropout_penalty(X, w, p)
    off = abs(float(losses.mean() - closed)) / (float(losses.std()) / math.sqrt(num_samples))
    return Evidence("|mean of the losses - closed form| in standard errors", off, LEVEL, LEVEL_SOURCE, num_samples)


def distinct_inputs(generator: torch.Generator) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n q"]]:
    """Inputs of one to six features, of which the first keeps them at least a half apart."""
    n, d, q = randint(2, 12, generator), randint(1, 6, generator), randint(1, 3, generator)
    x = normal(n, d, generator=generator)
    x[:, 0] = torch.randperm(n, generator=generator) + torch.rand(n, generator=generator, dtype=torch.float64) / 2
    return x, normal(n, q, generator=generator)


def any_inputs(generator: torch.Generator) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n q"]]:
    """One input twice, with the labels 0 and 1."""
    x, y = distinct_inputs(generator)
    return torch.cat([x, x[:1]]), torch.cat([y, y[:1] + 1])


def least_error(data: tuple[Float[Tensor, "n d"], Float[Tensor, "n q"]], generator: torch.Generator) -> float:
    """The largest squared error of a network that fits the data as well as any function can: equal inputs get the mean
    of their labels."""
    x, y = data
    equal = (x.unsqueeze(1) == x).all(dim=-1).double()
    means = equal @ y / equal.sum(dim=1, keepdim=True)
    network = relu_interpolant(x, means, generator=generator)
    assert network.depth == 1
    assert network.width <= max(len(x), y.shape[1])
    with torch.no_grad():
        return float((network(x) - y).square().max())


@claim(
    "Z5.21",
    "one hidden layer of n ReLU units, written down and not trained, has any values on n distinct inputs",
    not_shown="every n: those tried; the construction is exact for each",
)
def any_labels_are_fitted(generator: torch.Generator) -> Evidence:
    return fitted_evidence(distinct_inputs, generator)


@claim(
    "ZE40",
    "a network can fit all training data whose inputs are distinct, not always",
    right=distinct_inputs,
    printed=any_inputs,
)
def distinct_inputs_are_needed(
    form: Callable[[torch.Generator], tuple[Tensor, Tensor]], generator: torch.Generator
) -> Evidence:
    return fitted_evidence(form, generator)


def fitted_evidence(data: Callable[[torch.Generator], tuple[Tensor, Tensor]], generator: torch.Generator) -> Evidence:
    cases = 100
    worst = max(least_error(data(generator), generator) for _ in range(cases))
    source = "an error of 1e-11: float64 rounding, times gradients of up to ten thousand between neighbours on the line"
    return Evidence(
        "largest squared error", worst, 1e-22, source, cases, counterexample=f"a squared error of {worst:.3g}"
    )


@claim(
    "Z5.21",
    "training too fits labels sampled at random, where there is nothing to learn: on new ones it is no better than "
    "chance",
)
def random_labels_are_fitted(generator: torch.Generator) -> Evidence:
    n, d, fresh = 60, 10, 4000
    x, labels = normal(n, d, generator=generator), torch.randint(2, (n,), generator=generator)
    model = MLP([d, 64, 2], generator=generator).double()
    minimize_lbfgs(model.parameters(), lambda: empirical_risk(cross_entropy, model(x), labels), tol=1e-3, max_iter=200)
    with torch.no_grad():
        trained = accuracy(model(x).argmax(dim=-1), labels)
        new, its_labels = normal(fresh, d, generator=generator), torch.randint(2, (fresh,), generator=generator)
        guessed = accuracy(model(new).argmax(dim=-1), its_labels)
    off = abs(guessed - 0.5) * 2 * math.sqrt(fresh) if trained == 1 else math.inf
    quantity = "|accuracy on new labels - 1/2| in standard deviations, if all training labels are fitted"
    return Evidence(quantity, off, LEVEL, LEVEL_SOURCE, fresh)
