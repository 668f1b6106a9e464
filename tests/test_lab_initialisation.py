"""The page on initialisation: what each exhibit shows, held against numpy and plain Python."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from commands import tried
from quoin.errors import UserError
from quoin.lab import initialisation
from quoin.lab.parts import depth_pictures, exhibit_of, open_runs
from quoin.lab.parts.depth_pictures import deep_model, deep_start, narrow_model, narrowed, weights_of
from quoin.runs import Run
from run_folders import QUICK, TABLE

GAIN = exhibit_of(initialisation.the_gain)
NARROW = exhibit_of(initialisation.the_bottleneck)
THOUSAND = exhibit_of(initialisation.a_thousand_in_the_exponent)
OWN = exhibit_of(initialisation.yours)

FORMS = {
    "ReLU": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
}


@pytest.mark.parametrize(
    ("gain", "depth", "activation"),
    [
        (1.0, 45, "ReLU"),
        (0.5, 60, "ReLU"),
        (2.0, 60, "tanh"),
        (1.5, 45, "ReLU"),
        (0.75, 7, "sigmoid"),
        (1.3, 2, "tanh"),
    ],
)
def test_signals_and_gradients_by_hand(gain, depth, activation):
    model, x = deep_model(gain, depth, activation)
    *weights, head = [layer.weight.detach().numpy() for layer in model.modules() if isinstance(layer, nn.Linear)]
    form, slope = FORMS[activation]
    h, sums, sizes = x.numpy(), [], []
    for weight in weights:
        sums.append(h @ weight.T)
        h = form(sums[-1])
        sizes.append(np.sqrt((h**2).mean()))
    adjoint = np.repeat(head, len(h), axis=0) / len(h)
    norms = [np.linalg.norm(adjoint)]
    for weight, z in zip(weights[:0:-1], sums[:0:-1]):
        adjoint = (adjoint * slope(z)) @ weight
        norms.append(np.linalg.norm(adjoint))
    view = GAIN.view({"gain": gain, "depth": depth, "activation": activation})
    assert view.numbers[0].value == pytest.approx(sizes[-1], rel=1e-9)
    assert view.numbers[1].value == pytest.approx(norms[-1] / norms[0], rel=1e-7)
    assert view.numbers[2].value ** (depth - 1) == pytest.approx(sizes[-1] / sizes[0], rel=1e-7)
    found = deep_start(gain, depth, activation)
    assert [row.output_rms for row in found.rows] == pytest.approx(sizes)
    assert len(view.picture.svg()) < 150_000
    # every activation that is not 0 is in its column
    assert float(found.histograms[:, -1].sum()) == pytest.approx((h != 0).mean())


def test_a_factor_of_one_and_a_half_a_layer():
    before, after = GAIN.view(), GAIN.view({"gain": 1.5})
    assert after.numbers[0].value / before.numbers[0].value == pytest.approx(1.5**45)  # 8.4 · 10⁷
    assert after.numbers[1].value / before.numbers[1].value == pytest.approx(1.5**44)
    assert after.reached
    assert not before.reached
    assert GAIN.view({"activation": "sigmoid"}).numbers[1].value < 1e-20
    assert GAIN.view({"gain": 2.0, "activation": "tanh"}).numbers[0].value <= 1


@pytest.mark.parametrize(
    ("narrow", "activation"), [(12, "tanh"), (1, "tanh"), (3, "tanh"), (5, "sigmoid"), (4, "identity")]
)
def test_ranks_behind_a_narrow_layer(narrow, activation):
    model, x = narrow_model(narrow, activation)
    step = 1e-6
    with torch.no_grad():
        columns = [
            (model((x[0] + e)[None]) - model((x[0] - e)[None]))[0] / (2 * step) for e in step * torch.eye(12).double()
        ]
        hidden = model.features(x).numpy()
    quotients = np.linalg.svd(torch.stack(columns, dim=1).numpy(), compute_uv=False)
    found = narrowed(narrow, activation)
    np.testing.assert_allclose(found.jacobian.numpy(), quotients, atol=1e-7)
    assert found.jacobian_rank == narrow
    assert found.activation_rank == np.linalg.matrix_rank(hidden)
    assert (found.activation_rank == min(narrow + 1, 12)) == (activation == "identity" or narrow == 12)
    view = NARROW.view({"narrow": narrow, "activation": activation})
    assert [each.text for each in view.numbers] == [str(found.jacobian_rank), str(found.activation_rank)]
    assert view.reached == (narrow < 12 and activation != "identity")


@pytest.mark.parametrize(
    ("size", "kind", "breaks"),
    [
        (10.0, "float32", False),
        (1.0, "float16", False),
        (1000.0, "float64", True),
        (80.0, "float32", False),
        (100.0, "float32", True),
        (20.0, "float16", True),
        (700.0, "float64", False),
    ],
)
def test_where_the_exponential_overflows(size, kind, breaks):
    view = THOUSAND.view({"size": size, "kind": kind})
    expected = size + math.log(sum(math.exp(-each) for each in initialisation.BELOW))
    assert view.numbers[0].value == pytest.approx(expected, rel=2e-3 if kind == "float16" else 1e-6)
    assert math.isnan(view.numbers[1].value) == breaks
    assert view.reached == breaks
    assert breaks == (math.log(float(np.finfo(kind).max)) < size + 0.41)
    if not breaks:
        assert view.numbers[1].value == pytest.approx(
            math.exp(size - expected), rel=5e-3 if kind == "float16" else 1e-4
        )


def test_tanh_as_a_quotient_dies_at_minus_45():
    for x, alive in ((-44.0, True), (-45.0, False), (45.0, True)):
        view = THOUSAND.view({"x": [x, 0.0], "printed": True})
        assert math.isfinite(view.numbers[2].value) == alive
        assert view.numbers[2].printed
        assert THOUSAND.view({"x": [x, 0.0]}).numbers[2].value == pytest.approx(math.tanh(x))


def test_the_weights_of_a_fresh_network():
    weights = weights_of(None)
    for layer, (_, value) in enumerate(weights, start=1):
        view = OWN.view({"layer": layer})
        gain = np.sqrt((value.numpy() ** 2).sum(axis=1).mean())
        assert view.numbers[0].value == pytest.approx(gain)
        assert gain == pytest.approx(math.sqrt(2), rel=0.15)  # He's
        assert view.numbers[1].value == pytest.approx(np.linalg.norm(value.numpy(), 2))
    assert OWN.view({"layer": 40}).numbers[2].text == "4 of 4"


def test_the_weights_of_a_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    words = "train mlp --data csv:table.csv --hidden-dims 3 --epochs 1 --runs here"
    code, _, err = tried(*words.split(), *QUICK.split())
    assert code == 0, err
    (path,) = (tmp_path / "here").glob("*")
    monkeypatch.setattr(open_runs, "_runs", [path])
    view = OWN.view({"layer": 2})
    assert view.note == path.name
    assert view.numbers[2].text == "2 of 2"
    *_, last = (each for each in Run.open(path).model.modules() if isinstance(each, nn.Linear))
    weight = last.weight.detach().double().numpy()
    assert view.numbers[0].value == pytest.approx(np.sqrt((weight**2).sum(axis=1).mean()))
    assert view.numbers[1].value == pytest.approx(np.linalg.norm(weight, 2))


def test_a_model_without_matrices(monkeypatch, tmp_path):
    class Opened:
        model = nn.Sequential(nn.Linear(1, 1))

    monkeypatch.setattr(depth_pictures.Run, "open", lambda path: Opened)
    with pytest.raises(UserError, match="matrices of weights"):
        weights_of(tmp_path)
