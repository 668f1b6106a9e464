"""Moments of normal vectors of any order: the sum over pairings, and the recursion that makes order 20 quick.

An index list may repeat: (0, 0, 1) asks for E[X_0² X_1]. The recursion is Gaussian integration by parts (stein.py),

    E[X_i X^m] = μ_i E[X^m] + sum_j Σ_ij m_j E[X^(m - e_j)],      X^m = prod_j X_j^(m_j),

on the powers m, each vector of powers met once: 20 different indices have 654,729,075 pairings, and 10,946
vectors of powers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.covariance import check_covariance, check_vectors, support
from quoin.tensor import check_same_dtype
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["normal_moment", "pairings", "polynomial_moment", "wick", "wick_definition"]


def pairings(count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every way to split {0, ..., count - 1} into pairs: (count - 1)!! of them, none for an odd count.

    >>> list(pairings(4))
    [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]

    Notes: D5-21.
    """
    yield from _pairings(tuple(range(count)))


def wick_definition(
    covariance: Real[Tensor, "*batch d d"] | ArrayLike, indices: Sequence[int]
) -> Real[Tensor, "*batch"]:
    """E[X_(i_1) ... X_(i_n)] = sum over pairings π of prod over {a, b} in π of Σ_(i_a, i_b), for X ~ N(0, Σ).

    Notes: D5-21, DE41.
    """
    covariance = number_tensor(covariance, "covariance")
    check_same_dtype(covariance)
    total = covariance.new_zeros(covariance.shape[:-2])
    for pairing in pairings(len(indices)):
        product = torch.ones_like(total)
        for a, b in pairing:
            product = product * covariance[..., indices[a], indices[b]]
        total = total + product
    return total


def wick(covariance: Float[Tensor, "*batch d d"] | ArrayLike, indices: Sequence[int]) -> Float[Tensor, "*batch"]:
    """`wick_definition` by recursion: E[X_i X^m] = sum_j Σ_ij m_j E[X^(m
    - e_j)]; 0 for an odd number of indices, 1 for none.

    >>> wick(torch.tensor([[2.0]]), [0] * 4)  # 3 σ⁴
    tensor(12.)

    Notes: D5-21, DE41.
    """
    covariance = float_tensor(covariance, "covariance")
    _check_semi_definite(covariance)
    distinct, powers = _powers(indices, covariance.shape[-1])
    if len(indices) % 2:
        return covariance.new_zeros(covariance.shape[:-2])
    pairs = covariance[..., distinct, :][..., distinct].flatten(-2)
    return _evaluate(_plan(powers, False), pairs)


def normal_moment(
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
    indices: Sequence[int],
) -> Float[Tensor, "*#batch"]:
    """E[X_(i_1) ... X_(i_n)] for X ~ N(μ, Σ): Isserlis' theorem holds for centred X only, and a mean adds a term
    to each step.

    >>> normal_moment(torch.tensor([1.0]), torch.tensor([[1.0]]), [0] * 4)  # μ⁴ + 6 μ² σ² + 3 σ⁴
    tensor(10.)

    Notes: D5-21.
    """
    mean = float_tensor(mean, "mean", covariance)
    covariance = float_tensor(covariance, "covariance", mean)
    _check_semi_definite(covariance)
    check_vectors(mean, covariance, covariance.shape[:-2], "mean")
    distinct, powers = _powers(indices, covariance.shape[-1])
    batch = torch.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
    pairs = covariance[..., distinct, :][..., distinct].flatten(-2).expand(*batch, -1)
    return _evaluate(_plan(powers, True), torch.cat([pairs, mean[..., distinct].expand(*batch, -1)], dim=-1))


