"""What each file of a run folder must hold, and the only code that reads the content of each.

A file that somebody edited, or that a disk damaged, is an error in a line that names it, what was expected and what it
got. Opening and writing are in folder.py; the options, the run config and the data info are checked further by those
who know them: `options_from_json` and `DataInfo`. What a checkpoint must hold is in run_state.py. Imports no torch: a
folder of hundreds of runs is listed at once.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from quoin.documents import Count, Must, Name, Size, checked, parse_json
from quoin.errors import UserError, did_you_mean, format_value

__all__ = [
    "ConfigFile",
    "Environment",
    "ImportedConfig",
    "MultirunConfig",
    "MultirunResultFile",
    "PeakMemory",
    "ResultFile",
    "SweepConfig",
    "SweepResultFile",
    "read_config",
    "read_environment",
    "read_metrics",
    "read_result",
    "runs_nearby",
]

_NEEDED = {
    "step": Count,
    "epoch": Annotated[float, Must("a number from 0 on", lambda number: number >= 0)],
    "seconds": float,
}

Environment = dict[Name, Name | int | bool | None]  # versions, device, threads, seed; empty for a multirun


class MultirunConfig(TypedDict):
    over: Literal["seed", "fold"]
    count: Annotated[int, Must("a whole number from 2 to 10000", lambda number: 2 <= number <= 10_000)]


class CodeConfig(TypedDict):
    """A file of the user's own code that a run was started with."""

    path: Annotated[str, Must("a path", lambda path: 0 < len(path) <= 4096)]  # as it was given
    copy: Annotated[str, Must("a path inside code/", lambda path: not {"", ".", ".."} & {*path.split("/")})]
    sha256: Annotated[str, Must("a hash of 64 digits", lambda text: len(text) == 64)]
    use: Literal["recipe", "option", "import"]  # imported by one of the others, from its folder


class SweepConfig(TypedDict):
    id: Name  # of the folder: a trial in a storage that several folders share says whose it is
    space: dict[Name, dict[str, Any]]  # by option, choices or a range
    sampler: Literal["grid", "random", "tpe"]
    pruner: Literal["none", "median", "hyperband"]
    trials: Size
    seeds: Size
    metric: Name  # by whose mean over the seeds the best trial is chosen
    greater_is_better: bool
    storage: str  # as it was given; the folder's own journal where it is empty
    jobs: Size


class ImportedConfig(TypedDict):
    """Where the weights of an imported run come from."""

    source: Annotated[str, Must("a path", lambda path: 0 < len(path) <= 4096)]
    family: Name  # how their names were read


class ConfigFile(TypedDict):
    """config.json"""

    format: Count
    recipe: Name
    folder: str  # where the run was started, seen from the run: paths among the options begin there
    kind: Name  # of learning: what the run can do follows from it
    options: dict[str, Any]  # those of the recipe
    settings: dict[str, Any]
    data: dict[str, Any] | None  # what is remembered of them; None where there are none
    package: NotRequired[Name]  # that offers the recipe, if it is neither Quoin's nor among the code
    code: NotRequired[list[CodeConfig]]  # the user's own files; copies lie in code/
    note: NotRequired[str]  # the user's, on the run
    tags: NotRequired[list[Name]]
    imported: NotRequired[ImportedConfig]  # of a run that was not trained here
    multirun: NotRequired[MultirunConfig]  # of the folder that holds the runs of a multirun
    sweep: NotRequired[SweepConfig]  # of the folder that holds the trials of a sweep


class _Target(TypedDict):
    metric: Name
    bound: Name
    value: float
    met: bool


class PeakMemory(TypedDict):
    """The most memory at a time: what torch allocated on the GPU, or what the process had of the machine's."""

    bytes: Count
    kind: Literal["gpu_allocated", "process_resident"]


class ResultFile(TypedDict):
    """result.json of a run."""

    metrics: dict[Name, float]
    target: _Target | None
    steps: Count
    epochs: Count
    best_step: Count
    seconds: float
    saving_seconds: float
    peak_memory: NotRequired[PeakMemory]  # since the run was started or resumed, where the system tells
    num_parameters: NotRequired[Count]  # of its model, where it has one


class _Statistics(TypedDict):
    mean: float
    std: float
    min: float
    max: float


class _MultirunTarget(TypedDict):
    metric: Name
    bound: Name
    met_runs: Count
    runs: Count
    met: bool


class MultirunResultFile(TypedDict):
    """result.json of a multirun over seeds or folds."""

    multirun: MultirunConfig
    metrics: dict[Name, _Statistics]
    target: _MultirunTarget | None
    seconds: float


class _BestTrial(TypedDict):
    trial: Count
    options: dict[Name, Any]
    mean: float
    std: float


class _MeanAndStd(TypedDict):
    mean: float
    std: float


class SweepResultFile(TypedDict):
    """result.json of a sweep: the best trial by validation, and its final metrics over the seeds."""

    metric: Name
    best: _BestTrial
    metrics: dict[Name, _MeanAndStd]
    complete: Count
    pruned: Count
    failed: Count
    seconds: float


def read_config(content: bytes, path: Path, *, format: int) -> ConfigFile:
    """config.json, whose `content` lay at `path`, of this format."""
    value = _object(content, path)
    if (got := value.get("format")) != format and isinstance(got, int):  # checked first: another may hold other things
        raise UserError(
            f"expected format {format}, {path} has format {format_value(got)}: install the Quoin that wrote it, or "
            "train again"
        )
    return checked(ConfigFile, value, str(path))


def read_environment(content: bytes, path: Path) -> Environment:
    return checked(Environment, _object(content, path), str(path))


def read_result(
    content: bytes, path: Path, *, of_multirun: bool, of_sweep: bool
) -> ResultFile | MultirunResultFile | SweepResultFile:
    kind = SweepResultFile if of_sweep else MultirunResultFile if of_multirun else ResultFile
    return checked(kind, _object(content, path), str(path))


def read_metrics(content: bytes, path: Path) -> list[dict[str, Any]]:
    """Every whole line of metrics.jsonl: the step, the epoch, the seconds, and metrics by name. A kill can tear the
    last line."""
    texts = [line for line in content.split(b"\n") if line.strip()]
    lines = []
    for number, text in enumerate(texts, 1):
        where = f"{path}, line {number}"
        try:
            value = parse_json(text, where)
        except UserError:
            if number == len(texts):
                break
            raise
        lines.append(_line(value, where))
    return lines


def _line(value: Any, where: str) -> dict[str, Any]:
    line: dict[str, Any] = checked(dict[Name, float], value, where)
    if missing := [name for name in _NEEDED if name not in line]:
        raise UserError(f"{where}: expected {missing[0]}, and there is none; restore the file, or take the line out")
    return line | {name: checked(kind, line[name], f"{where}, {name}") for name, kind in _NEEDED.items()}


def _object(content: bytes, path: Path) -> dict[str, Any]:
    value = parse_json(content, str(path))
    if not isinstance(value, dict):
        raise UserError(
            f"{path} should hold a JSON object, it holds {format_value(value, 40)}: restore it or train again"
        )
    return value


def runs_nearby(path: Path) -> str:
    """A hint for a run that is not there: what is beside it."""
    beside = (
        [each.name for each in path.parent.iterdir() if (each / "config.json").exists()]
        if os.path.isdir(path.parent)
        else []
    )
    if not beside:
        return "`quoin train RECIPE` makes one under runs/"
    return f"in {path.parent}/, {did_you_mean(path.name, beside)}"
