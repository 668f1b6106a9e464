"""The Gaussian kernel by random features: its factors, its matrix, and learning on the features instead of the
kernel."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.estimators import RandomKernelFeatures
from quoin.layers import (
    fourier_features_definition,
    fourier_variance,
    performer_features_definition,
    positive_features_definition,
)
from quoin.models import kernel_ridge, ridge
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_features import CASES, LEVEL, NODES, SOURCE, along_each, pair, standard
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import normal_expectation
from quoin.tensor import kernel_matrix, matrix_rank, rbf_kernel


def gamma_once(x: Float[Tensor, "d"], directions: Float[Tensor, "k d"], gamma: float) -> Float[Tensor, "k"]:
    """Features for e^{-γ‖x‖²} e^{-γ‖y‖²} e^{γ⟨x,y⟩}."""
    return (-gamma * (x @ x)).exp() * performer_features_definition(math.sqrt(gamma) * x, directions)


@claim(
    ("D4.1-13", "DE34"),
    "e^{-γ‖x-y‖²} = e^{-γ‖x‖²} e^{-γ‖y‖²} e^{2γ⟨x,y⟩}, the last factor by random features: γ counts twice",
    right=positive_features_definition,
    printed=gamma_once,
)
def gaussian_kernel_by_positive_features(
    form: Callable[[Tensor, Tensor, float], Tensor], generator: torch.Generator
) -> Evidence:
    worst, counterexample = 0.0, ""
    for case in range(CASES):
        x, y = pair(1 + case % 3, generator)
        gamma = 0.2 + float(torch.rand((), generator=generator))
        if case == 0:
            x, y, gamma = torch.tensor([0.5], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64), 1.0
        products = lambda w, x=x, y=y, gamma=gamma: along_each(lambda x, w: form(x, w, gamma), x, y, w)  # noqa: E731
        mean, kernel = normal_expectation(products, standard(len(x)), num_nodes=NODES), rbf_kernel(x, y, gamma)
        worst = max(worst, gap(mean, kernel))
        if case == 0:
            counterexample = f"γ = 1, x = ½, y = 1: {float(mean):.4f} for {float(kernel):.4f}"
    return Evidence(
        "largest |E ψ(x)·ψ(y) - e^{-γ‖x-y‖²}|", worst, roundings(512), SOURCE, CASES, counterexample=counterexample
    )


@claim(
    "D4.1-13",
    "√(2/D) cos(ω_i·x + b_i), ω_i ~ N(0, 2γI) and b_i uniform, have products of mean e^{-γ‖x-y‖²} and variance "
    "below 1/D",
)
def gaussian_kernel_by_waves(generator: torch.Generator) -> Evidence:
    worst, num_phases = (
        0.0,
        8,
    )  # a mean over eight phases at equal distance is that over all, for waves of up to seven periods
    for case in range(CASES):
        x, y = pair(1 + case % 3, generator, longest=0.7)
        gamma = 0.2 + float(torch.rand((), generator=generator))
        kernel = rbf_kernel(x, y, gamma)
        for power, expected in ((1, kernel), (2, kernel.square() + fourier_variance(x, y, 1, gamma))):

            def moment(w: Tensor, x=x, y=y, gamma=gamma, power=power) -> Tensor:
                found = []
                for phase in range(num_phases):
                    phases = torch.full((len(w),), 2 * math.pi * phase / num_phases, dtype=w.dtype)
                    found.append(
                        along_each(lambda x, w, b=phases: fourier_features_definition(x, w, b, gamma), x, y, w) ** power
                    )
                return torch.stack(found).mean(dim=0)

            worst = max(worst, gap(normal_expectation(moment, standard(len(x)), num_nodes=NODES), expected))
        if not float(fourier_variance(x, y, 1, gamma)) <= 1:
            worst = math.inf
    return Evidence(
        "largest |E ψ(x)·ψ(y) - kernel|, and of its square",
        worst,
        roundings(2**10),
        "1024 float64 roundings",
        2 * CASES,
    )


def cloud(count: int, generator: torch.Generator) -> Float[Tensor, "n 3"]:
    return torch.randn(count, 3, generator=generator, dtype=torch.float64)


@claim(
    "D4.1-14",
    "‖K - ΨΨᵀ‖² is on average the sum of the entries' variances: it goes to 0 as 1/D",
    not_shown="convergence as D → ∞: the mean error at several D, which falls as 1/D",
)
def gram_is_approached(generator: torch.Generator) -> Evidence:
    worst, num_samples, gamma = 0.0, 400, 0.5
    X = cloud(20, generator)
    K = kernel_matrix(lambda x, y: rbf_kernel(x, y, gamma), X)
    for count in (8, 64):
        each_with_each = X.expand(20, 20, 3)
        expected = float(fourier_variance(each_with_each, each_with_each.transpose(0, 1), count, gamma).sum())
        errors = []
        for _ in range(num_samples):
            features = RandomKernelFeatures(count, gamma=gamma, random_state=randint(0, 2**31 - 2, generator))
            found = torch.from_numpy(features.fit_transform(X.numpy()))
            errors.append(float((K - found @ found.mT).square().sum()))
        samples = torch.tensor(errors)
        worst = max(worst, abs(float(samples.mean()) - expected) / float(samples.std() / math.sqrt(num_samples)))
    return Evidence(
        "largest |mean ‖K - ΨΨᵀ‖² - formula|, in standard errors",
        worst,
        LEVEL + 1,
        "7 standard errors of 400 samples",
        2,
    )


@claim(
    "D4.1-14",
    "ridge on ψ is near ridge with the kernel: their values at the data differ by at most ‖K - ΨΨᵀ‖ ‖y‖ / (n l2)",
)
def ridge_is_approached(generator: torch.Generator) -> Evidence:
    worst, gamma = 0.0, 0.5
    for case in range(12):
        kind = "positive" if case % 2 else "fourier"
        X, decay = cloud(40, generator) / (1 + case % 2), 0.01 * 10 ** float(torch.rand((), generator=generator))
        y = X[:, 0].sin() + X[:, 1] ** 2 + 0.1 * torch.randn(40, generator=generator, dtype=torch.float64)
        features = RandomKernelFeatures(
            4 ** (2 + case // 2), gamma=gamma, feature_map=kind, random_state=randint(0, 2**31 - 2, generator)
        )
        found = torch.from_numpy(features.fit_transform(X.numpy()))
        K = kernel_matrix(lambda x, y: rbf_kernel(x, y, gamma), X)
        exact = kernel_ridge(lambda x, y: rbf_kernel(x, y, gamma), X, y, decay)
        off = ridge(found, y, decay).predict(found) - exact.predict(X)
        bound = torch.linalg.matrix_norm(K - found @ found.mT, ord=2) * (y - y.mean()).norm() / (len(y) * decay)
        worst = max(worst, float(off.norm() / bound))
    source = "from (A + c)^-1 - (B + c)^-1 = (A + c)^-1 (B - A) (B + c)^-1"
    return Evidence("largest distance of the fits, as a fraction of the bound", worst, 1.0, source, 12)


@claim(
    "D4.1-15",
    "the Gaussian kernel's matrix of n distinct points is positive definite, of rank n for every n",
    not_shown="every n and every set of distinct points: random ones, where rounding leaves the rank visible",
)
def kernel_matrix_has_full_rank(generator: torch.Generator) -> Evidence:
    least = math.inf
    for n in (1, 2, 5, 20, 60, 150):
        # Points of a line at least 1 apart: then of each row the entries beside the diagonal sum to at most 2 Σ_j
        # e^{-j²γ} < 1.
        gamma, X = 1.5, torch.cumsum(1 + torch.rand(n, generator=generator, dtype=torch.float64), dim=0)[:, None]
        K = kernel_matrix(lambda x, y, gamma=gamma: rbf_kernel(x, y, gamma), X[torch.randperm(n, generator=generator)])
        if int(matrix_rank(K)) != n:
            least = -math.inf
        floor = 1 - 2 * sum(math.exp(-gamma * j * j) for j in range(1, n))
        least = min(least, float(torch.linalg.eigvalsh(K).min()) - floor)
    source = "each eigenvalue is at least 1 - Σ_{j≠i} K_ij of some row (Gershgorin's discs)"
    return Evidence("smallest eigenvalue less its floor, which is above 0", least, -roundings(256), source, 6, ">=")


@claim(
    "D4.1-15",
    "no finite number D of features is exact for all n: ΨΨᵀ has rank D at most, and misses K by its (D + 1)st "
    "eigenvalue",
)
def finite_features_are_not_exact(generator: torch.Generator) -> Evidence:
    least, n = math.inf, 60
    for _ in range(8):
        X, count = torch.arange(n, dtype=torch.float64)[:, None] * 1.1, randint(1, n - 1, generator)
        features = RandomKernelFeatures(count, gamma=1.0, random_state=randint(0, 2**31 - 2, generator))
        found = torch.from_numpy(features.fit_transform(X.numpy()))
        product = found @ found.mT
        K = kernel_matrix(lambda x, y: rbf_kernel(x, y, 1.0), X)
        values = torch.linalg.eigvalsh(K).flip(0)
        missed = torch.linalg.matrix_norm(K - product, ord=2)
        if int(matrix_rank(product)) > count or not float(values[count]) > 0.2:
            least = -math.inf
        least = min(least, float(missed - values[count]))
    return Evidence(
        "‖K - ΨΨᵀ‖ less the (D + 1)st eigenvalue of K", least, -roundings(2**10), "Eckart, Young and Mirsky", 8, ">="
    )
