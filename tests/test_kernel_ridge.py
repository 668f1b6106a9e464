"""Kernel matrices, ridge with a kernel, and random features that stand in for it: scikit-learn as the second
opinion."""

import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel as sklearn_rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer

from quoin.errors import UserError
from quoin.estimators import RandomKernelFeatures, RidgeRegressor
from quoin.models import FourierRegression, kernel_ridge, ridge
from quoin.tensor import kernel_matrix, rbf_kernel


def dot(x, y):
    return (x * y).sum(dim=-1)


def too_many_projections():
    model, none = FourierRegression(3, 4, 0.3), torch.zeros(5)
    model.fit(torch.zeros(2, 3), torch.zeros(2), 1.0, projection=torch.zeros(5, 3), phases=none)


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.standard_normal(60)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    d=st.integers(1, 5),
    gamma=st.floats(1e-3, 10),
    seed=st.integers(0, 2**31),
)
def test_gram_is_scikit_learns(n, m, d, gamma, seed):
    generator = torch.Generator().manual_seed(seed)
    X, Y = (torch.randn(count, d, generator=generator, dtype=torch.float64) for count in (n, m))
    found = kernel_matrix(lambda x, y: rbf_kernel(x, y, gamma), X, Y)
    np.testing.assert_allclose(found, sklearn_rbf_kernel(X, Y, gamma=gamma), rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(kernel_matrix(dot, X), X @ X.mT)


def test_gram_in_blocks_is_the_same_and_differentiable(monkeypatch):
    X = torch.randn(17, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    kernel = lambda x, y: rbf_kernel(x, y, 0.4)  # noqa: E731
    whole = kernel_matrix(kernel, X)
    monkeypatch.setattr(
        sys.modules["quoin.tensor.gram"], "rows_per_block", lambda numbers: 4
    )  # by import its name is the function's
    blocks = kernel_matrix(kernel, X)
    assert torch.equal(whole, blocks)
    assert torch.autograd.gradcheck(lambda x: kernel_matrix(kernel, x), (X,))


def test_ridge_with_a_linear_kernel_is_ridge(rows):
    X, y = (torch.from_numpy(each) for each in rows)
    fit, expected = kernel_ridge(dot, X, y, 0.05), ridge(X, y, 0.05)
    torch.testing.assert_close(fit.predict(X + 1), expected.predict(X + 1), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fit.weights @ X, expected.weight, rtol=1e-9, atol=1e-9)
    assert float(fit.weights.sum()) == pytest.approx(0, abs=1e-9)


def test_ridge_with_a_kernel_is_scikit_learns_on_a_centred_kernel(rows):
    X, y = rows
    K, new = sklearn_rbf_kernel(X, gamma=0.3), sklearn_rbf_kernel(X[:7] + 0.1, X, gamma=0.3)
    center = KernelCenterer().fit(K)
    peer = KernelRidge(alpha=60 * 0.01, kernel="precomputed")  # pyright: ignore[reportArgumentType]
    peer.fit(center.transform(K), y - y.mean())
    expected = peer.predict(center.transform(new)) + y.mean()
    fit = kernel_ridge(lambda a, b: rbf_kernel(a, b, 0.3), torch.from_numpy(X), torch.from_numpy(y), 0.01)
    np.testing.assert_allclose(fit.predict(torch.from_numpy(X[:7] + 0.1)), expected, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fourier_features_are_scikit_learns_along_the_same_directions(dtype, rows):
    X = rows[0].astype(dtype)
    ours = RandomKernelFeatures(50, gamma=0.3, random_state=3).fit(X)
    peer = RBFSampler(gamma=0.3, n_components=50, random_state=0).fit(X)
    peer.random_weights_ = (math.sqrt(2 * 0.3) * ours.projection_.T).astype(dtype)
    peer.random_offset_ = ours.phases_.astype(dtype)
    assert ours.transform(X).dtype == dtype
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("features", ["fourier", "positive"])
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_learning_on_features_is_near_the_kernel(features, projection, rows):
    X, y = rows[0] / 2, rows[1]
    fit = kernel_ridge(lambda a, b: rbf_kernel(a, b, 0.5), torch.from_numpy(X), torch.from_numpy(y), 0.02)
    expected = fit.predict(torch.from_numpy(X)).numpy()
    off = []
    for count in (30, 1000):
        map = RandomKernelFeatures(count, gamma=0.5, feature_map=features, projection=projection, random_state=0)
        # Our ridge takes the mean of squares, without a half: its l2 is the decay.
        found = make_pipeline(map, RidgeRegressor(0.02)).fit(X, y).predict(X)
        np.testing.assert_allclose(
            found, make_pipeline(map, Ridge(alpha=60 * 0.02)).fit(X, y).predict(X), rtol=1e-6, atol=1e-8
        )
        off.append(np.linalg.norm(found - expected) / np.linalg.norm(expected - expected.mean()))
    assert off[1] < 0.15
    assert off[1] < off[0]


def test_a_transformer_names_its_features_and_repeats_itself(rows):
    X = rows[0]
    map = RandomKernelFeatures(3, random_state=7)
    assert np.array_equal(map.fit_transform(X), map.fit(X).transform(X))
    assert list(map.get_feature_names_out()) == [
        "randomkernelfeatures0",
        "randomkernelfeatures1",
        "randomkernelfeatures2",
    ]
    assert not np.array_equal(map.fit_transform(X), RandomKernelFeatures(3, random_state=8).fit_transform(X))


def test_fourier_regression_holds_what_ridge_finds(rows):
    X, y = (torch.from_numpy(each) for each in rows)
    estimator = RandomKernelFeatures(20, gamma=0.3, random_state=0).fit(rows[0])
    model = FourierRegression(3, 64, 0.3).double()
    model.fit(
        X, y, 0.01, projection=torch.from_numpy(estimator.projection_), phases=torch.from_numpy(estimator.phases_)
    )
    expected = ridge(torch.from_numpy(estimator.transform(rows[0])), y, 0.01).predict(
        torch.from_numpy(estimator.transform(rows[0]))
    )
    torch.testing.assert_close(model(X), expected)
    again = FourierRegression(3, 64, 0.3).double()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(X), model(X))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: RandomKernelFeatures(0).fit(X), "n_components of at least 1"),
        (lambda X, y: RandomKernelFeatures(gamma=0).fit(X), "gamma above 0"),
        (lambda X, y: RandomKernelFeatures(feature_map="cosine").fit(X), "fourier, positive"),
        (lambda X, y: RandomKernelFeatures(projection="normal").fit(X), "gaussian, orthogonal"),
        (lambda X, y: rbf_kernel(torch.zeros(2), torch.zeros(2), -1.0), "gamma above 0"),
        (lambda X, y: kernel_matrix(dot, torch.zeros(3, 2), torch.zeros(3, 4)), "axis d of Y"),
        (lambda X, y: kernel_ridge(dot, torch.from_numpy(X), torch.from_numpy(y), 0.0), "positive, finite l2"),
        (lambda X, y: kernel_ridge(dot, torch.zeros(0, 2), torch.zeros(0), 1.0), "at least one example"),
        (lambda X, y: too_many_projections(), "make the model with more"),
    ],
)
def test_mistakes_are_told_in_one_line(call, words, rows):
    with pytest.raises(UserError, match=words) as told:
        call(*rows)
    assert "\n" not in str(told.value)
