"""Finite probability spaces: outcomes with probabilities, random variables as functions of the outcome, distributions.

On finitely many outcomes every set is an event and every function is measurable, so F needs no
name. An event is a question about an outcome, `lambda roll: roll[0] == roll[1]`. Probabilities
may have batch axes in front: many measures P on one set Omega. Pairs as tables of numbers are in
tables.py; means and variances in moments.py.   n outcomes, k values
"""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.display import bar_chart, fields_table, shown
from quoin.errors import UserError, format_value
from quoin.prob.checks import check_probs, rounding_of
from quoin.prob.tables import independence_gap

__all__ = ["ProbabilitySpace", "RandomVariable", "are_independent", "distribution_of", "joint_table", "joint_variable"]

Event = Callable[[Any], bool]


@shown
class ProbabilitySpace:
    """(Omega, F, P): finitely many outcomes, all sets of them as events, and P[A] = sum_{w in A} P[{w}].

    >>> dice = ProbabilitySpace.uniform([(i, j) for i in range(1, 7) for j in range(1, 7)])
    >>> round(float(dice.probability(lambda roll: sum(roll) == 7)), 6)  # 6 rolls of 36
    0.166667

    Notes: D5-1.
    """

    def __init__(self, outcomes: Iterable[Hashable], probabilities: Float[Tensor, "*batch n"] | Sequence[float]):
        self.outcomes: tuple[Any, ...] = tuple(outcomes)
        table = probabilities if isinstance(probabilities, Tensor) else torch.tensor(probabilities, dtype=torch.float64)
        check_probs(table, "the probabilities")
        if table.shape[-1] != len(self.outcomes):
            raise UserError(
                f"expected one probability for each of {len(self.outcomes)} outcomes, got {table.shape[-1]}; make "
                "them as many"
            )
        if len(set(self.outcomes)) != len(self.outcomes):
            twice = next(each for index, each in enumerate(self.outcomes) if each in self.outcomes[:index])
            raise UserError(f"expected each outcome once, got {format_value(twice)} twice; add their probabilities")
        self.probabilities = table

    @classmethod
    def uniform(cls, outcomes: Iterable[Hashable]) -> "ProbabilitySpace":
        """All outcomes alike: P[A] = |A| / n."""
        outcomes = tuple(outcomes)
        if not outcomes:
            raise UserError("expected at least one outcome, got none; a probability space has one")
        return cls(outcomes, torch.full((len(outcomes),), 1 / len(outcomes), dtype=torch.float64))

    def probability(self, event: Event) -> Float[Tensor, "*batch"]:
        """P[A], the sum over the outcomes for which `event` is true."""
        return self.probabilities[..., self._indicator(event)].sum(dim=-1)

    def given(self, event: Event) -> "ProbabilitySpace":
        """The same outcomes under P[ . | B] = P[ . and B] / P[B]; an event of probability zero raises an error."""
        inside = torch.where(self._indicator(event), self.probabilities, 0)
        total = inside.sum(dim=-1, keepdim=True)
        if not bool((total > 0).all()):
            raise UserError(
                "expected an event of positive probability to condition on, got one of probability 0; P[A | B] "
                "needs P[B] > 0"
            )
        return ProbabilitySpace(self.outcomes, inside / total)

    def weighed(
        self, f: Callable[[Any], float | Tensor] | None = None
    ) -> tuple[Float[Tensor, "n"], Float[Tensor, "*batch n"]]:
        """f(w) for every outcome, and the outcomes' probabilities: E f is the sum of their products."""
        numbers = [each if f is None else f(each) for each in self.outcomes]
        try:
            values = torch.stack([torch.as_tensor(each, dtype=self.probabilities.dtype) for each in numbers])
            assert values.ndim == 1
        except (TypeError, ValueError, RuntimeError, AssertionError):
            raise UserError(
                f"expected one number for each outcome, got {format_value(numbers[0])}; give a function that "
                "returns one"
            ) from None
        return values.to(self.probabilities.device), self.probabilities

    def _indicator(self, event: Event) -> Tensor:  # -> (n,) of truth values
        return torch.tensor([bool(event(each)) for each in self.outcomes], device=self.probabilities.device)

    def __repr__(self) -> str:
        return f"ProbabilitySpace of {len(self.outcomes)} outcomes"

    def _repr_html_(self) -> str:
        if self.probabilities.ndim > 1:
            return fields_table(repr(self), {"outcomes": self.outcomes, "probabilities": self.probabilities})
        return bar_chart(self.outcomes, self.probabilities.tolist(), title=repr(self))


