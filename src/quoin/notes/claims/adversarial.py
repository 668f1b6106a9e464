"""The adversarial game: the best discriminator, what it says of the two distributions, and which loss a generator
learns from."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, Normal

from quoin.info import kl_divergence
from quoin.losses import (
    adversarial_value,
    input_gradients,
    minimax_value,
    non_saturating_loss,
    optimal_discriminator,
    r1_penalty,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal, uniform_tensor
from quoin.notes.claims.rounding import excess, gap, max, min, randint, roundings
from quoin.prob import Quadrature, jensen_shannon_divergence, line_quadrature

CASES = 20
FITS = 5  # cases of what takes many steps
STEPS = 100  # of both players
QUADRATURE = 1e-6  # what 80 nodes a piece leave of normal densities that the edges of the pieces do not know


def random_pair(n: int, generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Two distributions on n outcomes, each of which leaves some out."""
    distributions = normal(2, n, generator=generator).exp() * (torch.rand(2, n, generator=generator) < 0.8)
    distributions[:, 0] += 0.1
    p, fake = distributions / distributions.sum(dim=-1, keepdim=True)
    return p, fake


def random_bumps(generator: torch.Generator) -> MixtureSameFamily:
    """A mixture of three normal distributions on the line."""
    return MixtureSameFamily(
        Categorical(logits=normal(3, generator=generator)),
        Normal(2 * normal(3, generator=generator), 0.5 + torch.rand(3, generator=generator, dtype=torch.float64)),
    )


def nodes() -> Quadrature:
    """Nodes and weights for integrals over the line of functions of normal densities of such standard deviations."""
    inner = torch.linspace(-8, 8, 17, dtype=torch.float64)
    return line_quadrature(torch.cat([torch.tensor([-math.inf]), inner, torch.tensor([math.inf])]))


@claim(
    "D5.2-7", "no discriminator does better than D* = p/(p + p_G), outcome by outcome, and every other one does worse"
)
def best_discriminator_on_tables(generator: torch.Generator) -> Evidence:
    """V is concave in D: besides random rivals, a step of any size from D* towards one of them must lose."""
    worst = -math.inf
    for _ in range(CASES):
        p, fake = random_pair(randint(2, 9, generator), generator)
        best = optimal_discriminator(p, fake)
        rivals = torch.rand(100, len(p), generator=generator, dtype=torch.float64)
        step = torch.rand(100, 1, generator=generator, dtype=torch.float64)
        rivals = torch.where((p + fake) > 0, torch.lerp(best, rivals, step), best)
        many = adversarial_value(p.expand_as(rivals), fake.expand_as(rivals), rivals)
        # Strong concavity: -(ln D)'' and -(ln(1 - D))'' are at least 1, so that V falls by (p + p_G)(D - D*)²/2 or
        # more.
        least = ((p + fake) * (rivals - best).square()).sum(dim=-1) / 2
        worst = max(worst, excess(many + least, adversarial_value(p, fake, best)))
    return Evidence(
        "largest gain over V(D*) less what D - D* must cost",
        worst,
        roundings(100),
        "100 float64 roundings",
        100 * CASES,
    )


@claim(
    "D5.2-7",
    "a discriminator fitted to two distributions on the line finds ln D*/(1 - D*) = ln p - ln p_G",
    not_shown="all densities: normal ones, whose log ratio a parabola reaches",
)
def fitted_discriminator_is_optimal(generator: torch.Generator) -> Evidence:
    """The log ratio of two normal densities is a parabola: a D with a quadratic logit can reach it, and Newton's steps
    on V do."""
    x = torch.linspace(-4, 4, 81, dtype=torch.float64)
    powers = torch.stack([torch.ones_like(x), x, x.square()], dim=-1)  # (points, 3)
    worst = 0.0
    for _ in range(FITS):
        p, fake = (
            Normal(uniform_tensor(-1, 1, generator), uniform_tensor(0.8, 1.3, generator)).log_prob(x).softmax(dim=0)
            for _ in range(2)
        )
        theta = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        for _ in range(15):
            value = adversarial_value(p, fake, torch.sigmoid(powers @ theta))
            gradient = torch.autograd.grad(value, theta, create_graph=True)[0]
            hessian = torch.stack([torch.autograd.grad(each, theta, retain_graph=True)[0] for each in gradient])
            step = torch.linalg.solve(hessian, gradient.detach())
            theta = (theta - step * min(1.0, 2 / float(step.norm()))).detach().requires_grad_()
        worst = max(worst, gap(torch.sigmoid(powers @ theta), optimal_discriminator(p, fake)))
    return Evidence("largest |D - D*|", worst, 1e-8, "half the digits of float64, where Newton's steps end", FITS)


