"""Weight decay against none, on fewer rows than inputs: the same start and the same batches, twice."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z3.31", "Z3.32", "Z3.8", "Z3.11")
# With decay over without. Nine tenths of the directions stay as they began: off by |w|² at zero, by |w|² + |start|² = 2 |w|² at random.
TARGET = Target("test_rmse_ratio", at_most=0.85)  # four deviations above the mean over seeds 100 to 299, 0.68 ± 0.04
GOAL = None  # convex: the last weights are the best

WEIGHT, BIAS, NOISE = 0.01, 0.05, 0.01  # of every input alike, of the sum, and around it
VALIDATION_ROWS, TEST_ROWS = 100, 1000


@dataclass(frozen=True)
class Options(DescentOptions):
    """Options of the recipe `ridge`."""

    inputs: int = option(200, "inputs, each of which adds a little to the target", at_least=1, at_most=100_000)
    rows: int = option(20, "rows to learn from", at_least=2, at_most=1_000_000)
    weight_decay: float = option(3.0, "pull of the weights towards zero", above=0.0, at_most=1e6)
    epochs: int = option(100, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.01, "the learning rate of the first step", above=0.0, at_most=1e38)
    batch_size: int = option(5, "examples per update, over all devices together", at_least=1, at_most=10**9)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    """Linear regression that starts at random, its weights as large as the true ones."""
    from torch import nn

    from quoin.data import keyed_generator
    from quoin.models import LinearRegression

    net = LinearRegression(facts.num_features)
    nn.init.normal_(net.linear.weight, std=WEIGHT, generator=keyed_generator("weights", options.seed))
    return net


def build(options, place):
    import copy

    import torch

    from quoin import draw
    from quoin.draw import Panel
    from quoin.models import least_squares, ridge
    from quoin.objectives import root_mean_squared_error, squared_loss
    from quoin.recipes.running.parts import learner
    from quoin.train import Regression

    data = few_rows(options, place)
    assert data.target_scale is not None  # the targets are numbers
    unit = float(data.target_scale.std)
    net = model(options, data.facts).to(place.device)
    with torch.no_grad():
        net.linear.weight /= unit  # the model sees its targets in this unit
    twin = copy.deepcopy(net)
    plain = learner(Regression, twin, squared_loss, torch.optim.SGD(twin.parameters(), options.lr), data, options, place)

    class Decayed(Regression):
        """Regression with weight decay, beside which `plain` learns from the same batches without."""

        def step(self, rows):
            plain.step(rows)
            return super().step(rows)

        def evaluate(self, part):
            found, beside = super().evaluate(part), plain.evaluate(part)
            if not found:
                return found
            return {**found, "rmse_without_decay": beside["rmse"], "rmse_ratio": found["rmse"] / max(beside["rmse"], 1e-30)}

        def state(self):
            return {**super().state(), "plain": plain.state()}

        def load(self, state):
            super().load(state)
            plain.load(state["plain"])

        def panels(self):
            X, y = (each.cpu().double() for each in (data.train.features, data.train.targets))
            decays = torch.logspace(-3, 3, 25, dtype=torch.float64)
            fits = [ridge(X, y, float(decay)) for decay in decays]
            errors = {part: (decays, [error(fit, part) for fit in fits]) for part in ("train", "test")}
            levels = {"test, SGD without decay": self.evaluate("test")["rmse_without_decay"]}
            levels["test, shortest least-squares weights"] = error(least_squares(X, y), "test")
            told = (
                "Ridge in closed form for each decay. What decay takes away is mostly the random start, which no row corrects in "
                f"the directions that the {len(y)} rows leave open: from a start at zero, SGD finds the shortest weights by itself."
            )
            return [
                Panel(
                    "Error by weight decay",
                    lambda: draw.curves(errors, x_label="weight decay", y_label="rmse", log_x=True, levels=levels),
                    told,
                ),
                *super().panels(),
            ]

    def error(fit, part):
        rows = getattr(data, part)
        found = fit.predict(rows.features.cpu().double())
        return root_mean_squared_error(found, rows.targets.cpu().double()) * unit

    groups = [{"params": [net.linear.weight], "weight_decay": options.weight_decay}, {"params": [net.linear.bias]}]
    return learner(Decayed, net, squared_loss, torch.optim.SGD(groups, options.lr), data, options, place)


def few_rows(options, place):
    """A few rows to learn from, some to watch and many to judge by, so that the judgement does not waver."""
    import dataclasses

    from quoin.data import keyed_generator, linear, prepare, split

    seen = options.rows + VALIDATION_ROWS
    drawn = linear(seen + TEST_ROWS, [WEIGHT] * options.inputs, BIAS, noise=NOISE, generator=keyed_generator("ridge", options.seed))
    dataset = dataclasses.replace(drawn, test_from=seen)
    return prepare(dataset, split(dataset, options.seed, validation=VALIDATION_ROWS / seen), place.device)
