"""A trained translation model with its tokenizers, without its pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data import PAD, PairInfo, Pairs, SpecialTokenTokenizer, TokenPairs, load_pairs, load_text, pad_sequences
from quoin.data.padding import SEQUENCES_PER_BATCH, batches_by_length
from quoin.data.pairs import SOURCE_COLUMN, TARGET_COLUMN
from quoin.data.text_columns import FORMS, read_columns
from quoin.errors import UserError, format_value
from quoin.metrics import exact_match
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile
from quoin.tasks.own_attention import tell_slow_decoding
from quoin.tasks.translation import longest, pair_losses, translate
from quoin.train import Metrics

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
    _told = False  # that it decodes slowly, where it does

    def predict_file(self, path: Path) -> PredictedFile:
        """A sentence in each line of the file, or in the source column of a .csv, .tsv or .jsonl file; its translation
        in each line of the answer."""
        translations, notes = self.predict(self._sentences(path)), []
        if cut := [number for number, each in enumerate(translations, 1) if not each.ended]:
            lines = f"{len(cut)} of {len(translations)} translations, the first in line {cut[0]}"
            notes = [f"{lines}, had no EOS and were cut at the maximum number of tokens"]
        return PredictedFile(
            "".join(f"{each.text}\n" for each in translations), f"{len(translations)} translations", notes, None
        )

    def _sentences(self, path: Path) -> list[str]:
        form, colon, source_path = str(path).partition(":")
        if not colon or form not in FORMS:
            form, source_path = path.suffix.lower().removeprefix("."), str(path)
        if form not in FORMS:
            return load_text(f"text:{path}").content.splitlines()
        column = SOURCE_COLUMN._replace(preferred=self.data_info.source_column)
        return [str(row[0]) for row in read_columns(form, source_path, [column]).rows]

    @torch.no_grad()
    def evaluate(self, data: str | Pairs, *, target: str | None = None) -> Metrics:
        """Nats per token and exact match on other pairs, or named as for `--data`.

        Columns are those of the training data, where the file has them; `target` names another of the targets.
        """
        pairs = data if isinstance(data, Pairs) else self._pairs(data, target)
        for number, (source, translation) in enumerate(zip(pairs.sources, pairs.targets), 1):
            encode_source(self.data_info.source_tokenizer, source, number)
            encode_source(self.data_info.target_tokenizer, translation, number)
        tokens = TokenPairs(pairs, self.data_info.source_tokenizer, self.data_info.target_tokenizer)
        self.model.eval()
        nats, count = 0.0, 0
        for rows in torch.arange(len(pairs)).split(SEQUENCES_PER_BATCH):
            batch = tokens.read(rows)
            nats += float(pair_losses(self.model, batch).double().sum())
            count += int(batch.target_lengths.sum())
        translations = [each.text for each in self.predict(pairs.sources)]
        return {"loss": nats / count, "exact_match": exact_match(translations, pairs.targets)}

    def _pairs(self, source: str, target: str | None) -> Pairs:
        source_column = SOURCE_COLUMN._replace(preferred=self.data_info.source_column)
        target_column = TARGET_COLUMN._replace(name=target, flag="--target", preferred=self.data_info.target_column)
        options = self.options
        return load_pairs(
            source,
            num_pairs=options.num_pairs,
            seed=options.seed,
            source_column=source_column,
            target_column=target_column,
        )

    def predict(self, sentences: Sequence[str], *, num_beams: int | None = None) -> list[Translation]:
        """The translation of each sentence."""
        if not self._told:
            self._told = True
            tell_slow_decoding(self.model)
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
