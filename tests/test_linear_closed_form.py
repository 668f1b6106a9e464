"""Closed forms of linear models against each other, in value and gradient, against scikit-learn, and on systems that
have none."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from quoin.errors import UserError
from quoin.models import (
    LinearFit,
    best_affine_predictor,
    conditional_expectation,
    fit_polynomial,
    least_squares,
    least_squares_by_qr,
    normal_equations,
    ridge,
)

DTYPES = [torch.float32, torch.float64]
FULL_RANK = [least_squares_by_qr, least_squares]
float64 = torch.float64


def problem(
    seed: int, dtype: torch.dtype, num_targets: int | None, rows: int = 40
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, 1 + seed % 5, generator=generator, dtype=dtype, requires_grad=True)
    y = torch.randn(
        (rows,) if num_targets is None else (rows, num_targets), generator=generator, dtype=dtype, requires_grad=True
    )
    return X, y


@pytest.mark.parametrize("num_targets", [None, 1, 3])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solve", FULL_RANK)
def test_solvers_agree_with_the_normal_equations_in_value_and_gradient(solve, dtype, seed, num_targets):
    X, y = problem(seed, dtype, num_targets)
    ours, definition = solve(X, y), normal_equations(X, y)
    shape = () if num_targets is None else (num_targets,)
    assert ours.bias.shape == shape
    assert ours.weight.shape == (*shape, X.shape[1])
    rtol, atol = (1e-4, 1e-5) if dtype == torch.float32 else (1e-10, 1e-12)
    torch.testing.assert_close(ours, definition, rtol=rtol, atol=atol)
    upstream = [torch.randn_like(part) for part in definition]
    left, right = (torch.autograd.grad(list(found), [X, y], upstream) for found in (ours, definition))
    torch.testing.assert_close(left, right, rtol=rtol, atol=atol)


def test_the_gradient_of_the_shortest_solution_is_that_of_differences():
    """Fewer rows than columns: the rank stays as it is under any small change."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(3, 6, generator=generator, dtype=float64, requires_grad=True)
    y = torch.randn(3, generator=generator, dtype=float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X, y: tuple(least_squares(X, y)), [X, y])
    assert torch.autograd.gradcheck(lambda X, y: tuple(ridge(X, y, 0.3)), [X, y])


@pytest.mark.parametrize("solve", [normal_equations, least_squares_by_qr])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dependent_columns_are_refused_where_an_inverse_is_needed(solve, dtype):
    generator = torch.Generator().manual_seed(1)
    column = torch.randn(20, 1, generator=generator, dtype=dtype)
    y = torch.randn(20, generator=generator, dtype=dtype)
    independent = torch.cat([column, column.square()], dim=1)
    assert solve(independent, y).weight.shape == (2,)
    dependent = {
        "twice": torch.cat([column, column], dim=1),
        "thrice, in a sum": torch.cat([column, column.square(), column + column.square()], dim=1),
        "constant, beside the bias": torch.cat([column, torch.full_like(column, 3)], dim=1),
        "zero": torch.cat([column, torch.zeros_like(column)], dim=1),
        "more columns than rows": torch.randn(20, 25, generator=generator, dtype=dtype),
        "as many rows as features": torch.randn(20, 20, generator=generator, dtype=dtype),
    }
    for name, X in dependent.items():
        with pytest.raises(UserError, match=r"do not depend on one another.*least_squares"):
            solve(X, y)
        assert least_squares(X, y).weight.isfinite().all(), name


@pytest.mark.parametrize("decay", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("shape", [(30, 4), (8, 20), (5, 5)])
def test_ridge_agrees_with_scikit_learn(shape, decay):
    generator = torch.Generator().manual_seed(2)
    X = torch.randn(shape, generator=generator, dtype=float64) + 2
    Y = torch.randn(shape[0], 2, generator=generator, dtype=float64)
    peer = Ridge(alpha=shape[0] * decay).fit(X.numpy(), Y.numpy())  # theirs is the sum of squares plus alpha |w|²
    fit = ridge(X, Y, decay)
    np.testing.assert_allclose(fit.weight.numpy(), peer.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.bias.numpy(), peer.intercept_, rtol=1e-9, atol=1e-12)
    one = ridge(X, Y[:, 0], decay)
    torch.testing.assert_close(one, LinearFit(fit.weight[0], fit.bias[0]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(30, 4), (8, 20)])
def test_ridge_is_where_the_gradient_of_its_objective_vanishes(shape):
    generator = torch.Generator().manual_seed(3)
    X, y = (
        torch.randn(shape, generator=generator, dtype=float64),
        torch.randn(shape[0], generator=generator, dtype=float64),
    )
    weight, bias = (part.detach().requires_grad_() for part in ridge(X, y, 0.7))
    objective = (X @ weight + bias - y).square().mean() / 2 + 0.7 * weight.square().sum() / 2
    for gradient in torch.autograd.grad(objective, [weight, bias]):
        assert gradient.abs().max() < 1e-13


def test_ridge_tends_to_the_shortest_least_squares_weights():
    generator = torch.Generator().manual_seed(4)
    X, y = torch.randn(6, 15, generator=generator, dtype=float64), torch.randn(6, generator=generator, dtype=float64)
    centered = X - X.mean(dim=0)
    shortest = torch.linalg.pinv(centered) @ (y - y.mean())
    torch.testing.assert_close(ridge(X, y, 1e-9).weight, shortest, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("decay", [0.0, -1.0, float("nan"), float("inf")])
def test_ridge_refuses_a_decay(decay):
    with pytest.raises(UserError, match="positive, finite l2"):
        ridge(torch.ones(3, 2), torch.ones(3), decay)


@pytest.mark.parametrize("solve", [normal_equations, least_squares_by_qr, least_squares, lambda X, y: ridge(X, y, 1.0)])
@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (torch.zeros(3, 2), torch.zeros(4), "axis n of y to be 3"),
        (torch.zeros(3, 2), torch.zeros(4, 2), "axis n of y to be 3"),
        (torch.zeros(0, 2), torch.zeros(0), "at least one example"),
        (torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3), "one float type"),
        (torch.zeros(3, 2), torch.full((3,), torch.inf), "finite"),
    ],
)
def test_every_closed_form_refuses_bad_input(solve, X, y, words):
    with pytest.raises(UserError, match=words):
        solve(X, y)


