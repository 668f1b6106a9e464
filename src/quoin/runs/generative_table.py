"""Generative models side by side: the measures of their samples, one line a run, from what the run folders hold."""

from typing import Any, NamedTuple

from quoin.display import metric_words
from quoin.errors import UserError
from quoin.metrics import SampleQuality
from quoin.train import Metrics, RunFolder, report

__all__ = [
    "HEADINGS",
    "GenerativeLine",
    "beside_others",
    "caution",
    "generative_line",
    "generative_section",
    "is_measured",
    "without_shared",
]


class GenerativeLine(NamedTuple):
    """The first metrics of a generative model; None where its distribution has no such number."""

    run: str
    data: str
    # whose features are compared: a run's folder, or a small classifier trained under this seed; "" for plain points
    evaluator: str
    num_samples: int | None
    mmd: float | None
    frechet: float | None
    density: float | None
    coverage: float | None
    nn_distance_ratio: float | None
    bits_per_dimension: float | None  # exact, or an upper bound where the model gives no more
    seconds: float | None


CONDITIONS = ("data", "evaluator", "num_samples")  # only where these are alike do lines compare
BEST = {"mmd": 0, "frechet": 0, "density": 1, "coverage": 1, "nn_distance_ratio": 1}
HEADINGS = tuple(
    f"{metric_words(name)} → {BEST[name]}" if name in BEST else metric_words(name) for name in GenerativeLine._fields
)


def is_measured(metrics: Metrics) -> bool:
    """Whether among the final metrics, or their means over several runs, are those of samples."""
    return None not in _measures(metrics)[: len(SampleQuality._fields)]


def generative_line(
    name: str, one: RunFolder, metrics: Metrics, seconds: float | None, *, several: bool = False
) -> GenerativeLine:
    """The line of a run, or of `several` that are like it, with its final metrics or their means."""
    options, data = one.config["options"], one.config["data"] or {}
    own = "" if "classifier" not in options else "own, of each seed" if several else f"own, seed {options.get('seed')}"
    return GenerativeLine(
        name,
        str(data.get("source", options.get("data", ""))),
        options.get("classifier") or own,
        options.get("num_samples"),
        *_measures(metrics),
        seconds=seconds,
    )


def _measures(metrics: Metrics) -> list[float | None]:
    """The measures of samples, and the bits per dimension; None for what is not there."""
    measures = (*SampleQuality._fields, "bits_per_dimension")
    return [metrics.get(f"test_{name}", metrics.get(f"held_out_fold_{name}")) for name in measures]


def caution(lines: list[GenerativeLine]) -> str:
    """What keeps some of these lines from being held against others, or nothing."""
    differing = [name for name in CONDITIONS if len({getattr(line, name) for line in lines}) > 1]
    return f"only lines with the same {' and '.join(map(metric_words, differing))} compare" if differing else ""


def without_shared(lines: list[GenerativeLine]) -> tuple[list[str], list[list[Any]], list[str]]:
    """Headings and rows of a table without the conditions that all lines have in common, and these in words."""
    shared = [
        name for name in CONDITIONS if len({getattr(line, name) for line in lines}) == 1 and getattr(lines[0], name)
    ]
    kept = [i for i, name in enumerate(GenerativeLine._fields) if name not in shared]
    words = [f"{metric_words(name)} {getattr(lines[0], name)}" for name in shared]
    return [HEADINGS[i] for i in kept], [[line[i] for i in kept] for line in lines], words


def generative_section(title: str, lines: list[GenerativeLine]) -> str:
    """The table for a page: what all lines have in common is above it."""
    headings, rows, words = without_shared(lines)
    return report.table("; ".join([title, *words, *[caution(lines)] * bool(caution(lines))]), headings, rows)


def beside_others(folder: RunFolder) -> list[str]:
    """For the report of a run: a table of it and of the finished runs beside it on the same data, if there are any."""
    if not _is_finished(folder):
        return []
    found = [folder, *(each for each in _neighbors(folder) if _fingerprint(each) == _fingerprint(folder))]
    lines = [_line(each) for each in found]
    return [generative_section("Sample quality compared with other runs here", lines)] if len(lines) > 1 else []


def _is_finished(folder: RunFolder) -> bool:
    result = folder.result
    return result is not None and "steps" in result and is_measured(result["metrics"])


def _line(folder: RunFolder) -> GenerativeLine:
    result: Any = folder.result
    return generative_line(folder.path.name, folder, result["metrics"], result["seconds"])


def _neighbors(folder: RunFolder) -> list[RunFolder]:
    """The other runs in the same folder whose samples were measured."""
    found = []
    for path in sorted(folder.path.parent.iterdir()):
        try:
            if path.name != folder.path.name and (path / "result.json").is_file():
                neighbor = RunFolder.open(path)
                found += [neighbor] if _is_finished(neighbor) else []
        except UserError:  # a damaged folder is no matter of this run
            continue
    return found


def _fingerprint(folder: RunFolder) -> Any:
    return (folder.config["data"] or {}).get("fingerprint")
