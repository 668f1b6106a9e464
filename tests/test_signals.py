"""Signals: read from tables and archives, scaled by channel, and classified by models that equal their definitions."""

import csv
import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy import signal
from torch import nn

from commands import refused, tried
from near import assert_near
from quoin import plot
from quoin.data import as_classes, as_signals, load, make_waves, prepare, split
from quoin.data.waves import WAVEFORMS, waveform
from quoin.errors import UserError
from quoin.layers import (
    gru_cell_definition,
    lstm_cell_definition,
    recurrent_definition,
    recurrent_weights,
    transformer_block,
)
from quoin.models import (
    ConvSignalEncoder,
    RecurrentSignalEncoder,
    SignalClassifier,
    SignalPatchEmbedding,
    TransformerSignalEncoder,
    conv_block1d_definition,
    signal_classifier_definition,
    signal_patch_embedding_definition,
)
from quoin.runs import Run
from seeds import seeded

peer: Any = signal  # whose own types are too narrow
SHAPE = (2, 11)  # odd, and no multiple of a patch
NEAR = 1e-12


def signals(rows=4, shape=SHAPE):
    return torch.randn(rows, *shape, dtype=torch.float64, generator=seeded(1))


def encoders():
    blocks = [transformer_block(8, 2, generator=seeded(2))]
    return {
        "conv": ConvSignalEncoder(2, 6, num_layers=2, kernel_size=3, generator=seeded(2)),
        "gru": RecurrentSignalEncoder(nn.GRU, SHAPE, 3, num_layers=2, generator=seeded(2)),
        "lstm": RecurrentSignalEncoder(nn.LSTM, SHAPE, 3, patch_size=4, generator=seeded(2)),
        "transformer": TransformerSignalEncoder(SHAPE, blocks, patch_size=4, generator=seeded(2)),
    }


@pytest.mark.parametrize("name", encoders())
def test_a_classifier_is_its_definition(name):
    model = SignalClassifier(encoders()[name], SHAPE, 3, generator=seeded(3)).double().eval()
    x = signals()
    expected = signal_classifier_definition(model.encoder, x, model.head.weight, model.head.bias)
    assert_near(model(x), expected, NEAR)
    # it knows the order of the steps, which a mean of theirs would not
    assert (model(x) - model(x.flip(-1))).abs().max() > 1e-6


def test_convolutional_blocks_are_their_definition():
    encoder = ConvSignalEncoder(2, 6, num_layers=3, kernel_size=5, generator=seeded(0)).double()
    x = signals(shape=(2, 13)).requires_grad_()
    encoder(signals(50, (2, 13)))  # running averages other than those of the start
    encoder.eval()
    y = x
    for block in encoder.blocks:
        convolution, norm, *_ = cast("Any", block)
        y = conv_block1d_definition(y, convolution.weight, norm.running_mean, norm.running_var)
    assert y.shape == (4, 6, 2)  # of 13 steps 7, 4 and 2
    assert_near(encoder(x), y.mT, NEAR)
    ours, theirs = (torch.autograd.grad(each.square().sum(), x)[0] for each in (encoder(x), y))
    assert_near(ours, theirs, 1e-11)


@pytest.mark.parametrize(("kind", "cell"), [(nn.GRU, gru_cell_definition), (nn.LSTM, lstm_cell_definition)])
def test_recurrent_encoders_are_a_loop_over_the_steps(kind, cell):
    x = signals()
    for patch_size in (1, 4):
        encoder = RecurrentSignalEncoder(kind, SHAPE, 3, patch_size=patch_size, num_layers=2, generator=seeded(0))
        encoder.double()
        read = x.mT if encoder.patches is None else encoder.patches(x)
        start = [torch.zeros(4, 4, 3, dtype=torch.float64)] * (2 if kind is nn.LSTM else 1)
        expected = recurrent_definition(cell, read, start, recurrent_weights(encoder.cell)).output
        assert_near(encoder(x), expected, NEAR)


@pytest.mark.parametrize("patch_size", [1, 3, 11])
def test_patches_are_their_definition(patch_size):
    layer = SignalPatchEmbedding(SHAPE, patch_size, 5, generator=seeded(0)).double()
    weight, bias = layer.convolution.parameters()
    nn.init.normal_(bias, generator=seeded(4))
    expected = signal_patch_embedding_definition(signals(), weight, bias)
    assert expected.shape == (4, layer.num_patches, 5)
    assert_near(layer(signals()), expected, NEAR)


def test_a_signal_of_two_steps_is_long_enough_for_every_block():
    assert ConvSignalEncoder(1, 4, num_layers=5)(torch.zeros(3, 1, 2)).shape == (3, 1, 4)


def test_waveforms_are_scipys():
    frequency, phase = (torch.full((5, 1), value, dtype=torch.float64) for value in (4.3, 0.17))
    found = dict(zip(WAVEFORMS, waveform(torch.arange(5), frequency, phase, 64).numpy(), strict=True))
    t = np.arange(64) / 64
    angle = 2 * np.pi * (4.3 * t + 0.17)
    assert np.allclose(found["sine"], np.sin(angle))
    assert np.allclose(found["square"], peer.square(angle))
    assert np.allclose(found["sawtooth"], peer.sawtooth(angle))
    assert np.allclose(found["triangle"], peer.sawtooth(angle, width=0.5))
    assert np.allclose(found["chirp"], peer.chirp(t, 4.3, 1, 3 * 4.3, phi=360 * 0.17 - 90))


