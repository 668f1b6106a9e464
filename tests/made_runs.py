"""Run folders written by hand, file by file, so that a comparison knows what must come out: nothing is trained."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SETTINGS = {"device": "auto", "num_threads": 1, "max_steps": 0}


def write_run(
    path: Path,
    metrics: Mapping[str, float] | None = None,
    *,
    seed: int = 0,
    recipe: str = "mlp",
    curve: Sequence[Mapping[str, float]] = (),
    kind: str = "classification",
    target: tuple[str, str] | None = None,
    **options: Any,
) -> Path:
    """A run with these final metrics, not finished where there are none; a line of its curve for each epoch."""
    config = {"options": {"seed": seed, **options}, "settings": SETTINGS, "data": None}
    write_config(path, recipe=recipe, kind=kind, **config)
    lines = [{"step": 10 * i, "epoch": i, "seconds": 1.0 * i, **line} for i, line in enumerate(curve, 1)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if metrics is not None:
        verdict = target and {"metric": target[0], "bound": target[1], "value": metrics[target[0]], "met": True}
        counts = {"steps": 10, "epochs": 1, "best_step": 10, "seconds": 2.0, "saving_seconds": 0.1}
        (path / "result.json").write_text(json.dumps({"metrics": metrics, "target": verdict, **counts}))
    return path


def write_multirun(
    path: Path,
    values: Sequence[Mapping[str, float] | None],
    *,
    over: str = "seed",
    first_seed: int = 0,
    curves: Sequence[Sequence[Mapping[str, float]]] = (),
    recipe: str = "mlp",
    target: tuple[str, str] | None = None,
    **options: Any,
) -> Path:
    """A multirun with these final metrics of its runs; None for one that has not begun."""
    whole = {"options": {"seed": first_seed, **options}, "settings": SETTINGS, "data": None}
    multirun = {"over": over, "count": len(values)}
    write_config(path, recipe=recipe, kind="multirun", multirun=multirun, **whole)
    for i, metrics in enumerate(values):
        if metrics is not None:
            own = {"seed": first_seed + i} if over == "seed" else {"seed": first_seed, "fold": f"{i}/{len(values)}"}
            curve = curves[i] if curves else ()
            chosen: dict[str, Any] = {**options, **own}
            write_run(path / f"{over}-{i}", metrics, recipe=recipe, curve=curve, target=target, **chosen)
    return path


def write_config(path: Path, **parts: Any) -> None:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({"format": 2, "folder": "..", **parts}))
    (path / "environment.json").write_text("{}")
