"""Class-conditional diffusion of images: the task of its recipe, and plots of the reverse process from noise to an
image.

The class is left out of some training examples, so that one network learns the conditional and the unconditional score;
guidance combines the two. Images x in [0, 1] are y = 2x - 1 to the network.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import ImageSplits, RowNoise
from quoin.errors import UserError
from quoin.generate import GuidedDiffusionSampler
from quoin.losses import denoising_loss, sampled_diffusion_vlb
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.image_generation import BLOCK, GenerativeTask
from quoin.tasks.optimizer import make_optimizer
from quoin.train import DeviceContext, Metrics
from quoin.train.fractions import sample_in_blocks
from quoin.train.processes import on_main

__all__ = ["DiffusionTask"]

BOUND_TIMES = 20  # of the schedule's, for each test image
NUM_EVAL_SAMPLES = 4  # of time and noise, for each held-out image
SHOWN_CLASSES = 10
STRIP = 8  # timesteps at which the reverse process is shown
GUIDANCE_SCALES = (0.0, 1.0, 2.0, 4.0, 8.0)


class DiffusionTask(GenerativeTask):
    """Minimise the simple loss of a network conditioned on the timestep and, but for class dropout, on the class."""

    model: GuidedDiffusionSampler
    options: Any

    def __init__(
        self,
        model: GuidedDiffusionSampler,
        data: ImageSplits,
        options: Any,
        device_context: DeviceContext,
        *,
        open_classifier: OpenClassifier,
    ) -> None:
        if options.class_dropout == 0 and options.guidance_scale != 1:
            needed = (
                "the unconditional model, which --class-dropout 0 never trains: give --class-dropout 0.1, or "
                "--guidance-scale 1"
            )
            raise UserError(f"--guidance-scale {options.guidance_scale:g} needs {needed}")
        model = model.to(device_context.device)
        model.schedule.tables(torch.empty(0, device=device_context.device))
        optimizer = make_optimizer(model.parameters(), options, fused=True)
        super().__init__(
            model, optimizer, data, options, device_context, average=options.ema_decay, open_classifier=open_classifier
        )

    def losses(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> Float[Tensor, "batch"]:
        dropped = noise.bernoulli(self.options.class_dropout)
        return self._losses(self.model, images, labels.masked_fill(dropped, self.data_info.num_classes), noise)

    def compute_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        losses = [self._losses(self.eval_model, images, labels, noise) for _ in range(NUM_EVAL_SAMPLES)]
        return {"loss": torch.stack(losses).mean(dim=0)}

    def _losses(self, model: GuidedDiffusionSampler, images: Tensor, labels: Tensor, noise: RowNoise) -> Tensor:
        clean = model.normalize(images)
        t = noise.integers(1, model.schedule.num_steps + 1)
        added = noise.normal(*clean.shape[1:], dtype=clean.dtype)
        return denoising_loss(
            lambda noisy, t: model.network(noisy, t, labels), model.schedule, model.prediction_type, clean, t, added
        )

    def compute_final_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """The variational bound on -log2 p(image | class), per pixel; of grey levels, where there are such."""
        if not self.data_info.levels:
            return {}
        model, bin_width = self.eval_model, 2 / (self.data_info.levels - 1)
        times = min(BOUND_TIMES, model.schedule.num_steps - 1)
        bound = sampled_diffusion_vlb(
            model.denoiser(labels, guidance_scale=1.0),
            model.schedule,
            model.normalize(images),
            num_times=times,
            generator=noise,
            bin_width=bin_width,
        )
        return {"bits_per_dimension": bound.output / (self.data_info.num_pixels * math.log(2))}

    def quality(self) -> Metrics:
        """The measures that all models of images share, and the fraction of images of the class they were conditioned
        on."""
        labels = torch.arange(self.options.num_samples) % self.data_info.num_classes
        samples = self._sample_images(labels, "samples")
        return on_main(lambda: self.sample_metrics(samples) | self._class_accuracy(samples, labels))

    def _class_accuracy(self, samples: Tensor, labels: Tensor) -> Metrics:
        accuracy = self.evaluator.classifier.accuracy(samples, labels.to(samples.device))
        return {"class_conditional_accuracy": accuracy}

    @torch.no_grad()
    def _sample_images(self, labels: Tensor, key: str, guidance: float | None = None) -> Tensor:  # (n,) -> (n, c, h, w)
        self.eval_model.eval()
        return sample_in_blocks(
            lambda number, rows: self.eval_model.sample(
                rows.stop - rows.start,
                generator=self.generator(key, number),
                labels=labels[rows],
                guidance_scale=guidance,
            ),
            len(labels),
            BLOCK,
            self.device_context.device,
        ).clamp(0, 1)

    def own_panels(self) -> list[Panel]:
        """Samples of each class, the reverse process, and samples by guidance scale."""
        self.eval_model.eval()
        return [self._by_class(), self._strip(), self._guidance()]

    @property
    def _names(self) -> list[str]:
        return list(self.data_info.class_names[:SHOWN_CLASSES])

    def _by_class(self) -> Panel:
        labels = torch.arange(len(self._names)).repeat_interleave(10)
        images = self._sample_images(labels, "classes").unflatten(0, (-1, 10)).cpu()
        caption = f"Ten uncurated samples of each class, at guidance scale {self.eval_model.guidance_scale:g}."
        return Panel(
            "Samples by class",
            lambda: plot.image_table(images, row_labels=self._names, y_label="class", smooth=True),
            caption,
        )

    @torch.no_grad()
    def _strip(self) -> Panel:
        labels = torch.arange(len(self._names))
        path = self.eval_model.sample_path(len(labels), generator=self.generator("strip"), labels=labels)
        indices = list(dict.fromkeys(torch.linspace(0, len(path.times) - 1, STRIP).round().long().tolist()))
        states = path.states[indices].transpose(0, 1).clamp(0, 1).cpu()
        times = [str(path.times[index]) for index in indices]
        caption = (
            "One image of each class at the timesteps of its sampler, from pure noise on; pixels outside [0, "
            "1] are clipped."
        )
        return Panel(
            "Denoising",
            lambda: plot.image_table(
                states,
                row_labels=self._names,
                column_labels=times,
                x_label="timestep t, from noise to image",
                y_label="class",
                smooth=True,
            ),
            caption,
        )

    def _guidance(self) -> Panel:
        labels = torch.arange(len(self._names))
        rows = [self._sample_images(labels, "guidance", scale) for scale in GUIDANCE_SCALES]  # the same noise for each
        names = [f"{scale:g}" for scale in GUIDANCE_SCALES]
        caption = (
            "The same noise at several guidance scales: 0 ignores the class, 1 is the conditional model, "
            "more exaggerates the class."
        )
        return Panel(
            "Samples by guidance scale",
            lambda: plot.image_table(
                torch.stack(rows).cpu(),
                row_labels=names,
                column_labels=self._names,
                y_label="guidance scale",
                x_label="class",
                smooth=True,
            ),
            caption,
        )
