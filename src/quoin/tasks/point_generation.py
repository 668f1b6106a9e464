"""Learn to draw points of the plane: the tasks of recipes that turn noise into a shape one can look at.

A subclass of `PointsTask` says what the loss of a point is, and what pictures there are beside the samples: by diffusion or by a flow.

    n points of two numbers; what is judged, saved and drawn from is the moving average of the weights
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from quoin import generate, plot
from quoin.data import Batches, blobs, circles, keyed_generator, moons
from quoin.generate import DiffusionSampler, FlowSampler
from quoin.losses import denoising_loss, flow_matching_loss, sampled_diffusion_bound
from quoin.metrics import sample_quality
from quoin.plot import Panel
from quoin.prob import median_distance, squared_mmd
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import PointsOptions
from quoin.train import GradientTask, Metrics, Place, check_finite

__all__ = ["DiffusionPointsTask", "FlowMatchingPointsTask", "PointsTask", "draw_points"]

SHOWN = 1000  # points of a picture
SPARE = 10  # points that are drawn for each that is taken
BUDGETS = (5, 10, 20, 50, 100)  # questions to the network with which samplers are compared
SAMPLERS = {"DDPM": generate.ddpm, "DDIM": generate.ddim, "Heun": generate.flow_heun, "DPM-Solver-2": generate.dpm_solver_2}


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


class PointsTask(GradientTask):
    """A model that is drawn from, one loss for each point, and Adam with an average of its weights.

    The model sees points as (x - offset)/unit: less the mean, and over the deviation, of the training points.
    All chance comes from generators that are functions of the seed and the step: a resumed run draws what it would have drawn.
    """

    kind = "point-generation"

    def __init__(self, model: DiffusionSampler | FlowSampler, points: dict[str, Tensor], options: PointsOptions, place: Place) -> None:
        model.offset.copy_(points["train"].mean(dim=0))
        model.unit.copy_(points["train"].std(dim=0))
        model = model.to(place.device)
        rows = len(points["train"])
        super().__init__(
            model,
            torch.optim.AdamW(model.parameters(), options.lr, weight_decay=options.weight_decay),
            Batches(rows, options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device),
            place,
            epochs=options.epochs,
            schedule=schedule(options),
            max_grad_norm=options.clip,
            micro_batch=options.micro_batch,
            ema_decay=options.average,
        )
        self.options = options
        self.points = {part: each.to(place.device) for part, each in points.items()}

    @abstractmethod
    def losses(self, model: Any, points: Tensor, *, generator: torch.Generator) -> Tensor:  # (n, 2) -> (n,)
        """What is minimised, and watched on points that are not learnt from."""

    def measure_finally(self) -> Metrics:
        """What is worth its cost only once, on the test points."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator that depends on the run's seed and `key` alone."""
        return keyed_generator(*key, self.options.seed)

    def pieces(self, rows: Tensor) -> Iterable[tuple[Tensor, torch.Generator]]:
        generator = self.generator("loss", self.step_count, self.place.rank)
        return ((self.points["train"].index_select(0, piece), generator) for piece in rows.split(self.micro_batch))

    def losses_of(self, points: Tensor, generator: torch.Generator) -> Tensor:
        return self.losses(self.model, points, generator=generator)

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        if part == "train":
            return {}  # the steps tell their loss
        points = self.points[part]
        # The same noise every time, and several draws a point: epochs compare.
        losses = [self.losses(self.eval_model, points, generator=self.generator("measure", part, draw)) for draw in range(8)]
        found = {"loss": float(torch.stack(losses).mean())}
        check_finite({f"{part}_loss": found["loss"]}, f"after step {self.step_count}")
        return found | (self.quality() | self.measure_finally() if part == "test" else {})

    def sample(self, count: int, key: str) -> Tensor:  # (count, 2)
        return self.eval_model.sample(count, generator=self.generator(key))

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

    def panels(self) -> Iterator[Panel]:
        """Data beside samples, and the task's own."""
        samples = self.sample(min(SHOWN, len(self.points["test"])), "sheet").cpu()
        clouds = {"test points": self.points["test"][: len(samples)].cpu(), "samples": samples}
        told = f"{len(samples)} points that the model draws, not chosen, beside as many that it has not seen."
        yield Panel("Samples", lambda: plot.point_clouds(clouds), told)
        yield from self.own_panels()


