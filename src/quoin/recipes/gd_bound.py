"""Gradient descent held to its promises: on logistic regression, the gap to the minimum beside two bounds on it, step by step."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, RunOptions
from quoin.recipes.running.target import Target

NOTES = ("D1.5-5", "D1.5-5c", "D1.5-4", "M8")
# The gap over the smaller of the two bounds, at the worst step of all runs. Above 1 a theorem would be false, or the code.
TARGET = Target("train_gap_over_bound", at_most=1.0)
GOAL = None  # no step goes up: the last weights are the best

ROUNDING = 1e-14  # of the first cost: a smaller gap is no longer known in float64


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    """Options of the recipe `gd-bound`."""

    data: str = option("breast-cancer", "where the data come from: two classes by name, or csv:PATH, npz:PATH")
    shares: tuple[float, ...] = option((0.1, 0.3, 1.0), "learning rates to run side by side, in units of 1/L", above=0.0, at_most=1.0)
    l2: float = option(0.05, "pull of the weights towards zero, without which there may be no minimum", at_least=1e-6, at_most=1e6)
    epochs: int = option(10, "looks at the gap", at_least=1, at_most=10**6)
    steps: int = option(50, "updates between two looks", at_least=1, at_most=10**6)


def model(options, facts):
    from quoin.models import LinearScore

    if facts.num_classes != 2:
        raise Mistake(f"expected two classes, came {facts.num_classes}: choose other --data")
    return LinearScore(facts.num_features)


def build(options, place):
    import operator

    import torch

    from quoin import draw
    from quoin.autodiff import vjp
    from quoin.data import Batches
    from quoin.draw import Panel
    from quoin.objectives import accuracy, cross_entropy, log_loss
    from quoin.optim import GradientDescent, convex_bound, descend, logistic_constants, strongly_convex_bound
    from quoin.recipes.running.parts import classes

    if not options.shares:
        raise Mistake("--shares expects at least one learning rate, got none: give e.g. 0.1 1")
    shares = sorted(set(options.shares))
    data = classes(options, place)
    net = model(options, data.facts)
    # In float64 and on the CPU: it is the last digits that are watched. The bias is the weight of a column of ones, and decays too.
    features = data.train.features.cpu().double().flatten(1)
    X = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], dim=1)
    signs = 2.0 * data.train.targets.cpu().double() - 1
    constants = logistic_constants(X, l2=options.l2)
    rules = [GradientDescent(share / constants.smoothness) for share in shares]

    def cost(theta):
        return log_loss(signs * (X @ theta)).mean() + options.l2 / 2 * theta.square().sum()

    start = torch.zeros(X.shape[1], dtype=torch.float64)
    minimiser = least(X, signs, options.l2)
    minimum, rounding = float(cost(minimiser)), ROUNDING * float(cost(start))

    class Runs:
        """One descent for each learning rate, from the same start; a batch is an update, for each sees all the data."""

        def __init__(self):
            self.facts = data.facts
            self.batches = Batches(options.steps, 1, seed=options.seed, shuffle=False)
            self.points = [start.clone() for _ in shares]
            self.gaps = [[float(cost(start)) - minimum] for _ in shares]  # at θ_0, θ_1, ...
            self.distances = [[float((start - minimiser).norm())] for _ in shares]

        def step(self, rows):
            for k, rule in enumerate(rules):
                slope = vjp(cost, self.points[k]).product
                self.points[k], _ = rule.step(self.points[k], slope, None)
                self.gaps[k].append(float(cost(self.points[k])) - minimum)
                self.distances[k].append(float((self.points[k] - minimiser).norm()))
            return {"loss": cost(self.points[-1])}

        def bounds(self, k):
            """Both bounds on the gaps of run k; the second is below the first once the curvature of the penalty has told."""
            steps, rate = len(self.gaps[k]) - 1, rules[k].learning_rate
            convex = convex_bound(start, minimiser, steps, learning_rate=rate, smoothness=constants.smoothness)
            return convex, strongly_convex_bound(start, minimiser, steps, learning_rate=rate, constants=constants)

        def ratios(self):
            """For each run the gap over the smaller bound, at every step."""
            return [torch.tensor(gaps) / torch.minimum(*self.bounds(k)).clamp(min=rounding) for k, gaps in enumerate(self.gaps)]

        def slowest(self):
            """The same ratio, to the first bound alone, on the cost that descends slowest in as many updates at 1/L from as far."""
            steps, distance, L = len(self.gaps[0]) - 1, self.distances[0][0], constants.smoothness
            far, near = torch.tensor([distance], dtype=torch.float64), distance / (2 * steps + 1)
            run = descend(lambda x: huber_loss(x, near, L), far, GradientDescent(1 / L), steps)
            return run.values / convex_bound(far, 0 * far, steps, learning_rate=1 / L, smoothness=L)

        @torch.no_grad()
        def evaluate(self, part):
            rows = getattr(data, part)
            if rows.num_rows == 0:
                return {}
            outputs = scores(self.points[-1])(rows.features.cpu())
            targets = rows.targets.cpu()
            found = {"accuracy": accuracy(outputs.argmax(-1), targets), "loss": float(cross_entropy(outputs, targets).mean())}
            if part == "train":
                found |= {"gap": self.gaps[-1][-1], "gap_over_bound": max(float(run.max()) for run in self.ratios())}
                found["step_away"] = max(max(map(operator.sub, run[1:], run), default=0.0) for run in self.distances)
                found["slowest_over_bound"] = float(self.slowest()[-1])
            return found

        def state(self):
            weights = scores(self.points[-1]).state_dict()
            run = {"points": self.points, "gaps": self.gaps, "distances": self.distances}
            return {"model": {"weights": weights, "scales": data.scale_state()}, "runs": run, "batches": self.batches.state()}

        def load(self, state):
            self.points, self.gaps, self.distances = (state["runs"][name] for name in ("points", "gaps", "distances"))
            self.batches.load(state["batches"])

        def panels(self):
            steps = range(len(self.gaps[0]))
            if len(steps) == 1:
                return []  # no update yet
            ratios = {f"η = {share:g}/L": (steps[1:], run[1:]) for share, run in zip(shares, self.ratios())}
            away = {f"η = {share:g}/L": (steps, run) for share, run in zip(shares, self.distances)}
            told = (
                f"L = {constants.smoothness:.4g} and μ = {constants.strong_convexity:g}, computed from the {len(X)} rows and the penalty. "
                "Bounds hold for every cost with these constants; on this one descent is faster than it must be."
            )
            ratios["slowest cost, η = 1/L"] = (steps[1:], self.slowest()[1:])
            worst = (
                "The gap over the smaller bound; above 1 a theorem would be false. The slowest cost has the same L and as far to go, down "
                "a slope so gentle that it ends with the updates. It comes to half of the first bound: none for all costs can be less."
            )
            nearer = "To the minimiser, which another solver found: no step leads away from it."
            return [
                Panel("The gap and its two bounds", self.beside_bounds, told),
                Panel(
                    "How close the bounds come",
                    lambda: draw.curves(ratios, x_label="updates", y_label="gap / bound", log_x=True, log_y=True),
                    worst,
                ),
                Panel("Distance to the minimiser", lambda: draw.curves(away, x_label="updates", y_label="|θ - θ*|"), nearer),
            ]

        def beside_bounds(self):
            from quoin.draw.drawing import COLOURS, house_style, new_figure

            columns = min(3, len(shares))
            rows = -(-len(shares) // columns)
            with house_style():
                figure = new_figure(height=0.9 + 2.4 * rows)
                first = None
                for k, share in enumerate(shares):
                    axes = figure.add_subplot(rows, columns, k + 1, sharex=first, sharey=first, title=f"η = {share:g}/L", xlabel="updates")
                    first = first or axes
                    axes.grid(True)
                    axes.set(xscale="log", yscale="log", ylabel="gap" if k % columns == 0 else "")
                    convex, strong = self.bounds(k)
                    for values, dash, colour, name in (
                        (convex, "--", COLOURS[1], "|θ₀ - θ*|² / 2ηt"),
                        (strong, ":", COLOURS[2], "(L/2) (1 - ημ)²ᵗ |θ₀ - θ*|²"),
                        (torch.tensor(self.gaps[k]), "-", COLOURS[0], "C(θ) - min C"),
                    ):
                        axes.plot(range(1, len(values)), values[1:].clamp(min=rounding), dash, color=colour, label=name)
                figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
                return draw.Drawing(figure, "gap to the minimum and two bounds on it, by learning rate")

    def scores(theta):
        """The model with these weights: of its logits (-s, s) the margin is 2 y s."""
        with torch.no_grad():
            net.linear.weight.copy_(theta[None, :-1] / 2)
            net.linear.bias.copy_(theta[-1:] / 2)
        return net

    return Runs()


def huber_loss(x, near, curvature):
    """A parabola of this curvature where |x| <= near, and beyond it straight lines that go on as it ends."""
    import torch

    size = x.abs().sum()
    return curvature * torch.where(size <= near, size * size / 2, near * size - near * near / 2)


def least(X, signs, l2):
    """The minimiser of (1/n) Σ ln(1 + e^{-y x θ}) + (l2/2) |θ|², by another way than gradient descent."""
    import torch

    from quoin.objectives import log_loss
    from quoin.optim import fit_scores

    def loss(scores):
        margins = signs * scores[:, 0]
        return log_loss(margins), (-signs * torch.sigmoid(-margins))[:, None]

    weights = torch.full((len(X),), 1 / len(X), dtype=X.dtype)
    return fit_scores(X, loss, 1, curvature=0.25, weights=weights, l2=l2, bias=False, tolerance=1e-12).weight[:, 0]
