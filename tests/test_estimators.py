"""The scikit-learn faces: scikit-learn's own checks, its estimators as second opinions, and what each refuses or warns
of."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import quoin.estimators as estimators
from quoin.errors import UserError
from quoin.estimators import (
    GaussianDiscriminantAnalysis,
    LinearRegressor,
    LinearSVM,
    LogisticClassifier,
    PolynomialRegressor,
    RidgeRegressor,
    SoftmaxClassifier,
)
from quoin.losses import logistic_loss, svm_objective

FACES = [getattr(estimators, name) for name in estimators.__all__]


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
@pytest.mark.filterwarnings("ignore")  # the checks warn of what they skip, and of data too hard to fit
def test_scikit_learns_own_checks(face):
    results = check_estimator(face(), on_skip=None)
    assert sum(each["status"] == "passed" for each in results) >= 40
    # Skipped: what needs pandas or an array library that is not here.
    assert {each["check_name"] for each in results if each["status"] != "passed"} <= {
        "check_sample_weights_pandas_series",
        "check_array_api_input",
        "check_classifier_data_not_an_array",
        "check_regressor_data_not_an_array",
    }


# ---- regression -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 5), (400, 150)])
def test_three_ways_to_least_squares_meet(dtype, fit_intercept, shape):
    random = np.random.default_rng(0)
    X = random.standard_normal(shape).astype(dtype) + 3
    y = (X @ random.standard_normal(shape[1]) + 5 + random.standard_normal(shape[0])).astype(dtype)
    peer = LinearRegression(fit_intercept=fit_intercept).fit(X.astype(float), y.astype(float))
    near = 2e-3 if dtype is np.float32 else 1e-8
    for solver in ("normal", "qr"):
        face = LinearRegressor(solver, fit_intercept=fit_intercept).fit(X, y)
        np.testing.assert_allclose(face.coef_, peer.coef_, atol=near)
        np.testing.assert_allclose(face.intercept_, peer.intercept_, atol=30 * near)
        assert face.coef_.dtype == dtype
    if shape == (60, 5):
        descended = LinearRegressor("sgd", fit_intercept=fit_intercept, max_iter=300, random_state=0).fit(X, y)
        lost = np.square(descended.predict(X) - y).mean() / np.square(peer.predict(X) - y).mean() - 1
        assert 0 <= lost + 1e-6 < 0.02


@pytest.mark.parametrize("solver", ["normal", "qr"])
def test_dependent_columns_give_the_shortest_weights(solver):
    random = np.random.default_rng(1)
    X = random.standard_normal((30, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1], 2 * X[:, 2], np.ones(30)])
    y = random.standard_normal(30)
    centered = X - X.mean(axis=0)
    np.testing.assert_allclose(
        LinearRegressor(solver).fit(X, y).coef_, np.linalg.pinv(centered) @ (y - y.mean()), atol=1e-10
    )


def test_more_columns_than_rows():
    random = np.random.default_rng(2)
    X, y = random.standard_normal((10, 200)), random.standard_normal(10)
    for solver in ("normal", "qr"):
        face = LinearRegressor(solver, fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(face.coef_, np.linalg.pinv(X) @ y, atol=1e-9)


@pytest.mark.parametrize("width", [4, 160])
@pytest.mark.parametrize("l2", [1e-12, 0.1])
def test_ridge_is_scikit_learns(l2, width):
    random = np.random.default_rng(3)
    X, y = random.standard_normal((300, width)) * random.uniform(0.1, 10, width), random.standard_normal(300)
    weights = random.uniform(0, 2, 300)
    peer = Ridge(alpha=l2 * weights.sum()).fit(X, y, sample_weight=weights)
    face = RidgeRegressor(l2).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(face.coef_, peer.coef_, atol=1e-9)
    np.testing.assert_allclose(face.intercept_, peer.intercept_, atol=1e-9)


def test_polynomials():
    random = np.random.default_rng(4)
    X = random.uniform(-2, 3, (200, 2))
    y = 1 + X[:, 0] ** 3 - 2 * X[:, 0] * X[:, 1] + 0.1 * random.standard_normal(200)
    peer = make_pipeline(PolynomialFeatures(3), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(PolynomialRegressor(3).fit(X, y).predict(X), peer.predict(X), atol=1e-9)
    assert PolynomialRegressor(0).fit(X, y).predict(X) == pytest.approx(np.full(200, y.mean()))
    small = [np.linalg.norm(PolynomialRegressor(3, l2=l2).fit(X, y).coef_) for l2 in (0.0, 0.1, 10.0)]
    assert small == sorted(small, reverse=True)


# ---- classification ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0, 1: 1.0}])
def test_logistic_regression_is_scikit_learns(tumours, class_weight):
    X, y = tumours
    l2 = 1e-2
    total = len(y) if not isinstance(class_weight, dict) else (5.0 * (y == 0) + (y == 1)).sum()
    peer = LogisticRegression(C=1 / (total * l2), class_weight=class_weight, solver="newton-cholesky", tol=1e-12).fit(
        X, y
    )
    face = LogisticClassifier(l2, class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(face.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(face.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(np.exp(face.predict_log_proba(X)), face.predict_proba(X), atol=1e-12)


def test_softmax_regression_is_scikit_learns():
    X, y = load_iris(return_X_y=True)
    peer = LogisticRegression(C=1 / (len(y) * 1e-2), solver="newton-cg", tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(SoftmaxClassifier(1e-2).fit(X, y).predict_proba(X), peer.predict_proba(X), atol=1e-6)


def test_two_softmax_scores_are_one_logistic_score(tumours):
    """(s, -s) has half the squared length of one score of 2 s: softmax's penalty counts half."""
    X, y = tumours
    one, two = LogisticClassifier(1e-2).fit(X, y), SoftmaxClassifier(2e-2).fit(X, y)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-5)


