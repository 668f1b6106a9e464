"""Every setting of a run does something, and a study's runs are the runs they stand for.

Settings are found in their dataclass. What is watched is what a step finds around it: threads, algorithms, autocast,
the compiler, the layout of images, where checkpoints are written, when the run ends; a setting that changes none of
these fails by its name.
"""

import contextlib
import dataclasses
import json
import shutil
import typing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from commands import refused, tried
from observing import other_values, stepped_rates
from quoin.options import flag_name
from quoin.runs import RunConfig, find_recipe, recipe_names
from quoin.train import DeviceContext, RunFolder

pytestmark = pytest.mark.usefixtures("one_thread")

# Values that bite where the derived ones may not; a GPU may be absent, and is then asked for in vain.
TELLING: dict[str, list[Any]] = {
    "num_threads": [2],
    "checkpoint_every": [3],
    "max_steps": [5],
    "device": ["cuda:99"],
    "log": ["tensorboard"],
    "log_every": [3],
}
FOR_A_GPU = {
    "device",
    "precision",
}  # refused by name on the CPU; what precision does there: test_precision_is_that_of_the_forward_pass
TOGETHER = {"processes", "shard"}  # what they change is seen in test_several_processes.py
# The base: long enough for two epochs, and for all to be seen in the first.
BASE = ("train", "lenet", "--epochs", 2, "--batch-size", 512, "--log", "csv", "--json")


class Around:
    """What the steps of one run found around them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, runs: Path, words: list[object]) -> None:
        self.seen: dict[str, Any] = {
            "threads": set(),
            "deterministic": set(),
            "autocast": set(),
            "layouts": set(),
            "compiled": 0,
        }
        self.seen["checkpoints"] = []
        with monkeypatch.context() as patch:
            patch.setattr(torch, "compile", self._compile)
            patch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")  # there is a compiler
            save = RunFolder.save_checkpoint
            patch.setattr(
                RunFolder, "save_checkpoint", lambda folder, state, step: self._saved(step) or save(folder, state, step)
            )
            handle = register_module_forward_pre_hook(self._look)
            try:
                code, out, err = tried(*BASE, *words, "--runs", runs)
            finally:
                handle.remove()
        assert code == 0, err
        told = json.loads(out)
        self.seen["steps"] = told["steps"]
        log = Path(told["run"]) / "log"
        self.seen["log"] = sorted(each.name for each in log.iterdir())
        self.seen["logged"] = [len(each.read_text().splitlines()) for each in sorted(log.glob("*.csv"))]

    def _compile(self, function: Any, **how: Any) -> Any:
        self.seen["compiled"] += 1
        return function

    def _saved(self, step: int) -> None:
        self.seen["checkpoints"].append(step)

    def _look(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        if not module.training:
            return
        self.seen["threads"].add(torch.get_num_threads())
        self.seen["deterministic"].add(torch.are_deterministic_algorithms_enabled())
        self.seen["autocast"].add(torch.is_autocast_enabled("cpu"))
        if isinstance(module, nn.Conv2d) and isinstance(given[0], Tensor) and given[0].shape[1] > 1:
            self.seen["layouts"].add(given[0].is_contiguous(memory_format=torch.channels_last))


def _flags(name: str, value: Any) -> list[object]:
    if isinstance(value, bool):
        return [flag_name(name) if value else flag_name(name).replace("--", "--no-", 1)]
    return [flag_name(name), value]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> dict[str, Any]:
    """What is found by default."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return Around(monkeypatch, tmp_path_factory.mktemp("runs"), []).seen


ELSEWHERE = {"checkpoint_activations", *TOGETHER}  # tests/test_checkpointing.py: LeNet has no blocks


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(RunConfig) if each.name not in ELSEWHERE])
def test_every_setting_changes_what_a_run_finds(name, base, tmp_path, monkeypatch):
    kind = typing.get_type_hints(RunConfig)[name]
    values = TELLING.get(name) or other_values(kind, getattr(RunConfig(), name))
    assert values, f"give TELLING another value of {name}"
    found = []
    for value in values:
        if name in FOR_A_GPU:
            assert flag_name(name) in refused(*BASE, *_flags(name, value), "--runs", tmp_path)
        else:
            found.append(Around(monkeypatch, tmp_path, _flags(name, value)).seen)
    # "auto" is one of the layouts: all but it must differ.
    assert all(found[0] != other for other in found[1:])
    assert not found or any(base != each for each in found), f"{name} changes nothing"


def test_what_a_run_sets_is_put_back(tmp_path):
    """A notebook that trains goes on with the threads and the algorithms that it had."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    code, out, _ = tried(
        "train", "mlp", "--max-steps", 2, "--num-threads", 2, "--deterministic", "--json", "--runs", tmp_path
    )
    assert code == 0
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert tried("resume", json.loads(out)["run"])[0] == 0
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


DESCENDING = [name for name in recipe_names() if hasattr(find_recipe(name).options, "micro_batch_size")]
QUICK = ("diffusion-2d", "gan", "lenet", "mlp", "transformer-lm")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.deep) for name in DESCENDING]
)
def test_precision_is_that_of_the_forward_pass(name):
    """Wherever a gradient is followed, some of the forward pass of a step is under autocast to the dtype that was asked
    for."""
    recipe = find_recipe(name)
    small = {"num_pairs": 200, "num_texts": 200, "num_examples": 64, "epochs": 1, "batch_size": 8}
    names = {each.name for each in dataclasses.fields(recipe.options)}
    options = recipe.options(**{key: value for key, value in small.items() if key in names})
    task = recipe.build(options, DeviceContext(autocast_dtype=torch.bfloat16))
    seen = set()

    def look(module: nn.Module, given: tuple[Any, ...]) -> None:
        seen.add(torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"))

    handle = register_module_forward_pre_hook(look)
    try:
        with contextlib.suppress(RuntimeError):  # a CPU may have no LSTM in that dtype: it was asked for all the same
            task.step(next(iter(task.batches)))
    finally:
        handle.remove()
    assert torch.bfloat16 in seen


@pytest.mark.parametrize(
    ("flag", "member", "own"), [("--seeds", "seed-1", ("--seed", 1)), ("--folds", "fold-1", ("--fold", "1/2"))]
)
def test_a_run_of_a_study_is_the_run_that_it_stands_for(flag, member, own, tmp_path):
    """To the bit, and so in every option: the same lines and the same result as without the study, at the rates of the
    same schedule."""
    asked = (
        "train",
        "mlp",
        "--epochs",
        3,
        "--batch-size",
        256,
        "--schedule",
        "cosine",
        "--warmup-ratio",
        0.2,
        "--num-threads",
        1,
        "--json",
    )
    rates: list[dict[int, list[list[float]]]] = [{}, {}]
    found = []
    for words, noted in zip(((flag, 2), own), rates):
        with stepped_rates(noted):
            code, out, err = tried(*asked, *words, "--runs", tmp_path)
        assert code == 0, err
        found.append(Path(json.loads(out)["run"]))
    of_multirun, alone = found[0] / member, found[1]
    curves = [list(each.values()) for each in rates]
    assert curves[0] == 2 * curves[1]  # both members, at the rates of the one run
    assert len(curves[1][0]) == json.loads((alone / "result.json").read_text())["steps"] > 3
    assert _told(of_multirun) == _told(alone)


def _told(run: Path) -> Any:
    clock = ("seconds", "saving_seconds", "peak_memory")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((run / "result.json").read_text())
    return [{name: value for name, value in each.items() if name not in clock} for each in (*lines, result)]
