"""What trained is never lost at the end: whatever images a recipe takes, its run ends with metrics, a result and a whole report."""

import itertools
import json

import numpy as np
import pytest

from commands import tried
from quoin.data import load
from quoin.recipes import find_recipe, recipe_names
from quoin.recipes.running.options import DataOptions

SCALES = {  # of an array of standard normal numbers
    "standardised": lambda x: x,
    "bytes-as-floats": lambda x: (64 * x + 128).clip(0, 255).round(),
}
SHAPES = {"oblong": (6, 10), "small": (5, 5)}
CASES = list(itertools.product(SCALES, (1, 3), SHAPES))
QUICK = ("--max-steps", "2", "--batch-size", "8", "--threads", "1", "--device", "cpu")
SMALLER = {"samples": "8", "evidence_draws": "2", "batch_sizes": "2 8", "batch_size": "8"}  # what only costs time, where a recipe has it


def takes_images(name):
    options = find_recipe(name).options
    return issubclass(options, DataOptions) and load(options().data).image_shape is not None


RECIPES = [name for name in recipe_names() if takes_images(name)]


def ends_well_or_is_refused_at_once(name, case, folder):
    """True if it trained, and then all that a run leaves is there; False if it was refused, and then nothing was begun."""
    scale, channels, shape = case
    rows = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = SCALES[scale](rows.standard_normal((40, channels, *SHAPES[shape])) + labels[:, None, None, None])
    np.savez(folder / "images.npz", x=images.astype(np.float32), y=labels)
    kind = find_recipe(name).options
    smaller = [word for option, value in SMALLER.items() if hasattr(kind(), option) for word in (f"--{option.replace('_', '-')}", *value.split())]
    words = ("train", name, "--data", f"npz:{folder}/images.npz", *QUICK[:2], *smaller, *QUICK[4:], "--runs", folder / "runs", "--json")
    code, out, err = tried(*words)
    if code == 2:
        assert (out, len(err.splitlines())) == ("", 1), err
        assert len(err) <= 300, err
        assert not list((folder / "runs").glob("*/metrics.jsonl")), err
        return err
    assert (code, err) == (0, ""), err
    told = json.loads(out)
    run = folder / "runs" / f"{name}-1"
    assert told["metrics"] == json.loads((run / "result.json").read_text())["metrics"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "could not be drawn" not in page
    return page


if __name__ == "__main__":
    import pathlib, tempfile, time
    import sys
    from quoin.train import report
    for name in RECIPES:
        for case in CASES:
            t=time.time()
            with tempfile.TemporaryDirectory() as f:
                try:
                    r=ends_well_or_is_refused_at_once(name, case, pathlib.Path(f))
                    r=r[:150].strip() if r.startswith("quoin") else "ok"
                except BaseException as e: r="FAIL "+repr(e)[:1500]
            print(f"{name:20} {case} {time.time()-t:.1f} {r}", flush=True)
