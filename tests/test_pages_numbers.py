"""The numbers of two pages, read back from their HTML: of a comparison of runs written by hand, and of a run's report
beside the files of its folder."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy
import pytest

from commands import tried
from made_runs import write_run
from quoin.runs.compare import comparison
from quoin.runs.compare_page import MOST_COLUMNS, comparison_page


class Tables(HTMLParser):
    """The rows of every table; a cell is its attributes and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[tuple[dict[str, Any], str]]]] = []
        self.attributes: list[dict[str, Any]] = []
        self.cell: Any = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
            self.attributes.append(dict(attrs))
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = (dict(attrs), [])
        elif tag == "span" and self.cell is not None:
            self.cell[0].update({f"span {name}": value for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self.cell is not None:
            self.tables[-1][-1].append((self.cell[0], "".join(self.cell[1])))
            self.cell = None

    def handle_data(self, data: str) -> None:
        if self.cell is not None:
            self.cell[1].append(data)


def written(folder: Path, count: int) -> list[Path]:
    """Runs whose accuracies go up and down, by seeds of a learning rate each."""
    for number in range(count):
        metrics = {"test_accuracy": 0.5 + 0.03 * (number * 3 % count), "test_loss": 1.0 - 0.01 * number, "other": 7.0}
        write_run(folder / f"run-{number}", metrics, lr=0.1 * (number + 1), name=f"n{number}")
    return [folder / f"run-{number}" for number in range(count)]


@pytest.mark.parametrize("count", [MOST_COLUMNS + 1, 25])
def test_many_runs_stand_below_each_other_the_best_on_top(count, tmp_path):
    found = comparison(written(tmp_path, count))
    page = Tables(comparison_page(found))
    head, *rows = page.tables[0]
    accuracies = {f"run-{number}": 0.5 + 0.03 * (number * 3 % count) for number in range(count)}
    assert head[0][1] == "run"
    column = next(place for place, (about, _) in enumerate(head) if about.get("title") == "test_accuracy")
    assert column == 1
    assert head[column][0]["aria-sort"] == "descending"
    assert all("aria-sort" not in about for about, _ in head[2:])
    names = [row[0][1] for row in rows]
    assert [accuracies[name] for name in names] == sorted(accuracies.values(), reverse=True)
    assert [float(row[column][0]["data-value"]) for row in rows] == [accuracies[name] for name in names]
    best = max(accuracies.values())
    for row in rows:
        assert ("best" in row[column][0]["class"]) == (accuracies[row[0][1]] == best)
        assert "number" in row[column][0]["class"]
    rates = next(place for place, (_, text) in enumerate(head) if text == "lr")
    for name, row in zip(names, rows):
        assert float(row[rates][0]["data-value"]) == pytest.approx(0.1 * (int(name[4:]) + 1))
    texts = next(place for place, (_, text) in enumerate(head) if text == "name")
    assert all("data-value" not in row[texts][0] and "class" not in row[texts][0] for row in rows)
    assert page.attributes[0] == {"class": "sortable"}
    assert ("scroll tall" in comparison_page(found)) == (count > 20)


def test_few_runs_stand_side_by_side(tmp_path):
    found = comparison(written(tmp_path, MOST_COLUMNS))
    results, options, *rest = Tables(comparison_page(found)).tables
    assert [text for _, text in results[0]][1:] == [f"run-{number}" for number in range(MOST_COLUMNS)]
    accuracies = [0.5 + 0.03 * (number * 3 % MOST_COLUMNS) for number in range(MOST_COLUMNS)]
    row = next(each for each in results if each[0][0].get("span title") == "test_accuracy")
    assert [float(about["data-value"]) for about, _ in row[1:]] == accuracies
    best = max(accuracies)
    assert ["best" in about["class"] for about, _ in row[1:]] == [value == best for value in accuracies]
    lrs = next(each for each in options if each[0][1] == "lr")
    assert [float(text) for _, text in lrs[1:]] == pytest.approx(0.1 * numpy.arange(1, MOST_COLUMNS + 1), rel=1e-2)
    others = next(table for table in rest if any(text == "other" for _, text in table[0]))
    place = next(place for place, (_, text) in enumerate(others[0]) if text == "other")
    assert {float(row[place][0]["data-value"]) for row in others[1:]} == {7.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    asked = ("--data", "iris", "--epochs", 6, "--lr", 2.0, "--schedule", "constant", "--note", "a <note>", "--tag", "x")
    code, out, err = tried("train", "mlp", *asked, "--num-threads", 1, "--json", "--runs", folder)
    assert code == 0, err
    return Path(json.loads(out)["run"])


def test_the_report_is_that_of_the_folder(run):
    page = (run / "report.html").read_text(encoding="utf-8")
    result = json.loads((run / "result.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert f"Recipe mlp, seed 0; {result['steps']:,} steps in " in page
    best = min(lines, key=lambda line: line["validation_loss"])
    assert result["best_step"] == best["step"]
    told = f"The results are those of the best checkpoint by validation loss, of epoch {best['epoch']:g}."
    assert (told in page) == (best["step"] < result["steps"])
    texts = [text for table in Tables(page).tables for row in table for _, text in row]
    for name, value in result["metrics"].items():
        shown = [text for text in texts if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text)]
        assert any(float(text) == pytest.approx(value, rel=6e-3, abs=1e-9) for text in shown), name
    assert "a &lt;note&gt;" in page
    options = {row[0][1]: row[1][1] for table in Tables(page).tables for row in table if len(row) == 2}
    assert (float(options["lr"]), options["epochs"], options["data"]) == (2.0, "6", "iris")
    assert options["num_threads"] == "1"
    headings = re.findall(r"<h2>([^<]*)</h2>", page)
    assert headings[:2] == ["Contents", "Results"]  # of other data than the recipe's own no target is asked
    assert headings[-1] == "Configuration"
    assert re.findall(r"<summary>(.*?)</summary>", page)[-3:] == ["Options", "Data", "Environment"]


def test_an_interrupted_run_says_so(run):
    from quoin.runs import Run
    from quoin.runs.report import write_report

    opened = Run.open(run)
    seen: list[Any] = []
    task: Any = opened.load_task()
    before = (run / "report.html").read_bytes()
    try:
        write_report(opened, task, None, seen.append)
        page = (run / "report.html").read_text(encoding="utf-8")
    finally:
        (run / "report.html").write_bytes(before)
    assert "interrupted: these are the curves so far." in page
    assert "Quality target" not in page
    titles = [each.title for each in seen]
    assert titles[0] == "Confusion matrix"
    assert all(title in page for title in titles)
