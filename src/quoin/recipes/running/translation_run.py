"""Translating with a model, and a trained one opened again: its vocabularies with it, its pairs gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from quoin.data import BOS, EOS, PAD, PairFacts, PairVocabulary, pad_sequences
from quoin.errors import Mistake, shown
from quoin.generate import Generated, beam_search, greedy
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.run import best_model, open_one
from quoin.train import RunFolder

__all__ = ["Translation", "TranslationRun", "is_translation_run", "open_translation_run", "say"]

AT_ONCE = 512  # sources that are translated together


class Translation(NamedTuple):
    """What a model says to one sentence."""

    text: str
    ended: bool  # False where it found no end within the most tokens that are said, and was cut there


@torch.no_grad()
def say(model: Any, source: Tensor, lengths: Tensor, *, beam: int, max_tokens: int) -> Generated:  # (b, n), (b,)
    """The targets that the model gives to sources: greedily, or the best of each source's beam."""
    model.eval()
    prompt = torch.full((len(source), 1), BOS, device=source.device)
    state = model.start(model.encode(source, lengths), max_tokens)
    if beam == 1:
        return greedy(model, state, prompt, max_tokens=max_tokens, end=EOS)
    found = beam_search(model, state, prompt, width=beam, max_tokens=max_tokens, end=EOS)
    return Generated(found.tokens[:, 0], found.lengths[:, 0], found.log_probs[:, 0], found.ended[:, 0])


@dataclass(frozen=True)
class TranslationRun:
    """A run's model with what the tokens of both sides stand for."""

    folder: RunFolder
    recipe: Recipe
    options: Any
    facts: PairFacts
    model: nn.Module
    step: int

    def translate(self, sentences: Sequence[str], *, beam: int | None = None) -> list[Translation]:
        """Each sentence as the model says it."""
        width: int = self.options.beam if beam is None else beam
        rows = [encode_source(self.facts.source_tokens, sentence, number) for number, sentence in enumerate(sentences, 1)]
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))  # so that little is padded
        said: dict[int, Translation] = {}
        for start in range(0, len(rows), AT_ONCE):
            some = order[start : start + AT_ONCE]
            padded = pad_sequences([rows[row] for row in some], PAD)
            found = say(self.model, *padded, beam=width, max_tokens=longest(self.facts))
            for row, tokens, ended in zip(some, found.tokens, found.ended.tolist()):
                said[row] = Translation(self.facts.target_tokens.decode(tokens), ended)
        return [said[row] for row in range(len(rows))]


def encode_source(vocabulary: PairVocabulary, sentence: str, number: int) -> Tensor:
    """The tokens of sentence `number`, counted from 1."""
    if not sentence.strip():
        raise Mistake(f"expected a sentence to translate in line {number}, got an empty one: fill it in or leave it out")
    try:
        return vocabulary.encode(sentence)
    except Mistake as mistake:
        raise Mistake(f"line {number}, {shown(sentence)}: {mistake}") from None


def longest(facts: PairFacts) -> int:
    """The most tokens that are said: twice as many as the longest target that was learnt from has."""
    return 2 * facts.longest_target


def is_translation_run(folder: RunFolder) -> bool:
    """Whether the folder's run learnt from pairs of sentences."""
    return isinstance(data := folder.config["data"], dict) and {"source_vocabulary", "target_vocabulary"} <= data.keys()


def open_translation_run(path: Path | str, *, step: int | None = None) -> TranslationRun:
    """The best model of the translation run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    if not is_translation_run(folder):
        came = f"{shown(str(path))} is one of {folder.recipe}"
        raise Mistake(f"expected the run of a translation model, such as translate-dates, but {came}: give another")
    facts = folder.facts(PairFacts)
    best = best_model(folder, facts, step)
    return TranslationRun(folder, best.recipe, best.options, facts, best.model, best.step)
