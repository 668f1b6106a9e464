"""What can be drawn from and has log-probabilities: log_prob takes what the sampler gives, and its mean is minus the
entropy.

Every class among the public names of prob, info, models and generate that has a sampler beside a log-probability stands
here or is abstract. Entropies come from closed forms, from listing all outcomes, or from scipy's quadrature; never from
the class itself.
"""

import importlib
import inspect
import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from quoin import generate, models, prob
from quoin.errors import UserError
from seeds import seeded

COUNT = 20_000
SAMPLERS = {"sample", "sample_paths", "rsample", "sample_prior"}
LOGS = {"log_prob", "log_density", "log_likelihood", "log_joint"}
ABSTRACT = {"FiniteChain", "LatentModel", "TractableLatentModel", "VAEDecoder"}

double = lambda x: torch.tensor(x, dtype=torch.float64)  # noqa: E731
MEAN, COVARIANCE = double([1.0, -2.0]), double([[2.0, 0.6], [0.6, 0.5]])
START, STEP = double([0.2, 0.8]), double([[0.9, 0.1], [0.4, 0.6]])
SPOKEN = double([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
TIMES = double([0.0, 0.3, 0.3, 1.1])


def of_table(table) -> float:
    return float(stats.entropy(np.asarray(table).ravel()))


def of_normal(covariance) -> float:
    covariance = np.atleast_2d(np.asarray(covariance))
    return float(stats.multivariate_normal(np.zeros(len(covariance)), covariance).entropy())


def of_density(log_density, low, high) -> float:
    return integrate.quad(lambda x: -math.exp(log_density(x)) * log_density(x), low, high, limit=500)[0]


def of_mixture(weights, means, deviations) -> float:
    log_density = lambda x: math.log(sum(w * stats.norm.pdf(x, m, s) for w, m, s in zip(weights, means, deviations)))  # noqa: E731
    return of_density(log_density, -20, 20)


def of_paths(start, *steps) -> float:
    """Of a chain by listing its paths."""
    joint = np.asarray(start)
    for step in steps:
        joint = joint[..., None] * np.asarray(step)
    return of_table(joint)


def of_spoken(num_steps) -> float:
    """Of the observations of a hidden chain, all states and words listed."""
    total = {}
    for states in itertools.product(range(2), repeat=num_steps):
        path = float(START[states[0]]) * math.prod(float(STEP[i, j]) for i, j in itertools.pairwise(states))
        for word in itertools.product(range(3), repeat=num_steps):
            said = math.prod(float(SPOKEN[state, symbol]) for state, symbol in zip(states, word))
            total[word] = total.get(word, 0.0) + path * said
    return of_table(list(total.values()))


def mixture():
    return prob.GaussianMixtureDistribution(
        double([0.3, 0.7]), prob.SphericalNormals(double([[-1.0], [2.0]]), double([1.0, 0.25]))
    )


MIXTURE = ([0.3, 0.7], [-1.0, 2.0], [1.0, 0.5])


def chain():
    return prob.MarkovChain(START, STEP)


class Bend(nn.Module):
    """A score of two tokens and the end mark that depends on the token before."""

    def forward(self, x, y):
        before = torch.nn.functional.pad(y[:, :-1], (1, 0)).double()
        return torch.stack([before, torch.zeros_like(before), x.expand_as(before)], dim=-1)


def of_sequences() -> float:
    """Of sequences of at most three tokens out of two under `Bend` at x = 0.5, all listed."""
    found = []

    def grow(before, probability, left):
        if not left:
            found.append(probability)
            return
        scores = np.exp([before, 0.0, 0.5])
        for token in range(2):
            grow(float(token), probability * scores[token] / scores.sum(), left - 1)
        found.append(probability * scores[2] / scores.sum())

    grow(0.0, 1.0, 3)
    assert sum(found) == pytest.approx(1)
    return of_table(found)


def image_net():
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4)).double()


def bernoulli(levels):
    torch.manual_seed(0)
    decoder = models.BinomialDecoder(image_net(), (1, 2, 2), num_levels=levels)
    z = double([[0.5, -1.0]])
    with torch.no_grad():
        rates = decoder(z).flatten().tolist()
    entropy = sum(float(stats.binom(levels - 1, rate).entropy()) for rate in rates)
    z = z.expand(COUNT, -1)
    return decoder.log_likelihood(decoder.sample(z, generator=seeded()), z), entropy


