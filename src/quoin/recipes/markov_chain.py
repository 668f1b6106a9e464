"""A Markov chain fitted by counting which symbol follows which, on generated sequences or an event log."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import data, train
from quoin.options import option
from quoin.tasks.sequence_options import SymbolOptions
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D5.1-2", "D5.1-5", "Z9.2")
KEYWORDS = ("transition matrix", "stationary distribution", "entropy rate", "bigram", "sequences", "event log")
SUBJECT = "Latent-variable models"
# By how much the fitted chain's nats per test symbol exceed those of the true one.
TARGET = Target("test_nll_gap", at_most=0.005)
MONITOR = None  # counts are exact: the last are all


@dataclass(frozen=True)
class Options(SymbolOptions):
    pseudo_count: float = option(0.5, "added to every count, so that nothing is impossible", above=0.0, at_most=1e9)
    num_symbols: int = option(8, "alphabet size of generated sequences", at_least=2, at_most=1000)
    sharpness: float = option(
        1.0, "0 makes all next symbols equally probable; the larger, the more predictable", at_least=0.0, at_most=100.0
    )
    num_sequences: int = option(200, "sequences to generate", at_least=10, at_most=10**6)
    sequence_length: int = option(200, "symbols of each generated sequence", at_least=2, at_most=10**6)
    batch_size: int = option(32, "sequences counted in a step", at_least=1, at_most=10**9)

    @property
    def num_epochs(self) -> int:
        return 1


def model(options: Options, data_info: "data.SequenceInfo") -> "nn.ParameterDict":
    from quoin.tasks.markov_chain import initial_counts

    return initial_counts(data_info)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.markov_chain import MarkovChainTask, load_chain_sequences

    splits, truth = load_chain_sequences(options)
    return MarkovChainTask(model(options, data.sequence_info(splits)), splits, truth, options)
