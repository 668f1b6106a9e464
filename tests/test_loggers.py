"""What a run tells to other tools: read back with TensorBoard's own reader and with polars, beside the run's own files;
exact after a kill, and without any effect on the run."""

# pyright: reportAttributeAccessIssue=false
# (the classes of protobuf messages are made when they are imported)

import dataclasses
import functools
import importlib.util
import io
import json
import os
from pathlib import Path
from typing import Any

import polars
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

from commands import refused, tried
from quoin import plot
from quoin.plot import Panel
from quoin.runs import RunConfig, find_recipe, fit_recipe, resume
from quoin.runs.run_label import RunLabel
from quoin.tasks.supervised import Classification
from quoin.train import RunEvent, RunFolder, TrainOutput
from quoin.train.loggers import RunLog
from tasks import TwoWeights, difference, left_behind

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIONS = find_recipe("mlp").options(data="iris", hidden_dims=(8,), epochs=3)  # type: ignore[call-arg]  # 4 steps each
train = functools.partial(fit_recipe, find_recipe("mlp"), OPTIONS, show_progress=False)
BOTH = RunConfig(device="cpu", num_threads=1, log=("tensorboard", "csv"), log_every=1, checkpoint_every=3)


@pytest.fixture(scope="module", autouse=True)
def few_panels():
    """Plots take most of the time of so small a run: one is enough, the confusion matrix."""
    panels = Classification.panels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Classification, "panels", lambda task: [next(iter(panels(task)))])
        patch.setattr("quoin.runs.report.report_panels", lambda task: [])
        yield


@pytest.fixture(scope="module")
def logged(tmp_path_factory) -> Path:
    return train(BOTH, tmp_path_factory.mktemp("runs"), label=RunLabel(note="a first try, «ünïcode»")).folder.path


def accumulated(run: Path) -> EventAccumulator:
    """All events as they are in the files: nothing is purged by the reader."""
    return EventAccumulator(str(run / "log"), {"scalars": 0, "images": 0, "tensors": 0}, purge_orphaned_data=False)


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    found = accumulated(run).Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_reads_the_numbers_of_the_run(logged):
    found = scalars(logged)
    lines = RunFolder.open(logged).metrics()
    single = functools.partial(torch.tensor, dtype=torch.float32)  # an event holds single precision
    for split, name in (("train", "loss"), ("validation", "loss"), ("validation", "accuracy")):
        assert found[f"{split}/{name}"] == [(line["step"], single(line[f"{split}_{name}"]).item()) for line in lines]
    result: Any = RunFolder.open(logged).result
    for name, value in result["metrics"].items():
        assert found[f"final/{name}"] == [(result["steps"], single(value).item())]
    steps = list(range(1, result["steps"] + 1))
    assert [step for step, _ in found["batch/loss"]] == [step for step, _ in found["epoch"]] == steps
    assert found["batch/lr"][-1][1] < found["batch/lr"][0][1]  # the schedule falls
    per_epoch = len(steps) // 3  # the mean of the batches is the epoch's, but for the last batch, which is smaller
    batches = [value for _, value in found["batch/loss"][:per_epoch]]
    assert min(batches) <= lines[0]["train_loss"] <= max(batches)


def test_tensorboard_shows_images_and_the_note(logged):
    found = accumulated(logged).Reload()
    assert "Confusion matrix" in found.Tags()["images"]
    (image,) = found.Images("Confusion matrix")
    assert image.encoded_image_string.startswith(b"\x89PNG")
    assert (image.width, image.height) == _size(image.encoded_image_string)
    (note,) = found.Tensors("note/text_summary")
    assert note.tensor_proto.string_val[0].decode() == "a first try, «ünïcode»"


def _size(png: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(png)).size


