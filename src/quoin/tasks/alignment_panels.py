"""Where the decoder of a translation model looked in the source before each token that it said.

How it tells depends on its attention: `bahdanau_alignments` of a recurrent decoder, `cross_attention_alignments` of a Transformer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quoin import plot
from quoin.data import BOS, EOS, PairBatch, PairVocabulary
from quoin.errors import Mistake
from quoin.inspect import attention_maps, draw_attention_maps
from quoin.plot import Panel
from quoin.tasks.translation import TranslationTask, longest, say

__all__ = ["bahdanau_alignments", "cross_attention_alignments"]


class _Translated(NamedTuple):
    """A test pair and what the model said to its source."""

    batch: PairBatch
    read: Tensor  # (1, m): what the decoder had read before each token that it said
    source: list[str]
    target: list[str]
    title: str
    caption: str


def bahdanau_alignments(task: TranslationTask, rows: Sequence[int]) -> list[Panel]:
    """A panel for each of these test pairs that is short enough to be read."""
    panels, decoder = [], task.model.decoder
    for row in rows:
        found = _translated(task, row)
        with torch.no_grad():
            cache = decoder.start(task.model.encode(found.batch.source, found.batch.source_lengths))
            weights = decoder.step(cache, found.read).weights[0].cpu()
        try:
            drawing = plot.alignment(weights, found.source, found.target)
        except Mistake:  # too long to be read
            continue
        panels.append(Panel(found.title, drawing, found.caption))
    return panels


def cross_attention_alignments(task: TranslationTask, rows: Sequence[int]) -> list[Panel]:
    """A panel for each of these test pairs that is short enough to be read, and for the first of them every head."""
    panels = []
    for row in rows:
        found = _translated(task, row)
        try:
            maps = attention_maps(task.model, found.batch.source, found.read)
            maps = [each.labelled(found.target, found.source) for each in maps if each.path.endswith(".cross")]
            drawing = plot.alignment(maps[-1].weights.mean(dim=0), found.source, found.target)
        except Mistake:  # too long to be read
            continue
        panels.append(Panel(found.title, drawing, f"{found.caption} The mean over the heads of the decoder's last block."))
        if len(panels) == 1:
            caption = "A row for each block of the decoder, a map for each head: what it said, downwards, by the source."
            panels.append(Panel(f"{found.title}, head by head", draw_attention_maps(maps), caption))
    return panels


def _translated(task: TranslationTask, row: int) -> _Translated:
    corpus = task.corpus
    batch = corpus.test.read(torch.tensor([row]))
    said = say(task.model, batch.source, batch.source_lengths, beam=task.options.beam, max_tokens=longest(task.facts)).tokens
    right, got = corpus.test.pairs.targets[row], corpus.target_vocabulary.decode(said[0])
    told = "as it should be" if got == right else f"where {right} would be right"
    return _Translated(
        batch,
        torch.cat([torch.full_like(said[:, :1], BOS), said[:, :-1]], dim=1),
        _names(corpus.source_vocabulary, batch.source[0]),
        _names(corpus.target_vocabulary, said[0]),
        f"Where it looked: {corpus.test.pairs.sources[row]}",
        f"It said {got}, {told}.",
    )


def _names(vocabulary: PairVocabulary, tokens: Tensor) -> list[str]:
    return ["end" if token == EOS else vocabulary.decode([token]) for token in tokens.tolist()]
