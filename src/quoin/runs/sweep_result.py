"""The best trial of a sweep: by the mean over its seeds on validation. Its test metrics are read for it alone."""

import dataclasses
from typing import TYPE_CHECKING, Any

from quoin.errors import UserError
from quoin.options import flag_name
from quoin.runs.run import Run
from quoin.runs.run_config import RunConfig
from quoin.runs.sweep_space import Space
from quoin.runs.sweep_storage import values_of
from quoin.train.run_files import SweepConfig, SweepResultFile

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["ranked", "sweep_result", "train_command"]


def ranked(trials: "list[FrozenTrial]", config: SweepConfig) -> "list[FrozenTrial]":
    """The trials that were trained to their end, the best first; of equal ones the earlier."""
    complete = [each for each in trials if each.state.name == "COMPLETE"]
    sign = -1 if config["greater_is_better"] else 1
    return sorted(complete, key=lambda each: (sign * (each.value or 0.0), each.number))


def sweep_result(trials: "list[FrozenTrial]", space: Space, config: SweepConfig) -> SweepResultFile:
    """What result.json holds."""
    if not (complete := ranked(trials, config)):
        errors = [f"trial {each.number}: {each.user_attrs['error']}" for each in trials if "error" in each.user_attrs]
        raise UserError(f"no trial of the sweep was trained to its end; {errors[0] if errors else 'all were pruned'}")
    best = complete[0]
    metrics: dict[str, Any] = best.user_attrs["metrics"]
    values = {name: list(each) if isinstance(each, tuple) else each for name, each in values_of(best, space).items()}
    mean, std = metrics[config["metric"]]
    return {
        "metric": config["metric"],
        "best": {"trial": best.number, "options": values, "mean": mean, "std": std},
        "metrics": {name: {"mean": mean, "std": std} for name, (mean, std) in metrics.items()},
        "complete": len(complete),
        "pruned": sum(each.state.name == "PRUNED" for each in trials),
        "failed": sum(each.state.name == "FAIL" for each in trials),
        "seconds": sum(each.user_attrs.get("seconds", 0.0) for each in trials),
    }


def train_command(run: Run, result: SweepResultFile) -> list[str]:
    """`quoin train ...` with the options of the best trial, as words."""
    default = type(run.options)()
    swept = {name: tuple(each) if isinstance(each, list) else each for name, each in result["best"]["options"].items()}
    options = dataclasses.replace(run.options, **swept)
    words = ["quoin", "train", run.recipe.reference]
    for kind, of in ((options, default), (run.run_config, RunConfig())):
        for each in dataclasses.fields(kind):
            value = getattr(kind, each.name)
            if value == getattr(of, each.name) and each.name not in swept:
                continue
            flag = flag_name(each.name)
            if isinstance(value, bool):
                words.append(flag if value else f"--no-{flag[2:]}")
            else:
                words += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    seeds = run.folder.sweep["seeds"] if run.folder.sweep else 1
    return [*words, *(["--seeds", str(seeds)] if seeds > 1 else [])]