class DiffusionPointsTask(PointsTask):
    """Diffusion: noise that was mixed into points is told from them."""

    options: Any

    def losses(self, model: DiffusionSampler, points: Tensor, *, generator: torch.Generator) -> Tensor:
        clean = model.inward(points)
        t = model.schedule.draw_times(len(clean), generator=generator).to(clean.device)
        noise = torch.randn(clean.shape, generator=generator).to(clean)
        return denoising_loss(model.network, model.schedule, model.parametrisation, clean, t, noise)

    def measure_finally(self) -> Metrics:
        """The variational bound on -ln p(x), in nats a point and in the unit of the data."""
        shown, clean, num_times = self.eval_model, self.eval_model.inward(self.points["test"]), min(32, self.options.times - 1)
        generator = self.generator("bound")
        bound = sampled_diffusion_bound(shown.denoiser(), shown.schedule, clean, num_times=num_times, generator=generator)
        return {"bound": float(bound.output.mean() + shown.unit.log().sum())}

    def own_panels(self) -> list[Panel]:
        path = self.eval_model.sample_path(SHOWN, generator=self.generator("sheet"))
        angles = self.eval_model.schedule.angle[torch.tensor(path.times)]  # by which the way is even: by time most of it is all noise
        places = [int((angles - share * angles[0]).abs().argmin()) for share in torch.linspace(1, 0, 8)]
        strip = {f"t = {path.times[place]}": path.states[place].cpu() for place in places}
        return [
            Panel("Denoising", lambda: plot.point_clouds(strip), "The same thousand points on their way from noise to data."),
            Panel(
                "Samplers",
                lambda: plot.curves(self._by_steps(), x_label="questions to the network", y_label="squared MMD", log_x=True, log_y=True),
                "How far 2,000 samples are from the test points; what is below 1e-5 is drawn there.",
            ),
        ]

    def _by_steps(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The discrepancy of each sampler for several numbers of questions to the network."""
        budgets = [budget for budget in BUDGETS if budget <= self.options.times] or [1]
        lines = {}
        for name, sampler in SAMPLERS.items():
            found = []
            for budget in budgets:
                steps = (budget + 1) // 2 if name == "Heun" else budget  # it asks twice a step, once in the last
                drawn = self.eval_model.sample(2000, generator=self.generator("budgets"), steps=steps, sampler=sampler)
                found.append(max(self.squared_mmd(drawn), 1e-5))
            lines[name] = (torch.tensor(budgets), torch.tensor(found))
        return lines


class FlowMatchingPointsTask(PointsTask):
    """Flow matching: a velocity field is learnt that carries noise along straight lines to points, and knows their density."""

    def losses(self, model: FlowSampler, points: Tensor, *, generator: torch.Generator) -> Tensor:
        data = model.inward(points)
        noise = torch.randn(data.shape, generator=generator).to(data)
        t = torch.rand(len(data), generator=generator).to(data)
        return flow_matching_loss(model.network, data, noise, t)

    def measure_finally(self) -> Metrics:
        return {"nll": -float(self.eval_model.log_prob(self.points["test"]).mean())}  # nats a point

    def own_panels(self) -> list[Panel]:
        path = self.eval_model.sample_path(SHOWN, generator=self.generator("sheet"))
        places = torch.linspace(0, len(path.times) - 1, 8).round().long().tolist()
        strip = {f"t = {path.times[place]:.2f}": path.states[place].cpu() for place in dict.fromkeys(places)}
        return [
            Panel("Flow", lambda: plot.point_clouds(strip), "The same thousand points on their way from noise to data."),
            Panel("Density", self._density, "p(x) of the flow: how crowded it leaves each place."),
        ]

    def _density(self) -> plot.Drawing:
        low, high = self.points["test"].amin(dim=0) - 0.3, self.points["test"].amax(dim=0) + 0.3
        cell = float((high - low).max()) / 80
        x, y = (torch.arange(float(low[axis]), float(high[axis]), cell) for axis in (0, 1))
        grid = torch.stack(torch.meshgrid(x, y.flip(0), indexing="xy"), dim=-1)
        found = self.eval_model.log_prob(grid.flatten(0, 1).to(self.place.device)).exp().reshape(grid.shape[:2]).cpu()
        return plot.heat_map(found, row_labels=[f"{each:.1f}" for each in y.flip(0)], column_labels=[f"{each:.1f}" for each in x])
