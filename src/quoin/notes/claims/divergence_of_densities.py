"""KL of densities: always defined, jointly convex, the same in all coordinates; and which Gaussian is nearest to two
modes, each way."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch import distributions as dist
from torch.distributions import Categorical, MixtureSameFamily, Normal
from torch.nn.functional import softplus

from quoin.info import differential_entropy, kl_divergence
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.information_densities import QUADRATURE
from quoin.notes.claims.random_tensors import uniform, uniform_tensor
from quoin.notes.claims.rounding import gap, max
from quoin.prob import Density, support_edges

BREAKPOINTS = 1e-6  # what quadrature leaves of an integrand with a kink between its nodes


def random_normal(generator: torch.Generator) -> Normal:
    return Normal(uniform_tensor(-1, 1, generator), uniform_tensor(0.5, 1.2, generator))


# ---- defined, and convex ----------------------------------------------------------------------------------------


def negative_part(p: Density, log_ratio: Callable[[Tensor], Tensor]) -> float:
    """E_P[(log dP/dQ)⁻]."""
    return float(p.expectation(lambda x: log_ratio(x).clamp_max(0).neg()))


@claim(
    "D6-5",
    "of densities too: E_P[(log p/q)⁻] = E_Q[(r log r)⁻] ≤ 1/e, also where KL is infinite, so that KL is its positive "
    "part less a finite one",
    not_shown="all pairs P ≪ Q, and spaces without densities",
)
def negative_part_of_densities(generator: torch.Generator) -> Evidence:
    worst, highest, cases = 0.0, 0.0, 0
    zero, one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    pairs: list[tuple[dist.Distribution, dist.Distribution, bool]] = [
        (random_normal(generator), random_normal(generator), True) for _ in range(3)
    ]
    pairs += [
        (dist.Cauchy(zero, one), Normal(zero, one), False),
        (Normal(zero, one), dist.Cauchy(zero, one), True),
        (dist.Laplace(zero, one), random_normal(generator), True),
        (dist.StudentT(one, zero, one), Normal(one, one), False),
    ]
    for p, q, finite in pairs:

        def log_ratio(x: Tensor, p=p, q=q) -> Tensor:
            return p.log_prob(x) - q.log_prob(x)

        under_p = negative_part(Density.from_distribution(p), log_ratio)
        under_q = float(
            Density.from_distribution(q).expectation(
                lambda x, log_ratio=log_ratio: (log_ratio(x).exp() * log_ratio(x)).clamp_max(0).neg()
            )
        )
        worst, cases = max(worst, abs(under_p - under_q), under_p - 1 / math.e), cases + 1
        divergence = float(kl_divergence(p, q))
        if not finite:
            worst = max(worst, 0.0 if divergence == math.inf else math.inf)
            continue
        gained = Density.from_distribution(p).expectation(lambda x, log_ratio=log_ratio: log_ratio(x).clamp(min=0))
        worst = max(worst, abs(divergence - (float(gained) - under_p)))
    for rest in (0.1, 0.01, 0.001):  # r = 1/e on all but `rest` of Q = U[0, 1]: the bound is nearly reached
        height = (1 - (1 - rest) / math.e) / rest
        p = Density(lambda x, rest=rest, height=height: torch.where(x < 1 - rest, 1 / math.e, height), (0, 1 - rest, 1))
        under_p = negative_part(p, lambda x, p=p: p(x).log())
        worst, highest, cases = max(worst, abs(under_p - (1 - rest) / math.e)), max(highest, under_p), cases + 1
    worst = max(worst, 0.0 if highest > 0.998 / math.e else math.inf)
    source = "error of the quadrature at kinks"
    return Evidence("largest excess over 1/e, difference of two means", worst, BREAKPOINTS, source, cases)


def mixture(weight: float, first: Normal, second: Normal) -> MixtureSameFamily:
    weights = torch.tensor([weight, 1 - weight], dtype=torch.float64)
    return MixtureSameFamily(
        Categorical(weights), Normal(torch.stack([first.loc, second.loc]), torch.stack([first.scale, second.scale]))
    )


@claim(
    "D1.4-17",
    "KL of densities is jointly convex too; where the two pairs live apart it is linear: the bound is met, and it may "
    "be infinite",
    not_shown="all densities: normal mixtures and densities on intervals",
)
def jointly_convex_densities(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 6
    for _ in range(cases):
        p, p_other, q, q_other = (random_normal(generator) for _ in range(4))
        weight = uniform(0.1, 0.9, generator)
        mixed = float(kl_divergence(mixture(weight, p, p_other), mixture(weight, q, q_other)))
        bound = weight * float(kl_divergence(p, q)) + (1 - weight) * float(kl_divergence(p_other, q_other))
        worst = max(worst, mixed - bound, -mixed)
        # The same means with width one, the second pair 14 away where neither of the first has mass: the bound,
        # half the squared distance of means, is met, to the 1e-3 that quadrature leaves of modes so far apart.
        one = torch.ones((), dtype=torch.float64)
        centers = [(p.loc, p_other.loc + 14), (q.loc, q_other.loc + 14)]
        apart = [mixture(weight, Normal(a, one), Normal(b, one)) for a, b in centers]
        squares = weight * (p.loc - q.loc) ** 2 / 2 + (1 - weight) * (p_other.loc - q_other.loc) ** 2 / 2
        worst = max(worst, 1e-3 * abs(float(kl_divergence(apart[0], apart[1]) - squares)))
        # On [0, 1] 1 + t(2x - 1) against 1, on [1, 2] 2(x - 1) against 1, whose KL is ln 2 - 1/2.
        t = uniform(-0.9, 0.9, generator)
        left = Density(lambda x, t=t: 1 + t * (2 * x - 1), (0, 1))
        whole = Density(
            lambda x, w=weight, t=t: torch.where(x < 1, w * (1 + t * (2 * x - 1)), 2 * (1 - w) * (x - 1)), (0, 1, 2)
        )
        flat = Density(lambda x, w=weight: torch.where(x < 1, w, 1 - w) + 0 * x, (0, 1, 2))
        tilt = weight * float(kl_divergence(left, Density(lambda x: 1 + 0 * x, (0, 1))))
        worst = max(worst, abs(float(kl_divergence(whole, flat)) - tilt - (1 - weight) * (math.log(2) - 0.5)))
        # The mix of Q and Q′ covers P though Q alone does not: the bound is infinite, the mixed divergence is not.
        narrow, wide = (
            dist.Uniform(0.0, torch.ones((), dtype=torch.float64)),
            dist.Uniform(0.0, torch.full((), 2.0).double()),
        )
        covers = Density(lambda x, w=weight: torch.where(x < 1, w + (1 - w) / 2, (1 - w) / 2) + 0 * x, (0, 1, 2))
        level = 0.5 * (math.log(0.5 / (weight + (1 - weight) / 2)) + math.log(1 / (1 - weight)))
        worst = max(worst, 0.0 if float(kl_divergence(wide, narrow)) == math.inf else math.inf)
        worst = max(worst, abs(float(kl_divergence(wide, covers)) - level))
    return Evidence(
        "largest divergence of the mix less its bound",
        worst,
        1e-6,
        "error of the quadrature where p falls to 0",
        4 * cases,
    )


# ---- the same in all coordinates --------------------------------------------------------------------------------


class Diffeomorphism(NamedTuple):
    """ψ of one tensor for each coordinate, its inverse, log |det Dψ(x)| at x, and edges of pieces in the image."""

    forward: Callable[..., tuple[Tensor, ...]]
    inverse: Callable[..., tuple[Tensor, ...]]
    log_det: Callable[..., Tensor]
    edges: tuple[Float[Tensor, "e"], ...]


def pushed(log_prob: Callable[[Tensor], Tensor], psi: Diffeomorphism) -> Density:
    """The distribution of ψ(X): p(ψ⁻¹(y)) / |det Dψ(ψ⁻¹(y))|, on the image."""

    def density(*y: Tensor) -> Tensor:
        x = psi.inverse(*y)
        at = torch.stack(torch.broadcast_tensors(*x), dim=-1)
        return (log_prob(at) - psi.log_det(*x)).exp()

    return Density(density, *psi.edges, num_nodes=80 if len(psi.edges) == 1 else 60)


def maps_of_the_line(p: Normal, generator: torch.Generator) -> list[Diffeomorphism]:
    """Affine and sinh are onto the line; exp and tanh are not, but have inverses on their image."""
    scale, shift = uniform(-3, -0.3, generator), uniform(-2, 2, generator)
    edges = support_edges(p)
    plain = [
        (lambda x: scale * x + shift, lambda y: (y - shift) / scale, lambda x: 0 * x + math.log(-scale)),
        (torch.exp, torch.log, lambda x: x),
        (torch.tanh, torch.atanh, lambda x: 2 * (math.log(2) - x - softplus(-2 * x))),
        (torch.sinh, torch.asinh, lambda x: x.cosh().log()),
    ]
    return [
        Diffeomorphism(lambda x, f=f: (f(x),), lambda y, g=g: (g(y),), log, (f(edges).sort().values,))
        for f, g, log in plain
    ]


def maps_of_the_plane(generator: torch.Generator) -> list[Diffeomorphism]:
    """Onto the plane: linear with a shear, (x, y + x²/2) of determinant one, (x, y e^(x/4)), and (x + tanh y, y)."""
    a, b = uniform(0.5, 1.5, generator), uniform(-0.5, 0.5, generator)
    line = torch.tensor([-math.inf, -3, -1, 1, 3, math.inf], dtype=torch.float64)
    return [
        Diffeomorphism(
            lambda x, y: (a * x, y + b * x),
            lambda u, v: (u / a, v - b * u / a),
            lambda x, y: 0 * x + math.log(a),
            (line, line),
        ),
        Diffeomorphism(
            lambda x, y: (x, y + x**2 / 2), lambda u, v: (u, v - u**2 / 2), lambda x, y: 0 * x, (line, line)
        ),
        Diffeomorphism(
            lambda x, y: (x, y * (x / 4).exp()), lambda u, v: (u, v * (-u / 4).exp()), lambda x, y: x / 4, (line, line)
        ),
        Diffeomorphism(
            lambda x, y: (x + y.tanh(), y), lambda u, v: (u - v.tanh(), v), lambda x, y: 0 * x, (line, line)
        ),
    ]


def moved(p: dist.Distribution, q: dist.Distribution, before: Density, psi: Diffeomorphism) -> tuple[float, float]:
    """By how much ψ changes KL(P, Q), and the entropy of P beyond E log |det Dψ(X)|."""
    scalar = isinstance(p, Normal)

    def of(each: dist.Distribution) -> Density:
        return pushed(lambda x: each.log_prob(x[..., 0] if scalar else x), psi)

    new_p, new_q = of(p), of(q)
    entropies = differential_entropy(new_p) - differential_entropy(p)
    return gap(kl_divergence(new_p, new_q), kl_divergence(p, q)), gap(entropies, before.expectation(psi.log_det))


@claim(
    "D6-6",
    "a diffeomorphism ψ of the line or the plane leaves KL as it is, D(ψP ‖ ψQ) = D(P ‖ Q), and moves a differential "
    "entropy by E log |det Dψ(X)|; |x|, which is not injective, loses KL",
    not_shown="every diffeomorphism, or spaces without densities: eight maps, four of the line and four onto the plane",
)
def kl_is_invariant(generator: torch.Generator) -> Evidence:
    line, plane, cases = 0.0, 0.0, 0
    for _ in range(3):
        p, q = random_normal(generator), random_normal(generator)
        for psi in maps_of_the_line(p, generator):
            line, cases = max(line, *moved(p, q, Density.from_distribution(p), psi)), cases + 1
    p, q = (random_pair_of_width_one(generator) for _ in range(2))
    edges = torch.tensor([-math.inf, -1, 1, math.inf], dtype=torch.float64)
    before = Density(lambda x, y: p.log_prob(torch.stack(torch.broadcast_tensors(x, y), dim=-1)).exp(), edges, edges)
    for psi in maps_of_the_plane(generator):
        plane, cases = max(plane, *moved(p, q, before, psi)), cases + 1
    one = torch.ones((), dtype=torch.float64)

    def folded(x: Tensor, mean: float) -> Tensor:
        return Normal(mean * one, one).log_prob(x).exp() + Normal(mean * one, one).log_prob(-x).exp()

    far, near = (Density(lambda x, m=m: folded(x, m), (0, 1, 2, 4, math.inf)) for m in (1.0, -1.0))
    lost = abs(float(kl_divergence(far, near)))  # |X| has one distribution for N(1, 1) and N(-1, 1), whose KL is 2
    worst = max(line / QUADRATURE, plane / 1e-4, lost / QUADRATURE)
    return Evidence(
        "largest change of KL, or of h beyond E log |det Dψ|, / the quadrature's error",
        worst,
        1.0,
        "1e-8 on the line, 1e-4 with 60 nodes a piece on the plane",
        cases + 1,
    )


def random_pair_of_width_one(generator: torch.Generator) -> dist.MultivariateNormal:
    """Standard deviations from 0.8 to 1.2 and a correlation within 0.5, so that one set of pieces suits all."""
    s, t = uniform(0.8, 1.2, generator), uniform(0.8, 1.2, generator)
    c = uniform(-0.5, 0.5, generator) * s * t
    mean = torch.tensor([uniform(-0.5, 0.5, generator), uniform(-0.5, 0.5, generator)], dtype=torch.float64)
    return dist.MultivariateNormal(mean, torch.tensor([[s * s, c], [c, t * t]], dtype=torch.float64))


# ---- the nearest Gaussian ---------------------------------------------------------------------------------------


def searched(
    height: Callable[[Tensor, Tensor], Tensor], means: tuple[float, float], stds: tuple[float, float]
) -> tuple[float, float]:
    """The mean and standard deviation of the lowest point, by a grid that is laid again about its lowest node."""
    (low, high), (narrow, wide) = means, (math.log(stds[0]), math.log(stds[1]))
    mean = std = torch.zeros((), dtype=torch.float64)
    for _ in range(8):
        mean, log_std = (
            torch.linspace(low, high, 41, dtype=torch.float64)[:, None],
            torch.linspace(narrow, wide, 31, dtype=torch.float64),
        )
        std = log_std.exp()
        row, column = divmod(int(height(mean, std).argmin()), 31)
        mean, std = mean[row, 0], std[column]
        reach, stretch = (high - low) / 20, (wide - narrow) / 15  # two cells to either side
        low, high = float(mean) - reach, float(mean) + reach
        narrow, wide = float(std.log()) - stretch, float(std.log()) + stretch
    return float(mean), float(std)


@claim(
    "M24",
    "of two modes KL(P, Q) is least, over all Gaussians Q in a search, at P's mean and variance, covering both; "
    "KL(Q, P) at one mode with its width, at nearly ln 2",
    not_shown="Gaussians outside the search, of means beyond three times the modes or of widths beyond 0.1 to 20",
)
def kl_both_ways(generator: torch.Generator) -> Evidence:
    far, cases = 0.0, 2
    # A trapezium rule for E_Q; fine where Q is so wide that log p, of two modes, has a bend between two nodes.
    coarse, fine = (torch.linspace(-9, 9, count, dtype=torch.float64) for count in (121, 20001))
    for _ in range(cases):
        distance, width = uniform(4, 6, generator), uniform(0.7, 1, generator)
        ends = torch.tensor([-distance, distance], dtype=torch.float64)
        p = mixture(0.5, *(Normal(end, torch.tensor(width, dtype=torch.float64)) for end in ends))

        def forward(mean: Tensor, std: Tensor, p=p) -> Tensor:  # KL(P, Q) + h(P) needs two moments of P alone
            return std.log() + (p.variance + (p.mean - mean).square()) / (2 * std.square())

        def backward(mean: Tensor, std: Tensor, p=p, z: Tensor = coarse) -> Tensor:  # KL(Q, P) + ½ log 2πe
            x = mean[..., None] + std[..., None] * z
            return -std.log() - p.log_prob(x) @ Normal(0.0, 1.0).log_prob(z).softmax(dim=0)

        box = (-3 * distance, 3 * distance), (0.1, 20.0)
        covering, settled = searched(forward, *box), searched(backward, *box)
        overlap = math.exp(-((distance / width) ** 2) / 2)
        far = max(far, abs(covering[0]), abs(covering[1] - float(p.stddev)))
        # The other mode moves the minimiser by its overlap, times some powers of distance / width.
        far = max(far, (abs(abs(settled[0]) - distance) + abs(settled[1] - width)) / (1 + 1e6 * overlap))
        best = torch.tensor([covering, settled], dtype=torch.float64)
        both, one = Normal(best[0, 0], best[0, 1]), Normal(best[1, 0], best[1, 1])
        at_both, at_one = float(kl_divergence(p, both)), float(kl_divergence(one, p))
        # P ≥ ½ of that mode, so KL ≤ ln 2, and less only by E log(1 + e^(-2ax/w²)) ≤ e^(-a²/2w²): log(1 + u) ≤ √u.
        far = max(far, 0.0 if math.log(2) - overlap - 1e-6 <= at_one <= math.log(2) + 1e-6 else math.inf)
        for _ in range(4):  # rivals, measured by the library: none is lower, and each by what the search says
            rival = Normal(uniform_tensor(*box[0], generator), uniform_tensor(0.3, 8, generator))
            more = float(kl_divergence(p, rival)) - at_both, float(kl_divergence(rival, p)) - at_one
            pairs = ((forward, both), (functools.partial(backward, z=fine), one))
            stated = [float(form(rival.loc, rival.scale) - form(least.loc, least.scale)) for form, least in pairs]
            far = max(far, *(abs(m - s) / (1 + abs(s)) for m, s in zip(more, stated)), *(-1e3 * m for m in more))
    return Evidence(
        "largest distance of a minimiser from P's moments or a mode, of the library from the search",
        far,
        1e-5,
        "41 × 31 nodes, laid 8 times, each 8 to 10 times finer; quadrature",
        4 * cases,
    )
