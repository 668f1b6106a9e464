"""Gradient descent on the cross-entropy of a known distribution: among all distributions, and among those with
quadratic logits."""

from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.info import distribution_cross_entropy, entropy, kl_divergence
from quoin.optim import sgd_step
from quoin.plot import Panel, Plot
from quoin.plot.plots import COLORS, FAINT, house_style, new_figure
from quoin.tasks.study import StepOptions, Study
from quoin.train import Metrics

__all__ = ["CrossEntropyDescent", "CrossEntropyOptions"]


class CrossEntropyOptions(StepOptions, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def lr(self) -> float: ...

    @property
    def num_outcomes(self) -> int: ...

    @property
    def logit_std(self) -> float: ...


class CrossEntropyDescent(Study):
    """Each step takes the exact gradient of both cross-entropies; a batch is a step, for there are no data.

    In float64 and on the CPU: the last digits are what is measured.
    """

    def __init__(self, model: nn.Module, options: CrossEntropyOptions) -> None:
        super().__init__(model, BatchSampler(options.steps_per_epoch, 1, seed=options.seed, shuffle=False))
        n, self.lr = options.num_outcomes, options.lr
        noise = torch.randn(n, generator=keyed_generator("population", options.seed), dtype=torch.float64)
        self.population = (options.logit_std * noise).softmax(dim=0)
        powers = torch.linspace(-1, 1, n, dtype=torch.float64)[:, None] ** torch.tensor([1, 2])
        self.features = torch.linalg.qr(powers)[
            0
        ]  # of norm one, so that the narrow family's curvature too is at most 1/2

    def distributions(self) -> dict[str, Float[Tensor, "outcomes"]]:
        return {
            "all distributions": self.model["logits"].softmax(dim=0),
            "quadratic logits": (self.features @ self.model["curve"]).softmax(dim=0),
        }

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        loss = torch.stack(
            [distribution_cross_entropy(self.population, probs) for probs in self.distributions().values()]
        )
        stepped = sgd_step(list(self.model.values()), loss.sum()[None], self.lr)
        with torch.no_grad():
            for parameter, new in zip(self.model.values(), stepped):
                parameter.copy_(new)
        return {"loss": loss[0].detach()}

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split != "validation":
            return {}
        wide, narrow = (float(kl_divergence(self.population, probs)) for probs in self.distributions().values())
        return {"kl": wide, "quadratic_logits_kl": narrow}

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        found = self.distributions()
        reached = {
            f"H(Pop, Q), {name}": float(distribution_cross_entropy(self.population, probs))
            for name, probs in found.items()
        }
        nats = {"H(Pop)": float(entropy(self.population))} | reached
        caption = (
            "With a logit for each outcome the descent ends in Pop. A family without Pop ends at its "
            "smallest KL(Pop, Q)."
        )
        below = "No Q has a cross-entropy below H(Pop); the excess is KL(Pop, Q)."
        return [
            Panel("The distributions", lambda: _plot_distributions(self.population, found), caption),
            Panel("Cross-entropies reached", lambda: plot.bars(nats, x_label="nats"), below),
        ]


def _plot_distributions(population: Tensor, distributions: dict[str, Tensor]) -> Plot:
    with house_style():
        figure = new_figure(height=3.8)
        axes = figure.add_subplot(xlabel="outcome", ylabel="probability")
        x = range(1, len(population) + 1)
        axes.bar(x, population.tolist(), color=FAINT, width=0.8, label="Pop")
        for color, (name, probs) in zip(COLORS, distributions.items()):
            axes.plot(x, probs.tolist(), "o", color=color, markersize=4, label=f"Q among {name}")
        axes.locator_params(axis="x", integer=True)
        figure.legend(loc="outside lower center", ncols=3)
        return Plot(figure, "Pop and the two distributions that the descents ended in")
