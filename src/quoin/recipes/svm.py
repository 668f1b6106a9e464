"""A linear support vector machine that tells malignant from benign tumours: the hinge loss by SGD."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("M7", "M8", "M11", "D5.2-4")
TARGET = Target("test_accuracy", at_least=0.95)
GIVES_PROBABILITIES = False  # a score tells the side and the distance, not the chance
GOAL = None  # convex, with a penalty and a rate that falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `svm`."""

    data: str = option("breast-cancer", "where the data come from: two classes by name, or csv:PATH, npz:PATH")
    epochs: int = option(50, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.05, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")
    weight_decay: float = option(1e-2, "pull of the weights towards zero: the width of the margin against its violations", at_least=0.0)


def model(options, facts):
    from quoin.models import LinearScore

    if facts.num_classes != 2:
        raise Mistake(f"expected two classes, came {facts.num_classes}: choose other --data, or train softmax-regression")
    return LinearScore(facts.num_features)


def build(options, place):
    import torch

    from quoin.objectives import hinge_loss
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification

    class Margins(Classification):
        """Classification by scores that are no probabilities: without the pictures that call them so."""

        def panels(self):
            return super().panels()[:1]

    def hinge(outputs, labels):  # (n, 2), (n,) -> (n,)
        """max(0, 1 - m): of the logits (-s, s), the right one less the other is the margin m = 2 y s."""
        right = labels.unsqueeze(-1)
        return hinge_loss((outputs.gather(-1, right) - outputs.gather(-1, 1 - right)).squeeze(-1))

    data = classes(options, place)
    net = model(options, data.facts).to(place.device)
    weights = {"params": [net.linear.weight], "weight_decay": options.weight_decay}  # the bias is free
    sgd = torch.optim.SGD([weights, {"params": [net.linear.bias]}], options.lr)
    return learner(Margins, net, hinge, sgd, data, options, place)
