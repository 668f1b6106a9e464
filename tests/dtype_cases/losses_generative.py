"""Cases for what `quoin.losses` has of generative models: games, bounds, diffusion, samples. Part of losses.py."""

import torch

from quoin import losses as q
from quoin.prob import Denoised, DiagonalNormal, EpsilonPrediction, LatentModel, linear_beta_schedule

SCHEDULE = linear_beta_schedule(4)
TIMES = torch.tensor([2, 4])
PICTURES, GUESSES = [[0, 100, 30], [90, 1, 5]], [[60, 20, 7], [3, 90, 5]]
LAW, OTHER = [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]
POINTS, OTHERS = [[0, 100], [150, 3], [90, 90], [7, 60]], [[60, 60], [140, 9], [1, 2]]
NOISE = [[[0, 1], [1, 0]], [[1, 1], [0, 0]]]  # two draws of two coordinates for two examples


class Sums(LatentModel):
    """z a standard normal without its constant, x = z with errors of one: its numbers come as they are given."""

    def log_prior(self, z):
        return -z.square().sum(dim=-1) / 2

    def log_likelihood(self, x, z):
        return -(x - z).square().sum(dim=-1) / 2

    def sample_prior(self, sample_shape=(), *, generator):
        return torch.zeros(*sample_shape, 2)


def score_gradient(x):
    parameter = x([2.0]).requires_grad_()
    return q.score_function_gradient_definition(x([100, 3]), parameter * x([3, 1]), parameter)


def law_of(x):
    return DiagonalNormal(x([[1, 2], [0, 3]]), x([[0, 1], [1, 0]]))


def knows(clean):
    """A denoiser that has the answer but for one, whatever noise was drawn."""
    return lambda noisy, t: Denoised(clean + 1, noisy)


def bound(x, **options):
    clean = x(PICTURES)
    return q.diffusion_vlb(knows(clean), SCHEDULE, clean, generator=torch.Generator(), **options)


def sampled_bound(x):
    clean = x(PICTURES)
    return q.sampled_diffusion_vlb(knows(clean), SCHEDULE, clean, num_times=3, generator=torch.Generator())


def decode(z):
    return torch.cat([z, z[:, :1]], dim=1)


def gradients(f):
    """Slopes of Σ_j x_j² for each example."""
    return lambda x: f(lambda at: at.square().sum(dim=1), x(PICTURES))


CASES = {
    "minimax_value_definition": lambda x: q.minimax_value_definition(x([0.5, 1]), x([0.25, 0])),
    "minimax_value": lambda x: q.minimax_value(x([0, 100]), x([150, 20])),
    "saturating_loss": lambda x: q.saturating_loss(x([0, 100, 150])),
    "non_saturating_loss_definition": lambda x: q.non_saturating_loss_definition(x([0.5, 1])),
    "non_saturating_loss": lambda x: q.non_saturating_loss(x([0, -100, -127])),
    "optimal_discriminator": lambda x: q.optimal_discriminator(x([100, 0, 1]), x([200, 0, 3])),
    "adversarial_value": lambda x: q.adversarial_value(x(LAW), x(OTHER), x([0.5, 0.75, 0.25])),
    "input_gradients": gradients(q.input_gradients),
    "input_gradients_definition": gradients(q.input_gradients_definition),
    "r1_penalty": lambda x: q.r1_penalty(x(PICTURES), 0.5),
    "gradient_penalty": lambda x: q.gradient_penalty(x(PICTURES), 0.5),
    "interpolate_examples": lambda x: q.interpolate_examples(
        x(PICTURES), x(PICTURES), generator=torch.Generator()
    ),  # alike: u is no matter
    # diffusion and flow
    "denoising_loss": lambda x: q.denoising_loss(
        lambda noisy, t: noisy, SCHEDULE, EpsilonPrediction(), x(PICTURES), TIMES, x(GUESSES)
    ),
    "flow_matching_loss": lambda x: q.flow_matching_loss(lambda at, t: at, x(PICTURES), x(GUESSES), x([0.5, 0.25])),
    "prior_kl": lambda x: q.prior_kl(SCHEDULE, x(PICTURES)),
    "denoising_kl_definition": lambda x: q.denoising_kl_definition(SCHEDULE, x(PICTURES), x(GUESSES), 3),
    "denoising_kl": lambda x: q.denoising_kl(SCHEDULE, x(PICTURES), x(GUESSES), TIMES),
    "reconstruction_log_prob": lambda x: q.reconstruction_log_prob(SCHEDULE, x(PICTURES), x(GUESSES)),
    "reconstruction_log_prob bins": lambda x: q.reconstruction_log_prob(
        SCHEDULE, x([[0.25, 1], [0, -1]]), x([[0, 1], [1, 0]]), bin_width=0.25
    ),
    "diffusion_vlb": bound,
    "diffusion_vlb bins": lambda x: bound(x, bin_width=0.25),
    "sampled_diffusion_vlb": sampled_bound,
    # bounds
    "elbo_definition": lambda x: q.elbo_definition(x([0, 100]), x([150, 20]), x([1, 2])),
    "elbo_groupings": lambda x: q.elbo_groupings(x(LAW), x([1, 0.5, 0.25]), x(OTHER)),
    "elbo_reinforce": lambda x: q.elbo_reinforce(Sums(), law_of(x), x(POINTS[:2]), x(NOISE)),
    "elbo_reinforce_baseline": lambda x: q.elbo_reinforce_baseline(Sums(), law_of(x), x(POINTS[:2]), x(NOISE)),
    "elbo_reparameterized": lambda x: q.elbo_reparameterized(Sums(), law_of(x), x(POINTS[:2]), x(NOISE)),
    "elbo_analytic_kl": lambda x: q.elbo_analytic_kl(Sums(), law_of(x), x(POINTS[:2]), x(NOISE), kl=x([3, 100])),
    "elbo_bonnet_price": lambda x: q.elbo_bonnet_price(Sums(), law_of(x), x(POINTS[:2]), x(NOISE)),
    "bonnet_price_gradients": lambda x: q.bonnet_price_gradients(lambda z: z.square().sum(dim=-1), x(POINTS)),
    "score_function_gradient_definition": score_gradient,
    "gaussian_vae_loss": lambda x: q.gaussian_vae_loss(
        x(PICTURES), x([[1, 20], [90, 3]]), x([[0, 1], [1, 0]]), x(NOISE), decode, 2.0
    ),
    "gaussian_vae_loss_definition": lambda x: q.gaussian_vae_loss_definition(
        x(PICTURES), x([[1, 20], [90, 3]]), x([[1, 2], [2, 1]]), x(NOISE), decode, 2.0
    ),
    "vae_losses": lambda x: q.vae_losses(Sums(), law_of(x), x(POINTS[:2]), x(NOISE), kl_weight=0.5),
    # samples
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = {
    "DiffusionVLB": RESULT,
    "ElboGroupings": RESULT,
    "GaussianVAELoss": RESULT,
    "InputGradients": RESULT,
    "BonnetPriceGradients": RESULT,
    "kl_warmup": "takes Python floats",
}
