"""Generation of points, in the plane or of any dimension: diffusion and flow matching, where the distribution can be
plotted.

A subclass of `PointTask` says what the loss of a point is, and what is plotted beside the samples: by diffusion or by a
flow.

What is evaluated, saved and sampled from is the EMA of the weights.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import generate, plot
from quoin.data import (
    BatchSampler,
    PointInfo,
    PointSet,
    PointSplits,
    RowNoise,
    keyed_generator,
    make_blobs,
    make_circles,
    make_moons,
)
from quoin.errors import UserError
from quoin.generate import DiffusionSampler, FlowSampler
from quoin.losses import denoising_loss, flow_matching_loss, sampled_diffusion_vlb
from quoin.metrics import sample_quality
from quoin.plot import Panel
from quoin.prob import make_denoiser, median_heuristic, squared_mmd
from quoin.tasks.generative_options import PointOptions
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.points import Plane, load_point_splits
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics, check_finite
from quoin.train.fractions import own_batches, own_blocks, sample_in_blocks
from quoin.train.processes import on_main

__all__ = ["DiffusionPointTask", "FlowMatchingPointTask", "PointTask", "point_splits", "sample_points"]

SHOWN = 1000  # points of a plot
BLOCK = 1000  # points that are evaluated together, or sampled with noise of one generator
NUM_EVAL_SAMPLES = 8  # of time and noise, for each held-out point
VALIDATION = 0.1
FEWEST = 8  # held-out points of a user: each has a ball that reaches its fifth neighbour
MOST_MEASURED = 4000  # held-out points of a user that samples are measured against: the cost is quadratic
MOST_TRACED = 16  # dimensions in which the density of a flow is computed: each costs a backward pass a step
SPARE = 10  # points that are sampled for each that is taken
BUDGETS = (5, 10, 20, 50, 100)  # function evaluations (NFE) with which samplers are compared
SAMPLERS = {
    "DDPM": generate.sample_ddpm,
    "DDIM": generate.sample_ddim,
    "Heun": generate.sample_heun,
    "DPM-Solver-2": generate.sample_dpm_solver_2,
}


def point_splits(options: PointOptions) -> PointSplits:
    """The points that `options` name: of a file, or three splits sampled anew from the distribution of that name."""
    if options.is_demonstration:
        splits = sample_points(options)
        info = PointSet(options.data, torch.cat(list(splits.values())), ("x0", "x1")).info
        return PointSplits(info, **splits)
    splits = load_point_splits(options, validation=VALIDATION).to(dtype=torch.float32)
    if len(splits.test) < FEWEST:
        raise UserError(
            f"expected at least {5 * FEWEST} points, of which a fifth is held out to measure samples against, got "
            f"{splits.info.num_rows}: add rows"
        )
    return splits


def sample_points(options: PointOptions) -> dict[str, Float[Tensor, "_points 2"]]:
    """Three splits, each sampled anew from the distribution that `options` name."""
    centers = [(math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)) for k in range(8)]
    shapes: dict[str, Callable[..., Any]] = {
        "moons": lambda rows, generator: make_moons(rows, noise=0.1, generator=generator),
        "circles": lambda rows, generator: make_circles(rows, noise=0.05, generator=generator),
        "blobs": lambda rows, generator: make_blobs(rows, centers, noise=0.1, generator=generator),
    }
    shape, sizes = (
        shapes[options.data],
        {"train": options.num_examples, "validation": options.num_examples // 4, "test": options.num_examples},
    )
    splits = {}
    for split, rows in sizes.items():
        # The shapes have evenly spaced points: a few among many are as independent samples, which the metrics assume.
        generator = keyed_generator("points", split, options.seed)
        many = shape(SPARE * rows, generator).features
        splits[split] = many[torch.randperm(len(many), generator=generator)[:rows]]
    return splits


class PointTask(GradientTask):
    """A model that is sampled from, one loss for each point, and an EMA of its weights.

    The model sees points as (x - offset)/unit: less the mean, and over the standard deviation, of the training points.
    All randomness is a function of the seed, the step and the row of the global batch: a resumed run samples what it
    would have.
    """

    kind = "point-generation"

    def __init__(
        self,
        model: DiffusionSampler | FlowSampler,
        points: PointSplits,
        options: PointOptions,
        device_context: DeviceContext,
    ) -> None:
        std = points.train.std(dim=0)
        model.loc.copy_(points.train.mean(dim=0))
        model.scale.copy_(torch.where(std > 0, std, 1.0))  # a column that never changes
        if isinstance(model, DiffusionSampler) and model.bounds is not None:
            # E[x_0 | x_t] is a mean of data, so no prediction beyond them is right. Where x_t is nearly all noise, the
            # x̂_0 of a predicted noise is its error times noise/signal: 20,000 at the end of the cosine schedule.
            reach = model.normalize(points.train).abs().max().clamp(min=1.0)
            model.bounds.copy_(torch.stack([-reach, reach]))
        model = model.to(device_context.device)
        if isinstance(model, DiffusionSampler):
            model.schedule.tables(model.loc)
        rows = len(points.train)
        super().__init__(
            model,
            make_optimizer(model.parameters(), options),
            BatchSampler(
                rows,
                options.batch_size,
                seed=options.seed,
                rank=device_context.rank,
                world_size=device_context.world_size,
                device=device_context.device,
            ),
            device_context,
            epochs=options.epochs,
            schedule=make_lr_schedule(options),
            max_grad_norm=options.max_grad_norm,
            micro_batch_size=options.micro_batch_size,
            ema_decay=options.ema_decay,
        )
        self._step_losses = device_context.compiled(self._training_losses, self.full_rows)
        self.options = options
        self.data_info: PointInfo = points.info
        self.points = {
            split: getattr(points, split).to(device_context.device) for split in ("train", "validation", "test")
        }
        self.measured = self.points["test"]
        if len(self.measured) > MOST_MEASURED and not options.is_demonstration:
            order = torch.randperm(len(self.measured), generator=self.generator("measured"))[:MOST_MEASURED]
            self.measured = self.measured[order.to(self.measured.device)]

    @abstractmethod
    def losses(
        self, model: Any, points: Float[Tensor, "points features"], *, noise: RowNoise
    ) -> Float[Tensor, "points"]:
        """What is minimised, and evaluated on held-out points."""

    def compute_final_metrics(self) -> Metrics:
        """What is worth its cost only once, on the test points."""
        return {}

    def own_panels(self) -> list[Panel]:
        """What there is to see beside the samples."""
        return []

    def generator(self, *key: str | int) -> torch.Generator:
        """A generator that depends on the run's seed and `key` alone."""
        return keyed_generator(*key, self.options.seed)

    def pieces(self, rows: Int[Tensor, "batch"]) -> Iterable[tuple[Float[Tensor, "piece features"], RowNoise]]:
        for piece in self.cut(rows):
            yield self.points["train"].index_select(0, piece.rows), self.row_noise(piece, "loss")

    def losses_of(self, points: Float[Tensor, "points features"], noise: RowNoise) -> Float[Tensor, "points"]:
        return self._step_losses(points, noise)

    def _training_losses(self, points: Tensor, noise: RowNoise) -> Tensor:
        return self.losses(self.model, points, noise=noise)

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split == "train":
            return {}  # the steps report their loss
        points, totals = self.points[split], MeanMetrics()
        for rows in own_batches(len(points), BLOCK):
            # The same noise every time, and several samples a point: epochs compare.
            for number in range(NUM_EVAL_SAMPLES):
                noise = self._measuring_noise(split, number).rows(rows.start, rows.stop)
                losses = self.losses(self.eval_model, points[rows], noise=noise)
                totals.add({"loss": losses.sum()}, len(losses))
        found = totals.over_processes().compute()
        check_finite({f"{split}_loss": found["loss"]}, f"after step {self.step_count}")
        return found | (self.quality() | self.compute_final_metrics() if split == "test" else {})

    def _measuring_noise(self, split: str, number: int) -> RowNoise:
        device, num_rows = self.device_context.device, len(self.points[split])
        return RowNoise("measure", split, number, self.options.seed, num_rows=num_rows, device=device)

    def sample(self, num_samples: int, key: str) -> Float[Tensor, "{num_samples} features"]:
        """New points with the noise of this key, sampled in blocks that the processes share out."""
        return sample_in_blocks(
            lambda number, rows: self.eval_model.sample(rows.stop - rows.start, generator=self.generator(key, number)),
            num_samples,
            BLOCK,
            self.device_context.device,
        )

    def quality(self) -> Metrics:
        """As many samples as there are test points, beside these: the coordinates themselves are the features."""
        samples = self.sample(len(self.measured), "samples")
        return on_main(
            lambda: sample_quality(samples, self.measured, self.features, train=self.points["train"])._asdict()
        )

    def features(self, points: Float[Tensor, "points features"]) -> Float[Tensor, "points features"]:
        """What distances are taken between: columns in units of their own are standardised first."""
        return points if self.options.is_demonstration else self.eval_model.normalize(points)

    def squared_mmd(self, samples: Float[Tensor, "samples features"]) -> float:
        """The discrepancy of `samples` from the test points, by the kernel that all are measured with."""
        real = self.features(self.measured)
        middle = median_heuristic(real[:SHOWN])
        return float(squared_mmd(self.features(samples), real, [middle / 4, middle / 2, middle]))

    def panels(self) -> Iterator[Panel]:
        """Data beside samples, and the task's own."""
        samples = self.sample(min(SHOWN, len(self.measured)), "sheet").cpu()
        clouds = {"test points": self.seen(self.measured[: len(samples)]), "samples": self.seen(samples)}
        caption = f"{len(samples)} uncurated samples of the model, and as many test points.{self.caption}"
        yield Panel("Samples", lambda: plot.scatter_panels(clouds), caption)
        yield from self.own_panels()

    def seen(self, points: Float[Tensor, "points features"]) -> Float[Tensor, "points 2"]:
        """Points as they are plotted: those of a user in a plane that shows most of them."""
        return points.cpu() if self.options.is_demonstration else self._plane.project(points)

    @property
    def caption(self) -> str:
        """What the plane of the plots is, where it is not the points' own."""
        return "" if self.options.is_demonstration else self._plane.describe(self.data_info.num_features)

    @functools.cached_property
    def _plane(self) -> Plane:
        return Plane.fit(self.points["train"])