def gaussian_decoder(kind):
    torch.manual_seed(0)
    decoder, z = kind(image_net(), (1, 2, 2), 0.3), torch.randn(COUNT, 2, generator=seeded(1), dtype=torch.float64)
    return decoder.log_likelihood(decoder.sample(z, generator=seeded()), z), 4 * of_normal([[0.09]])


def latent(model, entropy):
    return model.log_prior(model.sample_prior((COUNT,), generator=seeded())), entropy


def vae():
    return models.mlp_vae(
        (1, 2, 2), 3, lambda net: models.GaussianDecoder(net, (1, 2, 2), 0.3), hidden_dims=(4,), generator=seeded()
    )


def pixel_sampler():
    model = models.PixelCNN((1, 2, 2), 3, channels=4, num_layers=1, first_kernel_size=3, generator=seeded())
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(3)
    every = torch.cartesian_prod(*[torch.arange(3) / 2] * 4).reshape(-1, 1, 2, 2)
    with torch.no_grad():
        law = np.array([float(models.pixel_log_prob_definition(model.logits, image[None], 3).exp()) for image in every])
    assert law.sum() == pytest.approx(1, abs=1e-5)
    sampler = generate.PixelSampler(model)
    return sampler.log_prob(sampler.sample(4000, generator=seeded())), of_table(law)


class Contract(nn.Module):
    """The velocity dx/dt = -x, whose flow shrinks by e over unit time: N(0, I) becomes N(0, e^-2 I)."""

    def forward(self, y, t):
        return -y


def flow_sampler():
    sampler = generate.FlowSampler(Contract(), (2,), loc=double([1.0, 2.0]), scale=double([2.0, 0.5]), num_steps=200)
    drawn = sampler.sample(4000, generator=seeded()).double()
    return sampler.log_prob(drawn), of_normal(math.exp(-2) * np.diag([4.0, 0.25]))


def classifier(log):
    model = models.GaussianDiscriminant(double([0.3, 0.7]), double([[-1.0], [2.0]]), double([[[1.0]], [[0.25]]]))
    drawn = model.sample(COUNT, generator=seeded())
    whole, marginal = of_table([0.3, 0.7]) + 0.3 * of_normal([[1.0]]) + 0.7 * of_normal([[0.25]]), of_mixture(*MIXTURE)
    if log == "log_density":
        return model.log_density(drawn.x), marginal
    if log == "log_prob":
        return model.log_prob(drawn.y, drawn.x), whole - marginal  # H(Y | X)
    return model.log_joint(drawn.x).gather(-1, drawn.y[:, None])[:, 0], whole


def given(model, x, entropy):
    x = x.expand(COUNT, *x.shape[1:])
    return model.log_prob(model.sample(x, generator=seeded()), x), entropy


def drawn(law, entropy, *shape):
    return law.log_prob(law.sample(shape or (COUNT,), generator=seeded())), entropy


def paths(process, steps, entropy):
    return process.log_prob(process.sample_paths(steps, COUNT, generator=seeded())), entropy


def brownian():
    motion = prob.BrownianMotion(dim=2)
    return motion.log_prob(motion.sample_paths(TIMES, COUNT, generator=seeded()), TIMES), 2 * (
        of_normal([[0.3]]) + of_normal([[0.8]])
    )


