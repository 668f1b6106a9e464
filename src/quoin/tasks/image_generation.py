"""Image generation: the task of all recipes whose model of images is trained by one loss, and how its samples are
evaluated.

A recipe subclasses `GenerativeTask` and says what the loss of an image is, its metrics, and what to plot beside a sheet
of samples. Its model offers `sample(num_samples, *, generator)` (`quoin.models.GenerativeModel`); nothing else is
required.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, Dataset, ImageSplits, keyed_generator
from quoin.models import sample_in_batches
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import Evaluator, OpenClassifier
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.supervised import eval_batch_size
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics, check_finite

__all__ = ["GenerativeTask", "on_device"]

SHEET = 64  # samples on the sheet of a report


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator with the same seed on `device`: noise must be sampled where it is used."""
    return torch.Generator(device).manual_seed(generator.initial_seed())


class GenerativeTask(GradientTask):
    """A model of images, one loss for each image, an optimizer, and images in splits.

    With `average` above 0 the model that is evaluated, saved as the run's and sampled from is an EMA of the weights
    that keeps so much of its last value at a step (`quoin.optim.EMAModel`); 0 takes the weights as they are.

    All randomness comes from generators that are functions of the seed and the step: no state to save, and a resumed
    run samples what it would have sampled.
    """

    kind = "image-generation"

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        data: ImageSplits,
        options: GenerativeOptions,
        device_context: DeviceContext,
        *,
        average: float = 0.0,
        open_classifier: OpenClassifier,
    ) -> None:
        batches = BatchSampler(
            data.train.num_rows,
            options.batch_size,
            seed=options.seed,
            rank=device_context.rank,
            world_size=device_context.world_size,
            device=device_context.device,
        )
        super().__init__(
            model,
            optimizer,
            batches,
            device_context,
            epochs=options.epochs,
            schedule=make_lr_schedule(options),
            max_grad_norm=options.max_grad_norm,
            micro_batch_size=options.micro_batch_size,
            ema_decay=average,
        )
        self.data, self.options = data, options
        self.data_info = data.data_info
        self.evaluator = Evaluator(options.classifier, data, device_context, open_classifier=open_classifier)

    @abstractmethod
    def losses(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        generator: torch.Generator,
    ) -> Float[Tensor, "batch"]:
        """What is minimised: one loss for each image, of `self.model`; `self.updater.progress` says how far the run
        is."""

    @abstractmethod
    def compute_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        generator: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """What to watch on held-out images, one value for each: "loss" and more, of `self.eval_model`, without
        gradients."""

    def compute_final_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        generator: torch.Generator,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """What is worth its cost only once, on the test split of a finished run: more values like those of
        `compute_metrics`."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator on the run's device that depends on the run's seed and `key` alone."""
        return on_device(keyed_generator(*key, self.options.seed), self.device_context.device)

    def pieces(
        self, rows: Int[Tensor, "batch"]
    ) -> Iterable[tuple[Float[Tensor, "piece channels height width"], Int[Tensor, "piece"], torch.Generator]]:
        generator = self.generator("loss", self.step_count, self.device_context.rank)
        for piece in rows.split(self.micro_batch_size):
            yield (
                self.data.train.features.index_select(0, piece),
                self.data.train.targets.index_select(0, piece),
                generator,
            )

    def losses_of(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        generator: torch.Generator,
    ) -> Float[Tensor, "batch"]:
        return self.losses(images, labels, generator=generator)

    def evaluate(self, split: str) -> Metrics:
        """Means over a split; of the test split also what is measured once, and sample quality."""
        data: Dataset = getattr(self.data, split)
        if data.num_rows == 0:
            return {}
        means = self._means(split, data)
        check_finite({f"{split}_{name}": value for name, value in means.items()}, f"after step {self.step_count}")
        return means | (self.quality() if split == "test" else {})

    @torch.no_grad()
    def _means(self, split: str, data: Dataset) -> Metrics:
        self.eval_model.eval()
        generator, totals = self.generator("measure", split), MeanMetrics()  # the same noise every time: epochs compare
        rows = eval_batch_size(data.features)
        for images, labels in zip(data.features.split(rows), data.targets.split(rows)):
            values = self.compute_metrics(images, labels, generator=generator)
            if split == "test":
                values |= self.compute_final_metrics(images, labels, generator=generator)
            totals.add({name: value.sum() for name, value in values.items()}, len(labels))
        return totals.compute()

    def sample(
        self, num_samples: int, *, generator: torch.Generator
    ) -> Float[Tensor, "{num_samples} channels height width"]:
        """New images in [0, 1], sampled a thousand at a time."""
        self.eval_model.eval()
        with torch.no_grad():
            return sample_in_batches(lambda size: self.eval_model.sample(size, generator=generator), num_samples)

    def quality(self) -> Metrics:
        """Sample quality of `--num-samples` new images, by the metrics that all models of images share."""
        return self.evaluator.quality(self.sample(self.options.num_samples, generator=self.generator("samples")))

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"evaluator": self.evaluator.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.evaluator.load_state_dict(state["evaluator"])

    def panels(self) -> Iterator[Panel]:
        """A sheet of samples, and the recipe's own."""
        samples = self.sample(SHEET, generator=self.generator("sheet")).clamp(0, 1).cpu()
        caption = f"{SHEET} uncurated samples of the model."
        yield Panel("Samples", lambda: plot.image_sheet(samples), caption)
        yield from self.own_panels()
