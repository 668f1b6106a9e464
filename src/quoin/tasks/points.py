"""Points for models of their distribution: loaded and held out, and seen in the plane whatever their dimension."""

from typing import NamedTuple, Protocol, Self

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import PointSplits, StandardScaler, load_points, split_points

__all__ = ["Plane", "PointChoice", "load_point_splits"]


class PointChoice(Protocol):
    """Options that name points: those of `PointDataOptions`, and the seed of the split."""

    @property
    def data(self) -> str: ...

    @property
    def ignore(self) -> tuple[str, ...]: ...

    @property
    def seed(self) -> int: ...


def load_point_splits(options: PointChoice, *, validation: float = 0.0) -> PointSplits:
    """The points that `options` name, a fifth of them held out for the test."""
    return split_points(
        load_points(options.data, ignore=options.ignore, seed=options.seed), options.seed, validation=validation
    )


class Plane(NamedTuple):
    """Where points of any dimension are seen: y = axes^T (x - loc)/scale, two numbers each."""

    loc: Float[Tensor, "features"]
    scale: Float[Tensor, "features"]
    axes: Float[Tensor, "features 2"]

    @classmethod
    def fit(cls, points: Float[Tensor, "points features"]) -> Self:
        """The first two principal axes of the standardised points; of one feature, the axis and nothing across."""
        scaler = StandardScaler.fit(points.cpu().double())
        scaled = (points.cpu().double() - scaler.mean) / scaler.std
        if points.shape[1] <= 2:
            axes = torch.eye(points.shape[1], 2, dtype=torch.float64)
        else:
            axes = torch.linalg.eigh(scaled.mT @ scaled).eigenvectors[:, [-1, -2]]
            axes = axes * axes.sum(dim=0).sign().where(axes.sum(dim=0) != 0, torch.ones(2, dtype=torch.float64))
        return cls(scaler.mean, scaler.std, axes)

    def project(self, points: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch 2"]:
        return ((points.cpu().double() - self.loc) / self.scale) @ self.axes

    def project_covariances(
        self, covariances: Float[Tensor, "*batch features features"]
    ) -> Float[Tensor, "*batch 2 2"]:
        """Of points x with these covariances, those of y."""
        root = self.axes / self.scale[:, None]
        return root.mT @ covariances.cpu().double() @ root

    def describe(self, num_features: int) -> str:
        """What the plane is, for the end of a caption."""
        return " Principal axes of the standardised columns." if num_features > 2 else " Standardised columns."
