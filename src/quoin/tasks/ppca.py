"""Train probabilistic PCA as a variational autoencoder, and hold the learnt bound against the exact evidence."""

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import Batches, keyed_generator
from quoin.errors import Mistake
from quoin.losses import elbo_by_analytic_kl
from quoin.models import PPCA, triangular_factor
from quoin.optim import cosine
from quoin.plot import Panel
from quoin.prob import TriangularNormal, kl_normal
from quoin.train import GradientTask, Metrics, Place

__all__ = ["PPCATask"]


class PPCATask(GradientTask):
    """Adam on minus the bound, its divergence in closed form; the examples are drawn from a model with random weights."""

    kind = "study"

    def __init__(self, model: nn.Module, options) -> None:
        d, k = options.features, options.latent
        if k >= d:
            raise Mistake(f"--latent must be below --features to leave some to noise, got {k} and {d}")
        if options.examples <= k + 1:
            raise Mistake(f"--examples must be above --latent + 1 to be fitted, got {options.examples} and {k}")
        adam = torch.optim.Adam(model.parameters(), options.lr)
        batches = Batches(options.examples, options.batch_size, seed=options.seed)
        # A few numbers: a GPU would only be slower.
        super().__init__(model, adam, batches, Place(), epochs=options.epochs, schedule=self.schedule)
        self.options = options
        generator = keyed_generator("ppca", options.seed)
        weight, bias = torch.randn(d, k, generator=generator, dtype=torch.float64), torch.randn(d, generator=generator).double()
        self.true = PPCA(weight, bias, options.noise)
        drawn = self.true.sample(2 * options.examples, generator=generator)
        self.parts = {"train": drawn[: options.examples], "test": drawn[options.examples :]}
        self.closed_form = PPCA.fit(self.parts["train"], k).requires_grad_(False)  # the oracle

    def schedule(self, progress: float) -> float:
        """A cosine that is at zero in the last update."""
        at = self.batches
        return cosine((at.epoch + at.position / at.num_batches) / self.options.epochs)

    def posterior(self, x: Tensor) -> TriangularNormal:
        """q(z | x), its mean linear in x and its covariance the same for all: what the exact posterior is."""
        return TriangularNormal(self.model["encoder"](x), triangular_factor(self.model["scale"]["entries"], self.options.latent))

    def pieces(self, rows: Tensor) -> list[tuple]:
        return [(self.parts["train"][rows],)]

    def losses_of(self, x: Tensor) -> Tensor:
        at, q = self.batches, self.posterior(x)
        noise = q.noise((self.options.draws,), generator=keyed_generator("draws", self.options.seed, at.epoch, at.position))
        apart = kl_normal(q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(self.options.latent, dtype=torch.float64))
        return -elbo_by_analytic_kl(self.model["decoder"], q, x, noise, kl=apart)

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        if part not in self.parts:
            return {}
        x, decoder = self.parts[part], self.model["decoder"]
        q = self.posterior(x)
        bound, evidence = decoder.elbo(x, q.mean, q.covariance).mean(), decoder.log_evidence(x).mean()
        limit = self.closed_form.log_evidence(x).mean()
        return {"bound": float(bound), "evidence": float(evidence), "gap": float(evidence - bound), "short": float(limit - bound)}

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        found, k, x = self.evaluate("test"), self.options.latent, self.parts["test"]
        levels = {
            "learnt bound": found["bound"],
            "learnt evidence": found["evidence"],
            "evidence of the closed-form fit": found["bound"] + found["short"],
            "evidence of the law that drew them": float(self.true.log_evidence(x).mean()),
        }
        told = f"Nats for each new example. The bound lacks {found['gap']:.4f} of its own decoder's evidence: D(q‖p(z | x)), exactly."
        exact, q = self.model["decoder"].posterior(x), self.posterior(x)
        means = exact.mean.flatten(), q.mean.flatten()
        spread = torch.stack([exact.covariance, q.covariance]).flatten(0, 1).round(decimals=3)
        names = [f"{kind}, z{place + 1}" for kind in ("exact", "encoder") for place in range(k)]
        columns = [f"z{j + 1}" for j in range(k)]
        return [
            Panel("Bound and evidence", lambda: plot.bars(levels, x_label="nats an example"), told),
            Panel(
                "Posterior means",
                lambda: plot.scatter(*means, x_label="exact posterior mean", y_label="encoder's mean"),
                "One dot a latent coordinate of a new example.",
            ),
            Panel(
                "Posterior covariance",
                lambda: plot.heat_map(spread, row_labels=names, column_labels=columns, show_values=k < 9),
                "One covariance for every example, by the formula and as it was learnt.",
            ),
        ]
