"""The supervised step against its definition: gradient, clipping, schedule, evaluation, ranks, divergence."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn

from process_group import in_processes
from quoin.data import BatchSampler
from quoin.losses import squared_loss
from quoin.models import LinearRegression
from quoin.optim import cosine, step_decay, with_warmup
from quoin.train import DeviceContext, NonFiniteLossError
from quoin.train.checkpoint import checkpoint_steps
from quoin.train.processes import num_processes, process_rank
from tasks import (
    Disk,
    classification,
    difference,
    left_behind,
    new_folder,
    numbers_dataset,
    parted,
    regression,
    run_loop,
)


@pytest.fixture
def data():
    return parted(numbers_dataset(), 16, 6)


@pytest.fixture
def classes():
    return parted(numbers_dataset(classes=3), 16, 6)


def linear(task) -> nn.Linear:
    return task.model.linear


def gradient(task, rows):
    task.step(rows)
    return torch.cat([each.grad.flatten() for each in task.model.parameters()])


@pytest.mark.parametrize("micro_batch_size", [0, 1, 3, 5, 8, 100])
def test_micro_batches_add_up_to_the_gradient_of_the_whole_batch(classes, micro_batch_size):
    rows = torch.arange(11)
    task = classification(classes, batch_size=11, micro_batch_size=micro_batch_size)
    model = copy.deepcopy(task.model)
    nn.functional.cross_entropy(
        model(classes.train.features[rows]), classes.train.targets[rows]
    ).backward()  # the mean over the batch
    expected = torch.cat([each.grad.flatten() for each in model.parameters()])  # pyright: ignore
    torch.testing.assert_close(gradient(task, rows), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("micro_batch_size", [0, 3])
def test_clipping_bounds_the_norm_of_the_whole_gradient_and_keeps_its_direction(data, micro_batch_size):
    rows = torch.arange(8)
    free = gradient(regression(data), rows)
    bound = free.norm().item() / 2
    clipped = gradient(regression(data, max_grad_norm=bound, micro_batch_size=micro_batch_size), rows)
    assert clipped.norm().item() == pytest.approx(bound, rel=1e-4)
    torch.testing.assert_close(clipped / clipped.norm(), free / free.norm())
    torch.testing.assert_close(gradient(regression(data, max_grad_norm=10 * bound), rows), free)


@pytest.mark.parametrize("schedule", [cosine, step_decay, with_warmup(cosine, 0.3)])
def test_the_learning_rate_of_every_step_is_the_schedules_and_survives_a_resumption(
    data, schedule, tmp_path, monkeypatch
):
    Disk(monkeypatch, tmp_path)
    rates = []

    def watched():
        task = regression(data, lr=0.4, epochs=5, schedule=schedule, batch_size=5)  # 16 rows: four steps an epoch
        step = task.step
        task.step = lambda rows: (step(rows), rates.append(task.updater.optimizer.param_groups[0]["lr"]))[0]
        return task

    run = new_folder(tmp_path)
    run_loop(watched(), run, epochs=5, max_steps=7)
    assert rates == pytest.approx([0.4 * schedule(step / 20) for step in range(7)])
    rates.clear()
    run = new_folder(tmp_path)
    run_loop(watched(), run, epochs=2)
    state, _ = run.load_checkpoint() or ({}, 0)
    second = watched()
    second.load_state_dict(state["task"])
    for rows in second.batches:
        second.step(rows)
    for rows in second.batches:
        second.step(rows)
    assert rates == pytest.approx([0.4 * schedule(step / 20) for step in range(12)])


def test_one_step_of_gradient_descent_is_the_equation(data):
    """w - lr mean((w x + b - y) x), from w = 0 and b = 0."""
    task, rows = regression(data, lr=0.1), torch.tensor([3, 1, 4])
    x, y = data.train.features[rows].double(), data.train.targets[rows].double()
    task.step(rows)
    torch.testing.assert_close(linear(task).weight[0].double(), 0.1 * (y[:, None] * x).mean(0), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(linear(task).bias[0].double(), 0.1 * y.mean(), rtol=1e-5, atol=1e-7)


def test_evaluation_is_the_exact_mean_whatever_the_pieces(data, classes, monkeypatch):
    from quoin.tasks import supervised

    task = classification(classes)
    logits, targets = task.model(classes.train.features).detach().double(), classes.train.targets
    expected = {
        "loss": nn.functional.cross_entropy(logits, targets).item(),
        "accuracy": (logits.argmax(1) == targets).double().mean().item(),
    }
    for rows in (1, 3, 5, 16, 4096):  # 16 rows in pieces of 5: the last has one
        monkeypatch.setattr(supervised, "EVALUATION_ROWS", rows)
        assert task.evaluate("train") == pytest.approx(expected, rel=1e-6)
        assert task.evaluate("train")["accuracy"] == expected["accuracy"]
    numbers = regression(data)
    targets = data.target_scaler.inverse_transform(data.test.targets)  # pyright: ignore
    center = data.target_scaler.mean  # pyright: ignore
    assert numbers.evaluate("test")["rmse"] == pytest.approx(
        (targets - center).square().mean().sqrt().item(), rel=1e-5
    )  # w = b = 0


def test_an_empty_part_has_no_metrics(tmp_path, monkeypatch):
    Disk(monkeypatch, tmp_path)
    data = parted(numbers_dataset(), 24, 0)
    task, run = regression(data), new_folder(tmp_path)
    assert task.evaluate("validation") == {}
    run_loop(task, run)
    assert all(set(line) == {"step", "epoch", "seconds", "train_loss"} for line in run.metrics())


@pytest.mark.parametrize("world_size", [2, 3])
def test_the_ranks_rows_together_are_the_global_batch(data, world_size):
    alone = regression(data, batch_size=7)
    ranks = [
        regression(data, batch_size=7, device_context=DeviceContext(rank=rank, world_size=world_size))
        for rank in range(world_size)
    ]
    for whole, *shares in zip(alone.batches, *(task.batches for task in ranks)):
        assert torch.cat(shares).tolist() == whole.tolist()
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert alone.updater.total_steps == ranks[0].updater.total_steps


def gradients_of_an_epoch(micro_batch_sizes: list[int]) -> list[list[list[float]]]:
    """For each size that of each step, in every process the same: the updater adds up what the processes have."""
    found, context = [], DeviceContext(rank=process_rank(), world_size=num_processes())
    for size in micro_batch_sizes:
        how = {"batch_size": 7, "micro_batch_size": size, "device_context": context}
        task = regression(parted(numbers_dataset(), 16, 6), lr=0.0, **how)
        nn.init.ones_(linear(task).bias)  # from zero weights the bias would have no part in it
        found.append([gradient(task, rows).tolist() for rows in task.batches])
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_the_ranks_gradients_add_up_to_that_of_the_global_batch(data, world_size):
    """16 rows in batches of 7: fractions of 7 are uneven, and of the last two rows a third rank gets none."""
    model, expected = LinearRegression(3), []
    for rows in regression(data, batch_size=7).batches:
        model.zero_grad()
        nn.init.zeros_(model.linear.weight)
        nn.init.ones_(model.linear.bias)
        squared_loss(model(data.train.features[rows]), data.train.targets[rows]).mean().backward()
        expected.append(torch.cat([each.grad.flatten() for each in model.parameters()]))  # pyright: ignore
    sizes, function = [0, 2], "test_supervised:gradients_of_an_epoch"
    ranks = [gradients_of_an_epoch(sizes)] if world_size == 1 else in_processes(world_size, function, sizes)
    for found in ranks:
        both = torch.stack(expected).expand(len(sizes), -1, -1)
        torch.testing.assert_close(torch.tensor(found), both, rtol=1e-5, atol=1e-6)


def test_ranks_totals_together_are_the_whole_epochs_mean():
    """Sums and counts add over ranks; means of uneven shares would not."""
    values = torch.arange(10.0).square()
    sums, count = 0.0, 0
    for rank in range(3):
        for rows in BatchSampler(10, 7, seed=0, rank=rank, world_size=3):
            sums, count = sums + values[rows].sum().item(), count + len(rows)
    assert (count, sums / count) == (10, values.mean().item())


# Divergence


def test_a_rate_far_too_large_stops_at_the_first_bad_step_and_keeps_finite_weights(data, tmp_path):
    run = new_folder(tmp_path)
    with pytest.raises(NonFiniteLossError, match=r"not finite at step 2; first bad tensor: .*--lr") as caught:
        run_loop(regression(data, lr=1e30), run)
    assert caught.value.exit_code == 1
    assert checkpoint_steps(run.checkpoints) == [1]
    state, _ = run.load_checkpoint() or ({}, 0)
    assert all(weight.isfinite().all() for weight in state["task"]["model"]["weights"].values())


def test_a_step_that_overflows_the_weights_is_not_saved(data, tmp_path):
    """The loss of step 1 is finite, what the step does to the weights is not."""
    task, run = regression(data, lr=1e38), new_folder(tmp_path)
    task.loss_fn = lambda outputs, targets: 100 * (outputs - targets).square()
    with pytest.raises(NonFiniteLossError, match=r"parameter linear\.\w+ is not finite after step 1"):
        run_loop(task, run)
    assert checkpoint_steps(run.checkpoints) == []


def test_a_run_stopped_by_divergence_keeps_the_checkpoint_before(classes, tmp_path):
    task, run = classification(classes), new_folder(tmp_path)
    step = task.step

    def poisoned(rows):
        if task.step_count == 3:
            with torch.no_grad():
                next(iter(task.model.parameters())).fill_(math.nan)
        return step(rows)

    task.step = poisoned
    name = next(iter(dict(task.model.named_parameters())))
    with pytest.raises(
        NonFiniteLossError, match=f"the loss is not finite at step 4; first bad tensor: parameter {name}"
    ):
        run_loop(task, run)
    assert checkpoint_steps(run.checkpoints) == [2, 3]
    healthy = classification(classes)
    run_loop(healthy, run, resume=True)  # with the cause gone, the run goes on
    other = new_folder(tmp_path)
    run_loop(classification(classes), other)
    assert difference(left_behind(other), left_behind(run)) is None


def test_a_nan_among_the_features_is_named(classes):
    features = classes.train.features.clone()
    features[5, 1] = math.nan
    task = classification(dataclasses.replace(classes, train=dataclasses.replace(classes.train, features=features)))
    task.step(torch.tensor([0, 1]))
    with pytest.raises(NonFiniteLossError, match="first bad tensor: the batch's features"):
        task.step(torch.tensor([4, 5]))


def test_an_output_that_overflows_is_named(data):
    task = regression(data)
    with torch.no_grad():
        linear(task).weight.fill_(3e38)
    with pytest.raises(NonFiniteLossError, match=r"the output of linear \(Linear\)"):
        task.step(torch.arange(8))


def test_a_loss_that_alone_overflows_is_named(data):
    task = regression(data)
    with torch.no_grad():
        linear(task).bias.fill_(1e30)
    with pytest.raises(NonFiniteLossError, match="the loss itself"):
        task.step(torch.arange(8))
