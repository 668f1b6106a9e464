"""Kernel pooling: what it converges to and when, what it is the conditional mean of, what a distance costs, and two
misprints."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.autodiff import trace
from quoin.layers import NadarayaWatson, dot_score_definition, nadaraya_watson, nadaraya_watson_definition, nearest_key
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import KernelDensity, line_quadrature
from quoin.tensor import (
    BoxcarKernel,
    EpanechnikovKernel,
    GaussianKernel,
    SmoothingKernel,
    TriangularKernel,
    squared_distances_definition,
)

KERNELS = (GaussianKernel(), BoxcarKernel(), TriangularKernel(), EpanechnikovKernel())
QUADRATURE = 1e-9  # tanh-sinh with 80 nodes a piece and edges at all breakpoints
NOISE = 0.3


def truth(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch 1"]:
    return torch.sin(3 * x).sum(dim=-1, keepdim=True)


def squared_error(
    kernel: SmoothingKernel, bandwidth: float, num_points: int, dim: int, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The squared error of the estimate from n noisy values on the unit cube, in the mean over its middle and over 60
    samples."""
    x = torch.rand(60, num_points, dim, generator=generator, dtype=torch.float64)
    y = truth(x) + NOISE * torch.randn(60, num_points, 1, generator=generator, dtype=torch.float64)
    points = 0.25 + 0.5 * torch.rand(60, 20, dim, generator=generator, dtype=torch.float64)
    return (nadaraya_watson(points, x, y, kernel, bandwidth) - truth(points)).square().mean()


