"""A fitted mixture without its points: new points, the component of each of other points, and their likelihood."""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.data import PointSet, load_points, read_rows
from quoin.data.table_files import FORMATS
from quoin.errors import UserError, format_value
from quoin.runs.kinds.generation import TrainedPointModel
from quoin.runs.predictions import PredictedFile, prediction_table
from quoin.train import Metrics

__all__ = ["MixturePrediction", "TrainedMixture"]


class MixturePrediction(NamedTuple):
    """One row a point."""

    values: Int[Tensor, "points"]  # components, from 0
    probabilities: Float[Tensor, "points components"]  # P[Z = i | x]


class TrainedMixture(TrainedPointModel):
    """A mixture: its components are clusters."""

    is_a = "models the density of points"

    @torch.no_grad()
    def predict(self, points: Real[Tensor, "points features"]) -> MixturePrediction:
        """The most probable component of each point, and the probability of every component."""
        probabilities = self.model.responsibilities(points.double())
        return MixturePrediction(probabilities.argmax(-1), probabilities)

    def predict_file(self, path: Path) -> PredictedFile:
        """The component of each row of a table or an NPZ file."""
        found = self.predict(read_rows(path, self.data_info.feature_names))
        names = tuple(map(str, range(found.probabilities.shape[1])))
        return prediction_table(found.values, found.probabilities, ("component",), names, [])

    @torch.no_grad()
    def evaluate(self, data: str | PointSet, *, target: str | None = None) -> Metrics:
        """The mean of ln p(x) over other points with the same columns, named as for `--data` or loaded."""
        if target is not None:
            raise UserError(f"expected points, which have no target, got --target {format_value(target)}: leave it out")
        names = self.data_info.feature_names
        if isinstance(data, PointSet):
            points = data.values
        elif data.partition(":")[0] in (*FORMATS, "npz"):
            points = read_rows(data, names)
        else:
            points = load_points(data, seed=self.options.seed).values
        if points.shape[1] != len(names):
            raise UserError(
                f"expected points of {len(names)} columns, got {points.shape[1]}: give data of the same kind"
            )
        return {"log_likelihood": float(self.model.log_prob(points.double()).mean())}
