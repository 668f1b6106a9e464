"""The variational autoencoder: what its loss is, what it converges to where that is known, and which distributions its
parts must have."""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.losses import gaussian_vae_loss, gaussian_vae_loss_definition, vae_losses
from quoin.models import PPCA, VAE, BinomialDecoder, GaussianDecoder, LearnedGaussianDecoder, VAEDecoder, VAEEncoder
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal, uniform, uniform_tensor
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings
from quoin.prob import DiagonalNormal, kl_divergence, kl_normal, kl_standard_normal

CASES = 20


def signs(dim: int, rows: int) -> Float[Tensor, "2**{dim} {rows} {dim}"]:
    """Every combination of -1 and 1, for each row: means over them are exact for polynomials of degree 3 in standard
    normal noise."""
    every = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=dim)), dtype=torch.float64)
    return every.unsqueeze(1).expand(-1, rows, -1)


def problem(generator: torch.Generator) -> tuple[PPCA, Float[Tensor, "n d"], DiagonalNormal]:
    """A decoder with a linear mean, examples, and a distribution of z for each; for these the bound is known."""
    dim, n = randint(1, 3, generator), randint(1, 5, generator)
    d = dim + randint(1, 3, generator)
    decoder = PPCA(normal(d, dim, generator=generator), normal(d, generator=generator), uniform(0.3, 1.5, generator))
    q = DiagonalNormal(normal(n, dim, generator=generator), 0.5 * normal(n, dim, generator=generator))
    return decoder.requires_grad_(False), normal(n, d, generator=generator), q


def minus_bound(decoder: PPCA, x: Float[Tensor, "n d"], q: DiagonalNormal) -> Float[Tensor, ""]:
    """-(1/N) Σ_n L(x_n) - (d/2) ln 2πs², from the exact evidence and posterior."""
    constant = x.shape[-1] * (decoder.log_noise + math.log(2 * math.pi) / 2)
    return -decoder.elbo(x, q.mean, q.covariance).mean() - constant


