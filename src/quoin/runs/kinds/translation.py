"""Trained to translate; its vocabularies with it, its pairs gone."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from quoin.data import PAD, PairFacts, PairVocabulary, load_text, pad_sequences
from quoin.data.padding import batches_by_length
from quoin.errors import Mistake, shown
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile
from quoin.tasks.translation import longest, say

__all__ = ["TrainedTranslator", "Translation"]


class Translation(NamedTuple):
    """What a model says to one sentence."""

    text: str
    ended: bool  # False where it found no end within the most tokens that are said, and was cut there


class TrainedTranslator(Trained):
    """A model of pairs, with what the tokens of both sides stand for."""

    data_info = PairFacts
    is_a = "translates sentences"
    facts: PairFacts

    def predict_file(self, path: Path) -> PredictedFile:
        """A sentence in each line of the file, its translation in each line of the answer."""
        said, notes = self.predict(load_text(f"text:{path}").content.splitlines()), []
        if cut := [number for number, each in enumerate(said, 1) if not each.ended]:
            lines = f"{len(cut)} of {len(said)} translations, the first in line {cut[0]}"
            notes = [f"{lines}, found no end and were cut at the most tokens that are said"]
        return PredictedFile("".join(f"{each.text}\n" for each in said), f"{len(said)} translations", notes, None)

    def predict(self, sentences: Sequence[str], *, beam: int | None = None) -> list[Translation]:
        """Each sentence as the model says it."""
        width: int = self.options.beam if beam is None else beam
        rows = [encode_source(self.facts.source_tokens, sentence, number) for number, sentence in enumerate(sentences, 1)]
        said: dict[int, Translation] = {}
        for some in batches_by_length([len(row) for row in rows]):
            padded = pad_sequences([rows[row] for row in some], PAD)
            found = say(self.model, *padded, beam=width, max_tokens=longest(self.facts))
            for row, tokens, ended in zip(some.tolist(), found.tokens, found.ended.tolist()):
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