@claim(
    "D5.2-7",
    "at the best discriminator the value is 2 JS(p, p_G) - ln 4, and so at least -ln 4, with equality at p_G = p",
)
def value_at_optimum_is_jensen_shannon(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p, fake = random_pair(randint(2, 9, generator), generator)
        found = adversarial_value(p, fake, optimal_discriminator(p, fake))
        worst = max(
            worst, gap(found, 2 * jensen_shannon_divergence(p, fake) - math.log(4)), -math.log(4) - float(found)
        )
        worst = max(
            worst,
            gap(adversarial_value(p, p, optimal_discriminator(p, p)), torch.tensor(-math.log(4), dtype=torch.float64)),
        )
    return Evidence("largest error", worst, roundings(100), "100 float64 roundings", 2 * CASES)


@claim("D5.2-7", "with densities on the line, too, the best value is 2 JS(p, p_G) - ln 4")
def value_of_densities(generator: torch.Generator) -> Evidence:
    """V by quadrature of our loss at D*; JS from relative entropies to the distribution that is p or p_G by the toss of
    a coin."""
    worst, (x, weights) = 0.0, nodes()
    for _ in range(CASES):
        real, fake = random_bumps(generator), random_bumps(generator)
        p, p_fake = real.log_prob(x).exp(), fake.log_prob(x).exp()
        # 1 - D* is p_G/(p + p_G): so said, it is right far out too, where D* rounds to 1.
        logs = torch.xlogy(p, optimal_discriminator(p, p_fake)) + torch.xlogy(p_fake, optimal_discriminator(p_fake, p))
        coin = _coin(real, fake)
        apart = (kl_divergence(real, coin) + kl_divergence(fake, coin)) / 2
        worst = max(worst, gap((weights * logs).sum(), 2 * apart - math.log(4)))
    return Evidence("largest error", worst, QUADRATURE, "80 tanh-sinh nodes a piece", CASES)


def _coin(one: MixtureSameFamily, other: MixtureSameFamily) -> MixtureSameFamily:
    mixture_weights = torch.cat([each.mixture_distribution.probs for each in (one, other)]) / 2
    bumps = [each.component_distribution for each in (one, other)]
    mean, std = torch.cat([each.mean for each in bumps]), torch.cat([each.stddev for each in bumps])
    return MixtureSameFamily(Categorical(mixture_weights), Normal(mean, std))


@claim(
    "D5.2-7",
    "where D finds a fake out, ln(1 - D) has the derivative -D in its logit, near 0, and -ln D the derivative D - "
    "1, near -1",
)
def beaten_generators_learn_by_the_other_loss(generator: torch.Generator) -> Evidence:
    """Both want larger logits, so that a generator at rest under one is at rest under the other."""
    worst = 0.0
    for _ in range(CASES):
        logits = (8 * normal(randint(1, 5, generator), generator=generator)).requires_grad_()
        probability = torch.sigmoid(logits.detach())
        value = minimax_value(normal(3, generator=generator), logits) * len(logits)
        worst = max(worst, gap(torch.autograd.grad(value, logits)[0], -probability))
        worst = max(worst, gap(torch.autograd.grad(non_saturating_loss(logits).sum(), logits)[0], probability - 1))
    return Evidence("largest error of a derivative", worst, roundings(50), "50 float64 roundings", 2 * CASES)


@claim(
    "D5.2-7",
    "steps of a point mass against a linear D lead away from its rest at the data; a penalty on ∇D leads them there",
)
def penalty_brings_the_game_to_rest(generator: torch.Generator) -> Evidence:
    """Data at 0, fakes at θ, the logit of D is ψx: at (0, 0) the game rotates, θ' = ψ/2, ψ' = -θ/2."""
    ratios = []
    for _ in range(FITS):
        start = 0.01 * normal(2, generator=generator)
        for strength in (0.0, 1.0):
            theta, psi = start.clone()
            for _ in range(STEPS):
                theta, psi = play(theta, psi, strength)
            grown = float(torch.hypot(theta, psi) / start.norm())
            # Near rest a step multiplies by √(1 + η²/4) without a penalty, by about 1 - η/2 with one of 1: three times,
            # and nothing.
            ratios.append(grown if strength else 1 / grown)
    message = "near rest, (1 + η²/4)^(steps/2) and e^(-η steps/2)"
    return Evidence("largest growth with the penalty, and shrinking without", max(ratios), 0.5, message, 2 * FITS)


def play(
    theta: Float[Tensor, ""], psi: Float[Tensor, ""], strength: float, lr: float = 0.3
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """One step of both players at once in the minimax game; D's logit at x is ψx, the real example 0, the fake one
    θ."""
    theta, psi = theta.requires_grad_(), psi.requires_grad_()
    real = input_gradients(lambda x: x[:, 0] * psi, torch.zeros(1, 1, dtype=torch.float64))
    value = minimax_value(real.output, (psi * theta).unsqueeze(0))
    down, up = torch.autograd.grad(value, [theta, psi], retain_graph=True)
    held = torch.autograd.grad(r1_penalty(real.gradients, strength), psi)[0]
    return (theta - lr * down).detach(), (psi + lr * (up - held)).detach()
