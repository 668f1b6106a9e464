"""Convergence of random variables X_1, X_2, ... to a limit X: almost surely, in L^p, in probability, in distribution.

The first three are about variables on one probability space, seen here as a table with a row for each sample ω and a
column for each time; with equal weights of all ω in a finite space the numbers are exact, with random ω they are
estimates. Convergence in distribution is about distributions alone; its metric is in prokhorov.py.   w samples, n times
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.tensor import check_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "TypewriterInterval",
    "exceedance",
    "kolmogorov_distance",
    "lp_error",
    "set_probability_gap",
    "tail_exceedance",
    "typewriter",
    "typewriter_interval",
    "weak_gap",
]


def exceedance(
    sequence: Float[Tensor, "w n"] | ArrayLike, limit: Real[Tensor, "w"] | ArrayLike, epsilon: float
) -> Float[Tensor, "n"]:
    """P[|X_n - X| > ε] for each n; X_n goes to X in probability if this goes to 0 for every ε > 0.

    Args:
        sequence: X_n(ω), a row for each of w equally probable outcomes ω.
        limit: X(ω).
        epsilon: ε.

    Notes: D5-27.
    """
    sequence = float_tensor(sequence, "sequence", limit)
    limit = number_tensor(limit, "limit", sequence)
    return _beyond(sequence, limit, epsilon).mean(dim=0)


def tail_exceedance(
    sequence: Float[Tensor, "w n"] | ArrayLike, limit: Real[Tensor, "w"] | ArrayLike, epsilon: float
) -> Float[Tensor, "n"]:
    """P[sup_{m >= n} |X_m - X| > ε] for each n, the supremum up to the last column.

    With all times to come in it, this goes to 0 for every ε > 0 if and only if X_n goes to X almost surely.

    Args:
        sequence: X_n(ω), a row for each of w equally probable outcomes ω.
        limit: X(ω).
        epsilon: ε.

    Notes: D5-28.
    """
    sequence = float_tensor(sequence, "sequence", limit)
    limit = number_tensor(limit, "limit", sequence)
    beyond = _beyond(sequence, limit, epsilon)
    return beyond.flip(-1).cummax(dim=-1).values.flip(-1).mean(dim=0)


def lp_error(
    sequence: Float[Tensor, "w n"] | ArrayLike, limit: Real[Tensor, "w"] | ArrayLike, order: float
) -> Float[Tensor, "n"]:
    """E|X_n - X|^p for each n; X_n goes to X in L^p if this goes to 0.

    Args:
        sequence: X_n(ω), a row for each of w equally probable outcomes ω.
        limit: X(ω).
        order: p, at least 1 and finite.

    Notes: D5-29.
    """
    sequence = float_tensor(sequence, "sequence", limit)
    limit = number_tensor(limit, "limit", sequence)
    _check(sequence, limit)
    if not 1 <= order < math.inf:
        raise UserError(f"expected an order from 1 up, got {order}; below 1 it is no norm, and infinity has no mean")
    return (sequence - limit.unsqueeze(-1)).abs().pow(order).mean(dim=0)


def weak_gap(
    first: Real[Tensor, "w ..."] | ArrayLike,
    second: Real[Tensor, "v ..."] | ArrayLike,
    functions: Sequence[Callable[[Tensor], Tensor]],
) -> Float[Tensor, ""]:
    """The largest |E f(X) - E f(Y)| over the functions given, from samples of X and of Y or their
    equally probable values.

    X_n goes to X in distribution if this goes to 0 for every bounded continuous f.

    Notes: D5-26.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    if not functions or len(first) == 0 or len(second) == 0:
        raise UserError(
            f"expected functions and samples, got {len(functions)}, {len(first)} and {len(second)}; give at least "
            "one of each"
        )
    return torch.stack([(f(first).mean(dim=0) - f(second).mean(dim=0)).abs() for f in functions]).amax()


def set_probability_gap(
    first: Real[Tensor, "w ..."] | ArrayLike,
    second: Real[Tensor, "v ..."] | ArrayLike,
    event: Callable[[Tensor], Tensor],
) -> Float[Tensor, ""]:
    """|P[X in A] - P[Y in A]|, A given by its indicator; if X_n goes to Y in distribution it goes to 0 where P[Y on the
    edge of A] = 0.

    Notes: D5-26.
    """
    first = number_tensor(first, "first", second)
    second = number_tensor(second, "second", first)
    return weak_gap(first, second, [lambda x: event(x).double()])


