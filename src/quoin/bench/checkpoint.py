"""The row `checkpoint`: what default checkpoints cost a run, by the run's own account and by the clock."""

import dataclasses
import statistics
import tempfile
from pathlib import Path

from quoin.bench.worker import Laps
from quoin.recipes import find_recipe
from quoin.recipes.running.run import start
from quoin.recipes.running.settings import Settings

__all__ = ["not_saving", "saving"]

EPOCHS = 200  # a few seconds: more than one default checkpoint, where the recipe's own 30 epochs end before the first
NEVER = 2**40  # steps


def saving(laps: Laps) -> dict[str, float]:
    return _train(laps, 0)


def not_saving(laps: Laps) -> dict[str, float]:
    return _train(laps, NEVER)


def _train(laps: Laps, checkpoint_every: int) -> dict[str, float]:
    recipe = find_recipe("mlp")
    options = dataclasses.replace(recipe.options(), epochs=EPOCHS)
    settings = Settings(device="cpu", threads=laps.threads, checkpoint_every=checkpoint_every)
    shares, accuracies = [], []
    with tempfile.TemporaryDirectory() as runs:
        for _ in range(laps.count):
            result = start(recipe, options, settings, Path(runs), visible=False).result
            assert result is not None
            shares.append(result["saving_seconds"] / result["seconds"])
            accuracies.append(result["metrics"]["test_accuracy"])
            laps.end()
    return {"share of saving": statistics.median(shares), "test accuracy": statistics.median(accuracies)}
