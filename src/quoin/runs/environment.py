"""Where a run is carried out: what is recorded of it when it begins, and what has changed when it goes on."""

import dataclasses
from typing import Any

from quoin.errors import UserError
from quoin.runs.catalog import Recipe
from quoin.runs.run import Run
from quoin.runs.run_config import RunConfig
from quoin.train import DeviceContext, describe_environment, setup_device
from quoin.train.processes import join_processes, num_processes
from quoin.train.run_files import Environment

__all__ = ["config_as_begun", "describe_changes", "device_context_for", "environment_of", "package_as_json"]


def device_context_for(config: RunConfig) -> tuple[DeviceContext, list[str]]:
    return setup_device(
        config.device,
        threads=config.num_threads,
        precision=config.precision,
        compile=config.compile,
        deterministic=config.deterministic,
        shard=config.shard,
    )


def config_as_begun(run: Run) -> RunConfig:
    """A run is reproducible to the bit for an equal number of threads and processes, so a choice of threads that was
    left to torch is recorded, for so many processes."""
    join_processes()
    if run.folder.environment.get("processes", 1) != num_processes():
        return run.run_config
    threads = run.folder.environment.get("threads")
    if not isinstance(threads, int):
        raise UserError(f"{run.path / 'environment.json'} has no number of threads: restore it or train again")
    return dataclasses.replace(run.run_config, num_threads=threads)


def package_as_json(recipe: Recipe) -> dict[str, Any]:
    """What config.json keeps of the package that offers the recipe."""
    return {"package": recipe.package.package} if recipe.package else {}


def environment_of(recipe: Recipe, device_context: DeviceContext, seed: int) -> dict[str, Any]:
    found = describe_environment(device_context, seed)
    return found | ({"recipe_package": recipe.package.origin} if recipe.package else {})


def describe_changes(before: Environment, now: dict[str, Any]) -> list[str]:
    """A remark where the run goes on with something else than it began with: it is then not reproducible to the bit."""
    names = ("quoin", "torch", "device", "device_name", "system", "processes", "shard", "recipe_package")
    changes = [
        f"{name} {before[name]} is now {now.get(name)}"
        for name in names
        if name in before and before[name] != now.get(name)
    ]
    return [f"{'; '.join(changes)}: the run goes on, but not to the bits it would have had"] if changes else []