def test_waves_are_balanced_and_have_no_mean_that_would_tell_the_classes():
    data = make_waves(20_000, length=16, noise=0.2, generator=seeded(0))
    assert data.signal_shape == (1, 16)
    assert torch.bincount(data.targets).tolist() == [4000] * 5
    # an amplitude of at most 1.5 and its noise: six standard errors
    for label in range(5):
        assert data.features[data.targets == label].mean(0).abs().max() < 6 * 1.6 / 4000**0.5
    assert load("waves", seed=1).fingerprint == load("waves", seed=1).fingerprint != load("waves", seed=2).fingerprint
    assert load("waves").feature_names[:2] == ("step_0", "step_1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Signals of two classes as users have them, and as they should not."""
    folder = tmp_path_factory.mktemp("signals")
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((60, 2, 9)), np.array(["a", "b"])[np.arange(60) % 2]
    x[y == "b", 0] += 3 * np.sin(np.arange(9))
    x[:, 1] = 1e6 + 100 * x[:, 1]
    bad = x.copy()
    bad[3, 1, 4] = np.nan
    arrays = {
        "two": x,
        "one": x[:, 0],
        "bytes": np.arange(60 * 9).astype(np.uint8).reshape(60, 1, 9),
        "transposed": x.transpose(0, 2, 1),
        "nan": bad,
        "short": x[:, :, :1],
        "empty": x[:, :, :0],
        "images": x[:, :, None],
    }
    for name, features in arrays.items():
        np.savez(folder / f"{name}.npz", features=features, targets=y)
    np.savez(folder / "class.npz", features=x, targets=["a"] * 60)
    np.savez(folder / "numbers.npz", features=x, targets=x[:, 0, 0])
    head = [*(f"t{step}" for step in range(9)), "label"]
    rows = [[*map(str, row), label] for row, label in zip(x[:, 0], y)]
    tables = {
        "table": [head, *rows],
        "ragged": [head, *rows[:5], rows[5][2:], *rows[6:]],
        "gap": [head, *rows[:5], ["nan", *rows[5][1:]], *rows[6:]],
        "column": [["t0", "label"], *([row[0], row[-1]] for row in rows)],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(map(",".join, lines)))
    return folder


def test_tables_and_archives_are_read_as_they_are(files):
    two, one = (np.load(files / f"{name}.npz")["features"] for name in ("two", "one"))
    data = load(f"signals:{files}/two.npz")
    assert data.signal_shape == (2, 9)
    assert data.image_shape is None
    assert np.array_equal(data.features.numpy(), two)
    assert data.feature_names[9] == "step_1_0"
    table = load(f"signals:{files}/table.csv", target="label")
    assert table.feature_names == tuple(f"t{step}" for step in range(9))
    for each in (table, load(f"signals:{files}/one.npz"), as_signals(load(f"csv:{files}/table.csv"))):
        assert np.array_equal(each.features.numpy(), one[:, None])
    assert load(f"signals:{files}/bytes.npz").features.max() == 255  # grey levels only where they are images
    assert load(f"signals:{files}/table.csv", target="label", ignore=["t0"]).signal_shape == (1, 8)


def test_channels_are_scaled_by_the_training_rows_over_all_steps(files):
    data = as_classes(load(f"signals:{files}/two.npz"))
    rows = split(data, 0)
    found = prepare(data, rows)
    seen = np.load(files / "two.npz")["features"][rows.train.numpy()]
    mean, std = seen.mean((0, 2)), seen.std((0, 2))
    assert found.data_info.signal_shape == (2, 9)
    assert found.feature_scaler.mean.shape == (2, 1)
    assert np.allclose(found.feature_scaler.mean[:, 0], mean, rtol=1e-12)
    expected = (np.load(files / "two.npz")["features"][rows.test.numpy()] - mean[:, None]) / std[:, None]
    assert np.allclose(found.test.features.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("nan.npz", r"got nan at \(3, 1, 4\)"),
        ("short.npz", "two steps or more, got 1"),
        ("empty.npz", r"got shape \(60, 2, 0\)"),
        ("images.npz", r"got shape \(60, 2, 1, 9\)"),
        ("class.npz", "two or more classes"),
        ("numbers.npz", "holds numbers"),
        ("none.npz", "cannot be reached"),
        ("ragged.csv", "expected 10 cells on line 7"),
        ("gap.csv", "line 7, column 't0'"),
        ("column.csv", "two steps or more, got 1 in 'signals:"),
    ],
)
def test_bad_signals_are_told_in_one_line(files, file, told):
    with pytest.raises(UserError, match=told) as caught:
        as_classes(load(f"signals:{files}/{file}"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: as_signals(load("digits")), "expected signals, got images"),
        (lambda: SignalClassifier(ConvSignalEncoder(2, 4), (2, 8, 8), 3), "signal_shape as"),  # pyright: ignore
        (lambda: SignalClassifier(ConvSignalEncoder(2, 4), SHAPE, 0), "at least one class"),
        (lambda: SignalClassifier(ConvSignalEncoder(2, 4), SHAPE, 3)(torch.zeros(4, 11, 2)), r"\(n, 2, 11\)"),
        (lambda: ConvSignalEncoder(2, 4, kernel_size=4), "odd kernel size"),
        (lambda: ConvSignalEncoder(2, 4, num_layers=0), "num_layers of 1 or more"),
        (lambda: SignalPatchEmbedding(SHAPE, 12, 4), "1 to 11 steps"),
        (lambda: plot.signal_grid(torch.zeros(2, 3)), "3 axes"),
        (lambda: plot.signal_grid(torch.zeros(2, 1, 3), ["one"]), "2 captions"),
    ],
)
def test_mistakes_are_told_in_one_line(make, told):
    with pytest.raises(UserError, match=told) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_grid_draws_each_channel_and_keeps_the_peaks_of_a_long_signal():
    values = torch.zeros(2, 2, 5000)
    values[1, 0, 1234] = 7.0
    axes = plot.signal_grid(values, ["a", "b$"]).figure.axes
    assert [len(each.lines) for each in axes] == [3, 3]  # zero, and two channels
    steps, drawn = np.asarray(axes[1].lines[1].get_xydata()).T
    assert len(drawn) <= 400
    assert drawn.max() == 7.0
    assert steps[drawn.argmax()] == 1234


