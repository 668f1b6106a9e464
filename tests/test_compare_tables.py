"""What a comparison writes: CSV, Markdown, LaTeX, the page, the curves; on folders written by hand."""

import json
import re
from pathlib import Path

import numpy as np
import polars
import pytest

from commands import tried
from made_runs import write_multirun, write_run
from quoin.plot import Band, curve_bands
from quoin.runs.compare import comparison
from quoin.runs.compare_curves import band_panels, metric_band
from quoin.runs.compare_page import comparison_page
from quoin.runs.compare_tables import as_latex, as_markdown, metric_decimals

ODD = r"50%_of & $x^2$ #{1}~\a|b*"  # all that LaTeX and Markdown take for their own


@pytest.fixture
def runs(tmp_path, monkeypatch) -> list[Path]:
    """A baseline over three seeds, one that is better, and a run alone that lacks a metric."""
    monkeypatch.chdir(tmp_path)
    base = [{"test_accuracy": 0.90 + i / 100, "test_loss": 0.5 + i / 10, "train_loss": 0.1} for i in range(3)]
    mine = [{"test_accuracy": 0.95 + i / 100, "test_loss": 0.7 + i / 10, "train_loss": 0.2} for i in range(3)]
    write_multirun(tmp_path / "base", base, lr=0.1, hidden_dims=[8])
    write_multirun(tmp_path / ODD, mine, lr=0.2, hidden_dims=[8, 4])
    write_run(tmp_path / "alone", {"test_accuracy": 0.5}, lr=0.3, hidden_dims=[8])
    return [Path("base"), Path(ODD), Path("alone")]


def forty(folder: Path) -> list[Path]:
    values = np.random.default_rng(0).permutation(40) / 100
    return [
        write_multirun(
            folder / f"run-{i}",
            [{"test_accuracy": 0.5 + value + seed / 1000, "train_accuracy": 1.0} for seed in range(2)],
            curves=[[{"validation_loss": 1 / epoch + value} for epoch in range(1, 6)]] * 2,
            lr=0.1 * i,
        )
        for i, value in enumerate(values)
    ]


# ---- CSV --------------------------------------------------------------------------------------------------------


def test_the_csv_is_a_line_for_each_run_and_metric(runs):
    assert tried("compare", *runs, "--baseline", "--csv", "a.csv")[0] == 0
    table = polars.read_csv("a.csv")
    found = json.loads(tried("compare", *runs, "--baseline", "--json")[1])
    assert table["run"].to_list() == [name for name in ("base", ODD, "alone") for _ in range(2)]
    assert table["metric"].to_list() == ["test_accuracy", "test_loss"] * 3
    assert all(table[name].dtype == polars.Float64 for name in ("mean", "std", "ci_low", "p_value", "option_lr"))
    assert table["n"].to_list() == [3, 3, 3, 3, 1, 0]
    spreads = [run["metrics"].get(metric) for run in found["runs"] for metric in found["metrics"]]
    for name, key in (("mean", "mean"), ("std", "std"), ("ci_low", "low"), ("ci_high", "high")):
        assert table[name].to_list() == [spread and spread[key] for spread in spreads]  # to the last digit
    tested = table.filter(polars.col("test").is_not_null())
    assert tested["p_value"].to_list() == [each["p_value"] for each in found["differences"]] == [0.25, 0.25]
    assert tested["run"].to_list() == [ODD, ODD]
    assert table["option_hidden_dims"].to_list()[::2] == ["8", "8 4", "8"]


def test_a_table_on_standard_output_stands_there_alone(runs):
    for flag, start in (("--csv", "run,recipe,"), ("--markdown", "| run |"), ("--latex", "% needs")):
        code, out, err = tried("compare", *runs, flag, "-")
        assert (code, err) == (0, "")
        assert out.startswith(start)
        assert "compare.html" not in out
    out = tried("compare", *runs, "--csv", "a.csv", "--latex", "b.tex")[1]
    assert out.endswith("written: compare.html, a.csv, b.tex\n")


# ---- LaTeX and Markdown -----------------------------------------------------------------------------------------


