"""Fit a hidden Markov model to its observations alone, by Baum-Welch from several initialisations."""

import itertools
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.plot import Panel
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, baum_welch_step, total_variation_distance
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["BaumWelchOptions", "BaumWelchTask"]


class BaumWelchOptions(Protocol):
    """What the task reads of its recipe's options."""

    @property
    def seed(self) -> int: ...

    @property
    def num_sequences(self) -> int: ...

    @property
    def sequence_length(self) -> int: ...

    @property
    def num_init(self) -> int: ...


class BaumWelchTask(Study):
    """Every epoch is one EM iteration (Baum-Welch) of each initialisation, without gradients. On the CPU: the matrices
    are small.

    Args:
        model: `start`, `transition` and `emission` of all initialisations.
        transition: the matrix of the true model.
        emission: the same.
    """

    saved_attributes = ("history",)

    def __init__(
        self,
        model: nn.Module,
        transition: Float[Tensor, "states states"],
        emission: Float[Tensor, "states symbols"],
        options: BaumWelchOptions,
    ) -> None:
        super().__init__(
            model, BatchSampler(options.num_sequences, options.num_sequences, seed=options.seed, shuffle=False)
        )
        self.num_init, self.transition, self.emission = options.num_init, transition, emission
        even = torch.full((len(emission),), 1 / len(emission), dtype=torch.float64)
        self.true = HiddenMarkovModel(MarkovChain(even, transition), CategoricalEmission(emission))
        observations = self.true.sample(
            options.sequence_length, 2 * options.num_sequences, generator=keyed_generator("hmm", options.seed)
        ).output
        self.splits = {"train": observations[: options.num_sequences], "test": observations[options.num_sequences :]}
        self.history = torch.zeros(0, options.num_init, dtype=torch.float64)  # NLL before each step

    def learnt(self, which: int) -> HiddenMarkovModel:
        chain = MarkovChain(self.model["start"][which], self.model["transition"][which])
        return HiddenMarkovModel(chain, CategoricalEmission(self.model["emission"][which]))

    def nats(self, hidden: HiddenMarkovModel, split: str) -> float:
        """-ln P(o) per observation."""
        return -float(hidden.log_prob(self.splits[split]).sum()) / self.splits[split].numel()

    def best(self) -> int:
        return min(range(self.num_init), key=lambda which: self.nats(self.learnt(which), "train"))

    def max_total_variation(self, hidden: HiddenMarkovModel, order: list[int]) -> float:
        """The largest total variation distance of a row from the true one, with the states in this order."""
        distance = total_variation_distance(hidden.chain.transition[order][:, order], self.transition)
        return float(
            distance.maximum(total_variation_distance(hidden.emission.probabilities[order], self.emission)).max()
        )

    def matched(self, hidden: HiddenMarkovModel) -> tuple[float, list[int]]:
        """The smallest such distance over all permutations of the states, and the permutation."""
        return min(
            (self.max_total_variation(hidden, list(order)), list(order))
            for order in itertools.permutations(range(len(self.emission)))
        )

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        seen, found = self.splits["train"][rows], []
        for which in range(self.num_init):
            better, log_prob = baum_welch_step(self.learnt(which), seen)
            self.model["start"][which], self.model["transition"][which] = better.chain.initial, better.chain.transition
            self.model["emission"][which] = better.emission.probabilities
            found.append(-log_prob / seen.numel())
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0)])
        return {"loss": min(found) * len(rows)}

    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}
        hidden = self.learnt(self.best())
        found = self.nats(hidden, split)
        return {
            "nll": found,
            "nll_gap": found - self.nats(self.true, split),
            "max_total_variation": self.matched(hidden)[0],
        }

    def panels(self) -> list[Panel]:
        num_states, num_symbols = self.emission.shape
        steps = torch.arange(len(self.history))
        lines = {f"initialisation {which}": (steps, nats) for which, nats in enumerate(self.history.unbind(dim=1))}
        levels = {"the true model": self.nats(self.true, "train")}
        best = self.best()
        hidden = self.learnt(best)
        max_total_variation, order = self.matched(hidden)
        mine = torch.cat([hidden.chain.transition[order][:, order], hidden.emission.probabilities[order]], dim=1)
        tables = (
            torch.stack([torch.cat([self.transition, self.emission], dim=1), mine], dim=1)
            .flatten(0, 1)
            .round(decimals=3)
        )
        names = [f"{kind} {state}" for state in range(num_states) for kind in ("true", "fitted")]
        columns = [f"→ {state}" for state in range(num_states)] + [f"emits {symbol}" for symbol in range(num_symbols)]
        caption = (
            f"Initialisation {best}, its states permuted to match; "
            f"the largest total variation distance of a row is {max_total_variation:.3f}."
        )
        below = (
            "EM never increases it. A line may end below the true model, which is not the maximum-likelihood fit to "
            "these observations."
        )
        return [
            Panel(
                "Negative log-likelihood by iteration",
                lambda: plot.curves(
                    lines, x_label="iteration", y_label="−ln P(o) per observation", reference_lines=levels
                ),
                below,
            ),
            Panel(
                "True and fitted transition and emission",
                lambda: plot.heatmap(tables, row_labels=names, column_labels=columns, show_values=True),
                caption,
            ),
        ]
