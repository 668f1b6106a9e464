"""Nadaraya-Watson regression on a table: leave-one-out chooses the bandwidth of each kernel, and the kernel."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, PreparedData
from quoin.metrics import root_mean_squared_error
from quoin.models import NadarayaWatsonRegression
from quoin.plot import Panel
from quoin.tasks.closed_form import ClosedFormTask
from quoin.tasks.kernel_regression import NARROWEST, WIDEST
from quoin.tasks.supervised import in_squared_unit
from quoin.tasks.supervised_panels import regression_panels
from quoin.train import Metrics

__all__ = ["MOST_ROWS", "KernelRegressionTask"]

MOST_ROWS = 2000  # training rows unless more are asked for: each bandwidth compares all pairs


class KernelRegressionTask(ClosedFormTask):
    """Epoch k tries the k-th bandwidth on every kernel, and keeps it where it predicts best so far.

    Features are standardised, so that one bandwidth serves all; two rows lie about √(2 d) apart, and the bandwidths go
    with it. On the CPU, in float64.
    """

    def __init__(self, model: NadarayaWatsonRegression, data: PreparedData, *, num_bandwidths: int, seed: int) -> None:
        num_rows = min(data.train.num_rows, len(model.keys))
        super().__init__(model, data, BatchSampler(num_rows, num_rows, seed=seed, shuffle=False))
        self.x = data.train.features[:num_rows].flatten(1).cpu().double()
        self.y = data.train.targets[:num_rows].cpu().double()
        model.set_rows(self.x, self.y)
        reach = math.sqrt(self.x.shape[1])
        self.bandwidths = torch.logspace(
            math.log10(WIDEST * reach), math.log10(NARROWEST * reach), num_bandwidths, dtype=torch.float64
        )
        self.left_out = torch.zeros(0, len(model.pools), dtype=torch.float64)  # mean squares, by bandwidth and kernel

    @torch.no_grad()
    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        bandwidth, others = self.bandwidths[self.batches.epoch], ~torch.eye(len(self.x), dtype=torch.bool)
        found = [self.model.pooled(self.x, name, bandwidth, mask=others) - self.y for name in self.model.pools]
        errors = torch.stack([each.square().mean() for each in found])
        for which, pool in enumerate(self.model.pools.values()):
            if not len(self.left_out) or errors[which] < self.left_out[:, which].min():
                pool.bandwidth.copy_(bandwidth)
        self.left_out = torch.cat([self.left_out, errors.unsqueeze(0)])
        self.model.chosen.copy_(self.left_out.amin(dim=0).argmin())
        return {"loss": in_squared_unit(self.left_out.min() / 2 * len(rows), self.unit)}

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        """Of the training rows, each predicted from all others; of held-out rows by every kernel."""
        if split == "train":
            return (
                {"leave_one_out_rmse": math.sqrt(float(self.left_out.min())) * self.unit} if len(self.left_out) else {}
            )
        rows = getattr(self.data, split)
        if not rows.num_rows:
            return {}
        x, targets = rows.features.flatten(1).cpu(), rows.targets.cpu().double()
        found = {
            f"{name}_rmse": root_mean_squared_error(self.model.pooled(x, name), targets) * self.unit
            for name in self.model.pools
        }
        baseline = root_mean_squared_error(self.y.mean().expand_as(targets), targets) * self.unit
        return {"rmse": found[f"{self.model.best}_rmse"], "mean_baseline_rmse": baseline, **found}

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "left_out": self.left_out}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.left_out = state["left_out"]

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        tried = self.bandwidths[: len(self.left_out)]
        lines = {
            name: (tried, errors.sqrt() * self.unit)
            for name, errors in zip(self.model.pools, self.left_out.unbind(dim=1))
        }
        chosen = ", ".join(f"{name} {float(pool.bandwidth):.3g}" for name, pool in self.model.pools.items())
        caption = (
            f"Chosen: {chosen}, in standard deviations of the features; of these, {self.model.best} predicts. "
            f"{len(self.x)} training examples."
        )
        outputs = self.model(self.data.test.features.cpu())
        return [
            Panel(
                "Error by bandwidth",
                lambda: plot.curves(lines, x_label="bandwidth", y_label="leave-one-out rmse", log_x=True),
                caption,
            ),
            *regression_panels(outputs, self.data),
        ]
