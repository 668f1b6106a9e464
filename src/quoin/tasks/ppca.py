"""Train probabilistic PCA as a variational autoencoder, and hold the learnt bound against the exact evidence. The
examples may be of a known model, or a user's points."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, PointSet, PointSplits, StandardScaler, keyed_generator
from quoin.display import format_number
from quoin.errors import UserError
from quoin.losses import elbo_analytic_kl
from quoin.models import PPCA, LinearVAE
from quoin.optim import cosine
from quoin.plot import Panel
from quoin.prob import kl_normal
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.points import load_point_splits
from quoin.train import DeviceContext, GradientTask, Metrics

__all__ = ["PPCATask", "ppca_points"]


def _truth(options: Any, generator: torch.Generator) -> PPCA:
    """The model that the demonstration samples from."""
    d, k = options.num_features, options.latent_dim
    weight, bias = (
        torch.randn(d, k, generator=generator, dtype=torch.float64),
        torch.randn(d, generator=generator).double(),
    )
    return PPCA(weight, bias, options.noise)


def ppca_points(options: Any) -> PointSplits:
    """The points that `options` name, samples of a random model or a user's with a fifth held out; enough of them and
    of their columns for the latents."""
    if options.is_demonstration:
        columns, rows = "--num-features", "--num-examples"
        _check(options, options.num_features, options.num_examples, columns, rows)
        generator = keyed_generator("ppca", options.seed)
        examples = _truth(options, generator).sample(2 * options.num_examples, generator=generator)
        info = PointSet(options.data, examples, tuple(f"x{index}" for index in range(options.num_features))).info
        return PointSplits(info, examples[: options.num_examples], examples[:0], examples[options.num_examples :])
    points = load_point_splits(options)
    _check(options, points.info.num_features, len(points.train), "the number of columns", "the number of training rows")
    return points


def _check(options: Any, num_features: int, num_rows: int, columns: str, rows: str) -> None:
    k = options.latent_dim
    if k >= num_features:
        raise UserError(f"--latent-dim must be below {columns} to leave some to noise, got {k} and {num_features}")
    if num_rows <= k + 1:
        raise UserError(f"{rows} must be above --latent-dim + 1 to be fitted, got {num_rows} and {k}")


class PPCATask(GradientTask):
    """Descent of the negative ELBO, its KL divergence in closed form.

    Points of a user are standardised first; what is reported is on their own scale.
    """

    kind = "point-generation"
    is_data_parallel = False

    def __init__(self, model: LinearVAE, points: PointSplits, options: Any) -> None:
        optimizer = make_optimizer(model.parameters(), options)
        batches = BatchSampler(len(points.train), options.batch_size, seed=options.seed)
        # A few numbers: a GPU would only be slower.
        super().__init__(model, optimizer, batches, DeviceContext(), epochs=options.epochs, schedule=self.schedule)
        self.options, self.data_info, self.true = options, points.info, None
        if options.is_demonstration:
            self.true = _truth(options, keyed_generator("ppca", options.seed))
        else:
            model.loc.copy_((scaler := StandardScaler.fit(points.train)).mean)
            model.scale.copy_(scaler.std)
        self.splits = {"train": model.normalize(points.train), "test": model.normalize(points.test)}
        self.closed_form = PPCA.fit(self.splits["train"], options.latent_dim).requires_grad_(False)  # the oracle

    def schedule(self, progress: float) -> float:
        """A cosine schedule that is zero in the last step."""
        at = self.batches
        return cosine((at.epoch + at.position / at.num_batches) / self.options.epochs)

    def pieces(self, rows: Int[Tensor, "batch"]) -> list[tuple]:
        return [(self.splits["train"][rows],)]

    def losses_of(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch"]:
        at, q = self.batches, self.model.posterior(x)
        noise = q.sample_noise(
            (self.options.num_latent_samples,),
            generator=keyed_generator("draws", self.options.seed, at.epoch, at.position),
        )
        kl = kl_normal(
            q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(self.options.latent_dim, dtype=torch.float64)
        )
        return -elbo_analytic_kl(self.model.decoder, q, x, noise, kl=kl)

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}
        x, decoder = self.splits[split], self.model.decoder
        q = self.model.posterior(x)
        bound, evidence = decoder.elbo(x, q.mean, q.covariance).mean(), decoder.log_evidence(x).mean()
        limit, log_scale = self.closed_form.log_evidence(x).mean(), self.model.scale.log().sum()
        return {
            "elbo": float(bound - log_scale),
            "log_evidence": float(evidence - log_scale),
            "elbo_gap": float(evidence - bound),
            "elbo_gap_to_mle": float(limit - bound),
        }

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        found, k, x = self.evaluate("test"), self.options.latent_dim, self.splits["test"]
        levels = {
            "learned ELBO": found["elbo"],
            "learned log evidence": found["log_evidence"],
            "log evidence of the closed-form fit": found["elbo"] + found["elbo_gap_to_mle"],
        }
        if self.true is not None:
            levels["log evidence of the true model"] = float(self.true.log_evidence(x).mean())
        caption = (
            "Nats per test example. The ELBO gap to its own decoder's log evidence is "
            f"{format_number(found['elbo_gap'])}: KL(q‖p(z | x)), exactly."
        )
        exact, q = self.model.decoder.posterior(x), self.model.posterior(x)
        means = exact.mean.flatten(), q.mean.flatten()
        covariances = torch.stack([exact.covariance, q.covariance]).flatten(0, 1).round(decimals=3)
        names = [f"{kind}, z{index + 1}" for kind in ("exact", "encoder") for index in range(k)]
        columns = [f"z{j + 1}" for j in range(k)]
        return [
            Panel("ELBO and log evidence", lambda: plot.bars(levels, x_label="nats per example"), caption),
            Panel(
                "Posterior means",
                lambda: plot.scatter(*means, x_label="exact posterior mean", y_label="encoder's mean"),
                "Each dot is a latent coordinate of a test example.",
            ),
            Panel(
                "Posterior covariance",
                lambda: plot.heatmap(covariances, row_labels=names, column_labels=columns, show_values=k < 9),
                "One covariance for every example, in closed form and as learned.",
            ),
        ]