@shown
class RandomVariable:
    """X: Omega -> V, a function of the outcome; `values` lists what it takes, sorted where they can be.

    Notes: D5-1.
    """

    def __init__(self, space: ProbabilitySpace, function: Callable[[Any], Hashable]):
        self.space = space
        self._of = {outcome: function(outcome) for outcome in space.outcomes}
        distinct: Iterable[Any] = dict.fromkeys(self._of.values())
        with contextlib.suppress(TypeError):  # values that know no order stay in the order of their first occurrence
            distinct = sorted(distinct)
        self.values = tuple(distinct)

    def __call__(self, outcome: Hashable) -> Any:
        try:
            return self._of[outcome]
        except KeyError:
            raise UserError(
                f"expected an outcome of the space, got {format_value(outcome)}; it has "
                f"{format_value(self.space.outcomes)}"
            ) from None

    @property
    def codes(self) -> Int[Tensor, "n"]:
        """For each outcome, which of `values` it has."""
        index = {value: code for code, value in enumerate(self.values)}
        return torch.tensor(
            [index[self._of[outcome]] for outcome in self.space.outcomes], device=self.space.probabilities.device
        )

    def __repr__(self) -> str:
        return f"RandomVariable of {len(self.values)} values on {self.space!r}"

    def _repr_html_(self) -> str:
        return distribution_of(self)._repr_html_()


def distribution_of(variable: RandomVariable) -> ProbabilitySpace:
    """The image of P under X, itself a probability space, on X's values: P_X[A] = P[X in A].

    >>> dice = ProbabilitySpace.uniform([(i, j) for i in range(1, 7) for j in range(1, 7)])
    >>> largest = distribution_of(RandomVariable(dice, max))
    >>> largest.outcomes
    (1, 2, 3, 4, 5, 6)
    >>> (36 * largest.probabilities).round().tolist()
    [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]

    Notes: D5-2.
    """
    probabilities = variable.space.probabilities
    image = probabilities.new_zeros(*probabilities.shape[:-1], len(variable.values))
    return ProbabilitySpace(variable.values, image.index_add(-1, variable.codes, probabilities))


def joint_variable(first: RandomVariable, second: RandomVariable) -> RandomVariable:
    """(X, Y) as one random variable."""
    _check_one_space(first, second)
    return RandomVariable(first.space, lambda outcome: (first(outcome), second(outcome)))


def joint_table(first: RandomVariable, second: RandomVariable) -> Float[Tensor, "*batch k l"]:
    """P[X = x_i, Y = y_j], a row for each value of X and a column for each of Y."""
    _check_one_space(first, second)
    probabilities, columns = first.space.probabilities, len(second.values)
    table = probabilities.new_zeros(*probabilities.shape[:-1], len(first.values) * columns)
    return table.index_add(-1, first.codes * columns + second.codes, probabilities).unflatten(-1, (-1, columns))


def are_independent(first: RandomVariable, second: RandomVariable, *, tol: float | None = None) -> bool:
    """Whether P[X in A, Y in B] = P[X in A] P[Y in B] for all A and B, to within `tol`: 1e-9, in float32 64 roundings.

    Notes: D5-4.
    """
    joint = joint_table(first, second)
    slack = rounding_of(joint) if tol is None else tol
    return bool((independence_gap(joint) <= slack).all())


def _check_one_space(first: RandomVariable, second: RandomVariable) -> None:
    if first.space is not second.space:
        raise UserError(
            "expected two variables on one probability space, got two spaces; define both on the space of pairs of "
            "outcomes"
        )
