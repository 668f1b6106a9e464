"""Learn a variational autoencoder of images: the task that its recipes share, and what is shown of it.

Losses are nats for the probability of an exact image. Where images have grey levels, a Gaussian decoder, which has densities only, learns
from pixels moved evenly within their level (dequantised): by Jensen its bound plus ln(level width) a pixel bounds that probability.

    n images of d pixels, k latent coordinates
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import ImageFacts
from quoin.errors import Mistake
from quoin.losses import kl_warm_up, vae_losses
from quoin.models import VAE, BernoulliDecoder, Decoder, GaussianDecoder, LearnedGaussianDecoder
from quoin.models.generative_model import latent_traversal
from quoin.plot import Panel
from quoin.prob import DiagonalNormal, effective_sample_size, iwae_bound, kl_standard_normal
from quoin.tasks.evaluation_classifier import OpenClassifier
from quoin.tasks.image_generation import GenerativeTask
from quoin.tasks.options import VAEOptions
from quoin.tasks.supervised_data import raw_images
from quoin.tensor.blocks import rows_per_block
from quoin.train import Place

__all__ = ["VAETask", "vae_decoder", "vae_task"]

LATENTS_PER_BLOCK = 20_000  # that are decoded together while the evidence is estimated
SHOWN = 10  # test images beside their reconstructions, latents that are traversed, columns of a traversal


def vae_decoder(options: VAEOptions, facts: ImageFacts) -> Callable[[nn.Module], Decoder]:
    """The law of pixels that `options` name, to be put around a network."""
    if options.decoder == "gaussian":
        return lambda net: GaussianDecoder(net, facts.image_shape, options.std)
    if options.decoder == "learned":
        return lambda net: LearnedGaussianDecoder(net, facts.image_shape, options.std)
    if not facts.levels:
        raise Mistake(
            f"--decoder bernoulli expects images with 2, 17 or 256 grey levels, but those of {facts.source} have others: "
            "round them, or give --decoder learned"
        )
    return lambda net: BernoulliDecoder(net, facts.image_shape, levels=facts.levels)


def vae_task(model: Callable[[Any, ImageFacts], VAE], options: VAEOptions, place: Place, open_classifier: OpenClassifier) -> "VAETask":
    """The recipe's `model` under Adam, on the images that `options` name."""
    data = raw_images(options, place)
    net = model(options, data.facts).to(place.device)
    if isinstance(net.decoder, BernoulliDecoder):
        net.decoder.check_images(data.train.features)
    optimiser = torch.optim.AdamW(net.parameters(), options.lr, weight_decay=options.weight_decay, fused=True)
    return VAETask(net, optimiser, data, options, place, open_classifier=open_classifier)


class VAETask(GenerativeTask):
    """Maximise the bounds of all training images over encoder and decoder, the divergence gaining its weight by and by."""

    model: VAE
    options: VAEOptions

    @property
    def level_width(self) -> float:
        """Between two grey levels, where a Gaussian decoder must know it; else 0."""
        spread = self.facts.levels > 1 and not isinstance(self.model.decoder, BernoulliDecoder)
        return 1 / (self.facts.levels - 1) if spread else 0.0

    def losses(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:
        weight = kl_warm_up(self.updater.progress, self.options.kl_warm_up)
        x = self._spread(images, generator)
        q = self.model.encoder(x)
        noise = q.noise((self.options.draws,), generator=generator)
        return vae_losses(self.model, q, x, noise, kl_weight=weight) - self._log_volume()

    def _spread(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Each pixel moved evenly within its level."""
        if not self.level_width:
            return images
        moved = torch.rand(images.shape, generator=generator, dtype=images.dtype, device=images.device) - 0.5
        return images + self.level_width * moved

    def _log_volume(self) -> float:
        """What is added to a log-density to make it bound the log-probability of an image's levels."""
        return self.facts.num_pixels * math.log(self.level_width) if self.level_width else 0.0

    def measure(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        x = self._spread(images, generator)
        q: DiagonalNormal = self.eval_model.encoder(x)
        losses = vae_losses(self.eval_model, q, x, q.noise((1,), generator=generator)) - self._log_volume()
        divergence = kl_standard_normal(q.mean, q.log_std)
        bits = losses / (self.facts.num_pixels * math.log(2))
        return {"loss": losses, "divergence": divergence, "reconstruction": losses - divergence, "bits_per_dimension": bits}

    def measure_finally(self, images: Tensor, labels: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """ln (1/m) Σ_i p(x, z_i) / q(z_i | x), which closes in on ln p(x) as draws are added, and how many of them count."""
        x = self._spread(images, generator)
        q, found, left = self.eval_model.encoder(x), [], self.options.evidence_draws
        while left:
            some = min(left, rows_per_block(len(x), LATENTS_PER_BLOCK))
            z = q.sample((some,), generator=generator)
            found.append(self.eval_model.log_joint(x, z) - q.log_prob(z))
            left -= some
        weights = torch.cat(found)
        likelihood = iwae_bound(weights) + self._log_volume()
        bits = -likelihood / (self.facts.num_pixels * math.log(2))
        return {"log_likelihood": likelihood, "importance_bits_per_dimension": bits, "effective_draws": effective_sample_size(weights)}

    @torch.no_grad()
    def own_panels(self) -> list[Panel]:
        """Reconstructions, where the codes of test images lie, what each latent says and what it does."""
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
            lambda: plot.image_table(table, row_labels=["test image", "reconstruction"]),
            "The mean of the image given the mean of its code.",
        )

    def _map(self, q: DiagonalNormal, order: Tensor) -> Panel:
        axes = order[:2] if len(order) > 1 else order[[0, 0]]
        places, labels = q.mean[:, axes].cpu(), self.data.test.targets.cpu()
        groups = {name: places[labels == number] for number, name in enumerate(self.facts.class_names) if bool((labels == number).any())}
        names = [f"latent {int(axis) + 1}" for axis in axes]
        told = "Mean codes of the test images in the two latents that say most, by class; no class was told to the model."
        return Panel("Map of the latents", lambda: plot.point_map(groups, x_label=names[0], y_label=names[1]), told)

    def _latents(self, nats: Tensor) -> Panel:
        bars = {f"latent {place + 1}": float(value) for place, value in enumerate(nats[: 4 * SHOWN])}
        told = f"D(q(z | x)‖N(0, 1)) of each latent, a mean over test images; {float(nats.sum()):.1f} nats in all. At 0 it is not used."
        return Panel("What each latent says", lambda: plot.bars(bars, x_label="nats an image"), told)

    def _traversal(self, q: DiagonalNormal, order: Tensor) -> Panel:
        values, codes = latent_traversal(q.mean[0], order[:SHOWN], SHOWN)
        names = [f"latent {int(row) + 1}" for row in order[:SHOWN]]
        told = "From the code of the first test image, one latent at a time takes these values, those that say most first."
        return Panel(
            "Traversal",
            lambda: plot.image_table(
                self.eval_model.decode_mean(codes).cpu(), row_labels=names, column_labels=[f"{value:.1f}" for value in values.tolist()]
            ),
            told,
        )


def _nats_by_latent(q: DiagonalNormal) -> Tensor:  # law on (n, k) -> (k,)
    return kl_standard_normal(q.mean.unsqueeze(-1), q.log_std.unsqueeze(-1)).mean(dim=0)
