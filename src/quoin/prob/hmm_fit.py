"""Learning a hidden Markov model from observations alone: Baum-Welch, which is EM with the hidden path as what is missing."""

from typing import Generic, NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob.hmm import log_table
from quoin.prob.hmm_emission import normalised
from quoin.prob.hmm_fast import Expected, Group, expected, groups, hmm_posterior
from quoin.prob.hmm_model import HiddenMarkovModel, Spoken
from quoin.prob.markov import MarkovChain
from quoin.prob.side_by_side import side_by_side

__all__ = ["BaumWelch", "BaumWelchStep", "baum_welch", "baum_welch_step"]


class BaumWelchStep(NamedTuple, Generic[Spoken]):
    """A model that explains the observations at least as well, and how well the old one did."""

    output: HiddenMarkovModel[Spoken]
    log_prob: Tensor  # (), float64: ln P(o) of all sequences together under the old model


class BaumWelch(NamedTuple, Generic[Spoken]):
    """The model after the last step, and ln P(o) before each step and after the last."""

    output: HiddenMarkovModel[Spoken]
    log_probs: list[float]


def baum_welch(
    model: HiddenMarkovModel[Spoken], observations: Tensor, *, num_steps: int, tolerance: float = 0.0, lengths: Tensor | None = None
) -> BaumWelch[Spoken]:
    """Up to `num_steps` steps, fewer where one raises ln P(o) by at most `tolerance` for each observation.

    Notes: D5.1-10.
    """
    if num_steps < 0 or not tolerance >= 0:
        raise Mistake(f"expected steps and a tolerance from 0 up, came {num_steps} and {tolerance}; the likelihood never falls")
    rows, known = model.rows(observations, lengths)
    count = rows.shape[0] * rows.shape[1] if known is None else int(known.sum())
    found: list[float] = []
    for _ in range(num_steps):
        step = baum_welch_step(model, observations, lengths)
        found.append(float(step.log_prob))
        model = step.output
        if tolerance and len(found) > 1 and found[-1] - found[-2] <= tolerance * count:
            break
    found.append(float(model.log_prob(observations, lengths).detach().sum(dtype=torch.float64)))
    return BaumWelch(model, found)


@torch.no_grad()
def baum_welch_step(model: HiddenMarkovModel[Spoken], observations: Tensor, lengths: Tensor | None = None) -> BaumWelchStep[Spoken]:
    """ν_i, A_ij and the emission's law as the posterior's expected counts say: A_ij = E[steps from i to j | o] / E[steps from i | o].

    It maximises E[ln P'(X, o) | o] over new models P', and ln P'(o) rises by no less than that does. A state that is never
    visited keeps its laws.

    Notes: D5.1-10.
    """
    chain, emission = model.chain, model.emission
    tables = log_table(chain.start), log_table(chain.transition)

    def counted(group: Group) -> tuple[Tensor, ...]:
        """Of some of the sequences: expected starts, expected steps, ln P(o), and what the emission must know."""
        _, rows, known, layout = group
        seen = layout.fold(rows)
        found = expected(chain.start, chain.transition, emission.relative(seen), layout)
        if bool(found.log_prob.isnan().any()):
            exact = hmm_posterior(*tables, emission.log_prob(rows), known)
            found = Expected(layout.fold(exact.output), exact.transitions.sum(dim=0), exact.log_prob.double())
        begun = found.states[0, :: layout.num_blocks].sum(dim=0)
        return begun, found.transitions, found.log_prob.sum(), *emission.statistics(seen, found.states)

    pieces = side_by_side(counted, groups(*model.rows(observations, lengths), emission.num_states))
    begun, steps, log_prob, *spoken = (torch.stack(each).sum(dim=0) for each in zip(*pieces))
    better = MarkovChain(normalised(begun, chain.start), normalised(steps, chain.transition))
    return BaumWelchStep(HiddenMarkovModel(better, emission.maximised(tuple(spoken))), log_prob)
