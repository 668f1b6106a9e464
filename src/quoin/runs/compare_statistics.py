"""The statistics of a comparison: a metric over the seeds of a group, and its difference from a baseline."""

import math
import statistics
from typing import Any, NamedTuple

import torch

from quoin.errors import UserError, format_value
from quoin.metrics import permutation_test_paired, permutation_test_unpaired, t_interval
from quoin.runs.compare_groups import RunGroup

__all__ = ["MetricDifference", "MetricSpread", "difference_from", "metric_spread"]


class MetricSpread(NamedTuple):
    """A metric over the finished runs of a group; of one run there is no spread."""

    mean: float
    std: float | None  # of the sample
    n: int
    low: float | None  # of the confidence interval
    high: float | None


class MetricDifference(NamedTuple):
    """A metric of a run less that of the baseline, and how probable one as large is if both are alike."""

    run: str
    metric: str
    difference: float
    low: float | None  # the confidence interval of the mean of paired differences
    high: float | None
    p_value: float
    p_holm: float  # adjusted for the number of runs that are compared with the baseline
    smallest_p: float
    paired: bool  # over the seeds that both have; otherwise all values of one against all of the other
    exact: bool
    n: int  # pairs, or runs of the group
    m: int  # runs of the baseline
    is_better: bool | None  # None where it is not known whether the metric should be high or low


def _values(group: RunGroup, metric: str) -> dict[Any, float]:
    """The metric of each finished run that has it, by its seed and fold."""
    return {run.key: run.metrics[metric] for run in group.finished if run.metrics and metric in run.metrics}


def metric_spread(group: RunGroup, metric: str, confidence: float) -> MetricSpread | None:
    """The metric over the finished runs of a group; None where none has it."""
    values = list(_values(group, metric).values())
    if not values:
        return None
    if len(values) == 1:
        return MetricSpread(values[0], None, 1, None, None)
    try:
        mean, std = statistics.fmean(values), statistics.stdev(values)
    except OverflowError:
        mean = std = math.inf
    interval = t_interval(torch.tensor(values, dtype=torch.float64), confidence) if math.isfinite(mean) else None
    if interval is None or not all(map(math.isfinite, (std, *interval))):
        got = f"{format_value(metric)} {format_value(values)}"
        raise UserError(f"{group.name}: expected values whose mean a float can hold, got {got}; leave the run out")
    return MetricSpread(mean, std, len(values), interval.low, interval.high)


def difference_from(
    group: RunGroup, base: RunGroup, metric: str, confidence: float, greater: bool | None
) -> MetricDifference | None:
    """The test of a group against the baseline, paired over the seeds that both have; None where either has fewer than
    two runs, or one is over seeds and the other over folds."""
    ours, theirs = _values(group, metric), _values(base, metric)
    if min(len(ours), len(theirs)) < 2 or "" in (group.over, base.over) or group.over != base.over:
        return None
    if paired := len(common := [key for key in ours if key in theirs]) >= 2:
        differences = torch.tensor([ours[key] - theirs[key] for key in common], dtype=torch.float64)
        found, interval = permutation_test_paired(differences), t_interval(differences, confidence)
        n, m, low, high = len(common), len(common), interval.low, interval.high
    else:
        both = [torch.tensor(list(each.values()), dtype=torch.float64) for each in (ours, theirs)]
        found, (n, m), low, high = permutation_test_unpaired(*both), map(len, both), None, None
    better = None if greater is None or found.output == 0 else (found.output > 0) == greater
    p = found.p_value
    return MetricDifference(
        group.name, metric, found.output, low, high, p, p, found.smallest_p, paired, found.exact, n, m, better
    )
