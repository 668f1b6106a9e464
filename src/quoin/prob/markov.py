"""Markov chains on finitely many states: a start distribution ν and stochastic matrices, whose row i is the
distribution of the next state after i.

States are 0, ..., k-1 and a row vector holds a distribution, so that ν A is the distribution one step later. Where a
chain ends up is in stationary.py, chains on other spaces in kernels.py, functions of a chain in lumping.py.   k states,
n steps
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from quoin.display import chain_graph, fields_table, shown, shown_fields
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.tensor import check_labels, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "FiniteChain",
    "InhomogeneousChain",
    "MarkovChain",
    "chain_distribution",
    "chain_distribution_definition",
    "check_stochastic",
]

_DRAWN = 12  # states of a chain that a notebook draws
MOST_PATHS = 2**22  # entries of a joint distribution: 32 MiB of float64
_SLACK = 1e-4  # as in checks.py: a matrix that float32 rounded must pass


def check_stochastic(matrix: Float[Tensor, "*batch k k"] | ArrayLike, name: str) -> None:
    """Raise an error for `matrix` (called `name` in the message) unless each row is a distribution: A_ij >= 0 and sum_j
    A_ij = 1 for every i.

    >>> check_stochastic(torch.tensor([[0.5, 0.5], [0.5, 0.7]]), "A")
    Traceback (most recent call last):
    quoin.errors.UserError: expected every row of A to be a distribution, got row 1 with least entry 0.5 and sum 1.2;
    ...

    Notes: D5.1-5.
    """
    matrix = float_tensor(matrix, "matrix")
    if (
        not matrix.is_floating_point()
        or matrix.ndim < 2
        or matrix.shape[-1] != matrix.shape[-2]
        or matrix.shape[-1] == 0
    ):
        got = f"{str(matrix.dtype).removeprefix('torch.')} of shape {tuple(matrix.shape)}"
        raise UserError(
            f"expected {name} as a square matrix of floats over at least one state, got {got}; convert or reshape it"
        )
    if torch.compiler.is_compiling():
        return  # reading values would break the graph: a compiled step trusts its data
    rows = matrix.detach()
    low, total = rows.amin(dim=-1), rows.sum(dim=-1)
    wrong = ~((low >= 0) & ((total - 1).abs() <= max(_SLACK, 2 * torch.finfo(rows.dtype).eps)))  # NaN is wrong too
    if bool(wrong.any()):
        *where, row = index = tuple(wrong.nonzero()[0].tolist())
        inside = f" of matrix {tuple(where)}" if where else ""
        mirrored = bool((rows.amin() >= 0) & ((rows.sum(dim=-2) - 1).abs().amax() <= _SLACK))
        advice = "its columns sum to one, so transpose it" if mirrored else "divide each row by its sum"
        raise UserError(
            f"expected every row of {name} to be a distribution, got row {row}{inside} with least entry "
            f"{float(low[index]):.3g} "
            f"and sum {float(total[index]):.4g}; {advice}"
        )


def chain_distribution_definition(
    initial: Float[Tensor, "*batch k"] | ArrayLike, transitions: Float[Tensor, "*batch n k k"] | ArrayLike
) -> Float[Tensor, "*batch k"]:
    """ν A_0 A_1 ... A_{n-1}: the distribution of X_n, the row vector ν taken through one matrix after the other.

    Notes: D5.1-7.
    """
    initial = float_tensor(initial, "initial", transitions)
    transitions = float_tensor(transitions, "transitions", initial)
    check_shapes("... k, ... n k k", initial=initial, transitions=transitions)
    check_probs(initial, "initial")
    check_stochastic(transitions, "transitions")
    probs = initial.unsqueeze(-2)
    for matrix in transitions.unbind(dim=-3):
        probs = probs @ matrix
    return probs.squeeze(-2)


def chain_distribution(
    initial: Float[Tensor, "*batch k"] | ArrayLike, transition: Float[Tensor, "*batch k k"] | ArrayLike, num_steps: int
) -> Float[Tensor, "*batch k"]:
    """ν Aⁿ, `chain_distribution_definition` for one matrix used n times, in log₂ n squarings.

    >>> chain_distribution(torch.tensor([1.0, 0.0]), torch.tensor([[0.5, 0.5], [0.25, 0.75]]), 2)
    tensor([0.3750, 0.6250])

    Notes: D5.1-5.
    """
    initial = float_tensor(initial, "initial", transition)
    transition = float_tensor(transition, "transition", initial)
    check_shapes("... k, ... k k", initial=initial, transition=transition)
    check_probs(initial, "initial")
    check_stochastic(transition, "transition")  # squaring would make distributions of other rows in silence
    probs, power, left = initial.unsqueeze(-2), transition, check_steps(num_steps)
    while left:
        if left & 1:
            probs = probs @ power
        left >>= 1
        if left:
            power = power @ power
            # Squaring doubles how far rounding has taken the rows from one; the sum is a constant and has no gradient.
            power = power / power.sum(dim=-1, keepdim=True).detach()
    return probs.squeeze(-2)


@shown
class FiniteChain(ABC):
    """X_0, X_1, ... on k states, with P[X_0 = i] = ν_i and P[X_{t+1} = j | X_0, ..., X_t = i] = (A_t)_ij.

    Notes: D5.1-2.
    """

    initial: Float[Tensor, "k"]

    @abstractmethod
    def transition_at(self, time: int) -> Float[Tensor, "k k"]:
        """A_t."""

    @abstractmethod
    def distribution(self, num_steps: int) -> Float[Tensor, "k"]:
        """The distribution of X_n."""

    def log_prob(self, path: Integer[Tensor, "*batch times"] | ArrayLike) -> Float[Tensor, "*batch"]:
        """ln P[X_0 = x_0, ..., X_n = x_n] = ln ν_{x_0} + sum_t ln (A_t)_{x_t x_{t+1}}; minus infinity for
        what cannot happen.
        """
        path = number_tensor(path, "path")
        if path.ndim == 0 or path.shape[-1] == 0:
            raise UserError(
                f"expected paths of at least one state on the last axis, got shape {tuple(path.shape)}; give x_0, "
                "..., x_n"
            )
        check_labels(path, len(self.initial))
        path = path.long()
        total = self.initial[path[..., 0]].log()
        for time in range(path.shape[-1] - 1):
            total = total + self.transition_at(time)[path[..., time], path[..., time + 1]].log()
        return total

    def joint_distribution(self, num_steps: int) -> Float[Tensor, "..."]:
        """P[X_0 = x_0, ..., X_n = x_n] for every path at once, one axis of size k for each of the n + 1 times."""
        k = len(self.initial)
        if k ** (check_steps(num_steps) + 1) > MOST_PATHS:
            raise UserError(f"expected at most {MOST_PATHS} paths to list, got {k}^{num_steps + 1}; take fewer steps")
        joint = self.initial
        for time in range(num_steps):
            joint = joint.unsqueeze(-1) * self.transition_at(time)
        return joint

    def sample_paths(
        self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator
    ) -> Int[Tensor, "{num_paths} {num_steps}+1"]:
        """Independent paths X_0, ..., X_n, all taking their steps together."""
        paths = torch.empty(num_paths, check_steps(num_steps) + 1, dtype=torch.long)
        paths[:, 0] = _sampled(self.initial.expand(num_paths, -1), generator)
        for time in range(num_steps):
            paths[:, time + 1] = _sampled(self.transition_at(time)[paths[:, time]], generator)
        return paths


class MarkovChain(FiniteChain):
    """The chain of one matrix at all times: P[X_{t+1} = j | X_t = i] = A_ij.

    >>> weather = MarkovChain(torch.tensor([1.0, 0.0]), torch.tensor([[0.9, 0.1], [0.5, 0.5]]))
    >>> weather.log_prob(torch.tensor([0, 0, 1])).exp()
    tensor(0.0900)

    Notes: D5.1-2, D5.1-5.
    """

    def __init__(self, initial: Float[Tensor, "k"] | ArrayLike, transition: Float[Tensor, "k k"] | ArrayLike):
        initial = float_tensor(initial, "initial", transition)
        transition = float_tensor(transition, "transition", initial)
        check_shapes("k, k k", initial=initial, transition=transition)
        check_same_dtype(initial, transition)
        check_probs(initial, "initial")
        check_stochastic(transition, "transition")
        self.initial, self.transition = initial, transition

    def transition_at(self, time: int) -> Float[Tensor, "k k"]:
        return self.transition

    def distribution(self, num_steps: int) -> Float[Tensor, "k"]:
        return chain_distribution(self.initial, self.transition, num_steps)

    def _repr_html_(self) -> str:
        picture = chain_graph(self.transition.tolist(), title=repr(self)) if len(self.initial) <= _DRAWN else ""
        return f"{picture}{fields_table('MarkovChain', shown_fields(self))}"


class InhomogeneousChain(FiniteChain):
    """The chain of a matrix for each step: P[X_{t+1} = j | X_t = i] = (A_t)_ij for t < n; after that it is not defined.

    Notes: D5.1-7.
    """

    def __init__(self, initial: Float[Tensor, "k"] | ArrayLike, transitions: Float[Tensor, "n k k"] | ArrayLike):
        initial = float_tensor(initial, "initial", transitions)
        transitions = float_tensor(transitions, "transitions", initial)
        check_shapes("k, n k k", initial=initial, transitions=transitions)
        check_same_dtype(initial, transitions)
        check_probs(initial, "initial")
        check_stochastic(transitions, "transitions")
        self.initial, self.transitions = initial, transitions

    def transition_at(self, time: int) -> Float[Tensor, "k k"]:
        if not 0 <= time < len(self.transitions):
            raise UserError(
                f"expected a step from 0 to {len(self.transitions) - 1}, got {time}; give the chain more matrices"
            )
        return self.transitions[time]

    def distribution(self, num_steps: int) -> Float[Tensor, "k"]:
        if check_steps(num_steps) > len(self.transitions):
            raise UserError(
                f"expected at most {len(self.transitions)} steps, got {num_steps}; give the chain more matrices"
            )
        return chain_distribution_definition(self.initial, self.transitions[:num_steps])


def check_steps(num_steps: int) -> int:
    if num_steps < 0:
        raise UserError(f"expected a number of steps from 0 up, got {num_steps}; time does not run backwards here")
    return num_steps


def _sampled(probs: Tensor, generator: torch.Generator) -> Tensor:  # (paths, k) -> (paths,)
    """One state for each distribution, by inverting its distribution function."""
    heights = probs.detach().double().cumsum(dim=-1)
    heights = (
        heights / heights[:, -1:]
    )  # the last height is exactly one: rounding never chooses a state of probability zero
    levels = torch.rand(len(probs), 1, generator=generator, dtype=torch.float64)
    return (heights <= levels).sum(dim=-1)
