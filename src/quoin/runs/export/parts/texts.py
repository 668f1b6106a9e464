"""Text classifiers: tokens to probabilities, and classify.py for texts."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import encode_texts
from quoin.models import SequenceClassifier
from quoin.models.sequence_classifier import RecurrentTextEncoder
from quoin.runs.export.exportable import (
    BATCH,
    Exportable,
    ExportInput,
    ExportPart,
    LoopCheck,
    Opener,
    ScriptCheck,
    draw_tokens,
)
from quoin.runs.export.parts.recurrent_layers import LENGTH, describe_layers, encoder_parts, read_both_ways
from quoin.runs.kinds.sequence_classification import TrainedTextClassifier
from quoin.runs.run import Run
from quoin.tensor import masked_mean, sequence_mask

__all__ = ["ClassHead", "TextClassifier", "text_parts"]

NUM_TEXTS, LONGEST = 3, 200  # of a command line


class TextClassifier(nn.Module):
    """Padded tokens and lengths to probabilities and classes."""

    def __init__(self, model: SequenceClassifier) -> None:
        super().__init__()
        self.encoder, self.head = model.encoder, model.head

    def forward(
        self, tokens: Int[Tensor, "batch length"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch classes"], Int[Tensor, "batch"]]:
        encoded = self.encoder(tokens, lengths)
        logits = self.head(masked_mean(encoded, sequence_mask(lengths, tokens.shape[1])[..., None], dim=1))
        return logits.softmax(-1), logits.argmax(-1)


class ClassHead(nn.Module):
    """The mean of what a recurrent encoder gives to probabilities and classes."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, mean: Float[Tensor, "batch features"]
    ) -> tuple[Float[Tensor, "batch classes"], Int[Tensor, "batch"]]:
        logits = self.head(mean)
        return logits.softmax(-1), logits.argmax(-1)


def text_parts(run: Run) -> Exportable:
    """The whole classifier; a recurrent one layer by layer."""
    trained = run.trained
    assert isinstance(trained, TrainedTextClassifier)
    model, info = trained.model, trained.data_info
    told: dict[str, Any] = {
        "class_names": list(info.class_names),
        "target_names": [info.target_name],
        "vocabulary": info.tokenizer.as_json(),
        "layers": None,
    }
    outputs = ("probabilities", "class")
    loops: tuple[LoopCheck, ...] = ()
    if isinstance(model.encoder, RecurrentTextEncoder):
        encoder = model.encoder
        mean = ExportInput("mean", (BATCH, encoder.output_dim), lambda size, rng: torch.randn(size, generator=rng))
        parts = encoder_parts(encoder.token_embedding, encoder.cell)
        parts.append(ExportPart("head", ClassHead(model.head), (mean,), outputs))
        told["layers"] = describe_layers(encoder.cell)
        loops = (_loop_check(model, encoder),)
    else:
        inputs = (
            ExportInput("tokens", (BATCH, LENGTH), draw_tokens(info.tokenizer.vocab_size), "padded at the end"),
            # Three, which both lengths that are tried have.
            ExportInput(
                "lengths", (BATCH,), lambda size, rng: torch.randint(1, 4, size, generator=rng), "of each text"
            ),
        )

        def ours(tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
            logits = model(tokens, lengths)
            return logits.softmax(-1), logits.argmax(-1)

        parts = [ExportPart("model", TextClassifier(model), inputs, outputs, ours)]
    return Exportable(tuple(parts), told, {"classify.py": "classify"}, _checks(run, trained), loops)


def _loop_check(model: SequenceClassifier, encoder: RecurrentTextEncoder) -> LoopCheck:
    """Embedding, layers position by position and head give what the run gives to the whole text."""

    def loop(opener: Opener, tokens: Tensor) -> tuple[Tensor, ...]:
        return opener("head")(read_both_ways(opener, encoder.cell, tokens)[0].mean(dim=1))

    def whole(tokens: Tensor) -> tuple[Tensor, ...]:
        logits = model(tokens, torch.full((tokens.shape[0],), tokens.shape[1]))
        return logits.softmax(-1), logits.argmax(-1)

    tokens = ExportInput("tokens", (BATCH, LENGTH), draw_tokens(encoder.token_embedding.num_embeddings))
    return LoopCheck("position by position", (tokens,), loop, whole)


def _checks(run: Run, trained: TrainedTextClassifier) -> tuple[ScriptCheck, ...]:
    """classify.py on texts of the run's own test data, or of its vocabulary where they are not at hand."""
    texts = [each for each in _own_texts(run) if each.strip() and not each.startswith("-") and "\0" not in each]
    texts = [each[:LONGEST] for each in texts][:NUM_TEXTS]
    encode_texts(trained.data_info.tokenizer, texts)
    return (ScriptCheck("classify.py", ("--out", "{out}", "--", *texts), lambda: trained.predict(texts).probabilities),)


def _own_texts(run: Run) -> list[str]:
    return run.load_task().corpus.test.pairs.sources  # type: ignore[attr-defined]
