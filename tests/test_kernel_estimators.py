"""Kernel regression and classification with scikit-learn's manners: peers, leave-one-out by brute force, and what is
refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quoin.errors import UserError
from quoin.estimators import KernelClassifier, KernelRegressor


@pytest.fixture(scope="module")
def wave():
    random = np.random.default_rng(0)
    X = random.uniform(0, 5, (150, 1))
    return X, 2 * np.sin(X[:, 0]) + X[:, 0] + 0.3 * random.standard_normal(150)


def test_gaussian_regression_is_the_formula(wave):
    X, y = wave
    places = np.linspace(-1, 6, 50)[:, None]
    K = rbf_kernel(places, X, gamma=1 / (2 * 0.4**2))
    np.testing.assert_allclose(
        KernelRegressor(bandwidth=0.4).fit(X, y).predict(places), K @ y / K.sum(axis=1), atol=1e-9
    )


@pytest.mark.filterwarnings("ignore")  # the peer warns of empty windows
def test_boxcar_is_scikit_learns_radius_neighbours():
    X, y = load_iris(return_X_y=True)
    for face, peer in ((KernelRegressor, RadiusNeighborsRegressor), (KernelClassifier, RadiusNeighborsClassifier)):
        ours = face("boxcar", bandwidth=0.77).fit(X[::2], y[::2])
        theirs = peer(radius=0.77, **({"outlier_label": 0} if face is KernelClassifier else {})).fit(X[::2], y[::2])
        answers, expected = (
            (ours.predict_proba(X), theirs.predict_proba(X))
            if face is KernelClassifier
            else (ours.predict(X), theirs.predict(X))
        )
        seen = theirs.radius_neighbors(X, return_distance=False)
        inside = np.array([len(each) > 0 for each in seen])
        np.testing.assert_allclose(answers[inside], expected[inside], atol=1e-12)
        nearest = ((X[:, None] - X[None, ::2]) ** 2).sum(axis=-1).argmin(axis=1)
        assert (ours.predict(X)[~inside] == y[::2][nearest[~inside]]).all()
        assert 0 < inside.sum() < len(X)


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "triangular", "epanechnikov"])
def test_leave_one_out_finds_a_width_that_no_other_beats(kernel, wave):
    """Each value predicted from all others in plain NumPy, over widths of the test's choosing."""
    X, y = wave
    distance = np.abs(X - X.T)
    np.fill_diagonal(distance, np.inf)
    shape = {
        "gaussian": lambda u: np.exp(-(u**2) / 2),
        "boxcar": lambda u: (u <= 1) * 1.0,
        "triangular": lambda u: np.maximum(0, 1 - u),
        "epanechnikov": lambda u: np.maximum(0, 1 - u**2),
    }[kernel]

    def error(width):
        K = shape(distance / width)
        alone = K.sum(axis=1) == 0
        K[alone] = np.eye(len(X))[distance[alone].argmin(axis=1)]
        return np.square(K @ y / K.sum(axis=1) - y).mean()

    face = KernelRegressor(kernel).fit(X, y)
    assert face.bandwidth_.shape == (1,)
    found = error(face.bandwidth_[0])
    assert found <= 1.01 * min(error(width) for width in np.geomspace(0.05, 4, 200))
    assert found < 0.2 * y.var()


def test_leave_one_out_scales_with_each_feature():
    X, y = load_iris(return_X_y=True)
    units = np.array([1.0, 1e3, 1e-3, 7.0])
    plain, scaled = (KernelClassifier().fit(X * by, y) for by in (1.0, units))
    np.testing.assert_allclose(scaled.bandwidth_ / units, plain.bandwidth_, rtol=1e-6)
    np.testing.assert_allclose(scaled.predict_proba(X * units), plain.predict_proba(X), atol=1e-6)


def test_it_predicts_flowers():
    X, y = load_iris(return_X_y=True)
    for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov"):
        assert cross_val_score(KernelClassifier(kernel), X, y, cv=5).mean() > 0.93
    proba = KernelClassifier().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def test_in_a_pipeline_and_a_search(wave):
    X, y = wave
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelRegressor()), {"kernelregressor__bandwidth": [0.01, 0.1, 3.0]}
    ).fit(X, y)
    assert search.best_params_ == {"kernelregressor__bandwidth": 0.1}
    assert clone(KernelRegressor("boxcar", bandwidth=[2.0])).get_params() == {
        "kernel": "boxcar",
        "bandwidth": [2.0],
        "fallback": "nearest",
    }


def test_rules_for_empty_windows():
    X, y, far = [[0.0], [1.0], [2.0]], [1.0, 2.0, 6.0], [[50.0]]
    for fallback, expected in {"nearest": 6.0, "mean": 3.0, "zero": 0.0, "nan": np.nan}.items():
        np.testing.assert_equal(
            KernelRegressor("epanechnikov", bandwidth=1.0, fallback=fallback).fit(X, y).predict(far), [expected]
        )
    assert KernelClassifier("boxcar", bandwidth=1.0, fallback="mean").fit(X, [0, 0, 1]).predict_proba(
        far
    ) == pytest.approx(np.array([[2 / 3, 1 / 3]]))


def test_examples_in_one_place_and_features_that_do_not_vary():
    X = np.array([[0.0, 7.0]] * 3 + [[1.0, 7.0]] * 3)
    y = np.array([1.0, 2.0, 3.0, 7.0, 8.0, 9.0])
    for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov"):
        np.testing.assert_allclose(
            KernelRegressor(kernel).fit(X, y).predict([[0.0, 7.0], [1.0, 7.0]]), [2, 8], atol=0.6
        )
    assert np.isfinite(KernelRegressor().fit(X[:3], y[:3]).predict(X)).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
        ({"kernel": 3}, "expected kernel among"),
        ({"fallback": "none"}, "expected fallback among"),
        ({"bandwidth": 0.0}, "expected bandwidth above 0"),
        ({"bandwidth": -1}, "expected bandwidth above 0"),
        ({"bandwidth": float("nan")}, "expected bandwidth above 0"),
        ({"bandwidth": [1.0, -2.0]}, "expected bandwidth above 0"),
        ({"bandwidth": [1.0, 1.0, 1.0]}, "one for each of 2 features"),
        ({"bandwidth": "silverman"}, "'leave-one-out'"),
        ({"bandwidth": None}, "expected bandwidth"),
    ],
)
def test_wrong_parameters(wrong, words):
    with pytest.raises(UserError, match=words) as caught:
        KernelRegressor(**wrong).fit([[0.0, 1.0], [1.0, 2.0], [3.0, 1.0]], [0.0, 1.0, 2.0])
    assert "\n" not in str(caught.value)


def test_wrong_data():
    face = KernelRegressor(bandwidth=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="features"):
        face.predict([[0.0, 1.0]])
    with pytest.raises(ValueError, match="NaN"):
        face.predict([[np.nan]])
    with pytest.raises(UserError, match="1 sample"):
        KernelRegressor().fit([[0.0]], [1.0])
    with pytest.raises(UserError, match="expected fallback among"):
        KernelClassifier(bandwidth=1.0, fallback="nan").fit([[0.0], [1.0]], [0, 1])
