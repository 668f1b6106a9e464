"""Learn the tables of a hidden Markov model from its observations alone, by Baum-Welch from several starts."""

import itertools

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import Batches, keyed_generator
from quoin.plot import Panel
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, baum_welch_step, total_variation
from quoin.tasks.study import Study
from quoin.train import Metrics

__all__ = ["BaumWelchTask"]


class BaumWelchTask(Study):
    """Every epoch is one step of Baum-Welch from the tables of each start; no gradient is followed. On the CPU: the tables are small.

    Args:
        model: `start`, `transition` and `emission` of all starts.
        transition: the table of the true model, (states, states).
        emission: the same, (states, symbols).
    """

    saved_attributes = ("history",)

    def __init__(self, model: nn.Module, transition: Tensor, emission: Tensor, options) -> None:
        super().__init__(model, Batches(options.sequences, options.sequences, seed=options.seed, shuffle=False))
        self.num_starts, self.transition, self.emission = options.starts, transition, emission
        even = torch.full((len(emission),), 1 / len(emission), dtype=torch.float64)
        self.true = HiddenMarkovModel(MarkovChain(even, transition), CategoricalEmission(emission))
        drawn = self.true.sample(options.length, 2 * options.sequences, generator=keyed_generator("hmm", options.seed)).output
        self.parts = {"train": drawn[: options.sequences], "test": drawn[options.sequences :]}
        self.history = torch.zeros(0, options.starts, dtype=torch.float64)  # nats before each step

    def learnt(self, which: int) -> HiddenMarkovModel:
        chain = MarkovChain(self.model["start"][which], self.model["transition"][which])
        return HiddenMarkovModel(chain, CategoricalEmission(self.model["emission"][which]))

    def nats(self, hidden: HiddenMarkovModel, part: str) -> float:
        """-ln P(o) for each observation."""
        return -float(hidden.log_prob(self.parts[part]).sum()) / self.parts[part].numel()

    def best(self) -> int:
        return min(range(self.num_starts), key=lambda which: self.nats(self.learnt(which), "train"))

    def off(self, hidden: HiddenMarkovModel, order: list[int]) -> float:
        """How far the laws are off with the states so renumbered."""
        apart = total_variation(hidden.chain.transition[order][:, order], self.transition)
        return float(apart.maximum(total_variation(hidden.emission.probabilities[order], self.emission)).max())

    def matched(self, hidden: HiddenMarkovModel) -> tuple[float, list[int]]:
        """How far the laws are off, and the renumbering of the states that makes it least."""
        return min((self.off(hidden, list(order)), list(order)) for order in itertools.permutations(range(len(self.emission))))

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        seen, found = self.parts["train"][rows], []
        for which in range(self.num_starts):
            better, log_prob = baum_welch_step(self.learnt(which), seen)
            self.model["start"][which], self.model["transition"][which] = better.chain.start, better.chain.transition
            self.model["emission"][which] = better.emission.probabilities
            found.append(-log_prob / seen.numel())
        self.history = torch.cat([self.history, torch.stack(found).unsqueeze(0)])
        return {"loss": min(found) * len(rows)}

    def evaluate(self, part: str) -> Metrics:
        if part not in self.parts:
            return {}
        hidden = self.learnt(self.best())
        found = self.nats(hidden, part)
        return {"nats": found, "gap": found - self.nats(self.true, part), "off": self.matched(hidden)[0]}

    def panels(self) -> list[Panel]:
        num_states, num_symbols = self.emission.shape
        steps = torch.arange(len(self.history))
        lines = {f"start {which}": (steps, nats) for which, nats in enumerate(self.history.unbind(dim=1))}
        levels = {"the true model": self.nats(self.true, "train")}
        best = self.best()
        hidden = self.learnt(best)
        off, order = self.matched(hidden)
        mine = torch.cat([hidden.chain.transition[order][:, order], hidden.emission.probabilities[order]], dim=1)
        laws = torch.stack([torch.cat([self.transition, self.emission], dim=1), mine], dim=1).flatten(0, 1).round(decimals=3)
        names = [f"{kind} {state}" for state in range(num_states) for kind in ("true", "learnt")]
        columns = [f"→ {state}" for state in range(num_states)] + [f"says {symbol}" for symbol in range(num_symbols)]
        told = f"From start {best}, its states renumbered to fit; the worst law is {off:.3f} away in total variation."
        below = "No line rises. One may end below the true model, which is not the likeliest for these very observations."
        return [
            Panel(
                "Likelihood by step",
                lambda: plot.curves(lines, x_label="step", y_label="−ln P(o) for each observation", levels=levels),
                below,
            ),
            Panel("True and learnt laws", lambda: plot.heat_map(laws, row_labels=names, column_labels=columns, show_values=True), told),
        ]