def test_the_options_stand_under_hparams_with_the_final_metrics(logged):
    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(logged))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(logged))
    context = backend_context.Context(base_plugin.TBContext(data_provider=provider, multiplexer=multiplexer))
    asked = api_pb2.ListSessionGroupsRequest(
        slice_size=9, allowed_statuses=[api_pb2.STATUS_SUCCESS], include_metrics=True
    )
    (group,) = list_session_groups.Handler(RequestContext(), context, "", asked).run().session_groups
    assert group.hparams["lr"].number_value == OPTIONS.lr  # type: ignore[attr-defined]
    assert group.hparams["optimizer"].string_value == OPTIONS.optimizer  # type: ignore[attr-defined]
    assert group.hparams["hidden_dims"].string_value == "8"
    values = {each.name.tag: each.value for each in group.metric_values}
    result: Any = RunFolder.open(logged).result
    assert values["final/test_accuracy"] == pytest.approx(result["metrics"]["test_accuracy"], rel=1e-6)


def test_csv_is_read_as_tables_of_numbers(logged):
    table = polars.read_csv(logged / "log" / "metrics.csv")
    lines = RunFolder.open(logged).metrics()
    for name in ("step", "epoch", "train_loss", "validation_loss", "validation_accuracy"):
        assert table[name].to_list() == [line[name] for line in lines]
        assert table[name].dtype.is_numeric()
    result: Any = RunFolder.open(logged).result
    (final,) = polars.read_csv(logged / "log" / "final.csv").rows(named=True)
    assert {name: final[f"final_{name}"] for name in result["metrics"]} == result["metrics"]
    batches = polars.read_csv(logged / "log" / "batches.csv")
    assert batches["step"].to_list() == list(range(1, result["steps"] + 1))
    assert batches.columns == ["step", "epoch", "batch_loss", "batch_lr"]


def test_a_log_changes_no_bit(logged, tmp_path):
    plain = train(RunConfig(device="cpu", num_threads=1, checkpoint_every=3), tmp_path).folder
    assert difference(left_behind(plain), left_behind(RunFolder.open(logged))) is None
    assert not (plain.path / "log").exists()


def test_only_every_so_many_steps_are_read():
    """A loss on a GPU is read, and the GPU waited for, only where it is logged."""
    read = []

    class Loss:
        def __init__(self, step: int) -> None:
            self.step = step

        def __float__(self) -> float:
            read.append(self.step)
            return 0.5

    log = RunLog([Recorder()], every=4)
    for step in range(1, 11):
        values: Any = {"loss": Loss(step)}
        log(RunEvent("step", step, step / 10, values, 1, TwoWeights(), Path(), lambda: None))
    assert read == [4, 8]
    assert [name for name, *_ in log.loggers[0].calls] == ["log_scalars"] * 2  # type: ignore[attr-defined]


class Killed(Exception):
    pass


def kill_after(step: int, event: RunEvent) -> None:
    if event.step == step:
        raise Killed


@pytest.mark.parametrize("step", [2, 7, 12])  # before the first checkpoint, within, at the last step
def test_a_killed_run_logs_each_step_once(step, logged, tmp_path):
    note = RunLabel(note="a first try, «ünïcode»")
    with pytest.raises(Killed):
        train(BOTH, tmp_path, label=note, callbacks=[functools.partial(kill_after, step)])
    log = tmp_path / "mlp-1" / "log"
    with open(log / "events.out.tfevents.000001", "ab") as file:  # torn by the kill
        file.write((log / "events.out.tfevents.000001").read_bytes()[:29])
    with open(log / "batches.csv", "a") as file:
        file.write("99,0.")
    assert resume(tmp_path / "mlp-1", show_progress=False).folder.result is not None
    assert scalars(tmp_path / "mlp-1") == scalars(logged)
    found = accumulated(tmp_path / "mlp-1").Reload().Tags()
    assert {kind: sorted(found[kind]) for kind in ("images", "tensors")} == {
        kind: sorted(accumulated(logged).Reload().Tags()[kind]) for kind in ("images", "tensors")
    }
    for name in ("batches.csv", "metrics.csv", "final.csv"):
        assert (log / name).read_bytes() == (logged / "log" / name).read_bytes()


def test_a_run_that_lost_its_report_ends_its_log_once(tmp_path):
    run = train(BOTH, tmp_path).folder
    before = scalars(run.path)
    run.directory.remove("report.html")
    resume(run.path, show_progress=False)
    assert scalars(run.path) == before
    assert len(accumulated(run.path).Reload().Images("Confusion matrix")) == 1


