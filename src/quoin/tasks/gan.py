"""Generative adversarial networks: a generator and a discriminator, each with an optimizer step per batch."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import ImageSplits, RowNoise
from quoin.losses import input_gradients, minimax_value, r1_penalty
from quoin.metrics import mode_coverage
from quoin.models import GAN
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.image_generation import GenerativeTask
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.optimizer import make_optimizer
from quoin.train import DeviceContext, GradientUpdater, Metrics
from quoin.train.global_batch import BatchPiece

__all__ = ["GANTask"]

STRIP = 8  # images on the way between two samples
STRIPS = 6


class GANTask(GenerativeTask):
    """A GAN of images: in every step the discriminator moves first, then the generator, each by its own optimizer and
    on fresh fakes.

    The generator minimises `loss` of the discriminator's logits of its fakes; `penalty` is the weight of R1, the
    discriminator's squared gradient norm at real images.
    """

    model: GAN

    def __init__(
        self,
        model: GAN,
        data: ImageSplits,
        options: GenerativeOptions,
        device_context: DeviceContext,
        *,
        loss: Callable[[Tensor], Tensor],
        penalty: float,
        open_classifier: OpenClassifier,
    ) -> None:
        forging, judging = (make_optimizer(net.parameters(), options) for net in (model.generator, model.discriminator))
        super().__init__(model, forging, data, options, device_context, open_classifier=open_classifier)
        self.loss, self.penalty = loss, penalty
        # `updater` of the base trains the generator, this one the discriminator, at the same learning rates.
        self.rival = GradientUpdater(
            model,
            judging,
            total_steps=self.updater.total_steps,
            device_context=device_context,
            schedule=make_lr_schedule(options),
            max_grad_norm=options.max_grad_norm,
            name="the discriminator's loss",
        )

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        with self.updater.whole_weights(), self.rival.whole_weights():
            yield

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """One step of each; the sums of the generator's losses and of the value of the game before its step."""
        self.model.train()
        value = self._move_discriminator(rows)
        # Half of the generator's backward pass would be for gradients nobody uses. FSDP2 does not follow weights that
        # are frozen now and then, and computes them.
        freezes = not self.device_context.shard
        self.model.discriminator.requires_grad_(not freezes)
        try:
            return super().step(rows) | {"value": value}
        finally:
            self.model.discriminator.requires_grad_(True)

    def _move_discriminator(self, rows: Tensor) -> Tensor:
        """Ascend the value of the game, less R1; gives the sum of its values before the step."""
        cut, values = self.cut(rows), []
        pieces = ((piece, (piece, values)) for piece in cut)
        self.global_batch.update(self.rival, pieces, self._rival_loss, weight=1 / cut[0].num_rows, name="rival")
        return torch.stack(values).sum()

    def _rival_loss(self, piece: BatchPiece, values: list[Tensor]) -> Tensor:
        """Minus the value of the game, and R1, summed over the rows of a piece; the value is added to `values`."""
        with torch.no_grad():
            fakes = self.model(self._latent(self.row_noise(piece, "rival")))
        real = input_gradients(self.model.discriminator, self.data.train.features.index_select(0, piece.rows))
        value = minimax_value(real.output, self.model.discriminator(fakes))
        values.append(value.detach() * (len(piece.rows) if piece.is_live else 0))
        return (r1_penalty(real.gradients, self.penalty) - value) * len(piece.rows)

    def _latent(self, noise: RowNoise) -> Tensor:
        return noise.normal(self.model.latent_dim, dtype=next(self.model.parameters()).dtype)

    def losses(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> Float[Tensor, "batch"]:
        """The generator's, of as many fakes as there are images; it never sees the images themselves."""
        return self.loss(self.model.discriminator(self.model(self._latent(noise))))

    def compute_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """How real the discriminator takes images to be: these, which it never learnt from, and fakes; both tend to
        1/2."""
        fake = self.model.discriminator(self.model(self._latent(noise)))
        real = self.model.discriminator(images)
        return {"loss": self.loss(fake), "discriminator_real": real.sigmoid(), "discriminator_fake": fake.sigmoid()}

    def sample_metrics(self, samples: Float[Tensor, "samples channels height width"]) -> Metrics:
        """What all models of images are measured by, and whether a class is dropped, by the evaluation classifier."""
        return super().sample_metrics(samples) | self._classes(samples)

    def _classes(self, samples: Tensor) -> Metrics:
        real = self.evaluator.classifier.class_fractions(self.data.test.features)
        found = mode_coverage(self.evaluator.classifier.classes(samples).cpu(), real.cpu())
        return {"min_class_ratio": found.min_ratio, "class_total_variation": found.total_variation}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"rival": self.rival.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.rival.load_state_dict(state["rival"])

    @torch.no_grad()
    def own_panels(self) -> list[Panel]:
        """How often each class comes, and what lies between two points of noise."""
        samples = self.sample(self.options.num_samples, "samples")
        names = self.data_info.class_names
        fake, real = (
            self.evaluator.classifier.class_fractions(each).cpu() for each in (samples, self.data.test.features)
        )
        caption = (
            f"Class proportions among {len(samples):,} samples and among the test images, by the evaluation classifier."
        )
        return [
            Panel(
                "Classes",
                lambda: plot.heatmap(
                    torch.stack([fake, real]),
                    row_labels=["samples", "real"],
                    column_labels=names,
                    x_label="class",
                    show_values=len(names) <= 20,
                ),
                caption,
            ),
            self._between(),
        ]

    def _between(self) -> Panel:
        ends = self.model.sample_latent(2 * STRIPS, generator=self.generator("between")).reshape(STRIPS, 2, -1)
        fraction = torch.linspace(0, 1, STRIP, device=ends.device).reshape(1, -1, 1)
        # Along the circle through both: halfway along a straight line lies noise that is shorter than any that G has
        # seen.
        way = torch.cos(fraction * math.pi / 2) * ends[:, :1] + torch.sin(fraction * math.pi / 2) * ends[:, 1:]
        images = self.model(way.flatten(0, 1)).reshape(STRIPS, STRIP, *self.data_info.image_shape).clamp(0, 1).cpu()
        labels = [f"{each:.2f}" for each in torch.linspace(0, 1, STRIP).tolist()]
        return Panel(
            "Latent interpolation",
            lambda: plot.image_table(images, column_labels=labels, x_label="t", smooth=True),
            "A row per pair: cos(πt/2) z + sin(πt/2) z′ has the same distribution as z and z′.",
        )
