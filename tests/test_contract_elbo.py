"""The contract of the evidence lower bound: its definition, and four estimates whose gradients are one where the noise
is exact."""

import itertools
import math
from collections.abc import Sequence
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quoin.errors import UserError
from quoin.losses import (
    bonnet_price_gradients,
    elbo_analytic_kl,
    elbo_bonnet_price,
    elbo_definition,
    elbo_groupings,
    elbo_reinforce,
    elbo_reinforce_baseline,
    elbo_reparameterized,
    score_function_gradient_definition,
)
from quoin.models import PPCA, DeepLatentGaussian, DiagonalNormalNet, scale_tril_from_entries
from quoin.prob import (
    DiagonalNormal,
    MultivariateNormal,
    TriangularNormal,
    kl_normal,
    kl_standard_normal,
    normal_expectation,
)
from seeds import seeded

few = settings(deadline=None, max_examples=12)
seeds = st.integers(0, 2**32)


def exact_noise(k: int) -> Tensor:
    """Gauss-Hermite's three nodes with weights 1, 4, 1 out of 6, each repeated as often: means of polynomials up to
    degree 5 are exact."""
    line = [-math.sqrt(3.0)] + [0.0] * 4 + [math.sqrt(3.0)]
    return torch.tensor(list(itertools.product(line, repeat=k)), dtype=torch.float64)


