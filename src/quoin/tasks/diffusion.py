"""Learn to draw images of a class by diffusion: the task of its recipe, and what is shown of the way from noise to an image.

The class is left out of some training examples, so that one network learns both to heed it and to do without; guidance plays the two
against each other. Images x in [0, 1] are y = 2x - 1 to the network.   b images, q classes
"""

import math
from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.data import ImageParts
from quoin.errors import Mistake
from quoin.generate import GuidedDiffusionSampler
from quoin.losses import denoising_loss, sampled_diffusion_bound
from quoin.plot import Panel
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.image_generation import GenerativeTask
from quoin.train import Metrics, Place

__all__ = ["DiffusionTask"]

BOUND_TIMES = 20  # of the schedule's, for each test image
MEASURE_DRAWS = 4  # of time and noise, for each held-out image
SHOWN_CLASSES = 10
STRENGTHS = (0.0, 1.0, 2.0, 4.0, 8.0)


class DiffusionTask(GenerativeTask):
    """Minimise the simple loss of a network told the time and, most of the time, the class."""

    model: GuidedDiffusionSampler
    options: Any

    def __init__(
        self, model: GuidedDiffusionSampler, data: ImageParts, options: Any, place: Place, *, open_classifier: OpenClassifier
    ) -> None:
        if options.drop_class == 0 and options.guidance != 1:
            told = "what the model says without a class, which --drop-class 0 never lets it learn: give --drop-class 0.1, or --guidance 1"
            raise Mistake(f"--guidance {options.guidance:g} needs {told}")
        model = model.to(place.device)
        adam = torch.optim.AdamW(model.parameters(), options.lr, betas=(0.9, 0.99), weight_decay=options.weight_decay, fused=True)
        super().__init__(model, adam, data, options, place, average=options.average, open_classifier=open_classifier)

    def losses(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:
        dropped = torch.rand(labels.shape, generator=generator, device=labels.device) < self.options.drop_class
        return self._losses(self.model, images, labels.masked_fill(dropped, self.facts.num_classes), generator)

    def measure(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        draws = [self._losses(self.eval_model, images, labels, generator) for _ in range(MEASURE_DRAWS)]
        return {"loss": torch.stack(draws).mean(dim=0)}

    def _losses(self, model: GuidedDiffusionSampler, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
        clean = model.inward(images)
        t = model.schedule.draw_times(len(clean), generator=generator)
        noise = torch.randn(clean.shape, generator=generator, device=clean.device)
        return denoising_loss(lambda noisy, t: model.network(noisy, t, labels), model.schedule, model.parametrisation, clean, t, noise)

    def measure_finally(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """The variational bound on -log2 of the chance of an image given its class, a pixel; on grey levels, where there are such."""
        if not self.facts.levels:
            return {}
        model, width = self.eval_model, 2 / (self.facts.levels - 1)
        times = min(BOUND_TIMES, model.schedule.num_steps - 1)
        bound = sampled_diffusion_bound(
            model.denoiser(labels, guidance=1.0),
            model.schedule,
            model.inward(images),
            num_times=times,
            generator=generator,
            bin_width=width,
        )
        return {"bits_per_dimension": bound.output / (self.facts.num_pixels * math.log(2))}

    def quality(self) -> Metrics:
        """The measures that all models of images share, and how many of the images show what was asked for."""
        labels = torch.arange(self.options.samples) % self.facts.num_classes
        samples = self._draw(labels, self.generator("samples"))
        return self.judge.quality(samples) | {"classified_as_asked": self.judge.judge.agreement(samples, labels.to(samples.device))}

    @torch.no_grad()
    def _draw(self, labels: Tensor, generator: torch.Generator, guidance: float | None = None) -> Tensor:  # (n,) -> (n, c, h, w)
        self.eval_model.eval()
        drawn = [self.eval_model.sample(len(some), generator=generator, labels=some, guidance=guidance) for some in labels.split(250)]
        return torch.cat(drawn).clamp(0, 1)

    def own_panels(self) -> list[Panel]:
        """Every class by itself, the way from noise, and guidance weak and strong."""
        self.eval_model.eval()
        return [self._by_class(), self._strip(), self._guidance()]

    @property
    def _names(self) -> list[str]:
        return list(self.facts.class_names[:SHOWN_CLASSES])

    def _by_class(self) -> Panel:
        labels = torch.arange(len(self._names)).repeat_interleave(10)
        images = self._draw(labels, self.generator("classes")).unflatten(0, (-1, 10)).cpu()
        told = f"Ten images of each class, asked for with guidance {self.eval_model.guidance:g}, not chosen."
        return Panel("Samples by class", lambda: plot.image_table(images, row_labels=self._names, y_label="asked for"), told)

    @torch.no_grad()
    def _strip(self) -> Panel:
        labels = torch.arange(len(self._names))
        path = self.eval_model.sample_path(len(labels), generator=self.generator("strip"), labels=labels)
        places = list(dict.fromkeys(torch.linspace(0, len(path.times) - 1, 12).round().long().tolist()))
        states = path.states[places].transpose(0, 1).clamp(0, 1).cpu()
        times = [str(path.times[place]) for place in places]
        told = "One image of each class at the times of its sampler, from pure noise to the end; pixels outside [0, 1] are cut."
        return Panel("Denoising", lambda: plot.image_table(states, row_labels=self._names, column_labels=times, x_label="time"), told)

    def _guidance(self) -> Panel:
        labels = torch.arange(len(self._names))
        rows = [self._draw(labels, self.generator("guidance"), strength) for strength in STRENGTHS]  # the same noise for each
        names = [f"{strength:g}" for strength in STRENGTHS]
        told = "The same noise under more and more guidance: 0 forgets the class, 1 obeys it, more exaggerates what tells it apart."
        return Panel(
            "Guidance",
            lambda: plot.image_table(
                torch.stack(rows).cpu(), row_labels=names, column_labels=self._names, y_label="guidance", x_label="asked for"
            ),
            told,
        )
