"""What models of sequences share: their data, how likely held-out sequences are, and beside which baselines."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler
from quoin.data.sequences import (
    COLUMNS,
    Bucket,
    Sequences,
    SequenceSplits,
    encode_sequences,
    read_sequences,
    sequence_info,
    split_sequences,
)
from quoin.display import short_names
from quoin.plot import Panel
from quoin.prob import HiddenMarkovModel, MarkovChain
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = [
    "SequenceTask",
    "chain_from_counts",
    "chain_log_prob",
    "count_steps",
    "log_prob_by_sequence",
    "own_sequences",
]

BASELINE_PSEUDO_COUNT = 0.5  # Krichevsky and Trofimov's: a symbol that training never saw is not impossible
MOST_SHOWN = 30  # symbols of a picture, the most frequent


class StepCounts(NamedTuple):
    """How many sequences begin with each symbol, and how often one symbol follows another."""

    starts: Float64[Tensor, "symbols"]
    steps: Float64[Tensor, "symbols symbols"]


def own_sequences(options: Any, *, numbers: bool = False) -> SequenceSplits:
    """The sequences of the file that `options` name, split."""
    names = (options.id_column, options.time_column, options.symbol_column)
    columns = [column._replace(name=name) for column, name in zip(COLUMNS, names)]
    found, column_names = read_sequences(options.data, columns)
    encoded = encode_sequences(options.data, found, numbers=numbers, column_names=column_names)
    return split_sequences(encoded, options.seed)


def count_steps(sequences: Sequences, num_symbols: int) -> StepCounts:
    """The counts of all sequences.

    Notes: D5.1-5.
    """
    ends = sequences.lengths.cumsum(0)
    first = sequences.values[ends - sequences.lengths]
    inside = torch.ones(len(sequences.values), dtype=torch.bool)
    inside[ends - 1] = False  # the last of a sequence has no successor
    pairs = sequences.values[:-1] * num_symbols + sequences.values[1:]
    steps = pairs[inside[:-1]].bincount(minlength=num_symbols**2).reshape(num_symbols, num_symbols)
    return StepCounts(first.bincount(minlength=num_symbols).double(), steps.double())


def chain_from_counts(counts: StepCounts, pseudo_count: float) -> MarkovChain:
    """A_ij = (n_ij + ε) / sum_j (n_ij + ε), and the same of the starts."""
    starts, steps = (table + pseudo_count for table in counts)
    return MarkovChain(starts / starts.sum(), steps / steps.sum(dim=-1, keepdim=True))


def chain_log_prob(
    chain: MarkovChain, symbols: Int[Tensor, "rows n"], lengths: Int[Tensor, "rows"] | None = None
) -> Float[Tensor, "rows"]:
    """ln P of every sequence: `MarkovChain.log_prob` with all steps at once, of sequences of different lengths."""
    steps = chain.transition.log()[symbols[:, :-1], symbols[:, 1:]]
    if lengths is not None:
        steps = torch.where(torch.arange(1, symbols.shape[1]) < lengths[:, None], steps, 0.0)
    return chain.initial.log()[symbols[:, 0]] + steps.sum(dim=-1)


def log_prob_by_sequence(model: HiddenMarkovModel | MarkovChain, sequences: Sequences) -> Float[Tensor, "sequences"]:
    """ln P of each sequence, in their order."""
    found = torch.empty(len(sequences), dtype=torch.float64)
    for bucket in sequences.buckets:
        found[bucket.rows] = bucket_log_prob(model, bucket)
    return found


def bucket_log_prob(model: HiddenMarkovModel | MarkovChain, bucket: Bucket) -> Float[Tensor, "some"]:
    if isinstance(model, MarkovChain):
        return chain_log_prob(model, bucket.observations, bucket.lengths)
    return model.log_prob(bucket.observations, bucket.lengths).double()


class SequenceTask(Study):
    """A model of sequences, evaluated beside what forgets all before (i.i.d.) and all but the last symbol (a chain).

    Args:
        truth: The source of generated sequences; None where nobody knows it.
        batch_size: Sequences of a step; all unless given.
    """

    def __init__(
        self,
        model: nn.Module,
        splits: SequenceSplits,
        truth: HiddenMarkovModel | MarkovChain | None,
        *,
        seed: int,
        batch_size: int | None = None,
    ) -> None:
        num_rows = len(splits.train)
        super().__init__(model, BatchSampler(num_rows, batch_size or num_rows, seed=seed, shuffle=False))
        self.splits: dict[str, Sequences] = {
            name: split for name, split in splits._asdict().items() if split is not None
        }
        self.truth, self.data_info = truth, sequence_info(splits)
        self.baselines = self._baselines()

    def fitted(self) -> HiddenMarkovModel | MarkovChain:
        """The model so far."""
        raise NotImplementedError

    def nats(self, model: HiddenMarkovModel | MarkovChain, split: str) -> float:
        """-ln P(o) per observation."""
        sequences = self.splits[split]
        total = sum(float(bucket_log_prob(model, bucket).sum()) for bucket in sequences.buckets)
        return -total / len(sequences.values)

    def evaluate(self, split: str) -> Metrics:
        """Nats and bits per observation, those of the baselines, and the distance from the truth where it is known."""
        if split not in self.splits:
            return {}
        model = self.fitted()
        found = self.nats(model, split)
        metrics = {"nll": found}
        if self.data_info.symbols is not None:
            metrics |= {"bits_per_symbol": found / math.log(2), "perplexity": math.exp(min(found, 700.0))}
        metrics |= {f"nll_{name}": baseline(self.splits[split]) for name, baseline in self.baselines.items()}
        return metrics if self.truth is None else metrics | {"nll_gap": found - self.nats(self.truth, split)}

    def _baselines(self) -> dict[str, Callable[[Sequences], float]]:
        """Nats per observation by the name of the baseline."""
        train, symbols = self.splits["train"], self.data_info.symbols
        if symbols is None:
            normal = torch.distributions.Normal(self.data_info.mean, self.data_info.std)
            return {"iid": lambda found: -float(normal.log_prob(found.values).mean())}
        counts = train.values.bincount(minlength=len(symbols)).double() + BASELINE_PSEUDO_COUNT
        logs = (counts / counts.sum()).log()
        chain = chain_from_counts(count_steps(train, len(symbols)), BASELINE_PSEUDO_COUNT)
        return {
            "iid": lambda found: -float(logs[found.values].mean()),
            "markov": lambda found: -float(log_prob_by_sequence(chain, found).sum()) / len(found.values),
        }

    def shown_symbols(self) -> tuple[list[int], list[str]]:
        """The numbers and names of the symbols that a picture has room for, the most frequent in training."""
        symbols = [str(name) for name in self.data_info.symbols or ()]
        counts = self.splits["train"].values.bincount(minlength=len(symbols))
        chosen = sorted(counts.argsort(descending=True, stable=True)[:MOST_SHOWN].tolist())
        names = [symbols[number] for number in chosen]
        return chosen, short_names(names, 16)

    def likelihood_panel(self, name: str) -> Panel:
        """The model beside its baselines on test sequences."""
        split, unit = self.splits["test"], math.log(2) if self.data_info.symbols is not None else 1.0
        bars = {name: self.nats(self.fitted(), "test") / unit}
        words = {"iid": "independent observations", "markov": "first-order Markov chain"}
        bars |= {words[key]: baseline(split) / unit for key, baseline in self.baselines.items()}
        if self.truth is not None:
            bars["the true model"] = self.nats(self.truth, "test") / unit
        label = "bits per symbol" if self.data_info.symbols is not None else "−ln density per observation"
        caption = f"Of {len(split)} test sequences with {len(split.values)} observations; less is better."
        return Panel("Test likelihood", lambda: plot.bars(bars, x_label=label), caption)
