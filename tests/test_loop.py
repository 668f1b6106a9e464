"""The loop: the protocol on three unlike learners, when it stops, what it keeps, and how it lets itself be
interrupted."""

import io
import itertools
import math
import signal
import sys

import pytest
import torch

from quoin.data import BatchSampler
from quoin.errors import UserError
from quoin.train import MeanMetrics, NonFiniteLossError, Progress, Trainer
from quoin.train.checkpoint import checkpoint_steps
from quoin.train.interrupt import Interrupt
from quoin.train.monitor import Monitor
from tasks import (
    BATCH,
    KINDS,
    ROWS,
    Crash,
    Disk,
    TwoBumps,
    TwoPlayers,
    TwoWeights,
    difference,
    left_behind,
    new_folder,
    run_loop,
)

NUM_BATCHES = math.ceil(ROWS / BATCH)


@pytest.fixture(autouse=True)
def quick_disk(tmp_path, monkeypatch):
    """No true syncs: nothing here cuts the power."""
    Disk(monkeypatch, tmp_path)


def dying_at(kind, step: int):
    """A learner of this kind that dies in the middle of a step, its weights already moved."""
    task = kind()
    steps, count = task.step, [0]

    def fatal_step(rows):
        sums = steps(rows)
        count[0] += 1
        if count[0] == step:
            raise Crash
        return sums

    task.step = fatal_step
    return task


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("checkpoint_every", [1, 3, 0])
def test_killed_at_any_step_it_resumes_to_the_same_bits(kind, checkpoint_every, tmp_path):
    run = new_folder(tmp_path / "whole")
    run_loop(kind(), run, checkpoint_every=checkpoint_every)
    whole = left_behind(run)
    assert [line["step"] for line in whole["metrics"]] == [4, 8, 12]
    for step in range(1, 3 * NUM_BATCHES + 1):
        run = new_folder(tmp_path / "killed")
        with pytest.raises(Crash):
            run_loop(dying_at(kind, step), run, checkpoint_every=checkpoint_every)
        run_loop(kind(), run, resume=True, checkpoint_every=checkpoint_every)
        assert difference(whole, left_behind(run)) is None


def test_the_three_learners_learn(tmp_path):
    weights, bumps, players = TwoWeights(), TwoBumps(), TwoPlayers()
    untrained = weights.evaluate("validation")["loss"]
    run_loop(weights, new_folder(tmp_path), epochs=40, checkpoint_every=0)
    assert weights.evaluate("validation")["loss"] < untrained / 10
    run = new_folder(tmp_path)
    run_loop(bumps, run, epochs=8, checkpoint_every=0)
    likelihoods = [line["validation_loss"] for line in run.metrics()]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(likelihoods))  # EM never goes back
    assert likelihoods[-1] < likelihoods[0]
    run = new_folder(tmp_path)
    run_loop(players, run, epochs=60, checkpoint_every=0)
    assert min(line["validation_centre"] for line in run.metrics()) < 0.2  # two players circle the answer: they pass it


def test_training_metrics_are_means_over_every_row_of_an_epoch(tmp_path):
    """Three batches of 4 and one of 1: a mean of batch means would weigh the last row four times."""
    task, seen = TwoWeights(), []
    step = task.step
    task.step = lambda rows: (seen.append((step(rows)["loss"].item(), len(rows))), {"loss": torch.tensor(seen[-1][0])})[
        1
    ]
    run = new_folder(tmp_path)
    run_loop(task, run, epochs=1)
    assert [rows for _, rows in seen] == [4, 4, 4, 1]
    assert run.metrics()[0]["train_loss"] == pytest.approx(math.fsum(loss for loss, _ in seen) / ROWS, rel=1e-14)


def test_totals_are_exact_over_uneven_batches():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 1e3
    totals = MeanMetrics()
    for piece in values.split([1, 499, 7, 493]):
        totals.add({"loss": piece.double().sum()}, len(piece))
    assert totals.compute()["loss"] == pytest.approx(math.fsum(values.tolist()) / 1000, rel=1e-13)
    assert MeanMetrics().compute() == {}
    elsewhere = MeanMetrics()
    elsewhere.add({"loss": torch.zeros((), device="meta")}, 1)  # as on a GPU, where reading would stall
    assert not elsewhere.on_host
    assert elsewhere.sums["loss"].dtype == torch.float64


@pytest.mark.parametrize("max_steps", [1, 3, 4, 5, 8, 11, 12])
def test_max_steps_is_the_number_of_steps(max_steps, tmp_path):
    run = new_folder(tmp_path)
    trainer = run_loop(TwoWeights(), run, max_steps=max_steps)
    assert trainer.at.step == max_steps
    assert trainer.at.finished
    assert checkpoint_steps(run.checkpoints)[-1] == max_steps
    assert run.metrics()[-1]["step"] == max_steps
    assert run.metrics()[-1]["epoch"] == max_steps / NUM_BATCHES


def test_a_finished_run_that_is_resumed_stays_as_it_is(tmp_path):
    run = new_folder(tmp_path)
    run_loop(TwoWeights(), run)
    before = left_behind(run)
    run_loop(TwoWeights(), run, resume=True)
    assert difference(before, left_behind(run)) is None


# Best and patience


class Scripted(TwoWeights):
    """A learner whose validation follows a script, one value an epoch; its weight tells the epoch."""

    def __init__(self, script: list[float]) -> None:
        super().__init__()
        self.script = script

    def step(self, rows):
        with torch.no_grad():
            self.line.weight.fill_(self.batches.epoch)
        return {"loss": torch.tensor(1.0)}

    def evaluate(self, split: str) -> dict[str, float]:
        return {"loss": self.script[int(self.line.weight.item())]}


