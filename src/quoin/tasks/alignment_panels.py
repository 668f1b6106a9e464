"""Attention weights of a translation model's decoder over the source, for each token that it predicted.

Each kind of attention has its own: `bahdanau_alignments` of a recurrent decoder, `cross_attention_alignments` of a
Transformer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quoin import plot
from quoin.data import BOS, EOS, PairBatch, SpecialTokenTokenizer
from quoin.errors import UserError
from quoin.inspect import attention_maps, plot_attention_maps
from quoin.plot import Panel
from quoin.tasks.translation import TranslationTask, longest, translate

__all__ = ["bahdanau_alignments", "cross_attention_alignments"]


class _Translated(NamedTuple):
    """A test pair and the model's hypothesis."""

    batch: PairBatch
    read: Tensor  # (1, m): the decoder's input at each token that it predicted
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
            cache = decoder.init_cache(task.model.encode(found.batch.source, found.batch.source_lengths))
            weights = decoder.decode_step(cache, found.read).weights[0].cpu()
        try:
            content = plot.alignment(weights, found.source, found.target)
        except UserError:  # too long to be read
            continue
        panels.append(Panel(found.title, content, found.caption))
    return panels


def cross_attention_alignments(task: TranslationTask, rows: Sequence[int]) -> list[Panel]:
    """A panel for each of these test pairs that is short enough to be read, and for the first of them every head."""
    panels = []
    for row in rows:
        found = _translated(task, row)
        try:
            maps = attention_maps(task.model, found.batch.source, found.read)
            maps = [
                each.labeled(found.target, found.source) for each in maps if each.layer.endswith(".cross_attention")
            ]
            content = plot.alignment(maps[-1].weights.mean(dim=0), found.source, found.target)
        except UserError:  # too long to be read
            continue
        panels.append(
            Panel(found.title, content, f"{found.caption} The mean over the heads of the decoder's last block.")
        )
        if len(panels) == 1:
            caption = (
                "A row for each block of the decoder, a map for each head: the hypothesis, downwards, by the source."
            )
            panels.append(Panel(f"{found.title}, head by head", plot_attention_maps(maps), caption))
    return panels


def _translated(task: TranslationTask, row: int) -> _Translated:
    corpus = task.corpus
    batch = corpus.test.read(torch.tensor([row]))
    hypothesis = translate(
        task.model,
        batch.source,
        batch.source_lengths,
        num_beams=task.options.num_beams,
        max_tokens=longest(task.data_info),
    ).tokens
    reference, got = corpus.test.pairs.targets[row], corpus.target_tokenizer.decode(hypothesis[0])
    verdict = "an exact match" if got == reference else f"the reference is {reference}"
    return _Translated(
        batch,
        torch.cat([torch.full_like(hypothesis[:, :1], BOS), hypothesis[:, :-1]], dim=1),
        _names(corpus.source_tokenizer, batch.source[0]),
        _names(corpus.target_tokenizer, hypothesis[0]),
        f"Attention weights: {corpus.test.pairs.sources[row]}",
        f"Hypothesis: {got}; {verdict}.",
    )


def _names(tokenizer: SpecialTokenTokenizer, tokens: Tensor) -> list[str]:
    return ["EOS" if token == EOS else tokenizer.decode([token]) for token in tokens.tolist()]
