"""Hidden Markov models in log space: a chain X_0, X_1, ... that is not observed, and o_t from the emission of X_t.

This is the definition, step by step, in logarithms, which neither underflow nor mind a zero. It sees the observations
only through `log_emission`, ln P(o_t | X_t = i). The fast form is in hmm_fast.py, distributions of o_t in
hmm_emission.py, the model that puts all together in hmm_model.py, learning in hmm_fit.py.

A zero of a table is minus infinity here, and its gradient is zero: what cannot happen is no parameter.   k
states, n steps
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = [
    "HiddenPosterior",
    "ViterbiPath",
    "hmm_backward_definition",
    "hmm_forward_definition",
    "hmm_posterior_definition",
    "viterbi",
]


@shown
class HiddenPosterior(NamedTuple):
    """The posterior of the hidden states given the observations o."""

    output: Float[Tensor, "*batch n k"]  # P[X_t = i | o]
    transitions: Float[Tensor, "*batch k k"]  # the expected number of steps from i to j, given o
    log_prob: Float[Tensor, "*batch"]  # ln P(o)


@shown
class ViterbiPath(NamedTuple):
    """A path of hidden states, and its log probability together with the observations."""

    output: Int[Tensor, "*batch n"]
    log_prob: Float[Tensor, "*batch"]  # ln P(X = output, o)


def hmm_forward_definition(
    log_initial: Float[Tensor, "k"] | ArrayLike,
    log_transition: Float[Tensor, "k k"] | ArrayLike,
    log_emission: Float[Tensor, "*batch n k"] | ArrayLike,
) -> Float[Tensor, "*batch n k"]:
    """ln α_t(j) = ln P(o_0 ... o_t, X_t = j): α_0 = ν b_0, and α_t(j) = b_t(j) sum_i α_{t-1}(i) A_ij with
    b_t(j) = P(o_t | X_t = j).

    Args:
        log_initial: ln ν.
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.

    Notes: D5.1-10.
    """
    log_initial = float_tensor(log_initial, "log_initial", log_transition, log_emission)
    log_transition = float_tensor(log_transition, "log_transition", log_initial, log_emission)
    log_emission = float_tensor(log_emission, "log_emission", log_initial, log_transition)
    check_tables(log_initial, log_transition, log_emission)
    alphas = [log_initial + log_emission[..., 0, :]]
    for log_b in log_emission.unbind(dim=-2)[1:]:
        alphas.append(log_b + log_sum(alphas[-1].unsqueeze(-1) + log_transition, dim=-2))
    return torch.stack(alphas, dim=-2)


def hmm_backward_definition(
    log_transition: Float[Tensor, "k k"] | ArrayLike, log_emission: Float[Tensor, "*batch n k"] | ArrayLike
) -> Float[Tensor, "*batch n k"]:
    """ln β_t(i) = ln P(o_{t+1} ... o_{n-1} | X_t = i): β_{n-1} = 1, and β_t(i) = sum_j A_ij b_{t+1}(j) β_{t+1}(j).

    Args:
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.

    Notes: D5.1-10.
    """
    log_transition = float_tensor(log_transition, "log_transition", log_emission)
    log_emission = float_tensor(log_emission, "log_emission", log_transition)
    check_tables(None, log_transition, log_emission)
    betas = [torch.zeros_like(log_emission[..., 0, :])]
    for log_b in reversed(log_emission.unbind(dim=-2)[1:]):
        betas.append(log_sum(log_transition + (log_b + betas[-1]).unsqueeze(-2), dim=-1))
    return torch.stack(betas[::-1], dim=-2)


def hmm_posterior_definition(
    log_initial: Float[Tensor, "k"] | ArrayLike,
    log_transition: Float[Tensor, "k k"] | ArrayLike,
    log_emission: Float[Tensor, "*batch n k"] | ArrayLike,
) -> HiddenPosterior:
    """P[X_t = i | o] = α_t(i) β_t(i) / P(o) and P[X_t = i, X_{t+1} = j | o] = α_t(i) A_ij b_{t+1}(j) β_{t+1}(j) / P(o),
    summed over t.

    Args:
        log_initial: ln ν.
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.

    Notes: D5.1-10.
    """
    log_initial = float_tensor(log_initial, "log_initial", log_transition, log_emission)
    log_transition = float_tensor(log_transition, "log_transition", log_initial, log_emission)
    log_emission = float_tensor(log_emission, "log_emission", log_initial, log_transition)
    found = posterior_unchecked(log_initial, log_transition, log_emission)
    check_possible(found.log_prob)
    return found


def posterior_unchecked(
    log_initial: Float[Tensor, "k"], log_transition: Float[Tensor, "k k"], log_emission: Float[Tensor, "*batch n k"]
) -> HiddenPosterior:
    """`hmm_posterior_definition`, with zeros where the observations are impossible."""
    alpha = hmm_forward_definition(log_initial, log_transition, log_emission)
    beta = hmm_backward_definition(log_transition, log_emission)
    log_prob = log_sum(alpha[..., -1, :], dim=-1)
    known = log_prob.masked_fill(log_prob == -torch.inf, 0)
    after = (log_emission + beta)[..., 1:, :]
    pairs = alpha[..., :-1, :, None] + log_transition + after[..., None, :] - known[..., None, None, None]
    return HiddenPosterior((alpha + beta - known[..., None, None]).exp(), pairs.exp().sum(dim=-3), log_prob)


def viterbi(
    log_initial: Float[Tensor, "k"] | ArrayLike,
    log_transition: Float[Tensor, "k k"] | ArrayLike,
    log_emission: Float[Tensor, "*batch n k"] | ArrayLike,
) -> ViterbiPath:
    """The most probable path given the observations: δ_t(j) = b_t(j) max_i δ_{t-1}(i) A_ij, and from the best end back
    through the argmaxes.

    Of equals the first is taken. The path's probability carries a gradient, the path itself has none.

    Args:
        log_initial: ln ν.
        log_transition: ln A.
        log_emission: ln b_t(j) = ln P(o_t | X_t = j) of the observations at hand, as `emission.log_prob` gives it.

    Notes: D5.1-10.
    """
    log_initial = float_tensor(log_initial, "log_initial", log_transition, log_emission)
    log_transition = float_tensor(log_transition, "log_transition", log_initial, log_emission)
    log_emission = float_tensor(log_emission, "log_emission", log_initial, log_transition)
    check_tables(log_initial, log_transition, log_emission)
    best = log_initial + log_emission[..., 0, :]
    predecessors = []
    for log_b in log_emission.unbind(dim=-2)[1:]:
        found = (best.unsqueeze(-1) + log_transition).max(dim=-2)
        predecessors.append(found.indices)
        best = found.values + log_b
    log_prob, last = best.max(dim=-1)
    check_possible(log_prob)
    states = [last]
    for arrows in reversed(predecessors):
        states.append(arrows.gather(-1, states[-1].unsqueeze(-1)).squeeze(-1))
    return ViterbiPath(torch.stack(states[::-1], dim=-1), log_prob)


def log_sum(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """ln sum exp x, where a sum of nothing but zeros has the logarithm minus infinity and no gradient instead of
    NaN."""
    nothing = (x == -torch.inf).all(dim=dim, keepdim=True)
    return x.masked_fill(nothing, 0).logsumexp(dim=dim).masked_fill(nothing.squeeze(dim), -torch.inf)


def log_table(probabilities: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """ln p, where ln 0 is minus infinity and has no gradient instead of NaN."""
    never = probabilities == 0
    return probabilities.masked_fill(never, 1).log().masked_fill(never, -torch.inf)


def check_possible(log_prob: Float[Tensor, "*batch"]) -> None:
    """Raise an error for observations of probability zero."""
    if torch.compiler.is_compiling() or bool((log_prob > -torch.inf).all()):
        return
    if bool(log_prob.isnan().any()):
        raise UserError(
            "expected numbers to learn about the hidden states from, got NaN; look for it in the observations and "
            "the tables"
        )
    index = (log_prob == -torch.inf).nonzero()[0].tolist()
    which = f" (sequence {', '.join(map(str, index))})" if index else ""
    raise UserError(
        f"expected observations that the model can produce, got some of probability zero{which}; make its zeros "
        "small numbers"
    )


def check_tables(
    log_initial: Float[Tensor, "k"] | None,
    log_transition: Float[Tensor, "k k"],
    log_emission: Float[Tensor, "*batch n k"],
) -> None:
    check_shapes("k, k k, ... n k", log_initial=log_initial, log_transition=log_transition, log_emission=log_emission)
    check_same_dtype(log_transition, log_emission)
    if log_emission.shape[-2] == 0:
        raise UserError(
            f"expected at least one observation, got log_emission of shape {tuple(log_emission.shape)}; give n >= "
            "1 steps"
        )
