"""`quoin inspect` and the report of a run whose model attends: the maps, the page to point at, and what layers and rows
choose."""

import json
import re

import pytest
import torch

from commands import contents, refused, tried
from quoin.errors import UserError
from quoin.inspect import attention_maps
from quoin.runs import inspect_run as inspecting
from quoin.runs.run import Run
from quoin.train import report

QUICK = ["--max-steps", "2", "--checkpoint-every", "2", "--num-threads", "1", "--json"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    code, _, err = tried("train", "attention-digits", *QUICK, "--runs", folder)
    assert code == 0, err
    return folder / "attention-digits-1"


def headings(page: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", page)


def test_the_report_shows_where_the_heads_look(run):
    assert "Attention of test row 1" in headings((run / "report.html").read_text(encoding="utf-8"))


def test_the_page_leads_to_the_maps_of_the_rows_asked_for(run, tmp_path):
    code, out, err = tried("inspect", run, "--row", "3", "8", "--out", tmp_path / "page.html")
    assert (code, err) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert {"Attention of test row 3", "Attention of test row 8"} <= set(headings(page))
    for row in (3, 8):
        name = f"page-attention-of-test-row-{row}.html"
        assert f'href="{name}"' in page
        assert f"page: {tmp_path / name}" in out
        maps = (tmp_path / name).read_text(encoding="utf-8")
        [layers] = re.findall(r'id="layers">(.*?)</script>', maps)
        told = json.loads(layers)
        task = Run.open(run).load_task()
        assert isinstance(task, inspecting.SupervisedTask)
        found = attention_maps(task.model, task.data.test.features[row - 1 : row])
        assert [(each["name"], each["heads"]) for each in told] == [(each.layer, len(each.weights)) for each in found]
        assert told[0]["query_labels"] == [f"row {number}" for number in range(1, 9)]
        assert "://" not in maps


def test_one_layer_and_pictures(run, tmp_path):
    words = [
        "inspect",
        run,
        "--layer",
        "blocks.1.attention",
        "--format",
        "png",
        "--out",
        tmp_path / "pictures",
        "--json",
    ]
    code, printed, err = tried(*words)
    assert (code, err) == (0, "")
    assert str(tmp_path / "pictures" / "attention-of-test-row-1.png") in json.loads(printed)["files"]
    task = Run.open(run).load_task()
    whole, part, other = (
        [
            panel
            for panel in inspecting.inspect_task(task, run, layer=layer).panels
            if panel.title.startswith("Attention")
        ]
        for layer in (None, "blocks.1.attention.inner_attention", "head")
    )
    assert [len(panel.plot.figure.axes[0].images) for panel in (*whole, *part)] == [8, 4]
    assert other == []


def test_what_is_too_long_to_show_is_a_remark(run, monkeypatch, panels_may_fail):
    def refuse(*given, **named):
        raise UserError("expected at most 2048 positions to show, got 4096; give a shorter input")

    task = Run.open(run).load_task()
    monkeypatch.setattr(inspecting, "attention_panels", refuse)
    found = inspecting.inspect_task(task, run)
    assert any("got 4096" in remark for remark in found.remarks)
    assert found.panels
    (line,) = report.figures(lambda: inspecting.report_panels(task))
    assert "got 4096" in line


def test_symbols_name_their_positions():
    from quoin.tasks.attention_panels import _names

    assert _names(torch.tensor([3, 1, 2]), 3) == ["3", "1", "2"]
    assert _names(torch.zeros(1, 8, 5), 8) == [f"row {number}" for number in range(1, 9)]
    assert _names(torch.zeros(3), 3) is None  # numbers that name nothing
    assert _names(torch.zeros(1, 8, 5), 40) is None


def test_mistakes_are_one_line_and_write_nothing(run):
    before = contents(run)
    assert "did you mean 'blocks.1.attention'" in refused("inspect", run, "--layer", "blocks.1.atention")
    assert "1 to 359" in refused("inspect", run, "--row", "360")
    assert contents(run) == before
