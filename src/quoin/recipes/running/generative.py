"""Learn to draw images: the task of all recipes whose model of images is trained by one loss, and how its images are judged.

A recipe subclasses `GenerativeTask` and says what the loss of an image is, what to watch, and what pictures to show beside a sheet
of samples. Its model offers `sample(count, *, generator)` (`quoin.models.GenerativeModel`); nothing else is asked of it.

    b images of a batch, n of a part; c channels, h height, w width
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from quoin import draw
from quoin.data import Batches, Dataset, ImageParts, keyed_generator
from quoin.draw import Panel
from quoin.models import draw_in_pieces
from quoin.optim import WeightAverage
from quoin.recipes.running.judge import RunJudge
from quoin.recipes.running.options import GenerativeOptions
from quoin.recipes.running.parts import schedule
from quoin.train import Descent, Diverged, Metrics, Place, Totals, load_strictly, rows_at_once

__all__ = ["GenerativeTask", "on_device"]

SHEET = 64  # samples on the sheet of a report


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator with the same seed on `device`: noise must be drawn where it is used."""
    return torch.Generator(device).manual_seed(generator.initial_seed())


class GenerativeTask(ABC):
    """A model of images, one loss for each image, an optimiser, and images in parts.

    With `average` above 0 the model that is judged, saved as the run's and drawn from is a moving average of the weights that keeps so
    much of its last value at a step (`quoin.optim.WeightAverage`); 0 takes the weights as they are.

    All chance comes from generators that are functions of the seed and the step: no state to save, and a resumed run draws what it
    would have drawn.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        data: ImageParts,
        options: GenerativeOptions,
        place: Place,
        *,
        average: float = 0.0,
    ) -> None:
        self.model, self.data, self.options, self.place = model, data, options, place
        self.facts = data.facts
        self.batches = Batches(
            data.train.num_rows, options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device
        )
        self.descent = Descent(
            optimiser, total_steps=options.epochs * self.batches.num_batches, place=place, schedule=schedule(options), clip=options.clip
        )
        self.average = WeightAverage(model, decay=average) if average else None
        self.shown: Any = model if self.average is None else self.average.module  # what is judged and drawn from
        self.judge = RunJudge(options.classifier, data, place)

    @abstractmethod
    def losses(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:  # (b, c, h, w), (b,) -> (b,)
        """What is minimised: one loss for each image, of `self.model`; `self.progress` says how far the run is."""

    @abstractmethod
    def measure(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """What to watch on held-out images, one value (b,) for each: "loss" and more, of `self.shown`, without gradients."""

    def measure_finally(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """What is worth its cost only once, on the test part of a finished run: more values like those of `measure`."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    @property
    def progress(self) -> float:
        """The share of the run that is done, from 0 to 1."""
        return self.descent.step_count / self.descent.total_steps

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator on the run's device that depends on the run's seed and `key` alone."""
        return on_device(keyed_generator(*key, self.options.seed), self.place.device)

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update on the training images of these numbers; the sum of their losses before it."""
        if not self.model.training:
            self.model.train()
        self.descent.begin()
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        generator = self.generator("loss", self.descent.step_count, self.place.rank)
        total = torch.zeros((), device=self.place.device)
        for piece in rows.split(self.options.micro_batch or self.options.batch_size):
            images, labels = self.data.train.features.index_select(0, piece), self.data.train.targets.index_select(0, piece)
            with self.place.autocast():
                losses = self.losses(images, labels, generator=generator)
            total = total + losses.detach().sum()
            if total.device.type == "cpu" and not math.isfinite(total.item()):
                raise Diverged(f"the loss is not finite at step {self.descent.step_count + 1}; try a smaller --lr, or --clip 1")
            self.descent.add(losses, 1 / batch_rows)
        self.descent.finish()
        if self.average is not None:
            self.average.update(self.model)
        return {"loss": total}

    def evaluate(self, part: str) -> Metrics:
        """Means over a part; of the test part also what is measured once, and how good samples are."""
        data: Dataset = getattr(self.data, part)
        if data.num_rows == 0:
            return {}
        means = self._means(part, data)
        if not all(map(math.isfinite, means.values())):
            raise Diverged(f"the {part} loss is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        return means | (self.quality() if part == "test" else {})

    @torch.no_grad()
    def _means(self, part: str, data: Dataset) -> Metrics:
        self.shown.eval()
        generator, totals = self.generator("measure", part), Totals()  # the same noise every time: epochs compare
        rows = rows_at_once(data.features)
        for images, labels in zip(data.features.split(rows), data.targets.split(rows)):
            values = self.measure(images, labels, generator=generator)
            if part == "test":
                values |= self.measure_finally(images, labels, generator=generator)
            totals.add({name: value.sum() for name, value in values.items()}, len(labels))
        return totals.means()

    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, c, h, w) in [0, 1]
        """New images, drawn a thousand at a time."""
        self.shown.eval()
        with torch.no_grad():
            return draw_in_pieces(lambda size: self.shown.sample(size, generator=generator), count)

    def quality(self) -> Metrics:
        """How good `--samples` new images are, by the measures that all models of images share."""
        return self.judge.quality(self.sample(self.options.samples, generator=self.generator("samples")))

    def state(self) -> dict[str, Any]:
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise Diverged(f"parameter {name} is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        state = {
            "model": {"weights": self.shown.state_dict()},
            "descent": self.descent.state(),
            "batches": self.batches.state(),
            "judge": self.judge.state(),
        }
        if self.average is None:
            return state
        return state | {"moving": self.model.state_dict(), "updates": self.average.updates}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.shown, state["model"]["weights"])
        if self.average is not None:
            load_strictly(self.model, state["moving"])
            self.average.updates = state["updates"]
        self.descent.load(state["descent"])
        self.batches.load(state["batches"])
        self.judge.load(state["judge"])

    def panels(self) -> Iterator[Panel]:
        """A sheet of samples, and the recipe's own."""
        samples = self.sample(SHEET, generator=self.generator("sheet")).clamp(0, 1).cpu()
        told = f"{SHEET} images that the model draws, not chosen."
        yield Panel("Samples", lambda: draw.image_sheet(samples), told)
        yield from self.own_panels()
