"""The contract of normal distributions: formula, Cholesky form, torch, scipy and finite differences agree, also where a
covariance is singular."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from torch import Tensor

from near import assert_near
from quoin.errors import UserError
from quoin.prob import (
    MultivariateNormal,
    condition_normal,
    condition_normal_definition,
    decorrelation,
    integration_by_parts,
    normal_expectation,
    normal_log_prob_definition,
    normal_moment,
    pairings,
    polynomial_moment,
    wick,
    wick_definition,
)

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-11}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
batches = st.sampled_from([(), (3,), (2, 3)])
few = settings(deadline=None, max_examples=15)


def assert_same_slopes(ours: Tensor, theirs: Tensor, leaves: list[Tensor], generator: torch.Generator) -> None:
    assert_near(ours, theirs, TOLERANCE)
    upstream = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    found = [torch.autograd.grad(each, leaves, upstream, retain_graph=True) for each in (ours, theirs)]
    for mine, its in zip(*found, strict=True):
        assert_near(mine, its, TOLERANCE)


def drawn(*shape: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def covariance_of(root: Tensor) -> Tensor:
    """Regular, and differentiated through a root: slopes in Σ itself may differ between triangles that must be
    equal."""
    return root @ root.mT / root.shape[-1] + 0.3 * torch.eye(root.shape[-1], dtype=root.dtype)


@few
@given(st.integers(1, 6), batches, st.sampled_from([(), (4,)]), dtypes, seeds)
def test_density_is_the_formula_and_torchs(d, batch, points, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    mean, root = (
        drawn(*batch, d, dtype=dtype, generator=generator),
        drawn(*batch, d, d, dtype=dtype, generator=generator),
    )
    x = drawn(*points, *batch, d, dtype=dtype, generator=generator)
    covariance = covariance_of(root)
    ours = MultivariateNormal(mean, covariance).log_prob(x)
    assert_same_slopes(ours, normal_log_prob_definition(x, mean, covariance), [x, mean, root], generator)
    assert_same_slopes(
        ours, torch.distributions.MultivariateNormal(mean, covariance).log_prob(x), [x, mean, root], generator
    )


@few
@given(st.integers(1, 6), st.data(), seeds)
def test_density_on_the_support_is_scipys(d, data, seed):
    rank = data.draw(st.integers(1, d))
    generator = torch.Generator().manual_seed(seed)
    mean, root = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((d,), (d, rank)))
    law = MultivariateNormal(mean, root @ root.T)
    peer: Any = multivariate_normal(mean.numpy(), law.covariance.numpy(), allow_singular=True)  # type: ignore[arg-type]
    x = law.sample((5,), generator=generator)
    if peer.cov_object.rank == int(law.support().rank()):  # a nearly singular draw may be either
        np.testing.assert_allclose(law.log_prob(x).numpy(), np.atleast_1d(peer.logpdf(x.numpy())), rtol=1e-6, atol=1e-6)
        null = law.support().null
        if null is not None:
            off = x + null.sum(dim=-1)
            assert law.log_prob(off).tolist() == [-math.inf] * 5


def test_a_point_mass():
    law = MultivariateNormal(torch.tensor([3.0, -1.0]), torch.zeros(2, 2))
    assert law.sample((4,), generator=torch.Generator()).tolist() == [[3.0, -1.0]] * 4
    assert law.log_prob(torch.tensor([[3.0, -1.0], [3.0, 0.0]])).tolist() == [0.0, -math.inf]


def test_ranks_may_differ_in_a_batch_and_company_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(4, 3, 3, generator=generator, dtype=torch.float64)
    for place in range(3):
        root[place, :, place:] = 0  # ranks 0, 1, 2, 3
    covariance, mean = root @ root.mT, torch.randn(4, 3, generator=generator, dtype=torch.float64)
    law = MultivariateNormal(mean, covariance)
    assert torch.as_tensor(law.support().rank()).tolist() == [0, 1, 2, 3]
    x = mean + (root @ torch.randn(4, 3, 1, generator=generator, dtype=torch.float64)).squeeze(-1)
    alone = torch.stack([MultivariateNormal(mean[k], covariance[k]).log_prob(x[k]) for k in range(4)])
    torch.testing.assert_close(law.log_prob(x), alone, rtol=1e-14, atol=1e-14)
    assert law.log_prob(x)[3] == alone[3]  # the regular one to the bit
    small = MultivariateNormal(torch.zeros(3), torch.diag(torch.tensor([1e6, 1.0, 1e-14])))
    for each in (small, small.condition([0], torch.ones(1)), small.affine(torch.eye(3))):  # small is not singular
        assert each.support().basis is None


@few
@given(st.integers(2, 6), st.data(), batches, dtypes, seeds)
def test_conditioning_is_the_formula(d, data, batch, dtype, seed):
    places = data.draw(st.lists(st.integers(0, d - 1), unique=True, max_size=d - 1))
    generator = torch.Generator().manual_seed(seed)
    mean, root = (
        drawn(*batch, d, dtype=dtype, generator=generator),
        drawn(*batch, d, d, dtype=dtype, generator=generator),
    )
    y = drawn(*batch, len(places), dtype=dtype, generator=generator)
    covariance = covariance_of(root)
    ours, theirs = (form(mean, covariance, places, y) for form in (condition_normal, condition_normal_definition))
    assert_same_slopes(ours.mean, theirs.mean, [mean, root, y] if places else [mean], generator)
    assert_same_slopes(ours.covariance, theirs.covariance, [root], generator)
    law = MultivariateNormal(mean, covariance).condition(places, y)
    torch.testing.assert_close((law.mean, law.covariance), tuple(ours), rtol=0, atol=0)
    # The distribution of all is the distribution of the given ones times the distribution of the others given them.
    x = torch.randn(*batch, d, generator=generator, dtype=dtype)
    rest = [place for place in range(d) if place not in places]
    if places:
        whole = MultivariateNormal(mean, covariance)
        chain = whole.marginal(places).log_prob(x[..., places]) + whole.condition(places, x[..., places]).log_prob(
            x[..., rest]
        )
        assert_near(whole.log_prob(x), chain, TOLERANCE)


def test_leading_axes_broadcast():
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    covariance, means = covariance_of(root), torch.randn(5, 4, generator=generator, dtype=torch.float64)
    y = torch.randn(7, 1, 2, generator=generator, dtype=torch.float64)
    found = condition_normal(means, covariance, [3, 1], y)
    assert found.mean.shape == (7, 5, 2)
    assert found.covariance.shape == (2, 2)
    one = condition_normal_definition(means[2], covariance, [3, 1], y[6, 0])
    torch.testing.assert_close((found.mean[6, 2], found.covariance), tuple(one))
    many = covariance_of(torch.randn(5, 4, 4, generator=generator, dtype=torch.float64))
    law = MultivariateNormal(means[0], many)
    x = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    alone = torch.stack([MultivariateNormal(means[0], many[k]).log_prob(x[:, k]) for k in range(5)], dim=1)
    torch.testing.assert_close(law.log_prob(x), alone)
    assert law.sample((2,), generator=generator).shape == (2, 5, 4)


def test_conditioning_on_given_ones_that_are_bound_to_each_other():
    """Y = (U, 2U) has a singular covariance; knowing both is knowing U."""
    root = torch.tensor([[1.0, 0.5], [0.0, 1.0], [0.0, 2.0]], dtype=torch.float64)  # X = V + U / 2
    law = MultivariateNormal(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), root @ root.T)
    found = law.condition([1, 2], torch.tensor([2.7, 4.4], dtype=torch.float64))
    assert found.mean.item() == pytest.approx(1.35, abs=1e-12)
    assert found.covariance.item() == pytest.approx(1.0, abs=1e-12)
    definition = condition_normal_definition(
        law.mean, law.covariance, [1, 2], torch.tensor([2.7, 4.4], dtype=torch.float64)
    )
    torch.testing.assert_close((found.mean, found.covariance), tuple(definition))
    with pytest.raises(UserError, match=r"on the support of the given coordinates.*it does not"):
        law.condition([1, 2], torch.tensor([2.7, 4.5], dtype=torch.float64))
    bound = law.condition([1], torch.tensor([2.7], dtype=torch.float64))  # the third is now known as well
    assert bound.marginal([1]).sample((), generator=torch.Generator()).item() == pytest.approx(4.4, abs=1e-12)
    assert bound.marginal([1]).log_prob(torch.tensor([4.41], dtype=torch.float64)).item() == -math.inf


@pytest.mark.parametrize("seed", range(8))
def test_what_is_determined_has_no_variance_left(seed):
    """Of rank 2 in R^4: two coordinates determine the others, and combinations across the support are certain."""
    generator = torch.Generator().manual_seed(seed)
    mean, root = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((4,), (4, 2)))
    law = MultivariateNormal(mean, root @ root.T)
    x = law.sample((), generator=generator)
    across = torch.linalg.svd(root).U[:, 2:].T
    for certain, point in ((law.condition([1, 3], x[[1, 3]]), x[[0, 2]]), (law.affine(across), across @ x)):
        torch.testing.assert_close(certain.sample((3,), generator=generator), point.expand(3, 2), rtol=1e-9, atol=1e-9)
        assert certain.log_prob(certain.mean).item() == 0
        assert certain.log_prob(certain.mean + 0.01).item() == -math.inf


def test_slopes_against_finite_differences():
    generator = torch.Generator().manual_seed(1)
    mean, root = (
        drawn(3, dtype=torch.float64, generator=generator),
        drawn(3, 3, dtype=torch.float64, generator=generator),
    )
    x, y = drawn(3, dtype=torch.float64, generator=generator), drawn(1, dtype=torch.float64, generator=generator)

    def law(mean: Tensor, root: Tensor) -> MultivariateNormal:
        return MultivariateNormal(mean, root @ root.mT)

    assert torch.autograd.gradcheck(lambda m, r, x: law(m, r).log_prob(x), (mean, root, x))
    assert torch.autograd.gradcheck(lambda m, r, a: law(m, r).mgf(a), (mean, root, x))
    assert torch.autograd.gradcheck(
        lambda m, r: law(m, r).sample((2,), generator=torch.Generator().manual_seed(0)), (mean, root)
    )
    assert torch.autograd.gradcheck(lambda m, r, y: condition_normal(m, r @ r.mT, [1], y), (mean, root, y))
    assert torch.autograd.gradcheck(lambda r: wick(r @ r.mT, [0, 0, 1, 2, 1, 2]), root)
    assert torch.autograd.gradcheck(lambda m, r: normal_moment(m, r @ r.mT, [0, 0, 1, 2, 2]), (mean, root))


def test_slopes_where_the_support_moves():
    """Of rank 2 in R^3: the points move with the support, and so do samples; y moves with the line it must lie on."""
    generator = torch.Generator().manual_seed(2)
    mean, root = (
        drawn(3, dtype=torch.float64, generator=generator),
        drawn(3, 2, dtype=torch.float64, generator=generator),
    )
    z = torch.randn(2, generator=generator, dtype=torch.float64)

    def on_the_support(mean: Tensor, root: Tensor) -> Tensor:
        return MultivariateNormal(mean, root @ root.mT).log_prob(mean + root @ z)

    def pairs_of_samples(mean: Tensor, root: Tensor) -> Tensor:  # F F^T, in which the choice of F falls out
        law = MultivariateNormal(mean, root @ root.mT)
        factor = law.support().root(law.covariance)
        return factor @ factor.mT

    def known(mean: Tensor, root: Tensor) -> tuple[Tensor, ...]:
        both = torch.cat([root, root[1:2] * 3])  # the fourth is three times the second
        shift = root[1] @ z
        y = torch.stack([mean[1] + shift, 3 * mean[1] + 3 * shift])
        return tuple(condition_normal(torch.cat([mean, 3 * mean[1:2]]), both @ both.mT, [1, 3], y))

    for function in (on_the_support, pairs_of_samples, known):
        assert torch.autograd.gradcheck(function, (mean, root)), function.__name__


def test_affine_images_sums_and_neighbours():
    generator = torch.Generator().manual_seed(3)
    A, b = (
        torch.randn(5, 3, generator=generator, dtype=torch.float64),
        torch.randn(5, generator=generator, dtype=torch.float64),
    )
    mean, root = (
        torch.randn(3, generator=generator, dtype=torch.float64),
        torch.randn(3, 3, generator=generator, dtype=torch.float64),
    )
    law = MultivariateNormal(mean, root @ root.T)
    x = law.sample((6,), generator=generator)
    image = law.affine(A, b)  # on a space of 3 dimensions in R^5: areas grow by sqrt(det A^T A)
    torch.testing.assert_close(image.log_prob(x @ A.T + b), law.log_prob(x) - torch.logdet(A.T @ A) / 2)
    twice = law.add_independent(law).affine(torch.eye(3, dtype=torch.float64) / math.sqrt(2))
    torch.testing.assert_close(twice.covariance, law.covariance)
    torch.testing.assert_close(twice.mean, math.sqrt(2) * mean)
    both = law.join_independent(image.marginal([4]))
    torch.testing.assert_close(both.covariance, torch.block_diag(law.covariance, image.covariance[4:, 4:]))
    torch.testing.assert_close(
        both.log_prob(torch.cat([x, b.expand(6, 5)[:, 4:]], -1)), law.log_prob(x) + image.marginal([4]).log_prob(b[4:])
    )


def test_samples_have_the_mean_and_the_covariance():
    generator = torch.Generator().manual_seed(4)
    root = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    law = MultivariateNormal(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64), root @ root.T)
    x = law.sample((100_000,), generator=generator)
    torch.testing.assert_close(
        x.mean(dim=0), law.mean, rtol=0, atol=6 * float(root.square().sum(1).max().sqrt()) / math.sqrt(1e5)
    )
    torch.testing.assert_close(
        x.T.cov(), law.covariance, rtol=0, atol=9 * float(root.square().sum(1).max()) / math.sqrt(1e5)
    )
    assert bool(law.log_prob(x).isfinite().all())
    assert torch.equal(*(law.sample((3,), generator=torch.Generator().manual_seed(1)) for _ in range(2)))


def test_a_law_can_be_walked_back_more_than_once():
    covariance = torch.eye(2).requires_grad_()
    law = MultivariateNormal(torch.zeros(2), covariance)
    with torch.no_grad():
        law.log_prob(torch.ones(2))
    slopes = [torch.autograd.grad(law.log_prob(torch.ones(2)), covariance)[0] for _ in range(2)]
    torch.testing.assert_close(slopes, [torch.tensor([[0.0, 0.5], [0.5, 0.0]])] * 2)  # ½ Σ^-1 (x x^T - Σ) Σ^-1


@few
@given(st.lists(st.integers(0, 3), max_size=8), batches, dtypes, seeds)
def test_wick_is_the_sum_over_pairings(indices, batch, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    root = drawn(*batch, 4, 4, dtype=dtype, generator=generator)
    covariance = root @ root.mT / 4
    ours, theirs = wick(covariance, indices), wick_definition(covariance, indices)
    if indices and len(indices) % 2 == 0:
        assert_same_slopes(ours, theirs, [root], generator)
    assert_near(ours, theirs, TOLERANCE)
    assert_near(normal_moment(torch.zeros(*batch, 4, dtype=dtype), covariance, indices), theirs, TOLERANCE)


@few
@given(st.lists(st.integers(0, 2), max_size=5), seeds)
def test_with_a_mean_some_factors_give_it_and_the_others_pair_off(indices, seed):
    generator = torch.Generator().manual_seed(seed)
    mean, root = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((3,), (3, 3)))
    total = torch.zeros((), dtype=torch.float64)
    for chosen in range(2 ** len(indices)):
        means = [mean[i] for k, i in enumerate(indices) if chosen >> k & 1]
        paired = wick_definition(root @ root.T, [i for k, i in enumerate(indices) if not chosen >> k & 1])
        total = total + math.prod(means) * paired
    assert_near(normal_moment(mean, root @ root.T, indices), total, TOLERANCE)


def test_moments_of_high_order():
    one = torch.ones(20, 20, dtype=torch.float64)  # X_1 = ... = X_20: each pairing counts one
    assert wick(one, range(20)).item() == 654_729_075  # 19!!
    assert wick(one, [0] * 20).item() == 654_729_075
    assert wick(one, range(19)).item() == 0
    assert sum(1 for _ in pairings(8)) == 105
    assert list(pairings(3)) == []
    generator = torch.Generator().manual_seed(5)
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    law = MultivariateNormal(torch.randn(3, generator=generator, dtype=torch.float64), root @ root.T)
    powers = torch.tensor([4, 7, 2])
    peer = normal_expectation(lambda x: (x**powers).prod(dim=-1), law)
    torch.testing.assert_close(
        normal_moment(law.mean, law.covariance, [0] * 4 + [1] * 7 + [2] * 2), peer, rtol=1e-9, atol=0
    )
    found = polynomial_moment({(): 2.0, (1,): -1.0, (0, 2): 3.0}, law.mean, law.covariance)
    torch.testing.assert_close(found, 2 - law.mean[1] + 3 * (law.covariance[0, 2] + law.mean[0] * law.mean[2]))


@pytest.mark.parametrize("rank", [1, 3])
def test_integration_by_parts(rank):
    generator = torch.Generator().manual_seed(rank)
    root = torch.randn(3, rank, generator=generator, dtype=torch.float64)
    law = MultivariateNormal(torch.randn(3, generator=generator, dtype=torch.float64), root @ root.T)
    for coordinate in range(3):
        found = integration_by_parts(
            lambda x: x[..., 0] ** 2 * x[..., 1] + torch.sin(x[..., 2] / 2), law, coordinate=coordinate
        )
        torch.testing.assert_close(found.product, found.derivatives, rtol=1e-8, atol=1e-8)
    constant = integration_by_parts(lambda x: torch.full(x.shape[:-1], 7.0, dtype=x.dtype), law)
    assert constant.derivatives.item() == 0
    assert constant.product.item() == pytest.approx(0, abs=1e-12)


def test_decorrelation_frees_the_others():
    generator = torch.Generator().manual_seed(6)
    root = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    covariance = root @ root.mT
    matrix, loadings = decorrelation(covariance, coordinate=2)
    after = matrix @ covariance
    torch.testing.assert_close(after[..., 2], torch.zeros_like(after[..., 2]), rtol=0, atol=1e-12)  # Cov(X̂, X_2)
    torch.testing.assert_close(loadings, covariance[..., 2] / covariance[..., 2, 2, None])
    with pytest.raises(UserError, match="coordinate 1 to have a variance above 0"):
        decorrelation(torch.diag(torch.tensor([1.0, 0.0])), coordinate=1)


EYE, ZERO = torch.eye(2), torch.zeros(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: MultivariateNormal(ZERO, torch.tensor([[1.0, 0.5], [0.4, 1.0]])),
            r"symmetric covariance, got one with .* up to 0\.1;",
        ),
        (
            lambda: MultivariateNormal(ZERO, torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
            r"semi-definite covariance, got .* eigenvalue of -1;",
        ),
        (lambda: MultivariateNormal(ZERO, torch.stack([EYE, -EYE])), r"eigenvalue of -1 at \(1,\);"),
        (lambda: MultivariateNormal(ZERO, EYE * math.nan), r"finite entries of covariance, got nan"),
        (lambda: MultivariateNormal(ZERO * math.inf, EYE), r"finite entries of mean, got nan"),
        (lambda: MultivariateNormal(ZERO, torch.ones(2, 3)), r"axis d of covariance to be 2"),
        (
            lambda: MultivariateNormal(torch.zeros(3), EYE),
            r"mean with 2 coordinates on the last axis, got shape \(3,\)",
        ),
        (lambda: MultivariateNormal(ZERO.double(), EYE), r"mean of dtype torch.float32, got torch.float64"),
        (lambda: MultivariateNormal(ZERO, EYE.long()), r"covariance of a float dtype"),
        (
            lambda: MultivariateNormal(torch.zeros(3, 2), torch.stack([EYE, EYE])),
            r"that broadcast with those of the distribution",
        ),
        (lambda: MultivariateNormal(torch.zeros(0), torch.zeros(0, 0)), r"at least one coordinate"),
        (lambda: MultivariateNormal(ZERO, EYE).log_prob(torch.zeros(3)), r"x with 2 coordinates"),
        (
            lambda: MultivariateNormal(ZERO, EYE).add_independent(MultivariateNormal(torch.zeros(3), torch.eye(3))),
            r"on 2 coordinates to add, got one on 3",
        ),
        (lambda: MultivariateNormal(ZERO, EYE).marginal([0, 0]), r"distinct coordinates from 0 to 1, got \[0, 0\]"),
        (lambda: MultivariateNormal(ZERO, EYE).affine(torch.eye(3)), r"size 2 where it has 3"),
        (lambda: condition_normal(ZERO, EYE, [2], torch.zeros(1)), r"given as distinct coordinates"),
        (lambda: condition_normal(ZERO, EYE, [0, 1], ZERO), r"at least one coordinate that is not given"),
        (lambda: condition_normal(ZERO, EYE, [1], torch.zeros(2)), r"y with 1 coordinates"),
        (
            lambda: condition_normal(ZERO, torch.tensor([[1.0, 2.0], [2.0, 1.0]]), [1], torch.zeros(1)),
            r"leaves a variance of -3",
        ),
        (
            lambda: wick(torch.tensor([[1.0, 2.0], [2.0, 1.0]]), [0, 0, 1, 1]),
            r"semi-definite covariance, got .* eigenvalue of -1;",
        ),
        (lambda: normal_moment(ZERO, -EYE, [0, 0]), r"semi-definite covariance, got .* eigenvalue of -1;"),
        (lambda: wick(EYE, [0, 2]), r"indices from 0 to 1, got 2"),
        (lambda: polynomial_moment({}, ZERO, EYE), r"at least one term"),
        (lambda: normal_expectation(torch.sum, MultivariateNormal(torch.zeros(9), torch.eye(9))), r"nodes in all"),
        (
            lambda: integration_by_parts(torch.sum, MultivariateNormal(ZERO, EYE), coordinate=2),
            r"coordinate from 0 to 1",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)
