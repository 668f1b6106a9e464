"""The held-out data of a run, loaded once, for a page asks for them at every move; and samples of runs on digits."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import Dataset
from quoin.errors import UserError
from quoin.generate import DiffusionSolver, TokenSampler, complete_pixels
from quoin.metrics import density_and_coverage
from quoin.runs import Run

__all__ = [
    "GuidedDigits",
    "complete_upper_half",
    "guided_digits",
    "normalized_test_points",
    "solver_states",
    "test_digits",
    "test_rows",
    "test_sources",
    "test_text",
]

SHOWN_TOKENS = 34  # of a text that stands there before the reader types

_kept: dict[str, Any] = {}  # by the run's folder: a run is opened again and again


def _task(run: Run) -> Any:
    key = str(run.path)
    if key not in _kept:
        _kept[key] = run.load_task()
    return _kept[key]


def test_rows(run: Run) -> Dataset | None:
    """The test rows of a run on tables, signals or images, on its model's scale; None where they cannot be had now."""
    try:
        return _task(run).data.test
    except UserError:  # moved, changed, or of code that is not to run
        return None


def test_sources(run: Run) -> list[str]:
    """The sources of a run's test pairs; none where they cannot be had now."""
    try:
        return list(_task(run).corpus.test.pairs.sources)
    except UserError:
        return []


def test_text(run: Run) -> str:
    """The first tokens of a language model's test text; empty where it cannot be had now."""
    trained: Any = run.trained
    try:
        return trained.tokenizer.decode(_task(run).text.test.in_memory()[:SHOWN_TOKENS])
    except UserError:
        return ""


def test_digits(run: Run) -> Dataset:
    """The test images of a run on images, with their classes."""
    return _task(run).data.test


def normalized_test_points(run: Run) -> Float[Tensor, "n 2"]:
    """The test points of a run on points of the plane, on its network's scale."""
    model: Any = run.model
    return model.normalize(_task(run).points["test"])


def solver_states(
    run: Run, solver: DiffusionSolver, start: Float[Tensor, "m 2"], num_steps: int
) -> Float[Tensor, "times m 2"]:
    """Where a solver's walks are, from their noise on, on the network's scale."""
    seen: list[Tensor] = []
    generator = torch.Generator().manual_seed(1)
    model: Any = run.model
    solver(
        model.denoiser(),
        model.schedule,
        start,
        num_steps=num_steps,
        generator=generator,
        callback=lambda t, state: seen.append(state),
    )
    return torch.stack(seen)


class GuidedDigits(NamedTuple):
    """Sixteen samples of a class, and how true and how varied they are beside the test digits."""

    images: Float[Tensor, "16 8 8"]
    spread: float  # the deviation of their pixels
    right: float  # how many lie nearest to a test digit of the class
    coverage: float  # how many of the class's test digits have a sample as near as their fifth neighbour


@torch.no_grad()
def guided_digits(run: Run, digit: int, guidance: float) -> GuidedDigits:
    """Sixteen samples of a class at a guidance scale."""
    model: Any = run.model
    labels, generator = torch.full((16,), digit), torch.Generator().manual_seed(0)
    images = model.sample(16, labels=labels, guidance_scale=guidance, num_steps=10, generator=generator)
    test, flat = test_digits(run), images.flatten(1)
    real = test.features.flatten(1)
    right = float((test.targets[torch.cdist(flat, real).argmin(dim=1)] == digit).double().mean())
    coverage = density_and_coverage(real[test.targets == digit], flat).coverage
    return GuidedDigits(images[:, 0].clamp(0, 1), float(images.std(dim=0).mean()), right, coverage)


@torch.no_grad()
def complete_upper_half(run: Run, half: tuple[float, ...], temperature: float) -> tuple[Float[Tensor, "8 8 8"], float]:
    """Eight completions of a painted upper half, and their mean bits per dimension under the model."""
    network: Any = run.model
    model = network.model
    images = torch.zeros(8, 1, 8, 8)
    images[:, 0, :4] = torch.tensor(half).reshape(4, 8)
    sampler = TokenSampler(temperature, generator=torch.Generator().manual_seed(0))
    done = complete_pixels(model, images, 32, sampler)
    bits = -float(model.eval().log_prob(done).mean()) / 64 / torch.log(torch.tensor(2.0)).item()
    return done[:, 0], bits
