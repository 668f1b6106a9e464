"""A comparison as text for a paper or another program: CSV, Markdown, LaTeX, JSON."""

import csv
import io
import math
import re
import statistics
from typing import Any

from quoin.display import metric_words
from quoin.runs.compare import Comparison
from quoin.runs.compare_groups import RunGroup
from quoin.runs.compare_statistics import MetricDifference
from quoin.train import report

__all__ = [
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "best_groups",
    "difference_cells",
    "format_interval",
    "format_p",
    "format_spread",
    "metric_decimals",
]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
}
ARROWS = {True: "↑", False: "↓", None: ""}
MOST_DECIMALS = 6


def metric_decimals(found: Comparison, metric: str, precision: int | None) -> int:
    """Digits after the point in a metric's column: `precision`, or as many as give a typical standard deviation two
    digits, and where there is none the values three."""
    if precision is not None:
        return precision
    spreads = [spread for group in found.groups if (spread := found.spread(group, metric))]
    stds = [spread.std for spread in spreads if spread.std]
    sizes = [abs(spread.mean) for spread in spreads if spread.mean]
    if not sizes and not stds:
        return 1
    size, digits = (statistics.median(stds), 2) if stds else (statistics.median(sizes), 3)
    return max(0, min(MOST_DECIMALS, digits - 1 - math.floor(math.log10(size))))


def format_number(value: float, decimals: int) -> str:
    """With so many digits after the point, or in powers of ten where it would be too long."""
    return f"{value:.{decimals}f}" if abs(value) < 1e7 else f"{value:.4g}"


def format_spread(found: Comparison, group: RunGroup, metric: str, decimals: int, plus_minus: str = " ± ") -> str:
    """mean ± std, the mean alone of one run, "" where the group has no such metric."""
    if (spread := found.spread(group, metric)) is None:
        return ""
    mean = format_number(spread.mean, decimals)
    return mean if spread.std is None else f"{mean}{plus_minus}{format_number(spread.std, decimals)}"


def format_interval(found: Comparison, group: RunGroup, metric: str, decimals: int) -> str:
    """[low, high], the confidence interval of the mean; "" where there is none."""
    spread = found.spread(group, metric)
    if spread is None or spread.low is None or spread.high is None:
        return ""
    return f"[{format_number(spread.low, decimals)}, {format_number(spread.high, decimals)}]"


def difference_cells(found: Comparison, each: MetricDifference, precision: int | None) -> list[str]:
    """run, metric, difference, its interval, better or worse, p, adjusted p where there are several, and what was
    tested."""
    decimals = metric_decimals(found, each.metric, precision)
    interval = "" if each.low is None or each.high is None else f"[{each.low:+.{decimals}f}, {each.high:+.{decimals}f}]"
    verdict = {True: "better", False: "worse", None: ""}[each.is_better]
    p = [format_p(each.p_value), *[format_p(each.p_holm)] * found.is_adjusted]
    test = f"{each.n} pairs" if each.paired else f"{each.n} and {each.m} runs, unpaired"
    return [each.run, each.metric, f"{each.difference:+.{decimals}f}", interval, verdict, *p, test]


def format_p(p: float) -> str:
    """
    >>> format_p(0.25), format_p(0.03125), format_p(0.00001)
    ('0.25', '0.0312', '1e-05')
    """
    return f"{p:.3g}"


def best_groups(found: Comparison, metric: str, decimals: int) -> set[str]:
    """The names of the groups whose mean is the best, as far as it is shown; none where that is not known."""
    spreads = {group.name: spread.mean for group in found.groups if (spread := found.spread(group, metric))}
    greater = found.greater_is_better(metric)
    if greater is None or len(spreads) < 2:
        return set()
    best = format_number((max if greater else min)(spreads.values()), decimals)
    return {name for name, mean in spreads.items() if format_number(mean, decimals) == best}


def as_csv(found: Comparison) -> str:
    """One line for each group and metric, numbers in full, options that differ as columns of their own."""
    text = io.StringIO()
    options = {name: f"option_{name}" for name in found.options}
    tests = ("difference", "difference_low", "difference_high", "p_value", "p_holm", "test") if found.baseline else ()
    names = ("run", "recipe", "metric", "mean", "std", "n", "planned", "ci_low", "ci_high", "confidence", *tests)
    table = csv.writer(text, lineterminator="\n")
    table.writerow((*names, *options.values()))
    tested = {(each.run, each.metric): each for each in found.differences}
    for i, group in enumerate(found.groups):
        chosen = [report.format_cell(found.options[name][i]) for name in options]
        for metric in found.metrics:
            spread = found.spread(group, metric)
            mean, std, n, low, high = spread or (None, None, 0, None, None)
            row = (group.name, group.folder.recipe, metric, mean, std, n, group.count, low, high, found.confidence)
            table.writerow((*row, *(_tested(tested.get((group.name, metric))) if tests else ()), *chosen))
    return text.getvalue()


