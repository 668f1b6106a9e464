"""Generative models side by side: the measures of their samples, one line a run, from what the run folders hold."""

import dataclasses
from typing import Any, NamedTuple

from quoin.errors import Mistake
from quoin.objectives import SampleQuality
from quoin.recipes.running.asked import read_config
from quoin.train import RunFolder, report

__all__ = ["HEADINGS", "GenerativeLine", "beside_others", "caution", "final_means", "generative_line", "generative_section", "is_measured"]


class GenerativeLine(NamedTuple):
    """What is asked first of a model that draws; None where its law has no such number."""

    run: str
    data: str
    judge: str  # whose features are compared: a run's folder, or a small classifier trained under this seed; "" for plain points
    samples: int | None
    mmd: float | None
    frechet: float | None
    density: float | None
    coverage: float | None
    nearness: float | None
    bits_per_dimension: float | None  # exact, or an upper bound where the model gives no more
    seconds: float | None


CONDITIONS = ("data", "judge", "samples")  # only where these are alike do lines compare
BEST = {"mmd": 0, "frechet": 0, "density": 1, "coverage": 1, "nearness": 1}
HEADINGS = tuple(f"{name} → {BEST[name]}" if name in BEST else name.replace("_", " ") for name in GenerativeLine._fields)


def is_measured(folder: RunFolder) -> bool:
    """Whether the folder's run, or study, is finished and its samples were measured."""
    result = folder.result
    return result is not None and all(f"test_{name}" in result["metrics"] for name in SampleQuality._fields)


def final_means(folder: RunFolder) -> dict[str, float]:
    """The final metrics of a run, those of a study by their mean; none of one that is not finished."""
    metrics = result["metrics"] if (result := folder.result) else {}
    return {name: value["mean"] if isinstance(value, dict) else value for name, value in metrics.items()}


def generative_line(name: str, folder: RunFolder, one: RunFolder, metrics: dict[str, float]) -> GenerativeLine:
    """The line of a run, or of a study whose runs are like `one`, with its final metrics or their means."""
    options, data, result = dataclasses.asdict(read_config(one)[1]), one.config["data"] or {}, folder.result
    own = "" if "classifier" not in options else f"own, seed {options.get('seed')}" if one is folder else "own, of each seed"
    return GenerativeLine(
        name,
        str(data.get("source", options.get("data", ""))),
        options.get("classifier") or own,
        options.get("samples"),
        *(metrics.get(f"test_{measure}") for measure in (*SampleQuality._fields, "bits_per_dimension")),
        seconds=result and result["seconds"],
    )


def caution(lines: list[GenerativeLine]) -> str:
    """What keeps some of these lines from being held against others, or nothing."""
    differing = [name for name in CONDITIONS if len({getattr(line, name) for line in lines}) > 1]
    return f"only lines with the same {' and '.join(differing)} compare" if differing else ""


def generative_section(title: str, lines: list[GenerativeLine]) -> str:
    """The table for a page: what all lines share is said once above it, and measures of samples deserve three digits."""
    shared = [name for name in CONDITIONS if len({getattr(line, name) for line in lines}) == 1 and getattr(lines[0], name)]
    told = [f"{name} {getattr(lines[0], name)}" for name in shared] + [caution(lines)] * bool(caution(lines))
    kept = [i for i, name in enumerate(GenerativeLine._fields) if name not in shared]
    rows = [[float(f"{line[i]:.3g}") if isinstance(line[i], float) else line[i] for i in kept] for line in lines]
    return report.table("; ".join([title, *told]), [HEADINGS[i] for i in kept], rows)


def beside_others(folder: RunFolder) -> list[str]:
    """For the report of a run: a table of it and of the finished runs beside it on the same data, if there are any."""
    if not is_measured(folder):
        return []
    found = [folder, *(each for each in _neighbours(folder) if _fingerprint(each) == _fingerprint(folder))]
    lines = [generative_line(each.path.name, each, each, final_means(each)) for each in found]
    return [generative_section("Its samples, and those of the runs beside it", lines)] if len(lines) > 1 else []


def _neighbours(folder: RunFolder) -> list[RunFolder]:
    """The other runs in the same place whose samples were measured."""
    found = []
    for path in sorted(folder.path.parent.iterdir()):
        try:
            if path.name != folder.path.name and (path / "result.json").is_file():
                neighbour = RunFolder.open(path)
                found += [neighbour] if is_measured(neighbour) and neighbour.study is None and read_config(neighbour) else []
        except Mistake:  # a damaged folder is no matter of this run
            continue
    return found


def _fingerprint(folder: RunFolder) -> Any:
    return (folder.config["data"] or {}).get("fingerprint")