def train(folder, *words):
    code, out, err = tried("train", *words, "--epochs", 2, "--num-threads", 1, "--json", "--runs", folder)
    assert (code, err) == (0, ""), err
    return json.loads(out)["run"]


def predicted(run, file):
    code, out, err = tried("predict", run, file)
    assert code == 0, err
    return list(csv.DictReader(io.StringIO(out)))


@pytest.mark.usefixtures("one_thread")
def test_two_channels_from_training_to_prediction(files, tmp_path):
    source = f"signals:{files}/two.npz"
    run = train(tmp_path, "signal-classification", "--data", source, "--hidden-dim", 8)
    page = Path(run, "report.html").read_text()
    assert "<h2>Example signals" in page
    assert "<h2>Confusion matrix" in page
    trained: Any = Run.open(run).expect("predict")
    probabilities = trained.predict(load(source).features).probabilities
    rows = predicted(run, files / "two.npz")
    assert np.allclose([float(row["p(b)"]) for row in rows], probabilities[:, 1].numpy(), atol=1e-6)
    code, out, err = tried("eval", run, "--data", source, "--json")
    assert code == 0, err
    right = np.mean([row["target"] == "ab"[n % 2] for n, row in enumerate(rows)])
    assert json.loads(out)["accuracy"] == pytest.approx(right)
    assert "2 channels and 9 steps" in refused("predict", run, files / "transposed.npz")
    assert "2 channels and 9 steps" in refused("eval", run, "--data", f"signals:{files}/transposed.npz")


@pytest.mark.deep
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("encoder", ["conv", "gru", "lstm", "transformer"])
def test_every_encoder_learns_from_a_table(files, tmp_path, encoder):
    table = f"{files}/table.csv"
    for source in (f"csv:{table}", f"signals:{table}"):
        run = train(tmp_path, "signal-classification", "--data", source, "--encoder", encoder)
        rows = predicted(run, table)
        assert {row["label"] for row in rows} <= {"a", "b"}
        assert rows == predicted(run, f"{source.partition(':')[0]}:{table}")
        evaluated = [tried("eval", run, "--data", each, "--json")[1] for each in (f"csv:{table}", f"signals:{table}")]
        assert json.loads(evaluated[0]) == json.loads(evaluated[1])
        assert tried("inspect", run, "--out", tmp_path / "a.html")[0] == 0


@pytest.mark.deep
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("recipe", ["softmax-regression", "mlp", "mlp-dropout", "svm", "logistic-regression"])
def test_other_classifiers_see_signals_flattened(files, tmp_path, recipe):
    run = train(tmp_path, recipe, "--data", f"signals:{files}/two.npz")
    assert len(predicted(run, files / "two.npz")) == 60
    assert "<h2>Example signals" in Path(run, "report.html").read_text()


@pytest.mark.deep
def test_mistakes_on_the_command_line(files, tmp_path):
    start = ("train", "signal-classification", "--runs", tmp_path, "--data")
    table = f"signals:{files}/table.csv"
    assert "leave --target out" in refused(*start, f"signals:{files}/two.npz", "--target", "y")
    assert "as signals:PATH" in refused(*start, f"npz:{files}/two.npz")
    assert "write signals:PATH" in refused(*start, "signals:")
    assert "odd kernel size" in refused(*start, table, "--kernel-size", 4)
    assert "num_heads that divide embed_dim" in refused(*start, table, "--encoder", "transformer", "--embed-dim", 30)
    assert "expected images" in refused("train", "lenet", "--runs", tmp_path, "--data", "waves")
