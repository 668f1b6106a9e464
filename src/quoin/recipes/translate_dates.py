"""A recurrent encoder and a decoder that looks back at the source turn dates as people write them into ISO dates."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.recipes.running.options import TranslationOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("M13", "M14", "Z10", "Z11.23")
TARGET = Target("test_exact", at_least=0.98)
GOAL = Goal("validation_loss")  # the share that is right is soon 1, and tells no better from a good one


@dataclass(frozen=True)
class Options(TranslationOptions):
    """Options of the recipe `translate-dates`."""

    epochs: int = option(5, "passes over the training pairs", at_least=1, at_most=10**9)
    cell: Literal["gru", "lstm"] = option("gru", "the cell of encoder and decoder")
    attention: bool = option(True, "look back at the source before each token; otherwise its last state is all the decoder gets")
    width: int = option(32, "numbers that stand for a token", at_least=1, at_most=100_000)
    hidden: int = option(96, "units of each layer and direction", at_least=1, at_most=100_000)
    layers: int = option(1, "layers of cells", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of the numbers between layers that is left out while learning", at_least=0.0, below=1.0)


def model(options, facts):
    from torch import nn

    from quoin.data import EOS, keyed_generator
    from quoin.models import BahdanauDecoder, PlainDecoder, RecurrentEncoder, Seq2Seq

    cell = {"gru": nn.GRU, "lstm": nn.LSTM}[options.cell]
    generator = keyed_generator("weights", options.seed)
    how = {"layers": options.layers, "dropout": options.dropout, "generator": generator}
    encoder = RecurrentEncoder(cell, facts.source_tokens.size, options.width, options.hidden, **how)
    sizes = (cell, facts.target_tokens.size, options.width, options.hidden)
    # Of the marks only the end is said: those before it, padding and beginning, have no chance.
    if options.attention:
        return Seq2Seq(encoder, BahdanauDecoder(*sizes, encoder.width, silent=EOS, **how))
    return Seq2Seq(encoder, PlainDecoder(*sizes, silent=EOS, **how))


def build(options, place):
    from quoin.recipes.running.translation import translation_task

    return translation_task(model, options, place, look=look)


def look(task, rows):
    """Where the decoder looked before each character that it said to the sources of these test pairs."""
    import torch

    from quoin import draw
    from quoin.data import BOS, EOS
    from quoin.draw import Panel
    from quoin.errors import Mistake
    from quoin.recipes.running.translation_run import longest, say

    if not task.options.attention:
        return []
    panels = []
    for row in rows:
        batch = task.corpus.test.read(torch.tensor([row]))
        said = say(task.model, batch.source, batch.source_lengths, beam=task.options.beam, max_tokens=longest(task.facts))
        read = torch.cat([torch.full_like(said.tokens[:, :1], BOS), said.tokens[:, :-1]], dim=1)
        decoder = task.model.decoder
        with torch.no_grad():
            weights = decoder.step(decoder.start(task.model.encode(batch.source, batch.source_lengths)), read).weights[0].cpu()
        names = [
            ["end" if token == EOS else words.decode([token]) for token in tokens]
            for words, tokens in (
                (task.corpus.source_vocabulary, batch.source[0].tolist()),
                (task.corpus.target_vocabulary, said.tokens[0].tolist()),
            )
        ]
        right, got = task.corpus.test.pairs.targets[row], task.corpus.target_vocabulary.decode(said.tokens[0])
        told = "as it should be" if got == right else f"where {right} would be right"
        try:
            drawing = draw.alignment(weights, *names)
        except Mistake:  # too long to be read
            continue
        panels.append(Panel(f"Where it looked: {task.corpus.test.pairs.sources[row]}", drawing, f"It said {got}, {told}."))
    return panels
