"""Groups of runs side by side: their options, their final metrics, and whether a difference is more than chance.

Reading and grouping is in compare_groups.py, files in compare_tables.py, the page in compare_page.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from quoin.display import one_line, shown, table
from quoin.errors import UserError, did_you_mean, format_value
from quoin.metrics import holm_correction
from quoin.runs.compare_groups import RunGroup, read_groups
from quoin.runs.compare_statistics import MetricDifference, MetricSpread, difference_from, metric_spread
from quoin.runs.generative_table import GenerativeLine, generative_line, is_measured
from quoin.train.monitor import greater_is_better
from quoin.train.run_state import fitting

__all__ = ["Comparison", "LanguageModelLine", "comparison"]

SPLITS = ("test_", "held_out_fold_")  # whose metrics a table shows unless others are asked for


class LanguageModelLine(NamedTuple):
    """The first metrics of a language model, on its test text; None where its run has not come so far."""

    run: str
    tokens: str  # what a token is: perplexities compare only where it is the same, bits per character always
    perplexity: float | None
    bits_per_character: float | None
    parameters: int | None
    seconds: float | None


@shown
@dataclass(frozen=True)
class Comparison:
    """Groups, and the metrics by which they are compared: those that were asked for, or the target's and the test's."""

    groups: list[RunGroup]
    metrics: list[str]
    confidence: float
    baseline: RunGroup | None
    remarks: list[str]  # on how the groups were read

    @property
    def names(self) -> list[str]:
        return [group.name for group in self.groups]

    @cached_property
    def options(self) -> dict[str, list[Any]]:
        """The options that differ, each with its values in the order of the groups; None where a group has none."""
        configs = [group.options for group in self.groups]
        every = {
            name: [config.get(name) for config in configs] for name in dict.fromkeys(n for c in configs for n in c)
        }
        return {name: values for name, values in every.items() if any(value != values[0] for value in values)}

    @cached_property
    def every_metric(self) -> list[str]:
        """All final metrics of all groups."""
        return _every_metric(self.groups)

    def __repr__(self) -> str:
        return one_line("Comparison", {"runs": self.names, "metrics": self.metrics})

    def _repr_html_(self) -> str:
        rows = [
            [group.name, *(_mean_and_std(self.spread(group, name)) for name in self.metrics)] for group in self.ranked()
        ]
        return table(["run", *self.metrics], rows, caption="Comparison", footer="; ".join(self.notes))

    def spread(self, group: RunGroup, metric: str) -> MetricSpread | None:
        """The metric over a group; None where no finished run of it has it."""
        return metric_spread(group, metric, self.confidence)

    def greater_is_better(self, metric: str) -> bool | None:
        """By the target if it is on this metric, else by the words of its name; None if neither says."""
        bounds = {group.target[1] for group in self.groups if group.target and group.target[0] == metric}
        if len(words := {"at least" in bound for bound in bounds}) == 1:
            return words.pop()
        return greater_is_better(metric)

    def ranked(self) -> list[RunGroup]:
        """The groups by the mean of the first metric, the best first, those without it last; as they came where it is
        not known which is the better."""
        if not self.metrics or (greater := self.greater_is_better(self.metrics[0])) is None:
            return self.groups
        means = {id(group): spread.mean for group in self.groups if (spread := self.spread(group, self.metrics[0]))}
        order = {key: -mean if greater else mean for key, mean in means.items()}
        return sorted(self.groups, key=lambda group: order.get(id(group), math.inf))

    @cached_property
    def differences(self) -> list[MetricDifference]:
        """Every other group against the baseline, metric by metric and ranked; none where there are too few seeds for a
        test."""
        return [each for metric in self.metrics for each in self._differences(metric)]

    def _differences(self, metric: str) -> list[MetricDifference]:
        if (base := self.baseline) is None:
            return []
        greater = self.greater_is_better(metric)
        others = [group for group in self.ranked() if group is not base]
        tried = [difference_from(group, base, metric, self.confidence, greater) for group in others]
        found = [each for each in tried if each]
        adjusted = holm_correction([each.p_value for each in found])
        return [each._replace(p_holm=p) for each, p in zip(found, adjusted, strict=True)]

    @property
    def notes(self) -> list[str]:
        """What to know of this comparison, line by line."""
        return [*self.warnings, *self.methods]

    @cached_property
    def warnings(self) -> list[str]:
        """What is not as it seems: runs grouped, unfinished, left out or without a metric."""
        return [*self.remarks, *self._missing(), *self._untested()]

    def _missing(self) -> list[str]:
        lacking: dict[tuple[str, ...], list[str]] = {}
        for metric in self.metrics:
            names = tuple(group.name for group in self.groups if group.finished and not self.spread(group, metric))
            lacking.setdefault(names, []).append(metric)
        return [f"no {_listed(metrics)} in {_listed(list(names))}" for names, metrics in lacking.items() if names]

    def _untested(self) -> list[str]:
        if self.baseline is None:
            return []
        tested = {each.run for each in self.differences}
        lost = [group.name for group in self.groups if group is not self.baseline and group.name not in tested]
        why = "a test needs two or more finished seeds of both, or folds of both"
        return [f"{_listed(lost)} could not be tested against {self.baseline.name}: {why}"] if lost else []

    @cached_property
    def methods(self) -> list[str]:
        """How the numbers were made: a p-value without its test says nothing."""
        found = []
        if any(len(group.finished) > 1 for group in self.groups):
            found.append(
                "± is the standard deviation over seeds or folds; intervals are of the mean, by Student's t, "
                f"confidence {self.confidence:g}"
            )
        for paired in (True, False):
            tests = {each.n + each.m: each for each in self.differences if each.paired is paired}
            if tests:
                how = "all sign flips of paired differences" if paired else "all splits of the runs, unpaired"
                least = ", ".join(f"{tests[n].smallest_p:.3g} of {_test_size(tests[n])}" for n in sorted(tests))
                found.append(f"p: two-sided permutation test over {how}; the smallest p possible is {least}")
        if any(not each.exact for each in self.differences):
            found.append("where these are too many, p = (1 + as large) / (1 + tried) of random ones, seed 0")
        if self.is_adjusted:
            found.append("Holm: p adjusted for the number of runs compared with the baseline, metric by metric")
        return found

    @property
    def is_adjusted(self) -> bool:
        """Whether several runs are compared with the baseline, so that their p-values need adjusting."""
        return len({each.run for each in self.differences}) > 1

    @cached_property
    def language_models(self) -> list[LanguageModelLine]:
        return [_language_line(self, group) for group in self.groups if group.one.config["kind"] == "language-modeling"]

    @cached_property
    def generative_models(self) -> list[GenerativeLine]:
        found = [(group, self.means(group)) for group in self.groups]
        return [
            generative_line(group.name, group.one, means, _seconds(group), several=bool(group.over))
            for group, means in found
            if is_measured(means)
        ]

    def means(self, group: RunGroup) -> dict[str, float]:
        """The mean of every metric of a group."""
        every = ((name, self.spread(group, name)) for name in self.every_metric)
        return {name: spread.mean for name, spread in every if spread is not None}


def comparison(
    paths: Sequence[Path],
    *,
    metrics: Sequence[str] = (),
    baseline: Path | None = None,
    confidence: float = 0.95,
    group: bool = True,
) -> Comparison:
    """Read the folders and say how they are compared.

    Args:
        metrics: Names of final metrics; by default those of the targets and of the test split or held-out fold.
        baseline: The run that the others are tested against; it is compared too where `paths` does not name it.
        confidence: Of the intervals.
        group: Whether plain runs that differ in nothing but the seed are one group.
    """
    if not 0 < confidence < 1:
        raise UserError(f"--confidence expects a number between 0 and 1, got {confidence:g}; 0.95 is usual")
    paths = list(paths)
    if baseline is not None and not any(_same(path, baseline) for path in paths):
        paths.insert(0, baseline)
    if len(paths) < 2:
        raise UserError(f"compare expects two or more runs, got {len(paths)}")
    read = read_groups(paths, group=group)
    base = next((g for g in read.groups if baseline and any(_same(path, baseline) for path in g.paths)), None)
    return Comparison(read.groups, _choose(read.groups, metrics), confidence, base, read.notes)


def _mean_and_std(spread: MetricSpread | None) -> str:
    if spread is None:
        return "-"
    return f"{spread.mean:.4g}" + ("" if spread.std is None else f" ± {spread.std:.2g}")


def _same(one: Path, other: Path) -> bool:
    return one.absolute() == other.absolute() or (one.exists() and other.exists() and one.samefile(other))


def _choose(groups: list[RunGroup], asked: Sequence[str]) -> list[str]:
    every = _every_metric(groups)
    if unknown := [name for name in asked if name not in every]:
        hint = did_you_mean(unknown[0], every) if every else "none of the runs is finished"
        raise UserError(f"--metric {format_value(unknown[0])} is no final metric of these runs: {hint}")
    if asked:
        return list(dict.fromkeys(asked))
    targets = [group.target[0] for group in groups if group.target]
    tested = sorted(name for name in every if name.startswith(SPLITS))
    return [name for name in dict.fromkeys([*targets, *tested]) if name in every] or every


def _every_metric(groups: list[RunGroup]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for run in group.finished for name in run.metrics or {}))


def _language_line(found: Comparison, group: RunGroup) -> LanguageModelLine:
    means = found.means(group)
    with fitting(str(group.one.path / "config.json")):
        tokens = str((group.one.config["data"] or {})["tokenizer_json"]["kind"])
    parameters = next((run.num_parameters for run in group.finished), None)
    return LanguageModelLine(
        group.name,
        tokens,
        means.get("test_perplexity"),
        means.get("test_bits_per_character"),
        parameters,
        _seconds(group),
    )


def _test_size(each: MetricDifference) -> str:
    return f"{each.n} pairs" if each.paired else f"{each.n} and {each.m} runs"


def _seconds(group: RunGroup) -> float | None:
    seconds = [run.seconds for run in group.finished if run.seconds is not None]
    return sum(seconds) if seconds else None


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
