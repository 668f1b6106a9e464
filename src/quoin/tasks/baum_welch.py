"""Fit a hidden Markov model to its observations alone, by Baum-Welch from several initialisations."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import keyed_generator
from quoin.data.sequences import SequenceInfo, Sequences, SequenceSplits
from quoin.errors import UserError
from quoin.plot import Panel
from quoin.prob import (
    CategoricalEmission,
    GaussianEmission,
    HiddenMarkovModel,
    MarkovChain,
    total_variation_distance,
)
from quoin.prob.hmm_fit import ExpectedCounts, expected_counts, maximize_counts
from quoin.tasks.sequence_modeling import SequenceTask, own_sequences
from quoin.train import Metrics

__all__ = [
    "BaumWelchOptions",
    "BaumWelchTask",
    "hidden_markov_model",
    "initial_parameters",
    "load_hmm_sequences",
    "sample_sequences",
]

MIN_VARIANCE = 1e-4  # of the training variance, added to that of a state: one that holds on to one value has none
OWN_PSEUDO_COUNT = 0.1  # for sequences of a file, whose test part may hold a symbol that training never saw


class BaumWelchOptions(Protocol):
    """What the task reads of its recipe's options."""

    @property
    def seed(self) -> int: ...

    @property
    def num_states(self) -> int: ...

    @property
    def num_init(self) -> int: ...

    @property
    def pseudo_count(self) -> float | None: ...


def initial_parameters(options: BaumWelchOptions, data_info: SequenceInfo) -> nn.ParameterDict:
    """Parameters of each initialisation: every row of a table sampled uniformly from the simplex, means from the normal
    distribution of the training numbers."""
    states, count = options.num_states, options.num_init
    shapes = {"start": (states,), "transition": (states, states)}
    if data_info.symbols is not None:
        shapes["emission"] = (states, len(data_info.symbols))
    tables = {}
    for name, shape in shapes.items():
        generator = keyed_generator(name, options.seed)
        waits = -torch.rand(count, *shape, generator=generator, dtype=torch.float64).log()
        tables[name] = waits / waits.sum(dim=-1, keepdim=True)
    if data_info.symbols is None:
        generator = keyed_generator("means", options.seed)
        normal = torch.randn(count, states, 1, generator=generator, dtype=torch.float64)
        tables["means"] = data_info.mean + data_info.std * normal
        tables["covariances"] = torch.full((count, states, 1, 1), data_info.std**2, dtype=torch.float64)
    return nn.ParameterDict({name: nn.Parameter(table, requires_grad=False) for name, table in tables.items()})


def hidden_markov_model(parameters: Any, which: int) -> HiddenMarkovModel:
    """The model of this initialisation."""
    chain = MarkovChain(parameters["start"][which], parameters["transition"][which])
    if "emission" in parameters:
        return HiddenMarkovModel(chain, CategoricalEmission(parameters["emission"][which]))
    return HiddenMarkovModel(chain, GaussianEmission(parameters["means"][which], parameters["covariances"][which]))


def load_hmm_sequences(
    options: Any, transition: Sequence[Sequence[float]], emission: Sequence[Sequence[float]]
) -> tuple[SequenceSplits, HiddenMarkovModel | None]:
    """The sequences that `options` name; generated ones come with their source, of these tables."""
    numbers = options.emission == "gaussian"
    if options.data != "hmm" or any((options.id_column, options.time_column, options.symbol_column)):
        return own_sequences(options, numbers=numbers), None
    if numbers:
        raise UserError(
            "--emission gaussian is for numbers, but the generated sequences are symbols: give --data sequences:PATH"
        )
    even = torch.full((len(emission),), 1 / len(emission), dtype=torch.float64)
    chain = MarkovChain(even, torch.tensor(transition, dtype=torch.float64))
    truth = HiddenMarkovModel(chain, CategoricalEmission(torch.tensor(emission, dtype=torch.float64)))
    return sample_sequences(truth, options.num_sequences, options.sequence_length, options.seed), truth


