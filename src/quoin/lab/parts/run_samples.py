"""What generative models can be asked: new samples, by seed, steps, class, guidance scale and temperature; of several
runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from quoin.data import ImageInfo
from quoin.generate import PixelSampler
from quoin.lab.parts.controls import Choice, Control, Slider
from quoin.lab.parts.exhibit import Exhibit, Number, View
from quoin.lab.parts.open_runs import run_names
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.run_exhibit import run_exhibit
from quoin.runs import Run
from quoin.runs.kinds.generation import SamplingOptions

__all__ = ["sample_exhibits"]

EACH = "each in turn"


def sample_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """Samples of runs that generate examples of one shape."""
    can = [_supported(run) for run in runs]
    classes = _class_names(runs)
    controls: list[Control] = [Slider("seed", "seed", 0, 50, 0, step=1)]
    if any("num_steps" in each for each in can):
        controls.append(Slider("num_steps", "number of steps", 2, 50, 10, step=1))
    if any("temperature" in each for each in can):
        controls.append(Slider("temperature", "temperature", 0.1, 2.0, 1.0, step=0.05))
    if classes:
        controls.append(Choice("label", "class", (EACH, *classes)))
    if any("guidance_scale" in each for each in can):
        controls.append(Slider("guidance_scale", "guidance scale", 0.0, 6.0, 1.0, step=0.25))

    def samples(
        seed: int,
        num_steps: int = 10,
        temperature: float = 1.0,
        label: str = EACH,
        guidance_scale: float = 1.0,
    ) -> View:
        found = []
        for run, supported in zip(runs, can):
            options = SamplingOptions(
                label=label if label != EACH and "labels" in supported else None,
                num_steps=num_steps if "num_steps" in supported else None,
                guidance_scale=guidance_scale if "guidance_scale" in supported else None,
                temperature=temperature if "temperature" in supported else None,
            )
            trained: Any = run.trained
            found.append(trained.generate(_count(runs, run), seed=seed, options=options).detach())
        return _view(runs, found, "" if label == EACH else f" of class {label}")

    intro = "Every seed gives others; the same seed starts from the same noise."
    if controls[-1].name == "guidance_scale":
        intro += " Guidance pushes every sample towards its class."
    return [run_exhibit(samples, "What does it generate?", intro, controls, runs)]


def _supported(run: Run) -> set[str]:
    trained: Any = run.trained
    without_classes = isinstance(run.model, PixelSampler) and run.model.model.num_classes is None
    return trained.supported_options - ({"labels"} if without_classes else set())


def _class_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """The classes that some run can be asked for, where all that can have the same."""
    asked = {
        tuple(str(name) for name in run.data_info.class_names)
        for run in runs
        if "labels" in _supported(run) and isinstance(run.data_info, ImageInfo)
    }
    return asked.pop() if len(asked) == 1 else ()


def _count(runs: Sequence[Run], run: Run) -> int:
    if not isinstance(run.data_info, ImageInfo):
        return 200
    return 16 if len(runs) == 1 else 8


def _view(runs: Sequence[Run], found: Sequence[torch.Tensor], of_class: str) -> View:
    names = run_names([run.path for run in runs])
    alt = f"Samples{of_class} of {', '.join(names)}."
    if found[0].ndim == 2:
        picture = _points(alt, names, found)
    elif len(runs) == 1:
        picture = _square(alt, found[0])
    else:
        picture = _rows(alt, names, found)
    spreads = [Number(f"deviation, {name}", float(each.std(dim=0).mean())) for name, each in zip(names, found)]
    if len(runs) == 1:
        spreads = [Number("standard deviation", spreads[0].value)]
    return View(picture, spreads, note=f"{len(found[0])} samples{of_class}; the deviation is between them")


def _points(alt: str, names: Sequence[str], found: Sequence[torch.Tensor]) -> Picture:
    picture, together = Picture(alt, height=460), torch.cat(list(found))[:, :2]
    low, high = together.amin(0) - 0.5, together.amax(0) + 0.5
    span = (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))
    axes = picture.axes(*span, box=(46, 12, 582, 380), equal=True)
    for number, (name, points) in enumerate(zip(names, found)):
        role = "model" if len(names) == 1 else f"series-{number + 1}"
        axes.points(points[:, 0], points[:, 1], role, size=3.5)
        picture.text(46 + 190 * (number % 3), 432 + 18 * (number // 3), f"● {name}", role=role)
    return picture


def _square(alt: str, images: torch.Tensor) -> Picture:
    picture = Picture(alt, height=440)
    for number, image in enumerate(images):
        row, column = divmod(number, 4)
        _draw(picture, image, (100 + column * 108, 6 + row * 108, 102, 102))
    return picture


def _rows(alt: str, names: Sequence[str], found: Sequence[torch.Tensor]) -> Picture:
    picture = Picture(alt, height=20 + 104 * len(names))
    for number, (name, images) in enumerate(zip(names, found)):
        picture.text(8, 20 + 104 * number, name, size=14)
        for column, image in enumerate(images):
            _draw(picture, image, (8 + column * 78, 28 + 104 * number, 74, 74))
    return picture


def _draw(picture: Picture, image: torch.Tensor, box: tuple[float, float, float, float]) -> None:
    values = image.double().clamp(0, 1)
    axes = picture.axes(bare=True, box=box)
    if len(values) == 3:
        axes.image(values.movedim(0, -1), turns=False)
    else:
        axes.image(values[0], smooth=True)
