"""The shape of relative entropy and cross-entropy: no metric, jointly convex, locally a square; and what its least
values are."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from quoin.info import (
    distribution_cross_entropy,
    entropy,
    fisher_information,
    fisher_information_definition,
    kl_divergence,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.distances import random_distributions
from quoin.notes.claims.information import BATCH, CASES, FEW, ONE_BY_ONE, ROUNDS, pinsker
from quoin.notes.claims.relative_entropy import distribution
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings
from quoin.tensor import one_hot


@claim(
    "D1.4-7",
    "KL breaks the triangle inequality: for Bernoulli distributions .5, .25, .1 the way round is .236, the "
    "straight one .511",
)
def no_triangle_inequality(generator: torch.Generator) -> Evidence:
    p, q, r = distribution(0.5, 0.5), distribution(0.25, 0.75), distribution(0.1, 0.9)
    straight, round_about = kl_divergence(p, r), kl_divergence(p, q) + kl_divergence(q, r)
    by_hand = 0.5 * math.log(4 / 3) + 0.25 * math.log(2.5) + 0.75 * math.log(5 / 6)
    off = max(abs(float(straight) - 0.5 * math.log(25 / 9)), abs(float(round_about) - by_hand))
    off = off if float(straight) > 2 * float(round_about) else math.inf
    return Evidence("largest distance from the values by hand", off, roundings(8), "8 float64 roundings", 2)


@claim("D1.4-12", "CE(p, q) ≥ H(p) ≥ 0, equal iff p = q; not a metric, for CE(p, p) = H(p) is 0 for one-hot p only")
def cross_entropy_is_no_metric(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        p, q = random_distributions(2 * BATCH, generator).chunk(2)
        worst = max(
            worst,
            excess(pinsker(p, q) + entropy(p), distribution_cross_entropy(p, q)),
            gap(distribution_cross_entropy(p, p), entropy(p)),
        )
        # H(p) >= 1 - max p: positive unless p is one-hot, where it is nothing.
        worst = max(worst, excess(1 - p.amax(dim=-1), distribution_cross_entropy(p, p)))
        certain = torch.eye(p.shape[-1], dtype=torch.float64)
        worst = max(worst, gap(distribution_cross_entropy(certain, certain), torch.zeros(())))
    return Evidence("largest violation of an inequality", worst, roundings(64), FEW, CASES)


def both_pairs(
    d: Float[Tensor, "*batch"], d_other: Float[Tensor, "*batch"], weight: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    return weight * d + (1 - weight) * d_other


def first_pair_twice(
    d: Float[Tensor, "*batch"], d_other: Float[Tensor, "*batch"], weight: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    return weight * d + (1 - weight) * d


@claim(
    ("D1.4-17", "DE15"),
    "KL is jointly convex: D(λP + (1-λ)P′ ‖ λQ + (1-λ)Q′) ≤ λD(P‖Q) + (1-λ)D(P′‖Q′), the second pair being the "
    "primed one",
    right=both_pairs,
    printed=first_pair_twice,
    not_shown="spaces that are not finite (see the claim for densities)",
)
def jointly_convex(form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    even, half = distribution(0.5, 0.5), torch.tensor(0.5, dtype=torch.float64)
    mixes = [(even, even, distribution(0.9, 0.1), distribution(0.1, 0.9), half)]
    for _ in range(ROUNDS):
        p, q, p_other, q_other = random_distributions(4 * BATCH, generator, positive=True).chunk(4)
        mixes.append((p, q, p_other, q_other, torch.rand(BATCH, generator=generator, dtype=torch.float64)))
    worst = -math.inf
    for p, q, p_other, q_other, weight in mixes:
        t = weight.unsqueeze(-1)
        mixed = kl_divergence(t * p + (1 - t) * p_other, t * q + (1 - t) * q_other)
        bound = form(kl_divergence(p, q), kl_divergence(p_other, q_other), weight)
        worst = max(worst, excess(mixed, bound))
    return Evidence("largest divergence of the mix less its bound", worst, roundings(64), FEW, CASES + 1)


# ---- least cross-entropy ----------------------------------------------------------------------------------------


@claim(
    "M23",
    "over all distributions Q, H(P, Q) is least at Q = P and finite only where Q covers P; H(Q, P) is least on P's "
    "most probable point",
)
def cross_entropy_two_ways(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        distributions = random_distributions(1 + BATCH, generator)
        p, others = distributions[0].expand(BATCH, -1), distributions[1:]
        forth, back = distribution_cross_entropy(p, others), distribution_cross_entropy(others, p)
        worst = max(worst, excess(distribution_cross_entropy(p, p) + pinsker(p, others), forth))
        covers = ((others > 0) | (p == 0)).all(dim=-1)
        worst = max(worst, 0.0 if torch.equal(forth.isfinite(), covers) else math.inf)
        # Backwards it is linear in Q, the mean of -log p_i: mass beyond the peak costs its fraction of what it is below
        # the peak.
        peak = one_hot(p[0].argmax(), p.shape[-1], dtype=torch.float64)
        least = distribution_cross_entropy(peak, p[0])
        second = p[0].sort().values[-2:][0]
        costs = (
            (1 - others @ peak) * (p[0].amax() / second).log()
            if second > 0
            else torch.zeros(BATCH, dtype=torch.float64)
        )
        worst = max(worst, excess(least + costs, back), gap(least, -p[0].amax().log()))
    return Evidence("largest violation of a bound", worst, roundings(64), FEW, CASES)


def mass_on_the_most_probable(p: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> bool:
    return not bool(q[p < p.amax()].any())


def one_point(p: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> bool:
    return mass_on_the_most_probable(p, q) and float(q.amax()) == 1


@claim(
    "ME7",
    "over Q, H(Q, P) is least for every distribution on the most probable points of P; a single point only if "
    "there is one such",
    right=mass_on_the_most_probable,
    printed=one_point,
)
def ties_stay_free(form: Callable[[Tensor, Tensor], bool], generator: torch.Generator) -> Evidence:
    wrong, tie = 0, distribution(0.4, 0.4, 0.2)
    pairs = [
        (tie, q)
        for q in (
            distribution(1, 0, 0),
            distribution(0.5, 0.5, 0),
            distribution(0.3, 0.7, 0),
            distribution(0.9, 0, 0.1),
            distribution(0, 0, 1),
        )
    ]
    for _ in range(ONE_BY_ONE):
        p, q = random_distributions(2, generator, positive=True)
        n, most_probable = len(p), randint(1, len(p), generator)
        p = torch.cat([p.amax().expand(most_probable), p[most_probable:]])
        on_top = torch.where(torch.arange(n) < most_probable, q, 0)
        pairs += [(p / p.sum(), q), (p / p.sum(), on_top / on_top.sum())]
    for p, q in pairs:
        least = float(distribution_cross_entropy(q, p)) <= -math.log(float(p.amax())) + roundings(64)
        wrong += least != form(p, q)
    source = f"exact: a count, of values to {FEW}"
    return Evidence(
        "distributions that are a minimiser and should not be, or the reverse", wrong, 0, source, len(pairs), "=="
    )


# ---- near the diagonal ------------------------------------------------------------------------------------------


@claim(
    "D1.4-18",
    "D(p_θ ‖ p_{θ+δ}) = ½ δᵀF(θ)δ + O(|δ|³): its ratio to the square tends to 1, F being the Fisher information",
)
def locally_a_square(generator: torch.Generator) -> Evidence:
    """For tables softmax(θ) the ratio is between e^-r and e^r, r = max δ - min δ.

    D is half the variance of δ under p_{θ+sδ} for some s in [0, 1], and moving s changes the variance, by its third
    moment, at most with the factor r. For N(μ, σ²) with δ in μ alone the divergence is the square itself.
    """
    worst, cases = 0.0, 100
    for _ in range(cases):
        theta, direction = torch.randn(2, randint(2, 6, generator), generator=generator, dtype=torch.float64)
        fisher = fisher_information_definition(lambda scores: scores.softmax(-1), theta)
        for size in (1.0, 0.1, 0.01, 0.001):
            delta = size * direction
            ratio = kl_divergence(theta.softmax(-1), (theta + delta).softmax(-1)) / (delta @ fisher @ delta / 2)
            worst = max(worst, excess(ratio.log().abs() / (delta.max() - delta.min()), torch.zeros(())))
        mean, std = theta[:2].exp()
        normal = fisher_information(lambda given: Normal(given[0], given[1]), torch.stack([mean, std]))
        square = kl_divergence(Normal(mean, std), Normal(mean + direction[0], std))
        worst = max(worst, 0.0 if gap(square, normal[0, 0] * direction[0] ** 2 / 2) <= roundings(64) else math.inf)
    return Evidence(
        "largest |log ratio| over the range of δ", worst, 1.0, "the third moment of a bounded variable", 5 * cases
    )
