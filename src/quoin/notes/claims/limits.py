"""Limits of random variables: which mode of convergence implies which, the strong law of large numbers,
the central limit theorem, and a metric for distributions."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import excess, gap, max, min, randint, roundings
from quoin.prob import (
    exceedance,
    iid_sample,
    iid_sum_distribution,
    kolmogorov_distance,
    lp_error,
    prokhorov_distance,
    prokhorov_distance_definition,
    running_means,
    scaled_sums,
    tail_exceedance,
    typewriter,
    typewriter_interval,
    weak_gap,
)

CASES = 30
BERRY_ESSEEN = 0.4748  # sup |F_n - Φ| <= this · E|X|³ / (σ³ √n), whatever the distribution (Shevtsova, 2011)
SPACE = 2520  # equally probable ω = (i + ½) / 2520; 2 to 10 equal intervals of [0, 1) divide them exactly


def omegas(count: int = SPACE) -> Float[Tensor, "n"]:
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def between(x: Float[Tensor, "n"], y: Float[Tensor, "m"]) -> Float[Tensor, "n m"]:
    return (x.unsqueeze(-1) - y).abs()


def equal_weights(count: int) -> Float[Tensor, "n"]:
    return torch.full((count,), 1 / count, dtype=torch.float64)


def normal_cdf(deviation: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.special.ndtr(x / deviation)


@claim(
    "D5-30",
    "almost sure gives in probability gives in distribution, L^p gives L^q (p ≥ q) gives in probability; none the "
    "other way",
    not_shown="limits as n → ∞: the inequality behind each implication on finite spaces, and one counterexample to "
    "each converse",
)
def modes_imply_each_other(generator: torch.Generator) -> Evidence:
    worst = -math.inf
    for _ in range(CASES):  # each implication is an inequality, and these hold at each n on every finite space
        sequence = torch.randn(8, 6, generator=generator, dtype=torch.float64) / torch.arange(1, 7)
        limit = torch.randn(8, generator=generator, dtype=torch.float64) / 4
        epsilon = float(torch.rand((), generator=generator)) + 0.05
        p = 1 + 3 * float(torch.rand((), generator=generator))
        q = 1 + (p - 1) * float(torch.rand((), generator=generator))
        often = exceedance(sequence, limit, epsilon)
        worst = max(worst, excess(often, tail_exceedance(sequence, limit, epsilon)))
        worst = max(worst, excess(often, lp_error(sequence, limit, p) / epsilon**p))  # Markov's inequality
        worst = max(worst, excess(lp_error(sequence, limit, q) ** (1 / q), lp_error(sequence, limit, p) ** (1 / p)))
        n = randint(
            0, 5, generator
        )  # where P[|X_n - X| > ε] <= ε, the two are a coupling that shows their distributions to be within ε
        level = min(e for e in torch.linspace(0.02, 1, 50).tolist() if exceedance(sequence, limit, e)[n] <= e)
        distance = prokhorov_distance(equal_weights(8), equal_weights(8), between(sequence[:, n], limit)).output
        worst = max(worst, float(distance) - level)
    if not all(strict()):
        worst = math.inf
    return Evidence(
        "largest violation of an inequality, with four counterexamples the other way",
        worst,
        roundings(64),
        "rounding",
        CASES,
    )


def strict() -> list[bool]:
    """Counterexamples to the converse implications, on the space of SPACE points and exact there."""
    omega, n = omegas(), torch.arange(1, 129)
    zero = torch.zeros_like(omega)
    first = (omega.unsqueeze(-1) * n < 1).double()  # the indicator of [0, 1/n)
    sweeping = typewriter(torch.arange(1, 55), omega.unsqueeze(-1))  # two to ten intervals
    coin = torch.where(omega < 0.5, 1.0, -1.0).double()
    spike = {power: first * n.double() ** power for power in (0.5, 1)}
    return [
        # in probability and in L¹, and at no ω does it stay at the limit
        float(exceedance(sweeping, zero, 0.5)[-1]) <= 0.1 + 1e-12
        and float(tail_exceedance(sweeping, zero, 0.5)[-10]) == 1,
        # almost surely, not in L¹: n on [0, 1/n)
        float(tail_exceedance(spike[1], zero, 0.5)[-1]) < 0.01 and float(lp_error(spike[1], zero, 1)[-1]) > 0.9,
        # in L¹, not in L²: √n on [0, 1/n)
        float(lp_error(spike[0.5], zero, 1)[-1]) < 0.1 and float(lp_error(spike[0.5], zero, 2)[-1]) > 0.9,
        # in distribution, not in probability: always -X for a symmetric X
        float(weak_gap(-coin, coin, [torch.cos, torch.tanh])) < 1e-12
        and float(exceedance(-coin.unsqueeze(-1), coin, 1.0)) == 1,
    ]


def for_every_epsilon(far: Callable[[float], float]) -> bool:
    return all(far(epsilon) < 0.02 for epsilon in (0.01, 0.1, 0.5, 2.0))


def for_one_epsilon(far: Callable[[float], float]) -> bool:
    return far(2.0) < 0.02


@claim(
    "DE47",
    "in probability means P[|X_n - X| > ε] → 0 for all ε > 0, not for one",
    right=for_every_epsilon,
    printed=for_one_epsilon,
)
def one_epsilon_is_not_enough(form: Callable[[Callable[[float], float]], bool], generator: torch.Generator) -> Evidence:
    omega = omegas()
    zero, n = torch.zeros_like(omega), torch.arange(1, 129)
    sequences = {
        "X_n = 1": (torch.ones(SPACE, 128, dtype=torch.float64), False),
        "X_n = 1/n": ((1 / n.double()).expand(SPACE, -1), True),
        "X_n = n on [0, 1/n)": (n * (omega.unsqueeze(-1) * n < 1).double(), True),
        "X_n = 3": (torch.full((SPACE, 128), 3.0, dtype=torch.float64), False),
    }
    wrong = [
        name
        for name, (sequence, converges) in sequences.items()
        if form(lambda epsilon, sequence=sequence: float(exceedance(sequence, zero, epsilon)[-1])) is not converges
    ]
    shown = f"{wrong[0]} would go to 0" if wrong else ""
    return Evidence(
        "sequences classified wrongly", len(wrong), 0, "exact: a count", len(sequences), "==", counterexample=shown
    )


@claim(
    "D5-31",
    "X_n of the typewriter goes to 0 in probability and in every L^p, at rate 1/m, yet every ω < 1 gives a 1 in "
    "every block",
    not_shown="blocks beyond the 59th",
)
def typewriter_never_settles(generator: torch.Generator) -> Evidence:
    omega, worst = omegas(), 0.0
    zero = torch.zeros_like(omega)
    for m in range(2, 11):  # blocks into whose intervals the space divides exactly
        n = torch.arange(m * (m - 1) // 2, m * (m + 1) // 2)
        x = typewriter(n, omega.unsqueeze(-1))
        expected = torch.full((m,), 1 / m, dtype=torch.float64)
        for measured in (exceedance(x, zero, 0.5), lp_error(x, zero, 1), lp_error(x, zero, 3.5)):
            worst = max(worst, gap(measured, expected))
        worst = max(worst, gap(x.sum(dim=1), torch.ones_like(omega)))
        if not (
            bool((typewriter_interval(n).parts == m).all())
            and typewriter_interval(n).part_index.tolist() == list(range(m))
        ):
            worst = math.inf
    sampled_omega = torch.rand(200, 1, generator=generator, dtype=torch.float64)
    blocks = typewriter(torch.arange(1, 1770), sampled_omega)  # blocks 2 to 59
    worst = max(worst, gap(blocks.sum(dim=1), torch.full((200,), 58.0).double()))
    return Evidence(
        "largest error of P[X_n = 1] = 1/m and of one 1 in each block",
        worst,
        roundings(16),
        "16 float64 roundings",
        9 + 200,
    )


def in_probability_suffices(in_probability: bool, almost_surely: bool) -> bool:
    return almost_surely or not in_probability


def in_probability_does_not_suffice(in_probability: bool, almost_surely: bool) -> bool:
    """The negation, whose witness is one sequence that has the first property and lacks the second."""
    return in_probability and not almost_surely


@claim(
    "DE48",
    "convergence in probability does not imply almost sure convergence: at ω = 0.31 the typewriter is 1 in each of "
    "58 blocks",
    right=in_probability_does_not_suffice,
    printed=in_probability_suffices,
)
def typewriter_is_the_counterexample(form: Callable[[bool, bool], bool], generator: torch.Generator) -> Evidence:
    n = torch.arange(1, 1770)
    omega = torch.cat(
        [torch.tensor([0.31], dtype=torch.float64), torch.rand(999, generator=generator, dtype=torch.float64)]
    )
    x, zero = typewriter(n, omega.unsqueeze(-1)), torch.zeros_like(omega)
    # Of 1000 samples a fraction of 1/59 falls into an interval; a fraction of 0.06 has probability below 1e-12,
    # over 59 intervals below 1e-10.
    in_probability = float(exceedance(x, zero, 0.5)[-59:].max()) < 0.06
    almost_surely = not float(tail_exceedance(x, zero, 0.5)[-59]) >= 1 or int(x[0].sum()) != 58
    holds = form(in_probability, almost_surely)
    shown = (
        ""
        if holds
        else f"P[X_n = 1] = 1/59 in the last block, and every ω meets a 1 there; ω = 0.31 met {int(x[0].sum())}"
    )
    return Evidence(
        "whether the sentence fails of the typewriter",
        float(not holds),
        0,
        "exact but for a bound of 1e-10",
        1,
        "==",
        shown,
    )


@claim(
    "D5-33",
    "running means go to E X almost surely where E|X| is finite; those of Cauchy variables, which have no mean, "
    "never settle",
    not_shown="the limit itself: times up to 3000, with a bound for all later ones where X is bounded",
)
def means_settle_if_there_is_a_mean(generator: torch.Generator) -> Evidence:
    paths, times, epsilon = 200, 3000, 0.1
    start = times // 2
    uniform = running_means(iid_sample(lambda u: u, paths, times, generator=generator))
    # Hoeffding and a union over all later times, even those not sampled: 200 · Σ_{m >= 1500} 2 e^{-2 m ε²} < 2e-9.
    settled = float(tail_exceedance(uniform, torch.full((paths,), 0.5).double(), epsilon)[start])
    early = float(exceedance(uniform, torch.full((paths,), 0.5).double(), epsilon)[0])  # 0.8 at the first sample
    cauchy = running_means(iid_sample(torch.distributions.Cauchy(0.0, 1.0).icdf, paths, times, generator=generator))
    # Each mean of Cauchy variables is Cauchy: it is beyond 1/2 with probability 0.705, and 200 paths give less than
    # half of them with probability below 2e-8.
    restless = float(exceedance(cauchy, torch.zeros(paths, dtype=torch.float64), 0.5)[-1])
    worst = settled if early > 0.5 and restless > 0.5 else math.inf
    quantity = (
        "fraction of paths ever 0.1 from E X after 1500 samples, most being so at first; most Cauchy means "
        "are 0.5 from 0"
    )
    return Evidence(quantity, worst, 0.0, "Hoeffding and binomial tails, below 1e-7 together", paths)


def symmetric_pareto(u: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The quantile function of ±|X| with P[|X| > x] = x^(-3/2) for x >= 1: E X = 0, E|X| = 3, and E X² is
    infinite."""
    side = (u - 0.5).sign()
    return side * (1 - (2 * u - 1).abs()).clamp(min=1e-300) ** (-2 / 3)


