"""Density estimation by EM: a Gaussian mixture fitted to points, from several random initialisations. The points may be
samples of another mixture, which is then known."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, PointSet, PointSplits, StandardScaler, keyed_generator
from quoin.display import format_number
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
from quoin.tasks.points import Plane, load_point_splits
from quoin.train import Metrics, load_state_dict_strict

__all__ = ["COVARIANCES", "GaussianMixtureTask", "mixture_points", "true_mixture"]

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


def _truth(options: Any) -> GaussianMixtureDistribution:
    """The mixture that the demonstration samples from."""
    return true_mixture(
        options.num_components, options.separation, generator=keyed_generator("the true mixture", options.seed)
    )


def mixture_points(options: Any) -> PointSplits:
    """The points that `options` name: samples of a random mixture, or a user's, a fifth of them held out."""
    if not options.is_demonstration:
        return load_point_splits(options)
    points = _truth(options).sample((2 * options.num_points,), generator=keyed_generator("gmm", options.seed))
    info = PointSet(options.data, points, ("x0", "x1")).info
    return PointSplits(info, points[: options.num_points], points[:0], points[options.num_points :])


class GaussianMixtureTask:
    """Every epoch is one EM iteration of each initialisation; the one of highest likelihood is evaluated.

    Points of a user are standardised first; what is reported is on their own scale.
    """

    kind = "density-estimation"

    def __init__(self, model: MixtureCandidates, points: PointSplits, options: Any) -> None:
        num_points = len(points.train)
        if num_points < options.num_components:
            what = "--num-points" if options.is_demonstration else "the number of training points"
            raise UserError(
                f"{what} must be at least --num-components to be fitted, got {num_points} and {options.num_components}"
            )
        self.model, self.options, self.data_info = model, options, points.info
        self.true = _truth(options) if options.is_demonstration else None
        self.points = {"train": points.train, "test": points.test}
        if self.true is None:
            model.loc.copy_((scaler := StandardScaler.fit(points.train)).mean)
            model.scale.copy_(scaler.std)
        self.splits = {split: model.normalize(each) for split, each in self.points.items()}  # as EM sees them
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
        self.batches = BatchSampler(num_points, num_points, seed=options.seed, shuffle=False)
        self.history = torch.zeros(0, options.num_init, dtype=torch.float64)  # the mean of ln p(x) before each step

    @property
    def _candidates(self) -> list[GaussianMixture]:
        return list(self.model.candidates)  # pyright: ignore[reportReturnType]

    @property
    def best(self) -> GaussianMixture:
        """The mixture that makes the training points most probable."""
        self.model.select_best(self.points["train"])
        return self.model.best

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        x, found = self.splits["train"], []
        for each in self._candidates:
            better, log_likelihood = em_step(each.distribution, x, min_variance=self.options.min_variance)
            each.load_state_dict(GaussianMixture(better).state_dict())
            found.append(log_likelihood / len(x))
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0) - self._log_scale])
        return {"loss": (self._log_scale - max(found)) * len(rows)}

    @property
    def _log_scale(self) -> float:
        """What a log-likelihood on the scale of EM is above one on that of the points."""
        return float(self.model.scale.log().sum())

    def log_likelihood(self, mixture: GaussianMixtureDistribution | MixtureCandidates, split: str) -> float:
        """The mean of ln p(x) over a split."""
        return float(mixture.log_prob(self.points[split]).mean())

    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}
        best = self.best
        found = {"log_likelihood": self.log_likelihood(self.model, split)}
        if self.true is not None:
            found["log_likelihood_gap"] = self.log_likelihood(self.true, split) - found["log_likelihood"]
        if split == "train" or self.true is not None:  # criteria of a fit: held-out points need none
            fitted, num_points = -2 * len(self.points[split]) * found["log_likelihood"], len(self.points[split])
            num_parameters = best.distribution.num_parameters
            found |= {"bic": num_parameters * math.log(num_points) + fitted, "aic": 2 * num_parameters + fitted}
        return found

    def state_dict(self) -> dict[str, Any]:
        self.model.select_best(self.points["train"])
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
        best, x = self.best, self.points["train"]
        steps = torch.arange(len(self.history))
        lines = {
            f"initialisation {number}": (steps, self.history[:, number]) for number in range(self.options.num_init)
        }
        found, above, levels = self.evaluate("test"), "EM never decreases the likelihood.", {}
        caption = f"{len(best.weights)} components; ellipses of one and two standard deviations. Test points have "
        if self.true is None:
            caption += (
                f"a mean ln p(x) of {format_number(found['log_likelihood'])} nats.{self._plane.describe(x.shape[1])}"
            )
        else:
            caption += (
                f"{format_number(found['log_likelihood_gap'])} nats less log-likelihood than under the true mixture."
            )
            above += " A line may end above the true mixture, which is not the maximum-likelihood fit to these points."
            levels = {"true mixture": self.log_likelihood(self.true, "train")}
        return [
            Panel("The fitted mixture", self._plot_mixture, caption),
            Panel(
                "Log-likelihood by iteration",
                lambda: plot.curves(lines, x_label="iteration", y_label="mean of ln p(x)", reference_lines=levels),
                above,
            ),
        ]

    @property
    def _plane(self) -> Plane:
        return Plane.fit(self.points["train"])

    def _plot_mixture(self) -> plot.Plot:
        x, means, covariances = self.points["train"], self.model.means(), self.model.covariance_matrices()
        labels = self.model.responsibilities(x).argmax(dim=-1)
        if self.true is None:
            plane = self._plane
            x, means, covariances = plane.project(x), plane.project(means), plane.project_covariances(covariances)
            return plot.ellipses(x, labels, means, covariances)
        reference = self.true.components.means, self.true.components.covariance_matrices
        return plot.ellipses(x, labels, means, covariances, reference=reference)
