"""Markov chains, hidden or not: one step of the forward algorithm, whose answer is ln P of all that was observed."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain
from quoin.prob.hmm import log_table
from quoin.runs.export.exportable import BATCH, Exportable, ExportInput, ExportPart
from quoin.runs.kinds.sequences import TrainedHiddenMarkovModel, TrainedMarkovChain
from quoin.runs.run import Run

__all__ = ["ChainStep", "ForwardStep", "hidden_markov_parts", "markov_parts"]


class ForwardStep(nn.Module):
    """α_t(j) = Σ_i α_{t-1}(i) p_ij b_j(x_t) in logarithms, and ln Σ_j α_t(j); `first` is 1 at the first observation."""

    log_start: Float[Tensor, "states"]
    log_transition: Float[Tensor, "states states"]
    log_emission: Float[Tensor, "states symbols"]
    means: Float[Tensor, "states"]
    variances: Float[Tensor, "states"]

    def __init__(self, model: HiddenMarkovModel) -> None:
        super().__init__()
        self.register_buffer("log_start", log_table(model.chain.initial))
        self.register_buffer("log_transition", log_table(model.chain.transition))
        self.categorical = isinstance(model.emission, CategoricalEmission)
        if isinstance(model.emission, CategoricalEmission):
            self.register_buffer("log_emission", log_table(model.emission.probabilities))
        else:
            covariances = model.emission.covariances
            self.register_buffer("means", model.emission.means.squeeze(-1))
            self.register_buffer("variances", covariances.reshape(len(covariances)))

    def forward(
        self,
        observation: Shaped[Tensor, "batch"],
        log_alpha: Float[Tensor, "batch states"],
        first: Shaped[Tensor, "batch"],
    ) -> tuple[Float[Tensor, "batch states"], Float[Tensor, "batch"]]:
        moved = (log_alpha[:, :, None] + self.log_transition).logsumexp(dim=1)
        prior = torch.where(first[:, None] > 0, self.log_start, moved)
        if self.categorical:
            after = prior + self.log_emission[:, observation].mT
        else:
            away = observation[:, None] - self.means
            after = prior - (away.square() / self.variances + (2 * torch.pi * self.variances).log()) / 2
        return after, after.logsumexp(dim=-1)


class ChainStep(nn.Module):
    """ln P of a symbol after another; `first` is 1 where there is none before."""

    log_start: Float[Tensor, "symbols"]
    log_transition: Float[Tensor, "symbols symbols"]

    def __init__(self, chain: MarkovChain) -> None:
        super().__init__()
        self.register_buffer("log_start", log_table(chain.initial))
        self.register_buffer("log_transition", log_table(chain.transition))

    def forward(
        self, symbol: Shaped[Tensor, "batch"], before: Shaped[Tensor, "batch"], first: Shaped[Tensor, "batch"]
    ) -> Float[Tensor, "batch"]:
        return torch.where(first > 0, self.log_start[symbol], self.log_transition[before, symbol])


def _flag(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(2, size, generator=generator)


def hidden_markov_parts(run: Run) -> Exportable:
    """The step of the forward algorithm."""
    trained = run.trained
    assert isinstance(trained, TrainedHiddenMarkovModel)
    model = trained.distribution
    module, states = ForwardStep(model), len(model.chain.initial)
    dtype = model.chain.initial.dtype

    def observe(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if isinstance(model.emission, CategoricalEmission):
            return torch.randint(model.emission.num_symbols, size, generator=generator)
        return torch.randn(size, generator=generator, dtype=dtype)

    inputs = (
        ExportInput("observation", (BATCH,), observe, "the number of a symbol, or a number"),
        ExportInput("log_alpha", (BATCH, states), lambda size, rng: torch.randn(size, generator=rng, dtype=dtype)),
        ExportInput("first", (BATCH,), _flag, "1 at the first observation"),
    )

    def ours(observation: Tensor, log_alpha: Tensor, first: Tensor) -> tuple[Tensor, ...]:
        """Row by row as the definition has it, the emission from the model's own tables."""
        seen = observation[:, None] if isinstance(model.emission, CategoricalEmission) else observation[:, None, None]
        start, transition, emission = model.log_tables(seen)
        rows = [
            (start if at else (before[:, None] + transition).logsumexp(dim=0)) + out
            for before, at, out in zip(log_alpha, first.tolist(), emission[:, 0])
        ]
        after = torch.stack(rows)
        return after, after.logsumexp(dim=-1)

    part = ExportPart("step", module, inputs, ("next_log_alpha", "log_likelihood"), ours)
    return Exportable((part,), _told(trained))


def markov_parts(run: Run) -> Exportable:
    """The step of a chain."""
    trained = run.trained
    assert isinstance(trained, TrainedMarkovChain)
    chain = trained.distribution
    count = len(chain.initial)

    def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.randint(count, size, generator=generator)

    inputs = (
        ExportInput("symbol", (BATCH,), draw, "the number of a symbol"),
        ExportInput("before", (BATCH,), draw, "the symbol before it"),
        ExportInput("first", (BATCH,), _flag, "1 where there is none before"),
    )

    def ours(symbol: Tensor, before: Tensor, first: Tensor) -> tuple[Tensor, ...]:
        paths = zip(symbol.tolist(), before.tolist(), first.tolist())
        found = [
            chain.log_prob([now]) if at else chain.log_prob([old, now]) - chain.log_prob([old])
            for now, old, at in paths
        ]
        return (torch.stack(found),)

    return Exportable((ExportPart("step", ChainStep(chain), inputs, ("log_prob",), ours),), _told(trained))


def _told(trained: TrainedHiddenMarkovModel | TrainedMarkovChain) -> dict[str, Any]:
    symbols = trained.data_info.symbols
    return {"symbols": None if symbols is None else list(symbols)}
