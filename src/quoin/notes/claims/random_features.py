"""Random features: what their products are on average, how far from that one sample is, and attention and learning on
them."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from quoin.layers import (
    HyperbolicFeatures,
    PerformerAttention,
    PerformerFeatures,
    gaussian_random_matrix,
    hyperbolic_features_definition,
    hyperbolic_variance,
    orthogonal_random_matrix,
    orthogonal_variance_reduction,
    performer_attention_variance,
    performer_features_definition,
    performer_variance,
    scaled_dot_product_attention_definition,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import MultivariateNormal, normal_expectation

CASES = 20
NODES = 30  # for each coordinate: with at most three of them and |x + y| <= 3 the exponentials are exact to rounding
LEVEL = (
    6.0  # standard deviations; beyond them one in 500 million samples of a normal distribution, and few more of these
)
SOURCE = "512 float64 roundings; 30 nodes a coordinate miss the exponentials by less"
LEVEL_SOURCE = "6 standard deviations: by chance less than once in a million runs"


def standard(width: int) -> MultivariateNormal:
    return MultivariateNormal(torch.zeros(width, dtype=torch.float64), torch.eye(width, dtype=torch.float64))


def pair(width: int, generator: torch.Generator, longest: float = 1.0) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
    """Two vectors of random directions and lengths up to `longest`."""
    directions_of_xy = torch.randn(2, width, generator=generator, dtype=torch.float64)
    x, y = (
        directions_of_xy
        / directions_of_xy.norm(dim=-1, keepdim=True)
        * longest
        * torch.rand(2, 1, generator=generator, dtype=torch.float64)
    )
    return x, y


def along_each(
    features: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "d"],
    y: Float[Tensor, "d"],
    directions: Float[Tensor, "k d"],
) -> Float[Tensor, "k"]:
    """What each direction alone would estimate; the mean of these is ψ(x)·ψ(y)."""
    k = len(directions)
    return k * (features(x, directions) * features(y, directions)).unflatten(-1, (-1, k)).sum(dim=-2)


@claim("D4.1-6", "E e^{Z·x} = e^{‖x‖²/2} for Z ~ N(0, I)")
def exponential_moment(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        x, _ = pair(1 + case % 3, generator, longest=2.0)
        distribution, expected = standard(len(x)), (x @ x / 2).exp()
        worst = max(
            worst,
            gap(normal_expectation(lambda z, x=x: (z @ x).exp(), distribution, num_nodes=NODES), expected),
            gap(distribution.mgf(x), expected),
        )
    return Evidence("largest |E e^{Z·x} - e^{‖x‖²/2}|, relative", worst, roundings(512), SOURCE, CASES)


@claim("D4.1-7", "e^⟨x,y⟩ = e^{-‖x‖²/2} E[e^{Z·(x+y)}] e^{-‖y‖²/2}: the mean over directions of ψ(x)·ψ(y)")
def kernel_is_a_mean(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        x, y = pair(1 + case % 3, generator)
        mean = normal_expectation(
            lambda w, x=x, y=y: along_each(performer_features_definition, x, y, w), standard(len(x)), num_nodes=NODES
        )
        worst = max(worst, gap(mean, (x @ y).exp()))
    return Evidence("largest |E ψ(x)·ψ(y) - e^⟨x,y⟩|, relative", worst, roundings(512), SOURCE, CASES)


@claim(
    ("D4.1-8", "D4.1-9"),
    "Performer's and hyperbolic features, along independent or orthogonal directions, have the mean e^{s⟨q,k⟩}",
)
def features_are_unbiased(generator: torch.Generator) -> Evidence:
    worst, count, width = 0.0, 100_000, 4
    for distribution in (gaussian_random_matrix, orthogonal_random_matrix):
        for kind, variance in ((PerformerFeatures, performer_variance), (HyperbolicFeatures, hyperbolic_variance)):
            for scale in (1.0, None):
                features = kind(width, count, generator=generator, random_matrix=distribution, scale=scale).double()
                q, k = pair(width, generator, longest=0.5)
                x, y = (math.sqrt(features.scale) * each for each in (q, k))
                standard_error = variance(x, y, count)
                if distribution is orthogonal_random_matrix:
                    standard_error = standard_error - orthogonal_variance_reduction(
                        x, y, count if kind is PerformerFeatures else count // 2
                    )
                found = [features(each[None], is_query=True) for each in (q, k)]
                first, second = (
                    each.values[0] * each.log_scale.exp()[0] for each in found if each.log_scale is not None
                )
                worst = max(worst, float(((first @ second - (x @ y).exp()) / standard_error.sqrt()).abs()))
    return Evidence("largest |ψ(q)·ψ(k) - e^{s⟨q,k⟩}|, in standard deviations", worst, LEVEL, LEVEL_SOURCE, 8)


def cosh_of_each(x: Float[Tensor, "d"], directions: Float[Tensor, "k d"]) -> Float[Tensor, "k"]:
    """One feature cosh(ω·x) for each direction, as if cosh(a + b) were cosh(a) cosh(b)."""
    return (-(x @ x) / 2).exp() / math.sqrt(len(directions)) * torch.cosh(x @ directions.mT)


@claim(
    ("D4.1-9", "DE65"),
    "e^{-(‖x‖²+‖y‖²)/2} cosh(ω·(x+y)) is a product of features (e^{ω·x}, e^{-ω·x}) of x and of y, not of cosh(ω·x) "
    "and cosh(ω·y)",
    right=hyperbolic_features_definition,
    printed=cosh_of_each,
)
def hyperbolic_features_factorise(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, counterexample = 0.0, ""
    for case in range(CASES):
        x, y = pair(1 + case % 3, generator)
        directions = gaussian_random_matrix(8, len(x), generator=generator)
        expected = (-(x @ x + y @ y) / 2).exp() * torch.cosh(directions @ (x + y))
        worst = max(worst, gap(along_each(form, x, y, directions), expected))
        mean = normal_expectation(lambda w, x=x, y=y: along_each(form, x, y, w), standard(len(x)), num_nodes=NODES)
        worst = max(worst, gap(mean, (x @ y).exp()))
        counterexample = f"mean {float(mean):.4f} for e^⟨x,y⟩ = {float((x @ y).exp()):.4f}"
    quantity = "largest difference for one ω, and on average over ω from e^⟨x,y⟩"
    return Evidence(quantity, worst, roundings(512), SOURCE, CASES, counterexample=counterexample)


@claim(
    ("D4.1-10", "DE65"),
    "the variance of cosh(ω·(x+y)) is ½ (1 - e^{-‖x+y‖²}) of that of e^{ω·(x+y)} for each ω, and so 1 - "
    "e^{-‖x+y‖²} < 1 for each feature",
)
def cosh_has_less_variance(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        x, y = pair(1 + case % 3, generator)
        distribution, kernel, size = standard(len(x)), (x @ y).exp(), (x + y).square().sum()
        found = []
        for features in (performer_features_definition, hyperbolic_features_definition):
            errors = lambda w, f=features, x=x, y=y, kernel=kernel: (along_each(f, x, y, w) - kernel).square()  # noqa: E731
            found.append(normal_expectation(errors, distribution, num_nodes=NODES))
        performer, cosh = found
        worst = max(
            worst, gap(performer, performer_variance(x, y, 1)), gap(cosh, hyperbolic_variance(x, y, 2))
        )  # two features a direction
        worst = max(worst, gap(cosh, -torch.expm1(-size) / 2 * performer))
        if not bool(hyperbolic_variance(x, y, 64) < performer_variance(x, y, 64)):
            worst = math.inf
    return Evidence(
        "largest |variance - formula|, relative to what is above 1",
        worst,
        roundings(2**12),
        "4096 float64 roundings",
        CASES,
    )


@claim(
    "D4.1-10",
    "seen in samples too, along independent and orthogonal directions: mean squared errors are the variances in "
    "closed form",
)
def errors_are_the_variances(generator: torch.Generator) -> Evidence:
    worst, num_samples, width, count = 0.0, 10_000, 4, 8
    kinds = (
        (performer_features_definition, performer_variance, 1),
        (hyperbolic_features_definition, hyperbolic_variance, 2),
    )
    for distribution in (gaussian_random_matrix, orthogonal_random_matrix):
        x, y = pair(width, generator, longest=0.4)
        directions = distribution(num_samples * count, width, generator=generator)  # of each sample two whole blocks
        for features, variance, for_each in kinds:
            estimates = along_each(features, x, y, directions).view(num_samples, count).mean(dim=1)
            expected = variance(x, y, for_each * count)
            if distribution is orthogonal_random_matrix:
                expected = expected - orthogonal_variance_reduction(x, y, count)
            errors = (estimates - (x @ y).exp()).square()
            worst = max(worst, float(((errors.mean() - expected) / (errors.std() / math.sqrt(num_samples))).abs()))
    return Evidence(
        "largest |mean squared error - variance|, in standard errors",
        worst,
        LEVEL + 1,
        "7 standard errors of 10,000 samples",
        4,
    )


@claim(
    "D4.1-11",
    "Performer attention, Σ_m φ_m(q_i) S_m / Σ_m φ_m(q_i) E_m, is softmax attention but for the error of its features",
)
def performer_is_near_softmax(generator: torch.Generator) -> Evidence:
    worst, width, length, count = 0.0, 4, 12, 2**15
    for distribution in (gaussian_random_matrix, orthogonal_random_matrix):
        for _ in range(4):
            query, key, value = torch.rand(3, 1, 1, length, width, generator=generator, dtype=torch.float64) - 0.5
            attention = PerformerAttention(width, count, generator=generator, random_matrix=distribution).double()
            off = attention(query, key, value) - scaled_dot_product_attention_definition(query, key, value).output
            # The largest deviation of all numbers: one whose own is near zero by chance would be dominated by its
            # second order.
            standard_error = (
                performer_attention_variance(query, key, value, count).sqrt().max()
            )  # right angles only lessen it
            worst = max(worst, float(off.abs().max() / standard_error))
    quantity = "largest |Performer - softmax attention|, in standard deviations"
    return Evidence(
        quantity, worst, LEVEL + 1, "7 standard deviations for each of 48 numbers, by the variance in closed form", 8
    )


@claim("D4.1-12", "the cost of Performer attention is proportional to the length, and to the number of samples")
def cost_is_a_product(generator: torch.Generator) -> Evidence:
    def multiplications(length: int, count: int) -> int:
        attention = PerformerAttention(16, count, generator=generator)
        tensors = torch.randn(3, 1, 2, length, 16, generator=generator).unbind()
        with FlopCounterMode(display=False) as counter:
            attention(*tensors)
        return counter.get_total_flops() // 2

    worst = 0
    for _ in range(3):
        length, count = 64 * randint(1, 4, generator), 16 * randint(1, 4, generator)
        once = multiplications(length, count)
        for longer, more in ((2, 1), (1, 2), (4, 2)):
            worst = max(worst, abs(multiplications(longer * length, more * count) - longer * more * once))
    return Evidence(
        "largest |count(a n, b k) - a b count(n, k)|",
        worst,
        0,
        "exact: products of matrices counted as they run",
        9,
        "==",
    )


@claim("D4.1-12", "the error of k Monte-Carlo samples falls as 1/√k")
def error_falls_as_the_root(generator: torch.Generator) -> Evidence:
    x, y = pair(4, generator, longest=0.4)
    num_samples, ratios, slack = 4000, [], 0.0
    for count in (4, 64):
        each = along_each(
            performer_features_definition, x, y, gaussian_random_matrix(num_samples * count, 4, generator=generator)
        )
        errors = (each.view(num_samples, count).mean(dim=1) - (x @ y).exp()).square()
        ratios.append(float(errors.mean()))
        slack += float((errors.std() / errors.mean()).square() / num_samples)  # of the logarithm of each mean
    off = abs(math.log(ratios[0] / ratios[1]) - math.log(16)) / math.sqrt(slack)
    return Evidence(
        "|ln(error²(k) / error²(16 k)) - ln 16|, in standard errors", off, LEVEL + 1, "7 standard errors", num_samples
    )
