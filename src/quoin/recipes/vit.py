"""A Vision Transformer that reads handwritten digits: each is cut into small patches, and every patch looks at all patches."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import AugmentOptions, DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z11.T",)
TARGET = Target("test_accuracy", at_least=0.95)
GOAL = None  # the rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(AugmentOptions, DataOptions, DescentOptions):
    """Options of the recipe `vit`."""

    side: int = option(2, "pixels along the side of a patch, which divides that of the images", at_least=1, at_most=1_000_000)
    width: int = option(48, "numbers that stand for a patch on its way", at_least=1, at_most=1_000_000)
    heads: int = option(4, "attention heads of a block; they divide the width", at_least=1, at_most=1_000_000)
    layers: int = option(2, "blocks of attention and perceptron", at_least=1, at_most=1000)
    dropout: float = option(0.1, "share of what each part adds that is left out in training", at_least=0.0, below=1.0)
    epochs: int = option(40, "passes over the training data", at_least=1, at_most=10**9)
    batch_size: int = option(64, "examples per update, over all devices together", at_least=1, at_most=10**9)
    lr: float = option(3e-3, "the learning rate at its height", above=0.0, at_most=1e38)
    warm_up: float = option(0.1, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")
    weight_decay: float = option(0.5, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import ViT

    return ViT(
        facts.feature_shape,
        facts.num_classes,
        side=options.side,
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
