"""Whether a process is Markov, from its distribution and not from samples; functions of a chain; history augmentation.

The joint distribution of X_0, ..., X_n is a table with one axis for each time. A function Y = f(X) of a chain need not
be a chain; the process of all that happened so far always is.   k states, m values of f, n steps
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs, rounding_of
from quoin.prob.markov import MOST_PATHS, FiniteChain, MarkovChain, check_steps
from quoin.tensor import check_labels, check_shapes, one_hot
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "HistoryChain",
    "MarkovTest",
    "augment_history",
    "function_distribution",
    "history_chain",
    "lumpability_test",
    "markov_gaps",
    "markov_test",
    "next_distribution",
]

MOST_WORDS = 2**12  # states of a history chain, whose matrix is dense
# conditional probabilities are quotients of sums of non-negative terms: float64 knows them far better than this
_ROUNDING = 1e-9


@shown
class MarkovTest(NamedTuple):
    """The two pasts with the same present that differ most about what comes next, and their probabilities; true when
    only the present matters.
    """

    output: float  # |P[next | history] - P[next | other]|
    history: tuple[int, ...] = ()
    other: tuple[int, ...] = ()
    next: int = 0
    probabilities: tuple[float, float] = (0.0, 0.0)
    rounding: float = _ROUNDING  # up to here a difference is rounding; more for tables that float32 rounded

    @property
    def holds(self) -> bool:
        """Whether only the present matters, up to rounding."""
        return self.output <= self.rounding

    def __bool__(self) -> bool:
        return self.holds


def next_distribution(joint: Float[Tensor, "..."] | ArrayLike, history: Sequence[int]) -> Float[Tensor, "k"]:
    """P[X_t = · | X_0 = x_0, ..., X_{t-1} = x_{t-1}], of a process with the given joint distribution.

    Args:
        joint: P[X_0 = x_0, ..., X_n = x_n], an axis for each time.
        history: x_0, ..., x_{t-1}; empty for the distribution of X_0.

    Notes: D5.1-2.
    """
    joint = float_tensor(joint, "joint")
    _check_joint(joint)
    if not 0 <= len(history) < joint.ndim:
        raise UserError(
            f"expected a history of at most {joint.ndim - 1} states, got {len(history)}; leave a time to predict"
        )
    for time, state in enumerate(history):
        if not 0 <= state < joint.shape[time]:
            raise UserError(
                f"expected a state from 0 to {joint.shape[time] - 1} at time {time}, got {state}; count from 0"
            )
    joint = _first(joint, len(history) + 1)[tuple(history)]
    if not bool(joint.detach().sum() > 0):
        raise UserError(
            f"expected a history that can happen, got {tuple(history)} of probability 0; there is nothing to "
            "condition on"
        )
    return joint / joint.sum()


def markov_gaps(joint: Float[Tensor, "..."] | ArrayLike) -> list[MarkovTest]:
    """For each time t = 2, ..., n and present X_{t-1} = i of positive probability, the two pasts that differ
    most about X_t.

    Args:
        joint: P[X_0 = x_0, ..., X_n = x_n], an axis for each time.

    Notes: D5.1-2.
    """
    joint = float_tensor(joint, "joint")
    _check_joint(joint)
    joint, found = joint.detach(), []
    for time in range(2, joint.ndim):
        past, (now, after) = joint.shape[: time - 1], joint.shape[time - 1 : time + 1]
        table = _first(joint, time + 1).reshape(-1, now, after)
        weight = table.sum(dim=-1, keepdim=True)
        probs = table / weight  # NaN where the past cannot happen
        high, low = probs.nan_to_num(nan=-1.0).max(dim=0), probs.nan_to_num(nan=2.0).min(dim=0)  # (now, after)
        for present in (weight.sum(dim=0) > 0).nonzero()[:, 0].tolist():
            apart, state = (high.values[present] - low.values[present]).max(dim=0)
            pasts = [
                tuple(int(i) for i in torch.unravel_index(each.indices[present, state], past)) for each in (high, low)
            ]
            said = (float(high.values[present, state]), float(low.values[present, state]))
            found.append(
                MarkovTest(
                    float(apart), (*pasts[0], present), (*pasts[1], present), int(state), said, rounding_of(joint)
                )
            )
    return found


def markov_test(joint: Float[Tensor, "..."] | ArrayLike) -> MarkovTest:
    """Is P[X_t = x | X_0, ..., X_{t-1}] the same for all pasts of positive probability with the same X_{t-1}, for
    t = 2, ..., n?

    The largest of `markov_gaps`.

    Args:
        joint: P[X_0 = x_0, ..., X_n = x_n], an axis for each time.

    Notes: D5.1-2.
    """
    joint = float_tensor(joint, "joint")
    return max(markov_gaps(joint), key=lambda each: each.output, default=MarkovTest(0.0))


def function_distribution(
    chain: FiniteChain, labels: Integer[Tensor, "k"] | ArrayLike, num_steps: int
) -> Float[Tensor, "..."]:
    """P[Y_0 = y_0, ..., Y_n = y_n] for Y_t = f(X_t), f(i) = labels[i]: the distribution of X_t on each past is carried
    along, not X's paths.

    Labels are 0, ..., m - 1; the table has n + 1 axes, each of size m.

    Notes: D5.1-10.
    """
    labels = number_tensor(labels, "labels")
    members = _members(chain, labels)
    if len(members) ** (check_steps(num_steps) + 1) * members.shape[-1] > MOST_PATHS:
        raise UserError(
            f"expected at most {MOST_PATHS} paths to list, got {len(members)}^{num_steps + 1}; take fewer steps"
        )
    weights = chain.initial * members  # (..., m, k)
    for time in range(num_steps):
        weights = (weights @ chain.transition_at(time)).unsqueeze(-2) * members
    return weights.sum(dim=-1)


def lumpability_test(chain: MarkovChain, labels: Integer[Tensor, "k"] | ArrayLike) -> MarkovTest:
    """Is f(X) a chain of one matrix, for all numbers of steps at once? f(i) = labels[i], one of 0, ..., m - 1.

    What a past y_0, ..., y_t implies for the future is the distribution of X_t given it, and the next distribution is
    linear in that. So it is enough to try pasts until the distributions of X_t they give span all others: at most k of
    them. From a stationary start, f(X) is Markov only in this way.

    Notes: D5.1-10.
    """
    labels = number_tensor(labels, "labels")
    members, transition = _members(chain, labels).double(), chain.transition.detach().double()
    worst = MarkovTest(0.0, rounding=rounding_of(chain.transition))
    first: dict[int, tuple[tuple[int, ...], Tensor]] = {}
    for history, belief in _spanning_pasts(chain, members):
        after = members @ (belief @ transition)
        other, expected = first.setdefault(history[-1], (history, after))
        apart, state = (after - expected).abs().max(dim=0)
        if float(apart) > worst.output:
            worst = MarkovTest(
                float(apart), history, other, int(state), (float(after[state]), float(expected[state])), worst.rounding
            )
    return worst


def _spanning_pasts(chain: MarkovChain, members: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Pasts, shortest first, and the distribution of the present X_t given each, until those that end in a value span
    all that do.
    """
    initial, transition = chain.initial.detach().double(), chain.transition.detach().double()
    spanned: list[list[Tensor]] = [[] for _ in members]
    waiting: list[tuple[tuple[int, ...], Tensor]] = [
        ((), initial)
    ]  # a past, and the distribution of the state that comes after it
    while waiting:
        history, ahead = waiting.pop(0)
        for value, member in enumerate(members):
            belief = ahead * member
            if not float(belief.sum()) > 0:
                continue
            belief = belief / belief.sum()
            new = belief
            for _ in range(2):  # a second pass takes away what rounding left of the first
                for direction in spanned[value]:
                    new = new - (new @ direction) * direction
            if float(new.norm()) <= _ROUNDING:
                continue
            spanned[value].append(new / new.norm())
            yield (*history, value), belief
            waiting.append(((*history, value), belief @ transition))


