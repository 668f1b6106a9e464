"""A trained text classifier with its tokenizer and classes, without its texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data import LabeledTextInfo, Pairs, encode_texts, load_pairs, load_text, pad_sequences
from quoin.data.padding import batches_by_length
from quoin.errors import UserError, format_value
from quoin.losses import cross_entropy
from quoin.metrics import accuracy
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile, predicted_table
from quoin.tasks.supervised import auc_metrics
from quoin.train import Metrics

__all__ = ["TextPrediction", "TrainedTextClassifier"]


class TextPrediction(NamedTuple):
    """One row a text."""

    values: Int[Tensor, "texts"]  # class numbers
    probabilities: Float[Tensor, "texts classes"]


class TrainedTextClassifier(Trained):
    """A model of texts, with what its tokens and classes stand for."""

    data_info_class = LabeledTextInfo
    is_a = "classifies texts"
    data_info: LabeledTextInfo

    @torch.no_grad()
    def outputs(self, texts: Sequence[str]) -> Float[Tensor, "texts classes"]:
        """The logits of each text; those of like length are read together, so that little is padded."""
        rows = encode_texts(self.data_info.tokenizer, texts)
        found = torch.empty(len(rows), self.data_info.num_classes)
        for some in batches_by_length([len(row) for row in rows]):
            found[some] = self.model(*pad_sequences([rows[row] for row in some]))
        return found

    def predict(self, texts: Sequence[str]) -> TextPrediction:
        """The most probable class of each text, and the probability of every class."""
        logits = self.outputs(texts)
        return TextPrediction(logits.argmax(-1), logits.softmax(-1))

    def predict_file(self, path: Path) -> PredictedFile:
        """A text in each line of the file; its class, and the probability of every class, in each row of the answer."""
        texts = load_text(f"text:{path}").content.removesuffix("\n").split("\n")
        return predicted_table(*self.predict([text.strip() for text in texts]), self.data_info, [])

    def evaluate(self, data: str | Pairs, *, target: str | None = None) -> Metrics:
        """The metrics on other texts, pairs or a file tsv:PATH, with classes of the same names."""
        if target is not None or (isinstance(data, str) and not data.startswith("tsv:")):
            given = format_value(data) if target is None else f"--target {format_value(target)}"
            raise UserError(
                f"{self.run.path} classifies texts, got {given}: give --data tsv:PATH with texts and their classes"
            )
        pairs = load_pairs(data) if isinstance(data, str) else data
        known = {name: number for number, name in enumerate(self.data_info.class_names)}
        if strange := [name for name in pairs.targets if name not in known]:
            names = format_value(", ".join(known))
            raise UserError(
                f"the run knows the classes {names}, {pairs.name} has {format_value(strange[0])}: choose data with "
                "its classes"
            )
        labels, logits = torch.tensor([known[name] for name in pairs.targets]), self.outputs(pairs.sources)
        return {
            "accuracy": accuracy(logits.argmax(-1), labels),
            **auc_metrics(logits, labels),
            "cross_entropy": float(cross_entropy(logits, labels).mean()),
        }
