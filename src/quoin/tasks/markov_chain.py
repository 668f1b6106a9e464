"""Fit a Markov chain by counting which symbol follows which; no gradient is followed."""

import math
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import keyed_generator, make_markov_source
from quoin.data.sequences import SequenceInfo, Sequences, SequenceSplits, split_sequences
from quoin.display import format_number
from quoin.info import entropy_rate
from quoin.plot import Panel
from quoin.prob import MarkovChain, stationary_distribution, total_variation_distance
from quoin.tasks.sequence_modeling import SequenceTask, StepCounts, chain_from_counts, count_steps, own_sequences
from quoin.train import Metrics

__all__ = ["ChainOptions", "MarkovChainTask", "fitted_chain", "initial_counts", "load_chain_sequences"]


class ChainOptions(Protocol):
    """What the task reads of its recipe's options."""

    @property
    def seed(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def pseudo_count(self) -> float: ...


def initial_counts(data_info: SequenceInfo) -> nn.ParameterDict:
    """Nothing counted yet."""
    m = len(data_info.symbols or ())
    shapes = {"starts": (m,), "steps": (m, m)}
    tables = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    return nn.ParameterDict({name: nn.Parameter(table, requires_grad=False) for name, table in tables.items()})


def fitted_chain(counts: Any, pseudo_count: float) -> MarkovChain:
    """The chain that the counts and the pseudo-count make most probable."""
    return chain_from_counts(StepCounts(counts["starts"], counts["steps"]), pseudo_count)


def load_chain_sequences(options: Any) -> tuple[SequenceSplits, MarkovChain | None]:
    """The sequences that `options` name; generated ones come with the random chain that they are of."""
    if options.data != "markov-chain" or any((options.id_column, options.time_column, options.symbol_column)):
        return own_sequences(options), None
    truth = make_markov_source(
        options.num_symbols, sharpness=options.sharpness, generator=keyed_generator("source", options.seed)
    ).chain
    generator = keyed_generator("symbols", options.seed)
    paths = truth.sample_paths(options.sequence_length - 1, options.num_sequences, generator=generator)
    symbols = tuple(str(symbol) for symbol in range(options.num_symbols))
    names = tuple(str(1 + row) for row in range(len(paths)))
    lengths = torch.full((len(paths),), options.sequence_length)
    return split_sequences(Sequences("markov-chain", paths.flatten(), lengths, symbols, names), options.seed), truth


class MarkovChainTask(SequenceTask):
    """Each step counts a batch of sequences: A_ij = (n_ij + ε) / sum_j (n_ij + ε) maximises the likelihood, with ε = 0.

    Args:
        truth: The chain of generated sequences; None where nobody knows it.
    """

    kind = "markov-chain"
    truth: MarkovChain | None

    def __init__(
        self, model: nn.Module, splits: SequenceSplits, truth: MarkovChain | None, options: ChainOptions
    ) -> None:
        super().__init__(model, splits, truth, seed=options.seed, batch_size=options.batch_size)
        self.pseudo_count = options.pseudo_count
        del self.baselines["markov"]  # which it is itself

    def fitted(self) -> MarkovChain:
        return fitted_chain(self.model, self.pseudo_count)

    @torch.no_grad()
    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        seen = self.splits["train"].take(rows.tolist())
        counts = count_steps(seen, len(self.model["starts"]))
        self.model["starts"] += counts.starts
        self.model["steps"] += counts.steps
        logs = self.fitted()
        nats = -(counts.starts * logs.initial.log()).sum() - (counts.steps * logs.transition.log()).sum()
        return {"loss": nats / len(seen.values) * len(rows)}

    def evaluate(self, split: str) -> Metrics:
        """The likelihood, the entropy rate of the fit in bits, and how far its rows are from the true ones."""
        metrics = super().evaluate(split)
        if metrics:
            chain = self.fitted()
            metrics["entropy_rate"] = float(entropy_rate(chain)) / math.log(2)
            if self.truth is not None:
                distance = total_variation_distance(chain.transition, self.truth.transition)
                metrics["max_total_variation"] = float(distance.max())
        return metrics

    def panels(self) -> list[Panel]:
        """The matrix, the distribution that it settles in, and the likelihood."""
        chain = self.fitted()
        stationary = stationary_distribution(chain.transition)
        chosen, names = self.shown_symbols()
        matrix = chain.transition[chosen][:, chosen].round(decimals=3)
        hides = (
            f"The {len(chosen)} most frequent of {len(stationary)} symbols. " if len(chosen) < len(stationary) else ""
        )
        fractions = {name: float(stationary[number]) for name, number in zip(names, chosen)}
        rate = float(entropy_rate(chain)) / math.log(2)
        return [
            Panel(
                "Transition probabilities",
                lambda: plot.heatmap(
                    matrix,
                    row_labels=names,
                    column_labels=names,
                    x_label="next symbol",
                    y_label="symbol",
                    show_values=len(chosen) <= 12,
                ),
                f"{hides}A pseudo-count of {self.pseudo_count:g} was added to each count.",
            ),
            Panel(
                "Stationary distribution",
                lambda: plot.bars(fractions, x_label="probability in the long run"),
                f"{hides}In it, the next symbol has an entropy of {format_number(rate)} bits: the entropy rate.",
            ),
            self.likelihood_panel("fitted chain"),
        ]