def test_wide_and_raw_data_converge():
    """Columns from 1e-3 to 1e3, 160 of them correlated, in float32: no warning, and the objective of scikit-learn in
    float64."""
    random = np.random.default_rng(5)
    X = random.standard_normal((500, 160)) @ random.standard_normal((160, 160)) * np.logspace(-2, 2, 160) + 50
    y = (X[:, 0] / X[:, 0].std() + random.standard_normal(500) > X[:, 0].mean() / X[:, 0].std()).astype(int)
    X = X.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        face = LogisticClassifier(1e-2, tol=1e-4).fit(X, y)
    peer = LogisticRegression(C=1 / 5, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X.astype(float), y)

    def objective(found) -> float:
        margins = (2 * y - 1) * (X.astype(float) @ found.coef_[0] + found.intercept_[0])
        return float(logistic_loss(torch.from_numpy(margins)).mean()) + 5e-3 * float(
            np.square(found.coef_.astype(float)).sum()
        )

    assert objective(face) <= objective(peer) * (1 + 1e-3)


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 1.0}])
def test_the_svm_is_libsvms(tumours, class_weight):
    """libsvm solves the same problem, with a free bias, through its dual."""
    X, y = tumours
    l2, total = 1e-2, len(y) if class_weight is None else (3.0 * (y == 0) + (y == 1)).sum()
    peer = SVC(kernel="linear", C=1 / (total * l2), class_weight=class_weight, tol=1e-8).fit(X, y)
    face = LinearSVM(l2, class_weight=class_weight, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(face.coef_, peer.coef_, atol=2e-4)
    np.testing.assert_allclose(face.intercept_, peer.intercept_, atol=2e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gap_of_the_svm_is_a_bound(tumours, dtype, fit_intercept):
    from quoin.optim import fit_linear_svm

    X, y = torch.from_numpy(tumours[0]).to(dtype), torch.from_numpy(2.0 * tumours[1] - 1).to(dtype)
    share = torch.full((len(y),), 1 / len(y), dtype=dtype)
    loose, tight = (fit_linear_svm(X, y, weights=share, l2=1e-3, bias=fit_intercept, tol=tol) for tol in (1e-2, 1e-6))
    assert loose.converged
    assert tight.converged or dtype is torch.float32
    assert loose.loss - loose.suboptimality_bound <= tight.loss + 1e-6 <= loose.loss + 2e-6
    margins = y.double() * (X.double() @ tight.weight + tight.bias)
    assert float(svm_objective(margins, tight.weight, 1e-3)) == pytest.approx(tight.loss, rel=1e-4)


@pytest.mark.parametrize("face", [LogisticClassifier, SoftmaxClassifier])
def test_separable_data_have_no_minimiser_without_a_penalty(face):
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="no minimiser.*give l2 > 0"):
        face(0.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        face(1e-3).fit(X, y)
        face(0.0).fit(X, [0, 1, 0, 1])  # which no point separates


def test_three_separable_classes_have_no_minimiser_either():
    """Every class beyond a line of its own; with one example among another class there is a minimiser."""
    corners = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    X, y = np.concatenate([corners, 1.5 * corners]), [0, 1, 2, 0, 1, 2]
    with pytest.warns(ConvergenceWarning, match="no minimiser.*give l2 > 0"):
        SoftmaxClassifier(0.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SoftmaxClassifier(1e-3).fit(X, y)
        # each place holds all three classes, so nothing separates them
        SoftmaxClassifier(0.0).fit(np.repeat(corners, 3, axis=0), [0, 1, 2] * 3)


@pytest.mark.parametrize("face", [LogisticClassifier, SoftmaxClassifier, LinearSVM, GaussianDiscriminantAnalysis])
def test_as_many_labels_as_rows(face):
    X, y = np.arange(12.0).reshape(6, 2), [0, 0, 0, 1, 1, 1]
    for labels in (y[:-1], [*y, 1], []):
        with pytest.raises(ValueError, match=r"\b6\b"):
            face().fit(X, labels)


def test_few_steps_are_told(tumours):
    for face in (LogisticClassifier(max_iter=2), SoftmaxClassifier(max_iter=2), LinearSVM(max_iter=2)):
        with pytest.warns(ConvergenceWarning, match="not at the minimum after 2 steps"):
            face.fit(*tumours)


def test_gaussians_are_scikit_learns():
    X, y = load_iris(return_X_y=True)
    shared = GaussianDiscriminantAnalysis(shared_covariance=True, reg_covar=0.0).fit(X, y)
    np.testing.assert_allclose(
        shared.predict_proba(X), LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).predict_proba(X), atol=1e-8
    )
    peer = QuadraticDiscriminantAnalysis().fit(X, y)
    own = GaussianDiscriminantAnalysis(reg_covar=0.0).fit(X, y)
    # The peer divides each class's squares by 49, the most probable distribution by 50.
    assert (own.predict(X) == peer.predict(X)).all()
    with pytest.raises(UserError, match="singular"):
        GaussianDiscriminantAnalysis(reg_covar=0.0).fit(np.column_stack([X, X[:, 0]]), y)


def test_they_work_in_pipelines_and_grid_search():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SoftmaxClassifier(tol=1e-4)), {"softmaxclassifier__l2": [1e-3, 10.0]}, cv=3
    )
    search.fit(X, y)
    assert search.best_params_ == {"softmaxclassifier__l2": 1e-3}
    assert search.best_score_ > 0.85
    assert (
        cross_val_score(GaussianDiscriminantAnalysis(shared_covariance=True, reg_covar=1e-2), X, y, cv=3).mean() > 0.85
    )


