"""The options that recipes of sequences share: texts, sentence pairs, symbols. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import ValidatedOptions, default, option
from quoin.tasks.options import EpochOptions, GradientOptions, OptimizerName, OptimizerOptions, RunOptions, ScheduleName

__all__ = [
    "CopyOptions",
    "LanguageOptions",
    "RecurrentOptions",
    "SequenceOptions",
    "SymbolOptions",
    "TextOptions",
    "TranslationOptions",
]


@dataclass(frozen=True)
class SequenceOptions(OptimizerOptions, EpochOptions):
    """What every recipe has that predicts the next token."""

    context_length: int = option(64, "context length in tokens: how far BPTT reaches back", at_least=1, at_most=10**6)
    batch_size: int = default(32, "sequences per optimizer step")
    optimizer: OptimizerName = default("adamw")
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
    lr: float = default(0.002)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)


@dataclass(frozen=True)
class TextOptions(ValidatedOptions):
    """What every recipe has that learns from a text."""

    data: str = option(
        "topics", "the text: topics, tiny-shakespeare, text:PATH, or tokens:PATH as `quoin tokenize` writes it"
    )
    tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "kind of tokenizer; tokens:PATH has its own")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )


@dataclass(frozen=True)
class LanguageOptions(TextOptions, SequenceOptions):
    """What the recipes of language models share."""


@dataclass(frozen=True)
class RecurrentOptions(TextOptions, SequenceOptions):
    """What the recipes of recurrent language models share."""

    embed_dim: int = option(128, "dimension of the token embeddings", at_least=1, at_most=100_000)
    hidden_dim: int = option(256, "units of each layer", at_least=1, at_most=100_000)
    num_layers: int = option(1, "recurrent layers", at_least=1, at_most=1000)
    weight_decay: float = default(0.2)
    dropout: float = option(0.3, "dropout probability", at_least=0.0, below=1.0)
    tie_embeddings: bool = option(
        False, "tie input and output embeddings; --embed-dim and --hidden-dim must then agree"
    )


@dataclass(frozen=True)
class TranslationOptions(OptimizerOptions, EpochOptions):
    """What the recipes of translation share."""

    data: str = option(
        "dates", "sentence pairs: dates, numbers, or a file: tsv:PATH (source, tab, target), csv:PATH or jsonl:PATH"
    )
    source_column: str | None = option(None, "the column of the sources in a file; unless given source or src")
    target_column: str | None = option(None, "the column of the targets in a file; unless given target or tgt")
    num_pairs: int = option(10_000, "different pairs to sample, where they are generated", at_least=10, at_most=100_000)
    source_tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "tokenizer of the source")
    target_tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "tokenizer of the target")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )
    num_beams: int = option(1, "beams of beam search while translating; 1 is greedy search", at_least=1, at_most=10_000)
    batch_size: int = default(64, "pairs per optimizer step")
    optimizer: OptimizerName = default("adamw")
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
    lr: float = default(0.003)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)


@dataclass(frozen=True)
class SymbolOptions(RunOptions):
    """What the recipes of Markov models share: sequences of symbols, generated or from a file."""

    data: str = option(
        "markov-chain", "the sequences: generated, sequences:PATH, or an event log csv:PATH, tsv:PATH or jsonl:PATH"
    )
    id_column: str | None = option(None, "the column of an event log that tells its sequences apart")
    time_column: str | None = option(None, "the column that orders the events of a sequence; unless there, their lines")
    symbol_column: str | None = option(None, "the column of the symbols; unless given symbol, event, activity, ...")


@dataclass(frozen=True)
class CopyOptions(GradientOptions, EpochOptions):
    """What the recipes of the copy task share."""

    sequence_length: int = option(16, "symbols to copy", at_least=1, at_most=100_000)
    num_symbols: int = option(16, "alphabet size: different symbols", at_least=2, at_most=1_000_000)
    embed_dim: int = option(
        64, "dimension of the symbol embeddings and of the residual stream", at_least=2, at_most=100_000
    )
    num_heads: int = option(2, "attention heads per block; must divide --embed-dim", at_least=1, at_most=10_000)
    num_layers: int = option(1, "Transformer blocks", at_least=1, at_most=1000)
    num_features: int = option(128, "orthogonal random features of Performer attention", at_least=1, at_most=1_000_000)
    epochs: int = default(12, "epochs of --num-rows sequences")
    num_rows: int = option(3200, "sequences per epoch, all new", at_least=1, at_most=10**9)
    batch_size: int = option(64, "sequences per optimizer step", at_least=1, at_most=10**9)
    optimizer: OptimizerName = default("adam")
    lr: float = default(0.003)
