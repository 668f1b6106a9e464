"""Classifiers from a distribution of the data: definitions against blocks, digits with a known joint, and what is
refused."""

import math

import pytest
import torch

from quoin.data import make_segment_digits
from quoin.errors import UserError
from quoin.losses import cross_entropy, logistic_loss
from quoin.metrics import expected_calibration_error
from quoin.models import GaussianDiscriminant, LinearScore
from quoin.prob import bayes_rule_definition, margin, normal_log_prob_definition

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def law_of(q, d, dtype, *, shared=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    priors = torch.rand(q, generator=generator, dtype=dtype)
    factors = torch.randn(1 if shared else q, d, d, generator=generator, dtype=dtype)
    covariances = factors @ factors.mT + torch.eye(d, dtype=dtype)
    means = torch.randn(q, d, generator=generator, dtype=dtype)
    x = torch.randn(7, d, generator=generator, dtype=dtype)
    return priors / priors.sum(), means, covariances[0] if shared else covariances, x


@DTYPES
@pytest.mark.parametrize("shared", [False, True])
def test_the_block_is_its_definition(dtype, shared):
    priors, means, covariances, x = law_of(3, 4, dtype, shared=shared)
    x.requires_grad_()
    law = GaussianDiscriminant(priors, means, covariances)
    logs = [normal_log_prob_definition(x, means[c], covariances if shared else covariances[c]) for c in range(3)]
    slow = bayes_rule_definition(priors, torch.stack(logs, dim=-1).exp())
    fast = law.posterior(x)
    near = 1e-4 if dtype is torch.float32 else 1e-12
    torch.testing.assert_close(fast, slow, atol=near, rtol=near)
    weights = torch.arange(21, dtype=dtype).reshape(7, 3)
    slopes = [torch.autograd.grad((weights * each).sum(), x)[0] for each in (fast, slow)]
    torch.testing.assert_close(*slopes, atol=30 * near, rtol=30 * near)
    peers = [
        torch.distributions.MultivariateNormal(means[c], covariances if shared else covariances[c]) for c in range(3)
    ]
    joint = torch.stack([peer.log_prob(x) for peer in peers], dim=-1) + priors.log()
    torch.testing.assert_close(law.log_joint(x), joint, atol=10 * near, rtol=10 * near)
    torch.testing.assert_close(law.log_density(x), joint.logsumexp(dim=-1), atol=10 * near, rtol=10 * near)
    labels = torch.arange(7) % 3
    torch.testing.assert_close(law.log_prob(labels, x), slow.log()[range(7), labels], atol=30 * near, rtol=30 * near)
    assert (law.predict(x) == slow.argmax(dim=-1)).all()


@pytest.mark.deep
def test_digits_with_a_known_joint():
    """Ten prototypes in R^{28 × 28}: the posterior of the true distribution is calibrated, and beats the distribution
    fitted to few examples."""
    generator = torch.Generator().manual_seed(0)
    clean = make_segment_digits(2000, noise=0.0, generator=generator)
    prototypes = torch.stack([clean.features[clean.targets == c, 0].mean(dim=0) for c in range(10)]).double()
    law = GaussianDiscriminant.from_prototypes(prototypes, std=1.5)
    x, y = law.sample(20_000, generator=generator)
    assert x.shape == (20_000, 28, 28)
    posterior = law.posterior(x)
    right = (law.predict(x) == y).double().mean()
    # The mean of the largest probability is the probability of being right; a fraction of 20,000 strays 5 deviations
    # once in a million.
    assert abs(float(right - posterior.max(dim=-1).values.mean())) < 5 * 0.5 / math.sqrt(20_000)
    assert expected_calibration_error(posterior, y) < 0.02
    fitted = GaussianDiscriminant.fit(x[:200].flatten(1), y[:200], 10, shared_covariance=True, reg_covar=1.0)
    assert float((fitted.predict(x.flatten(1)) == y).double().mean()) < float(right)


def test_fit_finds_the_law_that_drew():
    priors, means, covariances, _ = law_of(3, 2, torch.float64, seed=3)
    true = GaussianDiscriminant(priors, means, covariances)
    x, y = true.sample(100_000, generator=torch.Generator().manual_seed(1))
    found = GaussianDiscriminant.fit(x, y, 3)
    torch.testing.assert_close(found.means, means, atol=0.1, rtol=0)
    torch.testing.assert_close(found.log_priors.exp(), priors, atol=0.01, rtol=0)
    torch.testing.assert_close(found.factors @ found.factors.mT, covariances, atol=0.3, rtol=0)
    assert float(found.log_joint(x).gather(1, y[:, None]).mean()) >= float(
        true.log_joint(x).gather(1, y[:, None]).mean()
    )


def test_far_from_all_means_nothing_underflows():
    law = GaussianDiscriminant(torch.tensor([0.5, 0.5]), torch.tensor([[-1.0], [1.0]]), torch.eye(1))
    assert law.posterior(torch.tensor([[50.0]]))[0].tolist() == pytest.approx([math.exp(-100), 1.0], rel=0.5)
    assert law.log_prob(torch.tensor([0]), torch.tensor([[50.0]])).item() == pytest.approx(-100.0)


def test_what_is_refused():
    priors, means, covariances, x = law_of(3, 4, torch.float64)
    law = GaussianDiscriminant(priors, means, covariances)
    labels = torch.arange(7) % 3
    for call, words in (
        (lambda: GaussianDiscriminant(priors * 2, means, covariances), "sum"),
        (lambda: GaussianDiscriminant(priors, means[:2], covariances), "one mean for each of 3"),
        (lambda: GaussianDiscriminant(priors, means, covariances[:2]), "covariances"),
        (lambda: GaussianDiscriminant(priors, means, torch.zeros(4, 4).double()), "singular"),
        (lambda: GaussianDiscriminant.from_prototypes(means, 0.0), "noise above 0"),
        (lambda: GaussianDiscriminant.fit(x, labels, 4), "none of class 3"),
        (lambda: GaussianDiscriminant.fit(x, labels + 1, 3), "3"),
        (lambda: GaussianDiscriminant.fit(x * math.nan, labels, 3), "finite"),
        (lambda: law.log_joint(x[:, :3]), "expected examples of shape"),
        (lambda: law.predict(x * math.nan), "NaN"),
        (lambda: bayes_rule_definition(priors, -torch.ones(3).double()), "negative"),
        (lambda: bayes_rule_definition(priors, torch.zeros(3).double()), "none can"),
    ):
        with pytest.raises(UserError, match=words):
            call()


@DTYPES
def test_cross_entropy_of_two_logits_is_the_log_loss_of_the_margin(dtype):
    model = LinearScore(3).to(dtype)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.linear.weight.copy_(torch.randn(1, 3, generator=generator))
    x, labels = torch.randn(9, 3, generator=generator, dtype=dtype), torch.arange(9) % 2
    outputs = model(x)
    near = 1e-5 if dtype is torch.float32 else 1e-13
    torch.testing.assert_close(
        cross_entropy(outputs, labels), logistic_loss(margin(outputs[:, 1], 2 * labels - 1)), atol=near, rtol=near
    )
    with pytest.raises(UserError, match="3 numbers each"):
        model(x[:, :2])