@pytest.mark.parametrize(
    ("face", "words"),
    [
        (LinearRegressor("cholesky"), "expected a solver"),
        (LinearRegressor(max_iter=0), "max_iter of at least 1"),
        (RidgeRegressor(-1.0), "l2 of at least 0"),
        (PolynomialRegressor(-1), "degree of at least 0"),
        (PolynomialRegressor(2.5), "a whole number, got 2.5"),
        (LogisticClassifier(float("nan")), "l2 of at least 0"),
        (LogisticClassifier(tol=0.0), "tol above 0"),
        (LinearSVM(0.0), "l2 above 0"),
        (SoftmaxClassifier("much"), "l2 of at least 0"),
        (GaussianDiscriminantAnalysis(reg_covar=-1.0), "reg_covar of at least 0"),
    ],
    ids=repr,
)
def test_a_number_out_of_range_is_refused(face, words):
    with pytest.raises(UserError, match=words):
        face.fit([[0.0], [1.0], [3.0]], [0, 1, 1])


def test_classes_without_weight_are_refused():
    with pytest.raises(UserError, match="one class only"):
        LogisticClassifier().fit([[0.0], [1.0]], [0, 1], sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="at least one"):  # newer scikit-learns say it first
        LinearRegressor().fit([[0.0], [1.0]], [0, 1], sample_weight=[0.0, 0.0])