@pytest.mark.parametrize(
    ("script", "patience", "stops_after", "best"),
    [
        ([5, 4, 3, 2, 1], 2, 5, 4),  # better to the end
        ([5, 1, 2, 3, 4], 2, 4, 1),  # two epochs without a better one
        ([5, 1, 2, 3, 4], 0, 5, 1),  # no patience set: every epoch, and the best of them
        ([1, 1, 1, 1, 1], 3, 4, 0),  # as good is not better
        ([3, 4, 2, 4, 4], 2, 5, 2),  # a better one starts the count again
    ],
)
def test_patience_stops_and_the_best_model_is_restored(script, patience, stops_after, best, tmp_path):
    for killed_at in (None, 1, 6, 9, 13):
        run = new_folder(tmp_path)
        if killed_at:
            task = Scripted(script)
            step, count = task.step, [0]

            def fatal(rows, step=step, count=count, killed_at=killed_at):
                count[0] += 1
                if count[0] == killed_at:
                    raise Crash
                return step(rows)

            task.step = fatal
            with pytest.raises(Crash):
                run_loop(task, run, epochs=5, monitor=Monitor("validation_loss"), patience=patience)
        task = Scripted(script)
        trainer = run_loop(
            task, run, epochs=5, monitor=Monitor("validation_loss"), patience=patience, resume=bool(killed_at)
        )
        assert len(run.metrics()) == stops_after
        assert trainer.at.best_step == (best + 1) * NUM_BATCHES
        assert task.evaluate("validation")["loss"] == script[best]
        assert task.line.weight.item() == best


def test_without_a_goal_the_last_weights_stay(tmp_path):
    task = Scripted([1, 2, 3])
    run_loop(task, new_folder(tmp_path))
    assert task.line.weight.item() == 2


# Divergence


def test_a_loss_that_is_not_finite_stops_the_run_at_that_step(tmp_path):
    task = TwoWeights()
    step = task.step
    task.step = lambda rows: step(rows) if task.batches.position < 3 else {"loss": torch.tensor(math.nan)}
    run = new_folder(tmp_path)
    with pytest.raises(NonFiniteLossError, match="loss is not finite at step 3"):
        run_loop(task, run)
    assert checkpoint_steps(run.checkpoints)[-1] == 2


def test_an_evaluation_that_is_not_finite_stops_the_run(tmp_path):
    run = new_folder(tmp_path)
    with pytest.raises(NonFiniteLossError, match="validation_loss is not finite at step 8"):
        run_loop(Scripted([1, math.inf, 1]), run)
    assert len(run.metrics()) == 1
    assert checkpoint_steps(run.checkpoints)[-1] == 7


# Interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at_step", [1, 4, 6, 12])
def test_a_signal_ends_the_run_after_the_step_and_it_resumes_to_the_same_bits(number, at_step, tmp_path):
    run = new_folder(tmp_path)
    run_loop(TwoWeights(), run, checkpoint_every=0)
    whole = left_behind(run)
    task, run = TwoWeights(), new_folder(tmp_path)
    step, count = task.step, [0]

    def interrupted(rows):
        count[0] += 1
        if count[0] == at_step:
            signal.raise_signal(number)
        return step(rows)

    task.step = interrupted
    trainer = Trainer(task, run, epochs=3)
    ending = trainer.run()
    assert (ending.finished, ending.step) == (at_step == 12, at_step)
    assert checkpoint_steps(run.checkpoints) == [at_step]
    run_loop(TwoWeights(), run, resume=True, checkpoint_every=0)
    assert difference(whole, left_behind(run)) is None


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    task, run = TwoWeights(), new_folder(tmp_path)
    moved = []

    def impatient(rows):
        signal.raise_signal(signal.SIGINT)
        moved.append("after the first")
        signal.raise_signal(signal.SIGINT)
        moved.append("after the second")
        return {}

    task.step = impatient
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_loop(task, run)
    assert moved == ["after the first"]
    assert signal.getsignal(signal.SIGINT) is before
    run_loop(TwoWeights(), run, resume=True)  # and nothing is broken


def test_sigterm_twice_is_still_polite():
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.asked


# Progress


def test_a_bar_ends_where_the_run_does(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    run_loop(
        TwoWeights(), new_folder(tmp_path), progress=Progress("small")
    )  # over before the bar is due to be drawn again
    assert f"{3 * NUM_BATCHES}/{3 * NUM_BATCHES}" in terminal.getvalue()


# Resuming


def test_resuming_from_an_older_step_ends_in_the_same_bits(tmp_path):
    run = new_folder(tmp_path)
    run_loop(TwoWeights(), run)
    whole = left_behind(run)
    older = checkpoint_steps(run.checkpoints)[0]
    trainer = Trainer(TwoWeights(), run, epochs=3, checkpoint_every=1)
    trainer.resume(older)
    assert trainer.at.step == older == 11
    assert checkpoint_steps(run.checkpoints) == [older]
    assert len(run.metrics()) == 2  # the third line was written after it
    trainer.run()
    assert difference(whole, left_behind(run)) is None


def test_a_checkpoint_that_does_not_fit_costs_no_other(tmp_path):
    run = new_folder(tmp_path)
    run_loop(TwoWeights(), run)
    steps = checkpoint_steps(run.checkpoints)
    other = TwoWeights()
    other.batches = BatchSampler(ROWS + 1, BATCH, seed=1)
    with pytest.raises(UserError, match="num_rows"):
        Trainer(other, run, epochs=3).resume(steps[0])
    assert checkpoint_steps(run.checkpoints) == steps


def test_two_checkpoints_are_kept(tmp_path):
    run = new_folder(tmp_path)
    run_loop(TwoWeights(), run, checkpoint_every=5)
    assert checkpoint_steps(run.checkpoints) == [10, 12]
