"""Two networks that learn from one another: the task of generative adversarial networks, which makes two updates a step.

b images of a batch; c channels, h height, w width
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.data import ImageParts
from quoin.losses import input_gradients, minimax_value, zero_centred_penalty
from quoin.metrics import mode_coverage
from quoin.models import GAN
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.image_generation import GenerativeTask
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import GenerativeOptions
from quoin.train import GradientUpdater, Metrics, Place

__all__ = ["AdversarialTask"]

BETAS = (0.5, 0.99)  # of Adam: with the usual 0.9 a player still runs after what its rival has left long ago
STRIP = 8  # images on the way between two samples
STRIPS = 6


class AdversarialTask(GenerativeTask):
    """A GAN of images: in every step the discriminator moves first, then the generator, each by its own optimiser and on fresh fakes.

    The generator minimises `loss` of the discriminator's logits of its fakes; `penalty` weighs the discriminator's slopes at real images.
    """

    model: GAN

    def __init__(
        self,
        model: GAN,
        data: ImageParts,
        options: GenerativeOptions,
        place: Place,
        *,
        loss: Callable[[Tensor], Tensor],
        penalty: float,
        open_classifier: OpenClassifier,
    ) -> None:
        forging, judging = (
            torch.optim.AdamW(net.parameters(), options.lr, BETAS, weight_decay=options.weight_decay)
            for net in (model.generator, model.discriminator)
        )
        super().__init__(model, forging, data, options, place, open_classifier=open_classifier)
        self.loss, self.penalty = loss, penalty
        # `updater` of the base moves the generator, this one its rival, at the same rates.
        self.rival = GradientUpdater(
            model.discriminator,
            judging,
            total_steps=self.updater.total_steps,
            place=place,
            schedule=schedule(options),
            max_grad_norm=options.clip,
            name="the discriminator's loss",
        )

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update of each; the sums of the generator's losses and of the value of the game before its update."""
        self.model.train()
        value = self._move_discriminator(rows)
        self.model.discriminator.requires_grad_(False)  # half of the generator's backward pass would be for gradients nobody uses
        try:
            return super().step(rows) | {"value": value}
        finally:
            self.model.discriminator.requires_grad_(True)

    def _move_discriminator(self, rows: Tensor) -> Tensor:
        """Up the value of the game, less the penalty on its slopes at real images; gives the sum of its values before the step."""
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        generator = self.generator("rival", self.rival.step_count, self.place.rank)
        total = torch.zeros((), device=self.place.device)
        self.rival.zero_grad()
        for piece in rows.split(self.micro_batch):
            fakes = self.model.sample(len(piece), generator=generator)
            with self.place.autocast():
                real = input_gradients(self.model.discriminator, self.data.train.features.index_select(0, piece))
                value = minimax_value(real.output, self.model.discriminator(fakes))
                loss = zero_centred_penalty(real.gradients, self.penalty) - value
            self.rival.backward(loss, len(piece) / batch_rows)  # a mean over the piece, and its share of the batch
            total = total + value.detach() * len(piece)
        self.rival.step()
        return total

    def losses(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:  # -> (b,)
        """The generator's, of as many fakes as there are images; it never sees the images themselves."""
        return self.loss(self.model.discriminator(self.model(self.model.noise(len(images), generator=generator))))

    def measure(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """How real the discriminator takes images to be: these, which it never learnt from, and fakes; both tend to 1/2."""
        fake = self.model.discriminator(self.model.sample(len(images), generator=generator))
        real = self.model.discriminator(images)
        return {"loss": self.loss(fake), "real": real.sigmoid(), "fake": fake.sigmoid()}

    def quality(self) -> Metrics:
        """What all models of images are measured by, and whether a class is forgotten, as the judge sees the classes."""
        samples = self.sample(self.options.samples, generator=self.generator("samples"))
        return self.judge.quality(samples) | self._classes(samples)

    def _classes(self, samples: Tensor) -> Metrics:
        real = self.judge.judge.shares(self.data.test.features)
        found = mode_coverage(self.judge.judge.classes(samples).cpu(), real.cpu())
        return {"least_class": found.least, "classes_apart": found.distance}

    def state(self) -> dict[str, Any]:
        return super().state() | {"rival": self.rival.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.rival.load_state_dict(state["rival"])

    @torch.no_grad()
    def own_panels(self) -> list[Panel]:
        """How often each class comes, and what lies between two points of noise."""
        samples = self.sample(self.options.samples, generator=self.generator("samples"))
        names = self.facts.class_names
        drawn, real = (self.judge.judge.shares(each).cpu() for each in (samples, self.data.test.features))
        told = f"Shares of the classes among {len(samples):,} images that were drawn and among the test images, as the judge sees them."
        return [
            Panel(
                "Classes",
                lambda: plot.heat_map(
                    torch.stack([drawn, real]),
                    row_labels=["drawn", "real"],
                    column_labels=names,
                    x_label="class",
                    show_values=len(names) <= 20,
                ),
                told,
            ),
            self._between(),
        ]

    def _between(self) -> Panel:
        ends = self.model.noise(2 * STRIPS, generator=self.generator("between")).reshape(STRIPS, 2, -1)
        share = torch.linspace(0, 1, STRIP, device=ends.device).reshape(1, -1, 1)
        # Along the circle through both: halfway along a straight line lies noise that is shorter than any that G has seen.
        way = torch.cos(share * math.pi / 2) * ends[:, :1] + torch.sin(share * math.pi / 2) * ends[:, 1:]
        images = self.model(way.flatten(0, 1)).reshape(STRIPS, STRIP, *self.facts.image_shape).clamp(0, 1).cpu()
        labels = [f"{each:.2f}" for each in torch.linspace(0, 1, STRIP).tolist()]
        return Panel(
            "Between two samples",
            lambda: plot.image_table(images, column_labels=labels, x_label="way from one noise to another"),
            "A row a pair: cos(πt/2) z + sin(πt/2) z′ is as likely noise as z and z′ are.",
        )
