"""Variational autoencoders of images: the task that its recipes share, and its plots.

Losses are nats for the probability of an exact image. Where images have grey levels, a Gaussian decoder, which has
densities only, learns from pixels moved evenly within their level (dequantised): by Jensen its bound plus ln(level
width) a pixel bounds that probability.

    k latent coordinates
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import ImageInfo, RowNoise
from quoin.errors import UserError
from quoin.losses import kl_warmup, vae_losses
from quoin.models import VAE, BinomialDecoder, GaussianDecoder, LearnedGaussianDecoder, VAEDecoder
from quoin.models.generative import latent_traversal
from quoin.plot import Panel
from quoin.prob import DiagonalNormal, effective_sample_size, iwae_bound, kl_standard_normal
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.generative_options import VAEOptions
from quoin.tasks.image_generation import GenerativeTask
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.supervised import eval_batch_size
from quoin.tasks.supervised_data import load_raw_images
from quoin.tensor.blocks import rows_per_block
from quoin.train import DeviceContext

__all__ = ["VAETask", "vae_decoder", "vae_task"]

LATENTS_PER_BLOCK = 20_000  # that are decoded together while the evidence is estimated
SHOWN = 10  # test images beside their reconstructions
TRAVERSED, STEPS = 6, 7  # latents that are traversed, and the values of each, zero among them


def vae_decoder(options: VAEOptions, data_info: ImageInfo) -> Callable[[nn.Module], VAEDecoder]:
    """The distribution of pixels that `options` name, to be put around a network."""
    if options.decoder == "gaussian":
        return lambda net: GaussianDecoder(net, data_info.image_shape, options.std)
    if options.decoder == "learned-gaussian":
        return lambda net: LearnedGaussianDecoder(net, data_info.image_shape, options.std)
    if not data_info.levels:
        raise UserError(
            f"--decoder binomial expects images with 2, 17 or 256 grey levels, but those of {data_info.source} "
            "have others: "
            "round them, or give --decoder learned-gaussian"
        )
    return lambda net: BinomialDecoder(net, data_info.image_shape, num_levels=data_info.levels)


def vae_task(
    model: Callable[[Any, ImageInfo], VAE],
    options: VAEOptions,
    device_context: DeviceContext,
    open_classifier: OpenClassifier,
) -> "VAETask":
    """The recipe's `model` on the images that `options` name."""
    data = load_raw_images(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    if isinstance(net.decoder, BinomialDecoder):
        for images in data.train.features.split(eval_batch_size(data.train.features)):
            net.decoder.check_images(images)
    optimizer = make_optimizer(net.parameters(), options, fused=True)
    return VAETask(net, optimizer, data, options, device_context, open_classifier=open_classifier)


class VAETask(GenerativeTask):
    """Maximise the bounds of all training images over encoder and decoder, the divergence gaining its weight by and
    by."""

    model: VAE
    options: VAEOptions

    @property
    def level_width(self) -> float:
        """Between two grey levels, where a Gaussian decoder must know it; else 0."""
        dequantizes = self.data_info.levels > 1 and not isinstance(self.model.decoder, BinomialDecoder)
        return 1 / (self.data_info.levels - 1) if dequantizes else 0.0

    def losses(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> Float[Tensor, "batch"]:
        weight = self._kl_weight()  # pyright: ignore[reportAttributeAccessIssue]
        x = self._dequantize(images, noise)
        q = self.model.encoder(x)
        latent_noise = _latent_noise(q, self.options.num_latent_samples, noise)
        return vae_losses(self.model, q, x, latent_noise, kl_weight=weight) - self._log_volume()

    @torch.compiler.disable  # the number changes at every step, and a compiled step would be compiled for each
    def _kl_weight(self) -> float | Tensor:
        weight = kl_warmup(self.updater.progress, self.options.kl_warmup_ratio)
        return torch.tensor(weight, device=self.device_context.device) if self.device_context.compile else weight

    def _dequantize(self, images: Tensor, noise: RowNoise) -> Tensor:
        """Each pixel moved evenly within its level."""
        if not self.level_width:
            return images
        return images + self.level_width * (noise.uniform(*images.shape[1:], dtype=images.dtype) - 0.5)

    def _log_volume(self) -> float:
        """What is added to a log-density to make it bound the log-probability of an image's levels."""
        return self.data_info.num_pixels * math.log(self.level_width) if self.level_width else 0.0

    def compute_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        x = self._dequantize(images, noise)
        q: DiagonalNormal = self.eval_model.encoder(x)
        losses = vae_losses(self.eval_model, q, x, _latent_noise(q, 1, noise)) - self._log_volume()
        divergence = kl_standard_normal(q.mean, q.log_std)
        bits = losses / (self.data_info.num_pixels * math.log(2))
        return {"loss": losses, "kl": divergence, "reconstruction_nll": losses - divergence, "bits_per_dimension": bits}

    def compute_final_metrics(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, "batch"],
        *,
        noise: RowNoise,
    ) -> dict[str, Float[Tensor, "batch"]]:
        """ln (1/m) Σ_i p(x, z_i) / q(z_i | x), which closes in on ln p(x) as samples are added, and their effective
        sample size."""
        x = self._dequantize(images, noise)
        q, found, left = self.eval_model.encoder(x), [], self.options.num_importance_samples
        while left:
            some = min(left, rows_per_block(len(x), LATENTS_PER_BLOCK))
            z = q.transform(_latent_noise(q, some, noise))
            found.append(self.eval_model.log_joint(x, z) - q.log_prob(z))
            left -= some
        weights = torch.cat(found)
        likelihood = iwae_bound(weights) + self._log_volume()
        bits = -likelihood / (self.data_info.num_pixels * math.log(2))
        return {
            "log_likelihood": likelihood,
            "iwae_bits_per_dimension": bits,
            "effective_sample_size": effective_sample_size(weights),
        }

    @torch.no_grad()
    def own_panels(self) -> list[Panel]:
        """Reconstructions, the latents of test images, KL per latent and latent traversals."""
        self.eval_model.eval()
        q = self.eval_model.encoder(self.data.test.features)
        nats = _nats_by_latent(q)
        order = nats.argsort(descending=True)
        return [self._reconstructions(), self._map(q, order), self._latents(nats), self._traversal(q, order)]

    def _reconstructions(self) -> Panel:
        labels = self.data.test.targets.tolist()
        firsts = {label: row for row, label in reversed(list(enumerate(labels)))}
        rows = [firsts[label] for label in sorted(firsts)][:SHOWN]
        images = self.data.test.features[rows]
        table = torch.stack([images, self.eval_model(images).clamp(0, 1)]).cpu()
        return Panel(
            "Reconstructions",
            lambda: plot.image_table(table, row_labels=["test image", "reconstruction"], smooth=True),
            "The decoder's mean at the encoder's mean.",
        )

    def _map(self, q: DiagonalNormal, order: Tensor) -> Panel:
        axes = order[:2] if len(order) > 1 else order[[0, 0]]
        means, labels = q.mean[:, axes].cpu(), self.data.test.targets.cpu()
        groups = {
            name: means[labels == number]
            for number, name in enumerate(self.data_info.class_names)
            if bool((labels == number).any())
        }
        names = [f"latent {int(axis) + 1}" for axis in axes]
        caption = (
            "Latent means of the test images in the two dimensions of largest KL, by class; the model was "
            "not given the class."
        )
        return Panel("Latent space", lambda: plot.scatter_by_class(groups, x_label=names[0], y_label=names[1]), caption)

    def _latents(self, nats: Tensor) -> Panel:
        bars = {f"latent {index + 1}": float(value) for index, value in enumerate(nats[: 4 * SHOWN])}
        caption = (
            f"KL(q(z | x)‖N(0, 1)) of each latent dimension, averaged over test images; {float(nats.sum()):.1f} nats "
            "in total. A dimension with KL 0 is unused (posterior collapse)."
        )
        return Panel("KL per latent dimension", lambda: plot.bars(bars, x_label="nats per image"), caption)

    def _traversal(self, q: DiagonalNormal, order: Tensor) -> Panel:
        values, latents = latent_traversal(q.mean[0], order[:TRAVERSED], STEPS)
        names = [f"latent {int(row) + 1}" for row in order[:TRAVERSED]]
        caption = "Each row varies one latent dimension of the first test image over these values; largest KL first."
        return Panel(
            "Latent traversal",
            lambda: plot.image_table(
                self.eval_model.decode_mean(latents).cpu(),
                row_labels=names,
                column_labels=[f"{value:.1f}" for value in values.tolist()],
                x_label="value of the latent",
                smooth=True,
            ),
            caption,
        )


def _latent_noise(q: DiagonalNormal, num_samples: int, noise: RowNoise) -> Tensor:  # -> (num_samples, batch, k)
    """The noise of so many samples, one after another: it does not depend on how many are taken together."""
    return torch.stack([noise.normal(q.dim, dtype=q.mean.dtype) for _ in range(num_samples)])


def _nats_by_latent(q: DiagonalNormal) -> Tensor:  # distribution on (n, k) -> (k,)
    return kl_standard_normal(q.mean.unsqueeze(-1), q.log_std.unsqueeze(-1)).mean(dim=0)