def emission(law, entropies):
    states = torch.arange(2).repeat(COUNT // 2)
    logs = law.log_prob(law.sample(states, generator=seeded()))
    return logs.gather(-1, states[:, None])[:, 0], sum(entropies) / 2


def hidden():
    model = prob.HiddenMarkovModel(chain(), prob.CategoricalEmission(SPOKEN))
    return model.log_prob(model.sample(4, COUNT, generator=seeded()).output), of_spoken(4)


def kernel_density():
    law = prob.KernelDensity(double([[-1.0], [2.0]]), prob_kernel(), 0.5)
    return drawn(law, of_mixture([0.5, 0.5], [-1.0, 2.0], [0.5, 0.5]))


def prob_kernel():
    from quoin.tensor import GaussianKernel

    return GaussianKernel()


def smoothed():
    model = models.GaussianKDE(double([[-1.0], [2.0]]), 0.5)
    return model.log_prob(model.sample(COUNT, generator=seeded())), of_mixture([0.5, 0.5], [-1.0, 2.0], [0.5, 0.5])


def fitted(model):
    return model.log_prob(model.sample(COUNT, generator=seeded())), of_mixture(*MIXTURE)


def ppca():
    model = models.PPCA(double([[1.0], [0.5], [0.0]]), double([0.0, 1.0, 2.0]), 0.3)
    weight = np.array([[1.0], [0.5], [0.0]])
    return model.log_evidence(model.sample(COUNT, generator=seeded())), of_normal(weight @ weight.T + 0.09 * np.eye(3))


def categorical():
    model = prob.CategoricalModel(3)
    with torch.no_grad():
        model.scores.copy_(torch.tensor([0.0, 1.0, 3.0]))
    return model.log_prob(model.sample(COUNT, generator=seeded())), of_table(np.exp([0.0, 1.0, 3.0]))


def linear_gaussian():
    model = models.LinearGaussian(2, scale=0.4)
    return given(model, torch.tensor([[1.0, 2.0]]), of_normal([[0.16]]))


CASES = {
    "MultivariateNormal": lambda: drawn(prob.MultivariateNormal(MEAN, COVARIANCE), of_normal(COVARIANCE)),
    "MultivariateNormal, singular": lambda: drawn(
        prob.MultivariateNormal(MEAN, double([[1.0, 2.0], [2.0, 4.0]])), of_normal([[5.0]])
    ),
    "DiagonalNormal": lambda: drawn(
        prob.DiagonalNormal(MEAN, double([0.5, -1.0])), of_normal(np.diag(np.exp([1.0, -2.0])))
    ),
    "TriangularNormal": lambda: drawn(
        prob.TriangularNormal(MEAN, torch.linalg.cholesky(COVARIANCE)), of_normal(COVARIANCE)
    ),
    "Exponential": lambda: drawn(prob.Exponential(double(2.5)), float(stats.expon(scale=1 / 2.5).entropy())),
    "ExponentialLatent": lambda: latent(
        prob.ExponentialLatent(double(2.5)), float(stats.expon(scale=1 / 2.5).entropy())
    ),
    "FiniteLatentModel": lambda: latent(
        prob.FiniteLatentModel(START, prob.MultivariateNormal(double([[-1.0], [1.0]]), double([[1.0]]))),
        of_table(START),
    ),
    "GaussianMixtureDistribution": lambda: drawn(mixture(), of_mixture(*MIXTURE)),
    "GaussianMixtureDistribution, components": lambda: latent(mixture(), of_table([0.3, 0.7])),
    "KernelDensity": kernel_density,
    "MarkovChain": lambda: paths(chain(), 3, of_paths(START, STEP, STEP, STEP)),
    "InhomogeneousChain": lambda: paths(
        prob.InhomogeneousChain(START, torch.stack([STEP, STEP.flip(-1)])), 2, of_paths(START, STEP, STEP.flip(-1))
    ),
    "KernelChain": lambda: paths(
        prob.KernelChain(prob.MultivariateNormal(MEAN, COVARIANCE), prob.GaussianTransition(2 * COVARIANCE)),
        3,
        of_normal(COVARIANCE) + 3 * of_normal(2 * COVARIANCE),
    ),
    "GaussianTransition": lambda: given(prob.GaussianTransition(COVARIANCE), MEAN[None], of_normal(COVARIANCE)),
    "GaussianRandomWalk": lambda: paths(prob.GaussianRandomWalk(MEAN, COVARIANCE), 3, 3 * of_normal(COVARIANCE)),
    "BrownianMotion": brownian,
    "HiddenMarkovModel": hidden,
    "CategoricalEmission": lambda: emission(prob.CategoricalEmission(SPOKEN), [of_table(row) for row in SPOKEN]),
    "GaussianEmission": lambda: emission(
        prob.GaussianEmission(torch.stack([MEAN, -MEAN]), torch.stack([COVARIANCE, 3 * COVARIANCE])),
        [of_normal(COVARIANCE), of_normal(3 * COVARIANCE)],
    ),
    "BinaryModel": lambda: given(prob.BinaryModel(lambda x: x[..., 0]), double([[0.7]]), of_table([1, math.exp(1.4)])),
    "MulticlassModel": lambda: given(
        prob.MulticlassModel(lambda x: x), double([[0.0, 1.0, 3.0]]), of_table(np.exp([0.0, 1.0, 3.0]))
    ),
    "SequenceModel": lambda: given(prob.SequenceModel(Bend(), num_tokens=2, length=3), double([[0.5]]), of_sequences()),
    "CategoricalModel": categorical,
    "GaussianMixture": lambda: fitted(models.GaussianMixture(mixture())),
    "MixtureCandidates": lambda: fitted(models.MixtureCandidates([models.GaussianMixture(mixture())])),
    "GaussianKDE": smoothed,
    "GaussianDiscriminant": lambda: classifier("log_joint"),
    "GaussianDiscriminant, log_density": lambda: classifier("log_density"),
    "GaussianDiscriminant, log_prob": lambda: classifier("log_prob"),
    "LinearGaussian": linear_gaussian,
    "PPCA": ppca,
    "PPCA, latent": lambda: latent(models.PPCA(double([[1.0], [0.5]]), double([0.0, 1.0]), 0.3), of_normal([[1.0]])),
    "DeepLatentGaussian": lambda: latent(
        models.DeepLatentGaussian(2, models.DiagonalNormalNet([2, 4, 5], generator=seeded())), 2 * of_normal([[1.0]])
    ),
    "VAE": lambda: latent(vae(), 3 * of_normal([[1.0]])),
    "BinomialDecoder": lambda: bernoulli(2),
    "BinomialDecoder, grey": lambda: bernoulli(4),
    "GaussianDecoder": lambda: gaussian_decoder(models.GaussianDecoder),
    "LearnedGaussianDecoder": lambda: gaussian_decoder(models.LearnedGaussianDecoder),
    "PixelSampler": pixel_sampler,
    "FlowSampler": flow_sampler,
}


def test_everything_that_draws_and_weighs_is_listed():
    public = {}
    for package in ("prob", "info", "models", "generate", "losses", "metrics"):
        module = importlib.import_module(f"quoin.{package}")
        public |= {name: getattr(module, name) for name in module.__all__ if inspect.isclass(getattr(module, name))}
    both = {name for name, each in public.items() if SAMPLERS & set(dir(each)) and LOGS & set(dir(each))}
    both -= {name for name in both if getattr(public[name], "_is_protocol", False)}
    listed = {name.split(",")[0] for name in CASES}
    assert both == listed | ABSTRACT, f"not listed: {both - listed - ABSTRACT}; gone: {(listed | ABSTRACT) - both}"
    assert all(inspect.isabstract(public[name]) for name in ABSTRACT)


@pytest.mark.parametrize("name", CASES)
def test_log_prob_of_what_was_drawn_has_the_mean_of_minus_the_entropy(name):
    found, entropy = CASES[name]()
    found = found.detach().double()
    assert found.ndim == 1
    assert bool(found.isfinite().all())
    bound = 6 * float(found.std()) / math.sqrt(len(found)) + 1e-5
    assert float(found.mean()) == pytest.approx(-entropy, abs=bound)


@pytest.mark.parametrize("times", [[1.0, 0.5], [-1.0, 0.5], [0.0, 2.0, 1.0]])
def test_time_does_not_go_back(times):
    motion, times = prob.BrownianMotion(), double(times)
    path = torch.zeros(len(times), 1, dtype=torch.float64)
    for asked in (
        lambda: motion.log_prob(path, times),
        lambda: motion.covariance(times),
        lambda: motion.sample_paths(times, generator=torch.Generator()),
    ):
        with pytest.raises(UserError, match="times that rise from 0 on"):
            asked()


def test_brownian_motion_stands_where_time_does():
    motion = prob.BrownianMotion()
    path = double([[0.0], [1.0], [1.0], [0.5]])
    expected = stats.norm.logpdf(1, 0, math.sqrt(0.3)) + stats.norm.logpdf(-0.5, 0, math.sqrt(0.8))
    assert float(motion.log_prob(path, TIMES)) == pytest.approx(expected)
    assert motion.log_prob(path + 1, TIMES) == -math.inf  # not at 0 at time 0
    assert motion.log_prob(double([[0.0], [1.0], [2.0], [0.5]]), TIMES) == -math.inf  # two places at one time
    later = double([0.3, 1.1])
    joint = stats.multivariate_normal(np.zeros(2), motion.covariance(later).numpy())
    assert float(motion.log_prob(double([[0.4], [0.9]]), later)) == pytest.approx(joint.logpdf([0.4, 0.9]))
    path = path.requires_grad_()
    (slope,) = torch.autograd.grad(motion.log_prob(path, TIMES), path)
    assert bool(slope.isfinite().all())
    assert float(slope[3, 0]) == pytest.approx(0.5 / 0.8)
