"""Regression on several targets at once, each with its own unit."""

from jaxtyping import Float
from torch import Tensor

from quoin import plot
from quoin.losses import squared_loss
from quoin.plot import Panel
from quoin.tasks.supervised import SupervisedTask
from quoin.tensor import as_floating
from quoin.train import Metrics

__all__ = ["MultiTargetRegression", "mean_squared_loss"]


def mean_squared_loss(
    prediction: Float[Tensor, "batch targets"], target: Float[Tensor, "batch targets"]
) -> Float[Tensor, "batch"]:
    """The squared loss of each example, the mean over its targets; standardised, they count alike."""
    return squared_loss(prediction, target).mean(-1)


class MultiTargetRegression(SupervisedTask):
    """Outputs and targets are standardised numbers, one for each target.

    The root mean squared error of each target is in its own unit; the loss has none.
    """

    kind = "regression"

    def compute_metrics(
        self, outputs: Float[Tensor, "batch targets"], targets: Float[Tensor, "batch targets"]
    ) -> dict[str, Float[Tensor, "batch"]]:
        errors = (as_floating(outputs, targets) - as_floating(targets, outputs)).square()
        names = self.data.data_info.target_names
        return {f"rmse_{name}": each for name, each in zip(names, errors.unbind(-1), strict=True)}

    def finalize_metrics(self, means: Metrics) -> Metrics:
        assert self.data.target_scaler is not None
        units = dict(zip(self.data.data_info.target_names, self.data.target_scaler.std.tolist(), strict=True))
        return {"loss": means["loss"]} | {
            f"rmse_{name}": means[f"rmse_{name}"] ** 0.5 * unit for name, unit in units.items()
        }

    def panels(self) -> list[Panel]:
        scaler = self.data.target_scaler
        assert scaler is not None
        outputs = scaler.inverse_transform(self.predict_split("test").cpu())
        truth = scaler.inverse_transform(self.data.test.targets.cpu())
        return [
            Panel(
                f"Predicted vs. true: {name}",
                lambda at=at: plot.scatter(truth[:, at], outputs[:, at]),
                f"Each dot is a test example; on the diagonal the prediction of {name} is exact.",
            )
            for at, name in enumerate(self.data.data_info.target_names)
        ]
