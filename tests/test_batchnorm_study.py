"""The study of batch normalisation: pairs that differ in nothing else, on the same rows; and batches too small for it,
told in time."""

import copy
import dataclasses
import statistics
from typing import Any

import pytest
import torch
from torch import nn

from quoin.cli import main
from quoin.data import epoch_permutation
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.recipes.batchnorm_study import Options, build
from quoin.runs import find_recipe
from quoin.tasks.batchnorm_study import checked_sizes
from quoin.tasks.options import SupervisedOptions
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import load_classification_data, supervised_task
from quoin.train import setup_device


@pytest.fixture(scope="module")
def device_context():
    return setup_device("cpu", threads=1)[0]


@pytest.fixture(scope="module")
def study(device_context):
    """Two steps of sixteen rows each, cut into fours and sixteens."""
    task: Any = build(Options(batch_sizes=(16, 4)), device_context)
    task.begun = {name: copy.deepcopy(each.model.state_dict()) for name, each in task.networks.items()}
    task.seen = [rows for _, rows in zip(range(2), task.batches)]
    task.sums = [task.step(rows) for rows in task.seen]
    return task


def test_a_pair_differs_in_batch_norm_alone(study):
    assert list(study.networks) == ["norm_4", "baseline_4", "norm_16", "baseline_16"]
    for size in (4, 16):
        plain, normed = (
            [value for key, value in study.begun[f"{kind}_{size}"].items() if value.ndim > 1]
            for kind in ("baseline", "norm")
        )
        assert len(plain) == 5  # four convolutions and a dense layer
        assert all(map(torch.equal, plain, normed))
    kinds = {name: {type(each) for each in task.model.modules()} for name, task in study.networks.items()}
    assert {name: nn.BatchNorm2d in found for name, found in kinds.items()} == {
        "norm_4": True, "baseline_4": False, "norm_16": True, "baseline_16": False
    }  # fmt: skip


def test_every_network_sees_the_same_rows_in_batches_of_its_own_size(study, device_context):
    """Plain descent on the four pieces of each sixteen rows, written out."""
    twin = build(Options(batch_sizes=(16, 4)), device_context).networks["baseline_4"].model
    assert torch.equal(torch.cat(study.seen), epoch_permutation(0, 0, study.batches.num_rows)[:32])
    sgd = torch.optim.SGD(twin.parameters(), lr=0.05)
    data, total_steps, losses = study.networks["baseline_4"].data.train, 4 * -(-study.batches.num_rows // 4), []
    for number, rows in enumerate(torch.cat(study.seen).split(4)):
        sgd.param_groups[0]["lr"] = 0.05 * (1 + torch.cos(torch.tensor(torch.pi * number / total_steps))) / 2
        sgd.zero_grad()
        loss = cross_entropy(twin(data.features[rows]), data.targets[rows])
        loss.mean().backward()
        sgd.step()
        losses.append(float(loss.detach().mean()))
    for ours, theirs in zip(study.networks["baseline_4"].model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert study.losses["baseline_4"] == pytest.approx(
        [statistics.fmean(losses[:4]), statistics.fmean(losses[4:])], rel=1e-4
    )
    assert [study.networks[name].step_count for name in study.networks] == [8, 8, 2, 2]


def test_the_ratio_is_that_of_the_mean_losses_where_batch_norm_helps_least(study):
    found = study.evaluate("test")
    ratios = [sum(study.losses[f"norm_{size}"]) / sum(study.losses[f"baseline_{size}"]) for size in (4, 16)]
    assert [found["loss_ratio_4"], found["loss_ratio_16"]] == pytest.approx(ratios)
    assert found["loss_ratio"] == pytest.approx(max(ratios))
    assert found["accuracy"] == found["accuracy_norm_16"]
    assert [float(each["loss"]) / 16 for each in study.sums] == pytest.approx(study.losses["norm_16"])


def test_a_state_brings_back_every_network_and_every_curve(study, device_context):
    other = build(Options(batch_sizes=(16, 4)), device_context)
    other.load_state_dict(study.state_dict())
    assert other.losses == study.losses
    assert other.batches.state_dict() == study.batches.state_dict()
    for name, each in study.networks.items():
        theirs = other.networks[name].model.state_dict()
        assert all(torch.equal(value, theirs[key]) for key, value in each.model.state_dict().items())


def test_the_report_has_a_curve_with_and_without_for_each_size(study):
    (panel, *_) = study.panels()
    assert [axes.get_title(loc="left") for axes in panel.plot.figure.axes] == ["batches of 4", "batches of 16"]
    assert [len(axes.lines) for axes in panel.plot.figure.axes] == [2, 2]
    assert list(panel.plot.figure.axes[0].lines[1].get_ydata()) == study.losses["baseline_4"]


@pytest.mark.parametrize(("sizes", "words"), [((), "at least one number"), ((2, 3, 8), "divide the largest, 8, got 3")])
def test_sizes_that_do_not_fit_are_told(sizes, words):
    with pytest.raises(UserError, match=words):
        checked_sizes(sizes)
    assert checked_sizes((8, 2, 8)) == [2, 8]


def test_data_without_neighbours_is_told(capsys, tmp_path):
    assert main(["train", "batchnorm-study", "--data", "iris", "--runs", str(tmp_path)]) == 2
    assert "expected images" in capsys.readouterr().err
    recipe = find_recipe("batchnorm-study")
    data_info = build(Options(batch_sizes=(16,)), setup_device("cpu", threads=1)[0]).data_info
    data_info = dataclasses.replace(data_info, feature_shape=(1, 4, 9), feature_names=data_info.feature_names[:36])
    with pytest.raises(UserError, match="at least 8 x 8 pixels, got 4 x 9"):
        recipe.model(Options(), data_info)


@dataclasses.dataclass(frozen=True)
class Chosen(SupervisedOptions):
    data: str = "iris"


@pytest.mark.parametrize(
    ("batch_size", "micro_batch_size", "lone"),
    [(1, 0, True), (10, 0, False), (33, 0, True), (10, 3, True), (10, 4, False), (10, 1, True), (10_000, 0, False)],
)
def test_a_lone_row_in_batch_norm_is_told_before_the_run_begins(device_context, batch_size, micro_batch_size, lone):
    options = Chosen(batch_size=batch_size, micro_batch_size=micro_batch_size)
    data = load_classification_data(options, device_context)
    data = dataclasses.replace(data, train=data.train.take(torch.arange(100)))  # ten batches of ten
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))

    def task(net):
        return supervised_task(
            Classification, net, cross_entropy, torch.optim.SGD(net.parameters(), 0.1), data, options, device_context
        )

    assert task(nn.Linear(4, 3)).batches.batch_size == batch_size  # without batch norm any size will do
    if lone:
        with pytest.raises(
            UserError, match=r"layer 1 \(BatchNorm1d\) while training, got one: a batch of 1 .*--batch-size"
        ):
            task(model)
    else:
        list(map(task(model).step, task(model).batches))  # torch would stop at a lone row
