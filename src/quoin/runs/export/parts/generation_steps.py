"""What of a generative model is a graph: the denoiser at one time, the velocity, the decoder, the logits of pixels."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.generate import DiffusionSampler, FlowSampler, GuidedDiffusionSampler
from quoin.models import LinearVAE
from quoin.prob import SamplePrediction
from quoin.prob.diffusion_schedule import Level

__all__ = ["Decoder", "Denoise", "GuidedDenoise", "LinearDecoder", "PixelLogits", "Velocity"]


class Denoise(nn.Module):
    """x_t and t to x̂_0 and ε̂, clipped as the sampler clips, on the network's scale."""

    signal: Float[Tensor, "times"]
    noise: Float[Tensor, "times"]

    def __init__(self, model: DiffusionSampler | GuidedDiffusionSampler) -> None:
        super().__init__()
        self.network, self.clip_range, self.prediction_type = model.network, model.clip_range, model.prediction_type
        for name, table in zip(("signal", "noise"), model.schedule.tables(model.scale)):
            self.register_buffer(name, table)

    def forward(
        self, noisy: Float[Tensor, "batch *shape"], time: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        return self.denoised(self.network(noisy, time), noisy, time)

    def denoised(
        self,
        prediction: Float[Tensor, "batch *shape"],
        noisy: Float[Tensor, "batch *shape"],
        time: Int[Tensor, "batch"],
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """Data and noise from what the network predicts."""
        shape = (-1, *[1] * (noisy.ndim - 1))
        level = Level(self.signal[time].reshape(shape), self.noise[time].reshape(shape))
        found = self.prediction_type.denoised(prediction, noisy, level)
        if self.clip_range is not None:
            found = SamplePrediction().denoised(found.clean.clamp(*self.clip_range), noisy, level)
        return found.clean, found.noise


class GuidedDenoise(Denoise):
    """The same with classifier-free guidance: u + w (c - u) of the predictions with the label and without."""

    def __init__(self, model: GuidedDiffusionSampler) -> None:
        super().__init__(model)
        self.null_label = model.num_classes

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]: a step that is guided takes more
        self,
        noisy: Float[Tensor, "batch *shape"],
        time: Int[Tensor, "batch"],
        labels: Int[Tensor, "batch"],
        guidance_scale: Float[Tensor, "1"],
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        conditional = self.network(noisy, time, labels)
        unconditional = self.network(noisy, time, torch.full_like(labels, self.null_label))
        return self.denoised(unconditional + guidance_scale * (conditional - unconditional), noisy, time)


class Velocity(nn.Module):
    """The velocity of a flow on the network's scale."""

    def __init__(self, model: FlowSampler) -> None:
        super().__init__()
        self.network = model.network

    def forward(
        self, state: Float[Tensor, "batch *shape"], time: Float[Tensor, "batch"]
    ) -> Float[Tensor, "batch *shape"]:
        return self.network(state, time)


class Decoder(nn.Module):
    """A latent to the mean of an example."""

    def __init__(self, model: Any) -> None:  # a DecoderModel, which is a module too
        super().__init__()
        self.model = model

    def forward(self, latent: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        return self.model.decode_mean(latent)


class LinearDecoder(nn.Module):
    """A latent and the noise of an example to a point of probabilistic PCA, on the scale of the data."""

    def __init__(self, model: LinearVAE) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, latent: Float[Tensor, "batch latent"], noise: Float[Tensor, "batch features"]
    ) -> Float[Tensor, "batch features"]:
        decoder = self.model.decoder
        mean = latent @ decoder.weight.mT + decoder.bias
        return self.model.loc + self.model.scale * (mean + decoder.log_noise.exp() * noise)


class PixelLogits(nn.Module):
    """Images to the logits of the level of each pixel, from those before it."""

    def __init__(self, model: Any) -> None:  # a PixelModel
        super().__init__()
        self.model = model

    def forward(
        self, images: Float[Tensor, "batch 1 height width"], *labels: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch ..."]:
        return self.model.logits(images, *labels) if labels else self.model.logits(images, None)
