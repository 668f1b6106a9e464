"""A classifier of the plane whose linear regions are counted exactly after every epoch."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.expressivity import max_regions, regions_in_window
from quoin.plot import Panel, PolygonMap
from quoin.tasks.supervised import Classification
from quoin.train import Metrics

__all__ = ["RegionCounting"]

WINDOW = (-2.5, -2.5), (2.5, 2.5)  # of features that have been standardised
PLOTS = 6


class RegionCounting:
    """The classifier's own task, and after each of its epochs a count of the linear regions in the window."""

    kind = "classification"

    def __init__(self, task: Classification, *, epochs: int, hidden: tuple[int, ...]) -> None:
        self.task, self.data_info, self.batches, self.hidden = task, task.data_info, task.batches, hidden
        self.shown = {round(epochs * (index / (PLOTS - 1)) ** 2) for index in range(PLOTS)}  # most happens early
        self.counts: list[int] = []
        self.weights: dict[str, dict[str, Tensor]] = {}  # by the epoch, of those that are shown
        self._count()

    def _count(self) -> None:
        if len(self.counts) in self.shown:
            self.weights[str(len(self.counts))] = _copied_weights(self.task)
        self.counts.append(len(regions_in_window(self.task.model, *WINDOW)))

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        found = self.task.step(rows)
        if self.batches.position == self.batches.num_batches:
            self._count()
        return found

    def evaluate(self, split: str) -> Metrics:
        found = self.task.evaluate(split)
        if split != "validation":
            found["regions"] = float(self.counts[-1])
        if split == "test":
            found["region_growth"] = self.counts[-1] / self.counts[0]
        return found

    def state_dict(self) -> dict[str, Any]:
        return {**self.task.state_dict(), "regions": {"counts": self.counts, "weights": self.weights}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.task.load_state_dict(state)
        self.counts, self.weights = list(state["regions"]["counts"]), dict(state["regions"]["weights"])

    def panels(self) -> list[Panel]:
        epochs = list(range(len(self.counts)))
        most = max_regions(self.hidden, 2)
        caption = (
            "In the window of 2.5 standard deviations; no network of these layer sizes has more than "
            f"{most:,} regions anywhere."
        )
        maps = (
            "Paper is undecided, blue the first class, vermilion any other, stronger where the network is more "
            "confident. Dots are training examples."
        )
        return [
            Panel(
                "Linear regions by epoch",
                lambda: plot.curves({"linear regions": (epochs, self.counts)}, x_label="epoch", y_label="regions"),
                caption,
            ),
            Panel("Linear regions during training", self._region_maps, maps),
            *self.task.panels(),
        ]

    def _region_maps(self) -> plot.Plot:
        net, train, now, maps = self.task.model, self.task.data.train, _copied_weights(self.task), {}
        sample = train.take(
            torch.linspace(0, train.num_rows - 1, min(300, train.num_rows), device=train.features.device).long()
        )
        for epoch, weights in sorted(self.weights.items(), key=lambda item: int(item[0])):
            net.load_state_dict(weights)
            regions = regions_in_window(net, *WINDOW)
            middle = torch.stack([torch.from_numpy(each.mean(axis=0)) for each in regions.polygons])
            logits = (regions.maps.weight @ middle[..., None])[..., 0] + regions.maps.bias
            sure = logits.softmax(dim=1)[:, 0] - 0.5
            maps[f"epoch {epoch}: {len(regions)}"] = PolygonMap(
                regions.polygons, sure, sample.features.flatten(1), sample.targets.tolist()
            )
        net.load_state_dict(now)
        return plot.polygon_maps(maps)


def _copied_weights(task: Classification) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in task.model.state_dict().items()}
