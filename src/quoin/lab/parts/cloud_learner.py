"""A small diffusion model of the reader's own points, a step of learning at a time."""

import copy
import functools
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator, make_moons
from quoin.errors import UserError
from quoin.generate import sample_ddim
from quoin.lab.parts.noise_pictures import SCHEDULE, draw_paths_back, walk_back
from quoin.lab.parts.picture import Picture
from quoin.losses import denoising_loss
from quoin.models import TimeMLP
from quoin.prob import VPrediction, make_denoiser

__all__ = [
    "MOST_ROWS",
    "STEPS",
    "UPDATES",
    "LearnedCloud",
    "SplitCloud",
    "draw_learning",
    "learned_cloud",
    "paths_to",
    "split_cloud",
    "two_moons",
]

STEPS, UPDATES = 25, 40  # of the page, and in each of them
MOST_ROWS = 2000
_BATCH, _LR, _LEAST_ROWS = 128, 6e-3, 12

Rows = tuple[tuple[float, float], ...]


class SplitCloud(NamedTuple):
    """Rows to learn from, rows held out, both over the deviations of the first."""

    train: Float[Tensor, "n 2"]
    held_out: Float[Tensor, "m 2"]


def split_cloud(points: Float[Tensor, "rows 2"]) -> SplitCloud:
    """A quarter of the rows, by chance, is held out."""
    if len(points) < _LEAST_ROWS:
        raise UserError(f"expected at least {_LEAST_ROWS} rows to learn from, got {len(points)}; give more")
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    rows = points[order[:MOST_ROWS]].float()
    train, held_out = rows[len(rows) // 4 :], rows[: len(rows) // 4]
    scale = train.std(dim=0)
    if float(scale.min()) <= 1e-6 * float(train.abs().max()):
        raise UserError("expected two columns that change, got one number throughout; choose another file")
    return SplitCloud((train - train.mean(dim=0)) / scale, (held_out - train.mean(dim=0)) / scale)


class LearnedCloud(NamedTuple):
    """A network that predicts v from noisy points, its optimizer's state, and its mean loss in each step so far."""

    network: TimeMLP
    optimizer: dict[str, Any]
    losses: tuple[float, ...]


@functools.lru_cache(maxsize=128)
def learned_cloud(rows: Rows, steps: int) -> LearnedCloud:
    """The network after `steps` times UPDATES updates on the loss of the diffusion recipes; the learning rate falls to
    zero at STEPS."""
    if steps == 0:
        network = TimeMLP(2, hidden_dim=64, num_layers=2, time_unit=0.1, generator=torch.Generator().manual_seed(0))
        return LearnedCloud(network, {}, ())
    before = learned_cloud(rows, steps - 1)
    network = copy.deepcopy(before.network)
    optimizer = torch.optim.Adam(network.parameters(), lr=_LR)
    if before.optimizer:
        optimizer.load_state_dict(copy.deepcopy(before.optimizer))
    optimizer.param_groups[0]["lr"] = _LR * (1 - (steps - 1) / STEPS)
    points, generator, total = torch.tensor(rows), torch.Generator().manual_seed(steps), 0.0
    for _ in range(UPDATES):
        clean = points[torch.randint(len(points), (_BATCH,), generator=generator)]
        t = torch.randint(1, SCHEDULE.num_steps + 1, (_BATCH,), generator=generator)
        noise = torch.randn(_BATCH, 2, generator=generator)
        loss = denoising_loss(network, SCHEDULE, VPrediction(), clean, t, noise).mean()
        for parameter, gradient in zip(network.parameters(), torch.autograd.grad(loss, tuple(network.parameters()))):
            parameter.grad = gradient
        optimizer.step()
        total += float(loss.detach()) / UPDATES
    return LearnedCloud(network, optimizer.state_dict(), (*before.losses, total))


def paths_to(
    train: Float[Tensor, "n 2"], steps: int | None, num_samples: int = 200
) -> tuple[Float[Tensor, "times samples 2"], tuple[float, ...]]:
    """The paths of DDIM from noise to samples: of the network after `steps` of learning, with its losses, or (None) of
    the exact denoiser of these rows."""
    start = torch.randn(num_samples, 2, generator=torch.Generator().manual_seed(0))
    if steps is None:
        return walk_back(train.double(), start.double(), SCHEDULE.num_steps // 2).float(), ()
    learned, states = learned_cloud(tuple(map(tuple, train.tolist())), steps), list[Tensor]()
    with torch.no_grad():
        sample_ddim(
            make_denoiser(learned.network, SCHEDULE, VPrediction()),
            SCHEDULE,
            start,
            num_steps=SCHEDULE.num_steps // 2,
            generator=torch.Generator().manual_seed(0),  # unused: eta is 0
            callback=lambda t, state: states.append(state),
        )
    return torch.stack(states), learned.losses


def two_moons() -> Float[Tensor, "240 2"]:
    """A cloud to begin with."""
    return make_moons(240, noise=0.07, generator=keyed_generator("moons", 0)).features


def draw_learning(
    picture: Picture,
    train: Float[Tensor, "n 2"],
    states: Float[Tensor, "times samples 2"],
    losses: tuple[float, ...],
    names: tuple[str, ...],
) -> None:
    """Rows in green, samples in blue with some of their paths; the loss by step."""
    axes = picture.axes((-3, 3), (-3, 3), box=(46, 14, 370, 350), x_label=names[0], y_label=names[1])
    axes.points(train[:600, 0], train[:600, 1], "hand 60%", size=3)
    draw_paths_back(axes, states[:, :30], "model 22%")
    axes.points(states[-1, :, 0], states[-1, :, 1], "model", size=2.6)
    curve = picture.axes((0, STEPS), (0, 1.3), box=(478, 36, 150, 300), title="loss", x_label="step")
    curve.line(range(1, len(losses) + 1), [min(each, 1.3) for each in losses], "change")
