"""Gaussian mixtures: points to their log-density and the probability of each component."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.models import MixtureCandidates
from quoin.runs.export.exportable import BATCH, Exportable, ExportInput, ExportPart
from quoin.runs.kinds.mixture import TrainedMixture
from quoin.runs.run import Run

__all__ = ["MixtureDensity", "mixture_parts"]

REAL_ROWS = 8


class MixtureDensity(nn.Module):
    """ln p(x) = ln Σ_i φ_i N(x; μ_i, Σ_i) on the scale of the points, by the inverses of Cholesky factors."""

    whitening: Float[Tensor, "components dim dim"]  # L_i⁻¹, of Σ_i = L_i L_iᵀ
    means: Float[Tensor, "components dim"]
    log_constants: Float[Tensor, "components"]

    def __init__(self, model: MixtureCandidates) -> None:
        super().__init__()
        factors = torch.linalg.cholesky(model.covariance_matrices().double())
        dim = factors.shape[-1]
        log_dets = factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        self.register_buffer("whitening", torch.linalg.inv(factors))
        self.register_buffer("means", model.means().double())
        constants = model.best.weights.double().log() - log_dets - dim * math.log(2 * math.pi) / 2
        self.register_buffer("log_constants", constants)

    def forward(
        self, points: Float[Tensor, "batch dim"]
    ) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch components"], Int[Tensor, "batch"]]:
        away = points[:, None] - self.means
        white = (self.whitening * away[:, :, None]).sum(dim=-1)
        joint = self.log_constants - white.square().sum(dim=-1) / 2
        return joint.logsumexp(dim=-1), joint.softmax(dim=-1), joint.argmax(dim=-1)


def mixture_parts(run: Run) -> Exportable:
    """One part, from points to answers."""
    trained = run.trained
    assert isinstance(trained, TrainedMixture)
    model: MixtureCandidates = trained.model
    names = trained.data_info.feature_names

    def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return model.loc + model.scale * torch.randn(size, generator=generator, dtype=torch.float64)

    def ours(points: Tensor) -> tuple[Tensor, ...]:
        found = trained.predict(points)
        return model.log_prob(points), found.probabilities, found.values

    def real() -> tuple[Tensor, ...]:
        return (run.load_task().points["test"][:REAL_ROWS].double(),)  # type: ignore[attr-defined]

    inputs = (ExportInput("points", (BATCH, len(names)), draw, "in the units of the training data"),)
    outputs = ("log_density", "probabilities", "component")
    told = {"feature_names": list(names), "num_components": len(model.best.weights)}
    return Exportable((ExportPart("model", MixtureDensity(model), inputs, outputs, ours, real),), told)
