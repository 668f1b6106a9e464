"""Mixtures of normal distributions: the distribution in logs against its density by the formula, the quick step of EM
against its equations."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.models import em_step, em_step_definition
from quoin.models.mixture_e_step import Points, e_step, keeps_digits
from quoin.prob import (
    DiagonalNormals,
    FullNormals,
    GaussianMixtureDistribution,
    SphericalNormals,
    TiedNormals,
    mixture_density_definition,
    responsibilities_definition,
)

FAMILIES = [FullNormals, TiedNormals, DiagonalNormals, SphericalNormals]
DTYPES = [torch.float32, torch.float64]
RTOL, ATOL = {torch.float32: 2e-3, torch.float64: 1e-9}, {torch.float32: 2e-4, torch.float64: 1e-10}


def parameters(family, k, d, dtype, seed):
    """Weights, means and spread of a random distribution; means near each other, so that every component has a share in
    every point."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(k, generator=generator, dtype=dtype).softmax(dim=0)
    means = torch.randn(k, d, generator=generator, dtype=dtype)
    root = torch.randn(k, d, d, generator=generator, dtype=dtype) / d**0.5 + torch.eye(d, dtype=dtype)
    full = root @ root.mT + 0.2 * torch.eye(d, dtype=dtype)
    variances = full.diagonal(dim1=-2, dim2=-1)
    spread = {FullNormals: full, TiedNormals: full[0], DiagonalNormals: variances, SphericalNormals: variances[:, 0]}[
        family
    ]
    return generator, weights, means, spread.clone()


def written_out(family, spread, k, d):
    """The covariances (k, d, d) that a spread of the family stands for."""
    eye = torch.eye(d, dtype=spread.dtype)
    if family is TiedNormals:
        return spread.expand(k, d, d)
    if family is DiagonalNormals:
        return spread.unsqueeze(-1) * eye
    return spread if family is FullNormals else spread[:, None, None] * eye


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@settings(deadline=None, max_examples=8)
@given(
    k=st.integers(1, 4), d=st.integers(1, 4), batch=st.lists(st.integers(1, 3), max_size=2), seed=st.integers(0, 2**31)
)
def test_the_law_is_its_formula(family, dtype, k, d, batch, seed):
    generator, *given_ones = parameters(family, k, d, dtype, seed)
    x = torch.randn(*batch, d, generator=generator, dtype=dtype)

    def both(form):
        inputs = [each.clone().requires_grad_() for each in (x, *given_ones)]
        density, shares = form(*inputs)
        probe = torch.Generator().manual_seed(seed)
        loss = density.sum() + (shares * torch.randn(shares.shape, generator=probe, dtype=dtype)).sum()
        return [density, shares, *torch.autograd.grad(loss, inputs)]

    def definition(x, weights, means, spread):
        covariances = written_out(family, spread, k, d)
        args = x, weights / weights.sum(), means, covariances  # so that a gradient stays in the simplex
        return mixture_density_definition(*args).log(), responsibilities_definition(*args)

    def block(x, weights, means, spread):
        law = GaussianMixtureDistribution(weights / weights.sum(), family(means, spread))
        return law.log_prob(x), law.responsibilities(x)

    for found, expected in zip(both(block), both(definition)):
        torch.testing.assert_close(_symmetric(found), _symmetric(expected), rtol=RTOL[dtype], atol=ATOL[dtype])


def _symmetric(x):
    """A gradient in a symmetric matrix is known only up to what is antisymmetric: the Cholesky factor reads one
    half."""
    return (x + x.mT) / 2 if x.ndim >= 2 and x.shape[-1] == x.shape[-2] else x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(deadline=None, max_examples=10)
@given(n=st.integers(8, 200), k=st.integers(1, 4), d=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_a_step_is_its_equations(dtype, n, k, d, seed):
    generator, weights, means, spread = parameters(FullNormals, k, d, dtype, seed)
    x = 3 * torch.randn(n, d, generator=generator, dtype=dtype) + 5
    found = em_step(
        GaussianMixtureDistribution(weights, FullNormals(means + 5, 4 * spread)),
        x,
        min_variance=0.0 if n > 60 else 1e-12,
    ).output
    expected = em_step_definition(x, weights, means + 5, 4 * spread)
    for ours, theirs in zip((found.weights, found.components.means, found.components.covariance_matrices), expected):
        torch.testing.assert_close(ours, theirs, rtol=RTOL[dtype], atol=ATOL[dtype])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@settings(deadline=None, max_examples=8)
@given(k=st.integers(1, 4), d=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_two_ways_through_the_points_agree(family, k, d, seed):
    generator, weights, means, spread = parameters(family, k, d, torch.float64, seed)
    points = Points(torch.randn(300, d, generator=generator, dtype=torch.float64), family, k)
    points.pieces = [piece.mT.contiguous() for piece in points.rows.split(70)]  # more than one piece, and a short one
    law = GaussianMixtureDistribution(weights, family(means, spread))
    assert keeps_digits(law)
    packed, centered = (e_step(points, law, packed=each) for each in (True, False))
    torch.testing.assert_close(packed.log_likelihood, centered.log_likelihood, rtol=1e-12, atol=1e-9)
    for ours, theirs in zip(packed.moments, centered.moments):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
