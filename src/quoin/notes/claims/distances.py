"""Distances between distributions: which are metrics, what total variation is, and which way round a cross-entropy
goes."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    distribution_cross_entropy,
    kl_divergence,
    lp_distance,
    lp_distance_definition,
    total_variation_distance,
    total_variation_distance_definition,
)
from quoin.tensor import one_hot

CASES = 100


def random_distributions(
    count: int, generator: torch.Generator, *, positive: bool = False
) -> Float[Tensor, "{count} n"]:
    """`count` distributions on the same few outcomes; unless `positive`, some outcomes of some distributions are
    impossible."""
    weights = torch.rand(count, randint(2, 8, generator), generator=generator, dtype=torch.float64) + 0.01
    if not positive:
        weights = weights * (torch.rand(weights.shape, generator=generator) < 0.7)
        weights[:, 0] += (weights.sum(dim=-1) == 0).double()
    return weights / weights.sum(dim=-1, keepdim=True)


def away_from_a_metric(
    distance: Callable[[Tensor, Tensor], Tensor], p: Float[Tensor, "n"], q: Float[Tensor, "n"], r: Float[Tensor, "n"]
) -> float:
    """How far the axioms are missed: zero iff equal, symmetry, triangle inequality; infinity where the first one is."""
    if not (distance(p, p) == 0 and (distance(p, q) > 0 or torch.equal(p, q))):
        return math.inf
    asymmetry = float((distance(p, q) - distance(q, p)).abs())
    return max(
        asymmetry,
        *(float(distance(a, b) - distance(a, c) - distance(c, b)) for a, b, c in ((p, q, r), (q, r, p), (r, p, q))),
    )


@claim(
    "D1.4-3",
    "for every order of at least 1 the L^p distance of distributions is a metric: zero iff equal, symmetric, with "
    "triangle inequality",
)
def lp_distance_is_a_metric(generator: torch.Generator) -> Evidence:
    worst, orders = 0.0, (1.0, 1.5, 2.0, 3.0, 10.0, math.inf)
    for _ in range(CASES):
        distributions = random_distributions(3, generator)
        for order in orders:
            for form in (lp_distance_definition, lp_distance):
                worst = max(
                    worst, away_from_a_metric(lambda a, b, form=form, order=order: form(a, b, order), *distributions)
                )
    source = "16 float64 roundings beyond the axioms"
    return Evidence("largest violation of an axiom", worst, roundings(16), source, 2 * len(orders) * CASES)


@claim(
    "D1.4-5",
    "total variation, the largest difference over all events, is half the L¹ distance, reached at {P ≥ Q}, and a "
    "metric",
)
def total_variation_is_half_of_l1(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p, q, r = random_distributions(3, generator)
        event = p >= q
        tried = total_variation_distance_definition(p, q)
        for value in (
            tried.output,
            (p[event].sum() - q[event].sum()),
            (p - q)[tried.event].sum().abs(),
            total_variation_distance(p, q),
        ):
            worst = max(worst, gap(value, (p - q).abs().sum() / 2))
        worst = max(worst, away_from_a_metric(total_variation_distance, p, q, r))
    return Evidence("largest |TV - half L¹| or breach of an axiom", worst, roundings(16), "16 float64 roundings", CASES)


@claim(
    "D1.4-14",
    "if Q is one-hot, KL(P‖Q) is finite for P = Q alone; with the one-hot distribution in P's place it is always "
    "finite for Q > 0",
)
def one_hot_belongs_first(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        p = random_distributions(1, generator, positive=True)[0]
        n, hot = len(p), randint(0, len(p) - 1, generator)
        q = one_hot(torch.tensor(hot), n, dtype=torch.float64)
        nearly = q.clone()
        nearly[hot], nearly[hot - 1] = 1 - 1e-12, 1e-12
        others = [one_hot(torch.tensor(index), n, dtype=torch.float64) for index in range(n) if index != hot]
        wrong += sum(not math.isinf(float(kl_divergence(distribution, q))) for distribution in [p, nearly, *others])
        wrong += float(kl_divergence(q, q)) != 0
        wrong += abs(float(kl_divergence(q, p)) + math.log(float(p[hot]))) > roundings(16)
    return Evidence("cases that go the other way", wrong, 0, "exact: a count; -log q_i to 16 roundings", CASES, "==")


@claim("D1.4-16", "KL(P‖Q) = CE(P, Q) - H(P), so both have the same gradient in Q, which vanishes at Q = P")
def cross_entropy_and_kl_have_one_minimiser(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_distributions(1, generator)[0]
        scores = torch.randn(len(p), generator=generator, dtype=torch.float64, requires_grad=True)
        q = scores.softmax(dim=-1)
        worst = max(
            worst, gap(kl_divergence(p, q), distribution_cross_entropy(p, q) - distribution_cross_entropy(p, p))
        )
        gradients = [
            torch.autograd.grad(loss(p, scores.softmax(dim=-1)), scores)[0]
            for loss in (kl_divergence, distribution_cross_entropy)
        ]
        worst = max(worst, gap(gradients[0], gradients[1]), gap(gradients[0], q - p))
        worst = max(worst, 0.0 if float(kl_divergence(p, q.detach())) > float(kl_divergence(p, p)) else math.inf)
    return Evidence(
        "largest difference of values and gradients, gradient - (q - p)", worst, roundings(64), "64 roundings", CASES
    )
