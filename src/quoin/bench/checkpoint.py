"""The row `checkpoint`: what default checkpoints cost a run, by the run's own account and by the clock."""

import dataclasses
import statistics
import tempfile
from pathlib import Path

from quoin.bench.worker import Laps
from quoin.runs import RunConfig, find_recipe, fit

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
    config = RunConfig(device="cpu", threads=laps.threads, checkpoint_every=checkpoint_every)
    shares, accuracies = [], []
    with tempfile.TemporaryDirectory() as runs:
        for _ in range(laps.count):
            result = fit(recipe, options, config, Path(runs), show_progress=False).result
            assert result is not None
            shares.append(result["saving_seconds"] / result["seconds"])
            accuracies.append(result["metrics"]["test_accuracy"])
            laps.end()
    return {"share of saving": statistics.median(shares), "test accuracy": statistics.median(accuracies)}
