"""The comparison of a convolutional network with a perceptron is fair: alike in size, rows and images, but for what is
compared."""

import dataclasses

import pytest
import torch

from quoin.cli import main
from quoin.data import background
from quoin.models import num_parameters
from quoin.recipes import inductive_bias
from quoin.tasks.inductive_bias import mlp_of_size, permute_pixels, shift_images, take_train_rows
from quoin.tasks.supervised_data import load_image_data
from quoin.train import DeviceContext

OPTIONS = inductive_bias.Options(num_rows=(20, 40), epochs=1)


@pytest.fixture(scope="module")
def data():
    return load_image_data(OPTIONS, DeviceContext())


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28)])
def test_both_have_as_many_parameters(data, shape):
    names = tuple(map(str, range(shape[0] * shape[1] * shape[2])))
    data_info = dataclasses.replace(data.data_info, feature_shape=shape, feature_names=names)
    size = num_parameters(inductive_bias.model(OPTIONS, data_info))
    mlp = mlp_of_size(size, data_info, generator=torch.Generator())
    assert abs(size - num_parameters(mlp)) <= (len(names) + 1 + 10) / 2


def test_scrambling_is_one_order_for_all_images(data):
    mixed = permute_pixels(data, 3)
    order = None
    for part in ("train", "validation", "test"):
        before, after = getattr(data, part), getattr(mixed, part)
        assert torch.equal(before.targets, after.targets)
        assert torch.equal(before.features.flatten(1).sort().values, after.features.flatten(1).sort().values)
        if order is None:  # found from the training images, whose columns tell most pixels apart
            same = (before.features.flatten(1)[:, None, :] == after.features.flatten(1)[:, :, None]).all(
                0
            )  # (new, old)
            assert same.any(1).all()
            order = same.int().argmax(1)
        assert torch.equal(before.features.flatten(1)[:, order], after.features.flatten(1))
    assert not torch.equal(mixed.test.features, data.test.features)
    assert torch.equal(mixed.test_images.flatten(1), data.test_images.flatten(1)[:, order])


def test_moving_is_by_a_pixel_at_most_and_leaves_black_behind(data):
    moved = shift_images(data, OPTIONS.shift, OPTIONS.seed)
    black = float(background(data.feature_scaler))
    padded = torch.nn.functional.pad(data.test.features, (1, 1, 1, 1), value=black)
    windows = [padded[..., top : top + 8, left : left + 8] for top in range(3) for left in range(3)]
    matches = torch.stack([(window == moved.test.features).flatten(1).all(1) for window in windows])
    assert matches.any(0).all()
    assert (matches.sum(1) > 0.05 * len(data.test.features)).all()  # each of the nine is taken about as often
    shown = data.feature_scaler.transform(moved.test_images)
    torch.testing.assert_close(shown, moved.test.features)  # the report shows what the networks saw
    still = shift_images(data, 0, OPTIONS.seed)
    assert torch.equal(still.train.features, data.train.features)


def test_fewer_rows_are_among_more(data):
    few, more = (take_train_rows(data, count, 0).train for count in (20, 40))
    assert torch.equal(few.features, more.features[:20])
    assert torch.equal(few.targets, more.targets[:20])


def test_all_take_as_many_steps_and_end_as_their_schedule_says():
    torch.manual_seed(0)
    task = inductive_bias.build(OPTIONS, DeviceContext())
    for rows in task.batches:
        task.step(rows)
    assert len(task.others) == 7
    assert {each.step_count for each in (task, *task.others.values())} == {2}  # 40 rows in batches of 32
    assert {each.updater.total_steps for each in task.others.values()} == {2}
    assert task.others["mlp", 20].batches.epoch == 1  # 20 rows are one batch: the second step is a second pass
    found = task.evaluate("test")
    errors = task.errors()
    assert found["cnn_error_reduction"] == pytest.approx(sum(errors["mlp"]) / 2 - sum(errors["cnn"]) / 2)
    assert found["scrambled_cnn_error_reduction"] == pytest.approx(
        sum(errors["scrambled_mlp"]) / 2 - sum(errors["scrambled_cnn"]) / 2
    )
    assert 1 - errors["cnn"][-1] == pytest.approx(found["accuracy"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--num-rows", "50", "5000"], "up to the 1258 there are to train on, got 5000"),
        (["--data", "iris"], "expected images"),
        (["--num-rows", "0"], "--num-rows must be at least 1"),
    ],
)
def test_what_cannot_be_compared_is_told(words, told, tmp_path, capsys):
    assert main(["train", "inductive-bias", *words, "--runs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
