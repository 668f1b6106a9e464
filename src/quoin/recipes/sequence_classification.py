"""Classify texts of different lengths; in those that are generated the order of the symbols alone tells, and the best accuracy is known."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.recipes.running.options import DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z10", "Z11.T", "Z11.18p", "D5.1-2")
# By how much less of the test texts it classifies than Bayes' rule does, which knows the chain. Nobody stays below 0 but by luck.
TARGET = Target("test_shortfall", at_most=0.02)
GOAL = None  # the rate falls to zero: the last weights are the best
READERS = ("recurrent", "transformer", "bag")


@dataclass(frozen=True)
class Options(DescentOptions):
    """Options of the recipe `sequence-classification`."""

    data: str = option("directions", "the texts: directions, or tsv:PATH with a text, a tab and its class in each line")
    reader: Literal["recurrent", "transformer", "bag"] = option("recurrent", "the model that is kept; bag knows no order")
    rivals: bool = option(True, "train the other readers beside it, for the report")
    texts: int = option(10_000, "texts to draw, where they are generated", at_least=10, at_most=1_000_000)
    symbols: int = option(8, "different symbols of generated texts", at_least=2, at_most=1000)
    sharpness: float = option(0.7, "the larger, the sooner a generated text tells its class", at_least=0.0, at_most=100.0)
    longest: int = option(40, "symbols of the longest generated text", at_least=4, at_most=100_000)
    vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("characters", "what a token is")
    vocabulary_size: int = option(2000, "the most tokens of a vocabulary of words or byte pairs", at_least=1, at_most=10**7)
    width: int = option(32, "numbers that stand for a token", at_least=2, at_most=100_000)
    hidden: int = option(32, "units of the recurrent reader in each direction", at_least=1, at_most=100_000)
    heads: int = option(2, "attention heads of the Transformer; they divide the width", at_least=1, at_most=10_000)
    layers: int = option(1, "layers of cells, or blocks of the Transformer", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of the numbers that is left out while learning", at_least=0.0, below=1.0)
    epochs: int = option(5, "passes over the training texts", at_least=1, at_most=10**9)
    batch_size: int = option(64, "texts per update", at_least=1, at_most=10**9)
    lr: float = option(0.005, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")
    warm_up: float = option(0.05, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    clip: float = option(1.0, "bound on the norm of the gradient; 0 sets none", at_least=0.0)
    weight_decay: float = option(0.01, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


def model(options, facts):
    return classifier(options.reader, options, facts)


def classifier(name, options, facts):
    """The classifier that reads in this way."""
    from torch import nn

    from quoin.data import keyed_generator
    from quoin.errors import Mistake
    from quoin.layers import Rotary, transformer_block
    from quoin.models import BagReader, RecurrentReader, SequenceClassifier, TransformerReader

    size, width, dropout = facts.vocabulary.size, options.width, options.dropout
    generator = keyed_generator("weights", name, options.seed)
    if name == "bag":
        reader = BagReader(size, width, generator=generator)
    elif name == "recurrent":
        reader = RecurrentReader(nn.GRU, size, width, options.hidden, layers=options.layers, dropout=dropout, generator=generator)
    else:
        if width % (2 * options.heads):
            raise Mistake(f"--width expects a multiple of twice the heads, {2 * options.heads}, got {width}: choose another")
        turn = Rotary(width // options.heads)  # it tells before from behind, as codes that are added do only after long learning
        blocks = [transformer_block(width, options.heads, turn=turn, dropout=dropout, generator=generator) for _ in range(options.layers)]
        reader = TransformerReader(size, blocks, dropout=dropout, generator=generator)
    return SequenceClassifier(reader, facts.num_classes, generator=generator)


def build(options, place):
    from quoin.data import directions, keyed_generator, label_corpus, labelled_facts, load_pairs
    from quoin.errors import Mistake, shown
    from quoin.recipes.running.labelling import LabellingTask

    posterior = None
    if options.data == "directions":
        source = directions(options.symbols, sharpness=options.sharpness, generator=keyed_generator("source", options.seed))
        drawn = keyed_generator("texts", options.seed)
        pairs = source.draw(options.texts, shortest=options.longest // 4, longest=options.longest, generator=drawn)
        posterior = source.posterior
    elif options.data.startswith("tsv:"):
        pairs = load_pairs(options.data)
    else:
        raise Mistake(f"expected texts with their classes, got the data source {shown(options.data)}: give directions or tsv:PATH")
    corpus = label_corpus(pairs, tokens=options.vocabulary, size=options.vocabulary_size, seed=options.seed, device=place.device)
    facts = labelled_facts(corpus)
    names = [options.reader, *(name for name in READERS if options.rivals and name != options.reader)]
    models = {name: classifier(name, options, facts) for name in names}
    return LabellingTask(models, options.reader, corpus, options, place, posterior)
