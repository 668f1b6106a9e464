"""Affine images of normal distributions: onto fewer dimensions, into more, of any rank."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.gaussians import CASES, random_distribution, vector
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import MultivariateNormal, normal_expectation


@claim(
    "D5-16",
    "AX + b ~ N(Aμ + b, AΣAᵀ): densities change by the volume √det AᵀA, also onto a plane in a larger space",
    not_shown="every A of full rank: random ones of one to three columns",
)
def affine_images(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d = randint(1, 3, generator)
        e, distribution = d + randint(0, 2, generator), random_distribution(d, generator)
        A, b = torch.randn(e, d, generator=generator, dtype=torch.float64), vector(e, generator)
        A = torch.linalg.qr(A).Q * (0.5 + torch.rand(d, generator=generator, dtype=torch.float64))
        x = distribution.sample((5,), generator=generator)
        worst = max(
            worst,
            gap(distribution.affine(A, b).log_prob(x @ A.T + b), distribution.log_prob(x) - torch.logdet(A.T @ A) / 2),
        )
    return Evidence(
        "largest |log p(Ax + b) - (log p(x) - ½ log det AᵀA)|", worst, roundings(2**12), "4096 float64 roundings", CASES
    )


@claim(
    "D5-16",
    "AX + b is normal for every A, of full rank or not: its exponential moments are those of N(Aμ + b, AΣAᵀ)",
    not_shown="every A, and that exponential moments determine a distribution: random A of up to three rows or columns",
)
def affine_images_of_any_rank(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, e, rank = (randint(1, 3, generator) for _ in range(3))
        distribution = random_distribution(d, generator)
        A = torch.randn(e, min(e, rank), generator=generator, dtype=torch.float64) @ torch.randn(
            min(e, rank), d, generator=generator, dtype=torch.float64
        )
        A, b, a = A / torch.linalg.matrix_norm(A, 2), vector(e, generator), vector(e, generator).clamp(-1, 1) / 2
        direct = normal_expectation(lambda x, A=A, b=b, a=a: ((x @ A.T + b) @ a).exp(), distribution, num_nodes=40)
        image = distribution.affine(A, b)
        worst = max(
            worst,
            gap(direct, image.mgf(a)),
            gap(direct, normal_expectation(lambda y, a=a: (y @ a).exp(), image, num_nodes=40)),
        )
    return Evidence(
        "largest |E e^⟨a,AX+b⟩ - its value|, relative", worst, roundings(2**12), "4096 float64 roundings", CASES
    )


def summed_out(
    distribution: MultivariateNormal, A: Float[Tensor, "e d"], b: Float[Tensor, "e"], y: Float[Tensor, "e"]
) -> Float[Tensor, ""]:
    """The density of AX + b at y for A of rank e < d, by integrating that of X over the d - e directions
    that Ax + b = y leaves x free, divided by the volume √det AAᵀ."""
    solution = torch.linalg.pinv(A) @ (y - b)
    free = torch.linalg.svd(A).Vh[len(A) :]  # orthonormal, of what A forgets
    line = torch.linspace(-12, 12, 241, dtype=torch.float64)
    mesh = torch.cartesian_prod(*[line] * len(free)).reshape(-1, len(free))
    # The sum is over the whole plane, so its middle may be anywhere near the mean of X.
    middle = free @ (distribution.mean - solution)
    x = solution + (mesh + middle) @ free
    cell = (line[1] - line[0]) ** len(free)
    return distribution.log_prob(x).exp().sum() * cell / torch.linalg.det(A @ A.T).sqrt()


@claim(
    "D5-16",
    "onto fewer dimensions, e < d: N(Aμ + b, AΣAᵀ) has the density that summing out d - e directions gives",
    not_shown="every A: random ones with d up to 4 and d - e up to 2",
)
def images_in_fewer_dimensions(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for d, e in ((2, 1), (3, 1), (3, 2), (4, 2)) * 2:
        distribution = random_distribution(d, generator)
        A, b = torch.randn(e, d, generator=generator, dtype=torch.float64), vector(e, generator)
        image = distribution.affine(A, b)
        for y in image.sample((3,), generator=generator):
            worst = max(worst, gap(image.log_prob(y).exp(), summed_out(distribution, A, b, y)))
    # Steps of 0.1 in directions of at least √0.3 standard deviations leave e^(-2 (π 5.4)²) of a normal's integral.
    return Evidence("largest |density - integral|", worst, roundings(241**2), "a rounding for each of 241² terms", 24)