@claim(
    "Z11.11",
    "kernel pooling trains nothing and is consistent: with h = n^(-1/(d+4)) sixteen times the points leave a "
    "fraction of the error",
    not_shown="consistency for every regression function and distribution of inputs: a rate between two sample sizes",
)
def shrinking_bandwidths_converge(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for kernel in KERNELS:
        if list(NadarayaWatson(kernel, 1.0).parameters()):
            worst = math.inf
        for dim in (1, 2) if kernel.radius == math.inf else (1,):
            few, many = 200, 3200
            # A Gaussian of bandwidth h/3 reaches about as far as the others do with h.
            reach = 1 / 3 if kernel.radius == math.inf else 1.0
            errors = [squared_error(kernel, reach * n ** (-1 / (dim + 4)), n, dim, generator) for n in (few, many)]
            rate = (many / few) ** (-4 / (dim + 4))  # 0.11 on the line, 0.16 in the plane
            worst = max(worst, float(errors[1] / errors[0]) / rate)
    return Evidence(
        "squared error after / before, over the rate of convergence in theory",
        worst,
        3.0,
        "6 standard deviations; a fixed bandwidth gives 6 or more",
        5,
    )


@claim(
    "Z11.11",
    "with a fixed bandwidth the error does not vanish, however many the points: what is left is the bias of the "
    "smoothed truth",
)
def fixed_bandwidths_stay_biased(generator: torch.Generator) -> Evidence:
    least = math.inf
    for kernel in KERNELS:
        reach = 1 / 3 if kernel.radius == math.inf else 1.0
        bandwidth = 0.6 * reach
        points = 0.25 + 0.5 * torch.rand(40, 1, generator=generator, dtype=torch.float64)
        # As n grows the estimate goes to int K f / int K over the cube, which quadrature gives.
        edges = torch.cat(
            [
                torch.zeros_like(points),
                (points - bandwidth).clamp(1e-9, 1 - 1e-9),
                (points + bandwidth).clamp(1e-9, 1 - 1e-9),
            ],
            dim=-1,
        )
        edges = torch.cat([edges, points, torch.ones_like(points)], dim=-1).sort(dim=-1).values
        edges = edges + 1e-12 * torch.arange(edges.shape[-1], dtype=torch.float64)  # no two are equal
        x, weights = line_quadrature(edges)
        weighed = weights * kernel(((points - x) / bandwidth).unsqueeze(-1))
        bias = (weighed * truth(x.unsqueeze(-1)).squeeze(-1)).sum(dim=-1) / weighed.sum(dim=-1) - truth(points).squeeze(
            -1
        )
        keys = torch.rand(20_000, 1, generator=generator, dtype=torch.float64)
        values = truth(keys) + NOISE * torch.randn(20_000, 1, generator=generator, dtype=torch.float64)
        found = nadaraya_watson(points, keys, values, kernel, bandwidth) - truth(points)
        least = min(least, float(found.square().mean() / bias.square().mean()))
    return Evidence(
        "squared error at 20,000 points / squared bias", least, 0.8, "over 5 standard deviations", len(KERNELS), ">="
    )


@claim(
    "Z11.7c",
    "pooling by a kernel is the conditional mean of y given x under a kernel density estimate of the pair with a "
    "product kernel",
)
def conditional_mean_of_a_density(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for of_y in KERNELS:
        count = randint(2, 6, generator)
        x, y = (torch.rand(2, count, 1, generator=generator, dtype=torch.float64) * 4).unbind()
        query = 4 * torch.rand(1, 1, generator=generator, dtype=torch.float64)
        h, b = (0.5 + torch.rand(2, generator=generator, dtype=torch.float64)).unbind()
        reach = b * (8 if of_y.radius == math.inf else 1)
        edges = torch.cat([y - reach, y - 4 * b, y - b, y, y + b, y + 4 * b, y + reach]).flatten().unique()
        at, weights = line_quadrature(edges)
        for of_x in KERNELS:
            near = of_x.density((query - x) / h)  # (n,)
            joint = (near * of_y.density((at.unsqueeze(-1).unsqueeze(-1) - y) / b)).sum(
                dim=-1
            )  # p(q, y) up to 1/(n h b)
            if not bool(near.any()):
                continue
            mean = (weights * at * joint).sum() / (weights * joint).sum()
            worst, cases = max(worst, gap(mean, nadaraya_watson_definition(query, x, y, of_x, h).output)), cases + 1
            # the one product that is a kernel of ‖u‖ too
            if isinstance(of_x, GaussianKernel) and isinstance(of_y, GaussianKernel):
                distribution = KernelDensity(torch.cat([x, y], dim=-1), of_x, torch.stack([h, b]))
                density = distribution.log_prob(torch.stack([query.squeeze().expand_as(at), at], dim=-1)).exp()
                worst = max(worst, gap((weights * at * density).sum() / (weights * density).sum(), mean))
    return Evidence("largest |conditional mean - pooled|", worst, QUADRATURE, "the quadrature's error", cases)


def operations(function: Callable[[Tensor, Tensor], Tensor], dim: int) -> int:
    """Additions, subtractions and multiplications of numbers that one pair takes, from the record of every
    operation."""
    graph = trace(function, torch.rand(1, dim), torch.rand(1, dim)).nodes
    total = 0
    for node in graph:
        if node.op in ("sub", "mul", "square", "add", "pow"):
            total += node.value.numel()
        elif node.op == "sum":
            total += graph[node.inputs[0]].value.numel() - node.value.numel()
        elif not node.is_leaf and node.op not in ("unsqueeze", "view"):
            raise RuntimeError(f"no count for {node.op}")
    return total


@claim(
    "Z11.12c",
    "a squared distance takes 3d - 1 operations a pair and an inner product 2d - 1; with norms at hand the one is "
    "got from the other",
)
def distances_cost_more(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for dim in (1, 2, 7, 64):
        worst = max(worst, abs(operations(squared_distances_definition, dim) - (3 * dim - 1)))
        worst = max(worst, abs(operations(dot_score_definition, dim) - (2 * dim - 1)))
        q, k = (torch.randn(5, dim, generator=generator, dtype=torch.float64) for _ in range(2))
        norms = q.square().sum(dim=-1, keepdim=True) + k.square().sum(dim=-1)
        worst = max(
            worst, gap(norms - 2 * dot_score_definition(q, k), squared_distances_definition(q, k)) - roundings(8 * dim)
        )
    return Evidence("operations beside the formula", max(worst, 0.0), 0.0, "a count; equal up to rounding", 4, "==")


def line_integral(f: Callable[[Tensor], Tensor], reach: float) -> float:
    x, weights = line_quadrature(reach * torch.tensor([-1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0], dtype=torch.float64))
    return float((weights * f(x)).sum())


def inefficiency(profile: Callable[[Tensor], Tensor], reach: float = 1.0) -> float:
    """sqrt(int u² K) int K² for K of integral one: what a kernel costs an estimate of a density on the line, at its
    best bandwidth."""
    mass, second = line_integral(profile, reach), line_integral(lambda u: u**2 * profile(u), reach)
    return math.sqrt(second / mass) * line_integral(lambda u: profile(u) ** 2, reach) / mass**2


@claim(
    "ZE22", "Epanechnikov's kernel costs least of all, 3/(5√5)", right=EpanechnikovKernel(), printed=TriangularKernel()
)
def epanechnikov_costs_least(form: SmoothingKernel, generator: torch.Generator) -> Evidence:
    cost = inefficiency(lambda u: form(u.unsqueeze(-1)))
    others = [
        inefficiency(lambda u, k=k: k(u.unsqueeze(-1)), 30.0 if k.radius == math.inf else 1.0)
        for k in KERNELS
        if k is not form
    ]
    for power, curvature in (4 * torch.rand(10, 2, generator=generator) + 0.2).tolist():
        others.append(
            inefficiency(
                lambda u, power=power, curvature=curvature: (1 - u**2).clamp(min=0) ** power * (1 + curvature * u**2)
            )
        )
    off = max(abs(cost - 3 / (5 * math.sqrt(5))), cost - min(others))
    message = f"it costs {cost:.5f}, and the least of the others {min(others):.5f}"
    return Evidence(
        "distance from 3/(5√5) and above any other",
        off,
        QUADRATURE,
        "the quadrature's error",
        len(others),
        counterexample=message,
    )


def boxcar_with_a_rule(
    query: Float[Tensor, "n d"], key: Float[Tensor, "m d"], value: Float[Tensor, "m v"]
) -> Float[Tensor, "n v"]:
    return nadaraya_watson(query, key, value, BoxcarKernel(), 1.0, fallback=nearest_key)


def boxcar_without(
    query: Float[Tensor, "n d"], key: Float[Tensor, "m d"], value: Float[Tensor, "m v"]
) -> Float[Tensor, "n v"]:
    """The quotient alone."""
    similarity = BoxcarKernel()(query.unsqueeze(-2) - key.unsqueeze(-3))
    return similarity @ value / similarity.sum(dim=-1, keepdim=True)


@claim(
    "ZE23",
    "a boxcar is zero outside its window, and an empty window needs a rule",
    right=boxcar_with_a_rule,
    printed=boxcar_without,
)
def empty_windows_are_answered(
    form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    key = torch.cat(
        [
            torch.tensor([[0.0], [1.0]], dtype=torch.float64),
            20 * torch.rand(6, 1, generator=generator, dtype=torch.float64) + 8,
        ]
    )
    value = torch.randn(8, 1, generator=generator, dtype=torch.float64)
    query = torch.cat(
        [
            torch.tensor([[5.0], [0.5]], dtype=torch.float64),
            40 * torch.rand(60, 1, generator=generator, dtype=torch.float64) - 5,
        ]
    )
    worst = 0.0
    for q, found in zip(query, form(query, key, value)):
        distance = (key - q).abs()
        inside = distance <= 1
        expected = value[inside].mean() if bool(inside.any()) else value[distance.argmin()]
        worst = max(worst, gap(found, expected.reshape(1)))
        if worst == math.inf:
            return Evidence(
                "distance from the mean in the window",
                worst,
                roundings(16),
                "roundings",
                len(query),
                counterexample=f"q = {float(q):g}: NaN",
            )
    return Evidence(
        "distance from the mean in the window, or the nearest value", worst, roundings(16), "roundings", len(query)
    )