def polynomial_moment(
    terms: Mapping[tuple[int, ...], Real[Tensor, "*#batch"] | ArrayLike],
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
) -> Float[Tensor, "*#batch"]:
    """E[sum_t c_t X_(i_1) ... X_(i_n)] for a polynomial given as {indices: coefficient}, () being the constant's.

    >>> square = {(): 1.0, (0,): -2.0, (0, 0): 1.0}  # (X - 1)²
    >>> polynomial_moment(square, torch.tensor([1.0]), torch.tensor([[5.0]]))
    tensor(5.)

    Notes: D5-21.
    """
    mean = float_tensor(mean, "mean", covariance)
    covariance = float_tensor(covariance, "covariance", mean)
    if not terms:
        raise UserError("expected at least one term of a polynomial, got none; give e.g. {(0, 0): 1.0} for X_0²")
    return torch.stack(
        [
            float_tensor(coefficient, "a coefficient", mean) * normal_moment(mean, covariance, indices)
            for indices, coefficient in terms.items()
        ]
    ).sum(dim=0)


class _Level(NamedTuple):
    """How the moments of one order come from those of one order less, followed by those of two less: sums of
    products by edges.
    """

    num_moments: int
    moment: Tensor  # (edges,) which moment of this order
    below: Tensor  # (edges,) which moment below
    weight: Tensor  # (edges,) which entry of Σ, row by row, or beyond these of μ
    times: Tensor  # (edges,)


def _evaluate(plan: tuple[_Level, ...], weights: Tensor) -> Tensor:  # (..., k² or k² + k) -> (...)
    batch = weights.shape[:-1]
    one_below, two_below = weights.new_ones(*batch, 1), weights.new_zeros(*batch, 0)
    for level in plan:
        moment, below, weight, times = (each.to(weights.device) for each in level[1:])
        products = (
            times.to(weights.dtype) * weights[..., weight] * torch.cat([one_below, two_below], dim=-1)[..., below]
        )
        found = weights.new_zeros(*batch, level.num_moments).index_add(-1, moment, products)
        one_below, two_below = found, one_below
    return one_below.squeeze(-1)


@lru_cache(maxsize=64)
def _plan(powers: tuple[int, ...], shifted: bool) -> tuple[_Level, ...]:
    """The levels from order 1 up; they depend on the powers alone, and on whether there is a mean."""
    k, order = len(powers), sum(powers)
    known: list[dict[tuple[int, ...], int]] = [{} for _ in range(order + 1)]  # by order: powers -> index
    known[order][powers] = 0
    levels: list[_Level] = []
    for n in range(order, 0, -1):
        singles, pairs = [], []  # (moment, below, weight, times)
        for state, index in known[n].items():
            i = next(each for each in range(k) if state[each])
            rest = _less(state, i)
            if shifted:
                singles.append((index, known[n - 1].setdefault(rest, len(known[n - 1])), k * k + i, 1))
            for j in range(i, k):
                if rest[j]:
                    left = _less(rest, j)
                    pairs.append((index, known[n - 2].setdefault(left, len(known[n - 2])), i * k + j, rest[j]))
        ahead = len(known[n - 1])
        edges = singles + [(index, below + ahead, weight, times) for index, below, weight, times in pairs]
        columns = torch.tensor(edges, dtype=torch.long).reshape(-1, 4).unbind(dim=1)
        levels.append(_Level(len(known[n]), *columns))
    return tuple(reversed(levels))


def _check_semi_definite(covariance: Tensor) -> None:
    """Raise an error for what is no covariance: the recursion would give it numbers that are moments of nothing."""
    check_covariance(covariance)
    support(covariance.detach())


def _less(powers: tuple[int, ...], index: int) -> tuple[int, ...]:
    return (*powers[:index], powers[index] - 1, *powers[index + 1 :])


def _powers(indices: Sequence[int], dim: int) -> tuple[list[int], tuple[int, ...]]:
    """The distinct indices, the most frequent last, and how often each occurs: fewer vectors of powers are
    met that way.
    """
    for index in indices:
        if not 0 <= index < dim:
            raise UserError(f"expected indices from 0 to {dim - 1}, got {index}; count coordinates from 0")
    counted = sorted(Counter(int(index) for index in indices).items(), key=lambda each: each[1])
    return [index for index, _ in counted], tuple(count for _, count in counted)


def _pairings(indices: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    if not indices:
        yield ()
    for k in range(1, len(indices)):
        for others in _pairings(indices[1:k] + indices[k + 1 :]):
            yield ((indices[0], indices[k]), *others)