def test_predict_names_a_wrong_width():
    fit = LinearFit(torch.ones(2, 3), torch.zeros(2))
    assert fit.predict(torch.ones(5, 4, 3)).shape == (5, 4, 2)
    with pytest.raises(UserError, match="axis d of weight to be 4"):
        fit.predict(torch.ones(5, 4))


# ---- where the distribution is known ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_best_affine_predictor_of_the_sample_is_least_squares(seed):
    """The empirical distribution is a distribution too: its moments must give the fit to the sample."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(30, 4, generator=generator, dtype=float64) @ torch.randn(4, 4, generator=generator, dtype=float64)
    y = torch.randn(30, generator=generator, dtype=float64)
    covariance = torch.cov(torch.cat([X, y[:, None]], dim=1).mT, correction=0)
    found = best_affine_predictor(X.mean(dim=0), y.mean(), covariance[:4, :4], covariance[:4, 4])
    torch.testing.assert_close(found, least_squares(X, y), rtol=1e-8, atol=1e-8)


def test_a_feature_given_twice_shares_its_weight():
    found = best_affine_predictor(torch.zeros(2), torch.tensor(1.0), torch.ones(2, 2), torch.tensor([3.0, 3.0]))
    torch.testing.assert_close(found.weight, torch.tensor([1.5, 1.5]))


@pytest.mark.parametrize(
    ("covariance", "with_y", "words"),
    [
        (torch.tensor([[1.0, 0.5], [0.0, 1.0]]), torch.ones(2), "symmetric"),
        (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.ones(2), "no negative eigenvalue"),
        (torch.ones(2, 2), torch.tensor([1.0, -1.0]), "in the range"),
        (torch.eye(2), torch.ones(3), "axis d of covariance_xy to be 2"),
        (torch.full((2, 2), torch.nan), torch.ones(2), "finite moments"),
        (torch.eye(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64), "as floats"),
    ],
)
def test_moments_that_no_law_has_are_refused(covariance, with_y, words):
    with pytest.raises(UserError, match=words):
        best_affine_predictor(torch.zeros(2), torch.tensor(0.0), covariance, with_y)


def test_conditional_expectation_by_hand():
    joint = torch.tensor([[0.1, 0.3], [0.6, 0.0]], dtype=float64)
    expected = torch.tensor([(0.1 * 2 + 0.3 * 6) / 0.4, 2.0], dtype=float64)
    torch.testing.assert_close(conditional_expectation(joint, torch.tensor([2.0, 6.0], dtype=float64)), expected)


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (torch.tensor([[0.5, 0.5], [0.0, 0.0]]), "probability 0 in row 1"),
        (torch.tensor([[0.5, 0.5], [0.5, 0.0]]), "sum to one"),
        (torch.tensor([[1.5, -0.5], [0.0, 0.0]]), "non-negative"),
        (torch.full((2, 2), torch.nan), "sum to one"),
        (torch.full((2, 3), 1 / 6), "axis c of values to be 3"),
    ],
)
def test_conditional_expectation_refuses(joint, words):
    with pytest.raises(UserError, match=words):
        conditional_expectation(joint, torch.tensor([0.0, 1.0]))


def test_fit_polynomial_agrees_with_numpy():
    generator = torch.Generator().manual_seed(5)
    x, y = torch.randn(2, 30, generator=generator, dtype=float64)
    for degree in range(6):
        peer = np.polynomial.polynomial.polyfit(x.numpy(), y.numpy(), degree)
        factorials = np.cumprod([1, *range(1, degree + 1)])
        np.testing.assert_allclose(fit_polynomial(x, y, degree).numpy() / factorials, peer, rtol=1e-8, atol=1e-9)
