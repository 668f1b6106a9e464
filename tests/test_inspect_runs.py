"""`quoin inspect` and the report: what a trained run shows of its inside, in which forms, and what is said where there
is nothing."""

import json
import re

import pytest

from commands import contents, refused, tried
from quoin.runs import inspect_run as inspecting
from quoin.runs.kinds import MULTIRUN
from quoin.runs.run import Run
from quoin.train import report

QUICK = ["--max-steps", "4", "--checkpoint-every", "4", "--num-threads", "1", "--json"]
PICTURES = ("Kernels of features.0", "Feature maps of test row 1", "Saliency", "Top-activating patches of features.3")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A few steps of a convolutional network and a perceptron on images, of a regression on a table, and what a study
    leaves."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("lenet", "mlp", "mlp-regression"):
        code, _, err = tried("train", name, *QUICK, "--runs", folder)
        assert code == 0, err
    study = json.loads((folder / "mlp-1" / "config.json").read_text()) | {
        "kind": MULTIRUN,
        "multirun": {"over": "seed", "count": 2},
    }
    (folder / "study-1").mkdir()
    (folder / "study-1" / "config.json").write_text(json.dumps(study))
    return folder


def headings(page: str) -> list[str]:
    return [heading for heading in re.findall("<h2>(.*?)</h2>", page) if heading != "Contents"]


def test_the_page_and_the_table(runs):
    code, out, err = tried("inspect", runs / "lenet-1")
    assert (code, err) == (0, "")
    assert re.search(r"features\.0 +Conv2d +32 × 8 × 8 +320", out)
    assert f"page: {runs / 'lenet-1' / 'inspect.html'}" in out
    page = (runs / "lenet-1" / "inspect.html").read_text(encoding="utf-8")
    assert headings(page) == ["Layers", *PICTURES, "Dead units", "Activations and gradients by layer"]
    assert "://" not in page.replace("http://www.w3.org/", "")
    assert page.count("<script") == 1  # the one that enlarges plots


def test_the_report_shows_what_is_inside(runs):
    page = (runs / "lenet-1" / "report.html").read_text(encoding="utf-8")
    assert set(PICTURES) <= set(headings(page))
    assert not set(PICTURES) & set(headings((runs / "mlp-1" / "report.html").read_text(encoding="utf-8")))


def test_looking_inside_cannot_cost_a_run_its_report(runs, monkeypatch, panels_may_fail, capsys):
    def fail(*given, **named):
        raise RuntimeError("a model of somebody's own")

    task = Run.open(runs / "lenet-1").load_task()
    monkeypatch.setattr(inspecting, "image_panels", fail)
    (line,) = report.figures(lambda: inspecting.report_panels(task))
    assert "a panel could not be plotted: a model of somebody" in line
    assert capsys.readouterr().err == "quoin: a panel could not be plotted: a model of somebody's own\n"


def test_one_layer_at_some_rows_for_a_machine(runs, tmp_path):
    out = tmp_path / "pictures"
    words = [
        "inspect",
        runs / "lenet-1",
        "--layer",
        "features.3",
        "--row",
        "3",
        "8",
        "--format",
        "svg",
        "--out",
        out,
        "--json",
    ]
    code, printed, err = tried(*words)
    assert (code, err) == (0, "")
    found = json.loads(printed)
    assert {path.name for path in out.iterdir()} == {
        "kernels-of-features.3.svg",
        "feature-maps-of-features.3-test-row-3.svg",
        "feature-maps-of-features.3-test-row-8.svg",
        "saliency.svg",
        "top-activating-patches-of-features.3.svg",
        "dead-units.svg",
        "activations-and-gradients-by-layer.svg",
    }
    assert sorted(found["files"]) == sorted(str(path) for path in out.iterdir())
    task = Run.open(runs / "lenet-1").load_task()
    assert isinstance(task, inspecting.SupervisedTask)
    counts = {name: sum(p.numel() for p in module.parameters()) for name, module in task.model.named_modules()}
    assert {each["layer"]: each["num_parameters"] for each in found["layers"]}.items() <= counts.items()
    assert all(0 <= each["zeros"] <= 1 for each in found["layers"] if each["kind"] == "ReLU")


def test_runs_without_convolutions_and_without_images_show_what_they_have(runs, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = tried("inspect", runs / "mlp-1", "--out", page)
    assert code == 0
    assert "no convolutions" in out
    assert "Weights of features.0, as images" in headings(page.read_text(encoding="utf-8"))
    code, out, _ = tried("inspect", runs / "mlp-regression-1", "--out", page)
    assert code == 0
    assert "the rows of diabetes are not images" in out
    assert headings(page.read_text(encoding="utf-8")) == ["Layers", "Dead units", "Activations and gradients by layer"]


MISTAKES = {
    "inspect": ["RUN"],
    "inspect runs/nothing": ["runs/nothing", "quoin train"],
    "inspect RUNS/study-1": ["several runs", "seed-0"],
    "inspect RUNS/lenet-1 --layer features.33": ["'features.33'", "did you mean 'features.3'?"],
    "inspect RUNS/lenet-1 --row 0": ["1 to 359", "0", "--row"],
    "inspect RUNS/lenet-1 --row 360": ["1 to 359", "360"],
    "inspect RUNS/lenet-1 --row x": ["--row", "'x'", "a whole number"],
    "inspect RUNS/lenet-1 --format pgn": ["'pgn'", "did you mean 'png'?"],
    "inspect RUNS/lenet-1 --out page.txt": ["'page.txt'", ".html"],
    "inspect RUNS/lenet-1 --out nowhere/page.html": ["nowhere/page.html", "--out"],
    "inspect RUNS/lenet-1 --step 99": ["99"],
    "inspect RUNS/lenet-1 --layr features.3": ["'--layr'", "did you mean '--layer'?"],
    "inspect RUNS/mlp-regression-1 --row 1": ["images", "diabetes", "leave them out"],
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_line_and_write_nothing(words, runs, here):
    before = contents(runs)
    told = refused(*words.replace("RUNS", str(runs)).split())
    assert all(word in told for word in MISTAKES[words]), told
    assert contents(runs) == before
    assert contents(here) == {}


def test_help_teaches():
    code, out, _ = tried("inspect", "--help")
    assert code == 0
    assert all(word in out for word in ("--layer", "--row", "--format", "quoin inspect runs/lenet-1 --row 3 8"))
