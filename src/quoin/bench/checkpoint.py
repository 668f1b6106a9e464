"""The benchmark `checkpoint`: what default checkpoints cost a run, by the run's own account and by the clock."""

import dataclasses
import statistics
import tempfile
from pathlib import Path

from quoin.bench.worker import Repeats
from quoin.runs import RunConfig, find_recipe, fit_recipe

__all__ = ["not_saving", "saving"]

EPOCHS = 200  # a few seconds: more than one default checkpoint, where the recipe's own 30 epochs end before the first
NEVER = 2**40  # steps


def saving(repeats: Repeats) -> dict[str, float]:
    return _train(repeats, 0)


def not_saving(repeats: Repeats) -> dict[str, float]:
    return _train(repeats, NEVER)


def _train(repeats: Repeats, checkpoint_every: int) -> dict[str, float]:
    recipe = find_recipe("mlp")
    options = dataclasses.replace(recipe.options(), epochs=EPOCHS)
    config = RunConfig(device="cpu", num_threads=repeats.threads, checkpoint_every=checkpoint_every)
    fractions, accuracies = [], []
    with tempfile.TemporaryDirectory() as runs:
        for _ in range(repeats.count):
            result = fit_recipe(recipe, options, config, Path(runs), show_progress=False).result
            assert result is not None
            fractions.append(result["saving_seconds"] / result["seconds"])
            accuracies.append(result["metrics"]["test_accuracy"])
            repeats.end()
    return {"saving fraction": statistics.median(fractions), "test accuracy": statistics.median(accuracies)}
