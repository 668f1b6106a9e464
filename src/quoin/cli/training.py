"""`quoin train` and `quoin resume`."""

import argparse
import shlex
import sys
from typing import Any

from quoin.cli.arguments import code_access, read_label
from quoin.cli.config_file import RunPlace, config_text, config_values
from quoin.cli.flags import AUTO, read_options
from quoin.cli.lr_range import take_auto_lr, with_found_lr
from quoin.cli.output import print_json, print_table
from quoin.cli.sweep_command import resume_sweep
from quoin.data import check_source_name
from quoin.errors import UserError, format_value
from quoin.runs.catalog import Recipe, find_recipe
from quoin.runs.launch import is_first, launch, must_launch, num_started
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import RunLabel
from quoin.train.folder import RunFolder

__all__ = ["resume", "train"]


def train(parsed: argparse.Namespace) -> int:
    if parsed.recipe != parsed.first_recipe:
        raise UserError(f"the recipe comes first: quoin train {format_value(parsed.recipe)[1:-1]} ...")
    recipe = find_recipe(parsed.recipe)
    auto_lr = take_auto_lr(parsed)
    options: Any = read_options(recipe.options, parsed)
    config = read_options(RunConfig, parsed)
    if hasattr(options, "data"):
        check_source_name(options.data)
    if parsed.seeds and parsed.folds:
        raise UserError("--seeds and --folds were both given: choose one, and repeat with another --seed for the other")
    if parsed.jobs and not (parsed.seeds or parsed.folds):
        raise UserError(f"--jobs {parsed.jobs}: one run trains in one process; add --seeds or --folds, or leave it out")
    if (together := max(config.processes, num_started())) > 1 and (parsed.seeds or parsed.folds):
        what = "--seeds" if parsed.seeds else "--folds"
        raise UserError(
            f"{what} with {together} processes: each run over seeds or folds trains in one process; add --jobs for "
            "several at a time, or leave one out"
        )
    if auto_lr and together > 1:
        raise UserError(f"--lr auto with {together} processes: find it in one with quoin lr, then give --lr a number")
    label = read_label(parsed)
    if parsed.print_config:
        return _print_config(recipe, options, config, auto_lr, label, parsed)
    _check_target(recipe, options, parsed)
    if label.name:
        RunFolder.check_free(parsed.runs, label.name)
    if must_launch(config.processes):
        return launch(parsed.command_line, config.processes)
    from quoin.runs import fit_recipe
    from quoin.runs.multirun import Multirun, fit_multirun

    show_progress = not parsed.json
    if auto_lr:  # once, for all runs of a multirun; the number stands in the config, and is not looked for again
        options = with_found_lr(recipe, options, config, show_progress=show_progress)
    if parsed.seeds or parsed.folds:
        multirun = Multirun("seed", parsed.seeds) if parsed.seeds else Multirun("fold", parsed.folds)
        return _show_multirun(
            fit_multirun(
                recipe,
                options,
                config,
                multirun,
                parsed.runs,
                label=label,
                jobs=parsed.jobs,
                show_progress=show_progress,
            ),
            parsed,
        )
    return _show_run(fit_recipe(recipe, options, config, parsed.runs, label=label, show_progress=show_progress), parsed)


def _print_config(
    recipe: Recipe, options: Any, config: RunConfig, auto_lr: bool, label: RunLabel, parsed: argparse.Namespace
) -> int:
    place = RunPlace(str(parsed.runs), label.name, label.note, label.tags, parsed.seeds, parsed.folds, parsed.jobs)
    values = config_values(recipe, options, config, place) | ({"lr": AUTO} if auto_lr else {})
    if parsed.json:
        print_json(values)
    else:
        print(config_text(recipe, values), end="")
    return 0


def resume(parsed: argparse.Namespace) -> int:
    if must_launch(parsed.processes or 1):
        return launch(parsed.command_line, parsed.processes)
    from quoin.runs.fit import resume_run
    from quoin.runs.multirun import resume_multirun
    from quoin.runs.processes import open_run_for_all
    from quoin.train import torch_as_it_was

    run = open_run_for_all(parsed.folder, step=parsed.step, data_now=parsed.data, code=code_access(parsed))
    if num_started() > 1 and (run.folder.sweep or run.folder.multirun):
        raise UserError(
            f"{parsed.folder} holds several runs, each of which trains in one process; leave --processes and torchrun "
            "out, or go on with one of the folders inside it"
        )
    if run.folder.sweep:
        if parsed.require_target:
            raise UserError("--require-target is for runs of a recipe; a sweep has no target of its own: leave it out")
        return resume_sweep(run, parsed)
    if parsed.require_target:
        _check_target(run.recipe, run.options, parsed)
    if run.folder.multirun:
        if parsed.step is not None:
            raise UserError(f"{parsed.folder} holds several runs: give --step with one of the folders inside it")
        return _show_multirun(resume_multirun(run, jobs=parsed.jobs, show_progress=not parsed.json), parsed)
    if parsed.jobs:
        raise UserError(f"--jobs {parsed.jobs}: {parsed.folder} is one run, and trains in one process; leave it out")
    with torch_as_it_was():
        finished = resume_run(run, show_progress=not parsed.json)
    if finished.was_finished and not parsed.json:
        print(f"quoin: {parsed.folder} was finished already; this is its result", file=sys.stderr)
    return _show_run(finished, parsed)


