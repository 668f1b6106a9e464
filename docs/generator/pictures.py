"""The three pictures of the README and of the first page, made by the library: `make pictures`.

    python -m generator.pictures [--runs FOLDER]

Two of them need a trained model; a run that is there already is used."""

import argparse
import tempfile
from pathlib import Path

import torch

from quoin.autodiff import plot_graph, trace
from quoin.plot import Plot, image_sheet
from quoin.runs import Run, RunConfig, find_recipe, fit_recipe
from quoin.tasks.alignment_panels import bahdanau_alignments
from quoin.tasks.translation import TranslationTask

PICTURES = Path(__file__).parents[1] / "pictures"


def graph() -> Plot:
    """A logistic unit: values forward, adjoints backward."""
    values = {name: torch.tensor(value) for name, value in (("x", 2.0), ("w", 0.5), ("b", -1.5))}
    return plot_graph(trace(lambda x, w, b: torch.sigmoid(w * x + b), *values.values()))


def attention(runs: Path) -> Plot:
    """Which letters of a written date the decoder attends to for each character of the ISO date."""
    task = trained("translate-dates", runs).load_task()
    assert isinstance(task, TranslationTask)
    panels = bahdanau_alignments(task, range(12))
    content = max(panels, key=lambda panel: len(panel.title)).content  # a long date has more to see
    assert isinstance(content, Plot)
    return content


def samples(runs: Path) -> Plot:
    """Digits out of noise."""
    return image_sheet(trained("diffusion-digits", runs).generate(36, seed=0), columns=6)


def trained(name: str, runs: Path) -> Run:
    """A default run of a recipe."""
    path = runs / f"{name}-1"
    if not (path / "result.json").exists():
        recipe = find_recipe(name)
        path = fit_recipe(recipe, recipe.options(), RunConfig(), runs).folder.path
    return Run.open(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Plot the pictures of the README.")
    parser.add_argument("--runs", type=Path, help="the folder of runs to use or to add to (default: none is kept)")
    with tempfile.TemporaryDirectory() as scratch:
        runs = parser.parse_args().runs or Path(scratch)
        PICTURES.mkdir(exist_ok=True)
        for name, plot in (("graph", graph()), ("attention", attention(runs)), ("samples", samples(runs))):
            path = plot.save(PICTURES / f"{name}.svg")
            print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
