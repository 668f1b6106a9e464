"""A Transformer, encoder and decoder, says numbers in words: it must find out which digit to look at before each word."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.recipes.running.options import TranslationOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("M13", "M14", "Z11.T")
TARGET = Target("test_exact", at_least=0.98)
GOAL = Goal("validation_exact", larger_is_better=True)


@dataclass(frozen=True)
class Options(TranslationOptions):
    """Options of the recipe `translate-numbers`."""

    data: str = option("numbers", "the pairs: dates, numbers, or tsv:PATH with a source, a tab and its translation in each line")
    target_vocabulary: Literal["characters", "words", "bytes", "bpe"] = option("words", "what a token of the target is")
    epochs: int = option(8, "passes over the training pairs", at_least=1, at_most=10**9)
    width: int = option(64, "numbers that stand for a token on its way", at_least=2, at_most=100_000)
    heads: int = option(4, "attention heads of a block; they divide the width", at_least=1, at_most=10_000)
    layers: int = option(2, "blocks of the encoder, and as many of the decoder", at_least=1, at_most=1000)
    dropout: float = option(0.0, "share of what each part adds that is left out while learning", at_least=0.0, below=1.0)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.layers import decoder_block, transformer_block
    from quoin.models import Transformer

    generator = keyed_generator("weights", options.seed)

    def blocks(block):
        return [block(options.width, options.heads, dropout=options.dropout, generator=generator) for _ in range(options.layers)]

    return Transformer(
        facts.source_tokens.size,
        facts.target_tokens.size,
        blocks(transformer_block),
        blocks(decoder_block),
        dropout=options.dropout,
        generator=generator,
    )


def build(options, place):
    from quoin.recipes.running.translation import translation_task

    return translation_task(model, options, place, look=look)


def look(task, rows):
    """Where the decoder looked in the source before each token that it said to these test pairs, and for one of them every head."""
    import torch

    from quoin import draw
    from quoin.data import BOS, EOS
    from quoin.draw import Panel
    from quoin.errors import Mistake
    from quoin.inspect import attention_maps, draw_attention_maps
    from quoin.recipes.running.translation_run import longest, say

    corpus, panels = task.corpus, []

    def named(vocabulary, tokens):
        return ["end" if token == EOS else vocabulary.decode([token]) for token in tokens.tolist()]

    for row in rows:
        batch = corpus.test.read(torch.tensor([row]))
        said = say(task.model, batch.source, batch.source_lengths, beam=task.options.beam, max_tokens=longest(task.facts)).tokens
        read = torch.cat([torch.full_like(said[:, :1], BOS), said[:, :-1]], dim=1)
        source, target = named(corpus.source_vocabulary, batch.source[0]), named(corpus.target_vocabulary, said[0])
        try:
            found = attention_maps(task.model, batch.source, read)
            maps = [each.labelled(target, source) for each in found if each.path.endswith(".cross")]
            drawing = draw.alignment(maps[-1].weights.mean(dim=0), source, target)
        except Mistake:  # too long to be read
            continue
        right, got = corpus.test.pairs.targets[row], corpus.target_vocabulary.decode(said[0])
        told = "as it should be" if got == right else f"where {right} would be right"
        title = f"Where it looked: {corpus.test.pairs.sources[row]}"
        panels.append(Panel(title, drawing, f"It said {got}, {told}. The mean over the heads of the decoder's last block."))
        if len(panels) == 1:
            caption = "A row for each block of the decoder, a map for each head: what it said, downwards, by the source."
            panels.append(Panel(f"{title}, head by head", draw_attention_maps(maps), caption))
    return panels
