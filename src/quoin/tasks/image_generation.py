"""Learn to draw images: the task of all recipes whose model of images is trained by one loss, and how its images are judged.

A recipe subclasses `GenerativeTask` and says what the loss of an image is, what to watch, and what pictures to show beside a sheet
of samples. Its model offers `sample(count, *, generator)` (`quoin.models.GenerativeModel`); nothing else is asked of it.

    b images of a batch, n of a part; c channels, h height, w width
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import Batches, Dataset, ImageParts, keyed_generator
from quoin.models import draw_in_pieces
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import OpenClassifier, RunJudge
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import GenerativeOptions
from quoin.tasks.supervised import rows_at_once
from quoin.train import GradientTask, Metrics, Place, Totals, check_finite

__all__ = ["GenerativeTask", "on_device"]

SHEET = 64  # samples on the sheet of a report


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator with the same seed on `device`: noise must be drawn where it is used."""
    return torch.Generator(device).manual_seed(generator.initial_seed())


class GenerativeTask(GradientTask):
    """A model of images, one loss for each image, an optimiser, and images in parts.

    With `average` above 0 the model that is judged, saved as the run's and drawn from is a moving average of the weights that keeps so
    much of its last value at a step (`quoin.optim.WeightAverage`); 0 takes the weights as they are.

    All chance comes from generators that are functions of the seed and the step: no state to save, and a resumed run draws what it
    would have drawn.
    """

    kind = "image-generation"

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        data: ImageParts,
        options: GenerativeOptions,
        place: Place,
        *,
        average: float = 0.0,
        open_classifier: OpenClassifier,
    ) -> None:
        batches = Batches(
            data.train.num_rows, options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device
        )
        super().__init__(
            model,
            optimizer,
            batches,
            place,
            epochs=options.epochs,
            schedule=schedule(options),
            max_grad_norm=options.clip,
            micro_batch=options.micro_batch,
            ema_decay=average,
        )
        self.data, self.options = data, options
        self.facts = data.facts
        self.judge = RunJudge(options.classifier, data, place, open_classifier=open_classifier)

    @abstractmethod
    def losses(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:  # (b, c, h, w), (b,) -> (b,)
        """What is minimised: one loss for each image, of `self.model`; `self.updater.progress` says how far the run is."""

    @abstractmethod
    def measure(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """What to watch on held-out images, one value (b,) for each: "loss" and more, of `self.eval_model`, without gradients."""

    def measure_finally(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """What is worth its cost only once, on the test part of a finished run: more values like those of `measure`."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator on the run's device that depends on the run's seed and `key` alone."""
        return on_device(keyed_generator(*key, self.options.seed), self.place.device)

    def pieces(self, rows: Tensor) -> Iterable[tuple[Tensor, Tensor, torch.Generator]]:
        generator = self.generator("loss", self.step_count, self.place.rank)
        for piece in rows.split(self.micro_batch):
            yield self.data.train.features.index_select(0, piece), self.data.train.targets.index_select(0, piece), generator

    def losses_of(self, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        return self.losses(images, labels, generator=generator)

    def evaluate(self, part: str) -> Metrics:
        """Means over a part; of the test part also what is measured once, and how good samples are."""
        data: Dataset = getattr(self.data, part)
        if data.num_rows == 0:
            return {}
        means = self._means(part, data)
        check_finite({f"{part}_{name}": value for name, value in means.items()}, f"after step {self.step_count}")
        return means | (self.quality() if part == "test" else {})

    @torch.no_grad()
    def _means(self, part: str, data: Dataset) -> Metrics:
        self.eval_model.eval()
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
        self.eval_model.eval()
        with torch.no_grad():
            return draw_in_pieces(lambda size: self.eval_model.sample(size, generator=generator), count)

    def quality(self) -> Metrics:
        """How good `--samples` new images are, by the measures that all models of images share."""
        return self.judge.quality(self.sample(self.options.samples, generator=self.generator("samples")))

    def state(self) -> dict[str, Any]:
        return super().state() | {"judge": self.judge.state()}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.judge.load(state["judge"])

    def panels(self) -> Iterator[Panel]:
        """A sheet of samples, and the recipe's own."""
        samples = self.sample(SHEET, generator=self.generator("sheet")).clamp(0, 1).cpu()
        told = f"{SHEET} images that the model draws, not chosen."
        yield Panel("Samples", lambda: plot.image_sheet(samples), told)
        yield from self.own_panels()
