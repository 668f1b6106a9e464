"""One function, two ways to a ReLU network: built from a promise with a certified error, and trained with as many units."""

import math
from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

NOTES = ("D1.1-3", "D1.1-6", "D1.1-8", "D1.1-9")
# The largest error of the trained network as a share of what the certificate of the built one, of as many units, allows. The built one
# keeps its certificate whatever the function is; a trained one has none, and is asked to do as well on this function.
TARGET = Target("validation_share_of_certificate", at_most=1.0)
GOAL = None  # the rate falls to nothing, so the last network is the best


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `approximate-function`."""

    function: Literal["bell", "wave", "root"] = option("bell", "1/(1 + 25x²), sin(2πx) or √|x|, each on [-1, 1]")
    eps: float = option(0.1, "the error that is certified", at_least=0.001, at_most=1.0)
    epochs: int = option(20, "looks at the largest error", at_least=1, at_most=10**6)
    steps: int = option(100, "updates between two looks", at_least=1, at_most=10**6)
    batch_size: int = option(256, "points for each update, drawn anew", at_least=1, at_most=10**6)
    lr: float = option(0.01, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def target_function(options):
    import torch

    if options.function == "bell":
        return lambda x: 1 / (1 + 25 * x.square())
    if options.function == "wave":
        return lambda x: torch.sin(2 * math.pi * x)
    return lambda x: torch.sqrt(x.abs())


def built(options):
    """The network by construction. The bell is steepest at 1/√75, the wave at 0; the root has no slope bound but a modulus."""
    from quoin.express import approximate

    slopes = {"bell": 15 * math.sqrt(3) / 8, "wave": 2 * math.pi}
    modulus = math.sqrt if options.function == "root" else None
    return approximate(target_function(options), options.eps, (-1.0, 1.0), lipschitz=slopes.get(options.function), modulus=modulus)


def model(options, facts):
    """As many units as the built network has, each with its kink at a random place of the interval and looking either way."""
    import torch

    from quoin.data import keyed_generator
    from quoin.express import relu_chain
    from quoin.layers import Affine

    generator, units = keyed_generator("weights", options.seed), built(options).num_units
    direction = torch.where(torch.rand(units, generator=generator) < 0.5, -1.0, 1.0)
    hidden = Affine(direction[:, None], -direction * (2 * torch.rand(units, generator=generator) - 1))
    return relu_chain([hidden, Affine(torch.randn(1, units, generator=generator) / math.sqrt(units), torch.zeros(1))])


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.express import from_relu_network
    from quoin.optim import cosine
    from quoin.train import load_strictly

    g = target_function(options)
    construction = built(options)
    net = model(options, None)  # a few dozen units: a GPU would only be slower
    optimiser = torch.optim.Adam(net.parameters(), options.lr)
    line = torch.linspace(-1, 1, 4001, dtype=torch.float64)

    def trained(x):
        return net(x.float()[:, None])[:, 0].double()

    class ByTraining:
        """Least squares on points drawn anew for every update; what is judged is the largest error on a fine grid."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.steps * options.batch_size, options.batch_size, seed=options.seed, shuffle=False)

        def step(self, rows):
            at = self.batches
            x = 2 * torch.rand(len(rows), generator=keyed_generator("points", options.seed, at.epoch, at.position)) - 1
            done = (at.epoch * options.steps + at.position - 1) / (options.epochs * options.steps)
            optimiser.param_groups[0]["lr"] = options.lr * cosine(done)
            optimiser.zero_grad()
            loss = (net(x[:, None])[:, 0] - g(x)).square().mean()
            loss.backward()
            optimiser.step()
            return {"loss": loss.detach() * len(rows)}

        @torch.no_grad()
        def evaluate(self, part):
            if part != "validation":
                return {}  # there are no data, and so no parts of them
            largest = float((trained(line) - g(line)).abs().max())
            return {"sup_error": largest, "share_of_certificate": largest / construction.error, "sup_error_of_built": construction.measured}

        def state(self):
            return {"model": {"weights": net.state_dict()}, "optimiser": optimiser.state_dict(), "batches": self.batches.state()}

        def load(self, state):
            load_strictly(net, state["model"]["weights"])
            optimiser.load_state_dict(state["optimiser"])
            self.batches.load(state["batches"])

        @torch.no_grad()
        def panels(self):
            x, pieces = line[::10], from_relu_network(net)
            inside = int(((pieces.breakpoints > -1) & (pieces.breakpoints < 1)).sum())
            graphs = {"g": (x, g(x)), "built": (x, construction.function(x)), "trained": (x, trained(x))}
            found = f"Built: {construction}. Trained, with as many units: "
            errors = {
                "certified for the built one": construction.error,
                "the built one, measured": construction.measured,
                "the trained one, measured": float((trained(line) - g(line)).abs().max()),
            }
            misses = {"built": (line, construction.function(line) - g(line)), "trained": (line, trained(line) - g(line))}
            return [
                Panel(
                    "The function and its two networks", lambda: draw.curves(graphs, x_label="x", y_label="y"), found + f"{inside} kinks."
                ),
                Panel(
                    "Largest errors",
                    lambda: draw.bars(errors, x_label="error"),
                    "A promise about g is worth most where nothing was looked at.",
                ),
                Panel(
                    "Errors", lambda: draw.curves(misses, x_label="x", y_label="network − g"), "The built network is exact at its points."
                ),
            ]

    return ByTraining()
