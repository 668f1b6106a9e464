"""Gradient estimators of the ELBO compared: the variance of each, and where it leads from the same initial q."""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.losses import (
    elbo_analytic_kl,
    elbo_bonnet_price,
    elbo_reinforce,
    elbo_reinforce_baseline,
    elbo_reparameterized,
)
from quoin.models import PPCA, scale_tril_from_entries
from quoin.optim import cosine
from quoin.plot import Panel
from quoin.prob import TriangularNormal, kl_normal
from quoin.tasks.optimizer import OptimizerChoice, make_optimizer
from quoin.tasks.study import StepOptions
from quoin.train import DeviceContext, GradientTask, Metrics

__all__ = ["ESTIMATORS", "ELBOGradients", "ELBOGradientsOptions"]


def _elbo_by_kl_to_standard(model: PPCA, q: TriangularNormal, x: Tensor, noise: Tensor) -> Tensor:
    prior = torch.zeros_like(q.mean), torch.eye(q.mean.shape[-1], dtype=q.mean.dtype)
    return elbo_analytic_kl(model, q, x, noise, kl=kl_normal(q.mean, q.covariance, *prior))


ESTIMATORS: dict[str, Callable[..., Tensor]] = {
    "score": elbo_reinforce,
    "score, baseline": elbo_reinforce_baseline,
    "paths": elbo_reparameterized,
    "analytic KL": _elbo_by_kl_to_standard,
    "Bonnet-Price": elbo_bonnet_price,
}