def latex_rows(text: str) -> tuple[str, list[list[str]]]:
    """The columns and cells of a tabular, read as LaTeX would: comments dropped, escaped signs kept, groups closed."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert lines[0].startswith(r"\begin{tabular}{")
    assert lines[-1] == r"\end{tabular}"
    columns = lines[0].removeprefix(r"\begin{tabular}{").removesuffix("}")
    rules = [i for i, line in enumerate(lines) if line.startswith(("\\toprule", "\\midrule", "\\bottomrule"))]
    assert [lines[i] for i in rules] == [r"\toprule", r"\midrule", r"\bottomrule"]
    rows = []
    for line in (line for i, line in enumerate(lines[1:-1], 1) if i not in rules):
        assert line.endswith(r" \\")
        body = re.sub(r"\\[&%$#_{}]", "x", line.removesuffix(r" \\"))  # escaped signs are letters
        depth = 0
        for sign in body:
            depth += {"{": 1, "}": -1}.get(sign, 0)
            assert depth >= 0
        assert depth == 0
        assert body.count("$") % 2 == 0
        text_mode = re.sub(r"\$[^$]*\$", "", body)
        assert not re.search(r"[#_%^~]", text_mode), text_mode
        rows.append(body.split(" & "))
    return columns, rows


def test_the_latex_table_is_whole(runs):
    found = comparison(runs, baseline=runs[0])
    columns, rows = latex_rows(as_latex(found))
    assert columns == "lrrrr"
    assert [len(row) for row in rows] == [5, 5, 5, 5]
    assert rows[0] == ["run", r"test accuracy $\uparrow$", "$p$", r"test loss $\downarrow$", "$p$"]
    assert rows[1] == ["base", r"$0.910 \pm 0.010$", "--", r"$\mathbf{0.60 \pm 0.10}$", "--"]
    assert rows[2][1:] == [r"$\mathbf{0.960 \pm 0.010}$", "$0.25$", r"$0.80 \pm 0.10$", "$0.25$"]
    assert rows[3] == ["alone", "$0.500$", "--", "--", "--"]
    for sign in "&%$#_{":
        assert f"\\{sign}" in as_latex(found)
    assert r"\textasciitilde{}\textbackslash{}a\textbar{}b" in as_latex(found)


def test_the_markdown_table_is_whole(runs):
    lines = as_markdown(comparison(runs)).splitlines()
    assert lines[0] == "| run | test accuracy ↑ | test loss ↓ |"
    assert lines[1] == "| :-- | --: | --: |"
    assert lines[2] == "| base | 0.910 ± 0.010 | **0.60 ± 0.10** |"
    assert lines[4] == "| alone | 0.500 | – |"
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) == 4, line


def test_digits_follow_the_spread_or_what_is_asked_for(runs):
    found = comparison(runs)
    assert metric_decimals(found, "test_accuracy", None) == 3  # a std of 0.010 has two digits
    assert metric_decimals(found, "test_loss", None) == 2
    assert "0.91 ± 0.01" in as_markdown(found, precision=2)
    assert r"1 \cdot 10^{9}" in as_latex(comparison([_large("c", 1e9), _large("d", 5.0)]))


def _large(name: str, value: float) -> Path:
    return write_run(Path(name), {"test_loss": value}, lr=value)


# ---- the page and the terminal ----------------------------------------------------------------------------------


def test_the_page_of_few_runs(runs):
    page = comparison_page(comparison(runs, baseline=runs[0]))
    assert page.split("<details>")[0].count('<td class="number best"') == 2
    assert "Difference from base" in page
    assert "0.25 of 3 pairs" in page
    assert "<h2>Options that differ</h2>" in page
    assert ODD not in page  # its ampersand is escaped
    assert "50%_of &amp; $x^2$" in page
    assert not re.search(r"https?://|src=|@import|url\(", page)


def test_the_page_of_forty_runs(tmp_path):
    found = comparison(forty(tmp_path))
    page = comparison_page(found)
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r'<tr><td><span class="name">(.*?)</span></td><td[^>]*data-value="(.*?)"', body)
    assert len(rows) == 40
    values = [float(value) for _, value in rows]
    assert values == sorted(values, reverse=True)
    assert [name for name, _ in rows] == [group.name for group in found.ranked()]
    assert page.count('<table class="sortable">') == 2  # results, and the metrics that are not on test data
    assert len(re.findall("<button>", page.split("</thead>")[0])) == 4  # run, accuracy, runs, lr
    assert page.count("<svg") == 1


def test_forty_runs_in_a_terminal_have_a_line_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tried("compare", *forty(tmp_path))[1].splitlines()
    assert out[0] == "results, the best test_accuracy first"
    assert out[1].split() == ["run", "test_accuracy", "runs", "lr"]
    means = [float(line.split()[1]) for line in out[2:42]]
    assert means == sorted(means, reverse=True)
    assert {line.split()[0] for line in out[2:42]} == {f"run-{i}" for i in range(40)}


# ---- curves -----------------------------------------------------------------------------------------------------


def lines(*values: float) -> list[dict[str, float]]:
    return [{"validation_loss": value} for value in values]


def test_a_band_is_mean_least_and_greatest_over_seeds(tmp_path):
    curves = [lines(4, 3, 2, 9), lines(6, 1, 2), lines(5, 2, 2)]
    folder = write_multirun(tmp_path / "a", [{"test_loss": 1.0}] * 3, curves=curves)
    (group, *_) = comparison([folder, folder]).groups
    band = metric_band(group, "validation_loss")
    assert band is not None
    xs, middle, low, high = (np.asarray(each).tolist() for each in band)
    assert xs == [1, 2, 3]  # as far as the shortest
    assert (middle, low, high) == ([5, 2, 2], [4, 1, 2], [6, 3, 2])
    assert metric_band(group, "validation_accuracy") is None


def test_runs_evaluated_at_other_epochs_are_interpolated(tmp_path):
    folder = write_multirun(tmp_path / "a", [{"test_loss": 1.0}] * 2, curves=[lines(0, 0, 0), lines(2, 4)])
    file = folder / "seed-1" / "metrics.jsonl"
    file.write_text(file.read_text().replace('"epoch": 2', '"epoch": 3'))
    band = metric_band(comparison([folder, folder]).groups[0], "validation_loss")
    assert band is not None
    assert np.asarray(band.high).tolist() == [2, 3, 4]  # at epoch 2 halfway between 2 and 4


def test_unfinished_seeds_do_not_cut_the_curve_of_finished_ones(tmp_path):
    folder = write_multirun(tmp_path / "a", [{"test_loss": 1.0}, None], curves=[lines(3, 2, 1), []])
    write_run(folder / "seed-1", None, seed=1, curve=lines(7))
    band = metric_band(comparison([folder, folder]).groups[0], "validation_loss")
    assert band is not None
    assert np.asarray(band.middle).tolist() == [3, 2, 1]


def test_of_many_runs_the_best_and_the_baseline_are_colored(tmp_path):
    paths = forty(tmp_path)
    found = comparison(paths, baseline=paths[11])
    (panel,) = band_panels(found)
    axes = panel.plot.figure.axes[0]
    assert len(axes.lines) == 40
    legend = [text.get_text() for text in panel.plot.figure.legends[0].get_texts()]
    best = [group.name for group in found.ranked()][:6]
    assert set(legend) == {*best, "run-11", "33 others"}
    assert "the best by test accuracy and the baseline" in panel.caption


def test_lines_differ_in_color_and_in_dashes():
    band = Band([1, 2], [1, 2], [0, 1], [2, 3])
    plot = curve_bands({"training": {f"run {i}": band for i in range(7)}, "validation": {"run 3": band}})
    left, right = plot.figure.axes
    assert len({line.get_color() for line in left.lines}) == 7
    assert len({str(line._dash_pattern) for line in left.lines}) == 7  # type: ignore[attr-defined]
    assert right.lines[0].get_color() == left.lines[3].get_color()
    assert len(left.collections) == 7  # a band each
    assert left.get_ylim() == right.get_ylim()
    legend = [text.get_text() for text in plot.figure.legends[0].get_texts()]
    assert legend == [*(f"run {i}" for i in range(7)), "min to max"]
