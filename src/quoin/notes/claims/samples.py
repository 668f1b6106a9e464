"""Sample quality: what a learnt distribution tends to, and what the metrics are where the distributions are known."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.metrics import density_and_coverage
from quoin.models import GaussianKDE
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    kl_divergence,
    rbf_mixture_kernel,
    squared_frechet_definition,
    squared_frechet_of_samples,
    squared_mmd,
)
from quoin.tensor import kernel_matrix

CASES = 20
LOG_LEVEL = math.log(2e7)  # ln of two over the probability, one in ten million, that a bound below is broken by luck


@claim(
    "D5.2-5",
    "a distribution learnt from samples of Q converges to Q as their number grows, and so do new examples that are "
    "sampled from it",
    not_shown="the limit itself: finite numbers of samples",
)
def learnt_distribution_nears_the_true_one(generator: torch.Generator) -> Evidence:
    # Q is a mixture of two normal distributions, so that what smoothing expects of n samples, E q̂ = q * N(0, s²), is
    # known too.
    centers, stds, weights = (torch.tensor(each, dtype=torch.float64) for each in ([-1.5, 1.0], [0.5, 1.0], [0.4, 0.6]))
    grid = torch.linspace(-9, 9, 901, dtype=torch.float64)

    def density(extra: float) -> Tensor:  # that of Q, blurred by N(0, extra)
        wide = (stds**2 + extra).sqrt()
        return (
            weights * torch.exp(-(((grid[:, None] - centers) / wide) ** 2) / 2) / (wide * math.sqrt(2 * math.pi))
        ).sum(dim=-1)

    worst = -math.inf
    for n in (100, 600, 3600):
        noise = n**-0.2
        which = torch.multinomial(weights, n, replacement=True, generator=generator)
        model = GaussianKDE((centers[which] + stds[which] * normal(n, generator=generator)).unsqueeze(-1), noise)
        learnt = model.log_prob(grid.unsqueeze(-1)).exp()
        apart = torch.trapezoid((learnt - density(0.0)).abs(), grid)
        # E∫|q̂ - q| is at most ∫|E q̂ - q| + ∫ sd q̂; one sample more or less moves it by 2/n, so that it stays within
        # √(2 ln(2/δ)/n).
        bias = torch.trapezoid((density(noise**2) - density(0.0)).abs(), grid)
        squared = density(noise**2 / 2) / (2 * noise * math.sqrt(math.pi))  # E of a squared kernel
        deviation = torch.trapezoid(((squared - density(noise**2) ** 2).clamp(min=0) / n).sqrt(), grid)
        worst = max(worst, float(apart - bias - deviation) - math.sqrt(2 * LOG_LEVEL / n))
        samples = model.sample(n, generator=generator).squeeze(-1).sort().values
        below = torch.cumulative_trapezoid(learnt, grid)
        steps = torch.searchsorted(samples, grid[1:], right=True) / n
        # The Dvoretzky-Kiefer-Wolfowitz inequality, and a little for the trapezoidal rule.
        worst = max(worst, float((steps - below).abs().max()) - math.sqrt(LOG_LEVEL / (2 * n)) - 1e-3)
    return Evidence(
        "what ∫|q̂ - q| or the samples exceed their bounds by", worst, 0.0, "bounded differences, at 1e-7 each", 6
    )


def expected_mmd(
    estimates: Float[Tensor, "pairs pairs"], p: Float[Tensor, "n"], q: Float[Tensor, "n"]
) -> Float[Tensor, ""]:
    """E of the estimate from two examples of each distribution, over all such samples: `estimates` has a row and a
    column for each."""
    return torch.outer(p, p).flatten() @ estimates @ torch.outer(q, q).flatten()


@claim(
    "D5.2-9",
    "the expected MMD² of samples is (p - q)ᵀK(p - q): 0 for equal distributions only, t² as large at a fraction t "
    "of the way to q",
    not_shown="kernels other than those tried",
)
def mmd_is_zero_for_equal_distributions_only(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 4
    for _ in range(cases):
        points, width = normal(3, 2, generator=generator), 0.5 + float(torch.rand((), generator=generator))
        p, q = normal(2, 3, generator=generator).softmax(dim=-1)
        kernel = kernel_matrix(rbf_mixture_kernel([width, 2 * width]), points)
        every = [points[list(rows)] for rows in itertools.product(range(3), repeat=2)]
        estimates = torch.stack([torch.stack([squared_mmd(x, y, [width, 2 * width]) for y in every]) for x in every])
        whole, half = expected_mmd(estimates, p, q), expected_mmd(estimates, p, (p + q) / 2)
        worst = max(
            worst,
            gap(whole, (p - q) @ kernel @ (p - q)),
            gap(half, whole / 4),
            abs(float(expected_mmd(estimates, p, p))),
        )
        # That the distributions differ must be seen; so it is by the divergence, which is convex: half the way costs
        # less than half.
        if not (float(whole) > 1e-9 and float(kl_divergence(p, q)) > 2 * float(kl_divergence(p, (p + q) / 2)) > 0):
            worst = math.inf
    return Evidence(
        "largest error of the expected estimate", worst, roundings(5000), "5,000 float64 roundings", 3 * cases
    )


@claim(
    "D5.2-9",
    "the Fréchet distance of normal distributions is what the cheapest pairing of them costs, E|X - Y|²; of "
    "commuting ones Σ(√λ - √σ)²",
)
def frechet_is_the_cheapest_pairing(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d = randint(1, 4, generator)
        roots = [normal(d, d, generator=generator) + 2 * torch.eye(d) for _ in range(2)]
        (p, q), (mean_p, mean_q) = (root @ root.mT for root in roots), normal(2, d, generator=generator)
        ours = squared_frechet_definition(mean_p, p, mean_q, q)
        fixed = (mean_p - mean_q).square().sum() + torch.trace(p + q)
        # Any pairing is X = A u, Y = B v, Cov(u, v) = C with |C| <= 1: it costs `fixed` less 2 tr(A C Bᵀ), and the
        # polar C is the best.
        left, _, right = torch.linalg.svd(roots[0].mT @ roots[1])
        worst = max(worst, gap(ours, fixed - 2 * torch.trace(roots[0] @ (left @ right) @ roots[1].mT)))
        for _ in range(10):
            tried = normal(d, d, generator=generator)
            cost = fixed - 2 * torch.trace(roots[0] @ (tried / torch.linalg.matrix_norm(tried, ord=2)) @ roots[1].mT)
            worst = max(worst, float(ours - cost))
        axes, (first, second) = (
            torch.linalg.qr(normal(d, d, generator=generator)).Q,
            normal(2, d, generator=generator).square(),
        )
        commuting = squared_frechet_definition(
            mean_p, axes @ first.diag() @ axes.mT, mean_p, axes @ second.diag() @ axes.mT
        )
        worst = max(worst, gap(commuting, (first.sqrt() - second.sqrt()).square().sum()))
        sample = normal(randint(2, 9, generator), d, generator=generator)
        shifted = squared_frechet_of_samples(sample, 3 * sample + mean_q)  # three times as wide, about 3 mean + mean_q
        wide = 4 * sample.var(dim=0).sum() + (2 * sample.mean(dim=0) + mean_q).square().sum()
        worst = max(worst, gap(shifted, wide))
    return Evidence(
        "largest difference, or what a pairing undercuts it by",
        worst,
        1e-6,
        "a root of rounding at eigenvalues near 0",
        13 * CASES,
    )


@claim(
    "D5.2-9",
    "samples with the distribution of the real examples have E density = 1 and E coverage = 1 - C(n-1, k)/C(n+m-1, k)",
)
def coverage_of_equal_distributions(generator: torch.Generator) -> Evidence:
    trials, n, m, k = 3000, 10, 8, 2
    densities, coverages = [], []
    for trial in range(trials):
        d = 1 + trial % 3
        both = normal(n + m, d, generator=generator).exp() if trial % 2 else normal(n + m, d, generator=generator)
        found = density_and_coverage(both[:n], both[n:], k)
        densities.append(found.density)
        coverages.append(found.coverage)
    off = abs(sum(coverages) / trials - (1 - math.comb(n - 1, k) / math.comb(n + m - 1, k)))
    dense = abs(sum(densities) / trials - 1) * k / n  # a density is at most n/k
    return Evidence(
        "largest error of the mean, in its range",
        max(off, dense),
        math.sqrt(LOG_LEVEL / (2 * trials)),
        "Hoeffding at 1e-7",
        trials,
    )
