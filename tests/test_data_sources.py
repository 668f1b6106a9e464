"""Sources by name: embedded sets beside scikit-learn's own, generated sets beside their distributions, names and forms
of targets."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import datasets

import quoin.data
from quoin.data import (
    SOURCES,
    Dataset,
    as_classes,
    as_regression,
    check_source_name,
    load,
    make_blobs,
    make_circles,
    make_linear,
    make_moons,
    make_polynomial,
)
from quoin.data.generated import LINEAR_BIAS, LINEAR_WEIGHTS, POLYNOMIAL_COEFFICIENTS
from quoin.errors import UserError

# fewer images than by default: 6,000 take seconds
NAMES = [{"glyphs": "glyphs:300", "shapes": "shapes:300"}.get(name, name) for name in SOURCES if ":" not in name]


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", NAMES)
def test_every_named_source_loads(name):
    data = load(name, seed=3)
    assert data.name == name
    assert data.num_rows == len(data.targets) > 100
    assert data.features.isfinite().all()
    assert len(data.feature_names) == data.num_features == data.features[0].numel()
    if data.is_classification:
        assert data.targets.unique().tolist() == list(range(data.num_classes))
        assert as_classes(data) is data
    else:
        assert as_regression(data) is data
    assert load(name, seed=3).fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("name", "loader"),
    [("iris", datasets.load_iris), ("wine", datasets.load_wine), ("breast-cancer", datasets.load_breast_cancer)],
)
def test_embedded_tables_are_scikit_learns(name, loader):
    data, peer = load(name), loader()
    assert np.array_equal(data.features.numpy(), peer.data.astype(np.float32))
    assert np.array_equal(data.targets.numpy(), peer.target)
    assert data.feature_names == tuple(peer.feature_names)
    assert data.class_names == tuple(peer.target_names)


def test_diabetes_is_raw_so_that_no_test_row_helps_to_scale_it():
    data = load("diabetes")
    peer: Any = datasets.load_diabetes(scaled=False)
    assert np.array_equal(data.features.numpy(), peer.data.astype(np.float32))
    assert np.array_equal(data.targets.numpy(), peer.target.astype(np.float32))
    assert not data.is_classification


def test_digits_are_images_between_0_and_1():
    data = load("digits")
    peer: Any = datasets.load_digits()
    assert data.image_shape == (1, 8, 8)
    assert np.array_equal(data.features.flatten(1).numpy() * 16, peer.data.astype(np.float32))
    assert data.features.min() == 0
    assert data.features.max() == 1
    assert list(data.feature_names) == list(peer.feature_names)


def test_linear_is_exact_without_noise_and_has_the_stated_noise():
    weights, bias = [1.5, -2.0, 0.25], 0.75
    exact = make_linear(50, weights, bias, noise=0.0, generator=rng())
    expected = exact.features.double() @ torch.tensor(weights, dtype=torch.float64) + bias
    torch.testing.assert_close(exact.targets.double(), expected, atol=1e-5, rtol=0)
    noisy = make_linear(20_000, weights, bias, noise=0.5, generator=rng())
    residual = noisy.targets - noisy.features @ torch.tensor(weights) - bias
    # Standard error of a standard deviation is σ / sqrt(2n); six of them.
    assert abs(residual.std().item() - 0.5) < 6 * 0.5 / math.sqrt(2 * 20_000)
    assert abs(residual.mean().item()) < 6 * 0.5 / math.sqrt(20_000)


def test_the_truth_behind_linear_can_be_recovered():
    data = load("linear", seed=1)
    design = np.hstack([data.features.double().numpy(), np.ones((data.num_rows, 1))])
    found = np.linalg.lstsq(design, data.targets.double().numpy(), rcond=None)[0]
    assert np.allclose(found, [*LINEAR_WEIGHTS, LINEAR_BIAS], atol=0.003)  # noise 0.01 / sqrt(1000), nine times over


def test_polynomial_features_are_the_taylor_monomials():
    data = make_polynomial(30, POLYNOMIAL_COEFFICIENTS, noise=0.0, generator=rng())
    assert data.num_features == 20
    x = data.features[:, 1].double()
    for power in (0, 2, 5, 19):
        torch.testing.assert_close(
            data.features[:, power].double(), x**power / math.gamma(power + 1), rtol=1e-5, atol=1e-30
        )
    expected = 5 + 1.2 * x - 3.4 * x**2 / 2 + 5.6 * x**3 / 6
    torch.testing.assert_close(data.targets.double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_rows", [10, 11])
def test_moons_and_circles_have_scikit_learns_shape(num_rows):
    for ours, (points, labels) in [
        (make_moons(num_rows, noise=0.0, generator=rng()), datasets.make_moons(num_rows, shuffle=False)),
        (
            make_circles(num_rows, ratio=0.5, noise=0.0, generator=rng()),
            datasets.make_circles(num_rows, shuffle=False, factor=0.5),
        ),
    ]:
        assert np.allclose(ours.features.numpy(), points, atol=1e-6)
        assert np.array_equal(ours.targets.numpy(), labels)


def test_blobs_stand_around_their_centres():
    centers = [(0.0, 5.0, 1.0), (-7.0, 0.0, 2.0)]
    data = make_blobs(4001, centers, noise=0.5, generator=rng())
    assert torch.bincount(data.targets).tolist() == [2001, 2000]
    for label, center in enumerate(centers):
        cloud = data.features[data.targets == label]
        assert (cloud.mean(0) - torch.tensor(center)).abs().max() < 6 * 0.5 / math.sqrt(2000)
        assert (cloud.std(0) - 0.5).abs().max() < 6 * 0.5 / math.sqrt(2 * 2000)


def test_the_seed_decides_what_is_drawn():
    assert load("moons", seed=1).fingerprint == load("moons", seed=1).fingerprint != load("moons", seed=2).fingerprint


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("digit", "did you mean 'digits'"),
        ("mnist", "idx:FOLDER"),
        ("", "the nearest of"),
        ("cvs:a.csv", "did you mean 'csv'"),
        ("digits:a", "did you mean 'digits'"),
        ("csv", "csv:PATH"),
        ("idx:", "idx:FOLDER"),
        ("data/a.csv", "csv:PATH"),
        ("csv:PATHS\n", "check the path"),
    ],
)
def test_an_unknown_source_gets_one_line_with_a_hint(source, hint):
    with pytest.raises(UserError, match=hint) as caught:
        load(source)
    assert len(str(caught.value).splitlines()) == 1


def test_columns_are_named_for_tables_only():
    with pytest.raises(UserError, match="is for tables"):
        load("iris", target="species")
    with pytest.raises(UserError, match=r"--ignore is for tables .* leave it out"):
        load("iris", ignore=["species"])
    with pytest.raises(UserError, match=r"--missing is for tables"):
        load("iris", missing="mean")


def test_checking_a_name_costs_no_torch():
    code = (
        "import sys, quoin.data; quoin.data.check_source_name('digits'); list(quoin.data.SOURCES)\n"
        "assert not {'torch', 'sklearn', 'numpy'} & set(sys.modules), 'heavy'\n"
        "quoin.data.Dataset; assert 'torch' in sys.modules and 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    for name in quoin.data.__all__:
        assert getattr(quoin.data, name) is not None
    with pytest.raises(AttributeError):
        quoin.data.loader  # noqa: B018
    check_source_name("csv:anything")


def table(targets, class_names, **more):
    targets = torch.tensor(targets, dtype=torch.float32 if class_names is None else torch.int64)
    return Dataset("t", torch.zeros(len(targets), 1), targets, ("a",), class_names, **more)


def test_numerals_serve_as_numbers_and_text_does_not():
    numbers = as_regression(table([1, 0, 1], ("-2", "7")))
    assert numbers.targets.tolist() == [7.0, -2.0, 7.0]
    assert numbers.targets.dtype == torch.float64
    assert numbers.class_names is None
    with pytest.raises(UserError, match=r"holds 'red' \(row 2\)"):
        as_regression(table([0, 1, 0], ("1", "red")))


def test_classes_are_refused_where_there_are_none_one_or_thousands():
    with pytest.raises(UserError, match="use a regression recipe"):
        as_classes(table([0.5, 1.5], None))
    with pytest.raises(UserError, match="two or more classes"):
        as_classes(table([0, 0], ("only",)))
    with pytest.raises(UserError, match="at most 1000"):
        as_classes(table(range(1001), tuple(f"c{i}" for i in range(1001))))


@pytest.mark.parametrize(
    ("num_classes", "rows_each", "taken"),
    [(10, 1, True), (11, 1, False), (11, 4, False), (11, 5, True), (40, 10, True), (214, 2, False), (900, 3, False)],
)
def test_many_whole_numbers_with_few_rows_each_are_no_classes(num_classes, rows_each, taken):
    numerals = tuple(str(3 * i - 50) for i in range(num_classes))
    data = table([i for i in range(num_classes) for _ in range(rows_each)], numerals)
    assert as_regression(data).targets.tolist() == [3 * i - 50 for i in range(num_classes) for _ in range(rows_each)]
    if taken:
        assert as_classes(data) is data
    else:
        with pytest.raises(
            UserError, match=f"{num_classes} different whole numbers in {len(data.targets)} rows: .*mlp-regression"
        ):
            as_classes(data)
    named = table(data.targets.tolist(), tuple(f"c{i}" for i in range(num_classes)))  # words are classes, however many
    assert as_classes(named) is named


def test_taken_rows_and_the_fingerprint_follow_the_content():
    data = table([0, 1, 1], ("a", "b"), test_start=2)
    part = data.take(torch.tensor([2, 0]))
    assert part.targets.tolist() == [1, 0]
    assert part.test_start is None
    assert data.fingerprint == table([0, 1, 1], ("a", "b"), test_start=2).fingerprint
    others = [
        table([0, 1, 0], ("a", "b"), test_start=2),
        table([0, 1, 1], ("a", "c"), test_start=2),
        table([0, 1, 1], ("a", "b")),
    ]
    moved = Dataset("t", torch.tensor([[0.0], [0.0], [1e-30]]), data.targets, ("a",), ("a", "b"), test_start=2)
    assert len({data.fingerprint, *(other.fingerprint for other in [*others, moved])}) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": torch.zeros(3, 1, dtype=torch.float16)},
        {"features": torch.zeros(3, 1, 1, 1, dtype=torch.float64)},
        {"features": torch.zeros(3)},
        {"targets": torch.zeros(2, dtype=torch.int64)},
        {"targets": torch.zeros(3)},
        {"feature_names": ("a", "b")},
        {"test_start": 3},
    ],
)
def test_a_dataset_that_does_not_fit_together_is_refused(wrong):
    right = {"name": "t", "features": torch.zeros(3, 1), "targets": torch.tensor([0, 1, 0]), "feature_names": ("a",)}
    Dataset(**right, class_names=("a", "b"))
    with pytest.raises(ValueError, match=r"must|need"):
        Dataset(**(right | wrong), class_names=("a", "b"))
