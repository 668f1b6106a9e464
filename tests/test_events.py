"""What a run tells its callbacks: which events, in which order, with which metrics; what stop() and an error do."""

import json

import pytest
import torch

from quoin.train import RunFolder, Trainer
from tasks import BATCH, ROWS, TwoWeights, difference, left_behind

EPOCHS = 2


def make_trainer(root, *callbacks, every=3, epochs=EPOCHS):
    config = {"kind": "study", "options": {}, "settings": {}, "data": None}
    folder = RunFolder.create(root, "two-weights", config, {})
    return Trainer(TwoWeights(), folder, epochs=epochs, checkpoint_every=every, callbacks=callbacks)


def test_events_are_told_in_the_order_in_which_they_happen(tmp_path):
    told = []
    make_trainer(tmp_path, lambda event: told.append((event.kind, event.step, event.epoch))).run()
    assert -(-ROWS // BATCH) == 4  # steps of an epoch; a checkpoint after every third step and at the end
    assert told == [
        ("step", 1, 0.25),
        ("step", 2, 0.5),
        ("step", 3, 0.75),
        ("checkpoint", 3, 0.75),
        ("step", 4, 1.0),
        ("epoch", 4, 1.0),
        ("step", 5, 1.25),
        ("step", 6, 1.5),
        ("checkpoint", 6, 1.5),
        ("step", 7, 1.75),
        ("step", 8, 2.0),
        ("epoch", 8, 2.0),
        ("checkpoint", 8, 2.0),
    ]


def test_an_epoch_is_told_before_the_checkpoint_of_its_last_step(tmp_path):
    told = []
    make_trainer(tmp_path, lambda event: told.append(event.kind), every=4, epochs=1).run()
    assert told == ["step"] * 4 + ["epoch", "checkpoint"]


def test_every_callback_is_told_in_turn(tmp_path):
    told = []
    make_trainer(tmp_path, lambda event: told.append("first"), lambda event: told.append("second"), epochs=1).run()
    assert told == ["first", "second"] * (len(told) // 2)


def test_metrics_of_each_kind(tmp_path):
    """Of a step the mean over its batch, of an epoch the line that was written, of a checkpoint none."""
    seen = {"step": [], "epoch": [], "checkpoint": []}
    trainer = make_trainer(tmp_path, lambda event: seen[event.kind].append(dict(event.metrics)))
    sums, step = [], trainer.task.step

    def counted(rows):
        found = step(rows)
        sums.append((found["loss"].item(), len(rows)))
        return found

    trainer.task.step = counted
    trainer.run()
    assert [each["loss"] for each in seen["step"]] == [total / rows for total, rows in sums]
    lines = [json.loads(line) for line in (trainer.folder.path / "metrics.jsonl").read_text().splitlines()]
    assert seen["epoch"] == [
        {name: value for name, value in line.items() if name not in ("step", "epoch", "seconds")} for line in lines
    ]
    means = [sum(total for total, _ in sums[start : start + 4]) / ROWS for start in (0, 4)]
    assert [each["train_loss"] for each in seen["epoch"]] == pytest.approx(means, rel=1e-12)
    assert seen["checkpoint"] == [{}] * 3


@pytest.mark.parametrize(("kind", "step", "ends_at"), [("step", 6, 6), ("epoch", 4, 4), ("checkpoint", 3, 4)])
def test_stop_ends_the_run_as_its_last_epoch_would(kind, step, ends_at, tmp_path):
    """In the middle of an epoch, at its end, and from a checkpoint, where the step after it is the last."""

    def stop(event):
        if (event.kind, event.step) == (kind, step):
            event.stop()

    trainer = make_trainer(tmp_path, stop, epochs=5)
    output = trainer.run()
    assert (output.finished, output.step) == (True, ends_at)
    assert trainer.folder.metrics()[-1]["step"] == ends_at  # evaluated there
    assert trainer.folder.load_checkpoint()[1] == ends_at
    again = Trainer(TwoWeights(), trainer.folder, epochs=5)
    again.resume()
    assert again.run().step == ends_at  # and stays finished


@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt()])
def test_an_error_keeps_the_last_checkpoint_and_the_resumed_run_has_the_same_bits(error, tmp_path):
    undisturbed = make_trainer(tmp_path / "whole")
    undisturbed.run()

    def fail(event):
        if (event.kind, event.step) == ("step", 5):
            raise error

    broken = make_trainer(tmp_path / "broken", fail)
    with pytest.raises(type(error)):
        broken.run()
    assert broken.folder.load_checkpoint()[1] == 3
    resumed = Trainer(TwoWeights(), RunFolder.open(broken.folder.path), epochs=EPOCHS, checkpoint_every=3)
    resumed.resume()
    resumed.run()
    assert difference(left_behind(undisturbed.folder), left_behind(resumed.folder)) is None


def test_an_event_shows_the_model_and_the_folder(tmp_path):
    folders, weights = set(), []

    def look(event):
        folders.add(event.folder)
        weights.extend([event.task.line.weight.item()] if event.kind == "step" else [])

    trainer = make_trainer(tmp_path, look, epochs=1)
    trainer.run()
    assert folders == {trainer.folder.path}
    assert len(set(weights)) == 4  # those after each step
    assert torch.equal(trainer.task.line.weight, torch.tensor([[weights[-1]]]))
