"""A trained network together with the process it was trained for: a distribution to sample from, as reports, metrics
and commands need it.

The network works on its own scale, y = (x - loc)/scale with numbers about 1; examples are x.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.generate.diffusion import StepCallback, clip_denoiser, sample_ddim, sample_initial_noise
from quoin.generate.guidance import classifier_free_guidance
from quoin.generate.paths import SamplePath
from quoin.prob import Denoiser, NoiseSchedule, PredictionType, make_denoiser
from quoin.tensor import as_floating

__all__ = ["DiffusionSampler", "DiffusionSolver", "GuidedDiffusionSampler"]


@runtime_checkable
class DiffusionSolver(Protocol):
    """What all samplers of a diffusion are called by."""

    def __call__(
        self,
        denoiser: Denoiser,
        schedule: NoiseSchedule,
        start: Float[Tensor, "batch *shape"],
        *,
        num_steps: int,
        generator: torch.Generator,
        callback: StepCallback | None = None,
    ) -> Float[Tensor, "batch *shape"]: ...


class _ScaledSampler(nn.Module):
    """What both models share: the scale, and the reverse process."""

    loc: Float[Tensor, "*#shape"]
    scale: Float[Tensor, "*#shape"]
    bounds: Float[Tensor, "2"] | None

    def __init__(
        self,
        network: nn.Module,
        schedule: NoiseSchedule,
        prediction_type: PredictionType,
        shape: Sequence[int],
        *,
        loc: Real[Tensor, "*#shape"],
        scale: Real[Tensor, "*#shape"],
        bounds: tuple[float, float] | None = None,
        num_steps: int = 50,
        sampler: DiffusionSolver = sample_ddim,
    ) -> None:
        super().__init__()
        schedule.timesteps(num_steps)  # raises an error for what is outside 1 ... T before any training
        self.network, self.schedule, self.prediction_type = network, schedule, prediction_type
        self.shape, self.num_steps, self.sampler = tuple(shape), num_steps, sampler
        self.register_buffer("loc", as_floating(loc, scale))
        self.register_buffer("scale", as_floating(scale, loc))
        self.register_buffer("bounds", None if bounds is None else torch.tensor(bounds, dtype=self.scale.dtype))

    @property
    def clip_range(self) -> tuple[float, float] | None:
        """What predictions of y_0 are clipped to; a task may have fitted it to its data."""
        if self.bounds is None:
            return None
        low, high = self.bounds.tolist()
        return low, high

    def normalize(self, x: Real[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """Examples on the network's scale."""
        return (x - self.loc) / self.scale

    def denormalize(self, y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Back on the scale of examples."""
        return self.loc + self.scale * y

    def _denoiser(self, network: Callable[[Tensor, Tensor], Tensor]) -> Denoiser:
        denoiser = make_denoiser(network, self.schedule, self.prediction_type)
        clip_range = self.clip_range
        if clip_range is None:
            return denoiser
        return clip_denoiser(denoiser, self.schedule, low=clip_range[0], high=clip_range[1])

    def _sample(
        self,
        denoiser: Denoiser,
        num_samples: int,
        num_steps: int | None,
        sampler: DiffusionSolver | None,
        generator: torch.Generator,
        callback: StepCallback | None = None,
    ) -> Tensor:
        start = sample_initial_noise(
            (num_samples, *self.shape), generator=generator, dtype=self.scale.dtype, device=self.scale.device
        )
        num_steps = self.num_steps if num_steps is None else num_steps
        solver = self.sampler if sampler is None else sampler
        return self.denormalize(
            solver(denoiser, self.schedule, start, num_steps=num_steps, generator=generator, callback=callback)
        )

    def _path(
        self,
        denoiser: Denoiser,
        num_samples: int,
        num_steps: int | None,
        sampler: DiffusionSolver | None,
        generator: torch.Generator,
    ) -> SamplePath:
        seen: list[tuple[int, Tensor]] = []
        self._sample(denoiser, num_samples, num_steps, sampler, generator, lambda t, state: seen.append((t, state)))
        return SamplePath(tuple(t for t, _ in seen), self.denormalize(torch.stack([state for _, state in seen])))


class DiffusionSampler(_ScaledSampler):
    """A distribution by diffusion, denoised by network(y_t, t).

    Args:
        prediction_type: What the network predicts: `EpsilonPrediction`, `SamplePrediction` or `VPrediction` of
            quoin.prob.
        shape: That of one example, without the batch.
        loc: What is subtracted from examples: the network works on y = (x - loc)/scale.
        scale: What they are then divided by.
        bounds: (low, high) on the network's scale, to which predictions of y_0 are clipped; a buffer, so that it can be
            fitted to data. None clips nothing.
        num_steps: Steps that `sample` takes unless it is given others; at most as many as the schedule has.
        sampler: The solver that `sample` uses unless it is given another.

    Notes: D0-T.
    """

    def denoiser(self) -> Denoiser:
        """On the network's scale."""
        return self._denoiser(self.network)

    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator,
        num_steps: int | None = None,
        sampler: DiffusionSolver | None = None,
    ) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples by the sampler, and in as many steps, as the model usually takes, or by `sampler` in
        `num_steps`."""
        return self._sample(self.denoiser(), num_samples, num_steps, sampler, generator)

    def sample_path(
        self,
        num_samples: int,
        *,
        generator: torch.Generator,
        num_steps: int | None = None,
        sampler: DiffusionSolver | None = None,
    ) -> SamplePath:
        """The samples of `sample` with the intermediate ones of the reverse process."""
        return self._path(self.denoiser(), num_samples, num_steps, sampler, generator)


class GuidedDiffusionSampler(_ScaledSampler):
    """A distribution of examples in classes: network(y_t, t, labels), where the label `num_classes` stands for none.

    Args:
        prediction_type: What the network predicts: `EpsilonPrediction`, `SamplePrediction` or `VPrediction` of
            quoin.prob.
        shape: That of one example, without the batch.
        loc: What is subtracted from examples: the network works on y = (x - loc)/scale.
        scale: What they are then divided by.
        bounds: (low, high) on the network's scale, to which predictions of y_0 are clipped; a buffer, so that it can be
            fitted to data. None clips nothing.
        num_steps: Steps that `sample` takes unless it is given others; at most as many as the schedule has.
        sampler: The solver that `sample` uses unless it is given another.
        guidance_scale: That of classifier-free guidance in `sample` unless it is given another: 1 is none, more
            exaggerates the class, 0 ignores it.

    Notes: D0-T.
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: NoiseSchedule,
        prediction_type: PredictionType,
        shape: Sequence[int],
        *,
        num_classes: int,
        loc: Real[Tensor, "*#shape"],
        scale: Real[Tensor, "*#shape"],
        bounds: tuple[float, float] | None = None,
        num_steps: int = 50,
        sampler: DiffusionSolver = sample_ddim,
        guidance_scale: float = 1.0,
    ) -> None:
        super().__init__(
            network,
            schedule,
            prediction_type,
            shape,
            loc=loc,
            scale=scale,
            bounds=bounds,
            num_steps=num_steps,
            sampler=sampler,
        )
        self.num_classes, self.guidance_scale = num_classes, guidance_scale

    def denoiser(self, labels: Int[Tensor, "batch"], guidance_scale: float | None = None) -> Denoiser:
        """On the network's scale, for these classes."""
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < self.num_classes:
            raise UserError(
                f"expected classes from 0 to {self.num_classes - 1}, got others; give one that the model has learnt"
            )
        guidance_scale = self.guidance_scale if guidance_scale is None else guidance_scale
        return self._denoiser(
            classifier_free_guidance(
                self.network, labels.to(self.scale.device), guidance_scale=guidance_scale, null_label=self.num_classes
            )
        )

    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator,
        labels: Int[Tensor, "{num_samples}"] | None = None,
        guidance_scale: float | None = None,
        num_steps: int | None = None,
        sampler: DiffusionSolver | None = None,
    ) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples of these classes, or of each in turn."""
        return self._sample(
            self.denoiser(self._labels(labels, num_samples), guidance_scale), num_samples, num_steps, sampler, generator
        )

    def sample_path(
        self,
        num_samples: int,
        *,
        generator: torch.Generator,
        labels: Int[Tensor, "{num_samples}"] | None = None,
        guidance_scale: float | None = None,
        num_steps: int | None = None,
        sampler: DiffusionSolver | None = None,
    ) -> SamplePath:
        """The samples of `sample` with the intermediate ones of the reverse process."""
        return self._path(
            self.denoiser(self._labels(labels, num_samples), guidance_scale), num_samples, num_steps, sampler, generator
        )

    def _labels(self, labels: Tensor | None, num_samples: int) -> Tensor:
        return torch.arange(num_samples) % self.num_classes if labels is None else labels