def _show_run(finished: Any, parsed: argparse.Namespace) -> int:
    path, result = finished.folder.path, finished.result
    if not is_first():  # the main process shows it
        return 130 if result is None else 0
    if result is None:
        return _interrupted(finished.folder, f"at step {finished.output.step}", parsed)
    if parsed.json:
        print_json({"run": str(path), "finished": True, "report": str(finished.report), **result})
    else:
        metrics = sorted(result["metrics"].items())
        if target := result["target"]:
            verdicts = {target["metric"]: (target["bound"], target["met"])}
            print_table(
                ("metric", "value", "target", ""),
                [(name, value, *verdicts.get(name, ("", ""))) for name, value in metrics],
            )
        else:
            print_table(("metric", "value"), metrics)
        print(f"\n{result['steps']:,} steps in {result['seconds']:.1f} s; run {path}\nreport: {finished.report}")
    return _verdict(result["target"], parsed)


def _show_multirun(finished: Any, parsed: argparse.Namespace) -> int:
    path, result = finished.folder.path, finished.result
    if finished.failures:
        return _failed(finished, parsed)
    if result is None:
        return _interrupted(finished.folder, "between or inside its runs", parsed)
    if parsed.json:
        print_json({"run": str(path), "finished": True, "report": str(finished.report), **result})
    else:
        rows = [(name, *found.values()) for name, found in sorted(result["metrics"].items())]
        print_table(("metric", "mean", "std", "min", "max"), rows)
        if target := result["target"]:
            verdict = "met" if target["met"] else "missed: nine runs of ten must meet it"
            print(
                f"\nquality target {target['metric']} {target['bound']}: met by {target['met_runs']} of "
                f"{target['runs']} runs; {verdict}"
            )
        multirun = result["multirun"]
        if finished.about:
            print(f"\n{finished.about}")
        print(
            f"\n{multirun['count']} {multirun['over']}s in {result['seconds']:.1f} s; runs {path}\nreport: "
            f"{finished.report}"
        )
    return _verdict(result["target"], parsed)


def _failed(finished: Any, parsed: argparse.Namespace) -> int:
    """Some runs of a multirun failed; the others have their results."""
    path, failures = finished.folder.path, finished.failures
    if parsed.json:
        print_json({"run": str(path), "finished": False, "failed": failures})
    for name, why in failures.items():
        print(f"quoin: {path / name} failed: {why}", file=sys.stderr)
    runs = f"{len(failures)} of {finished.folder.multirun['count']} runs failed"
    print(f"quoin: {runs}; try them again with: quoin resume {shlex.quote(str(path))}", file=sys.stderr)
    return 1


def _interrupted(folder: Any, where: str, parsed: argparse.Namespace) -> int:
    if parsed.json:
        print_json({"run": str(folder.path), "finished": False})
    named = getattr(parsed, "code", None) or [
        each["path"] for each in folder.config.get("code", []) if each["use"] != "import"
    ]
    words = [str(folder.path)]
    if (together := num_started()) > 1:
        words += ["--processes", str(together)]
    words += (
        ["--trust-code"] if getattr(parsed, "trust_code", False) else [w for file in named for w in ("--code", file)]
    )
    print(
        f"quoin: interrupted {where}; everything is saved. Go on with: quoin resume {shlex.join(words)}",
        file=sys.stderr,
    )
    return 130


def _check_target(recipe: Recipe, options: Any, parsed: argparse.Namespace) -> None:
    """Told before the training, not after it."""
    if parsed.require_target and recipe.target is None:
        raise UserError(f"--require-target: recipe {recipe.name} has no TARGET; leave it out, or give it one")
    if parsed.require_target and recipe.target_for(options) is None:
        raise UserError(
            "--require-target: the quality target is for the recipe's default data; leave it out with other data"
        )


def _verdict(target: dict[str, Any] | None, parsed: argparse.Namespace) -> int:
    return 1 if parsed.require_target and not (target and target["met"]) else 0
