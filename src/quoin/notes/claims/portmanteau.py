"""Convergence in distribution, by every test that the portmanteau theorem names: they agree, on sequences that converge
and on those that do not."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.limits import between, equal_weights
from quoin.notes.claims.rounding import max, roundings
from quoin.prob import prokhorov_distance, set_probability_gap, weak_gap

ATOMS = 30  # equally probable values of a limit, at quantiles (i + ½) / 30
SMALL = 0.1  # what counts as gone at n = 200: each sequence that converges is within 3/30 there


def quantiles(count: int) -> Float[Tensor, "n"]:
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


class RandomSequence(NamedTuple):
    """X_n and its supposed limit, as equally probable values."""

    name: str
    values: Callable[[int], Float[Tensor, "k"]]
    limit: Float[Tensor, "m"]


def sequences() -> tuple[list[RandomSequence], list[RandomSequence]]:
    """Those that converge to their limit in distribution, and those that do not."""
    u = quantiles(ATOMS)
    normal, zero = torch.special.ndtri(u), torch.zeros(ATOMS, dtype=torch.float64)
    half, coin = torch.where(u < 0.5, 0.0, 1.0).double(), torch.where(u < 0.5, -1.0, 1.0).double()
    rare = torch.arange(ATOMS) == 0  # a probability of 1/30, which counts as little
    converging = [
        RandomSequence("the point 1/n", lambda n: zero[:1] + 1 / n, zero[:1]),
        RandomSequence("the point -1/n", lambda n: zero[:1] - 1 / n, zero[:1]),
        RandomSequence(
            "uniform on 1/n, ..., n/n", lambda n: torch.arange(1, n + 1).double()[:: max(1, n // 25)] / n, u
        ),
        RandomSequence("N(1/n, (1 + 1/n)²)", lambda n: normal * (1 + 1 / n) + 1 / n, normal),
        RandomSequence("-X for a coin X", lambda n: -coin, coin),
        RandomSequence("n with a small probability, else 0", lambda n: torch.where(rare, float(n), zero), zero),
    ]
    others = [
        RandomSequence("n with probability ½, else 0", lambda n: half * n, zero),
        RandomSequence("the sign (-1)^n", lambda n: zero[:1] + (-1.0) ** n, zero[:1] + 1),
        RandomSequence("a coin of 0 and 1, not of ±1", lambda n: half, coin),
        RandomSequence("N(0, 4)", lambda n: 2 * normal, normal),
        RandomSequence("N(0, 1), not the uniform", lambda n: normal, u),
    ]
    return converging, others


def test_functions() -> dict[str, list[Callable[[Tensor], Tensor]]]:
    """Bounded: Lipschitz ones, and ones that are continuous only."""
    bumps = [lambda x, a=a: (1 - (x - a).abs()).clamp(min=0) for a in (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)]
    steps = [lambda x, a=a: (x - a).clamp(0, 1) for a in (-2.0, -1.0, 0.0, 1.0, 5.0)]
    rough = [lambda x, a=a: (x - a).abs().sqrt().clamp(max=1) for a in (-1.03, 0.37, 2.0)]
    return {
        "bounded Lipschitz functions": [*bumps, *steps, torch.cos],
        "bounded continuous functions": [*rough, torch.atan],
    }


def half_lines(limit: Float[Tensor, "m"]) -> list[float]:
    """Edges of (-∞, t]: at values of the limit, where it may have mass, and between them."""
    return [*limit[:: max(1, len(limit) // 6)].tolist(), -2.02, -1.01, -0.503, 0.011, 0.251, 0.507, 1.013, 2.021]


def tests_of_convergence(x: Float[Tensor, "k"], limit: Float[Tensor, "m"]) -> dict[str, bool]:
    """Whether each of the portmanteau theorem's tests calls `x` close to the limit."""
    passed = {name: float(weak_gap(x, limit, functions)) <= SMALL for name, functions in test_functions().items()}
    edges = torch.tensor(half_lines(limit), dtype=torch.float64)

    def probability(of: Tensor, event: Callable[[Tensor], Tensor]) -> float:
        return float(event(of).double().mean())

    closed = [lambda x, t=t: x <= t for t in edges] + [lambda x, t=t: x >= t for t in edges]
    closed += [lambda x, t=t: (x - t).abs() <= 0.3 for t in edges]
    passed["closed sets: limsup P[X_n in F] <= P[X in F]"] = all(
        probability(x, event) <= probability(limit, event) + SMALL for event in closed
    )
    passed["open sets: liminf P[X_n in G] >= P[X in G]"] = all(
        probability(x, lambda v, e=event: ~e(v)) >= probability(limit, lambda v, e=event: ~e(v)) - SMALL
        for event in closed
    )
    inside = [t for t in edges.tolist() if bool(((limit - t).abs() > 1e-9).all()) and away_from_jumps(limit, t)]
    passed["sets whose edge has probability 0"] = all(
        float(set_probability_gap(x, limit, lambda v, t=t: v <= t)) <= SMALL for t in inside
    )
    distance = prokhorov_distance(equal_weights(len(x)), equal_weights(len(limit)), between(x, limit)).output
    passed["the Lévy-Prokhorov distance"] = float(distance) <= SMALL
    return passed


