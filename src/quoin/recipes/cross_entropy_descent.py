"""Gradient descent on the logits of a whole law reaches the population; two numbers for all logits leave a gap."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

NOTES = ("M22", "M22c")
# In nats. The cross-entropy is convex in the logits with a curvature of at most 1/2, so steps of 2 bring KL below |ℓ*|² / 4k after k of
# them, ℓ* being the logits of Pop: here below 0.02 for any usual seed. Near Pop it is far quicker: of 200 seeds none stayed above 0.0002.
TARGET = Target("validation_kl", at_most=1e-3)
GOAL = None  # convex: the last law is the best


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `cross-entropy-descent`."""

    outcomes: int = option(20, "outcomes of the population, a random law on them", at_least=3, at_most=1000)
    spread: float = option(1.0, "how far its log-probabilities are scattered", at_least=0.0, at_most=50.0)
    epochs: int = option(50, "looks at the divergence", at_least=1, at_most=10**6)
    steps: int = option(10, "updates between two looks", at_least=1, at_most=10**6)
    lr: float = option(2.0, "the size of a step; above 2 nothing is promised", above=0.0, at_most=1e6)


def model(options, facts):
    """`logits`, one for each outcome, and `curve`, two numbers that lay a parabola of logits over all of them; all start at zero."""
    import torch
    from torch import nn

    sizes = {"logits": options.outcomes, "curve": 2}
    return nn.ParameterDict({name: nn.Parameter(torch.zeros(size, dtype=torch.float64)) for name, size in sizes.items()})


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.info import cross_entropy, entropy, relative_entropy
    from quoin.optim import sgd_step
    from quoin.train import load_strictly

    n = options.outcomes
    pop = (options.spread * torch.randn(n, generator=keyed_generator("population", options.seed), dtype=torch.float64)).softmax(dim=0)
    net = model(options, None)  # in float64 and on the CPU: it is the last digits that are watched
    powers = torch.linspace(-1, 1, n, dtype=torch.float64)[:, None] ** torch.tensor([1, 2])
    features = torch.linalg.qr(powers)[0]  # of norm one, so that the narrow family's curvature too is at most 1/2

    def laws():
        return {"all laws": net["logits"].softmax(dim=0), "parabolas": (features @ net["curve"]).softmax(dim=0)}

    class Descent:
        """Each step takes the exact gradient of both cross-entropies; a batch is a step, for there are no data."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.steps, 1, seed=options.seed, shuffle=False)

        def step(self, rows):
            loss = torch.stack([cross_entropy(pop, law) for law in laws().values()])
            stepped = sgd_step(list(net.values()), loss.sum()[None], options.lr)
            with torch.no_grad():
                for parameter, new in zip(net.values(), stepped):
                    parameter.copy_(new)
            return {"loss": loss[0].detach()}

        @torch.no_grad()
        def evaluate(self, part):
            if part != "validation":
                return {}
            wide, narrow = (float(relative_entropy(pop, law)) for law in laws().values())
            return {"kl": wide, "kl_of_parabolas": narrow}

        def state(self):
            return {"model": {"weights": net.state_dict()}, "batches": self.batches.state()}

        def load(self, state):
            load_strictly(net, state["model"]["weights"])
            self.batches.load(state["batches"])

        @torch.no_grad()
        def panels(self):
            found = laws()
            reached = {"H(Pop)": entropy(pop)} | {f"H(Pop, Q), {name}": cross_entropy(pop, law) for name, law in found.items()}
            told = "With a logit for each outcome the descent ends in Pop. A family that does not hold Pop ends as near as it can."
            below = "No Q costs less than H(Pop); what more it costs is KL(Pop, Q)."
            return [
                Panel("The laws", lambda: side_by_side(found), told),
                Panel(
                    "Cross-entropies reached",
                    lambda: draw.bars({name: float(nats) for name, nats in reached.items()}, x_label="nats"),
                    below,
                ),
            ]

    def side_by_side(found):
        from quoin.draw.drawing import COLOURS, FAINT, house_style, new_figure

        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel="outcome", ylabel="probability")
            places = range(1, n + 1)
            axes.bar(places, pop.tolist(), color=FAINT, width=0.8, label="Pop")
            for colour, (name, law) in zip(COLOURS, found.items()):
                axes.plot(places, law.tolist(), "o", color=colour, markersize=4, label=f"Q among {name}")
            axes.locator_params(axis="x", integer=True)
            figure.legend(loc="outside lower center", ncols=3)
            return draw.Drawing(figure, "Pop and the two laws that the descents ended in")

    return Descent()