@claim(
    "D5-33",
    "a finite mean is enough: means of variables with P[|X| > x] = x^(-3/2) settle too, slowly, though E X² over "
    "|X| ≤ c grows as 3(√c - 1) and the variance is infinite",
    not_shown="almost sure convergence over all times: up to 8000, where a bound for all later ones is 0.15",
)
def means_settle_without_a_variance(generator: torch.Generator) -> Evidence:
    paths, times, epsilon, worst = 200, 8000, 2.0, 0.0
    x = iid_sample(symmetric_pareto, paths, times, generator=generator)
    # X² of |X| <= c is at most c² and has a mean square below 0.6 c^2.5: by Bernstein's inequality eight standard
    # deviations of the mean are exceeded once in 10^8.
    for c in (10.0, 100.0, 1000.0):
        found = float(torch.where(x.abs() <= c, x, 0).square().mean())
        worst = max(worst, abs(found - 3 * (math.sqrt(c) - 1)) / (8 * math.sqrt(0.6 * c**2.5 / x.numel())))
    # Over times n to 2n: P[some |X| > 2n] + Kolmogorov's inequality for the rest is 2.83 / √n; over 2n to 4n, ... in
    # all 9.7 / √n, whatever comes later. Of 200 paths a fraction is beyond 3 / √200 of that once in 10^8 (Hoeffding).
    settled = tail_exceedance(running_means(x), torch.zeros(paths, dtype=torch.float64), epsilon)
    for start in (1000, 4000):
        worst = max(worst, float(settled[start]) / (9.7 / math.sqrt(start) + 3 / math.sqrt(paths)))
    source = "Bernstein's and Hoeffding's inequality, below 1e-7; Kolmogorov's"
    return Evidence("largest of each measured number / its bound", worst, 1.0, source, paths)


