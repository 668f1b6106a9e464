"""What is special about learning linear models: how near the weights are to those that made the data, and margins as
scores."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import PreparedData
from quoin.data.generated import LINEAR_BIAS, LINEAR_NOISE, LINEAR_WEIGHTS
from quoin.losses import hinge_loss
from quoin.tasks.supervised import Classification, Regression
from quoin.train import Metrics

__all__ = ["MarginClassification", "ParameterRecovery", "logits_hinge_loss", "weights_in_data_units"]


class ParameterRecovery(Regression):
    """Linear regression that also reports how far its weights are from those that made the data, where these are
    known."""

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        if self.data.data_info.source != "linear" or split != "train":
            return found
        w, b = weights_in_data_units(self.model.linear, self.data)
        # On the training rows exact least squares has covariance noise^2 (X^T X)^-1, X with a column of ones.
        X = self.data.feature_scaler.inverse_transform(self.data.train.features.cpu())
        X = torch.cat([X, torch.ones(len(X), 1, dtype=torch.float64)], dim=1)
        errors = LINEAR_NOISE * torch.linalg.inv(X.T @ X).diagonal().sqrt()
        truth = torch.tensor([*LINEAR_WEIGHTS, LINEAR_BIAS], dtype=torch.float64)
        z_scores = (torch.cat([w, b[None]]) - truth).abs() / errors
        return {**found, "max_abs_z_score": float(z_scores.max())}


def weights_in_data_units(linear: nn.Linear, data: PreparedData) -> tuple[Float[Tensor, "features"], Float[Tensor, ""]]:
    """w and b for features and targets as given: the model sees both standardised."""
    assert data.target_scaler is not None  # the targets are numbers
    unit, center = data.target_scaler.std, data.target_scaler.mean
    w = linear.weight.detach().cpu().double()[0] * unit / data.feature_scaler.std
    b = linear.bias.detach().cpu().double()[0] * unit + center - w @ data.feature_scaler.mean
    return w, b


class MarginClassification(Classification):
    """Classification by scores that are no probabilities: without the plots that call them so."""

    gives_probabilities = False


def logits_hinge_loss(logits: Float[Tensor, "batch 2"], labels: Int[Tensor, "batch"]) -> Float[Tensor, "batch"]:
    """max(0, 1 - m): of the logits (-s, s), that of the label less the other is the margin m = 2 y s."""
    index = labels.unsqueeze(-1)
    return hinge_loss((logits.gather(-1, index) - logits.gather(-1, 1 - index)).squeeze(-1))
