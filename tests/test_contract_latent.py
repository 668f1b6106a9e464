"""The contract of latent-variable models: definitions and fast forms agree, closed forms agree with quadrature, torch
and scikit-learn."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence
from torch.distributions import MultivariateNormal as TorchNormal

from quoin.errors import UserError
from quoin.models import (
    PPCA,
    DeepLatentGaussian,
    DiagonalNormalNet,
    TriangularNormalNet,
    covariance_definition,
    ppca_log_evidence_definition,
    ppca_posterior_definition,
    scale_tril_from_entries,
)
from quoin.prob import (
    DiagonalNormal,
    Exponential,
    ExponentialLatent,
    FiniteLatentModel,
    MultivariateNormal,
    TriangularNormal,
    effective_sample_size,
    effective_sample_size_definition,
    exponential_elbo,
    exponential_elbo_optimum,
    importance_log_evidence,
    importance_log_evidence_definition,
    iwae_bound,
    kl_normal,
    kl_normal_definition,
    kl_standard_normal,
    kl_standard_normal_definition,
    line_quadrature,
    mc_log_evidence,
    mc_log_evidence_definition,
    normal_log_prob_definition,
    reparameterize_definition,
)
from seeds import seeded

TOLERANCE = {torch.float32: 5e-4, torch.float64: 1e-10}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
batches = st.sampled_from([(), (3,), (2, 3)])
few = settings(deadline=None, max_examples=12)


def near(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """The same value and the same slopes in all leaves, up to rounding."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    weights = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype).reshape(ours.shape)
    pairs = [(ours, theirs)]
    if leaves:
        pairs += zip(
            *(torch.autograd.grad((each * weights).sum(), leaves, retain_graph=True) for each in (ours, theirs)),
            strict=True,
        )
    for mine, its in pairs:
        scale = max(1.0, float(its.detach().abs().max()))
        assert float((mine - its).detach().abs().max()) <= TOLERANCE[ours.dtype] * scale


