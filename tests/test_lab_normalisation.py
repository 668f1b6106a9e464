"""What the page on normalisation shows, against torch's own layers, numpy and the closed forms."""

import base64
import copy
import math
import random

import numpy as np
import pytest
import torch
from torch import nn

from lab_states import tiny_run
from quoin.errors import UserError
from quoin.lab.normalisation import a_batch_of_two, does_it_add, epsilon, one_mean, skip, train_and_eval, your_run
from quoin.lab.parts import exhibit_of, open_runs
from quoin.lab.parts.deep_gradients import BODIES, DEPTH, WIDTH
from quoin.lab.parts.run_modes import SIZES, classifier_of
from quoin.notes.claims.residual import dense_body
from quoin.runs import Run


def numbers(show, **state):
    found = [number.value for number in exhibit_of(show).view(state).numbers]
    return [float(value) for value in found]


@pytest.mark.parametrize(("column", "row"), [(1, 4), (0, 0), (3, 11), (2, 7), (3, 2)])
def test_one_mean_a_mean(column, row):
    entry = [column + 0.5, row + 0.5]
    assert numbers(one_mean, entry=entry, norm="layer norm") == [0, 4]
    assert numbers(one_mean, entry=entry, norm="layer norm, whole example") == [0, 12]
    # a channel has 4 examples of 3 positions; as printed, only the 4 examples of one position
    assert numbers(one_mean, entry=entry, norm="batch norm", printed=True) == [9, 12, 4]
    assert numbers(one_mean, entry=entry, norm="batch norm", change=0.0)[1] == 0


