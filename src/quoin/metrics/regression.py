"""Numbers to watch of predicted numbers, over a whole data set."""

from jaxtyping import Real, Shaped
from torch import Tensor

from quoin.errors import UserError
from quoin.losses.regression import squared_loss
from quoin.tensor import as_floating

__all__ = ["r2_score", "root_mean_squared_error"]


def root_mean_squared_error(prediction: Real[Tensor, "*shape"], target: Real[Tensor, "*shape"]) -> float:
    """sqrt((1/n) sum_i (prediction_i - target_i)^2): the typical error, in the target's unit."""
    check_some(prediction)
    return float((2 * squared_loss(prediction.detach(), target)).mean().sqrt())


def r2_score(prediction: Real[Tensor, "*shape"], target: Real[Tensor, "*shape"]) -> float:
    """The fraction of the target's variance that is explained: 1 - sum_i (y_i - prediction_i)^2 / sum_i (y_i - mean
    y)^2."""
    check_some(prediction)
    target = as_floating(target, prediction)
    residual = squared_loss(prediction.detach(), target).sum()
    total = squared_loss(target.mean().expand_as(target), target).sum()
    if not total > 0:
        raise UserError(
            f"expected targets that vary, got {target.numel()} of one value; R^2 is undefined there, use the RMSE"
        )
    return 1 - float(residual / total)


def check_some(examples: Shaped[Tensor, "..."]) -> None:
    if examples.numel() == 0:
        raise UserError("expected at least one example to measure, got none; leave out empty data sets")
