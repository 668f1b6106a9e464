"""States of an exhibit to test: the default, both ends of all controls at once, and some at random; and small runs for
those that need a trained model."""

import html
import json
import random
import re
from pathlib import Path
from typing import Any

from quoin.lab.parts import Exhibit, View, exhibits_of
from quoin.lab.parts.controls import Choice, Control, Handle, Slider, Step, Switch
from quoin.runs import Run
from quoin.runs.catalog import find_recipe
from quoin.runs.fit import fit_recipe
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import RunLabel


def exhibit_named(page: str, slug: str) -> Exhibit:
    return next(each for each in exhibits_of(page) if each.slug == slug)


def _between(control: Control, part: float) -> Any:
    match control:
        case Slider(choices=choices) if choices:
            return choices[round(part * (len(choices) - 1))]
        case Slider(low=low, high=high):
            value = low * (high / low) ** part if control.log else low + part * (high - low)
            return round(value) if control.whole else value
        case Choice(options=options):
            return options[round(part * (len(options) - 1))]
        case Switch():
            return part > 0.5
        case Step(most=most):
            return round(part * most)
        case Handle(low=low, high=high):
            return [a + part * (b - a) for a, b in zip(low, high)]
    return control.initial


def states(exhibit: Exhibit, *fixed: str) -> list[dict[str, Any]]:
    """Six states; the controls named in `fixed` stay at their defaults."""
    moved = [control for control in exhibit.controls if control.name not in fixed]
    chance = random.Random(exhibit.slug)
    found: list[dict[str, Any]] = [{}, *({c.name: _between(c, part) for c in moved} for part in (0.0, 1.0))]
    return [*found, *({c.name: _between(c, chance.random()) for c in moved} for _ in range(3))]


def value(exhibit: Exhibit, state: dict[str, Any], number: int = 0) -> Any:
    """A number that the exhibit shows."""
    return exhibit.view(state).numbers[number].value


def tiny_run(recipe: str, folder: Path, options: dict[str, Any]) -> Run:
    """A run of this recipe, trained into `folder` with these options."""
    found = find_recipe(recipe)
    fit_recipe(found, found.options(**options), RunConfig(), folder, label=RunLabel(name="run"), show_progress=False)
    return Run.open(folder / "run")


def drawn(view: View, label: str, frame: int = 0) -> list[tuple[float, float]]:
    """The points of all marks with this title, in the numbers of the picture's axes number `frame`."""
    svg = html.unescape(view.picture.svg())
    axes = json.loads(re.search(r"data-frames=\"(\[.*?\}\])\"", svg).group(1))[frame]  # type: ignore[union-attr]
    left, top, width, height = axes["box"]
    found = []
    for coordinates in re.findall(rf'(?:\bd|points)="([^"]*)"[^>]*><title>{re.escape(label)}</title>', svg):
        pixels = [float(each) for each in re.findall(r"-?[0-9.]+", coordinates)]
        for x, y in zip(pixels[::2], pixels[1::2]):
            across, up = (x - left) / width, 1 - (y - top) / height
            found.append((_along(axes["x"], across, axes["xlog"]), _along(axes["y"], up, axes["ylog"])))
    assert found, f"nothing is drawn with the title {label}"
    return found


def _along(ends: list[float], part: float, log: bool) -> float:
    low, high = ends
    return low * (high / low) ** part if log else low + part * (high - low)
