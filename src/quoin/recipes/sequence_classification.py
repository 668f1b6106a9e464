"""Text classification by a recurrent, Transformer or bag-of-words encoder, and the Bayes accuracy."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, LabelOptions, OptimizerName, OptimizerOptions, ScheduleName
from quoin.tasks.target import Target

NOTES = ("Z10", "Z11.T", "Z11.18p", "D5.1-2")
KEYWORDS = ("text classification", "bag of words", "bidirectional rnn", "sentiment")
SUBJECT = "Recurrent networks and language models"
# Test accuracy of the Bayes classifier, which knows the chain, less the model's. Nobody stays below 0 but by luck.
TARGET = Target("test_bayes_accuracy_gap", at_most=0.02)
MONITOR = None  # the learning rate falls to zero: the last weights are the best


@dataclass(frozen=True)
class Options(LabelOptions, OptimizerOptions, EpochOptions):
    data: str = option("directions", "the texts: directions, or tsv:PATH with a text, a tab and its class in each line")
    encoder: Literal["recurrent", "transformer", "bag-of-words"] = option(
        "recurrent", "encoder of the model that is kept; bag-of-words ignores the order"
    )
    baselines: bool = option(True, "also train the other encoders as baselines, for the report")
    num_texts: int = option(10_000, "texts to sample, where they are generated", at_least=10, at_most=1_000_000)
    num_symbols: int = option(8, "alphabet size of generated texts", at_least=2, at_most=1000)
    sharpness: float = option(
        0.7, "the larger, the easier a generated text is to classify", at_least=0.0, at_most=100.0
    )
    max_length: int = option(40, "maximum length of a generated text", at_least=4, at_most=100_000)
    tokenizer: Literal["char", "word", "byte", "bpe"] = option("char", "what a token is")
    vocab_size: int = option(
        2000, "maximum vocabulary size of a word or byte-pair tokenizer", at_least=1, at_most=10**7
    )
    embed_dim: int = option(32, "dimension of the token embeddings", at_least=2, at_most=100_000)
    hidden_dim: int = option(32, "units of the recurrent encoder in each direction", at_least=1, at_most=100_000)
    num_heads: int = option(
        2, "attention heads of the Transformer; must divide --embed-dim", at_least=1, at_most=10_000
    )
    num_layers: int = option(1, "recurrent layers, or blocks of the Transformer", at_least=1, at_most=1000)
    dropout: float = option(0.0, "dropout probability", at_least=0.0, below=1.0)
    epochs: int = default(5)
    batch_size: int = default(64, "texts per optimizer step")
    optimizer: OptimizerName = default("adamw")
    lr: float = default(0.005)
    schedule: ScheduleName = default("cosine")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)
    weight_decay: float = default(0.01)


def model(options: Options, data_info: "data.LabeledTextInfo") -> "models.SequenceClassifier":
    from quoin.tasks.sequence_classification import sequence_classifier

    return sequence_classifier(options.encoder, options, data_info)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.sequence_classification import (
        ENCODERS,
        SequenceClassificationTask,
        load_labeled_texts,
        sequence_classifier,
    )

    corpus, posterior = load_labeled_texts(options, device_context)
    names = [options.encoder, *(name for name in ENCODERS if options.baselines and name != options.encoder)]
    models = {name: sequence_classifier(name, options, data.labeled_text_info(corpus)) for name in names}
    return SequenceClassificationTask(models, options.encoder, corpus, options, device_context, posterior)
