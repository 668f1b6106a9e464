"""Learn the distribution of images pixel by pixel: the task, and what is shown of the model: completions, and where
pixels are surprising."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import RowNoise
from quoin.generate import PixelSampler, TokenSampler, complete_pixels
from quoin.models import PixelModel
from quoin.plot import Panel
from quoin.tasks.image_generation import GenerativeTask

__all__ = ["PixelTask"]

COMPLETED, WAYS = 8, 6  # test images that are completed, and ways in which each is
SURPRISING = 10  # test images whose pixels are shown one by one


class PixelTask(GenerativeTask):
    """Minimise -ln P(x), exact and in one pass, or with classes -ln P(x | y); in nats a pixel, so that images of any
    size step alike."""

    model: PixelSampler
    shown: PixelSampler
    smooth_samples = False  # it samples pixel by pixel, and shows them

    def losses(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"], *, noise: RowNoise
    ) -> Float[Tensor, "batch"]:
        return -self.model.log_prob(images, self._condition(labels)) / self.data_info.num_pixels

    def compute_metrics(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"], *, noise: RowNoise
    ) -> dict[str, Float[Tensor, "batch"]]:
        nats = -self.eval_model.log_prob(images, self._condition(labels)) / self.data_info.num_pixels
        return {"loss": nats, "bits_per_dimension": nats / math.log(2)}

    def _condition(self, labels: Tensor) -> Tensor | None:
        return None if self._pixels.num_classes is None else labels

    @property
    def _pixels(self) -> PixelModel:
        return self.eval_model.model

    @torch.no_grad()
    def own_panels(self) -> list[Panel]:
        """Test images completed from their upper halves, and the bits of each pixel."""
        self.eval_model.eval()
        return [self._completions(), *self._surprise()]

    def _completions(self) -> Panel:
        images, labels = self.data.test.features[:COMPLETED], self.data.test.targets[:COMPLETED]
        half = images[0].numel() // 2 // images.shape[3] * images.shape[3]  # whole rows
        known = images.clone().flatten(1)
        known[:, half:] = 0
        again = known.view_as(images).repeat_interleave(WAYS, dim=0)
        classes = self._condition(labels.repeat_interleave(WAYS))
        completed = complete_pixels(
            self._pixels, again, half, TokenSampler(generator=self.generator("completions")), classes
        )
        table = torch.cat(
            [images.unsqueeze(1), known.view_as(images).unsqueeze(1), completed.unflatten(0, (len(images), WAYS))],
            dim=1,
        )
        names = ["image", "shown", *(f"sample {way + 1}" for way in range(WAYS))]
        caption = "The model is given the upper half of a test image and samples the lower half, several times."
        return Panel("Completions", lambda: plot.image_table(table.clamp(0, 1).cpu(), column_labels=names), caption)

    def _surprise(self) -> list[Panel]:
        images, labels = self.data.test.features, self.data.test.targets
        bits = -self._pixels.pixel_log_prob(images, self._condition(labels)) / math.log(2)  # (n, h, w)
        mean = bits.mean(dim=0)
        total = float(mean.mean())
        shown = bits[:SURPRISING]
        pairs = torch.stack([images[:SURPRISING], (shown / max(1e-9, float(shown.max()))).unsqueeze(1)])
        return [
            Panel(
                "Mean NLL per pixel",
                lambda: plot.heatmap(mean.cpu(), title="bits of each pixel given the previous ones"),
                f"Averaged over the test images; {total:.3f} bits per pixel over all pixels.",
            ),
            Panel(
                "NLL per pixel",
                lambda: plot.image_table(pairs.clamp(0, 1).cpu(), row_labels=["image", "bits"]),
                f"White is {float(shown.max()):.1f} bits: what the previous pixels did not predict.",
            ),
        ]
