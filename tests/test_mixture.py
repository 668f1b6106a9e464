"""Gaussian mixtures: scikit-learn from the same start, what EM promises, far and narrow data, and what is refused."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture as Peer

from quoin.errors import UserError
from quoin.estimators import GaussianMixtureEM
from quoin.models import (
    DensityModel,
    GaussianMixture,
    MixtureCandidates,
    em,
    em_step,
    em_with_restarts,
    init_mixture,
    kmeans_plus_plus,
)
from quoin.models.mixture_e_step import Points, e_step, keeps_digits
from quoin.prob import (
    DiagonalNormals,
    FullNormals,
    GaussianMixtureDistribution,
    SphericalNormals,
    TiedNormals,
    modes_1d,
)

FAMILIES = {"full": FullNormals, "tied": TiedNormals, "diag": DiagonalNormals, "spherical": SphericalNormals}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def three_clusters(n=150, seed=0, dtype=torch.float64):
    random = generator(seed)
    centers = torch.tensor([[0.0, 0.0, 0.0], [4.0, 1.0, -2.0], [-1.0, 5.0, 2.0]], dtype=torch.float64)
    noise = torch.randn(3, n, 3, generator=random, dtype=torch.float64) * torch.tensor([1.0, 0.5, 1.5])
    return (centers.unsqueeze(1) + noise).flatten(0, 1).to(dtype)


@pytest.mark.parametrize("kind", FAMILIES)
def test_scikit_learn_from_the_same_start(kind):
    x = three_clusters() + torch.tensor([100.0, -20.0, 0.0])
    law = init_mixture(x, 3, FAMILIES[kind], generator=generator(3))
    precisions = torch.linalg.inv(law.components.covariance_matrices)
    given = {
        "full": precisions,
        "tied": precisions[0],
        "diag": precisions.diagonal(dim1=-2, dim2=-1),
        "spherical": precisions[:, 0, 0],
    }[kind]
    peer = Peer(
        3,
        covariance_type=kind,
        tol=0.0,
        reg_covar=0.0,
        max_iter=25,
        weights_init=law.weights.numpy(),
        means_init=law.components.means.numpy(),
        precisions_init=given.numpy(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(x.numpy())
    found = em(law, x, max_iter=peer.n_iter_, tol=0.0, min_variance=0.0)
    ours = found.output
    for mine, theirs in (
        (ours.weights, peer.weights_),
        (ours.components.means, peer.means_),
        (ours.components.covariances, peer.covariances_),
    ):
        torch.testing.assert_close(mine, torch.from_numpy(theirs), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        torch.tensor(found.log_likelihoods[-1] / len(x)), torch.tensor(peer.score(x.numpy())), rtol=1e-6, atol=1e-6
    )
    model = GaussianMixture(ours)
    assert model.bic(x) == pytest.approx(peer.bic(x.numpy()), rel=1e-6)
    assert model.aic(x) == pytest.approx(peer.aic(x.numpy()), rel=1e-6)
    np.testing.assert_allclose(model.responsibilities(x).numpy(), peer.predict_proba(x.numpy()), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", FAMILIES.values())
def test_the_likelihood_rises_to_the_last_step(family, dtype):
    x = three_clusters(80, seed=5, dtype=dtype)
    found = em_with_restarts(x, 4, family, generator=generator(), num_init=1, tol=1e-7, max_iter=2000)
    assert found.converged
    steps = torch.tensor(found.log_likelihoods, dtype=torch.float64).diff()
    assert float(steps.min()) >= -1e-12 * abs(found.log_likelihoods[-1])
    own = float(found.output.log_prob(x).double().sum())
    assert found.log_likelihoods[-1] == pytest.approx(own, rel=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("family", FAMILIES.values())
def test_a_high_bound_is_no_reason_to_stop(family):
    """Whether EM begins within the bound, as from its own starts, or is given a distribution far outside of it, whose
    first step must fall."""
    x = three_clusters(80, seed=5)
    found = em_with_restarts(x, 3, family, generator=generator(), num_init=1, min_variance=0.5)
    assert np.diff(found.log_likelihoods).min() >= -1e-9
    free = em_with_restarts(x, 3, family, generator=generator(), num_init=1).output
    again = em(free, x, min_variance=0.5)
    fall, *gains = np.diff(again.log_likelihoods)
    assert fall < 0 <= min(gains) + 1e-9
    assert len(gains) > 1
    assert again.log_likelihoods[-1] == pytest.approx(found.log_likelihoods[-1], abs=0.5)


def test_the_likeliest_start_is_taken():
    x, one_by_one = three_clusters(40, seed=6), generator(1)
    ends = [em_with_restarts(x, 5, generator=one_by_one, num_init=1).log_likelihoods[-1] for _ in range(4)]
    assert em_with_restarts(x, 5, generator=generator(1), num_init=4).log_likelihoods[-1] == max(ends) > min(ends)


def test_the_bound_is_the_constrained_maximum():
    # -ln det Σ - tr(Σ^-1 S) over Σ >= b I: no random matrix that keeps the bound beats the one found.
    random = generator(1)
    x = torch.randn(40, 3, generator=random, dtype=torch.float64) * torch.tensor([1.0, 1.0, 1e-3])
    x = x @ torch.linalg.qr(torch.randn(3, 3, generator=random, dtype=torch.float64)).Q
    points = Points(x, FullNormals, 1)
    one = GaussianMixtureDistribution(
        torch.ones(1, dtype=torch.float64), FullNormals.isotropic_at(torch.zeros(1, 3, dtype=torch.float64))
    )
    moments = e_step(points, one, packed=False).moments
    found = one.components.m_step(moments, 0.05).covariance_matrices[0]
    assert float(torch.linalg.eigvalsh(found)[0]) == pytest.approx(0.05, rel=1e-9)

    def value(covariance):
        return float(
            -torch.logdet(covariance) - torch.trace(torch.linalg.solve(covariance, moments.scatter_matrices[0]))
        )

    for _ in range(300):
        values, vectors = torch.linalg.eigh(
            found + 0.05 * (root := torch.randn(3, 3, generator=random, dtype=torch.float64)) @ root.mT
        )
        assert value(vectors @ torch.diag(values.clamp(min=0.05)) @ vectors.mT) <= value(found) + 1e-12
    plain = found - (found - moments.scatter_matrices[0])
    assert value(plain) > value(found)  # and without the bound it is higher: the bound binds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_from_the_origin(dtype):
    x = (
        three_clusters(dtype=dtype).double().mul(64).round().div(64).to(dtype)
    )  # whole 64ths: adding 10,000 rounds nothing
    far = x + 10_000
    near_fit = em(init_mixture(x, 3, generator=generator(2)), x, max_iter=30, tol=0.0)
    far_fit = em(init_mixture(far, 3, generator=generator(2)), far, max_iter=30, tol=0.0)
    torch.testing.assert_close(
        far_fit.output.components.covariance_matrices,
        near_fit.output.components.covariance_matrices,
        rtol=1e-4,
        atol=1e-5,
    )
    torch.testing.assert_close(
        far_fit.output.components.means - 10_000, near_fit.output.components.means, rtol=0, atol=2e-3
    )
    assert far_fit.log_likelihoods[-1] == pytest.approx(near_fit.log_likelihoods[-1], rel=1e-6)


def test_narrow_components_are_counted_the_careful_way():
    # Two clusters 2,000,000 deviations apart: sums about the mean of all lose their variance, and are not trusted.
    x = torch.randn(200, 1, generator=generator(), dtype=torch.float64)
    x = torch.cat([x[:100], x[100:] + 2e6])
    law = GaussianMixtureDistribution(
        torch.tensor([0.5, 0.5]).double(),
        SphericalNormals(torch.tensor([[0.0], [2e6]]).double(), torch.ones(2).double()),
    )
    points = Points(x, SphericalNormals, 2)
    assert not keeps_digits(points.inner(law))
    found = em_step(law, x, min_variance=0.0).output.components
    exact = torch.stack([x[:100].var(correction=0), (x[100:] - 2e6).var(correction=0)])
    torch.testing.assert_close(found.covariances, exact, rtol=1e-6, atol=0)
    packed = e_step(points, points.inner(law), packed=True).moments.scatter_matrices[:, 0] * points.scale.square()
    assert float((packed - exact).abs().max()) > 1e-5  # what the other way would have given


def test_a_wide_start_that_ends_narrow_is_counted_again():
    x = 1e-8 * torch.randn(100, 1, generator=generator(), dtype=torch.float64)
    x[50:] += 1
    wide = SphericalNormals(torch.tensor([[0.0], [1.0]]).double(), torch.full((2,), 1e-3).double())
    law = GaussianMixtureDistribution(torch.tensor([0.5, 0.5]).double(), wide)
    assert keeps_digits(Points(x, SphericalNormals, 2).inner(law))
    found = em_step(law, x, min_variance=0.0).output.components.covariances
    exact = torch.stack([x[:50].var(correction=0), x[50:].var(correction=0)])
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=0)


def test_units_do_not_matter():
    x = three_clusters()
    units = torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)
    plain = em(init_mixture(x, 3, generator=generator(4)), x, max_iter=20, tol=0.0)
    scaled = em(init_mixture(x * units, 3, generator=generator(4)), x * units, max_iter=20, tol=0.0)
    torch.testing.assert_close(
        scaled.output.components.means / units, plain.output.components.means, rtol=1e-8, atol=1e-8
    )
    assert scaled.log_likelihoods[-1] == pytest.approx(
        plain.log_likelihoods[-1] - len(x) * float(units.log().sum()), rel=1e-9
    )


def test_the_model_keeps_its_law():
    x = three_clusters(dtype=torch.float32)
    model = GaussianMixture.fit(x, 3, generator=generator(), num_init=2)
    assert isinstance(model, DensityModel)
    other = GaussianMixture(
        GaussianMixtureDistribution(torch.full((3,), 1 / 3), FullNormals.isotropic_at(torch.zeros(3, 3)))
    )
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.log_prob(x), model.log_prob(x))
    drawn = model.sample(20_000, generator=generator())
    off = (
        (drawn.mean(dim=0) - model.distribution.mean)
        / model.distribution.covariance.diagonal().sqrt()
        * math.sqrt(20_000)
    )
    assert float(off.abs().max()) < 6
    counts = torch.bincount(model.predict(drawn), minlength=3) / 20_000
    assert float((counts - model.weights).abs().max()) < 0.03  # the clusters hardly meet
    scores = [GaussianMixture.fit(x, k, generator=generator(), num_init=2, tol=1e-4).bic(x) for k in (1, 2, 3, 5)]
    assert scores.index(min(scores)) == 2  # three clusters


@pytest.mark.parametrize("family", FAMILIES.values())
def test_draws_come_from_their_component(family):
    means = torch.tensor([[0.0, 0.0], [100.0, 0.0]], dtype=torch.float64)
    law = GaussianMixtureDistribution(
        torch.tensor([0.25, 0.75], dtype=torch.float64),
        family.isotropic_at(means).affine(torch.zeros(2), torch.full((2,), 2.0)),
    )
    x = law.sample((40, 500), generator=generator()).flatten(0, 1)
    right = x[:, 0] > 100
    assert float(right.double().mean()) == pytest.approx(0.75, abs=0.025)
    torch.testing.assert_close(x[right].T.cov(), 4 * torch.eye(2, dtype=torch.float64), rtol=0.12, atol=0.2)


def test_peaks():
    def law(weights, means, variances):
        places, spread = torch.tensor(means).double().unsqueeze(-1), torch.tensor(variances).double()
        return GaussianMixtureDistribution(torch.tensor(weights).double(), SphericalNormals(places, spread))

    assert len(modes_1d(law([1.0], [3.0], [2.0]))) == 1
    narrow = law([0.5, 0.25, 0.25], [0.0, 500.0, 1000.0], [1.0, 1e-6, 4.0])  # a peak of a thousandth of a deviation
    torch.testing.assert_close(modes_1d(narrow), torch.tensor([0.0, 500.0, 1000.0]).double(), atol=1e-6, rtol=0)
    assert (
        len(modes_1d(law([0.97, 0.03], [0.0, 2.5], [1.0, 1.0]))) == 1
    )  # beyond two deviations, but not of equal weight
    with pytest.raises(UserError, match="on the line"):
        modes_1d(GaussianMixtureDistribution(torch.ones(1), FullNormals.isotropic_at(torch.zeros(1, 2))))


def test_centres_are_far_from_each_other():
    x = torch.cat([torch.zeros(1000, 2), torch.tensor([[50.0, 0.0], [0.0, 50.0]])])
    x = x + 1e-3 * torch.randn(x.shape, generator=generator())
    for seed in range(10):  # drawn evenly they would hardly ever be the two lone points
        centers = kmeans_plus_plus(x, 3, generator=generator(seed))
        assert sorted(centers.norm(dim=-1).round().tolist()) == [0, 50, 50]


X = three_clusters(20)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: GaussianMixture.fit(X[:3], 4, generator=generator()), "from 1 to 3 components for 3 points, got 4"),
        (lambda: GaussianMixture.fit(X, 0, generator=generator()), "got 0"),
        (lambda: GaussianMixture.fit(X[:1], 1, generator=generator()), "points that differ, got 1"),
        (lambda: GaussianMixture.fit(X[:1].repeat(9, 1), 1, generator=generator()), "points that differ, got 9"),
        (
            lambda: GaussianMixture.fit(X[:2].repeat(9, 1), 3, generator=generator()),
            "at least 3 points that differ, got 2",
        ),
        (
            lambda: GaussianMixture.fit(torch.full((5, 2), math.nan), 2, generator=generator()),
            "finite entries of x, got nan",
        ),
        (lambda: GaussianMixture.fit(X[:, 0], 2, generator=generator()), r"points \(n, d\)"),
        (lambda: GaussianMixture.fit(X.long(), 2, generator=generator()), "float"),
        (lambda: GaussianMixture.fit(1e300 * X, 2, generator=generator()), "squares are finite"),
        (lambda: GaussianMixture.fit(X, 2, generator=generator(), num_init=0), "at least one start, got 0"),
        (lambda: GaussianMixture.fit(X, 2, generator=generator(), min_variance=-1.0), "least variance of 0 or more"),
        (lambda: GaussianMixture.fit(X, 2, generator=generator(), max_iter=-1), "steps and a tolerance from 0 up"),
        (lambda: GaussianMixture.fit(X, 2, generator=generator()).log_prob(X[:, :2]), r"points \(n, 3\), got shape"),
        (
            lambda: GaussianMixture.fit(X, 2, generator=generator()).log_prob(X.float()),
            "dtype torch.float64, got torch.float32",
        ),
        (
            lambda: GaussianMixture.fit(X, 2, generator=generator()).sample(0, generator=generator()),
            "at least one example",
        ),
        (
            lambda: em_step(init_mixture(X, 2, generator=generator()), X[:, :2]),
            "distribution on the points' 2 coordinates, got one on 3",
        ),
        (lambda: em_step(init_mixture(X, 2, generator=generator()), X.float()), "one dtype"),
        (
            lambda: em(init_mixture(X[:3], 3, generator=generator()), X[:3], min_variance=0.0),
            "raise the least variance",
        ),
        (
            lambda: GaussianMixtureDistribution(
                torch.tensor([0.5, 0.6]), SphericalNormals.isotropic_at(torch.zeros(2, 1))
            ),
            "sum to one",
        ),
        (
            lambda: GaussianMixtureDistribution(torch.ones(1), SphericalNormals.isotropic_at(torch.zeros(2, 1))),
            "a weight for each of 2 components",
        ),
        (lambda: FullNormals(torch.zeros(1, 2), torch.zeros(1, 2, 2)), "positive definite"),
        (lambda: DiagonalNormals(torch.zeros(1, 2), torch.zeros(1, 2)), "variances above 0"),
        (lambda: GaussianMixtureEM(2, covariance_type="diagonal").fit(X.numpy()), "did you mean 'diag'"),
        (lambda: GaussianMixtureEM(100).fit(X.numpy()), "from 1 to 60 components"),
        (lambda: GaussianMixtureEM(min_variance=-1.0).fit(X.numpy()), "min_variance of at least 0"),
    ],
)
def test_what_is_refused(work, said):
    with pytest.raises(UserError, match=said) as found:
        work()
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("family", FAMILIES.values())
def test_hard_points_are_fitted(family):
    doubled = X.repeat(3, 1)  # every point three times: the same distribution
    law = init_mixture(X, 2, family, generator=generator())
    once, thrice = (em(law, points, max_iter=5, tol=0.0).output for points in (X, doubled))
    torch.testing.assert_close(once.components.covariances, thrice.components.covariances)
    constant = torch.cat([X, torch.full((len(X), 1), 7.0, dtype=X.dtype)], dim=1)  # a coordinate that never changes
    found = em_with_restarts(constant, 2, family, generator=generator(), num_init=2)
    assert math.isfinite(found.log_likelihoods[-1])
    torch.testing.assert_close(found.output.components.means[:, 3], torch.full((2,), 7.0, dtype=X.dtype))
    every = em_with_restarts(X[:5], 5, family, generator=generator(), num_init=1)  # as many components as points
    assert bool(every.output.log_prob(X[:5]).isfinite().all())


def test_the_face():
    x = three_clusters(dtype=torch.float32).numpy()
    face = GaussianMixtureEM(3, n_init=3, random_state=0).fit(x)
    peer = Peer(3, n_init=3, random_state=0, tol=1e-6, max_iter=500).fit(x.astype(np.float64))
    assert face.score(x) == pytest.approx(peer.score(x), abs=1e-4)
    assert face.bic(x) == pytest.approx(peer.bic(x), rel=1e-4)
    assert face.predict_proba(x).shape == (450, 3)
    assert (face.fit_predict(x) == face.predict(x)).all()
    assert face.sample(7, random_state=0).shape == (7, 3)
    with pytest.warns(UserWarning, match="raise max_iter or tol"):
        GaussianMixtureEM(3, max_iter=2, tol=0.0, random_state=0).fit(x)


def test_of_several_mixtures_the_likeliest_is_drawn_from():
    def around(place: float) -> GaussianMixture:
        return GaussianMixture(
            GaussianMixtureDistribution(
                torch.ones(1), FullNormals(torch.full((1, 2), place), torch.eye(2).unsqueeze(0))
            )
        )

    candidates, x = MixtureCandidates([around(50.0), around(-3.0), around(0.0)]), torch.full((10, 2), -3.1)
    candidates.select_best(x)
    assert torch.equal(candidates.log_prob(x), around(-3.0).log_prob(x))
    assert (candidates.sample(1000, generator=torch.Generator().manual_seed(0)).mean(dim=0) + 3).abs().max() < 0.2
    restored = MixtureCandidates([around(0.0)] * 3)
    restored.load_state_dict(candidates.state_dict())
    assert int(restored.chosen) == 1
    with pytest.raises(UserError, match="at least one"):
        MixtureCandidates([])
