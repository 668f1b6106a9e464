"""Learning a hidden Markov model from observations alone: Baum-Welch, which is EM with the path as latent variable."""

from typing import Generic, NamedTuple

import torch
from jaxtyping import Float, Float64, Integer, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.hmm import log_table
from quoin.prob.hmm_emission import CategoricalEmission, normalized
from quoin.prob.hmm_fast import Expected, Group, expected, groups, hmm_posterior
from quoin.prob.hmm_model import EmissionType, HiddenMarkovModel
from quoin.prob.markov import MarkovChain
from quoin.prob.parallel_map import parallel_map
from quoin.tensor.array_like import ArrayLike, number_tensor

__all__ = [
    "BaumWelch",
    "BaumWelchStep",
    "ExpectedCounts",
    "baum_welch",
    "baum_welch_step",
    "expected_counts",
    "maximize_counts",
]


@shown
class BaumWelchStep(NamedTuple, Generic[EmissionType]):
    """A model that explains the observations at least as well, and how well the old one did."""

    output: HiddenMarkovModel[EmissionType]
    log_prob: Float64[Tensor, ""]  # ln P(o) of all sequences together under the old model


class ExpectedCounts(NamedTuple):
    """What the posterior expects of all sequences; that of pieces of the data adds up."""

    starts: Float[Tensor, "k"]
    steps: Float[Tensor, "k k"]
    log_prob: Float64[Tensor, ""]  # ln P(o)
    emission: tuple[Float[Tensor, "..."], ...]  # its sufficient statistics

    def plus(self, other: "ExpectedCounts") -> "ExpectedCounts":
        emission = tuple(one + two for one, two in zip(self.emission, other.emission))
        return ExpectedCounts(
            self.starts + other.starts, self.steps + other.steps, self.log_prob + other.log_prob, emission
        )


@shown
class BaumWelch(NamedTuple, Generic[EmissionType]):
    """The model after the last step, and ln P(o) before each step and after the last."""

    output: HiddenMarkovModel[EmissionType]
    log_probs: list[float]


def baum_welch(
    model: HiddenMarkovModel[EmissionType],
    observations: Shaped[Tensor, "..."] | ArrayLike,
    *,
    max_iter: int,
    tol: float = 0.0,
    lengths: Integer[Tensor, "*batch"] | ArrayLike | None = None,
) -> BaumWelch[EmissionType]:
    """Up to `max_iter` steps, fewer where one raises ln P(o) by at most `tol` for each observation.

    Args:
        observations: Sequences as the model's emission has them.
        tol: 0 takes all steps.
        lengths: How many observations of each sequence count, from the first; all unless given.

    Notes: D5.1-10.
    """
    observations = number_tensor(observations, "observations", lengths)
    lengths = None if lengths is None else number_tensor(lengths, "lengths", observations)
    if max_iter < 0 or not tol >= 0:
        raise UserError(
            f"expected steps and a tolerance from 0 up, got {max_iter} and {tol}; the likelihood never falls"
        )
    rows, known = model.rows(observations, lengths)
    num_observations = rows.shape[0] * rows.shape[1] if known is None else int(known.sum())
    found: list[float] = []
    for _ in range(max_iter):
        step = baum_welch_step(model, observations, lengths)
        found.append(float(step.log_prob))
        model = step.output
        if tol and len(found) > 1 and found[-1] - found[-2] <= tol * num_observations:
            break
    found.append(float(model.log_prob(observations, lengths).detach().sum(dtype=torch.float64)))
    return BaumWelch(model, found)


@torch.no_grad()
def baum_welch_step(
    model: HiddenMarkovModel[EmissionType],
    observations: Shaped[Tensor, "..."] | ArrayLike,
    lengths: Integer[Tensor, "*batch"] | ArrayLike | None = None,
) -> BaumWelchStep[EmissionType]:
    """ν_i, A_ij and the emission's distribution from the posterior's expected counts: A_ij = E[steps from i to
    j | o] / E[steps from i | o].

    It maximises E[ln P'(X, o) | o] over new models P', and ln P'(o) rises by no less than that does. A state that is
    never visited keeps its distributions.

    Args:
        lengths: How many observations of each sequence count, from the first; all unless given.

    Notes: D5.1-10.
    """
    observations = number_tensor(observations, "observations", lengths)
    lengths = None if lengths is None else number_tensor(lengths, "lengths", observations)
    counts = expected_counts(model, observations, lengths)
    return BaumWelchStep(maximize_counts(model, counts), counts.log_prob)


@torch.no_grad()
def expected_counts(
    model: HiddenMarkovModel, observations: Shaped[Tensor, "..."], lengths: Integer[Tensor, "*batch"] | None = None
) -> ExpectedCounts:
    """The E-step of Baum-Welch: what the posterior expects of starts, of steps and of the emission, over all sequences.

    Args:
        lengths: How many observations of each sequence count, from the first; all unless given.

    Notes: D5.1-10.
    """
    chain, emission = model.chain, model.emission
    tables = log_table(chain.initial), log_table(chain.transition)

    def counted(group: Group) -> tuple[Tensor, ...]:
        """Of some of the sequences: expected starts, expected steps, ln P(o), and what the emission must know."""
        _, rows, known, layout = group
        seen = layout.fold(rows)
        found = expected(chain.initial, chain.transition, emission.relative(seen), layout)
        if bool(found.log_prob.isnan().any()):
            exact = hmm_posterior(*tables, emission.log_prob(rows), known)
            found = Expected(layout.fold(exact.output), exact.transitions.sum(dim=0), exact.log_prob.double())
        begun = found.states[0, :: layout.num_blocks].sum(dim=0)
        return begun, found.transitions, found.log_prob.sum(), *emission.sufficient_statistics(seen, found.states)

    pieces = parallel_map(counted, groups(*model.rows(observations, lengths), emission.num_states))
    begun, steps, log_prob, *statistics = (torch.stack(each).sum(dim=0) for each in zip(*pieces))
    return ExpectedCounts(begun, steps, log_prob, tuple(statistics))


def maximize_counts(
    model: HiddenMarkovModel[EmissionType], counts: ExpectedCounts, *, pseudo_count: float = 0.0
) -> HiddenMarkovModel[EmissionType]:
    """The M-step of Baum-Welch: the model that is most probable for such counts, which of several pieces of the data
    may be added.

    Args:
        pseudo_count: Added to every start and step, and to every symbol of a categorical emission: the mode under
            Dirichlet distributions with concentrations of this plus one. With any, no seen symbol is impossible.

    Notes: D5.1-10.
    """
    chain, emission, statistics = model.chain, model.emission, counts.emission
    if isinstance(emission, CategoricalEmission):
        statistics = tuple(each + pseudo_count for each in statistics)
    initial = normalized(counts.starts + pseudo_count, chain.initial)
    transition = normalized(counts.steps + pseudo_count, chain.transition)
    return HiddenMarkovModel(MarkovChain(initial, transition), emission.m_step(statistics))