def kolmogorov_distance(
    values: Real[Tensor, "w"] | ArrayLike, probs: Float[Tensor, "w"] | ArrayLike, cdf: Callable[[Tensor], Tensor]
) -> Float[Tensor, ""]:
    """sup_x |F(x) - G(x)| for F the distribution function of P[X = x_i] = p_i and G one without jumps; equal p_i
    give a sample's.

    Where G has no jumps, X_n goes to it in distribution if and only if this goes to 0.

    Args:
        values: x_i, in any order.
        cdf: G.

    >>> kolmogorov_distance(torch.tensor([0.0]), torch.tensor([1.0]), lambda x: torch.special.ndtr(x))
    tensor(0.5000)

    Notes: D5-26.
    """
    values = number_tensor(values, "values", probs)
    probs = float_tensor(probs, "probs", values)
    check_shapes("w, w", values=values, probs=probs)
    check_probs(probs, "probs")
    order = values.argsort()
    heights, other = probs[order].cumsum(dim=0), cdf(values[order])
    # F steps at the values and is flat between them, so |F - G| is largest just before or at one.
    return torch.maximum((heights - other).abs().amax(), (heights - probs[order] - other).abs().amax())


@shown
class TypewriterInterval(NamedTuple):
    """Where X_n is one: the `part_index`-th of `parts` equal parts of [0, 1)."""

    parts: Int[Tensor, "*batch"]
    part_index: Int[Tensor, "*batch"]


def typewriter_interval(n: Integer[Tensor, "*batch"] | ArrayLike) -> TypewriterInterval:
    """X_1, X_2 are the indicators of two halves, X_3, X_4, X_5 of three thirds, and so on: block m starts at n = m
    (m - 1) / 2; n counts from 1.

    Notes: D5-31.
    """
    n = number_tensor(n, "n")
    if n.is_floating_point() or bool((n < 1).any()):
        raise UserError(
            f"expected whole numbers from 1 up, got {n.dtype} down to {float(n.min())}; the sequence starts at X_1"
        )
    parts = ((1 + (1 + 8 * n.double()).sqrt()) / 2).long()
    parts = parts - (parts * (parts - 1) // 2 > n).long()  # the root of a large number may be rounded up
    return TypewriterInterval(parts, n - parts * (parts - 1) // 2)


def typewriter(
    n: Integer[Tensor, "*#batch"] | ArrayLike, omega: Float[Tensor, "*#batch"] | ArrayLike
) -> Float[Tensor, "*#batch"]:
    """X_n(ω) = 1 on [j/m, (j + 1)/m), else 0, the interval sweeping [0, 1) in ever more, ever shorter strokes.

    X_n goes to 0 in probability and in every L^p, yet X_n(ω) = 1 again and again for every ω < 1.

    >>> typewriter(torch.arange(1, 10), torch.tensor(0.3)).tolist()
    [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]

    Notes: D5-31.
    """
    n = number_tensor(n, "n", omega)
    omega = float_tensor(omega, "omega", n)
    check_floating(omega, "omega")
    parts, part_index = typewriter_interval(n)
    here = (omega * parts).floor().clamp(max=parts - 1)  # rounding may take ω m up to m
    return ((here == part_index) & (omega >= 0) & (omega < 1)).to(omega.dtype)


def _beyond(sequence: Tensor, limit: Tensor, epsilon: float) -> Tensor:  # -> (w, n) of zeros and ones
    _check(sequence, limit)
    if not epsilon > 0:
        raise UserError(f"expected a positive epsilon, got {epsilon}; give the distance that counts as far")
    return ((sequence - limit.unsqueeze(-1)).abs() > epsilon).to(sequence.dtype)


def _check(sequence: Tensor, limit: Tensor) -> None:
    check_shapes("w n, w", sequence=sequence, limit=limit)
    check_floating(sequence, "sequence")
    if sequence.isnan().any() or limit.isnan().any():
        raise UserError("expected numbers, got NaN; a sample without a value has no distance")
