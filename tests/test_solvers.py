"""The convex solvers of quoin.optim, held against numpy, autograd and the conditions that a minimum fulfils."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from quoin.errors import UserError
from quoin.optim import fit_linear_scores, fit_linear_svm, gram_matrix, line_search, solve_normal_equations

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@DTYPES
@pytest.mark.parametrize("columns", [1, 3, 200])
def test_gram_is_its_definition(dtype, columns):
    X, weights = drawn(50, columns, dtype=dtype), drawn(50, dtype=dtype).abs()
    near = 1e-4 if dtype is torch.float32 else 1e-11
    torch.testing.assert_close(gram_matrix(X), torch.einsum("ni,nj->ij", X, X), atol=near, rtol=near)
    torch.testing.assert_close(
        gram_matrix(X, weights), torch.einsum("n,ni,nj->ij", weights, X, X), atol=near, rtol=near
    )
    torch.testing.assert_close(gram_matrix(X, torch.full_like(weights, 0.5)), gram_matrix(X) / 2, atol=near, rtol=near)
    assert not gram_matrix(X[:0]).any()


@DTYPES
@pytest.mark.parametrize("columns", [5, 180])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_normal_equations_hold(dtype, columns, l2):
    X, y, weights = (
        drawn(400, columns, dtype=dtype),
        drawn(400, seed=1, dtype=dtype),
        drawn(400, seed=2, dtype=dtype).abs(),
    )
    weights = weights / weights.sum()
    w = solve_normal_equations(X, y, l2=l2, weights=weights)
    assert w.dtype == torch.float64
    X, y, weights = X.double(), y.double(), weights.double()
    slope = X.mT @ (weights * (X @ w - y)) + l2 * w
    assert float(slope.abs().max()) < (1e-6 if dtype is torch.float32 else 1e-13)


def test_dependent_columns_are_refused():
    X = drawn(30, 3)
    with pytest.raises(UserError, match="dependent"):
        solve_normal_equations(torch.cat([X, X[:, :1] + X[:, 1:2]], dim=1), drawn(30, seed=1))


def test_bad_input_is_refused():
    X, y, share = drawn(6, 2), drawn(6), torch.full((6,), 1 / 6, dtype=torch.float64)
    for call, words in (
        (lambda: solve_normal_equations(X, y[:5]), "n is 6 in X and 5 in y|6.*5"),
        (lambda: solve_normal_equations(X, y.float()), "one float type"),
        (lambda: solve_normal_equations(X, y * math.nan), "NaN"),
        (lambda: solve_normal_equations(X[:0], y[:0]), "at least one example"),
        (lambda: solve_normal_equations(X, y, l2=-1.0), "l2"),
        (lambda: fit_linear_svm(X, y.sign(), weights=share, l2=0.0), "l2 > 0"),
        (lambda: fit_linear_scores(X.long(), lambda s: (s, s), 1, curvature=1.0, weights=share), "float"),
    ):
        with pytest.raises(UserError, match=words):
            call()


def test_the_lowest_point_along_a_line():
    assert line_search(lambda t: math.exp(t - 4) - 1, math.exp(-4) - 1, derivative_ratio=1e-8) == pytest.approx(
        4, abs=1e-6
    )
    assert line_search(lambda t: t + 1, 1.0) == 0.0  # it does not fall
    corner = line_search(
        lambda t: -1.0 if t < 0.37 else 2.0, -1.0, derivative_ratio=0.1
    )  # |t - 0.37|, bent: no slope in between
    assert corner == pytest.approx(0.37, abs=1e-6)
    assert line_search(lambda t: -math.exp(-t), -1.0, derivative_ratio=0.0, max_evaluations=10) > 100  # falls for ever


@DTYPES
@pytest.mark.parametrize("columns", [4, 140])  # the whole bound on the Hessian, and its diagonal
def test_softmax_scores_end_where_the_gradient_vanishes(dtype, columns):
    X, labels = drawn(300, columns, dtype=dtype), torch.arange(300) % 3
    weights = torch.linspace(0.5, 1.5, 300, dtype=dtype) / 300

    def loss(scores):
        slopes = scores.softmax(dim=-1) - functional.one_hot(labels, 3)
        return functional.cross_entropy(scores, labels, reduction="none"), slopes

    tolerance = 1e-5 if dtype is torch.float32 else 1e-10
    found = fit_linear_scores(X, loss, 3, curvature=0.5, weights=weights, l2=0.01, tol=tolerance)
    assert found.converged
    W, b = found.weight.requires_grad_(), found.bias.requires_grad_()
    losses = functional.cross_entropy(X.double() @ W + b, labels, reduction="none")
    value = (weights.double() * losses).sum() + 0.005 * W.square().sum()
    assert value.item() == pytest.approx(found.loss, rel=1e-5)
    for gradient in torch.autograd.grad(value, (W, b)):
        assert float(gradient.abs().max()) < 2 * tolerance


@pytest.mark.parametrize("bias", [False, True])
def test_the_hinge_ends_where_no_step_helps(bias):
    """A convex function without a slope: any step from the minimiser must raise it, up to the gap."""
    X, y = drawn(200, 5), torch.where(drawn(200, seed=1) > 0.3, 1.0, -1.0).double()
    share = torch.full((200,), 1 / 200, dtype=torch.float64)
    found = fit_linear_svm(X, y, weights=share, l2=0.05, bias=bias, tol=1e-9)
    assert found.converged

    def objective(w, b):
        return float(torch.relu(1 - y * (X @ w + b)).mean() + 0.025 * w.square().sum())

    least = objective(found.weight, found.bias)
    assert least == pytest.approx(found.loss, abs=1e-12)
    for seed in range(50):
        step = drawn(6, seed=seed + 2) * 10.0 ** -(seed % 5)
        assert (
            objective(found.weight + step[:5], found.bias + (step[5] if bias else 0))
            >= least - found.suboptimality_bound - 1e-12
        )
    assert np.isclose(float(found.bias), 0.0) != bias
