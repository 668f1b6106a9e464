"""Ridge regression on ever more random features of a kernel: it approaches ridge regression with the kernel itself."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DataOptions, RunOptions
from quoin.recipes.running.target import Target

NOTES = ("D4.1-13", "D4.1-14", "X14")
# How far the predictions are from the kernel's, root mean square over rows and draws, in parts of the kernel's own spread. The error
# falls as 1/√D: from about 0.4 at 16 features to a sixteenth of it at 4096.
TARGET = Target("test_gap", at_most=0.025)
GOAL = None  # more features are better: the last fit is kept


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    """Options of the recipe `random-features`."""

    data: str = option("diabetes", "where the data come from: a name, or csv:PATH, npz:PATH with numbers as targets")
    epochs: int = option(9, "numbers of features to try, one an epoch, each twice the last", at_least=1, at_most=16)
    first: int = option(16, "features in the first epoch", at_least=1, at_most=4096)
    draws: int = option(10, "draws of the features for each number", at_least=1, at_most=1000)
    gamma: float = option(0.03, "γ of the kernel exp(-γ |x - y|²), of scaled features", above=0.0, at_most=1e6)
    decay: float = option(0.01, "pull of the weights towards zero", at_least=1e-9, at_most=1e9)
    rows: int = option(1000, "most rows to fit to: the kernel's own fit costs their cube", at_least=2, at_most=10_000)


def model(options, facts):
    from quoin.models import FourierRegression

    return FourierRegression(facts.num_features, options.first * 2 ** (options.epochs - 1), options.gamma)


def build(options, place):
    import math

    import torch

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.layers import gaussian_directions
    from quoin.models import kernel_ridge
    from quoin.objectives import root_mean_squared_error, squared_loss
    from quoin.recipes.running.parts import numbers
    from quoin.tensor import squared_exponential
    from quoin.train import in_squared_unit, load_strictly

    data = numbers(options, place)
    assert data.target_scale is not None  # they are numbers
    unit = float(data.target_scale.std)
    net = model(options, data.facts)
    # In float64 and on the CPU: closed forms of a few hundred rows.
    parts = {name: getattr(data, name) for name in ("train", "validation", "test")}
    inputs = {name: part.features.flatten(1).cpu().double() for name, part in parts.items()}
    targets = {name: part.targets.cpu().double() for name, part in parts.items()}
    X, y = inputs["train"][: options.rows], targets["train"][: options.rows]
    exact = kernel_ridge(lambda a, b: squared_exponential(a, b, options.gamma), X, y, options.decay)
    goals = {name: exact.predict(rows) for name, rows in inputs.items()}
    spread = float(goals["train"].std()) or 1.0

    class MoreFeatures:
        """Each step draws features anew and fits them in closed form; an epoch is one number of features."""

        def __init__(self):
            self.facts = data.facts
            self.batches = Batches(options.draws, 1, seed=options.seed, shuffle=False)
            self.gaps = {name: [] for name in parts}  # of each draw so far, squared

        def step(self, rows):
            at = self.batches
            count = options.first * 2**at.epoch
            generator = keyed_generator("features", options.seed, at.epoch, at.position)
            directions = gaussian_directions(count, X.shape[1], generator=generator)
            phases = 2 * math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
            net.fit(X, y, options.decay, directions=directions, phases=phases)
            for name, x in inputs.items():
                if len(x):
                    self.gaps[name].append(float((net(x.float()) - goals[name]).square().mean()) / spread**2)
            return {"loss": in_squared_unit(squared_loss(net(X.float()), y.float()).mean(), unit)}

        def gap(self, part, epoch):
            """Over the draws of an epoch, those that there are."""
            drawn = self.gaps[part][epoch * options.draws : (epoch + 1) * options.draws]
            return math.sqrt(sum(drawn) / len(drawn))

        def tried(self):
            """The numbers of features for which there is a draw."""
            return [options.first * 2**epoch for epoch in range(-(-len(self.gaps["train"]) // options.draws))]

        def evaluate(self, part):
            if not len(inputs[part]):
                return {}
            outputs = net(inputs[part].float()).double()
            found = {
                "loss": float(in_squared_unit(squared_loss(outputs, targets[part]).mean(), unit)),
                "rmse": root_mean_squared_error(outputs, targets[part]) * unit,
                "kernel_rmse": root_mean_squared_error(goals[part], targets[part]) * unit,
            }
            if counts := self.tried():
                found["gap"] = self.gap(part, len(counts) - 1)
            if len(counts) > 1:
                x, logs = torch.tensor(counts).log(), torch.tensor([self.gap(part, epoch) for epoch in range(len(counts))]).log()
                found["gap_exponent"] = float(((x - x.mean()) * (logs - logs.mean())).sum() / (x - x.mean()).square().sum())
            return found

        def state(self):
            weights = {"weights": net.state_dict(), "scales": data.scale_state()}
            return {"model": weights, "gaps": self.gaps, "batches": self.batches.state()}

        def load(self, state):
            load_strictly(net, state["model"]["weights"])
            self.gaps = state["gaps"]
            self.batches.load(state["batches"])

        def panels(self):
            counts = self.tried()
            if not counts:
                return []
            gaps = {name: (counts, [self.gap(name, epoch) for epoch in range(len(counts))]) for name in parts if len(inputs[name])}
            start = gaps["train"][1][0]
            gaps["1/√D"] = (counts, [start * math.sqrt(counts[0] / count) for count in counts])
            told = f"{options.draws} draws for each number, {len(X)} rows fitted; in parts of the spread of the kernel's own predictions."
            one = "Each row of the test part, predicted by the last draw and by the kernel."
            panels = [
                Panel(
                    "The gap to the kernel",
                    lambda: draw.curves(gaps, x_label="random features D", y_label="gap", log_x=True, log_y=True),
                    told,
                )
            ]
            if len(inputs["test"]):
                shown = net(inputs["test"].float()).detach()
                panels.append(
                    Panel(
                        "Prediction by prediction",
                        lambda: draw.scatter(goals["test"], shown, x_label="kernel ridge", y_label=f"{int(net.in_use)} random features"),
                        one,
                    )
                )
            return panels

    return MoreFeatures()