class DiffusionPointTask(PointTask):
    """Diffusion: the network predicts the noise that was added to points."""

    options: Any

    def losses(
        self, model: DiffusionSampler, points: Float[Tensor, "points features"], *, noise: RowNoise
    ) -> Float[Tensor, "points"]:
        clean = model.normalize(points)
        t = noise.integers(1, model.schedule.num_steps + 1)
        added = noise.normal(*clean.shape[1:], dtype=clean.dtype)
        return denoising_loss(model.network, model.schedule, model.prediction_type, clean, t, added)

    def compute_final_metrics(self) -> Metrics:
        """The variational bound on -ln p(x), in nats a point and in the unit of the data."""
        shown, clean = self.eval_model, self.eval_model.normalize(self.measured)
        # Not clipped as in sampling: a point beyond those of training would pay for the bounds, not for the network.
        denoiser = make_denoiser(shown.network, shown.schedule, shown.prediction_type)
        num_times, totals = min(32, self.options.num_timesteps - 1), MeanMetrics()
        for number, rows in own_blocks(len(clean), BLOCK):
            bound = sampled_diffusion_vlb(
                denoiser,
                shown.schedule,
                clean[rows],
                num_times=num_times,
                generator=self.generator("bound", number),
            )
            totals.add({"nll_bound": bound.output.sum()}, rows.stop - rows.start)
        return {"nll_bound": totals.over_processes().compute()["nll_bound"] + float(shown.scale.log().sum())}

    def own_panels(self) -> list[Panel]:
        path = self.eval_model.sample_path(SHOWN, generator=self.generator("sheet"))
        angles = self.eval_model.schedule.angle[
            torch.tensor(path.times)
        ]  # by which the way is even: by time most of it is all noise
        indices = [int((angles - fraction * angles[0]).abs().argmin()) for fraction in torch.linspace(1, 0, 8)]
        strip = {f"t = {path.times[index]}": self.seen(path.states[index]) for index in indices}
        return [
            Panel(
                "Denoising",
                lambda: plot.scatter_panels(strip),
                "The same thousand points on their way from noise to data.",
            ),
            Panel(
                "Samplers",
                lambda: plot.curves(
                    self._by_steps(),
                    x_label="function evaluations (NFE)",
                    y_label="squared MMD",
                    log_x=True,
                    log_y=True,
                ),
                "Squared MMD of 2,000 samples to the test points; what is below 1e-5 is plotted there.",
            ),
        ]

    def _by_steps(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The discrepancy of each sampler for several numbers of function evaluations (NFE)."""
        budgets = [budget for budget in BUDGETS if budget <= self.options.num_timesteps] or [1]
        lines = {}
        for name, sampler in SAMPLERS.items():
            found = []
            for budget in budgets:
                steps = (budget + 1) // 2 if name == "Heun" else budget  # it asks twice a step, once in the last
                samples = self.eval_model.sample(
                    2000, generator=self.generator("budgets"), num_steps=steps, sampler=sampler
                )
                found.append(max(self.squared_mmd(samples), 1e-5))
            lines[name] = (torch.tensor(budgets), torch.tensor(found))
        return lines


class FlowMatchingPointTask(PointTask):
    """Flow matching: a velocity field is learnt that carries noise along straight lines to points, and knows their
    density."""

    def losses(
        self, model: FlowSampler, points: Float[Tensor, "points features"], *, noise: RowNoise
    ) -> Float[Tensor, "points"]:
        data = model.normalize(points)
        from_noise = noise.normal(*data.shape[1:], dtype=data.dtype)
        return flow_matching_loss(model.network, data, from_noise, noise.uniform(dtype=data.dtype))

    def compute_final_metrics(self) -> Metrics:
        if self.data_info.num_features > MOST_TRACED:
            return {}
        totals = MeanMetrics()
        for rows in own_batches(len(self.measured), MOST_MEASURED):
            log_probs = self.eval_model.log_prob(self.measured[rows])
            totals.add({"nll": -log_probs.sum()}, rows.stop - rows.start)  # nats a point
        return totals.over_processes().compute()

    def own_panels(self) -> list[Panel]:
        path = self.eval_model.sample_path(SHOWN, generator=self.generator("sheet"))
        indices = torch.linspace(0, len(path.times) - 1, 8).round().long().tolist()
        strip = {f"t = {path.times[index]:.2f}": self.seen(path.states[index]) for index in dict.fromkeys(indices)}
        panels = [
            Panel(
                "Flow", lambda: plot.scatter_panels(strip), "The same thousand points on their way from noise to data."
            )
        ]
        if self.options.is_demonstration:  # a window of the plane in one unit
            panels.append(Panel("Density", self._density, "p(x) of the flow."))
        return panels

    def _density(self) -> plot.Plot:
        low, high = self.points["test"].amin(dim=0) - 0.3, self.points["test"].amax(dim=0) + 0.3
        cell = float((high - low).max()) / 80
        x, y = (torch.arange(float(low[axis]), float(high[axis]), cell) for axis in (0, 1))
        grid = torch.stack(torch.meshgrid(x, y.flip(0), indexing="xy"), dim=-1)
        found = (
            self.eval_model.log_prob(grid.flatten(0, 1).to(self.device_context.device))
            .exp()
            .reshape(grid.shape[:2])
            .cpu()
        )
        return plot.heatmap(
            found, row_labels=[f"{each:.1f}" for each in y.flip(0)], column_labels=[f"{each:.1f}" for each in x]
        )