def problem(k: int, seed: int) -> tuple[PPCA, Tensor, Tensor, Tensor]:
    generator = seeded(seed)
    model = PPCA(torch.randn(3, k, generator=generator).double(), torch.randn(3, generator=generator).double(), 0.8)
    x = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    mean = torch.randn(2, k, generator=generator, dtype=torch.float64).requires_grad_()
    entries = torch.randn(2, k * (k + 1) // 2, generator=generator, dtype=torch.float64).requires_grad_()
    return model, x, mean, entries


def gradients(bound: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(bound.sum(), leaves, retain_graph=True))


@few
@given(st.integers(1, 2), seeds)
def test_all_approaches_have_the_exact_gradient_if_the_noise_is_exact(k, seed):
    """ln p(x, z) of a linear model is quadratic in z, and the score adds degree two: within what `exact_noise`
    integrates."""
    model, x, mean, entries = problem(k, seed)
    leaves = [mean, entries, *model.parameters()]
    q = TriangularNormal(mean, scale_tril_from_entries(entries, k))
    exact = model.elbo(x, q.mean, q.covariance)  # evidence less divergence
    noise = exact_noise(k).unsqueeze(1).expand(-1, 2, -1)
    m = len(noise)
    kl = kl_normal(q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(k).double())
    for form in (
        elbo_reinforce,
        elbo_reinforce_baseline,
        elbo_reparameterized,
        partial(elbo_analytic_kl, kl=kl),
        elbo_bonnet_price,
    ):
        found = form(model, q, x, noise)
        torch.testing.assert_close(found, exact, rtol=1e-9, atol=1e-9)
        for name, mine, its in zip(
            ("mean", "entries", "weight", "bias", "noise"), gradients(found, leaves), gradients(exact, leaves)
        ):
            # Leaving one out makes the spread m / (m - 1) times too large where draws are not independent but a whole
            # rule.
            mine = mine * (m - 1) / m if form is elbo_reinforce_baseline and name in ("mean", "entries") else mine
            torch.testing.assert_close(
                mine, its, rtol=1e-8, atol=1e-8, msg=lambda text, form=form, name=name: f"{form} {name} {text}"
            )


@few
@given(st.integers(1, 3), st.sampled_from([torch.float32, torch.float64]), seeds)
def test_values_and_gradients_at_any_draws_are_the_definitions(k, dtype, seed):
    generator = seeded(seed)
    model = DeepLatentGaussian(k, DiagonalNormalNet([k, 5, 3], generator=generator)).to(dtype)
    mean, log_std = (torch.randn(k, generator=generator, dtype=dtype).requires_grad_() for _ in range(2))
    x, q = torch.randn(3, generator=generator, dtype=dtype), DiagonalNormal(mean, log_std)
    noise = q.sample_noise((6,), generator=generator)
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    close = partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    z = mean + log_std.exp() * noise
    weights = torch.full((6,), 1 / 6, dtype=dtype)
    by_paths = elbo_definition(model.log_joint(x, z), q.log_prob(z), weights)
    still = z.detach()
    f, log_q = model.log_joint(x, still) - q.log_prob(still), q.log_prob(still)
    theta = list(model.parameters())
    for form in (elbo_reinforce, elbo_reinforce_baseline, elbo_reparameterized):
        found = form(model, q, x, noise)
        close(found, by_paths)
        close(gradients(found, theta), gradients(by_paths, theta))
    ours = gradients(elbo_reparameterized(model, q, x, noise), [mean, log_std])
    close(ours, gradients(by_paths, [mean, log_std]))
    ours = gradients(elbo_reinforce(model, q, x, noise), [mean, log_std])
    close(ours, [score_function_gradient_definition(f, log_q, each) for each in (mean, log_std)])
    left = torch.stack([f[[j for j in range(6) if j != i]].mean() for i in range(6)])
    ours = gradients(elbo_reinforce_baseline(model, q, x, noise), [mean, log_std])
    close(ours, [score_function_gradient_definition(f - left, log_q, each) for each in (mean, log_std)])
    kl = kl_standard_normal(mean, log_std)
    found = elbo_analytic_kl(model, q, x, noise, kl=kl)
    by_hand = sum(model.log_likelihood(x, z[i]) for i in range(6)) / 6 - kl
    close(found, by_hand)
    close(gradients(found, [mean, log_std]), gradients(by_hand, [mean, log_std]))


@few
@given(st.integers(1, 2), seeds)
def test_bonnet_and_price_are_the_gradients_of_the_expectation(k, seed):
    """Of a quartic, by nodes: slopes in μ and Σ of E f, from automatic differentiation and from the identities."""
    generator = seeded(seed)
    a, mean = (torch.randn(k, generator=generator, dtype=torch.float64) for _ in range(2))
    root = torch.randn(k, k, generator=generator, dtype=torch.float64)
    covariance = root @ root.mT + 0.3 * torch.eye(k)

    def f(z: Tensor) -> Tensor:
        return (z @ a) ** 4 / 4 + z[..., 0] ** 3 - z.square().sum(dim=-1)

    mean, covariance = mean.requires_grad_(), covariance.requires_grad_()
    slopes = torch.autograd.grad(normal_expectation(f, MultivariateNormal(mean, covariance)), [mean, covariance])
    z = TriangularNormal(mean, torch.linalg.cholesky(covariance)).transform(exact_noise(k)).detach()
    found = bonnet_price_gradients(f, z)  # degrees 3 and 2: exact
    torch.testing.assert_close(found.mean, slopes[0], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(found.covariance, (slopes[1] + slopes[1].mT) / 2, rtol=1e-8, atol=1e-8)


def test_gradients_of_what_is_not_curved_and_without_grad():
    with torch.no_grad():
        found = bonnet_price_gradients(lambda z: 3 * z[..., 1], torch.ones(4, 2))
    assert found.mean.tolist() == [0.0, 3.0]
    assert found.covariance.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@few
@given(st.integers(1, 7), st.sampled_from([torch.float32, torch.float64]), seeds)
def test_six_groupings_are_the_definition(n, dtype, seed):
    generator = seeded(seed)
    leaves = [torch.randn(n, generator=generator, dtype=dtype).requires_grad_() for _ in range(3)]
    prior, likelihood, q = leaves[0].softmax(0), leaves[1].sigmoid(), leaves[2].softmax(0)
    exact = elbo_definition((prior * likelihood).log(), q.log(), q)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    close = partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    for found in elbo_groupings(prior, likelihood, q):
        close(found, exact)
        close(gradients(found, leaves), gradients(exact, leaves))


def test_what_q_never_does_costs_nothing_and_the_impossible_everything():
    q = torch.tensor([1.0, 0.0])
    assert elbo_definition(torch.tensor([math.log(0.3), -math.inf]), q.log(), q).item() == pytest.approx(math.log(0.3))
    assert elbo_definition(torch.tensor([-math.inf, 0.0]), q.log(), q).item() == -math.inf
    assert elbo_groupings(
        torch.tensor([0.5, 0.5]), torch.tensor([0.6, 0.0]), q
    ).kl_to_posterior.item() == pytest.approx(math.log(0.3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, q, x: elbo_reinforce_baseline(m, q, x, torch.zeros(1, 1)), "at least two samples"),
        (lambda m, q, x: elbo_reparameterized(m, q, x, torch.zeros(0, 1)), "at least one sample on the first axis"),
        (
            lambda m, q, x: elbo_analytic_kl(m, q, x, torch.zeros(2, 1), kl=torch.zeros(1)),
            "one divergence for each example",
        ),
        (lambda m, q, x: elbo_definition(torch.zeros(3), torch.zeros(3), torch.ones(2)), "of one shape"),
        (
            lambda m, q, x: elbo_groupings(torch.ones(2) / 2, torch.tensor([0.0, 1.0]), torch.ones(2) / 2),
            "above 0 wherever q is",
        ),
        (lambda m, q, x: elbo_groupings(torch.ones(2), torch.ones(2), torch.ones(2) / 2), "prior"),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    model, q = PPCA(torch.ones(3, 1), torch.zeros(3), 1.0), DiagonalNormal(torch.zeros(1), torch.zeros(1))
    with pytest.raises(UserError, match=words) as told:
        call(model, q, torch.zeros(3))
    assert "\n" not in str(told.value)
