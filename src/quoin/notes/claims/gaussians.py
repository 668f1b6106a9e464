"""Normal distributions: their parameters, what keeps them normal, what independence means for them, conditioning."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import MultivariateNormal, condition_normal, normal_density_1d, wick
from quoin.tensor import inverse

CASES = 20
# Equidistant sums of a normal density in steps h err by about e^(-2 (πs/h)²), s the standard deviation along an axis
# given the others; here s > 3 h, and the edges lie 12 of them out, so that only the rounding of each term is left.
STEPS = 193
TERMS = roundings(STEPS**2)


def random_distribution(dim: int, generator: torch.Generator, *, rank: int | None = None) -> MultivariateNormal:
    """Correlated, but with at least 3/10 of variance in each direction; with a `rank`, singular."""
    root = torch.randn(dim, rank or dim, generator=generator, dtype=torch.float64)
    floor = 0.3 * torch.eye(dim, dtype=torch.float64) if rank is None else torch.zeros(dim, dim, dtype=torch.float64)
    return MultivariateNormal(vector(dim, generator), root @ root.T / dim + floor)


def vector(dim: int, generator: torch.Generator) -> Float[Tensor, "dim"]:
    return torch.randn(dim, generator=generator, dtype=torch.float64)


def planar_normal(generator: torch.Generator) -> MultivariateNormal:
    """Two standard deviations from 0.5 to 2, and a correlation from -0.9 to 0.9."""
    a, b, c = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
    s, t, correlation = 0.5 + 1.5 * a, 0.5 + 1.5 * b, 1.8 * c - 0.9
    covariance = torch.tensor([[s * s, correlation * s * t], [correlation * s * t, t * t]], dtype=torch.float64)
    return MultivariateNormal(vector(2, generator), covariance)


def grid(distribution: MultivariateNormal) -> tuple[Float[Tensor, "points d"], float]:
    """Points about the mean, 12 standard deviations to either side along each axis, and the volume of a cell."""
    deviations = distribution.covariance.diagonal().sqrt()
    line = torch.linspace(-12, 12, STEPS, dtype=torch.float64)
    mesh = torch.stack(torch.meshgrid(*[line] * distribution.dim, indexing="ij"), dim=-1).reshape(-1, distribution.dim)
    return distribution.mean + mesh * deviations, float((deviations * (line[1] - line[0])).prod())


def with_mean(distribution: MultivariateNormal, a: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    return distribution.mgf(a)


def without_mean(distribution: MultivariateNormal, a: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    return torch.exp(a @ distribution.covariance @ a / 2)


@claim(
    ("D5-14", "DE39"),
    "E e^⟨a,X⟩ = exp(⟨a,μ⟩ + ½ aᵀΣa) for N(μ, Σ): the mean counts",
    right=with_mean,
    printed=without_mean,
)
def exponential_moments(form: Callable[[MultivariateNormal, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, counterexample = 0.0, ""
    for _ in range(CASES):
        distribution = planar_normal(generator)
        points, cell = grid(distribution)
        a = vector(2, generator).clamp(-1, 1)
        integral = (distribution.log_prob(points) + points @ a).exp().sum() * cell
        found = gap(form(distribution, a), integral)
        if found > worst:
            worst = found
            counterexample = f"{float(form(distribution, a)):.4f} where the integral is {float(integral):.4f}"
    source = "a rounding for each of 193² terms; no other error"
    return Evidence(
        "largest |formula - ∫ e^⟨a,x⟩ p(x) dx|, relative", worst, TERMS, source, CASES, counterexample=counterexample
    )


@claim("D5-15", "the integrals of x and of (x − μ)(x − μ)ᵀ under the density of N(μ, Σ) are μ and Σ")
def parameters_are_moments(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = planar_normal(generator)
        points, cell = grid(distribution)
        masses = distribution.log_prob(points).exp() * cell
        mean = masses @ points
        away = points - mean
        worst = max(
            worst,
            gap(masses.sum(), torch.ones(())),
            gap(mean, distribution.mean),
            gap((away * masses[:, None]).T @ away, distribution.covariance),
        )
    return Evidence(
        "largest error of mass, mean and covariance", worst, TERMS, "a rounding for each of 193² terms", CASES
    )


@claim(("D5-15", "D5-20"), "samples of N(μ, Σ), also of a singular one, have mean μ and covariance Σ")
def samples_have_the_moments(generator: torch.Generator) -> Evidence:
    worst, count, cases = 0.0, 100_000, 6
    for case in range(cases):
        distribution = random_distribution(3, generator, rank=None if case % 2 else 2)
        x = distribution.sample((count,), generator=generator) - distribution.mean
        deviations = distribution.covariance.diagonal().sqrt()
        worst = max(worst, float((x.mean(dim=0) / deviations).abs().max()) * math.sqrt(count))
        # E (X_i X_j)² = Σ_ii Σ_jj + 2 Σ_ij², so an estimated covariance has at most this standard deviation.
        standard_deviation = (
            deviations[:, None].square() * deviations.square() + distribution.covariance.square()
        ).sqrt()
        worst = max(
            worst,
            float(((x.T @ x / count - distribution.covariance) / standard_deviation).abs().max()) * math.sqrt(count),
        )
    source = "beyond 6.5 standard deviations once in 10^10 for each of 72 estimates"
    return Evidence("largest error in standard deviations of it", worst, 6.5, source, cases)


@claim(
    "D5-17",
    "for independent X, Y the density of X + Y is the convolution, that of N(μ + ν, Σ + Λ); (X + Y)/√2 of centred "
    "twins is X again",
)
def sums_of_independent_normals(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        X, Y = planar_normal(generator), planar_normal(generator)
        points, cell = grid(Y)
        for z in X.add_independent(Y).sample((3,), generator=generator):
            convolved = (X.log_prob(z - points) + Y.log_prob(points)).exp().sum() * cell
            worst = max(worst, gap(convolved, X.add_independent(Y).log_prob(z).exp()))
        twin = MultivariateNormal(torch.zeros_like(X.mean), X.covariance)
        mixed = twin.add_independent(twin).affine(torch.eye(2, dtype=torch.float64) / math.sqrt(2))
        worst = max(worst, gap(mixed.covariance, X.covariance), gap(mixed.mean, twin.mean))
    return Evidence("largest |∫ p_X(z - y) p_Y(y) dy - p(z)|", worst, TERMS, "a rounding for each of 193² terms", CASES)


@claim(
    "D5-18",
    "jointly normal X, Y are independent if and only if they are uncorrelated: the density is then a product, and "
    "else it is not",
    not_shown="dimensions other than those tried at random",
)
def uncorrelated_is_independent(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        X, Y = (random_distribution(randint(1, 3, generator), generator) for _ in range(2))
        pair = X.join_independent(Y)
        point = pair.sample((), generator=generator)
        worst = max(worst, gap(pair.log_prob(point), X.log_prob(point[: X.dim]) + Y.log_prob(point[X.dim :])))
        tied = planar_normal(generator)  # at the mean p(x, y) exceeds p(x) p(y) by 1 / √(1 - ρ²)
        correlation = tied.covariance[0, 1] / tied.covariance.diagonal().prod().sqrt()
        product = tied.marginal([0]).log_prob(tied.mean[:1]) + tied.marginal([1]).log_prob(tied.mean[1:])
        worst = max(worst, gap(tied.log_prob(tied.mean) - product, -torch.log1p(-(correlation**2)) / 2))
    source = "512 float64 roundings; the excess is -½ log(1 - ρ²), 0 for ρ = 0 alone"
    return Evidence("largest error of log p(x, y) - log p(x) - log p(y)", worst, roundings(512), source, 2 * CASES)


@claim(
    "D5-18",
    "not so if only each is normal: for X ~ N(0, 1) and a fair sign S, X and SX are normal and uncorrelated, yet E "
    "X²Y² = 3 ≠ 1",
)
def uncorrelated_normals_that_depend(generator: torch.Generator) -> Evidence:
    distribution = MultivariateNormal(torch.zeros(1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64))
    x = distribution.sample((200_000,), generator=generator)[:, 0]
    y = x * (2.0 * torch.randint(0, 2, x.shape, generator=generator) - 1)
    deviations = math.sqrt(len(x))
    correlated = (
        abs(float((x * y).mean())) / math.sqrt(float(wick(distribution.covariance, [0] * 4))) * deviations
    )  # E (XY)² = E X⁴ = 3
    a = vector(1, generator)
    normal = gap((distribution.mgf(a) + distribution.mgf(-a)) / 2, distribution.mgf(a)) <= roundings(
        4
    )  # E e^(aSX), over both signs
    dependent = bool(
        ((x + y == 0) | (x == y)).all()
    )  # the pair lies on two lines, which no normal distribution but a singular one does
    excess = float((x.square() * y.square()).mean() - 1)
    # X⁴ has mean 3 and variance 96: 6.5 standard deviations of the mean of 200,000 are 0.142.
    holds = correlated <= 6.5 and normal and dependent
    source = "3 - 1, less 6.5 standard deviations; X and SX uncorrelated within 6.5"
    return Evidence("E X²Y² - E X² E Y²", excess if holds else math.nan, 2 - 0.15, source, 1, ">=")


@claim("D5-19", "the standard normal density on R^d is the product of d standard normal densities")
def standard_normal_factorises(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d = randint(1, 8, generator)
        distribution = MultivariateNormal(torch.zeros(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64))
        x = 2 * vector(d, generator)
        worst = max(worst, gap(distribution.log_prob(x), normal_density_1d(x).log().sum()))
    return Evidence("largest |log p(x) - Σ log p(x_i)|", worst, roundings(64), "64 float64 roundings", CASES)


@claim(
    "D5-20",
    "in a singular normal distribution every aᵀX is N(aᵀμ, aᵀΣa): the density along a, and off the support there "
    "is none",
)
def singular_normals(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d = randint(2, 4, generator)
        distribution = random_distribution(d, generator, rank=d - 1)
        x, a = distribution.sample((3,), generator=generator), vector(d, generator)
        line = distribution.affine(a[None])
        variance = float(a @ distribution.covariance @ a)
        worst = max(
            worst,
            gap(
                line.log_prob((x @ a)[:, None]).exp(),
                normal_density_1d(x @ a, float(a @ distribution.mean), math.sqrt(variance)),
            ),
        )
        across = torch.linalg.eigh(distribution.covariance).eigenvectors[:, 0]
        off, on = distribution.log_prob(x + 0.01 * across), distribution.log_prob(x)
        worst = max(worst, 0.0 if bool((off == -math.inf).all() and on.isfinite().all()) else math.inf)
    return Evidence(
        "largest |p(aᵀx) - formula|; infinite where a point is misplaced",
        worst,
        roundings(2**12),
        "4096 roundings",
        CASES,
    )


def at_the_mean(mean: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
    return mean


def at_zero(mean: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
    return torch.zeros_like(mean)


@claim(("DE40", "D5-20"), "N(m, 0) is the point mass at m, whatever m", right=at_the_mean, printed=at_zero)
def no_variance_is_a_point_mass(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        d = randint(2, 4, generator)
        distribution = random_distribution(d, generator, rank=d - 1)
        across = torch.linalg.eigh(distribution.covariance).eigenvectors[:, 0]
        line = distribution.affine(across[None])  # aᵀX of a direction without variance
        if case == 0:
            line = MultivariateNormal(torch.tensor([3.0], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
        x = line.sample((4,), generator=generator)
        there = gap(line.log_prob(x), torch.zeros(4))  # one point, mass one
        worst = max(worst, there, gap(x, form(line.mean).expand(4, 1)))
    return Evidence("largest |sample - point|, |log mass|", worst, roundings(64), "64 float64 roundings", CASES)


@claim(
    ("D5-25", "D5-24"),
    "p(x, y) / p(y) is the density of N(μ_X + Σ_XY Σ_YY⁻¹ (y − μ_Y), Σ_XX − Σ_XY Σ_YY⁻¹ Σ_YX), in two dimensions "
    "and more",
)
def quotient_is_the_conditional(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        distribution = (
            planar_normal(generator) if case % 2 else random_distribution(randint(2, 5, generator), generator)
        )
        k = randint(1, distribution.dim - 1, generator)
        indices = torch.randperm(distribution.dim, generator=generator)[:k].tolist()
        rest = [index for index in range(distribution.dim) if index not in indices]
        z = distribution.sample((4,), generator=generator)
        quotient = distribution.log_prob(z) - distribution.marginal(indices).log_prob(z[:, indices])
        found = condition_normal(distribution.mean, distribution.covariance, indices, z[:, indices])
        worst = max(worst, gap(quotient, MultivariateNormal(found.mean, found.covariance).log_prob(z[:, rest])))
    return Evidence(
        "largest |log p(x,y) - log p(y) - log p(x|y)|", worst, roundings(2**12), "4096 float64 roundings", CASES
    )


def adjugate_over_determinant(s_xx: float, s_xy: float, s_yy: float) -> Float[Tensor, "2 2"]:
    return torch.tensor([[s_yy, -s_xy], [-s_xy, s_xx]], dtype=torch.float64) / (s_xx * s_yy - s_xy**2)


def determinant_lost(s_xx: float, s_xy: float, s_yy: float) -> Float[Tensor, "2 2"]:
    cross = -s_xy / (s_xx * s_yy)
    return torch.tensor([[1 / s_xx, cross], [cross, 1 / s_yy]], dtype=torch.float64)


@claim(
    "DE44",
    "the inverse of a 2×2 covariance divides by its determinant",
    right=adjugate_over_determinant,
    printed=determinant_lost,
)
def inverse_covariance(form: Callable[[float, float, float], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        covariance = planar_normal(generator).covariance
        worst = max(worst, gap(form(*entries_of(covariance)), inverse(covariance)))
    return Evidence("largest |formula - Σ⁻¹|, relative", worst, roundings(2**10), "1024 float64 roundings", CASES)


def entries_of(covariance: Float[Tensor, "2 2"]) -> tuple[float, float, float]:
    return float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1])


def cross_once(s_xy: float) -> float:
    return s_xy


def cross_squared(s_xy: float) -> float:
    return s_xy**2


@claim(
    "DE45",
    "the cross term of the density in two dimensions is −2 Σ_XY (x − μ_X)(y − μ_Y)",
    right=cross_once,
    printed=cross_squared,
)
def density_in_two_dimensions(form: Callable[[float], float], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = planar_normal(generator)
        s_xx, s_xy, s_yy = entries_of(distribution.covariance)
        x, y = (distribution.sample((20,), generator=generator) - distribution.mean).unbind(dim=-1)
        determinant = s_xx * s_yy - s_xy**2
        square = (s_yy * x**2 + s_xx * y**2 - 2 * form(s_xy) * x * y) / determinant
        density = torch.exp(-square / 2) / (2 * math.pi * math.sqrt(determinant))
        worst = max(worst, gap(density, distribution.log_prob(distribution.mean + torch.stack([x, y], dim=-1)).exp()))
    return Evidence("largest |formula - p(x, y)|", worst, roundings(2**10), "1024 float64 roundings", 20 * CASES)


def root_of_all(s_yy: float) -> float:
    return 1 / math.sqrt(2 * math.pi * s_yy)


def root_of_two_pi(s_yy: float) -> float:
    return 1 / (math.sqrt(2 * math.pi) * s_yy)


@claim(
    "DE46",
    "the constant of Y's density in the quotient p(x, y) / p(y) is 1/√(2πΣ_YY)",
    right=root_of_all,
    printed=root_of_two_pi,
)
def constant_of_the_quotient(form: Callable[[float], float], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = planar_normal(generator)
        z, s_yy = distribution.sample((), generator=generator), float(distribution.covariance[1, 1])
        density_of_y = form(s_yy) * torch.exp(-((z[1] - distribution.mean[1]) ** 2) / (2 * s_yy))
        worst = max(
            worst,
            gap(
                distribution.log_prob(z).exp() / density_of_y, distribution.condition([1], z[1:]).log_prob(z[:1]).exp()
            ),
        )
    return Evidence("largest |quotient - p(x | y)|, relative", worst, roundings(2**10), "1024 float64 roundings", CASES)