@claim(
    "D5-34",
    "sums of n centred variables over √n go to N(0, E X²) in distribution, at most 0.4748 E|X|³/(σ³√n) away; "
    "Cauchy ones not",
    not_shown="the theorem for every X with a finite variance: lattice distributions of up to six values, n up to "
    "1024, with a rate that needs E|X|³",
)
def sums_become_normal(generator: torch.Generator) -> Evidence:
    worst, counts = 0.0, (1, 2, 4, 8, 16, 64, 256, 1024)
    for _ in range(10):
        k = randint(2, 6, generator)
        distribution = torch.rand(k, generator=generator, dtype=torch.float64) + 0.02
        distribution = distribution / distribution.sum()
        x = torch.arange(k, dtype=torch.float64)
        x = x - distribution @ x  # E X = 0
        variance, third = float(distribution @ x.square()), float(distribution @ x.abs() ** 3)
        distances = []
        for n in counts:
            sums = n * x[0] + torch.arange(n * (k - 1) + 1, dtype=torch.float64)  # every value of X_1 + ... + X_n
            exact = iid_sum_distribution(distribution, n)
            distances.append(
                float(kolmogorov_distance(sums / math.sqrt(n), exact / exact.sum(), normal_cdf(math.sqrt(variance))))
            )
            worst = max(worst, distances[-1] * math.sqrt(n) * variance**1.5 / (BERRY_ESSEEN * third))
        # A lattice distribution has jumps of 1/√(2πnσ²), and half of one is unavoidable: the convergence rate is no
        # better than 1/√n.
        if not 0.4 / math.sqrt(2 * math.pi * variance * counts[-1]) < distances[-1] < distances[0]:
            worst = math.inf
    # A sum of n Cauchy variables over √n is √n times one of them: beyond 3 standard deviations of any fixed normal more
    # and more often.
    heavy = scaled_sums(iid_sample(torch.distributions.Cauchy(0.0, 1.0).icdf, 400, 1000, generator=generator))[:, -1]
    away = [
        float(kolmogorov_distance(heavy, equal_weights(400), normal_cdf(deviation))) for deviation in (0.5, 2.0, 8.0)
    ]
    # N(0, 64) is 0.32 away from Cauchy(√1000), narrower ones more; 400 samples are within 0.14 of their
    # distribution but for 2 e^{-15.7} (Massart).
    if min(away) < 0.18:
        worst = math.inf
    source = "the Berry-Esseen theorem; Massart's bound for the Cauchy sample, below 1e-6"
    return Evidence(
        "largest distance to the normal as a fraction of its bound, exact distributions",
        worst,
        1.0,
        source,
        10 * len(counts),
    )


