"""Generalisation: integrals with known values, scikit-learn as a peer, networks that fit anything, and the words of
each refusal."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as PeerRegression
from sklearn.model_selection import cross_validate as peer_cross_validate
from sklearn.preprocessing import PolynomialFeatures
from torch import Tensor, nn

from quoin.data import kfold
from quoin.errors import UserError
from quoin.losses import squared_loss
from quoin.metrics import (
    Population,
    cross_validate,
    early_stop,
    estimate_risk,
    expected_risk,
    generalization_gap,
    learning_curve,
    monte_carlo_risk,
    population_from_density,
    zero_one_loss,
)
from quoin.models import (
    least_squares,
    linear_regression_definition,
    monomial_features,
    num_monomials,
    num_monomials_up_to,
    relu_interpolant,
)
from quoin.notes.claims import collect
from quoin.prob import energy_distance, energy_test


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def linear_fit(X: Tensor, y: Tensor):
    found = least_squares(X, y)
    return lambda X: linear_regression_definition(X, *found)


# ---- the error on all data --------------------------------------------------------------------------------------


def gaussian_line(x: Tensor, y: Tensor) -> Tensor:
    """The density of x ~ N(0, 1) and y | x ~ N(2x + 1, 0.5²)."""
    return torch.exp(-x.square() / 2 - ((y - 2 * x - 1) / 0.5).square() / 2) / (2 * math.pi * 0.5)


def test_quadrature_finds_an_integral_known_in_closed_form():
    law = population_from_density(gaussian_line, (-7, 7), (-18, 20))
    for slope, offset in ((2.0, 1.0), (0.0, 0.0), (-1.0, 3.0)):
        exact = ((2 - slope) ** 2 + (1 - offset) ** 2 + 0.25) / 2
        found = expected_risk(lambda x, slope=slope, offset=offset: slope * x + offset, squared_loss, law)
        assert found == pytest.approx(exact, rel=1e-9)


def test_monte_carlo_finds_the_same_within_its_standard_error():
    def sample(num_examples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, noise = torch.randn(2, num_examples, generator=generator, dtype=torch.float64)
        return x, 2 * x + 1 + 0.5 * noise

    found = monte_carlo_risk(
        torch.zeros_like, squared_loss, sample, 100_000, generator=torch.Generator().manual_seed(0)
    )
    # y ~ N(1, 4.25): y²/2 has mean 5.25/2 and variance (2 · 4.25² + 4 · 4.25)/4.
    assert found.output == pytest.approx(5.25 / 2, abs=5 * found.standard_error)
    assert found.standard_error == pytest.approx(math.sqrt((2 * 4.25**2 + 4 * 4.25) / 4 / 100_000), rel=0.05)


def test_the_error_under_a_finite_law_is_a_sum():
    law = Population(torch.tensor([[0], [1], [2]]), torch.tensor([0, 1, 1]), torch.tensor([0.5, 0.3, 0.2]))
    assert expected_risk(lambda x: x[:, 0], zero_one_loss, law) == pytest.approx(0.2, abs=1e-7)


def test_an_error_is_measured_in_evaluation_mode_and_the_mode_is_given_back():
    model = nn.Sequential(nn.Dropout(0.9), nn.Flatten(0))
    x, y = torch.ones(50, 1, dtype=torch.float64), torch.ones(50, dtype=torch.float64)
    assert estimate_risk(model, squared_loss, x, y).output == 0
    assert all(module.training for module in model.modules())


def test_the_gap_says_who_overfits():
    X, y = normal(12, 9), normal(12, seed=1)
    new_X, new_y = normal(500, 9, seed=2), normal(500, seed=3)
    gap = generalization_gap(linear_fit(X, y), squared_loss, (X, y), (new_X, new_y))
    assert gap.overfits
    assert gap.output == pytest.approx(gap.test_error - gap.training_error)
    assert "overfits" in str(gap)
    honest = generalization_gap(
        torch.nn.Flatten(0), squared_loss, (torch.zeros(500, 1).double(), new_y), (torch.zeros(12, 1).double(), y)
    )
    assert not honest.overfits
    assert "chance" in str(honest)


# ---- held-out data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "num_folds"), [(10, 2), (11, 3), (7, 7), (100, 6)])
def test_folds_cover_every_row_once(num_rows, num_folds):
    folds = kfold(num_rows, num_folds, generator=torch.Generator().manual_seed(0))
    assert sorted(torch.cat([each.validation for each in folds]).tolist()) == list(range(num_rows))
    sizes = [len(each.validation) for each in folds]
    assert max(sizes) - min(sizes) <= 1
    for each in folds:
        assert sorted([*each.train.tolist(), *each.validation.tolist()]) == list(range(num_rows))
    assert all(map(torch.equal, folds[0], kfold(num_rows, num_folds, generator=torch.Generator().manual_seed(0))[0]))


def test_cross_validation_agrees_with_scikit_learn():
    X, y = normal(53, 4), normal(53, seed=1)
    folds = kfold(53, 5, generator=torch.Generator().manual_seed(2))
    ours = cross_validate(linear_fit, squared_loss, X, y, folds)
    cut = [(train.numpy(), validation.numpy()) for train, validation in folds]
    scores = peer_cross_validate(
        PeerRegression(), X.numpy(), y.numpy(), cv=cut, scoring="neg_mean_squared_error", return_train_score=True
    )
    np.testing.assert_allclose(ours.training_errors, -scores["train_score"] / 2, rtol=1e-10)
    np.testing.assert_allclose(ours.validation_errors, -scores["test_score"] / 2, rtol=1e-10)
    assert ours.training_error == pytest.approx(-scores["train_score"].mean() / 2)
    assert ours.validation_error == pytest.approx(-scores["test_score"].mean() / 2)


def test_a_learning_curve_is_the_errors_of_each_fit():
    X, y = normal(40, 2), normal(40, seed=1)
    found = learning_curve(linear_fit, squared_loss, (X[:30], y[:30]), (X[30:], y[30:]), (5, 30))
    for place, size in enumerate((5, 30)):
        model = linear_fit(X[:size], y[:size])
        assert float(found.training_errors[place]) == pytest.approx(
            float(squared_loss(model(X[:size]), y[:size]).mean())
        )
        assert float(found.test_errors[place]) == pytest.approx(float(squared_loss(model(X[30:]), y[30:]).mean()))


@pytest.mark.parametrize(
    ("errors", "patience", "expected"),
    [
        ([3, 2, 1], 1, (2, 2, False)),
        ([1, 2, 0], 1, (0, 1, True)),
        ([1, 2, 0, 3, 3], 2, (2, 4, False)),
        ([1, 1, 1, 1], 2, (0, 2, True)),
        ([5], 3, (0, 0, False)),
    ],
)
def test_stopping_early(errors, patience, expected):
    assert early_stop(errors, patience) == expected


# ---- one distribution -------------------------------------------------------------------------------------------


def test_the_energy_distance_is_the_integral_of_squared_differences_of_distribution_functions():
    """In one dimension it is 2 ∫ (F - G)² dx: here F - G is 1/2 on (0, 1) and (2, 3) for {0, 2} against {1, 3}."""
    first, second = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [3.0]])
    assert float(energy_distance(first, second)) == pytest.approx(2 * (0.25 + 0.25))
    assert float(energy_distance(first, first)) == 0
    test = energy_test(first, second, num_permutations=5, generator=torch.Generator().manual_seed(0))
    assert test.output == pytest.approx(1.0)


def test_the_p_value_is_the_share_of_partings_as_far_apart():
    """{0, 1} against {10, 11}: of the six ways to choose two of four rows, two are as far apart, so chance makes one in
    three."""
    first, second = torch.tensor([[0.0], [1.0]]), torch.tensor([[10.0], [11.0]])
    test = energy_test(first, second, num_permutations=20_000, generator=torch.Generator().manual_seed(0))
    assert test.p_value == pytest.approx(1 / 3, abs=6 * math.sqrt(2 / 9 / 20_000))
    assert not test.rejected
    assert energy_test(normal(50, 2), normal(50, 2, seed=1) + 2, generator=torch.Generator().manual_seed(0)).rejected


# ---- what can be fitted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "d", "q"), [(1, 1, 1), (2, 1, 1), (12, 1, 1), (12, 5, 3), (40, 3, 1)])
def test_a_unit_for_each_input_fits_any_labels(n, d, q, dtype):
    x, y = normal(n, d).to(dtype), normal(n, q, seed=1).to(dtype)
    model = relu_interpolant(x, y, generator=torch.Generator().manual_seed(0))
    assert model.sizes == (d, n, q)
    found = model(x)
    assert found.dtype == dtype
    torch.testing.assert_close(found.detach(), y, rtol=0, atol=1e-10 if dtype == torch.float64 else 0.02)


def test_between_neighbours_on_the_line_it_is_straight():
    x, y = (
        torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64),
        torch.tensor([[1.0], [5.0], [-1.0]], dtype=torch.float64),
    )
    model = relu_interpolant(x, y, generator=torch.Generator().manual_seed(0))
    middle = model(torch.tensor([[0.5], [2.0]], dtype=torch.float64)).detach()
    torch.testing.assert_close(middle, torch.tensor([[3.0], [2.0]], dtype=torch.float64))


def test_equal_inputs_need_equal_labels():
    x = torch.tensor([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    same = torch.tensor([[3.0], [4.0], [3.0]], dtype=torch.float64)
    model = relu_interpolant(x, same, generator=torch.Generator().manual_seed(0))
    assert model.sizes == (2, 2, 1)
    torch.testing.assert_close(model(x).detach(), same)
    with pytest.raises(UserError, match="same input in rows 0 and 2"):
        relu_interpolant(x, torch.tensor([[3.0], [4.0], [5.0]], dtype=torch.float64))


@pytest.mark.parametrize(("k", "d"), [(1, 0), (1, 5), (3, 0), (3, 4), (5, 2)])
def test_monomials_agree_with_scikit_learn(k, d):
    x = normal(6, k)
    peer = PolynomialFeatures(d).fit(x.numpy())
    np.testing.assert_allclose(monomial_features(x, d), np.asarray(peer.transform(x.numpy())), rtol=1e-12)
    assert num_monomials_up_to(k, d) == peer.n_output_features_ == sum(num_monomials(k, e) for e in range(d + 1))


# ---- refusals ---------------------------------------------------------------------------------------------------

ONE, TWO = torch.zeros(1), torch.zeros(2)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            lambda: population_from_density(gaussian_line, (-1, 1), (-18, 20)),
            "mass of 1 inside the rectangle, got 0.68",
        ),
        (lambda: population_from_density(gaussian_line, (1, 1), (0, 1)), r"low to high, got \(1, 1\)"),
        (lambda: population_from_density(gaussian_line, (-math.inf, 0), (0, 1)), "finite interval"),
        (lambda: population_from_density(lambda x, y: -x, (0, 1), (0, 1)), "density of at least 0"),
        (lambda: population_from_density(gaussian_line, (0, 1), (0, 1), num_nodes=0), "at least one node"),
        (
            lambda: expected_risk(torch.neg, squared_loss, Population(TWO, TWO, torch.tensor([0.5, 0.4]))),
            "a sum 0.1 away from one",
        ),
        (
            lambda: expected_risk(torch.neg, squared_loss, Population(TWO, TWO, torch.tensor([1.5, -0.5]))),
            "least entry of -0.5",
        ),
        (
            lambda: expected_risk(torch.neg, squared_loss, Population(TWO, TWO, ONE + 1)),
            r"got shapes \(2,\), \(2,\), \(1,\)",
        ),
        (lambda: expected_risk(torch.neg, squared_loss, Population(TWO[:0], TWO[:0], TWO[:0])), "n >= 1"),
        (lambda: estimate_risk(torch.neg, squared_loss, ONE, ONE), "at least two examples"),
        (lambda: estimate_risk(torch.neg, squared_loss, TWO, ONE), "as many targets as examples"),
        (lambda: estimate_risk(torch.neg, squared_loss, TWO * torch.nan, TWO), "got NaN"),
        (
            lambda: estimate_risk(torch.neg, squared_loss, TWO[:, None], TWO[:, None]),
            r"for each of 2 examples, got shape \(2, 1\)",
        ),
        (lambda: kfold(5, 1), "2 folds to as many as rows, got 1 folds of 5"),
        (lambda: kfold(5, 6), "got 6 folds of 5"),
        (lambda: cross_validate(linear_fit, squared_loss, TWO, TWO, []), "at least one fold"),
        (
            lambda: cross_validate(linear_fit, squared_loss, TWO, TWO, [(torch.tensor([0, 1]), torch.tensor([1]))]),
            "got row 1 in both of fold 0",
        ),
        (
            lambda: learning_curve(linear_fit, squared_loss, (TWO, TWO), (TWO, TWO), (1, 3)),
            r"from 1 to 2, got \[1, 3\]",
        ),
        (lambda: learning_curve(linear_fit, squared_loss, (TWO, TWO), (TWO, TWO), ()), r"got \[\]"),
        (lambda: early_stop([], 1), "0 errors"),
        (lambda: early_stop([1.0, math.nan], 1), "errors that are numbers"),
        (lambda: early_stop([1.0], 0), "patience of at least 1"),
        (lambda: energy_distance(torch.zeros(3, 2), torch.zeros(3, 4)), "axis d of second to be 2 as in first, got 4"),
        (lambda: energy_test(torch.zeros(3, 2), torch.zeros(0, 2)), "at least one row"),
        (
            lambda: energy_test(torch.zeros(3, 2), torch.full((3, 2), torch.nan)),
            r"finite entries of second, got nan at \(0, 0\)",
        ),
        (lambda: energy_test(torch.zeros(3, 2), torch.zeros(3, 2), num_permutations=0), "at least one permutation"),
        (lambda: energy_test(torch.zeros(3, 2).long(), torch.zeros(3, 2)), "float dtype"),
        (lambda: relu_interpolant(torch.zeros(3, 2), torch.zeros(2, 1)), "axis n of y to be 3 as in x, got 2"),
        (lambda: relu_interpolant(torch.zeros(0, 2), torch.zeros(0, 1)), "at least one example"),
        (lambda: relu_interpolant(torch.zeros(2, 2), torch.zeros(2, 1).double()), "one dtype"),
        (lambda: relu_interpolant(torch.full((2, 1), torch.inf), torch.zeros(2, 1)), "finite entries of x"),
        (lambda: num_monomials(0, 2), "at least one variable"),
        (lambda: num_monomials_up_to(2, -1), "degree of at least 0"),
        (lambda: monomial_features(torch.zeros(1, 100), 5), "at most 1000000 monomials, got 96560646"),
        (lambda: monomial_features(torch.zeros(1, 2).long(), 2), "float dtype"),
    ],
)
def test_what_cannot_be_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_the_claims_hold_for_other_seeds():
    """A bound that chance breaks once in ten million holds for any seed; one tuned to seed 0 would not."""
    mine = [
        each
        for each in collect()
        if each.function.__module__.rpartition(".")[2] in ("generalisation", "regularisation")
    ]
    assert len(mine) >= 14
    failed = [each.ids for each in mine if each.run(7).verdict != "holds"]
    assert failed == []
