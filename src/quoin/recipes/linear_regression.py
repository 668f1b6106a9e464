"""Linear regression by minibatch SGD that finds the weights its data were made with."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z3.1", "Z3.2", "Z3.3", "Z3.6", "Z3.7", "Z3.8", "Z3.9", "Z3.10", "Z3.11")
# In units of the standard error of exact least squares: what noise alone does to w and b stays below 4 in 9,998 runs of 10,000.
TARGET = Target("train_standard_errors_off", at_most=4.0)
GOAL = None  # convex, with a rate that falls to zero: the last weights are the best, and choosing others by few rows adds noise


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `linear-regression`."""

    data: str = option("linear", "where the data come from: a name, or csv:PATH, npz:PATH")
    epochs: int = option(20, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.05, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    from quoin.models import LinearRegression

    return LinearRegression(facts.num_features)


def build(options, place):
    import torch

    from quoin.data.generated import LINEAR_BIAS, LINEAR_NOISE, LINEAR_WEIGHTS
    from quoin.objectives import squared_loss
    from quoin.recipes.running.parts import learner, numbers
    from quoin.train import Regression

    class Recovery(Regression):
        """Regression that also says how far the weights it found are from those that made the data."""

        def evaluate(self, part):
            found = super().evaluate(part)
            if options.data != "linear" or part != "train":
                return found
            w, b = weights_in_data_units(self.model.linear, self.data)
            # On the training rows exact least squares has covariance noise^2 (X^T X)^-1, X with a column of ones.
            X = self.data.feature_scale.invert(self.data.train.features.cpu())
            X = torch.cat([X, torch.ones(len(X), 1, dtype=torch.float64)], dim=1)
            errors = LINEAR_NOISE * torch.linalg.inv(X.T @ X).diagonal().sqrt()
            truth = torch.tensor([*LINEAR_WEIGHTS, LINEAR_BIAS], dtype=torch.float64)
            off = (torch.cat([w, b[None]]) - truth).abs() / errors
            return {**found, "standard_errors_off": float(off.max())}

    data = numbers(options, place)
    net = model(options, data.facts).to(place.device)
    sgd = torch.optim.SGD(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return learner(Recovery, net, squared_loss, sgd, data, options, place)


def weights_in_data_units(linear, data):
    """w and b for features and targets as they came: the model sees both standardised."""
    unit, centre = data.target_scale.std, data.target_scale.mean
    w = linear.weight.detach().cpu().double()[0] * unit / data.feature_scale.std
    b = linear.bias.detach().cpu().double()[0] * unit + centre - w @ data.feature_scale.mean
    return w, b
