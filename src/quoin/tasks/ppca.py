"""Train probabilistic PCA as a variational autoencoder, and hold the learnt bound against the exact evidence."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.errors import UserError
from quoin.losses import elbo_analytic_kl
from quoin.models import PPCA, scale_tril_from_entries
from quoin.optim import cosine
from quoin.plot import Panel
from quoin.prob import TriangularNormal, kl_normal
from quoin.tasks.optimizer import make_optimizer
from quoin.train import DeviceContext, GradientTask, Metrics

__all__ = ["PPCATask"]


class PPCATask(GradientTask):
    """Descent of the negative ELBO, its KL divergence in closed form; the examples are sampled from a model with random
    weights."""

    kind = "study"

    def __init__(self, model: nn.Module, options: Any) -> None:
        d, k = options.num_features, options.latent_dim
        if k >= d:
            raise UserError(f"--latent-dim must be below --num-features to leave some to noise, got {k} and {d}")
        if options.num_examples <= k + 1:
            raise UserError(
                f"--num-examples must be above --latent-dim + 1 to be fitted, got {options.num_examples} and {k}"
            )
        optimizer = make_optimizer(model.parameters(), options)
        batches = BatchSampler(options.num_examples, options.batch_size, seed=options.seed)
        # A few numbers: a GPU would only be slower.
        super().__init__(model, optimizer, batches, DeviceContext(), epochs=options.epochs, schedule=self.schedule)
        self.options = options
        generator = keyed_generator("ppca", options.seed)
        weight, bias = (
            torch.randn(d, k, generator=generator, dtype=torch.float64),
            torch.randn(d, generator=generator).double(),
        )
        self.true = PPCA(weight, bias, options.noise)
        examples = self.true.sample(2 * options.num_examples, generator=generator)
        self.splits = {"train": examples[: options.num_examples], "test": examples[options.num_examples :]}
        self.closed_form = PPCA.fit(self.splits["train"], k).requires_grad_(False)  # the oracle

    def schedule(self, progress: float) -> float:
        """A cosine schedule that is zero in the last step."""
        at = self.batches
        return cosine((at.epoch + at.position / at.num_batches) / self.options.epochs)

    def posterior(self, x: Float[Tensor, "batch features"]) -> TriangularNormal:
        """q(z | x), its mean linear in x and its covariance the same for all: what the exact posterior is."""
        return TriangularNormal(
            self.model["encoder"](x), scale_tril_from_entries(self.model["scale"]["entries"], self.options.latent_dim)
        )

    def pieces(self, rows: Int[Tensor, "batch"]) -> list[tuple]:
        return [(self.splits["train"][rows],)]

    def losses_of(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch"]:
        at, q = self.batches, self.posterior(x)
        noise = q.sample_noise(
            (self.options.num_latent_samples,),
            generator=keyed_generator("draws", self.options.seed, at.epoch, at.position),
        )
        kl = kl_normal(
            q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(self.options.latent_dim, dtype=torch.float64)
        )
        return -elbo_analytic_kl(self.model["decoder"], q, x, noise, kl=kl)

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}
        x, decoder = self.splits[split], self.model["decoder"]
        q = self.posterior(x)
        bound, evidence = decoder.elbo(x, q.mean, q.covariance).mean(), decoder.log_evidence(x).mean()
        limit = self.closed_form.log_evidence(x).mean()
        return {
            "elbo": float(bound),
            "log_evidence": float(evidence),
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
            "log evidence of the true model": float(self.true.log_evidence(x).mean()),
        }
        caption = (
            "Nats per test example. The ELBO gap to its own decoder's log evidence is "
            f"{found['elbo_gap']:.4f}: KL(q‖p(z | x)), exactly."
        )
        exact, q = self.model["decoder"].posterior(x), self.posterior(x)
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
