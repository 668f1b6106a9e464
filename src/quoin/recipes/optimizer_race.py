"""Six update rules race on one perceptron, each at the best of a few rates: how the loss falls, by updates and by seconds."""

import math
import time
from dataclasses import dataclass
from statistics import fmean

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, RunOptions
from quoin.recipes.running.target import Target

NOTES = ("D1.5-4", "D1.5-6", "D1.5-7", "D1.5-8", "D1.5-10")
# Of the rule that ends worst, at the rate that validation chose for it: with a rate that suits it, each of the six reads the digits.
TARGET = Target("test_least_accuracy", at_least=0.95)
GOAL = None  # all are compared as they end

RULES = {"sgd": "SGD", "momentum": "momentum", "nesterov": "Nesterov", "rmsprop": "RMSProp", "adam": "Adam", "adamw": "AdamW"}
ADAPTIVE = {"rmsprop", "adam", "adamw"}  # they divide the gradient by its size: their rates are in another unit


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    """Options of the recipe `optimizer-race`."""

    hidden: tuple[int, ...] = option((128,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    rates: tuple[float, ...] = option((0.01, 0.03, 0.1, 0.3, 1.0), "rates that SGD, momentum and Nesterov try", above=0.0, at_most=1e38)
    adaptive_rates: tuple[float, ...] = option((0.001, 0.003, 0.01, 0.03), "rates that RMSProp and both Adams try", above=0.0, at_most=1e38)
    momentum: float = option(0.9, "share of the last step that momentum and Nesterov keep", above=0.0, below=1.0)
    decay: float = option(0.1, "AdamW's pull of the weights towards zero", at_least=0.0, at_most=1e6)
    level: float = option(0.1, "the training loss, over an epoch of updates, to which updates are counted", above=0.0)
    epochs: int = option(15, "passes over the training data", at_least=1, at_most=10**9)
    batch_size: int = option(32, "examples per update", at_least=1, at_most=10**9)


def model(options, facts):
    """The perceptron that all begin with; what the run keeps to predict with is that of the least validation loss."""
    from quoin.data import keyed_generator
    from quoin.models import MLP

    return MLP([facts.num_features, *options.hidden, facts.num_classes], generator=keyed_generator("weights", options.seed))


def optimiser(rule, parameters, rate, options):
    """The rule as torch takes it, always by its plain loop: RMSProp has no fused one, and seconds are to compare rules."""
    from torch import optim

    match rule:
        case "sgd":
            return optim.SGD(parameters, rate, foreach=False)
        case "momentum":
            return optim.SGD(parameters, rate, momentum=options.momentum, foreach=False)
        case "nesterov":
            return optim.SGD(parameters, rate, momentum=options.momentum, nesterov=True, foreach=False)
        case "rmsprop":
            return optim.RMSprop(parameters, rate, foreach=False)
        case "adam":
            return optim.Adam(parameters, rate, foreach=False)
        case "adamw":
            return optim.AdamW(parameters, rate, weight_decay=options.decay, foreach=False)
    raise AssertionError(rule)


class Runner:
    """One rule at one rate: the task it learns by and what was seen of it. It is out of the race once a number of it is not finite."""

    def __init__(self, rule, rate, task):
        self.rule, self.rate, self.task = rule, rate, task
        self.losses = []  # the mean over the batch, at each update
        self.judged = []  # the loss on the validation rows, after each epoch
        self.seconds = 0.0  # spent in updates. No metric: no two runs agree on it
        self.out = False

    def learn(self, rows):
        began = time.perf_counter()
        loss = self.attempt(lambda: float(self.task.step(rows)["loss"]) / len(rows))
        self.seconds += time.perf_counter() - began
        self.losses += [] if self.out else [loss]

    def judge(self, part):
        loss = self.attempt(lambda: self.task.evaluate(part)["loss"])
        self.judged += [] if self.out else [loss]

    def attempt(self, measure):
        from quoin.train import Diverged

        try:
            found = measure()
        except Diverged:
            found = math.nan
        self.out = isinstance(found, float) and not math.isfinite(found)
        return found

    @property
    def standing(self):
        """What the best is chosen by: the last validation loss or, before there is one, the last training loss."""
        return (self.judged or self.losses or [0.0])[-1]

    @property
    def pace(self):
        """Seconds an update."""
        return self.seconds / len(self.losses)

    def updates_to(self, level, window):
        """Updates until the mean loss of the last `window` was at most `level`, or all that were made if it never was."""
        ends = range(window, len(self.losses) + 1)
        return next((end for end in ends if fmean(self.losses[end - window : end]) <= level), len(self.losses))

    def state(self):
        task = None if self.out else self.attempt(self.task.state)  # a step after a finite loss may have overflowed
        told = {"losses": self.losses, "judged": self.judged, "seconds": self.seconds, "out": self.out}
        return told | {"task": None if self.out else task}

    def load(self, state):
        self.losses, self.judged, self.seconds, self.out = (state[name] for name in ("losses", "judged", "seconds", "out"))
        if not self.out:
            self.task.load(state["task"])


def build(options, place):
    import torch

    from quoin.data import Batches
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification, Diverged

    data = classes(options, place)
    judged_on = "validation" if data.validation.num_rows else "train"
    own = DescentOptions(seed=options.seed, epochs=options.epochs, batch_size=options.batch_size)
    tried = {rule: checked_rates("adaptive_rates" if rule in ADAPTIVE else "rates", options) for rule in RULES}

    def runner(rule, rate):
        net = model(options, data.facts).to(place.device)
        steps = optimiser(rule, net.parameters(), rate, options)
        return Runner(rule, rate, learner(Classification, net, cross_entropy, steps, data, own, place))

    class Race:
        """Every rule at every one of its rates, from the same weights, on the same batches."""

        def __init__(self):
            self.facts = data.facts
            self.batches = Batches(data.train.num_rows, options.batch_size, seed=options.seed, device=place.device)
            self.runners = [runner(rule, rate) for rule, rates in tried.items() for rate in rates]

        def step(self, rows):
            for each in self.running():
                each.learn(rows)
            if self.batches.position == self.batches.num_batches:
                for each in self.running():
                    each.judge(judged_on)
            return {"loss": torch.tensor(self.winner().losses[-1] * len(rows))}

        def running(self):
            return [each for each in self.runners if not each.out]

        def chosen(self):
            """For each rule the runner at the rate that stands best so far."""
            found = {rule: [each for each in self.running() if each.rule == rule] for rule in RULES}
            if lost := [rule for rule, left in found.items() if not left]:
                flag = "--adaptive-rates" if lost[0] in ADAPTIVE else "--rates"
                raise Diverged(f"the loss of {RULES[lost[0]]} is not finite at any of its rates; try smaller {flag}")
            return {rule: min(left, key=lambda each: each.standing) for rule, left in found.items()}

        def winner(self):
            return min(self.chosen().values(), key=lambda each: each.standing)

        def evaluate(self, part):
            best, chosen = self.winner(), self.chosen()
            found = {rule: each.task.evaluate(part) for rule, each in chosen.items()}
            if not found[best.rule]:
                return {}
            accuracies = {f"accuracy_{rule}": value["accuracy"] for rule, value in found.items()}
            told = found[best.rule] | accuracies | {"least_accuracy": min(accuracies.values())}
            if part == "train":
                told |= {f"rate_{rule}": each.rate for rule, each in chosen.items()}
                window = self.batches.num_batches
                told |= {f"updates_{rule}": float(each.updates_to(options.level, window)) for rule, each in chosen.items()}
            return told

        def state(self):
            runners = [each.state() for each in self.runners]
            model = self.winner().task.state()["model"]
            return {"model": model, "runners": runners, "batches": self.batches.state()}

        def load(self, state):
            for each, saved in zip(self.runners, state["runners"], strict=True):
                each.load(saved)
            self.batches.load(state["batches"])

        def panels(self):
            return pictures(self.chosen(), self.runners, self.batches.num_batches, options) + self.winner().task.panels()

    return Race()


def checked_rates(name, options):
    """The rates of an option in order, each once."""
    from quoin.options import flag_name

    if not getattr(options, name):
        raise Mistake(f"{flag_name(name)} expects at least one rate, got none: give e.g. 0.01 0.1")
    return sorted(set(getattr(options, name)))


def pictures(chosen, runners, window, options):
    """The race by updates and by seconds, and what each rate came to."""
    from quoin import draw
    from quoin.draw import Panel

    if not all(each.losses for each in chosen.values()):
        return []
    by_updates, by_seconds, by_rate = {}, {}, {}
    for rule, each in chosen.items():
        ends, means = smoothed(each.losses, window)
        by_updates[f"{RULES[rule]}, rate {each.rate:g}"] = ends, means
        by_seconds[f"{RULES[rule]}, rate {each.rate:g}"] = [end * each.pace for end in ends], means
        left = [other for other in runners if other.rule == rule and not other.out]
        by_rate[RULES[rule]] = [other.rate for other in left], [other.standing for other in left]
    needed = ", ".join(f"{RULES[rule]} {each.updates_to(options.level, window)}" for rule, each in chosen.items())
    paces = ", ".join(f"{RULES[rule]} {1e6 * each.pace:.0f}" for rule, each in chosen.items())
    best = [each.standing for each in chosen.values()]
    among_rates = max(factor(losses) for _, losses in by_rate.values())
    updates = f"Mean training loss of {window} updates, each rule at the rate validation chose. Updates to {options.level:g}: {needed}."
    clock = f"The same curves by the time spent in updates. Microseconds an update, by torch's plain loop for all: {paces}."
    rates = (
        f"The last validation loss of all {len(runners)} runners but those that diverged. Among rules at their best rates it differs by a "
        f"factor of {factor(best):.2g}, among the rates of one rule by up to {among_rates:.2g}."
    )
    levels = {"level": options.level}
    return [
        Panel(
            "Loss by updates",
            lambda: draw.curves(by_updates, x_label="updates", y_label="training loss", log_y=True, levels=levels),
            updates,
        ),
        Panel(
            "Loss by seconds", lambda: draw.curves(by_seconds, x_label="seconds", y_label="training loss", log_y=True, levels=levels), clock
        ),
        Panel("Every rate tried", lambda: draw.curves(by_rate, x_label="rate", y_label="validation loss", log_x=True, log_y=True), rates),
    ]


def factor(losses):
    """How many times the largest loss is the smallest; data that are learnt perfectly have losses of 0."""
    return max(losses) / min(losses) if min(losses) > 0 else 1.0 if max(losses) == 0 else math.inf


def smoothed(losses, window):
    """The numbers of the updates at which a mean over the last `window` is drawn, four an epoch, and these means."""
    ends = list(range(min(window, len(losses)), len(losses) + 1, max(1, window // 4)))
    return ends, [fmean(losses[max(0, end - window) : end]) for end in ends]