def test_torch_agrees_on_who_moves():
    x = torch.randn(4, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    other = x.clone()
    other[1, 1, 1] += 2.0
    batched, layered = nn.BatchNorm1d(4).double(), nn.LayerNorm(4).double()
    for norm, name in ((lambda x: batched(x.mT).mT, "batch norm"), (layered, "layer norm")):
        moved = (norm(other) - norm(x)).abs() > 1e-9
        assert numbers(one_mean, norm=name) == [int(moved.sum() - moved[1].sum()), int(moved.sum())]


@pytest.mark.parametrize("std", [1.0, 1e-5, 10.0, 1e-3, 0.02, 3e-4])
def test_the_variance_left(std):
    variance, one, off = numbers(epsilon, std=std, printed=True)
    assert variance == pytest.approx(std**2 / (std**2 + 1e-5), rel=1e-9)
    assert one == 1
    shape = np.array([0.0, 0.2, -0.3, 0.5, -0.65, 0.1, -0.2, 1.4])
    x = std * (shape - shape.mean()) / shape.std()
    assert off == pytest.approx(np.abs(x / (x.std() + 1e-5) - x / np.sqrt(x.var() + 1e-5)).max(), rel=1e-6)


def test_at_a_thousandth_the_variance_is_nine_hundredths():
    variance, _, off = numbers(epsilon, std=1e-3, printed=True)
    assert variance == pytest.approx(0.09, abs=0.001)
    assert off == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize("size", [16, 1, 2, 64, 5])
def test_small_batches(size):
    miss, away = numbers(a_batch_of_two, size=size)
    x = 2 + 1.5 * torch.randn(size, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    layer = nn.BatchNorm1d(40).double()
    output = layer(x) if size > 1 else torch.zeros_like(x)  # torch refuses one; the definition gives beta
    assert away == pytest.approx(float(output.detach().square().mean().sqrt()), abs=1e-9)
    assert miss == pytest.approx(float((output.detach() - (x - 2) / 1.5).square().mean().sqrt()), abs=1e-9)
    assert numbers(a_batch_of_two, size=size, mode="eval")[0] < 1e-4
    assert exhibit_of(a_batch_of_two).view({"size": size}).reached == (size <= 2)


def test_one_gives_beta_and_two_a_sign():
    assert numbers(a_batch_of_two, size=1)[1] == pytest.approx(0)
    assert numbers(a_batch_of_two, size=2)[1] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("depth", [50, 2, 60, 17])
@pytest.mark.parametrize("norm", [1.0, 0.05, 1.5, 0.3, 0.75, 1.2])
def test_the_gradient_by_block(norm, depth):
    given = {"norm": norm, "depth": [depth, 1.0]}
    # I - norm I, once for each block behind the first
    kept, smallest, _ = numbers(skip, **given, body=BODIES[2], printed=True)
    assert kept == pytest.approx(abs(1 - norm) ** (depth - 1), rel=1e-6, abs=1e-300)
    assert smallest == pytest.approx(abs(1 - norm))
    kept, smallest, promised = numbers(skip, **given, body=BODIES[0], printed=True)
    assert max(0, 1 - norm) ** (depth - 1) <= kept <= (1 + norm) ** (depth - 1)
    assert smallest >= max(0, 1 - norm) - 1e-9
    assert numbers(skip, **given, body=BODIES[1])[0] <= norm ** (depth - 1) * (1 + 1e-12)
    assert promised > 0


def test_minus_x_kills_the_gradient_that_the_printed_sentence_promises():
    kept, smallest, promised = numbers(skip, body=BODIES[2], printed=True)
    assert kept == smallest == 0 < promised


@pytest.mark.parametrize("filters", [4, 2, 16, 7])
def test_a_bottleneck_has_four_times_its_filters(filters):
    assert numbers(does_it_add, filters=filters, printed=True) == [4 * filters, 4 * filters, filters]
    assert exhibit_of(does_it_add).view({"filters": filters, "printed": True}).reached


def test_your_column_in_train_and_eval():
    values = [random.Random(i).gauss(3, 2) for i in range(64)]
    table = base64.b64encode(("a\n" + "\n".join(map(str, values))).encode()).decode()
    apart, mean, std = numbers(train_and_eval, table=table, size=8, passes=3)
    layer = nn.BatchNorm1d(1).double()
    x = torch.tensor(values, dtype=torch.float32).double()[:, None]
    for _ in range(3):
        trained = torch.cat([layer(batch) for batch in x.split(8)])
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert mean == pytest.approx(float(layer.running_mean[0]), rel=1e-6)
    assert std == pytest.approx(math.sqrt(float(layer.running_var[0])), rel=1e-6)
    assert apart == pytest.approx(float((trained - layer.eval()(x)).square().mean().sqrt().detach()), rel=1e-6)


@pytest.mark.parametrize("depth", [DEPTH, 7])
@pytest.mark.parametrize(("body", "shortcut"), [(BODIES[0], 1.0), (BODIES[1], 0.0)])
def test_the_gradient_by_hand(body, shortcut, depth):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, WIDTH, generator=generator, dtype=torch.float64)[0].numpy()
    weights = [dense_body(WIDTH, 0.9, generator)[0].weight.detach().numpy() for _ in range(depth)]
    jacobians = []
    for weight in weights:
        h = np.tanh(weight @ x)
        jacobians.append((1 - h**2)[:, None] * weight + shortcut * np.eye(WIDTH))
        x = h + shortcut * x
    gradient = np.ones(WIDTH)  # of the sum, at the last block's output
    for jacobian in reversed(jacobians[1:]):
        gradient = jacobian.T @ gradient
    kept, smallest = numbers(skip, body=body, norm=0.9, depth=[depth, 1.0])
    assert kept == pytest.approx(np.linalg.norm(gradient) / math.sqrt(WIDTH), rel=1e-6)
    assert smallest == pytest.approx(np.linalg.svd(jacobians[0])[1][-1], rel=1e-6)


def test_a_network_of_ours_in_both_modes():
    for size in SIZES:
        apart, trained, tested = numbers(your_run, size=size)
        found = classifier_of(None)
        model = copy.deepcopy(found.model)
        with torch.no_grad():
            in_eval = model.eval()(found.features)
            in_train = torch.cat([model.train()(batch) for batch in found.features.split(size)])
        assert apart == pytest.approx(float((in_train - in_eval).square().mean().sqrt()), rel=1e-5)
        assert tested == pytest.approx(float((in_eval.argmax(1) == found.classes).double().mean()))
        assert trained == pytest.approx(float((in_train.argmax(1) == found.classes).double().mean()))
        assert apart > 0.01
    averages = classifier_of(None).model.state_dict()["features.1.running_mean"]
    assert torch.equal(averages, found.model.state_dict()["features.1.running_mean"])  # left as they are


@pytest.mark.parametrize(("norm", "acting"), [("batch", "2 × batch norm"), ("none", "nothing")])
def test_a_run_in_both_modes(monkeypatch, tmp_path, norm, acting):
    run = tiny_run("mlp", tmp_path, {"data": "iris", "norm": norm, "hidden_dims": (8, 8), "epochs": 2})
    monkeypatch.setattr(open_runs, "_runs", [run.path])
    view = exhibit_of(your_run).view({"size": 4})
    assert acting in view.note
    apart, _, tested = [each.value for each in view.numbers]
    assert tested == pytest.approx(run.metrics["test_accuracy"])
    if norm == "none":
        assert apart == 0
    else:
        test = run.load_task().data.test
        assert f"{len(test.targets)} rows" in view.note
        order = torch.randperm(len(test.targets), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            in_train = torch.cat([run.model.train()(batch) for batch in test.features[order].split(4)])
            in_eval = Run.open(run.path).model.eval()(test.features[order])
        assert apart == pytest.approx(float((in_train - in_eval).square().mean().sqrt()), rel=1e-4)


def test_a_run_that_tells_no_classes(monkeypatch, tmp_path):
    run = tiny_run("gmm", tmp_path, {})
    monkeypatch.setattr(open_runs, "_runs", [run.path])
    with pytest.raises(UserError, match="expected a run that tells classes"):
        exhibit_of(your_run).view({})