def away_from_jumps(limit: Float[Tensor, "m"], t: float) -> bool:
    """Whether the limit has little mass within 0.01 of t: an edge on top of a jump is exempt."""
    return float(((limit - t).abs() < 0.01).double().mean()) <= 1 / ATOMS


def accepted(sequence: RandomSequence) -> dict[str, bool]:
    """Whether each test calls X_n close to the limit for both of two successive n: an alternating one is at every
    second."""
    both = [tests_of_convergence(sequence.values(n), sequence.limit) for n in (200, 201)]
    return {name: both[0][name] and both[1][name] for name in both[0]}


@claim(
    "D5-26",
    "the tests of the portmanteau theorem agree: bounded continuous and Lipschitz functions, closed, open and edgeless "
    "sets and the Lévy-Prokhorov distance accept six sequences and refuse five",
    not_shown="limits as n → ∞ and all functions and sets: n = 200 and 201, on the line, 16 functions, half-lines "
    "and intervals",
)
def tests_of_convergence_agree(generator: torch.Generator) -> Evidence:
    wrong, cases = [], 0
    converging, others = sequences()
    for sequence in (*converging, *others):
        for name, passed in accepted(sequence).items():
            cases += 1
            if passed is not any(sequence is each for each in converging):
                wrong.append(f"{sequence.name}: {name}")
    # Functions that are not bounded, and sets with mass on the edge, are exempt for a reason.
    rare, point = converging[5], converging[0]
    unbounded = [float(weak_gap(rare.values(n), rare.limit, [lambda x: x])) for n in (200, 2000)]
    charged = float(set_probability_gap(point.values(200), point.limit, lambda x: x <= 0))
    if not (unbounded[1] > 9 * unbounded[0] > 9 and charged == 1):
        wrong.append("x itself, or the edge 0 of the point 1/n, would not be needed to be exempt")
    shown = "; ".join(wrong[:3])
    return Evidence("tests that judge a sequence wrongly", len(wrong), 0, "exact: a count", cases, "==", shown)


@claim(
    "D5-26",
    "each test bounds the next: |E f(X) - E f(Y)| ≤ d (L + osc f), P[X in F] ≤ P[Y in F^d] + d, and below the distance "
    "d some f = (1 - dist(x, F)/ε)⁺ tells X from Y by more than ε",
    not_shown="metric spaces that are not finite: six random points of the plane, with all their sets",
)
def tests_bound_each_other(generator: torch.Generator) -> Evidence:
    worst, cases, n = 0.0, 12, 6
    events = (torch.arange(1, 2**n)[:, None] >> torch.arange(n) & 1).bool()  # every set but the empty one
    for _ in range(cases):
        points = torch.rand(n, 2, generator=generator, dtype=torch.float64)
        apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
        x, y = (torch.randint(n, (24,), generator=generator) for _ in range(2))  # equally probable values, as indices
        p, q = (torch.bincount(each, minlength=n).double() / 24 for each in (x, y))
        d = float(prokhorov_distance(p, q, apart).output)
        to_set = torch.where(events[:, None], apart, math.inf).amin(dim=2)  # (sets, points)
        near = (to_set <= d + roundings(8)).double()
        worst = max(worst, float((events.double() @ p - near @ q).max()) - d)
        heights = torch.randn(n, generator=generator, dtype=torch.float64)
        slopes = (heights[:, None] - heights).abs() / apart.clamp(min=1e-12)
        oscillation = float(heights.max() - heights.min())
        found = float(weak_gap(x, y, [lambda i, heights=heights: heights[i]]))
        worst = max(worst, found - d * (float(slopes.max()) + oscillation))
        if d > 0:
            epsilon = 0.999 * d
            tents = (1 - to_set / epsilon).clamp(min=0)
            told = float(weak_gap(x, y, [lambda i, tent=tent: tent[i] for tent in tents]))
            worst = max(worst, epsilon - told)
    return Evidence("largest violation of a bound", worst, roundings(64), "64 float64 roundings", 3 * cases)
