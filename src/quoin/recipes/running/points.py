"""Learn to draw points of the plane: the task of recipes that turn noise into a shape one can look at.

A recipe subclasses `PointsTask` and says what the loss of a point is, and what pictures there are beside the samples.

    n points of two numbers; what is judged, saved and drawn from is the moving average of the weights
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from quoin import draw
from quoin.data import Batches, blobs, circles, keyed_generator, moons
from quoin.draw import Panel
from quoin.objectives import sample_quality
from quoin.optim import WeightAverage
from quoin.prob import median_distance, squared_mmd
from quoin.recipes.running.options import PointsOptions
from quoin.recipes.running.parts import schedule
from quoin.train import Descent, Diverged, Metrics, Place, load_strictly

__all__ = ["PointsTask", "draw_points"]

SHOWN = 1000  # points of a picture
SPARE = 10  # points that are drawn for each that is taken


def draw_points(options: PointsOptions) -> dict[str, Tensor]:  # each (n, 2)
    """Three parts, each drawn anew from the law that `options` name."""
    centres = [(math.cos(turn * math.pi / 4), math.sin(turn * math.pi / 4)) for turn in range(8)]
    shapes: dict[str, Callable[..., Any]] = {
        "moons": lambda rows, generator: moons(rows, noise=0.1, generator=generator),
        "circles": lambda rows, generator: circles(rows, noise=0.05, generator=generator),
        "blobs": lambda rows, generator: blobs(rows, centres, noise=0.1, generator=generator),
    }
    shape, sizes = shapes[options.data], {"train": options.examples, "validation": options.examples // 4, "test": options.examples}
    parts = {}
    for part, rows in sizes.items():
        # The shapes are drawn with evenly spaced points: a few among many stand as independent draws do, which the measures count on.
        generator = keyed_generator("points", part, options.seed)
        many = shape(SPARE * rows, generator).features
        parts[part] = many[torch.randperm(len(many), generator=generator)[:rows]]
    return parts


class PointsTask(ABC):
    """A model that is drawn from, one loss for each point, and Adam with an average of its weights.

    All chance comes from generators that are functions of the seed and the step: a resumed run draws what it would have drawn.
    """

    facts = None  # the points are drawn anew from the seed

    def __init__(self, model: nn.Module, points: dict[str, Tensor], options: PointsOptions, place: Place) -> None:
        self.options, self.place = options, place
        self.points = {part: each.to(place.device) for part, each in points.items()}
        self.model: Any = model.to(place.device)
        self.average = WeightAverage(self.model, decay=options.average)
        rows = len(points["train"])
        self.batches = Batches(rows, options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device)
        adam = torch.optim.AdamW(self.model.parameters(), options.lr, weight_decay=options.weight_decay)
        total = options.epochs * self.batches.num_batches
        self.descent = Descent(adam, total_steps=total, place=place, schedule=schedule(options), clip=options.clip)

    @abstractmethod
    def losses(self, model: Any, points: Tensor, *, generator: torch.Generator) -> Tensor:  # (n, 2) -> (n,)
        """What is minimised, and watched on points that are not learnt from."""

    def measure_finally(self) -> Metrics:
        """What is worth its cost only once, on the test points."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    @property
    def shown(self) -> Any:
        """The model that is judged and drawn from."""
        return self.average.module

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator that depends on the run's seed and `key` alone."""
        return keyed_generator(*key, self.options.seed)

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        self.descent.begin()
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        generator = self.generator("loss", self.descent.step_count, self.place.rank)
        total = torch.zeros((), device=self.place.device)
        for piece in rows.split(self.options.micro_batch or self.options.batch_size):
            with self.place.autocast():
                losses = self.losses(self.model, self.points["train"].index_select(0, piece), generator=generator)
            total = total + losses.detach().sum()
            self.descent.add(losses, 1 / batch_rows)
        if total.device.type == "cpu" and not math.isfinite(total.item()):
            raise Diverged(f"the loss is not finite at step {self.descent.step_count + 1}; try a smaller --lr, or --clip 1")
        self.descent.finish()
        self.average.update(self.model)
        return {"loss": total}

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        if part == "train":
            return {}  # the steps tell their loss
        points = self.points[part]
        # The same noise every time, and several draws a point: epochs compare.
        losses = [self.losses(self.shown, points, generator=self.generator("measure", part, draw)) for draw in range(8)]
        found = {"loss": float(torch.stack(losses).mean())}
        if not math.isfinite(found["loss"]):
            raise Diverged(f"the {part} loss is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        return found | (self.quality() | self.measure_finally() if part == "test" else {})

    def sample(self, count: int, key: str) -> Tensor:  # (count, 2)
        return self.shown.sample(count, generator=self.generator(key))

    def quality(self) -> Metrics:
        """As many samples as there are test points, beside these: the coordinates themselves are the features."""
        samples = self.sample(len(self.points["test"]), "samples")
        found = sample_quality(samples, self.points["test"], lambda points: points, train=self.points["train"])
        return found._asdict()

    def squared_mmd(self, samples: Tensor) -> float:  # (n, 2)
        """The discrepancy of `samples` from the test points, by the kernel that all are measured with."""
        real = self.points["test"]
        middle = median_distance(real[:SHOWN])
        return float(squared_mmd(samples, real, [middle / 4, middle / 2, middle]))

    def state(self) -> dict[str, Any]:
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise Diverged(f"parameter {name} is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        average = self.average.state()
        return {
            "model": {"weights": average["weights"]},
            "updates": average["updates"],
            "moving": self.model.state_dict(),
            "descent": self.descent.state(),
            "batches": self.batches.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["moving"])
        self.average.load({"weights": state["model"]["weights"], "updates": state["updates"]})
        self.descent.load(state["descent"])
        self.batches.load(state["batches"])

    def panels(self) -> Iterator[Panel]:
        """Data beside samples, and the recipe's own."""
        samples = self.sample(min(SHOWN, len(self.points["test"])), "sheet").cpu()
        clouds = {"test points": self.points["test"][: len(samples)].cpu(), "samples": samples}
        told = f"{len(samples)} points that the model draws, not chosen, beside as many that it has not seen."
        yield Panel("Samples", lambda: draw.point_clouds(clouds), told)
        yield from self.own_panels()
