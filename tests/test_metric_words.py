"""Numbers and metrics as a reader sees them: three digits, and words for every metric of every recipe."""

import json
import math

import pytest

from quoin.cli import main
from quoin.cli.output import number
from quoin.display import METRICS, format_number, metric_words
from quoin.runs import find_recipe, recipe_names
from quoin.train import report
from report_words import has_words, raw_names


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.98765, "0.988"),
        (1 / 3, "0.333"),
        (12.3456, "12.3"),
        (999.4, "999"),
        (999.6, "1000"),
        (54321.5, "54322"),
        (15000000.0, "1.5e+07"),
        (-0.000123456, "-0.000123"),
        (0.0, "0"),
        (1.0, "1"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_three_digits(value, shown):
    assert format_number(value) == number(value) == shown
    assert f">{shown}</td>" in report.table("t", ("a",), [(value,)])


def test_a_number_that_was_given_is_shown_as_given_and_a_measured_one_in_full_when_pointed_at():
    assert "0.123456" in report.collapsible("Options", {"lr": 0.123456})
    assert '<td class="number" title="0.123456">0.123</td>' in report.table("t", ("a",), [(0.123456,)])


@pytest.mark.parametrize("name", recipe_names())
def test_the_target_and_the_monitor_of_every_recipe_have_words(name):
    recipe = find_recipe(name)
    for told in (recipe.target, recipe.monitor):
        if told is not None:
            assert has_words(told.metric), told.metric
            assert "_" not in metric_words(told.metric)


def test_the_words_of_two_metrics_differ():
    words = [metric_words(name) for name in METRICS]
    assert len(set(words)) == len(words)


def test_a_name_that_nobody_listed_still_loses_its_underscores():
    assert metric_words("validation_my_own_mae") == "validation my own mean absolute error"


def test_no_heading_or_label_of_a_report_is_a_raw_name(tmp_path, capsys):
    """Of one recipe; tests/test_recipes.py asks the same of all."""
    assert main(["train", "ridge", "--num-threads", "1", "--max-steps", "3", "--json", "--runs", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "ridge-1" / "result.json").read_text())
    assert [name for name in result["metrics"] if not has_words(name)] == []
    assert raw_names((tmp_path / "ridge-1" / "report.html").read_text(encoding="utf-8")) == []


def test_a_raw_name_is_seen():
    page = "<h1>Run</h1><th>test_accuracy</th><h2>Configuration</h2><td>batch_size</td>"
    assert raw_names(page) == ["test_accuracy"]