def augment_history(paths: Integer[Tensor, "*batch times"] | ArrayLike) -> Integer[Tensor, "*batch times times"]:
    """Y_t = (X_0, ..., X_t, 0, ..., 0) with the states counted from 1, so that a 0 means: not yet.

    >>> augment_history(torch.tensor([2, 0, 1]))
    tensor([[3, 0, 0],
            [3, 1, 0],
            [3, 1, 2]])

    Notes: D5.1-11.
    """
    paths = number_tensor(paths, "paths")
    if paths.is_floating_point() or paths.ndim == 0:
        raise UserError(
            f"expected paths of whole-number states, got {paths.dtype} of shape {tuple(paths.shape)}; convert them"
        )
    length = paths.shape[-1]
    return (paths + 1).unsqueeze(-2).expand(*paths.shape, length).tril()


@shown
class HistoryChain(NamedTuple):
    """A chain whose states are pasts: state s stands for `words[s]`."""

    output: MarkovChain
    words: Int[Tensor, "states times"]  # written as `augment_history` writes them


def history_chain(joint: Float[Tensor, "..."] | ArrayLike) -> HistoryChain:
    """Any process X_0, ..., X_n as a Markov chain: Y_t = (X_0, ..., X_t, 0, ...) goes to the same with x added, by
    P[x | X_0, ..., X_t]. All axes of `joint` have the same size k.

    Args:
        joint: P[X_0 = x_0, ..., X_n = x_n], an axis for each time.

    Notes: D5.1-11.
    """
    joint = float_tensor(joint, "joint")
    _check_joint(joint)
    k, length = joint.shape[0], joint.ndim
    sizes = [k**time for time in range(1, length + 1)]
    if set(joint.shape) != {k} or sum(sizes) > MOST_WORDS:
        raise UserError(
            f"expected one set of states at all times and at most {MOST_WORDS} pasts, got shape "
            f"{tuple(joint.shape)}; shorten"
        )
    transition = torch.eye(sum(sizes)).to(joint)  # complete pasts stay, and so do those that cannot happen
    words = torch.zeros(sum(sizes), length, dtype=torch.long)
    index = 0
    for time, size in enumerate(sizes, start=1):
        here = torch.arange(size)
        words[index : index + size, :time] = torch.stack(torch.unravel_index(here, (k,) * time), dim=-1) + 1
        if time < length:
            weight = _first(joint, time).reshape(-1)
            possible = here[weight > 0]
            probs = _first(joint, time + 1).reshape(size, k)[possible] / weight[possible].unsqueeze(-1)
            after = index + size + k * possible.unsqueeze(-1) + torch.arange(k)
            transition[index + possible, index + possible] = 0
            transition[(index + possible).unsqueeze(-1), after] = probs
        index += size
    initial = torch.cat([_first(joint, 1), joint.new_zeros(sum(sizes) - k)])
    return HistoryChain(MarkovChain(initial, transition), words)


def _first(joint: Tensor, num_times: int) -> Tensor:
    """The joint distribution of the first `num_times` variables."""
    return joint.sum(dim=tuple(range(num_times, joint.ndim))) if num_times < joint.ndim else joint


def _members(chain: FiniteChain, labels: Tensor) -> Tensor:  # -> (m, k), one where f(i) is this value
    check_shapes("k, k", initial=chain.initial, labels=labels)
    check_labels(labels, len(labels))
    return one_hot(labels.long(), int(labels.max()) + 1, dtype=chain.initial.dtype).mT


def _check_joint(joint: Tensor) -> None:
    if joint.ndim == 0:
        raise UserError(
            "expected a joint distribution with an axis for each time, got a single number; use "
            "FiniteChain.joint_distribution"
        )
    check_probs(joint.reshape(-1), "joint")
