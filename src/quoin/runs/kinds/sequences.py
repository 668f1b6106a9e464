"""A trained Markov chain, hidden or not, with its symbols and without its sequences."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data.sequences import (
    COLUMNS,
    NamedSequence,
    SequenceInfo,
    Sequences,
    encode_sequences,
    read_sequences,
    source_of,
)
from quoin.errors import UserError, format_value
from quoin.prob import HiddenMarkovModel, MarkovChain
from quoin.runs.kinds.trained import Trained
from quoin.runs.predictions import PredictedFile
from quoin.tasks.baum_welch import hidden_markov_model
from quoin.tasks.markov_chain import fitted_chain
from quoin.tasks.sequence_modeling import log_prob_by_sequence
from quoin.train import Metrics
from quoin.train.run_state import fitting

__all__ = ["SequencePrediction", "TrainedHiddenMarkovModel", "TrainedMarkovChain"]


class SequencePrediction(NamedTuple):
    """One entry a sequence."""

    log_likelihoods: Float[Tensor, "sequences"]
    states: list[Int[Tensor, "_length"]] | None  # the most probable hidden ones, where there are such


class TrainedSequenceModel(Trained):
    """A model of sequences, with what its symbols stand for."""

    data_info_class = SequenceInfo
    is_a = "is a model of sequences"
    data_info: SequenceInfo

    @property
    def distribution(self) -> HiddenMarkovModel | MarkovChain:
        """The fitted chain, hidden or not."""
        raise NotImplementedError

    def predict(self, sequences: Sequence[Sequence[object]]) -> SequencePrediction:
        """ln P of each sequence of symbols or numbers, and the hidden states where there are such."""
        named = [NamedSequence(str(1 + row), [str(each) for each in words]) for row, words in enumerate(sequences)]
        if empty := [each.name for each in named if not each.words]:
            raise UserError(f"expected sequences of a symbol or more, got none in sequence {empty[0]}: leave it out")
        return self._predicted(self._encoded("the sequences", named))

    def predict_file(self, path: Path) -> PredictedFile:
        """A row for each sequence of a file like the training data, or of the lines of any other: its name, length,
        log-likelihood, and the most probable states where there are such."""
        sequences = self._read(source_of(path))
        found = self._predicted(sequences)
        header = ["sequence", "length", "log_likelihood", *(["states"] if found.states is not None else [])]
        rows = [
            [name, str(length), f"{value:.15g}"]
            for name, length, value in zip(sequences.names, sequences.lengths.tolist(), found.log_likelihoods.tolist())
        ]
        arrays = {
            "sequences": numpy.array(sequences.names),
            "lengths": sequences.lengths.numpy(),
            "log_likelihoods": found.log_likelihoods.numpy(),
        }
        if found.states is not None:
            rows = [[*row, " ".join(map(str, states.tolist()))] for row, states in zip(rows, found.states)]
            arrays["states"] = torch.cat(found.states).numpy()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        return PredictedFile(text.getvalue(), f"log-likelihoods of {len(sequences)} sequences", [], arrays)

    def evaluate(self, data: str, *, target: str | None = None) -> Metrics:
        """Nats, bits and perplexity of an observation on all sequences of other data, named as for `--data`."""
        if target is not None:
            raise UserError(
                f"{self.run.path} is a model of sequences, got --target {format_value(target)}: leave it out, they "
                "have none"
            )
        sequences = self._read(data)
        nats = -float(log_prob_by_sequence(self.distribution, sequences).sum()) / len(sequences.values)
        if self.data_info.symbols is None:
            return {"nll": nats}
        return {"nll": nats, "bits_per_symbol": nats / math.log(2), "perplexity": math.exp(min(nats, 700.0))}

    def _read(self, source: str) -> Sequences:
        """Columns are those of the training data, where the file has them."""
        preferred = (*self.data_info.column_names, None, None, None)
        columns = [column._replace(preferred=name) for column, name in zip(COLUMNS, preferred)]
        return self._encoded(source, read_sequences(source, columns)[0])

    def _encoded(self, source: str, sequences: list[NamedSequence]) -> Sequences:
        symbols = self.data_info.symbols
        return encode_sequences(source, sequences, symbols=symbols, numbers=symbols is None)

    def _predicted(self, sequences: Sequences) -> SequencePrediction:
        return SequencePrediction(log_prob_by_sequence(self.distribution, sequences), None)


class TrainedMarkovChain(TrainedSequenceModel):
    """A chain that was fitted by counting."""

    @property
    def distribution(self) -> MarkovChain:
        with fitting(f"the checkpoint of {self.run.path}"):
            return fitted_chain(self.model, self.options.pseudo_count)


class TrainedHiddenMarkovModel(TrainedSequenceModel):
    """The best of the initialisations."""

    @property
    def distribution(self) -> HiddenMarkovModel:
        with fitting(f"the checkpoint of {self.run.path}"):
            return hidden_markov_model(self.model, int(self.saved["best"]))

    def _predicted(self, sequences: Sequences) -> SequencePrediction:
        """Viterbi's recursion knows no padding: sequences of one length go through it together."""
        model, states = self.distribution, dict[int, Tensor]()
        for length in sequences.lengths.unique().tolist():
            rows = (sequences.lengths == length).nonzero().flatten().tolist()
            paths = model.viterbi(torch.stack([sequences.rows[row] for row in rows])).output
            states |= dict(zip(rows, paths))
        found = log_prob_by_sequence(model, sequences)
        return SequencePrediction(found, [states[row] for row in range(len(sequences))])