class ELBOGradientsOptions(StepOptions, OptimizerChoice, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def epochs(self) -> int: ...

    @property
    def num_features(self) -> int: ...

    @property
    def latent_dim(self) -> int: ...

    @property
    def num_latent_samples(self) -> int: ...

    @property
    def num_repeats(self) -> int: ...


class ELBOGradients(GradientTask):
    """Each step moves every q by its own estimator, all with the same noise, towards the posterior of one example of a
    linear model."""

    kind = "study"
    is_data_parallel = False

    def __init__(self, model: nn.Module, options: ELBOGradientsOptions) -> None:
        batches = BatchSampler(options.steps_per_epoch, 1, seed=options.seed, shuffle=False)
        optimizer = make_optimizer(model.parameters(), options)
        # A few numbers: a GPU would only be slower.
        super().__init__(model, optimizer, batches, DeviceContext(), epochs=options.epochs, schedule=cosine)
        self.options = options
        d, k = options.num_features, options.latent_dim
        generator = keyed_generator("elbo-approaches", options.seed)
        self.known = PPCA(
            torch.randn(d, k, generator=generator).double(), torch.zeros(d, dtype=torch.float64), 1.0
        ).requires_grad_(False)
        self.x = self.known.sample(1, generator=generator)[0]
        self.posterior = self.known.posterior(self.x)
        self.start = [self.model[name][0].detach().clone() for name in ("mean", "entries")]
        self.history = torch.tensor([self.elbo_gaps()], dtype=torch.float64)  # one row per step

    def approximations(self) -> list[TriangularNormal]:
        """The q of each estimator."""
        return [_make_normal(mean, entries) for mean, entries in zip(self.model["mean"], self.model["entries"])]

    @torch.no_grad()
    def elbo_gaps(self) -> list[float]:
        """D(q‖p(z | x)) of each."""
        return [
            float(kl_normal(q.mean, q.covariance, self.posterior.mean, self.posterior.covariance))
            for q in self.approximations()
        ]

    def pieces(self, rows: Int[Tensor, "batch"]) -> list[tuple]:
        generator = keyed_generator("draws", self.options.seed, self.batches.epoch, self.batches.position)
        return [(torch.randn(self.options.num_latent_samples, self.options.latent_dim, generator=generator).double(),)]

    def losses_of(self, noise: Float[Tensor, "samples latent"]) -> Float[Tensor, ""]:
        """Minus the sum of all bounds: no q has a parameter of another."""
        return -torch.stack(
            [elbo(self.known, q, self.x, noise) for elbo, q in zip(ESTIMATORS.values(), self.approximations())]
        ).sum()

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        loss = super().step(rows)["loss"]
        self.history = torch.cat([self.history, torch.tensor([self.elbo_gaps()], dtype=torch.float64)])
        return {"loss": loss / len(ESTIMATORS)}

    def gradients(
        self, elbo: Callable[..., Tensor], mean: Float[Tensor, "latent"], entries: Float[Tensor, "entries"]
    ) -> Float[Tensor, "repeats latent+entries"]:
        """Many gradients at one q: every repeat has a copy of q and samples of its own."""
        repeats = self.options.num_repeats
        at = [each.expand(repeats, -1).clone().requires_grad_() for each in (mean, entries)]
        q = _make_normal(*at)
        noise = q.sample_noise(
            (self.options.num_latent_samples,), generator=keyed_generator("scatter", self.options.seed)
        )
        return torch.cat(torch.autograd.grad(elbo(self.known, q, self.x.expand(repeats, -1), noise).sum(), at), dim=-1)

    def bias_and_variance(
        self, mean: Float[Tensor, "latent"], entries: Float[Tensor, "entries"]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """For each estimator the total variance of a gradient, and how far the mean of many is from the exact one, in
        errors."""
        at = [each.clone().requires_grad_() for each in (mean, entries)]
        q = _make_normal(*at)
        exact = torch.cat(torch.autograd.grad(self.known.elbo(self.x, q.mean, q.covariance), at), dim=-1)
        variances, biases = {}, {}
        for name, elbo in ESTIMATORS.items():
            found = self.gradients(elbo, mean, entries)
            variances[name] = float(found.var(dim=0).sum())
            error = found.std(dim=0) / self.options.num_repeats**0.5
            biases[name] = float(((found.mean(dim=0) - exact).abs() / (error + 1e-9)).max())
        return variances, biases

    @functools.cached_property  # the initial q stays as it is
    def at_first(self) -> tuple[dict[str, float], dict[str, float]]:
        return self.bias_and_variance(*self.start)

    def evaluate(self, split: str) -> Metrics:
        if split != "validation":
            return {}  # there are no data, and so no splits
        found = self.elbo_gaps()
        variances, biases = self.at_first
        named = {f"elbo_gap_{_slug(name)}": gap for name, gap in zip(ESTIMATORS, found)}
        named |= {f"gradient_variance_{_slug(name)}": value for name, value in variances.items()}
        return {"elbo_gap": max(found[1:]), "gradient_bias": max(biases.values()), **named}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"history": self.history}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.history = state["history"]

    def panels(self) -> list[Panel]:
        first, _ = self.at_first
        last, _ = self.bias_and_variance(self.posterior.mean, _entries_of(self.posterior.scale_tril))
        ratio = first["paths"] / first["score"]
        steps = torch.arange(len(self.history))
        lines = {name: (steps, gaps) for name, gaps in zip(ESTIMATORS, self.history.unbind(dim=1))}
        caption = (
            f"Total variance of a gradient from {self.options.num_latent_samples} samples; "
            f"the pathwise one's is {ratio:.2g} times the score function's."
        )
        none = "Here ln p(x, z) - ln q(z) is constant: with a baseline the score-function estimator has zero variance."
        return [
            Panel("Gradient variance at the prior", lambda: plot.bars(first, x_label="total variance"), caption),
            Panel("Gradient variance at the posterior", lambda: plot.bars(last, x_label="total variance"), none),
            Panel(
                "ELBO gap",
                lambda: plot.curves(lines, x_label="optimizer step", y_label="KL(q‖p(z | x)) in nats", log_y=True),
                "The same noise for all, and the same learning rate.",
            ),
        ]


def _make_normal(mean: Tensor, entries: Tensor) -> TriangularNormal:
    return TriangularNormal(mean, scale_tril_from_entries(entries, mean.shape[-1]))


def _entries_of(factor: Tensor) -> Tensor:
    """What `scale_tril_from_entries` makes the factor of."""
    rows, columns = torch.tril_indices(*factor.shape)
    values = factor[rows, columns]
    return torch.where(rows == columns, torch.log(torch.expm1((values - 1e-3).clamp(min=1e-6))), values)


def _slug(name: str) -> str:
    return name.lower().replace(", ", "_").replace(" ", "_").replace("-", "_")