@claim(
    "D6-28",
    "the loss of the Gaussian VAE, divergence plus squared error over 2s², is minus the mean bound but for (d/2) "
    "ln 2πs²",
)
def gaussian_loss_is_minus_the_bound(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        decoder, x, q = problem(generator)
        noise, s = signs(q.dim, len(x)), float(decoder.noise)
        exact = minus_bound(decoder, x, q)
        worst = max(worst, gap(gaussian_vae_loss(x, q.mean, q.log_std, noise, decoder, s), exact))
        terms = gaussian_vae_loss_definition(x, q.mean, q.std, noise, decoder, s)
        worst = max(worst, gap(terms.output, exact), gap(terms.kl.mean() + terms.reconstruction.mean(), exact))
    return Evidence(
        "largest difference from the exact bound", worst, roundings(50_000), "50,000 float64 roundings", 2 * CASES
    )


def divergence_plus_error(
    x: Float[Tensor, "n d"], q: DiagonalNormal, noise: Float[Tensor, "samples n dim"], decoder: PPCA
) -> Float[Tensor, ""]:
    return gaussian_vae_loss_definition(x, q.mean, q.std, noise, decoder, float(decoder.noise)).output


def reverse_plus_likelihood(
    x: Float[Tensor, "n d"], q: DiagonalNormal, noise: Float[Tensor, "samples n dim"], decoder: PPCA
) -> Float[Tensor, ""]:
    """D(p_Z‖q) + ln p(x | z), without the constant: a sign and a direction are wrong."""
    reverse = kl_normal(torch.zeros_like(q.mean), torch.eye(q.dim, dtype=x.dtype), q.mean, q.covariance)
    errors = (x - decoder(q.transform(noise))).square().sum(dim=-1).mean(dim=0)
    return (reverse - errors / (2 * decoder.noise**2)).mean()


@claim(
    "DE59",
    "the loss is minus the bound: D(q‖p_Z) plus the error of the decoder's mean; with ln p(x | z) added it rises "
    "as decoders improve",
    right=divergence_plus_error,
    printed=reverse_plus_likelihood,
)
def loss_falls_as_the_decoder_improves(form: Callable, generator: torch.Generator) -> Evidence:
    worst, rose = 0.0, 0
    for _ in range(CASES):
        decoder, x, q = problem(generator)
        noise = signs(q.dim, len(x))
        found = form(x, q, noise, decoder)
        worst = max(worst, gap(found, minus_bound(decoder, x, q)))
        better = PPCA(
            decoder.weight, decoder.bias + (x - decoder(q.mean)).mean(dim=0), float(decoder.noise)
        ).requires_grad_(False)
        rose += bool(form(x, q, noise, better) > found + roundings(1000))
    message = f"it rises when the decoder's bias is put where its errors are least, in {rose} of {CASES} cases"
    if rose:
        worst = math.inf
    bound, source = roundings(50_000), "50,000 float64 roundings"
    return Evidence(
        "largest difference from minus the exact bound", worst, bound, source, CASES, counterexample=message
    )


def by_deviation(q: DiagonalNormal, noise: Float[Tensor, "samples n dim"]) -> Float[Tensor, "samples n dim"]:
    return q.transform(noise)


def by_variance(q: DiagonalNormal, noise: Float[Tensor, "samples n dim"]) -> Float[Tensor, "samples n dim"]:
    return q.mean + noise * q.std**2


@claim(
    "DE60", "μ + σε has the distribution N(μ, σ²); μ + σ²ε has the variance σ⁴", right=by_deviation, printed=by_variance
)
def noise_is_placed_by_the_deviation(
    form: Callable[[DiagonalNormal, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, dim = randint(1, 4, generator), randint(1, 3, generator)
        q = DiagonalNormal(normal(n, dim, generator=generator), 0.5 * normal(n, dim, generator=generator))
        z = form(q, signs(dim, n))
        away = (z - q.mean).unsqueeze(-1)
        worst = max(worst, gap(z.mean(dim=0), q.mean), gap((away @ away.mT).mean(dim=0), q.covariance))
    return Evidence("largest error of mean or covariance", worst, roundings(256), "256 float64 roundings", CASES)


def standard_normal(cells: Float[Tensor, "n"], generator: torch.Generator) -> Float[Tensor, "n"]:
    zero = torch.zeros(1, dtype=cells.dtype)
    return DiagonalNormal(zero, zero).log_prob(cells.unsqueeze(-1)).exp()


def finitely_many_values(cells: Float[Tensor, "n"], generator: torch.Generator) -> Float[Tensor, "n"]:
    prior = torch.zeros_like(cells)
    prior[torch.randperm(len(cells), generator=generator)[:10]] = 0.1
    return prior


@claim(
    "DE58",
    "a normal q is finitely far from the prior N(0, 1), and infinitely far from a prior on finitely many values: "
    "nothing could be learnt",
    right=standard_normal,
    printed=finitely_many_values,
)
def divergence_needs_a_continuous_prior(form: Callable, generator: torch.Generator) -> Evidence:
    """The line in cells of width 0.01, each with the mass of q and of the prior: sums of smooth densities that fall off
    are exact."""
    worst, cells = 0.0, torch.arange(-12, 12, 0.01, dtype=torch.float64)
    for _ in range(CASES):
        q = DiagonalNormal(normal(1, generator=generator).clamp(-2, 2), uniform_tensor(-0.7, 0.3, generator).reshape(1))
        mass, prior = q.log_prob(cells.unsqueeze(-1)).exp(), form(cells, generator)
        found = kl_divergence(mass / mass.sum(), prior / prior.sum())
        worst = max(worst, gap(found, kl_standard_normal(q.mean, q.log_std)))
    return Evidence(
        "largest error of the divergence to its closed form",
        worst,
        1e-9,
        "sums of smooth functions, 2,400 cells",
        CASES,
    )


@claim(
    ("D6-23", "D6-30"),
    "maximising the summed bound over decoder and diagonal encoder, both linear, ends at the greatest likelihood "
    "of probabilistic PCA",
)
def linear_autoencoder_ends_at_the_maximum_likelihood_model(generator: torch.Generator) -> Evidence:
    """The bound can lose nothing: with W's columns orthogonal, which a rotation of z gives, the exact posterior is
    diagonal."""
    worst, above = 0.0, -math.inf
    for _ in range(2):
        d, dim, n = 4, 2, 50
        x = PPCA(normal(d, dim, generator=generator), normal(d, generator=generator), 0.5).sample(
            n, generator=generator
        )
        best = PPCA.fit(x, dim).log_evidence(x).mean().detach()
        encode, decode = nn.Linear(d, 2 * dim), nn.Linear(dim, d)
        for layer in (encode, decode):
            layer.weight.data = 0.3 * normal(*layer.weight.shape, generator=generator)
            layer.bias.data = torch.zeros(len(layer.bias))
        model = VAE(
            VAEEncoder(nn.Sequential(nn.Flatten(), encode)), LearnedGaussianDecoder(decode, (1, 1, d), 1.0), dim
        ).double()
        images, noise = x.reshape(n, 1, 1, d), signs(dim, n)

        def loss(model: VAE = model, images: Tensor = images, noise: Tensor = noise) -> Tensor:
            return vae_losses(model, model.encoder(images), images, noise).mean()

        _minimize(loss, model)
        reached = -loss().detach()
        worst, above = max(worst, abs(float(best - reached))), max(above, excess(reached, best))
    if above > roundings(10_000):  # a lower bound of a likelihood that is nowhere greater
        worst = math.inf
    return Evidence(
        "largest distance from the greatest mean log-likelihood, in nats",
        worst,
        1e-4,
        "the tolerance of the minimiser",
        2,
    )


def _minimize(loss: Callable[[], Tensor], model: nn.Module) -> None:
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=300, tolerance_grad=1e-6, tolerance_change=1e-10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


def coins(net: nn.Module, shape: tuple[int, int, int], levels: int) -> VAEDecoder:
    return BinomialDecoder(net, shape, num_levels=levels)


def gaussian(net: nn.Module, shape: tuple[int, int, int], levels: int) -> VAEDecoder:
    return GaussianDecoder(net, shape, 0.4)


@claim(
    "DE63",
    "binary images, and images of grey levels, have a decoder whose probabilities add up to 1: of coins; the "
    "Gaussian one is not the only",
    right=coins,
    printed=gaussian,
)
def coins_are_a_distribution_on_images(form: Callable, generator: torch.Generator) -> Evidence:
    worst = 0.0
    for shape, levels in (((1, 2, 3), 2), ((1, 1, 2), 17), ((2, 1, 2), 4)):
        pixels = math.prod(shape)
        line = torch.arange(levels, dtype=torch.float64) / (levels - 1)
        every = torch.cartesian_prod(*[line] * pixels).reshape(-1, *shape)
        net = nn.Linear(2, pixels)
        net.weight.data, net.bias.data = normal(pixels, 2, generator=generator), normal(pixels, generator=generator)
        decoder, z = form(net, shape, levels).double().requires_grad_(False), normal(1, 2, generator=generator)
        probs = decoder.log_likelihood(every, z.expand(len(every), -1)).exp()
        worst = max(worst, gap(probs.sum(), torch.tensor(1.0, dtype=torch.float64)))
        mean = (probs.reshape(-1, 1, 1, 1) * every).sum(dim=0)
        worst = max(worst, gap(mean, decoder(z)[0]))
    return Evidence(
        "largest error of all probabilities to 1, or of the mean",
        worst,
        roundings(20_000),
        "20,000 float64 roundings",
        3,
    )
