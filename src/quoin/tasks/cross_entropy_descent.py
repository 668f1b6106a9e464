"""Gradient descent on the cross-entropy of a known law: among all laws, and among those whose logits are a parabola."""

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import Batches, keyed_generator
from quoin.info import cross_entropy, entropy, relative_entropy
from quoin.optim import sgd_step
from quoin.plot import Drawing, Panel
from quoin.plot.drawing import COLOURS, FAINT, house_style, new_figure
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["CrossEntropyDescent"]


class CrossEntropyDescent(Study):
    """Each step takes the exact gradient of both cross-entropies; a batch is a step, for there are no data.

    In float64 and on the CPU: it is the last digits that are watched.
    """

    def __init__(self, model: nn.Module, options) -> None:
        super().__init__(model, Batches(options.steps, 1, seed=options.seed, shuffle=False))
        n, self.lr = options.outcomes, options.lr
        noise = torch.randn(n, generator=keyed_generator("population", options.seed), dtype=torch.float64)
        self.population = (options.spread * noise).softmax(dim=0)
        powers = torch.linspace(-1, 1, n, dtype=torch.float64)[:, None] ** torch.tensor([1, 2])
        self.features = torch.linalg.qr(powers)[0]  # of norm one, so that the narrow family's curvature too is at most 1/2

    def laws(self) -> dict[str, Tensor]:
        return {"all laws": self.model["logits"].softmax(dim=0), "parabolas": (self.features @ self.model["curve"]).softmax(dim=0)}

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        loss = torch.stack([cross_entropy(self.population, law) for law in self.laws().values()])
        stepped = sgd_step(list(self.model.values()), loss.sum()[None], self.lr)
        with torch.no_grad():
            for parameter, new in zip(self.model.values(), stepped):
                parameter.copy_(new)
        return {"loss": loss[0].detach()}

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        if part != "validation":
            return {}
        wide, narrow = (float(relative_entropy(self.population, law)) for law in self.laws().values())
        return {"kl": wide, "kl_of_parabolas": narrow}

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        found = self.laws()
        reached = {f"H(Pop, Q), {name}": float(cross_entropy(self.population, law)) for name, law in found.items()}
        nats = {"H(Pop)": float(entropy(self.population))} | reached
        told = "With a logit for each outcome the descent ends in Pop. A family that does not hold Pop ends as near as it can."
        below = "No Q costs less than H(Pop); what more it costs is KL(Pop, Q)."
        return [
            Panel("The laws", lambda: _plot_laws(self.population, found), told),
            Panel("Cross-entropies reached", lambda: plot.bars(nats, x_label="nats"), below),
        ]


def _plot_laws(population: Tensor, laws: dict[str, Tensor]) -> Drawing:
    with house_style():
        figure = new_figure(height=3.8)
        axes = figure.add_subplot(xlabel="outcome", ylabel="probability")
        places = range(1, len(population) + 1)
        axes.bar(places, population.tolist(), color=FAINT, width=0.8, label="Pop")
        for colour, (name, law) in zip(COLOURS, laws.items()):
            axes.plot(places, law.tolist(), "o", color=colour, markersize=4, label=f"Q among {name}")
        axes.locator_params(axis="x", integer=True)
        figure.legend(loc="outside lower center", ncols=3)
        return Drawing(figure, "Pop and the two laws that the descents ended in")
