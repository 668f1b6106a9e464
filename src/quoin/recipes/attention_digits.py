"""A self-attention classifier that reads handwritten digits row by row: every row looks at all rows."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import AugmentOptions, DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("D2.2-5", "D2.2-6", "D2.2-9", "Z11.17", "D3-4", "D3-6")
TARGET = Target("test_accuracy", at_least=0.96)
GOAL = None  # the rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AugmentOptions, DataOptions, DescentOptions):
    """Options of the recipe `attention-digits`."""

    width: int = option(64, "features of a row between the layers", at_least=1, at_most=1_000_000)
    heads: int = option(4, "heads of each attention; they share the width out", at_least=1, at_most=1_000_000)
    layers: int = option(2, "attentions, one after another", at_least=1, at_most=1000)
    dropout: float = option(0.1, "probability with which a feature is silent in training", at_least=0.0, below=1.0)
    epochs: int = option(40, "passes over the training data", at_least=1, at_most=10**9)
    batch_size: int = option(64, "examples per update, over all devices together", at_least=1, at_most=10**9)
    lr: float = option(3e-3, "the learning rate at its height", above=0.0, at_most=1e38)
    warm_up: float = option(0.1, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")
    weight_decay: float = option(0.5, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import AttentionClassifier

    return AttentionClassifier(
        facts.feature_shape,
        facts.num_classes,
        width=options.width,
        heads=options.heads,
        layers=options.layers,
        dropout=options.dropout,
        generator=keyed_generator("weights", options.seed),
    )


def build(options, place):
    import torch

    from quoin.objectives import cross_entropy
    from quoin.recipes.running.images import augmentation
    from quoin.recipes.running.parts import images, learner
    from quoin.train import Classification

    data = images(options, place)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.AdamW(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return learner(Classification, net, cross_entropy, adam, data, options, place, augment=augmentation(options, data))
