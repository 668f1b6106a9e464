"""Learn a density by EM: a Gaussian mixture from the draws of another, from several random starts. It follows no gradient."""

from typing import Any

import torch
from torch import Tensor

from quoin import plot
from quoin.data import Batches, keyed_generator
from quoin.errors import Mistake
from quoin.models import GaussianMixture, MixtureCandidates, em_step, start_mixture
from quoin.plot import Panel
from quoin.prob import ComponentNormals, DiagonalNormals, FullNormals, NormalMixture, SphericalNormals, TiedNormals
from quoin.train import Metrics, load_strictly

__all__ = ["COVARIANCES", "GaussianMixtureTask", "true_mixture"]

COVARIANCES: dict[str, type[ComponentNormals]] = {
    "full": FullNormals,
    "tied": TiedNormals,
    "diagonal": DiagonalNormals,
    "spherical": SphericalNormals,
}


def true_mixture(num_components: int, apart: float, *, generator: torch.Generator) -> NormalMixture:
    """Even weights but for a factor of two, means spread over the plane, and covariances that lean each their own way."""
    weights = 1 + torch.rand(num_components, generator=generator, dtype=torch.float64)
    means = apart * torch.randn(num_components, 2, generator=generator, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    roots = eye + 0.6 * torch.randn(num_components, 2, 2, generator=generator, dtype=torch.float64)
    return NormalMixture(weights / weights.sum(), FullNormals(means, roots @ roots.mT + 0.05 * eye))


class GaussianMixtureTask:
    """Every epoch is one step of EM from the mixture of each start; the likeliest of them is what is judged."""

    kind = "density-estimation"
    facts = None

    def __init__(self, model: MixtureCandidates, options: Any) -> None:
        if options.points < options.components:
            raise Mistake(f"--points must be at least --components to be fitted, got {options.points} and {options.components}")
        self.model, self.options = model, options
        self.true = true_mixture(options.components, options.apart, generator=keyed_generator("the true mixture", options.seed))
        drawn = self.true.sample((2 * options.points,), generator=keyed_generator("gmm", options.seed))
        self.parts = {"train": drawn[: options.points], "test": drawn[options.points :]}
        for number, each in enumerate(self._candidates):
            generator = keyed_generator("start", options.seed, number)
            start = start_mixture(
                self.parts["train"], options.components, each.family, generator=generator, min_variance=options.min_variance
            )
            each.load_state_dict(GaussianMixture(start).state_dict())
        self.batches = Batches(options.points, options.points, seed=options.seed, shuffle=False)
        self.history = torch.zeros(0, options.starts, dtype=torch.float64)  # the mean of ln p(x) before each step

    @property
    def _candidates(self) -> list[GaussianMixture]:
        return list(self.model.candidates)  # pyright: ignore[reportReturnType]

    @property
    def best(self) -> GaussianMixture:
        """The mixture that makes the training points likeliest."""
        self.model.choose(self.parts["train"])
        return self.model.best

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        x, found = self.parts["train"], []
        for each in self._candidates:
            better, log_likelihood = em_step(each.law, x, min_variance=self.options.min_variance)
            each.load_state_dict(GaussianMixture(better).state_dict())
            found.append(log_likelihood / len(x))
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0)])
        return {"loss": -max(found) * len(rows)}

    def log_likelihood(self, mixture: NormalMixture | GaussianMixture, part: str) -> float:
        """The mean of ln p(x) over a part."""
        return float(mixture.log_prob(self.parts[part]).mean())

    def evaluate(self, part: str) -> Metrics:
        if part not in self.parts:
            return {}
        best = self.best
        found = self.log_likelihood(best, part)
        return {"log_likelihood": found, "gap": self.log_likelihood(self.true, part) - found, "bic": best.bic(self.parts[part])}

    def state(self) -> dict[str, Any]:
        self.model.choose(self.parts["train"])
        return {"model": {"weights": self.model.state_dict()}, "batches": self.batches.state(), "history": self.history}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        self.batches.load(state["batches"])
        self.history = state["history"]

    def panels(self) -> list[Panel]:
        """The mixture over the points, and how it came there from every start."""
        best, x = self.best, self.parts["train"]
        fitted, reference = best.law.components, self.true.components
        steps = torch.arange(len(self.history))
        lines = {f"start {number}": (steps, self.history[:, number]) for number in range(self.options.starts)}
        levels = {"true law": self.log_likelihood(self.true, "train")}
        gap = self.evaluate("test")["gap"]
        told = f"Ellipses of one and two deviations. New points are {gap:.4f} nats less likely than under the law that drew them."
        above = "No line falls. One may end above the true law, which is not the likeliest for these very points."
        return [
            Panel(
                "The fitted mixture",
                lambda: plot.ellipses(
                    x, best.predict(x), fitted.means, fitted.covariances, reference=(reference.means, reference.covariances)
                ),
                told,
            ),
            Panel("Likelihood by step", lambda: plot.curves(lines, x_label="step", y_label="mean of ln p(x)", levels=levels), above),
        ]