def drawn(*shape: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def covariance_of(root: Tensor) -> Tensor:
    return root @ root.mT / root.shape[-1] + 0.3 * torch.eye(root.shape[-1], dtype=root.dtype)


@few
@given(st.integers(1, 5), batches, dtypes, seeds)
def test_divergence_of_normal_laws_is_the_formula_and_torchs(d, batch, dtype, seed):
    generator = seeded(seed)
    means = [drawn(*batch, d, dtype=dtype, generator=generator) for _ in range(2)]
    roots = [drawn(*batch, d, d, dtype=dtype, generator=generator) for _ in range(2)]
    covariances = [covariance_of(root) for root in roots]
    ours = kl_normal(means[0], covariances[0], means[1], covariances[1])
    near(ours, kl_normal_definition(means[0], covariances[0], means[1], covariances[1]), [*means, *roots])
    near(
        ours,
        kl_divergence(TorchNormal(means[0], covariances[0]), TorchNormal(means[1], covariances[1])),
        [*means, *roots],
    )


@few
@given(st.integers(1, 6), batches, dtypes, seeds)
def test_divergence_from_the_standard_normal_law(d, batch, dtype, seed):
    generator = seeded(seed)
    mean, log_std = (drawn(*batch, d, dtype=dtype, generator=generator) for _ in range(2))
    ours = kl_standard_normal(mean, log_std)
    near(ours, kl_standard_normal_definition(mean, log_std.exp()), [mean, log_std])
    peer = kl_divergence(
        Independent(Normal(mean, log_std.exp()), 1), Independent(Normal(torch.zeros_like(mean), 1.0), 1)
    )
    near(ours, peer, [mean, log_std])
    law, eye = DiagonalNormal(mean, log_std), torch.eye(d, dtype=dtype)
    near(ours, kl_normal(mean, law.covariance, torch.zeros_like(mean), eye), [mean, log_std])


def test_a_divergence_near_nothing_keeps_its_digits():
    """expm1 in float32: for log_std = 1e-4 the divergence is 1e-8, less than one rounding of e^(2 log_std)."""
    log_std = torch.tensor([1e-4])
    exact = kl_standard_normal_definition(torch.zeros(1).double(), log_std.double().exp()).item()
    assert kl_standard_normal(torch.zeros(1), log_std).item() == pytest.approx(exact, rel=2e-3)
    assert float((2 * log_std).exp() - 1 - 2 * log_std) / 2 != pytest.approx(exact, rel=0.1)


@few
@given(st.integers(1, 5), batches, dtypes, seeds)
def test_laws_that_networks_give_out_are_normal(d, batch, dtype, seed):
    generator = seeded(seed)
    mean, log_std, entries = (drawn(*batch, n, dtype=dtype, generator=generator) for n in (d, d, d * (d + 1) // 2))
    factor = scale_tril_from_entries(entries, d, min_std=0.4)
    for law, scale in ((DiagonalNormal(mean, log_std.tanh()), log_std), (TriangularNormal(mean, factor), entries)):
        z = law.sample((4,), generator=generator).detach().requires_grad_()  # where the density does not underflow
        leaves = [mean, scale, z]
        near(law.log_prob(z), normal_log_prob_definition(z, mean, law.covariance), leaves)
        peer = TorchNormal(mean, law.covariance)
        near(law.entropy(), peer.entropy(), leaves[1:2])
        torch.testing.assert_close(
            law.sample((2,), generator=seeded(1)), law.transform(law.sample_noise((2,), generator=seeded(1)))
        )
    torch.testing.assert_close(covariance_definition(entries, d, min_std=0.4), factor @ factor.mT)
    assert bool((torch.linalg.eigvalsh(covariance_definition(entries.double(), d)) > 0).all())


def test_an_exponential_law_has_nothing_below_zero():
    found = Exponential(torch.tensor(2.0)).log_prob(torch.tensor([-0.5, 0.0, 1.0]))
    torch.testing.assert_close(found, torch.tensor([-math.inf, math.log(2), math.log(2) - 2]))


def test_one_factor_serves_a_batch_of_means():
    mean, factor = torch.zeros(4, 2).double(), torch.tensor([[2.0, 0.0], [1.0, 0.5]]).double()
    law = TriangularNormal(mean, factor)
    peer = TorchNormal(mean, scale_tril=factor)
    for ours, theirs in ((law.entropy(), peer.entropy()), (law.log_prob(mean + 1), peer.log_prob(mean + 1))):
        assert ours.shape == (4,)
        torch.testing.assert_close(ours, theirs)


def test_every_root_places_noise_with_the_covariance():
    """Of μ + Fε with an exact ε (mean 0, covariance I) the moments are μ and F F^T, whichever root F is."""
    generator = seeded(2)
    entries, mean = (
        torch.randn(6, generator=generator, dtype=torch.float64),
        torch.randn(3, generator=generator, dtype=torch.float64),
    )
    law = TriangularNormal(mean, scale_tril_from_entries(entries, 3))
    noise = torch.cat([torch.eye(3), -torch.eye(3)]).double() * math.sqrt(3)
    placed = [law.transform(noise), reparameterize_definition(mean, law.covariance, noise)]
    assert not torch.allclose(placed[0], placed[1])  # the draws are others
    for z in placed:
        torch.testing.assert_close(z.mean(dim=0), mean)
        torch.testing.assert_close(z.T.cov(correction=0), law.covariance)


@few
@given(st.integers(2, 6), st.data(), batches, dtypes, seeds)
def test_ppca_is_the_law_of_its_sum(d, data, batch, dtype, seed):
    k = data.draw(st.integers(1, d - 1))
    generator = seeded(seed)
    model = PPCA(
        torch.randn(d, k, generator=generator, dtype=dtype), torch.randn(d, generator=generator, dtype=dtype), 0.7
    )
    x = drawn(*batch, d, dtype=dtype, generator=generator)
    parts = (model.weight, model.bias, model.noise)
    leaves = [x, *model.parameters()]
    near(model.log_evidence(x), ppca_log_evidence_definition(x, *parts), leaves)
    mean, covariance = ppca_posterior_definition(x, *parts)
    truth = model.posterior(x)
    near(truth.mean, mean, leaves)
    near(truth.covariance, covariance, [model.weight, model.log_noise])
    z = torch.randn(4, *batch, k, generator=generator, dtype=dtype)
    near(model.log_posterior(z, x), truth.log_prob(z), leaves)  # Bayes' rule, and the closed form


def test_ppca_fit_is_scikit_learns():
    generator = seeded(3)
    x = (
        torch.randn(50, 5, generator=generator, dtype=torch.float64)
        @ torch.randn(5, 5, generator=generator, dtype=torch.float64)
        + 3
    )
    model, peer = PPCA.fit(x, 2), PCA(2).fit(x.numpy())
    covariance = model.weight @ model.weight.mT + model.noise**2 * torch.eye(5)
    theirs = torch.from_numpy(peer.get_covariance()) * 49 / 50  # scikit-learn divides by n - 1
    torch.testing.assert_close(covariance.detach(), theirs)
    along = torch.nn.functional.cosine_similarity(model.weight.detach().mT, torch.from_numpy(peer.components_), dim=-1)
    torch.testing.assert_close(along.abs(), torch.ones(2).double())  # direction by direction, the widest first
    # And it is a maximum: no slope is left, and nearby parameters are less likely.
    model.log_evidence(x).mean().backward()
    assert max(float(each.grad.abs().max()) for each in model.parameters() if each.grad is not None) < 1e-12
    best = model.log_evidence(x).sum()
    for _ in range(5):
        other = PPCA(
            model.weight.detach() + 0.02 * torch.randn(5, 2, generator=generator, dtype=torch.float64),
            model.bias.detach(),
            model.noise.item(),
        )
        assert other.log_evidence(x).sum() < best


def test_ppca_draws_have_its_covariance():
    model = PPCA(torch.tensor([[1.0], [0.5]]).double(), torch.tensor([3.0, 0.0]).double(), 0.5)
    x = model.sample(100_000, generator=seeded(4))
    expected = torch.tensor([[1.25, 0.5], [0.5, 0.5]]).double()
    torch.testing.assert_close(x.mT.cov(), expected, rtol=0, atol=0.04)  # 7 errors of a variance, 1.25 √(2/n)
    torch.testing.assert_close(x.mean(dim=0), model.bias.detach(), rtol=0, atol=0.03)


def test_where_all_directions_are_alike_ppca_leaves_them_to_noise():
    """Rounding may put the widest variance below the mean of the others: a root of what is left over would not be a
    number."""
    for scale in torch.linspace(0.1, 3, 40).double():
        x = scale * torch.cat([torch.eye(5), -torch.eye(5)]).double()
        model = PPCA.fit(x, 2)
        assert float(model.weight.detach().abs().max()) < 1e-6
        assert model.noise.item() == pytest.approx(scale.item() / math.sqrt(5))


@pytest.mark.parametrize("net", [DiagonalNormalNet, TriangularNormalNet])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_deep_latent_gaussian_is_a_normal_law_for_each_z(net, dtype):
    generator = seeded(4)
    model = DeepLatentGaussian(2, net([2, 7, 3], min_std=0.3, generator=generator)).to(dtype)
    x, z = drawn(6, 3, dtype=dtype, generator=generator), drawn(5, 6, 2, dtype=dtype, generator=generator)
    law = model(z)
    leaves = [x, z, *model.parameters()]
    near(model.log_likelihood(x, z), TorchNormal(law.mean, law.covariance).log_prob(x), leaves)
    near(
        model.log_joint(x, z),
        model.log_likelihood(x, z) + Independent(Normal(torch.zeros_like(z), 1.0), 1).log_prob(z),
        leaves,
    )
    assert model.sample(4, generator=generator).shape == (4, 3)
    for each in model.parameters():
        torch.nn.init.zeros_(each)
    silent = model.sample(
        50_000, generator=generator
    )  # a network that says nothing but 0 leaves N(0, (floor + ln 2)² I)
    torch.testing.assert_close(
        silent.mT.cov(), (0.3 + math.log(2)) ** 2 * torch.eye(3, dtype=dtype), rtol=0, atol=0.05
    )  # 8 errors


@few
@given(batches, dtypes, seeds)
def test_evidence_by_sampling_is_the_definition_at_its_draws(batch, dtype, seed):
    generator = seeded(seed)
    model = PPCA(torch.randn(3, 2, generator=generator, dtype=dtype), torch.zeros(3, dtype=dtype), 1.0)
    x = drawn(*batch, 3, dtype=dtype, generator=generator)
    ours = mc_log_evidence(model, x, num_samples=7, generator=seeded(seed))
    z = model.sample_prior((7,), generator=seeded(seed)).reshape(7, *[1] * len(batch), 2)
    near(ours.output, mc_log_evidence_definition(model, x, z), [x, *model.parameters()])
    near(ours.effective_sample_size, effective_sample_size_definition(ours.log_weights.detach().exp()), [])
    q = model.posterior(x)
    wide = TriangularNormal(q.mean, 1.3 * q.scale_tril)
    ours = importance_log_evidence(model, wide, x, num_samples=7, generator=seeded(seed))
    theirs = importance_log_evidence_definition(model, wide, x, wide.sample((7,), generator=seeded(seed)))
    near(ours.output, theirs, [x, *model.parameters()])
    near(iwae_bound(ours.log_weights), ours.output, [])


def test_where_likelihoods_underflow_logs_do_not():
    model = PPCA(torch.ones(400, 1), torch.zeros(400), 0.1)
    x = torch.full((400,), 3.0)
    z = torch.zeros(5, 1)
    assert mc_log_evidence_definition(model, x, z).item() == -math.inf
    assert math.isfinite(mc_log_evidence(model, x, num_samples=5, generator=seeded(0)).output.item())
    assert effective_sample_size(torch.full((4,), -1e5)).item() == 4


def test_a_finite_latent_is_summed_out():
    generator = seeded(5)
    means = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    prior = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    model = FiniteLatentModel(prior, MultivariateNormal(means, torch.eye(2).double().expand(3, 2, 2)))
    x = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    by_hand = sum(prior[i] * normal_log_prob_definition(x, means[i], torch.eye(2).double()).exp() for i in range(3))
    torch.testing.assert_close(model.log_evidence(x).exp(), by_hand)
    every = torch.arange(3).unsqueeze(-1)
    torch.testing.assert_close(model.log_joint(x, every).exp().sum(dim=0), by_hand)
    torch.testing.assert_close(model.log_posterior(every, x).exp().sum(dim=0), torch.ones(4).double())
    assert model.sample_prior((5, 2), generator=generator).shape == (5, 2)
    found = mc_log_evidence(model, x, num_samples=20_000, generator=generator)
    torch.testing.assert_close(found.output, model.log_evidence(x), rtol=0, atol=0.1)


@pytest.mark.parametrize(("rate", "x"), [(0.7, 1.7), (2.0, -3.0), (0.1, 0.0), (3.0, 5.0)])
def test_the_exponential_model_by_quadrature(rate, x):
    theta, phi, point = (torch.tensor(each, dtype=torch.float64) for each in (rate, 1.3, x))
    model, q = ExponentialLatent(theta), Exponential(phi)
    z, w = line_quadrature(torch.tensor([0.0, 1.0, 4.0, math.inf], dtype=torch.float64))
    joint = model.log_joint(point, z)
    assert model.log_evidence(point).item() == pytest.approx(float((w * joint.exp()).sum().log()), rel=1e-9)
    by_nodes = (w * q.log_prob(z).exp() * torch.where(joint.isfinite(), joint - q.log_prob(z), 0)).sum()
    assert exponential_elbo(theta, phi, point).item() == pytest.approx(float(by_nodes), rel=1e-9)
    assert exponential_elbo(theta, phi, point) <= model.log_evidence(point)
    assert model.log_posterior(z, point).exp().mul(w).sum().item() == pytest.approx(1, rel=1e-9)
    erfc = math.log(rate) + rate**2 / 2 - rate * x + math.log(0.5 * math.erfc((rate - x) / math.sqrt(2)))
    assert model.log_evidence(point).item() == pytest.approx(erfc, rel=1e-9)


def test_the_bounds_best_rate_is_not_the_likeliest():
    """For x = 1.7 the bound is largest at θ = 2/1.7; the evidence has a positive slope or a negative one there, but a
    slope."""
    x = torch.tensor(1.7, dtype=torch.float64)
    best = exponential_elbo_optimum(x)
    rates = best.rate.repeat(2).requires_grad_()
    (slopes,) = torch.autograd.grad(exponential_elbo(rates[0], rates[1], x), rates)
    assert slopes.abs().max() < 1e-12
    assert exponential_elbo(best.rate, best.rate, x).item() == pytest.approx(best.output.item(), rel=1e-12)
    theta = best.rate.clone().requires_grad_()
    (slope,) = torch.autograd.grad(ExponentialLatent(theta).log_evidence(x), theta)
    assert slope.abs() > 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PPCA.fit(torch.randn(9, 3), 3), "from 1 to 2 latent coordinates for 3 numbers"),
        (lambda: PPCA.fit(torch.randn(3, 5), 2), "more than 3 examples"),
        (lambda: PPCA.fit(torch.ones(9, 3), 1), "variance beyond 1 directions"),
        (lambda: PPCA.fit(torch.full((9, 3), math.nan), 1), "finite"),
        (lambda: PPCA(torch.ones(3, 1), torch.zeros(3), 0.0), "noise .* above 0, got 0.0"),
        (lambda: PPCA(torch.ones(3, 1), torch.zeros(3), 1.0).log_evidence(torch.ones(2, 4)), "examples of 3 numbers"),
        (lambda: DeepLatentGaussian(0, DiagonalNormalNet([2, 3])), "at least one"),
        (lambda: DeepLatentGaussian(3, DiagonalNormalNet([2, 3])), "as many latent coordinates"),
        (lambda: DiagonalNormalNet([2, 3], min_std=-1.0), "min_std of at least 0"),
        (lambda: TriangularNormalNet([2]), "layer sizes from input to output"),
        (lambda: scale_tril_from_entries(torch.ones(4), 2), "expected 3 entries"),
        (lambda: DiagonalNormal(torch.ones(2), torch.ones(3)), "of one shape"),
        (lambda: TriangularNormal(torch.ones(2), torch.eye(3)), r"a factor \(..., d, d\)"),
        (lambda: kl_normal(torch.ones(2), torch.eye(2), torch.ones(2), -torch.eye(2)), "positive semi-definite"),
        (lambda: kl_normal(torch.ones(2), torch.eye(2), torch.ones(3), torch.eye(3)), "got 2 and 3"),
        (lambda: ExponentialLatent(torch.tensor(-1.0)), "rates above 0, got -1"),
        (lambda: ExponentialLatent(torch.ones(2)), "one rate for the model"),
        (lambda: exponential_elbo_optimum(torch.tensor(-1.0)), "x above 0, got -1"),
        (lambda: iwae_bound(torch.zeros(0, 3)), "at least one sample"),
        (
            lambda: FiniteLatentModel(torch.tensor([0.5, 0.6]), MultivariateNormal(torch.zeros(2, 1), torch.eye(1))),
            "prior",
        ),
        (
            lambda: FiniteLatentModel(torch.tensor([[1.0]]), MultivariateNormal(torch.zeros(1, 1), torch.eye(1))),
            "one probability for each",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as told:
        call()
    assert "\n" not in str(told.value)


def test_no_draws_are_refused():
    model = PPCA(torch.ones(3, 1), torch.zeros(3), 1.0)
    with pytest.raises(UserError, match="at least one sample, got num_samples=0"):
        mc_log_evidence(model, torch.zeros(3), num_samples=0, generator=seeded(0))
