"""The hidden Markov model as one thing: a hidden chain and how its states speak, with what can be asked of the two."""

from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor

from quoin.display import fields_table, shown, shown_fields
from quoin.errors import UserError
from quoin.prob.hmm import HiddenPosterior, ViterbiPath, log_table, viterbi
from quoin.prob.hmm_emission import Emission
from quoin.prob.hmm_fast import check_lengths, hmm_log_prob, hmm_posterior
from quoin.prob.markov import MarkovChain

__all__ = ["HiddenMarkovModel", "HiddenSample"]

EmissionType = TypeVar("EmissionType", bound=Emission)


@shown
class HiddenSample(NamedTuple):
    """Observations and the states behind them."""

    output: Shaped[Tensor, "s n ..."]  # symbols, or numbers with an axis of their own
    states: Int[Tensor, "s n"]


@shown
class HiddenMarkovModel(Generic[EmissionType]):
    """A hidden Markov chain X, and o_t sampled from the emission of its state: P(o) = sum_x P[X = x] prod_t
    P(o_t | X_t = x_t).

    Observations are (..., n) symbols or (..., n, d) numbers, as the emission has them.

    >>> from quoin.prob import CategoricalEmission
    >>> chain = MarkovChain(torch.tensor([0.5, 0.5]), torch.tensor([[0.9, 0.1], [0.2, 0.8]]))
    >>> model = HiddenMarkovModel(chain, CategoricalEmission(torch.tensor([[0.5, 0.5], [0.0, 1.0]])))
    >>> model.log_prob(torch.tensor([0, 0])).exp()  # in state 0, twice: 0.25 * 0.9 * 0.5
    tensor(0.1125)
    >>> model.viterbi(torch.tensor([0, 1, 1, 1, 1])).output
    tensor([0, 1, 1, 1, 1])

    Notes: D5.1-10.
    """

    def __init__(self, chain: MarkovChain, emission: EmissionType):
        if len(chain.initial) != emission.num_states:
            raise UserError(
                f"expected a distribution of observations for each of the chain's {len(chain.initial)} states, got "
                f"{emission.num_states}; "
                "give as many rows as states"
            )
        self.chain, self.emission = chain, emission

    def __repr__(self) -> str:
        return f"HiddenMarkovModel({self.chain!r}, {self.emission!r})"

    def _repr_html_(self) -> str:
        emission = fields_table(type(self.emission).__name__, shown_fields(self.emission))
        return f"{self.chain._repr_html_()}{emission}"

    def log_prob(
        self, observations: Shaped[Tensor, "..."], lengths: Integer[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch"]:
        """ln P(o) of every sequence, differentiable in all tables; beyond `lengths` observations do not count."""
        return hmm_log_prob(*self.log_tables(observations), lengths)

    def posterior(
        self, observations: Shaped[Tensor, "..."], lengths: Integer[Tensor, "*batch"] | None = None
    ) -> HiddenPosterior:
        """P[X_t = i | o] and the expected numbers of steps from i to j; without a gradient."""
        return hmm_posterior(*self.log_tables(observations), lengths)

    def viterbi(self, observations: Shaped[Tensor, "..."]) -> ViterbiPath:
        """The most probable states behind the observations."""
        return viterbi(*self.log_tables(observations))

    def sample(self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator) -> HiddenSample:
        """Sequences of `num_steps` observations, and the states behind them."""
        if num_steps < 1:
            raise UserError(f"expected at least one step, got {num_steps}; give the number of observations")
        states = self.chain.sample_paths(num_steps - 1, num_paths, generator=generator)
        return HiddenSample(self.emission.sample(states, generator=generator), states)

    def log_tables(
        self, observations: Shaped[Tensor, "..."]
    ) -> tuple[Float[Tensor, "k"], Float[Tensor, "k k"], Float[Tensor, "*batch n k"]]:
        """ln ν, ln A and ln P(o_t | X_t = i), as the functions of hmm.py take them."""
        self._check(observations)
        return log_table(self.chain.initial), log_table(self.chain.transition), self.emission.log_prob(observations)

    def rows(
        self, observations: Shaped[Tensor, "..."], lengths: Integer[Tensor, "*batch"] | None
    ) -> tuple[Shaped[Tensor, "s n ..."], Integer[Tensor, "s"] | None]:
        """All sequences and their lengths in one row."""
        self._check(observations)
        event = observations.ndim - self.emission.event_ndim
        rows = observations.reshape(-1, *observations.shape[event - 1 :])
        return rows, check_lengths(lengths, observations.shape[: event - 1], rows.shape[1])

    def _check(self, observations: Tensor) -> None:
        self.emission.check(observations)
        if observations.ndim <= self.emission.event_ndim:
            raise UserError(
                f"expected sequences of observations, got shape {tuple(observations.shape)}; add an axis for the steps"
            )
