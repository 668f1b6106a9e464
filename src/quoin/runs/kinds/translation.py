"""A trained translation model with its tokenizers, without its pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

from quoin.data import PAD, PairInfo, SpecialTokenTokenizer, load_text, pad_sequences
from quoin.data.padding import batches_by_length
from quoin.errors import UserError, format_value
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile
from quoin.tasks.translation import longest, translate

__all__ = ["TrainedTranslator", "Translation"]


class Translation(NamedTuple):
    """The translation of one sentence."""

    text: str
    ended: bool  # False where it has no EOS within the maximum number of tokens, and was cut there


class TrainedTranslator(Trained):
    """A model of pairs, with what the tokens of both sides stand for."""

    data_info_class = PairInfo
    is_a = "translates sentences"
    data_info: PairInfo

    def predict_file(self, path: Path) -> PredictedFile:
        """A sentence in each line of the file, its translation in each line of the answer."""
        translations, notes = self.predict(load_text(f"text:{path}").content.splitlines()), []
        if cut := [number for number, each in enumerate(translations, 1) if not each.ended]:
            lines = f"{len(cut)} of {len(translations)} translations, the first in line {cut[0]}"
            notes = [f"{lines}, had no EOS and were cut at the maximum number of tokens"]
        return PredictedFile(
            "".join(f"{each.text}\n" for each in translations), f"{len(translations)} translations", notes, None
        )

    def predict(self, sentences: Sequence[str], *, num_beams: int | None = None) -> list[Translation]:
        """The translation of each sentence."""
        beams: int = self.options.num_beams if num_beams is None else num_beams
        rows = [
            encode_source(self.data_info.source_tokenizer, sentence, number)
            for number, sentence in enumerate(sentences, 1)
        ]
        found_by_row: dict[int, Translation] = {}
        for some in batches_by_length([len(row) for row in rows]):
            padded = pad_sequences([rows[row] for row in some], PAD)
            found = translate(self.model, *padded, num_beams=beams, max_tokens=longest(self.data_info))
            for row, tokens, ended in zip(some.tolist(), found.tokens, found.ended.tolist()):
                found_by_row[row] = Translation(self.data_info.target_tokenizer.decode(tokens), ended)
        return [found_by_row[row] for row in range(len(rows))]


def encode_source(tokenizer: SpecialTokenTokenizer, sentence: str, number: int) -> Int[Tensor, "seq"]:
    """The tokens of sentence `number`, counted from 1."""
    if not sentence.strip():
        raise UserError(
            f"expected a sentence to translate in line {number}, got an empty one: fill it in or leave it out"
        )
    try:
        return tokenizer.encode(sentence)
    except UserError as error:
        raise UserError(f"line {number}, {format_value(sentence)}: {error}") from None
