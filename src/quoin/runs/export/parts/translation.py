"""Translation: what is read of the source once, a step of the decoder, and translate.py, which decodes greedily."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from quoin.data import BOS, EOS, PAD
from quoin.models import RecurrentEncoder, Seq2Seq, Transformer
from quoin.runs.export.exportable import (
    BATCH,
    Axis,
    Exportable,
    ExportInput,
    ExportPart,
    LoopCheck,
    Opener,
    ScriptCheck,
    draw_tokens,
)
from quoin.runs.export.parts.recurrent_layers import LENGTH, describe_layers, encoder_parts, read_both_ways
from quoin.runs.export.parts.translation_steps import (
    Bridge,
    RecurrentDecoderStep,
    SourceEncoder,
    TransformerDecoderStep,
)
from quoin.runs.export.written import CannotExportError
from quoin.runs.kinds.translation import TrainedTranslator
from quoin.runs.run import Run
from quoin.tasks.translation import longest

__all__ = ["translation_parts"]

SEEN = Axis("seen", traced=5, tried=(2, 9), least=0)
SOURCE = Axis("source_length", traced=6, tried=(3, 11))
TARGET = Axis("target_length", traced=4, tried=(2, 7))
NUM_SENTENCES = 3


def translation_parts(run: Run) -> Exportable:
    """Parts of a Transformer, or of a recurrent encoder and decoder."""
    trained = run.trained
    assert isinstance(trained, TrainedTranslator)
    model, info = trained.model, trained.data_info
    special = ["PAD", "BOS", "EOS"]
    told: dict[str, Any] = {
        "source_vocabulary": info.source_tokenizer.as_json() | {"special": special},
        "target_vocabulary": info.target_tokenizer.as_json() | {"special": special},
        "special_tokens": [PAD, BOS, EOS],
        "max_tokens": longest(info),
        "layers": None,
        "state": [],
    }
    if isinstance(model, Transformer):
        parts, told["state"] = _transformer(model, trained)
        loop = _transformer_loop(model, told["state"])
    elif isinstance(model, Seq2Seq) and isinstance(model.encoder, RecurrentEncoder) and model.encoder.bridges:
        parts, told["layers"] = _recurrent(model, trained), describe_layers(model.encoder.cell)
        loop = _recurrent_loop(model)
    else:
        raise CannotExportError(
            f"expected a Transformer or a recurrent model that reads from both ends, got {type(model).__name__}: give "
            "--to safetensors"
        )
    source = ExportInput("source", (BATCH, SOURCE), draw_tokens(info.source_tokenizer.vocab_size))
    target = ExportInput("target", (BATCH, TARGET), draw_tokens(model.vocab_size))
    check = LoopCheck("step by step", (source, target), loop, lambda *pair: (model(*pair),))
    return Exportable(tuple(parts), told, {"translate.py": "translate"}, _checks(run, trained), (check,))


Loop = Callable[[Opener, Tensor, Tensor], tuple[Tensor, ...]]  # sources and targets to the logits of the targets


def _transformer_loop(model: Transformer, empty: list[list[int]]) -> Loop:
    def loop(opener: Opener, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        batch_size, length = source.shape
        lengths = torch.full((batch_size,), length)
        memory = opener("encoder")(source, lengths)
        return _decoded(opener, target, (lengths, *memory), [torch.zeros(batch_size, *shape[1:]) for shape in empty])

    return loop


def _recurrent_loop(model: Seq2Seq) -> Loop:
    def loop(opener: Opener, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        memory, last = read_both_ways(opener, model.encoder.cell, source)
        state = opener("bridge")(*(torch.cat(layers) for layers in zip(*last)))
        return _decoded(opener, target, (memory,), [*state])

    return loop


def _decoded(opener: Opener, target: Tensor, memory: tuple[Tensor, ...], state: list[Tensor]) -> tuple[Tensor, ...]:
    """The logits after each token of the target."""
    step, found = opener("step"), []
    for at in range(target.shape[1]):
        logits, *state = step(target[:, at : at + 1].contiguous(), *memory, *state)
        found.append(logits)
    return (torch.cat(found, dim=1),)


def _normal(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(size, generator=generator)


def _transformer(model: Transformer, trained: TrainedTranslator) -> tuple[list[ExportPart], list[list[int]]]:
    source = draw_tokens(trained.data_info.source_tokenizer.vocab_size)
    # Up to three, which both lengths that are tried have.
    lengths = ExportInput("lengths", (BATCH,), lambda size, rng: torch.randint(1, 4, size, generator=rng), "of sources")
    memory = [
        ExportInput(f"source_{kind}_{number}", (BATCH, attention.num_kv_heads, SOURCE, attention.head_dim), _normal)
        for number, attention in enumerate(block.cross_attention for block in model.decoder.blocks)
        for kind in ("keys", "values")
    ]
    state = [
        ExportInput(f"{kind}_{number}", (BATCH, attention.num_kv_heads, SEEN, attention.head_dim), _normal)
        for number, attention in enumerate(block.attention for block in model.decoder.blocks)
        for kind in ("keys", "values")
    ]
    encoder = ExportPart(
        "encoder",
        SourceEncoder(model),
        (ExportInput("source", (BATCH, SOURCE), source, "ends with EOS, then padding"), lengths),
        tuple(each.name for each in memory),
        SourceEncoder(model).by_its_own_code,
    )
    tokens = ExportInput("tokens", (BATCH, 1), draw_tokens(model.vocab_size), "BOS, then the last token")
    step = ExportPart(
        "step",
        TransformerDecoderStep(model),
        (tokens, lengths, *memory, *state),
        ("logits", *(f"next_{each.name}" for each in state)),
        TransformerDecoderStep(model).by_its_own_code,
    )
    empty = [[each.axes[1], each.axes[3]] for each in state]
    return [encoder, step], [[1, int(heads), 0, int(dim)] for heads, dim in empty]  # type: ignore[arg-type]


def _recurrent(model: Seq2Seq, trained: TrainedTranslator) -> list[ExportPart]:
    encoder, decoder = model.encoder, model.decoder
    cell = decoder.cell
    kinds = ("hidden", "cell") if len(encoder.bridges) == 2 else ("hidden",)
    shape = (cell.num_layers, BATCH, cell.hidden_size)
    last = [ExportInput(f"{kind}_{side}", shape, _normal) for side in ("ahead", "back") for kind in kinds]
    state = [ExportInput(kind, shape, _normal) for kind in kinds]
    memory = ExportInput("memory", (BATCH, LENGTH, encoder.memory_dim), _normal, "the encoder's outputs")
    tokens = ExportInput("tokens", (BATCH, 1), draw_tokens(model.vocab_size), "BOS, then the last token")
    return [
        *encoder_parts(encoder.token_embedding, encoder.cell),
        ExportPart("bridge", Bridge(encoder), tuple(last), kinds),
        ExportPart(
            "step",
            RecurrentDecoderStep(model),
            (tokens, memory, *state),
            ("logits", *(f"next_{kind}" for kind in kinds)),
        ),
    ]


def _checks(run: Run, trained: TrainedTranslator) -> tuple[ScriptCheck, ...]:
    pairs = run.load_task().corpus.test.pairs.sources  # type: ignore[attr-defined]
    sentences = [each for each in pairs if each.strip() and not each.startswith("-")][:NUM_SENTENCES]

    def expected() -> str:
        return "\n".join(each.text for each in trained.predict(sentences, num_beams=1))

    return (ScriptCheck("translate.py", ("--", *sentences), expected),)
