"""Density estimation by EM: a Gaussian mixture fitted to samples of another, from several random initialisations."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.errors import UserError
from quoin.models import GaussianMixture, MixtureCandidates, em_step, init_mixture
from quoin.plot import Panel
from quoin.prob import (
    ComponentNormals,
    DiagonalNormals,
    FullNormals,
    GaussianMixtureDistribution,
    SphericalNormals,
    TiedNormals,
)
from quoin.train import Metrics, load_state_dict_strict

__all__ = ["COVARIANCES", "GaussianMixtureTask", "true_mixture"]

COVARIANCES: dict[str, type[ComponentNormals]] = {
    "full": FullNormals,
    "tied": TiedNormals,
    "diag": DiagonalNormals,
    "spherical": SphericalNormals,
}


def true_mixture(num_components: int, separation: float, *, generator: torch.Generator) -> GaussianMixtureDistribution:
    """Even weights but for a factor of two, normal means, and a random covariance for each component."""
    weights = 1 + torch.rand(num_components, generator=generator, dtype=torch.float64)
    means = separation * torch.randn(num_components, 2, generator=generator, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    roots = eye + 0.6 * torch.randn(num_components, 2, 2, generator=generator, dtype=torch.float64)
    return GaussianMixtureDistribution(weights / weights.sum(), FullNormals(means, roots @ roots.mT + 0.05 * eye))


class GaussianMixtureTask:
    """Every epoch is one EM iteration of each initialisation; the one of highest likelihood is evaluated."""

    kind = "density-estimation"
    data_info = None

    def __init__(self, model: MixtureCandidates, options: Any) -> None:
        if options.num_points < options.num_components:
            raise UserError(
                f"--num-points must be at least --num-components to be fitted, got {options.num_points} and "
                f"{options.num_components}"
            )
        self.model, self.options = model, options
        self.true = true_mixture(
            options.num_components, options.separation, generator=keyed_generator("the true mixture", options.seed)
        )
        points = self.true.sample((2 * options.num_points,), generator=keyed_generator("gmm", options.seed))
        self.splits = {"train": points[: options.num_points], "test": points[options.num_points :]}
        for number, each in enumerate(self._candidates):
            generator = keyed_generator("start", options.seed, number)
            initial = init_mixture(
                self.splits["train"],
                options.num_components,
                each.covariance_type,
                generator=generator,
                min_variance=options.min_variance,
            )
            each.load_state_dict(GaussianMixture(initial).state_dict())
        self.batches = BatchSampler(options.num_points, options.num_points, seed=options.seed, shuffle=False)
        self.history = torch.zeros(0, options.num_init, dtype=torch.float64)  # the mean of ln p(x) before each step

    @property
    def _candidates(self) -> list[GaussianMixture]:
        return list(self.model.candidates)  # pyright: ignore[reportReturnType]

    @property
    def best(self) -> GaussianMixture:
        """The mixture that makes the training points most probable."""
        self.model.select_best(self.splits["train"])
        return self.model.best

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        x, found = self.splits["train"], []
        for each in self._candidates:
            better, log_likelihood = em_step(each.distribution, x, min_variance=self.options.min_variance)
            each.load_state_dict(GaussianMixture(better).state_dict())
            found.append(log_likelihood / len(x))
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0)])
        return {"loss": -max(found) * len(rows)}

    def log_likelihood(self, mixture: GaussianMixtureDistribution | GaussianMixture, split: str) -> float:
        """The mean of ln p(x) over a split."""
        return float(mixture.log_prob(self.splits[split]).mean())

    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}
        best = self.best
        found = self.log_likelihood(best, split)
        return {
            "log_likelihood": found,
            "log_likelihood_gap": self.log_likelihood(self.true, split) - found,
            "bic": best.bic(self.splits[split]),
        }

    def state_dict(self) -> dict[str, Any]:
        self.model.select_best(self.splits["train"])
        return {
            "model": {"weights": self.model.state_dict()},
            "batches": self.batches.state_dict(),
            "history": self.history,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_state_dict_strict(self.model, state["model"]["weights"])
        self.batches.load_state_dict(state["batches"])
        self.history = state["history"]

    def panels(self) -> list[Panel]:
        """The fitted mixture over the points, and the likelihood of every initialisation by iteration."""
        best, x = self.best, self.splits["train"]
        fitted, reference = best.distribution.components, self.true.components
        steps = torch.arange(len(self.history))
        lines = {
            f"initialisation {number}": (steps, self.history[:, number]) for number in range(self.options.num_init)
        }
        levels = {"true mixture": self.log_likelihood(self.true, "train")}
        gap = self.evaluate("test")["log_likelihood_gap"]
        caption = (
            f"Ellipses of one and two standard deviations. Test points have {gap:.4f} nats less "
            "log-likelihood than under the true mixture."
        )
        above = (
            "EM never decreases the likelihood. A line may end above the true mixture, which is not the "
            "maximum-likelihood fit to these points."
        )
        return [
            Panel(
                "The fitted mixture",
                lambda: plot.ellipses(
                    x,
                    best.predict(x),
                    fitted.means,
                    fitted.covariance_matrices,
                    reference=(reference.means, reference.covariance_matrices),
                ),
                caption,
            ),
            Panel(
                "Log-likelihood by iteration",
                lambda: plot.curves(lines, x_label="iteration", y_label="mean of ln p(x)", reference_lines=levels),
                above,
            ),
        ]
