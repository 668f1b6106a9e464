"""Convex problems with what is known about them, and two verdicts on a curve, for the page on optimisation."""

from __future__ import annotations

import functools

import torch

from quoin.errors import UserError
from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.formula import function_of
from quoin.losses import logistic_loss
from quoin.notes.claims.convergence import Problem
from quoin.notes.claims.convexity import (
    lower_at_once,
    second_derivative_decides,
    weights_are_between_zero_and_one,
)
from quoin.optim import convex_combination, logistic_constants, minimize_lbfgs, sublevel_set

__all__ = ["TWO_CLASSES", "logistic_problem", "no_minimiser", "set_below_is_convex", "verdicts", "weights_not_lower"]

_CIRCLES = ((-1.2, 0.4), (-0.3, -0.9), (0.6, 0.2), (0.9, -1.3), (-0.8, -0.2), (0.1, 1.1))
_TRIANGLES = ((1.1, 0.6), (0.4, 1.4), (-0.7, 0.9), (-0.2, -0.5), (1.5, -0.4), (0.8, 0.1))
TWO_CLASSES = tuple((*point, label) for label, rows in enumerate((_CIRCLES, _TRIANGLES)) for point in rows)


@functools.lru_cache(maxsize=16)
def logistic_problem(points: tuple[tuple[float, ...], ...]) -> Problem:
    """The mean logistic loss of a line through 0 between two classes, with its minimiser and constants."""
    rows = torch.tensor([point[:2] for point in points], dtype=torch.float64)
    signs = torch.tensor([1.0 if point[2] else -1.0 for point in points], dtype=torch.float64)
    cost = lambda w: logistic_loss(signs * (rows @ w)).mean()  # noqa: E731
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    found = minimize_lbfgs([w], lambda: cost(w), tol=1e-10, max_iter=200)
    # where all margins are positive, twice w has a lower loss: there is no minimiser, however flat it is at w
    if not found.converged or bool((signs * (rows @ w.detach()) > 0).all()):
        raise UserError("expected classes that no line separates, got some that one does: no minimiser; mix them")
    return Problem(cost, w.detach(), logistic_constants(rows))


def no_minimiser() -> Problem:
    """ln(1 + e^-x) falls for ever; x = 1 stands in for a minimiser, as if the least value were 0."""
    cost = lambda x: logistic_loss(x).sum()  # noqa: E731
    return Problem(cost, torch.ones(1, dtype=torch.float64), logistic_constants(torch.ones(1, 1, dtype=torch.float64)))


@functools.lru_cache(maxsize=32)
def verdicts(formula: str) -> tuple[bool, bool]:
    """Whether a function of x is convex by its second derivative, and whether its sublevel sets are: the two forms."""
    f, points = function_of(formula, "x"), torch.linspace(-3, 3, 25, dtype=torch.float64)
    inside = points[f(points).isfinite()]
    if len(inside) < 5:
        raise UserError("expected a formula that is defined on a part of −3 to 3, got none there; try log(x)")
    generator = torch.Generator().manual_seed(0)
    claim = second_derivative_decides
    return form_of(claim, False)(f, inside, generator), form_of(claim, True)(f, inside, generator)


@functools.lru_cache(maxsize=64)
def set_below_is_convex(formula: str, level: float, printed: bool) -> bool:
    """Whether {x : f(x) ≤ level} is convex, by λ in [0, 1]; or, as printed, by λ of any size. Without two points it
    is."""
    f, points = function_of(formula, "x"), torch.linspace(-3, 3, 121, dtype=torch.float64).unsqueeze(1)
    inside = points[(f(points) <= level).squeeze(1)]
    if len(inside) < 2:
        return True
    form = form_of(weights_are_between_zero_and_one, printed)
    return form(sublevel_set(f, level), inside, torch.Generator().manual_seed(0))


def weights_not_lower(formula: str, ends: tuple[float, float], printed: bool) -> tuple[list[float], list[float]]:
    """The weights λ of the higher end x* that the proof is about, and those of them at which f is not below f(x*)."""
    f = function_of(formula, "x")
    high, low = sorted(torch.tensor(ends, dtype=torch.float64), key=lambda x: -float(f(x)))
    weights = form_of(lower_at_once, printed)(torch.Generator().manual_seed(0))
    return weights, [each for each in weights if not float(f(convex_combination(high, low, each))) < float(f(high))]
