"""What chains and walks compute, held against sums over all paths and sampled ones: matrices that change with time,
kernels, Brownian motion, and the reparametrised normal."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.models import DiagonalNormalNet, TriangularNormalNet
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.gaussians import random_distribution
from quoin.notes.claims.processes import random_rows
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import (
    BrownianMotion,
    GaussianTransition,
    InhomogeneousChain,
    KernelChain,
    MarkovChain,
    RandomWalk,
    chain_distribution_definition,
    check_stochastic,
    markov_gaps,
    markov_test,
)

CASES = 20
LEVEL = 6.5  # standard errors: beyond them once in 10^10


def path_sums(
    initial: Float[Tensor, "k"], transitions: Float[Tensor, "n k k"]
) -> tuple[Float[Tensor, "..."], list[tuple[int, ...]]]:
    """P of every path, multiplied out one factor after the other, and the paths."""
    paths = list(itertools.product(range(len(initial)), repeat=len(transitions) + 1))
    found = [
        float(initial[path[0]]) * math.prod(float(A[i, j]) for A, i, j in zip(transitions, path, path[1:]))
        for path in paths
    ]
    return torch.tensor(found, dtype=torch.float64), paths


@claim(
    "D5.1-7",
    "a chain of matrices A_0, ..., A_{n-1} has X_n ~ νA_0…A_{n-1}, in this order: the sum over all paths, which "
    "log_prob and the joint table give one by one",
)
def inhomogeneous_chain_is_the_sum_over_paths(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        k, n = randint(2, 3, generator), randint(1, 4, generator)
        initial, transitions = random_rows(k, generator=generator), random_rows(n, k, k, generator=generator)
        chain = InhomogeneousChain(initial, transitions)
        probabilities, paths = path_sums(initial, transitions)
        for steps in range(n + 1):  # X_steps, by summing over everything else
            at = torch.tensor([path[steps] for path in paths])
            stated = torch.zeros(k, dtype=torch.float64).index_add(0, at, probabilities)
            worst = max(
                worst,
                gap(chain.distribution(steps), stated),
                gap(chain_distribution_definition(initial, transitions[:steps]), stated),
            )
        worst = max(worst, gap(chain.joint_distribution(n).flatten(), probabilities))
        worst = max(worst, gap(chain.log_prob(torch.tensor(paths)).exp(), probabilities))
        worst = max(worst, gap(torch.stack([chain.transition_at(t) for t in range(n)]), transitions))
    return Evidence("largest |chain - sum over paths|", worst, roundings(32), "32 float64 roundings", CASES)


@claim(
    ("D5.1-5", "D5.1-2"),
    "paths are sampled as often as their probability says, by one matrix or one for each step; a matrix whose rows do "
    "not sum to 1 is refused; only the present counts",
)
def sampled_paths_follow_the_matrices(generator: torch.Generator) -> Evidence:
    worst, count = 0.0, 20_000
    for case in range(4):
        k, n = 2 + case % 2, 3
        initial = random_rows(k, generator=generator)
        transitions = random_rows(n, k, k, generator=generator)
        if case < 2:
            transitions = transitions[:1].expand(n, k, k)
        chain = MarkovChain(initial, transitions[0]) if case < 2 else InhomogeneousChain(initial, transitions)
        probabilities, _ = path_sums(initial, transitions)
        places = k ** torch.arange(n, -1, -1)
        codes = (chain.sample_paths(n, count, generator=generator) * places).sum(dim=1)
        seen = torch.bincount(codes, minlength=len(probabilities)).double() / count
        # A path of probability p comes count·p times, give or take its binomial deviation; one of probability 0 never.
        deviations = (probabilities * (1 - probabilities) / count).sqrt().clamp(min=1 / count)
        worst = max(worst, float(((seen - probabilities).abs() / deviations).max()) / LEVEL)
        worst = max(worst, math.inf if bool((seen[probabilities == 0] > 0).any()) else 0.0)
        # Of a joint table the test sees whether pasts differ about the future: of this one none does.
        gaps = [float(each.output) for each in markov_gaps(chain.joint_distribution(n))]
        worst = max(worst, *(each / 1e-9 for each in gaps))
        stirred = 0.1 + torch.rand(k, k, k, generator=generator, dtype=torch.float64)  # no structure at all
        worst = max(worst, 0.0 if float(markov_test(stirred / stirred.sum()).output) > 1e-6 else math.inf)
    wrong = torch.tensor([[0.5, 0.4], [0.2, 0.8]], dtype=torch.float64)
    for refused in (lambda: check_stochastic(wrong, "A"), lambda: MarkovChain(wrong[1], wrong)):
        try:
            refused()
            worst = math.inf
        except UserError:
            pass
    return Evidence("largest |frequency - probability| / 6.5 standard errors", worst, 1.0, "binomial tails, 1e-10", 4)


@claim(
    "D5.1-8",
    "a chain of a kernel A(x, ·): its paths have the density ν(x_0) Π A(x_t, x_{t+1}), and of Gaussian steps the joint "
    "normal moments: Cov(X_s, X_t) = Σ_0 + min(s, t) Σ",
)
def kernel_chain_has_the_joint_density(generator: torch.Generator) -> Evidence:
    worst, count, n = 0.0, 20_000, 3
    for _ in range(2):
        start, step = random_distribution(2, generator), random_distribution(2, generator).covariance
        chain = KernelChain(start, GaussianTransition(step))
        path = normal(5, n + 1, 2, generator=generator)
        stated = start.log_prob(path[:, 0])
        for t in range(n):  # N(y; x, Σ), written out
            away = path[:, t + 1] - path[:, t]
            square = (away @ torch.linalg.inv(step) * away).sum(dim=1)
            stated = stated - square / 2 - torch.logdet(step) / 2 - math.log(2 * math.pi)
        worst = max(worst, gap(chain.log_prob(path), stated) / roundings(1024))
        x = chain.sample_paths(n, count, generator=generator) - start.mean
        for s, t in itertools.product(range(n + 1), repeat=2):
            covariance = start.covariance + min(s, t) * step
            spread = [(start.covariance + time * step).diagonal() for time in (s, t)]
            deviations = ((spread[0][:, None] * spread[1] + covariance.square()) / count).sqrt()
            found = x[:, s].T @ x[:, t] / count
            worst = max(worst, float(((found - covariance) / deviations).abs().max()) / LEVEL)
    return Evidence("largest error / its bound", worst, 1.0, "rounding; 6.5 standard errors", 2 * (n + 1) ** 2)


@claim(
    "D5.1-1",
    "a process is sampled as its distribution says: the ±1 walk has C(n, j) p^j (1 - p)^(n - j), Brownian motion the "
    "covariance min(s, t) and independent increments, on any grid of times",
)
def walks_have_their_distributions(generator: torch.Generator) -> Evidence:
    worst, count = 0.0, 20_000
    for up, n in ((0.5, 5), (0.3, 8)):
        walk = RandomWalk(up)
        steps = n + 1  # X_0, ..., X_n
        weights = [math.comb(steps, j) * up**j * (1 - up) ** (steps - j) for j in range(steps + 1)]
        stated = torch.tensor(weights, dtype=torch.float64)
        found = walk.distribution(n)
        order = found.positions.argsort()
        worst = max(worst, gap(found.output[order], stated) / roundings(64))
        worst = max(worst, 0.0 if (found.positions[order] == torch.arange(-steps, steps + 1, 2)).all() else math.inf)
        ends = (walk.sample_paths(n, count, generator=generator)[:, -1] + steps) // 2
        seen = torch.bincount(ends, minlength=steps + 1).double() / count
        deviations = (stated * (1 - stated) / count).sqrt().clamp(min=2 / count)
        worst = max(worst, float(((seen - stated).abs() / deviations).max()) / LEVEL)
    times = torch.tensor([0.1, 0.15, 0.9, 2.5], dtype=torch.float64)
    motion = BrownianMotion(dim=2)
    x = motion.sample_paths(times, count, generator=generator)
    minimum = torch.minimum(times[:, None], times)
    worst = max(worst, gap(motion.covariance(times), minimum) / roundings(4))
    deviations = ((times[:, None] * times + minimum.square()) / count).sqrt()
    for axis in (0, 1):
        covariance = x[..., axis].T @ x[..., axis] / count
        worst = max(worst, float(((covariance - minimum) / deviations).abs().max()) / LEVEL)
    crossed = x[..., 0].T @ x[..., 1] / count  # coordinates are independent
    worst = max(worst, float((crossed / (times[:, None] * times / count).sqrt()).abs().max()) / LEVEL)
    gaps = times.diff(prepend=torch.zeros(1).double())
    steps = x.diff(dim=1, prepend=torch.zeros(count, 1, 2).double())
    density = (-steps.square().sum(dim=2) / (2 * gaps) - torch.log(2 * math.pi * gaps)).sum(dim=1)
    worst = max(worst, gap(motion.log_prob(x[:50], times), density[:50]) / roundings(256))
    return Evidence("largest error / its bound", worst, 1.0, "rounding; 6.5 standard errors", 2 + 16)


@claim(
    "D6-11",
    "z given, the networks' μ and Σ are those of the distribution they give: μ + L ε has that mean and covariance, "
    "L Lᵀ, and its density is that of N(μ, Σ)",
)
def networks_give_normal_distributions(generator: torch.Generator) -> Evidence:
    worst, count = 0.0, 20_000
    for net in (
        DiagonalNormalNet([2, 8, 3], generator=generator),
        TriangularNormalNet([2, 8, 3], generator=generator),
    ):
        found = net.double()(normal(2, generator=generator))
        mean, covariance = found.mean.detach(), found.covariance.detach()
        noise = found.sample_noise((count,), generator=generator)
        moved = found.transform(noise).detach()
        # An affine map of the noise: its matrix is read from the unit vectors, and its product is the covariance.
        unit = found.transform(torch.eye(3, dtype=torch.float64)).detach() - mean
        worst = max(worst, gap(unit.T @ unit, covariance) / roundings(64))
        worst = max(worst, gap(moved, mean + noise @ unit) / roundings(64))
        deviations = covariance.diagonal().sqrt()
        worst = max(worst, float(((moved.mean(dim=0) - mean) / deviations).abs().max()) * math.sqrt(count) / LEVEL)
        away = moved[:20] - mean
        square = (away @ torch.linalg.inv(covariance) * away).sum(dim=1)
        density = -(square + torch.logdet(covariance) + 3 * math.log(2 * math.pi)) / 2
        worst = max(worst, gap(found.log_prob(moved[:20]), density) / roundings(2**14))
    return Evidence("largest error / its bound", worst, 1.0, "rounding; 6.5 standard errors", 2)