def _tested(each: MetricDifference | None) -> tuple[Any, ...]:
    if each is None:
        return ("",) * 6
    return each.difference, each.low, each.high, each.p_value, each.p_holm, "paired" if each.paired else "unpaired"


def as_markdown(found: Comparison, precision: int | None = None) -> str:
    """A table with a row for each group and a column for each metric, the best of each in bold."""
    header, rows = _cells(found, precision, " ± ")
    head = [_markdown(_with_arrow(found, cell)) for cell in header]
    lines = [head, [":--", *["--:"] * (len(header) - 1)]]
    for name, *cells in rows:
        lines.append([_markdown(name), *(f"**{text}**" if bold else text or "–" for text, bold in cells)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(found: Comparison, precision: int | None = None) -> str:
    """A tabular in the style of the package booktabs, to be given a caption by the paper that takes it in."""
    header, rows = _cells(found, precision, r" \pm ")
    head = [_latex_heading(found, cell) for cell in header]
    body = [
        " & ".join([_latex(name), *(_latex_number(text, bold) for text, bold in cells)]) + r" \\"
        for name, *cells in rows
    ]
    told = [f"% {' '.join(note.split())}" for note in ["needs \\usepackage{booktabs}", *found.notes]]
    ruled = [r"\toprule", " & ".join(head) + r" \\", r"\midrule", *body, r"\bottomrule"]
    columns = "l" + "r" * (len(header) - 1)
    return "\n".join([*told, rf"\begin{{tabular}}{{{columns}}}", *ruled, r"\end{tabular}"]) + "\n"


def _cells(found: Comparison, precision: int | None, plus_minus: str) -> tuple[list[str], list[list[Any]]]:
    """The heading, and for each group its name and its cells as (text, whether it is the best); with a baseline a
    column of p-values beside each metric."""
    tested = {(each.run, each.metric): each for each in found.differences}
    p_name = "p (Holm)" if found.is_adjusted else "p"
    header: list[str] = ["run"]
    rows: list[list[Any]] = [[group.name] for group in found.groups]
    for metric in found.metrics:
        decimals = metric_decimals(found, metric, precision)
        best = best_groups(found, metric, decimals)
        has_tests = any(each.metric == metric for each in found.differences)
        header += [metric, p_name] if has_tests else [metric]
        for row, group in zip(rows, found.groups, strict=True):
            row.append((format_spread(found, group, metric, decimals, plus_minus), group.name in best))
            if has_tests:
                each = tested.get((group.name, metric))
                row.append((format_p(each.p_holm) if each else "", False))
    return header, rows


def _with_arrow(found: Comparison, cell: str) -> str:
    arrow = ARROWS[found.greater_is_better(cell)] if cell in found.metrics else ""
    return f"{metric_words(cell)} {arrow}".strip() if cell in found.metrics else cell


def _latex_heading(found: Comparison, cell: str) -> str:
    if cell not in found.metrics:
        return cell.replace("p", "$p$", 1) if cell.startswith("p") else cell
    arrow = {True: r" $\uparrow$", False: r" $\downarrow$", None: ""}[found.greater_is_better(cell)]
    return _latex(metric_words(cell)) + arrow


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>#])", r"\\\1", _one_line(text))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in _one_line(text))


def _latex_number(text: str, bold: bool) -> str:
    if not text:
        return "--"
    number = re.sub(r"e([+-]?)0*(\d+)", lambda e: rf" \cdot 10^{{{e[1].strip('+')}{e[2]}}}", text)
    return rf"$\mathbf{{{number}}}$" if bold else f"${number}$"


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def as_json(found: Comparison) -> dict[str, Any]:
    """All that there is to say, every final metric of every group with its values by seed."""
    shown = {
        "runs": [_group_json(found, group) for group in found.groups],
        "metrics": found.metrics,
        "better": {
            name: {True: "high", False: "low", None: None}[found.greater_is_better(name)] for name in found.metrics
        },
        "options": found.options,
        "confidence": found.confidence,
        "baseline": found.baseline and found.baseline.name,
        "differences": [each._asdict() for each in found.differences],
        "notes": found.notes,
    }
    kinds = {"language_models": found.language_models, "generative_models": found.generative_models}
    return shown | {kind: [line._asdict() for line in lines] for kind, lines in kinds.items() if lines}


def _group_json(found: Comparison, group: RunGroup) -> dict[str, Any]:
    every = {name: spread for name in found.every_metric if (spread := found.spread(group, name))}
    values = {
        name: [run.metrics[name] for run in group.finished if run.metrics and name in run.metrics] for name in every
    }
    return {
        "name": group.name,
        "recipe": group.folder.recipe,
        "folders": [str(path) for path in group.paths],
        "over": group.over or None,
        "planned": group.count,
        "finished": len(group.finished),
        "seeds": [run.seed for run in group.finished],
        "metrics": {name: spread._asdict() | {"values": values[name]} for name, spread in every.items()},
    }
