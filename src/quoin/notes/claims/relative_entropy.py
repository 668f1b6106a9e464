"""Relative entropy of tables: its sign, with the steps of the proofs, and where it is infinite. Its shape is in
divergence_shape.py."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Uniform

from quoin.info import (
    distribution_cross_entropy,
    entropy,
    is_absolutely_continuous,
    kl_divergence,
    radon_nikodym,
    self_information,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.distances import random_distributions
from quoin.notes.claims.information import BATCH, CASES, FEW, ONE_BY_ONE, ROUNDS, pinsker
from quoin.notes.claims.rounding import excess, gap, max, roundings


def distribution(*entries: float) -> Float[Tensor, "n"]:
    return torch.tensor(entries, dtype=torch.float64)


def continuous_pair(generator: torch.Generator) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
    """Batches of p and q with p << q, both with impossible outcomes."""
    p, q = random_distributions(2 * BATCH, generator).chunk(2)
    return p, (p + q) / 2


# ---- sign -------------------------------------------------------------------------------------------------------


@claim(
    "Z13.23",
    "D(P‖Q) ≥ 0, and 0 only if P = Q; each step of both proofs holds, by -log and by x log x",
    not_shown="infinite spaces: tables; the steps of the proof hold on each",
)
def never_negative(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        p, q = continuous_pair(generator)
        divergence, ratio = kl_divergence(p, q), radon_nikodym(p, q)
        by_log = self_information(
            (p * torch.where(p == 0, 0, q / p.clamp_min(1e-300))).sum(dim=-1).clamp_max(1)
        )  # -log E_P[q/p]
        by_phi = (q * x_log_x(ratio)).sum(dim=-1)  # E_Q φ(dP/dQ), at least φ(E_Q dP/dQ) = φ(1) = 0
        worst = max(worst, excess(by_log, divergence), excess(-by_log, torch.zeros(())))
        worst = max(
            worst, gap(by_phi, divergence), gap((q * ratio).sum(dim=-1), torch.ones(BATCH, dtype=torch.float64))
        )
        worst = max(worst, excess(pinsker(p, q), divergence), gap(kl_divergence(p, p), torch.zeros(())))
    return Evidence("largest violation of a step", worst, roundings(64), FEW, CASES)


def mass_where_p_has_some(p: Float[Tensor, "*batch n"], q: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return self_information(torch.where(p > 0, q, 0).sum(dim=-1).clamp_max(1))


def all_mass(p: Float[Tensor, "*batch n"], q: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return self_information(q.sum(dim=-1).clamp_max(1))


@claim(
    ("ME4", "ZE36"),
    "-log E_P[Q/P] = -log Σ_{P>0} Q, which is at least 0 and not always 0: Q may have mass where P has none",
    right=mass_where_p_has_some,
    printed=all_mass,
)
def jensens_last_step(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for p, q in [
        (distribution(1, 0), distribution(0.5, 0.5)),
        *(random_distributions(2, generator) for _ in range(ONE_BY_ONE)),
    ]:
        if not bool((q[p > 0] > 0).any()):
            continue  # E_P[Q/P] = 0: nothing to take the log of
        mean = sum(float(a) * (float(b) / float(a)) for a, b in zip(p, q) if a > 0)
        bound = form(p, q)
        worst = max(worst, gap(bound, torch.tensor(-math.log(mean), dtype=torch.float64)))
        worst = max(worst, excess(bound, kl_divergence(p, q)), excess(-bound, torch.zeros(())))
    return Evidence("largest |form + log E_P[Q/P]|, form - D(P‖Q), -form", worst, roundings(64), FEW, ONE_BY_ONE)


def x_log_x(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return x * torch.where(x == 0, 1, x).log()


def x_log_x_as_written(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return x * x.log()


@claim(
    "DE67",
    "φ(x) = x log x is needed at 0 too, where it is 0: D(P‖Q) = Σ_{q>0} q φ(p/q)",
    right=x_log_x,
    printed=x_log_x_as_written,
)
def divergence_by_x_log_x(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for p, q in [(distribution(1, 0), distribution(0.5, 0.5)), *(continuous_pair(generator) for _ in range(ROUNDS))]:
        worst = max(worst, gap((q * form(radon_nikodym(p, q))).sum(dim=-1), kl_divergence(p, q)))
    return Evidence("largest |Σ q φ(p/q) - D(P‖Q)|", worst, roundings(64), FEW, CASES + 1)


def flat_up_to_two(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return (x - 2).clamp_min(0)


@claim(
    "DE68",
    "that D = 0 only for P = Q needs φ strictly convex; convex is not enough",
    right=x_log_x,
    printed=flat_up_to_two,
)
def strictness_decides(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, one = -math.inf, torch.ones((), dtype=torch.float64)
    for p, q in [
        (distribution(0.6, 0.4), distribution(0.5, 0.5)),
        *(continuous_pair(generator) for _ in range(ROUNDS)),
    ]:
        above = (q * form(radon_nikodym(p, q))).sum(dim=-1) - form(one)
        worst = max(worst, excess(pinsker(p, q), above))
    return Evidence("largest ½‖p - q‖₁² - (Σ q φ(p/q) - φ(1))", worst, roundings(64), FEW, CASES + 1)


@claim("M18", "KL(P, Q) = H(P, Q) - H(P) = E_P ln(P/Q) ≥ 0")
def cross_entropy_less_entropy(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        p, q = continuous_pair(generator)
        divergence = kl_divergence(p, q)
        mean_log = (p * torch.where(p == 0, 1, radon_nikodym(p, q)).log()).sum(dim=-1)
        worst = max(
            worst,
            gap(divergence, distribution_cross_entropy(p, q) - entropy(p)),
            gap(divergence, mean_log),
            excess(-divergence, torch.zeros(())),
        )
    return Evidence("largest difference of the three, or -KL", worst, roundings(64), FEW, CASES)


@claim(
    "D6-5",
    "KL always has a meaning: E_P[(log dP/dQ)⁻] = E_Q[(r log r)⁻] ≤ 1/e, r = dP/dQ, a bound that is nearly reached",
    not_shown="infinite spaces (see the claim for densities)",
)
def negative_part_is_bounded(generator: torch.Generator) -> Evidence:
    worst, highest = 0.0, 0.0
    small = 1e-6
    nearly = (distribution(1 / math.e, 1 - 1 / math.e), distribution(1 - small, small))  # r = 1/e on almost all of Q
    for p, q in [nearly, *(continuous_pair(generator) for _ in range(ROUNDS))]:
        ratio = radon_nikodym(p, q)
        under_p = (p * torch.where(p == 0, 1, ratio).log().clamp_max(0).neg()).sum(dim=-1)
        under_q = (q * x_log_x(ratio).clamp_max(0).neg()).sum(dim=-1)
        worst = max(worst, gap(under_p, under_q), excess(under_p, torch.tensor(1 / math.e, dtype=torch.float64)))
        highest = max(highest, float(under_p.max()))
    worst = max(worst, 0.0 if highest > 1 / math.e - 1e-5 else math.inf)
    return Evidence("largest excess over 1/e, difference of the two means", worst, roundings(64), FEW, CASES + 1)


# ---- infinity ---------------------------------------------------------------------------------------------------


def with_every_convention(p: Float[Tensor, "*batch n"], q: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return kl_divergence(p, q)


def with_zero_over_zero_alone(p: Float[Tensor, "*batch n"], q: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return torch.where((p == 0) & (q == 0), 0, p * (p / q).log()).sum(dim=-1)


@claim(
    "DE66",
    "KL needs 0 log(0/q) = 0 and p log(p/0) = ∞ beside 0 log(0/0) = 0",
    right=with_every_convention,
    printed=with_zero_over_zero_alone,
)
def zeros_in_a_divergence(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    wrong, pairs = (
        0,
        [
            (distribution(0.5, 0.5, 0), distribution(0.25, 0.25, 0.5)),
            *(random_distributions(2, generator) for _ in range(ONE_BY_ONE)),
        ],
    )
    for p, q in pairs:
        terms = [(float(a), float(b)) for a, b in zip(p, q) if a > 0]  # one by one, over what P can do
        expected = math.inf if any(b == 0 for _, b in terms) else sum(a * math.log(a / b) for a, b in terms)
        value = float(form(p, q))
        wrong += not (value == expected or abs(value - expected) <= roundings(64))
    return Evidence("pairs whose divergence is another", wrong, 0, f"exact: a count; values to {FEW}", len(pairs), "==")


@claim("Z13.24", "on a finite set D(P‖Q) = ∞ iff some p_i > 0 has q_i = 0; on an infinite one it may be ∞ though P ≪ Q")
def infinite_where_mass_is_missed(generator: torch.Generator) -> Evidence:
    wrong, infinite = 0, 0
    for _ in range(ROUNDS):
        p, q = random_distributions(2 * BATCH, generator).chunk(2)
        missed = ((p > 0) & (q == 0)).any(dim=-1)
        wrong += int((kl_divergence(p, q).isinf() != missed).sum())
        infinite += int(missed.sum())
    # p_i ~ 1/i² against q_i ~ 2^-i: a decade more outcomes adds about (6/π²) ln 2 ln 10 = 0.97 each time, for ever.
    n_values = torch.arange(1, 1001, dtype=torch.float64)
    cut = [
        kl_divergence(p / p.sum(), q / q.sum())
        for n in (100, 1000)
        for p, q in [(n_values[:n] ** -2, 2 ** -n_values[:n])]
    ]
    wrong += not 0.8 < float(cut[1] - cut[0]) < 1.0
    wrong += not CASES // 4 < infinite < CASES  # both kinds occur
    return Evidence("cases that go the other way", wrong, 0, "exact: a count", CASES + 1, "==")


@claim(
    "D6-4",
    "P ≪ Q (every event that Q excludes, P excludes) is q_i = 0 ⇒ p_i = 0; for uniform distributions, one interval "
    "in the other",
    not_shown="measures in general: tables and uniform distributions",
)
def absolute_continuity(generator: torch.Generator) -> Evidence:
    wrong, cases = 0, 100
    for _ in range(cases):
        p, q = random_distributions(2, generator)
        n = len(p)
        events = (torch.arange(2**n).unsqueeze(-1) >> torch.arange(n) & 1).double()
        by_events = bool((((events @ q) > 0) | ((events @ p) == 0)).all())
        wrong += by_events != bool(is_absolutely_continuous(p, q))
    inner, outer = Uniform(distribution(0.0), distribution(1.0)), Uniform(distribution(0.0), distribution(2.0))
    wrong += abs(float(kl_divergence(inner, outer)) - math.log(2)) > roundings(4)
    wrong += float(kl_divergence(outer, inner)) != math.inf
    return Evidence("pairs on which the two disagree", wrong, 0, "exact: a count over all events", cases + 2, "==")


@claim(
    ("D6-3", "Z13.22"), "P = (½, ½, 0), Q = (¼, ¼, ½): D(P‖Q) = ln 2 and D(Q‖P) = ∞, so the divergence is not symmetric"
)
def two_ways_round(generator: torch.Generator) -> Evidence:
    p, q = distribution(0.5, 0.5, 0), distribution(0.25, 0.25, 0.5)
    off = abs(float(kl_divergence(p, q)) - math.log(2))
    off = off if float(kl_divergence(q, p)) == math.inf else math.inf
    # Finite both ways, and still two numbers: ½ ln 2 + ½ ln ⅔ one way, ¼ ln ½ + ¾ ln 3/2 the other.
    even, uneven = distribution(0.5, 0.5), distribution(0.25, 0.75)
    off = max(off, abs(float(kl_divergence(even, uneven)) - math.log(4 / 3) / 2))
    off = max(off, abs(float(kl_divergence(uneven, even)) - (math.log(0.5) + 3 * math.log(1.5)) / 4))
    return Evidence("largest distance from the values by hand", off, roundings(8), "8 float64 roundings", 4)