@pytest.mark.parametrize("name", ["log", "log/batches.csv", "log/events.out.tfevents.000001"])
def test_no_link_is_followed(name, tmp_path):
    with pytest.raises(Killed):
        train(BOTH, tmp_path, callbacks=[functools.partial(kill_after, 7)])
    entry, outside = tmp_path / "mlp-1" / name, tmp_path / "outside"
    os.rename(entry, outside)
    entry.symlink_to(outside)
    files = [outside] if outside.is_file() else sorted(outside.iterdir())
    before = [each.read_bytes() for each in files]
    assert "got a link" in refused("resume", tmp_path / "mlp-1")
    assert [each.read_bytes() for each in files] == before


def test_a_missing_package_is_told_before_the_training(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tensorboard" else find(name))
    assert "pip install 'quoin[log]'" in refused("train", "mlp", "--log", "tensorboard", "--runs", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_asked_of_a_log_is_checked(tmp_path):
    assert "choose from csv, tensorboard" in refused("train", "mlp", "--log", "csv", "wandb", "--runs", tmp_path)
    assert "add --log" in refused("train", "mlp", "--log-every", 7, "--runs", tmp_path)
    assert "at least 1" in refused("train", "mlp", "--log", "csv", "--log-every", 0, "--runs", tmp_path)


def test_the_config_keeps_the_log(logged):
    settings = json.loads((logged / "config.json").read_text())["settings"]
    assert (settings["log"], settings["log_every"]) == (["tensorboard", "csv"], 1)


class Recorder:
    """A logger of one's own: it has the methods, and no base class."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, step: int) -> None:
        self.calls.append(("begin", step))

    def log_options(self, options: Any) -> None:
        self.calls.append(("log_options", options))

    def log_scalars(self, step: int, values: Any) -> None:
        self.calls.append(("log_scalars", step, values))

    def log_image(self, step: int, name: str, png: bytes) -> None:
        self.calls.append(("log_image", step, name))

    def log_text(self, step: int, name: str, text: str) -> None:
        self.calls.append(("log_text", step, name, text))

    def close(self, *, finished: bool) -> None:
        self.calls.append(("close", finished))


def test_a_logger_of_ones_own_hears_all(tmp_path):
    recorder = Recorder()
    run = train(RunConfig(device="cpu", num_threads=1), tmp_path, loggers=[recorder])
    assert recorder.calls[:2] == [("begin", 0), ("log_options", dataclasses.asdict(OPTIONS))]
    assert recorder.calls[-1] == ("close", True)
    assert run.result is not None
    (final,) = [call[2] for call in recorder.calls if "log_scalars" in call and "final/test_loss" in call[2]]
    assert final == {"epoch": 3} | {f"final/{name}": value for name, value in run.result["metrics"].items()}
    assert ("log_image", run.result["steps"], "Confusion matrix") in recorder.calls
    assert not (run.folder.path / "log").exists()


def test_a_plot_of_a_text_is_logged_as_a_text_too():
    recorder, panel = Recorder(), Panel("Sample", lambda: plot.shaded_text(["The ", "cat", "\n", "sat."]))
    RunLog([recorder], every=1).log_panel(TrainOutput(True, 7, 1, 0.0, 0.0), panel)
    assert recorder.calls == [("log_image", 7, "Sample"), ("log_text", 7, "Sample", "The cat\nsat.")]


@pytest.mark.deep
def test_what_a_language_model_wrote_is_read_back(tmp_path):
    words = ("train", "lstm-lm", "--max-steps", 3, "--log", "tensorboard", "--runs", tmp_path)
    assert tried(*words)[0] == 0
    (sample,) = accumulated(tmp_path / "lstm-lm-1").Reload().Tensors("Sample/text_summary")
    assert len(sample.tensor_proto.string_val[0].decode()) > 50


def test_an_interrupted_run_is_closed_as_unfinished(tmp_path):
    recorder = Recorder()
    with pytest.raises(Killed):
        train(RunConfig(device="cpu"), tmp_path, loggers=[recorder], callbacks=[functools.partial(kill_after, 2)])
    assert recorder.calls[-1] == ("close", False)
    code, out, _ = tried("resume", tmp_path / "mlp-1", "--json")
    assert code == 0, out