def sample_sequences(truth: HiddenMarkovModel, num_sequences: int, length: int, seed: int) -> SequenceSplits:
    """As many sequences of a known source to learn from as to test on."""
    observations = truth.sample(length, 2 * num_sequences, generator=keyed_generator("hmm", seed)).output
    symbols = tuple(str(symbol) for symbol in range(truth.emission.num_symbols))
    lengths, names = torch.full((num_sequences,), length), tuple(str(1 + row) for row in range(num_sequences))
    train, test = (Sequences("hmm", half.flatten(), lengths, symbols, names) for half in observations.chunk(2))
    return SequenceSplits(train, None, test)


class BaumWelchTask(SequenceTask):
    """Every epoch is one EM iteration (Baum-Welch) of each initialisation, without gradients. On the CPU: the matrices
    are small.

    Args:
        model: The parameters of all initialisations.
        truth: The source of generated sequences; None where nobody knows it.
    """

    kind = "hidden-markov-model"
    saved_attributes = ("history",)

    def __init__(
        self, model: nn.Module, splits: SequenceSplits, truth: HiddenMarkovModel | None, options: BaumWelchOptions
    ) -> None:
        super().__init__(model, splits, truth, seed=options.seed)
        self.num_init, self.num_states = options.num_init, options.num_states
        own = 0.0 if truth is not None else OWN_PSEUDO_COUNT
        self.pseudo_count = own if options.pseudo_count is None else options.pseudo_count
        self.history = torch.zeros(0, options.num_init, dtype=torch.float64)  # NLL before each step
        # The truth as a hidden Markov model whose states can be matched with those of the fit.
        self.matchable = truth if truth is not None and truth.emission.num_states == self.num_states else None

    def learnt(self, which: int) -> HiddenMarkovModel:
        return hidden_markov_model(self.model, which)

    @functools.cached_property
    def best(self) -> int:
        """The initialisation with the highest likelihood of the training sequences so far."""
        return min(range(self.num_init), key=lambda which: self.nats(self.learnt(which), "train"))

    def fitted(self) -> HiddenMarkovModel:
        return self.learnt(self.best)

    def model_state(self) -> dict[str, Any]:
        return super().model_state() | {"best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.__dict__.pop("best", None)

    def max_total_variation(self, truth: HiddenMarkovModel, hidden: HiddenMarkovModel, order: list[int]) -> float:
        """The largest total variation distance of a row from the true one, with the states in this order."""
        distance = total_variation_distance(hidden.chain.transition[order][:, order], truth.chain.transition)
        emission = total_variation_distance(hidden.emission.probabilities[order], truth.emission.probabilities)
        return float(distance.maximum(emission).max())

    def matched(self, truth: HiddenMarkovModel, hidden: HiddenMarkovModel) -> tuple[float, list[int]]:
        """The smallest such distance over all permutations of the states, and the permutation."""
        return min(
            (self.max_total_variation(truth, hidden, list(order)), list(order))
            for order in itertools.permutations(range(self.num_states))
        )

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        seen, found = self.splits["train"], []
        for which in range(self.num_init):
            model = self.learnt(which)
            counted = (expected_counts(model, bucket.observations, bucket.lengths) for bucket in seen.buckets)
            counts = functools.reduce(lambda one, two: one.plus(two), counted)
            if isinstance(model.emission, GaussianEmission):
                counts = self._spread(counts)
            self._keep(which, maximize_counts(model, counts, pseudo_count=self.pseudo_count))
            found.append(-counts.log_prob / len(seen.values))
        self.__dict__.pop("best", None)
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0)])
        return {"loss": min(found) * len(rows)}

    def _keep(self, which: int, better: HiddenMarkovModel) -> None:
        self.model["start"][which], self.model["transition"][which] = better.chain.initial, better.chain.transition
        if isinstance(better.emission, CategoricalEmission):
            self.model["emission"][which] = better.emission.probabilities
        else:
            self.model["means"][which] = better.emission.means
            self.model["covariances"][which] = better.emission.covariances

    def _spread(self, counts: ExpectedCounts) -> ExpectedCounts:
        """The counts of numbers with a little more variance in each state."""
        total, first, second = counts.emission
        more = MIN_VARIANCE * self.data_info.std**2 * total[:, None, None]
        return counts._replace(emission=(total, first, second + more))

    def evaluate(self, split: str) -> Metrics:
        metrics = super().evaluate(split)
        if metrics and self.matchable is not None:
            metrics["max_total_variation"] = self.matched(self.matchable, self.fitted())[0]
        return metrics

    def panels(self) -> list[Panel]:
        steps = torch.arange(len(self.history))
        lines = {f"initialisation {which}": (steps, nats) for which, nats in enumerate(self.history.unbind(dim=1))}
        levels = {"the true model": self.nats(self.truth, "train")} if self.truth is not None else {}
        below = (
            "EM never increases it. A line may end below the true model, which is not the maximum-likelihood fit to "
            "these observations."
            if self.truth is not None
            else f"EM never increases it but for the pseudo-count of {self.pseudo_count:g}. The lowest line is kept."
        )
        curves = Panel(
            "Negative log-likelihood by iteration",
            lambda: plot.curves(lines, x_label="iteration", y_label="−ln P(o) per observation", reference_lines=levels),
            below,
        )
        tables = [self._beside_truth(self.matchable)] if self.matchable is not None else self._tables()
        return [curves, *tables, self.likelihood_panel("hidden Markov model")]

    def _beside_truth(self, truth: HiddenMarkovModel) -> Panel:
        num_states, num_symbols = truth.emission.probabilities.shape
        hidden = self.fitted()
        max_total_variation, order = self.matched(truth, hidden)
        true = torch.cat([truth.chain.transition, truth.emission.probabilities], dim=1)
        mine = torch.cat([hidden.chain.transition[order][:, order], hidden.emission.probabilities[order]], dim=1)
        tables = torch.stack([true, mine], dim=1).flatten(0, 1).round(decimals=3)
        names = [f"{kind} {state}" for state in range(num_states) for kind in ("true", "fitted")]
        columns = [f"→ {state}" for state in range(num_states)] + [f"emits {symbol}" for symbol in range(num_symbols)]
        return Panel(
            "True and fitted transition and emission",
            lambda: plot.heatmap(tables, row_labels=names, column_labels=columns, show_values=True),
            f"Initialisation {self.best}, its states permuted to match; "
            f"the largest total variation distance of a row is {max_total_variation:.3f}.",
        )

    def _tables(self) -> list[Panel]:
        """Transition and emission of the fit, by the names of the symbols."""
        hidden = self.fitted()
        states = [f"state {state}" for state in range(self.num_states)]
        few = self.num_states <= 10
        transition = hidden.chain.transition.round(decimals=3)
        fractions = self._state_fractions(hidden)
        caption = f"Initialisation {self.best}. Training time in each state: " + ", ".join(
            f"{name} {part:.3f}" for name, part in zip(states, fractions.tolist())
        )
        if isinstance(hidden.emission, GaussianEmission):
            spread = hidden.emission.covariances[:, 0].sqrt()
            emission, columns, more = torch.cat([hidden.emission.means, spread], dim=1), ["mean", "std"], ""
        else:
            chosen, columns = self.shown_symbols()
            emission = hidden.emission.probabilities[:, chosen].round(decimals=3)
            hides = len(chosen) < hidden.emission.num_symbols
            more = f"The {len(chosen)} most frequent of {hidden.emission.num_symbols} symbols." if hides else ""
        return [
            Panel(
                "Transition probabilities",
                lambda: plot.heatmap(
                    transition, row_labels=states, column_labels=[f"→ {name}" for name in states], show_values=few
                ),
                f"{caption}.",
            ),
            Panel(
                "Emission of each state",
                lambda: plot.heatmap(
                    emission, row_labels=states, column_labels=columns, show_values=few and len(columns) <= 12
                ),
                more,
            ),
        ]

    def _state_fractions(self, hidden: HiddenMarkovModel) -> Float[Tensor, "states"]:
        """The posterior's expected fraction of the training observations in each state."""
        fractions = torch.zeros(self.num_states, dtype=torch.float64)
        for bucket in self.splits["train"].buckets:
            fractions += hidden.posterior(bucket.observations, bucket.lengths).output.flatten(0, 1).sum(dim=0)
        return fractions / fractions.sum()
