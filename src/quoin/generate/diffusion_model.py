"""A trained network together with the process it was trained for: a law to draw from, as reports, measures and commands ask for it.

The network works on its own scale, y = (x - offset)/unit with numbers about 1; examples are x.   b examples, of the shape `shape`
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.generate.diffusion import Watch, clipped, ddim, start_noise
from quoin.generate.guidance import guided
from quoin.generate.paths import SamplePath
from quoin.prob import Denoiser, NoiseSchedule, Parametrisation, denoiser_of
from quoin.tensor import as_floating

__all__ = ["DiffusionSampler", "GuidedDiffusionSampler", "ReverseWalk"]


class ReverseWalk(Protocol):
    """What all samplers of a diffusion are called by."""

    def __call__(
        self,
        denoiser: Denoiser,
        schedule: NoiseSchedule,
        start: Tensor,
        *,
        steps: int,
        generator: torch.Generator,
        watch: Watch | None = None,
    ) -> Tensor: ...


class _Drawing(nn.Module):
    """What both samplers share: the scale, and the walk from noise."""

    offset: Tensor
    unit: Tensor

    def __init__(
        self,
        network: nn.Module,
        schedule: NoiseSchedule,
        parametrisation: Parametrisation,
        shape: Sequence[int],
        *,
        offset: Tensor,
        unit: Tensor,
        bounds: tuple[float, float] | None = None,
        steps: int = 50,
        sampler: ReverseWalk = ddim,
    ) -> None:
        super().__init__()
        schedule.times(steps)  # refuses what is outside 1 ... T before any training
        self.network, self.schedule, self.parametrisation = network, schedule, parametrisation
        self.shape, self.bounds, self.steps, self.sampler = tuple(shape), bounds, steps, sampler
        self.register_buffer("offset", as_floating(offset, unit))
        self.register_buffer("unit", as_floating(unit, offset))

    def inward(self, x: Tensor) -> Tensor:  # (b, *shape) -> (b, *shape)
        """Examples on the network's scale."""
        return (x - self.offset) / self.unit

    def outward(self, y: Tensor) -> Tensor:  # (..., *shape) -> (..., *shape)
        """Back on the scale of examples."""
        return self.offset + self.unit * y

    def _denoiser(self, network: Callable[[Tensor, Tensor], Tensor]) -> Denoiser:
        denoiser = denoiser_of(network, self.schedule, self.parametrisation)
        if self.bounds is None:
            return denoiser
        return clipped(denoiser, self.schedule, low=self.bounds[0], high=self.bounds[1])

    def _draw(
        self,
        denoiser: Denoiser,
        count: int,
        steps: int | None,
        sampler: ReverseWalk | None,
        generator: torch.Generator,
        watch: Watch | None = None,
    ) -> Tensor:
        start = start_noise((count, *self.shape), generator=generator, dtype=self.unit.dtype, device=self.unit.device)
        steps = self.steps if steps is None else steps
        walk = self.sampler if sampler is None else sampler
        return self.outward(walk(denoiser, self.schedule, start, steps=steps, generator=generator, watch=watch))

    def _path(
        self, denoiser: Denoiser, count: int, steps: int | None, sampler: ReverseWalk | None, generator: torch.Generator
    ) -> SamplePath:
        seen: list[tuple[int, Tensor]] = []
        self._draw(denoiser, count, steps, sampler, generator, lambda t, state: seen.append((t, state)))
        return SamplePath(tuple(t for t, _ in seen), self.outward(torch.stack([state for _, state in seen])))


class DiffusionSampler(_Drawing):
    """A law by diffusion: network(y_t, t) says what the parametrisation asks for; `bounds` hold its guesses of y_0, as for images.

    Notes: D0-T.
    """

    def denoiser(self) -> Denoiser:
        """On the network's scale."""
        return self._denoiser(self.network)

    def sample(
        self, count: int, *, generator: torch.Generator, steps: int | None = None, sampler: ReverseWalk | None = None
    ) -> Tensor:  # -> (count, *shape)
        """New examples by the sampler, and in as many steps, as the model usually takes, or by `sampler` in `steps`."""
        return self._draw(self.denoiser(), count, steps, sampler, generator)

    def sample_path(
        self, count: int, *, generator: torch.Generator, steps: int | None = None, sampler: ReverseWalk | None = None
    ) -> SamplePath:
        """The draws of `sample` with the states that they came through."""
        return self._path(self.denoiser(), count, steps, sampler, generator)


class GuidedDiffusionSampler(_Drawing):
    """A law of examples in classes: network(y_t, t, labels), where the label `num_classes` stands for none.

    Notes: D0-T.
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: NoiseSchedule,
        parametrisation: Parametrisation,
        shape: Sequence[int],
        *,
        num_classes: int,
        offset: Tensor,
        unit: Tensor,
        bounds: tuple[float, float] | None = None,
        steps: int = 50,
        sampler: ReverseWalk = ddim,
        guidance: float = 1.0,
    ) -> None:
        super().__init__(network, schedule, parametrisation, shape, offset=offset, unit=unit, bounds=bounds, steps=steps, sampler=sampler)
        self.num_classes, self.guidance = num_classes, guidance

    def denoiser(self, labels: Tensor, guidance: float | None = None) -> Denoiser:  # (b,)
        """On the network's scale, for these classes."""
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < self.num_classes:
            raise Mistake(f"expected classes from 0 to {self.num_classes - 1}, came others; give one that the model has learnt")
        strength = self.guidance if guidance is None else guidance
        return self._denoiser(guided(self.network, labels.to(self.unit.device), strength=strength, unlabelled=self.num_classes))

    def sample(
        self,
        count: int,
        *,
        generator: torch.Generator,
        labels: Tensor | None = None,
        guidance: float | None = None,
        steps: int | None = None,
        sampler: ReverseWalk | None = None,
    ) -> Tensor:  # -> (count, *shape)
        """New examples of these classes, or of each in turn."""
        return self._draw(self.denoiser(self._labels(labels, count), guidance), count, steps, sampler, generator)

    def sample_path(
        self,
        count: int,
        *,
        generator: torch.Generator,
        labels: Tensor | None = None,
        guidance: float | None = None,
        steps: int | None = None,
        sampler: ReverseWalk | None = None,
    ) -> SamplePath:
        """The draws of `sample` with the states that they came through."""
        return self._path(self.denoiser(self._labels(labels, count), guidance), count, steps, sampler, generator)

    def _labels(self, labels: Tensor | None, count: int) -> Tensor:
        return torch.arange(count) % self.num_classes if labels is None else labels
