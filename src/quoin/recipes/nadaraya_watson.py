"""Kernel regression with four kernels side by side: nothing is trained, and leave-one-out chooses each kernel's width."""

import math
from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

NOTES = ("Z11.7", "Z11.8", "Z11.9", "Z11.10", "ZE22")
# The curve against the truth without noise: half the noise that each value has. Over seeds 100 to 119 it is 0.137 ± 0.035, at most 0.232;
# the mean of all values is off by 0.89.
TARGET = Target("test_rmse", at_most=0.25)
GOAL = None  # a width is kept only where it predicts better, so the last widths are the best

WIDEST, NARROWEST = 5.0, 0.02  # places lie on [0, 5]


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `nadaraya-watson`."""

    points: int = option(200, "noisy values of 2 sin x + x at places drawn on [0, 5]", at_least=3, at_most=10**4)
    noise: float = option(0.5, "the deviation of the noise in them", at_least=0.0, at_most=1e6)
    epochs: int = option(60, "widths to try, one an epoch, from 5 down to 0.02", at_least=1, at_most=10**4)


def model(options, facts):
    """One estimator for each kernel; a width is all that it has, and the values are handed to it."""
    import torch
    from torch import nn

    from quoin.layers import NadarayaWatson
    from quoin.tensor import BoxcarWindow, EpanechnikovWindow, GaussianWindow, TriangularWindow

    kernels = {
        "gaussian": GaussianWindow(),
        "boxcar": BoxcarWindow(),
        "triangular": TriangularWindow(),
        "epanechnikov": EpanechnikovWindow(),
    }
    widest = torch.tensor(WIDEST, dtype=torch.float64)
    return nn.ModuleDict({name: NadarayaWatson(kernel, widest.clone()) for name, kernel in kernels.items()})


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.layers import NadarayaWatson, nadaraya_watson, nadaraya_watson_weights
    from quoin.train import load_strictly

    net = model(options, None)  # four numbers: a GPU would only be slower
    pools: dict[str, NadarayaWatson] = dict(net.items())  # type: ignore[arg-type]
    widths = torch.logspace(math.log10(WIDEST), math.log10(NARROWEST), options.epochs, dtype=torch.float64)
    generator = keyed_generator("nadaraya-watson", options.seed)
    x = (5 * torch.rand(options.points, 1, generator=generator, dtype=torch.float64)).sort(dim=0).values
    y = truth(x) + options.noise * torch.randn(options.points, 1, generator=generator, dtype=torch.float64)
    line = torch.linspace(0, 5, 501, dtype=torch.float64).unsqueeze(-1)
    others = ~torch.eye(options.points, dtype=torch.bool)

    def left_out(pool, width):
        """The mean squared error of each value as predicted from all others."""
        return float((nadaraya_watson(x, x, y, pool.kernel, width, mask=others) - y).square().mean())

    def fitted(pool):
        return nadaraya_watson(line, x, y, pool.kernel, pool.width)

    def rmse(found):
        return float((found - truth(line)).square().mean().sqrt())

    class Widths:
        """Epoch k tries the k-th width on every kernel, and keeps it where it predicts best so far."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.points, options.points, seed=options.seed, shuffle=False)
            self.errors = torch.zeros(0, len(pools), dtype=torch.float64)  # by width and kernel

        def step(self, rows):
            width = widths[self.batches.epoch]
            errors = torch.tensor([left_out(pool, width) for pool in pools.values()], dtype=torch.float64)
            for which, pool in enumerate(pools.values()):
                if not len(self.errors) or errors[which] < self.errors[:, which].min():
                    pool.width.copy_(width)
            self.errors = torch.cat([self.errors, errors.unsqueeze(0)])
            return {"loss": self.errors.min() * len(rows)}

        def evaluate(self, part):
            if part != "test":
                return {}
            # Judged against the truth without noise; nothing chosen has seen it.
            found = {f"rmse_of_{name}": rmse(fitted(pool)) for name, pool in pools.items()}
            best = list(pools)[int(self.errors.amin(dim=0).argmin())] if len(self.errors) else "gaussian"
            return {"rmse": found[f"rmse_of_{best}"], "rmse_of_the_mean": rmse(y.mean()), **found}

        def state(self):
            return {"model": {"weights": net.state_dict()}, "batches": self.batches.state(), "errors": self.errors}

        def load(self, state):
            load_strictly(net, state["model"]["weights"])
            self.batches.load(state["batches"])
            self.errors = state["errors"]

        def panels(self):
            tried = widths[: len(self.errors)]
            lines = {name: (tried, self.errors[:, which].sqrt()) for which, name in enumerate(pools)}
            noise = {"noise": options.noise} if options.noise else {}
            chosen = ", ".join(f"{name} {float(pool.width):.3g}" for name, pool in pools.items())
            return [
                Panel(
                    "Fits",
                    lambda: fits(),
                    "Dots are the values, dashed is the truth. Ends are pulled towards the middle: neighbours lie there.",
                ),
                Panel(
                    "Error by width",
                    lambda: draw.curves(lines, x_label="width", y_label="leave-one-out rmse", log_x=True, levels=noise),
                    f"Chosen: {chosen}. To the right curves are too flat, to the left too rough.",
                ),
                Panel("Weights", lambda: weight_maps(), "How much each value (across, in order) counts for each query (down, in order)."),
            ]

    def weight_maps():
        from quoin.draw.drawing import house_style, new_figure

        with house_style():
            figure = new_figure(height=2.3)
            for axes, (name, pool) in zip(figure.subplots(1, len(pools), sharey=True), pools.items()):
                weights = nadaraya_watson_weights(line[::5], x, pool.kernel, pool.width)
                axes.imshow(weights.numpy(), cmap="Blues", vmin=0, aspect="auto", interpolation="none", extent=(0, options.points, 5, 0))
                axes.set_title(name, fontsize=9)
            return draw.Drawing(figure, "weights of four kernels")

    def fits():
        from quoin.draw.drawing import COLOURS, FAINT, INK, house_style, new_figure

        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="x", ylabel="y")
            axes.grid(True)
            axes.scatter(x, y, s=10, color=FAINT)
            axes.plot(line, truth(line), color=INK, linewidth=1, linestyle=(0, (4, 3)), label="2 sin x + x")
            for colour, (name, pool) in zip(COLOURS, pools.items()):
                axes.plot(line, fitted(pool), color=colour, linewidth=1.2, label=f"{name}, width {float(pool.width):.2g}")
            axes.legend(fontsize=8)
            return draw.Drawing(figure, "fits of four kernels")

    return Widths()


def truth(x):
    return 2 * x.sin() + x
