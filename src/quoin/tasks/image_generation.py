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
from quoin.data import BatchSampler, Dataset, ImageSplits, RowNoise, keyed_generator
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import Evaluator, OpenClassifier
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.supervised import eval_batch_size
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics, check_finite
from quoin.train.fractions import own_batches, sample_in_blocks
from quoin.train.processes import on_main

__all__ = ["GenerativeTask", "on_device"]

SHEET = 64  # samples on the sheet of a report
BLOCK = 256  # images that are sampled with noise of one generator


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator with the same seed on `device`: noise must be sampled where it is used."""
    return torch.Generator(device).manual_seed(generator.initial_seed())


class GenerativeTask(GradientTask):
    """A model of images, one loss for each image, an optimizer, and images in splits.

    With `average` above 0 the model that is evaluated, saved as the run's and sampled from is an EMA of the weights
    that keeps so much of its last value at a step (`quoin.optim.EMAModel`); 0 takes the weights as they are.

    All randomness is a function of the seed, the step and the row of the global batch: no state to save, and a resumed
    run samples what it would have sampled.
    """

    kind = "image-generation"
    smooth_samples = True  # drawn with smooth edges: the samples are the subject and not their pixels

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
        self._step_losses = device_context.compiled(self._training_losses, self.full_rows)
        self.evaluator = Evaluator(options.classifier, data, device_context, open_classifier=open_classifier)

    @abstractmethod
    def losses(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> Float[Tensor, "batch"]:
        """What is minimised: one loss for each image, of `self.model`; `self.updater.progress` says how far the run
        is."""

    @abstractmethod
    def compute_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """What to watch on held-out images, one value for each: "loss" and more, of `self.eval_model`, without
        gradients."""

    def compute_final_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
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
    ) -> Iterable[tuple[Float[Tensor, "piece channels height width"], Int[Tensor, "piece"], RowNoise]]:
        for piece in self.cut(rows):
            yield (
                self.data.train.features.index_select(0, piece.rows),
                self.data.train.targets.index_select(0, piece.rows),
                self.row_noise(piece, "loss"),
            )

    def losses_of(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        noise: RowNoise,
    ) -> Float[Tensor, "batch"]:
        return self._step_losses(images, labels, noise)

    def _training_losses(self, images: Tensor, labels: Tensor, noise: RowNoise) -> Tensor:
        return self.losses(images, labels, noise=noise)

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
        totals, at = MeanMetrics(), self.device_context.device
        # the same noise every time: epochs compare
        all_noise = RowNoise("measure", split, self.options.seed, num_rows=data.num_rows, device=at)
        for rows in own_batches(data.num_rows, eval_batch_size(data.features)):
            images, labels, noise = data.features[rows], data.targets[rows], all_noise.rows(rows.start, rows.stop)
            values = self.compute_metrics(images, labels, noise=noise)
            if split == "test":
                values |= self.compute_final_metrics(images, labels, noise=noise)
            totals.add({name: value.sum() for name, value in values.items()}, len(labels))
        return totals.over_processes().compute()

    @torch.no_grad()
    def sample(self, num_samples: int, key: str) -> Float[Tensor, "{num_samples} channels height width"]:
        """New images in [0, 1] with the noise of this key, sampled in blocks that the processes share out."""
        self.eval_model.eval()
        return sample_in_blocks(
            lambda number, rows: self.eval_model.sample(rows.stop - rows.start, generator=self.generator(key, number)),
            num_samples,
            BLOCK,
            self.device_context.device,
        )

    def quality(self) -> Metrics:
        """Sample quality of `--num-samples` new images, by the metrics that all models of images share."""
        samples = self.sample(self.options.num_samples, "samples")
        return on_main(lambda: self.sample_metrics(samples))

    def sample_metrics(self, samples: Float[Tensor, "samples channels height width"]) -> Metrics:
        """What `quality` computes of the samples."""
        return self.evaluator.quality(samples)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"evaluator": self.evaluator.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.evaluator.load_state_dict(state["evaluator"])

    def panels(self) -> Iterator[Panel]:
        """A sheet of samples, and the recipe's own."""
        samples = self.sample(SHEET, "sheet").clamp(0, 1).cpu()
        caption = f"{SHEET} uncurated samples of the model."
        yield Panel("Samples", lambda: plot.image_sheet(samples, smooth=self.smooth_samples), caption)
        yield from self.own_panels()