@claim(
    "D5-26c",
    "the Lévy-Prokhorov distance is a metric, by events or by couplings, min(a, 1) for points a apart; it goes to "
    "0 in distribution",
    not_shown="general separable metric spaces: finite sets of points in the plane",
)
def prokhorov_metrises_weak_convergence(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(12):
        points = 2 * torch.rand(6, 2, generator=generator, dtype=torch.float64)
        apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
        distributions = torch.rand(3, 6, generator=generator, dtype=torch.float64)
        p, q, r = distributions / distributions.sum(dim=-1, keepdim=True)
        found = prokhorov_distance(p, q, apart)
        worst = max(
            worst,
            gap(found.output, prokhorov_distance_definition(p, q, apart)),
            gap(found.output, prokhorov_distance(q, p, apart).output),
        )
        worst = max(
            worst, float(found.output - prokhorov_distance(p, r, apart).output - prokhorov_distance(r, q, apart).output)
        )
        worst = max(
            worst,
            float(prokhorov_distance(p, p, apart).output),
            gap(found.coupling.sum(dim=1), p),
            gap(found.coupling.sum(dim=0), q),
        )
        worst = max(worst, float(found.coupling[apart > found.output + 1e-12].sum() - found.output))
        a = 3 * float(torch.rand((), generator=generator))
        point = torch.ones(1, dtype=torch.float64)
        worst = max(
            worst,
            abs(float(prokhorov_distance(point, point, torch.tensor([[a]], dtype=torch.float64)).output) - min(a, 1)),
        )
    halves, uneven = torch.tensor([[0.5, 0.5], [0.3, 0.7]], dtype=torch.float64)
    worst = max(
        worst, abs(float(prokhorov_distance(halves, uneven, 1 - torch.eye(2, dtype=torch.float64)).output) - 0.2)
    )
    # The uniform distribution on {0, 1/n, ...} approaches that on a finer grid as 1/n, while total variation does not.
    for n in (4, 8, 16):
        grid, fine = torch.arange(n).double() / n, torch.arange(32).double() / 32
        if not float(prokhorov_distance(equal_weights(n), equal_weights(32), between(grid, fine)).output) <= 1 / n:
            worst = math.inf
    return Evidence(
        "largest error of an axiom, a value or a coupling", worst, roundings(64), "64 float64 roundings", 12
    )
