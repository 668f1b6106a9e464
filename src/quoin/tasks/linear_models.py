"""What is special about learning linear models: how near the weights are to those that made the data, and margins as scores."""

import torch
from torch import Tensor, nn

from quoin.data import Prepared
from quoin.data.generated import LINEAR_BIAS, LINEAR_NOISE, LINEAR_WEIGHTS
from quoin.losses import hinge_loss
from quoin.plot import Panel
from quoin.tasks.supervised import Classification, Regression
from quoin.train import Metrics

__all__ = ["MarginClassification", "ParameterRecovery", "logits_hinge_loss", "weights_in_data_units"]


class ParameterRecovery(Regression):
    """Linear regression that also reports how far its weights are from those that made the data, where these are known."""

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part)
        if self.data.facts.source != "linear" or part != "train":
            return found
        w, b = weights_in_data_units(self.model.linear, self.data)
        # On the training rows exact least squares has covariance noise^2 (X^T X)^-1, X with a column of ones.
        X = self.data.feature_scale.invert(self.data.train.features.cpu())
        X = torch.cat([X, torch.ones(len(X), 1, dtype=torch.float64)], dim=1)
        errors = LINEAR_NOISE * torch.linalg.inv(X.T @ X).diagonal().sqrt()
        truth = torch.tensor([*LINEAR_WEIGHTS, LINEAR_BIAS], dtype=torch.float64)
        off = (torch.cat([w, b[None]]) - truth).abs() / errors
        return {**found, "standard_errors_off": float(off.max())}


def weights_in_data_units(linear: nn.Linear, data: Prepared) -> tuple[Tensor, Tensor]:  # (d,), ()
    """w and b for features and targets as they came: the model sees both standardised."""
    assert data.target_scale is not None  # the targets are numbers
    unit, centre = data.target_scale.std, data.target_scale.mean
    w = linear.weight.detach().cpu().double()[0] * unit / data.feature_scale.std
    b = linear.bias.detach().cpu().double()[0] * unit + centre - w @ data.feature_scale.mean
    return w, b


class MarginClassification(Classification):
    """Classification by scores that are no probabilities: without the pictures that call them so."""

    def panels(self) -> list[Panel]:
        return super().panels()[:1]


def logits_hinge_loss(logits: Tensor, labels: Tensor) -> Tensor:  # (n, 2), (n,) -> (n,)
    """max(0, 1 - m): of the logits (-s, s), the right one less the other is the margin m = 2 y s."""
    right = labels.unsqueeze(-1)
    return hinge_loss((logits.gather(-1, right) - logits.gather(-1, 1 - right)).squeeze(-1))
