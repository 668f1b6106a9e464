"""How a cost grows with the size of its input: the constant of a bound, and the power that fits what was counted or
measured.

Costs may be operations, bytes or seconds. What to count is in counting.py and counted_algorithms.py.   r runs, d sizes
of each
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["PowerLaw", "fit_complexity", "growth_constant"]

Sizes = Sequence[float] | Sequence[Sequence[float]]


def growth_constant(sizes: Sizes, costs: Sequence[float], growth: Callable[..., float], *, start: float = 1) -> float:
    """The least C for which every cost with all its sizes at `start` or above keeps cost ≤ C g(sizes): max cost / g.

    cost is O(g) if some C serves for all sizes from some n₀ on. Of finitely many runs a C is always found; whether it
    stays as larger sizes come is the question.

    Args:
        sizes: A number for each run, or a row of numbers where several sizes change.
        growth: g, a function of the sizes of a run.

    >>> sizes = [1, 10, 100, 1000]
    >>> growth_constant(sizes, [3 * n + 20 for n in sizes], lambda n: n, start=10)
    5.0

    Notes: D4-1, D4-2.
    """
    rows, values = _runs(sizes, costs)
    kept = [(row, cost) for row, cost in zip(rows.tolist(), values.tolist()) if min(row) >= start]
    if not kept:
        raise UserError(
            f"expected runs with every size at {start:g} or above, got none among {len(rows)}; lower start or add "
            "larger runs"
        )
    bounds = [growth(*row) for row, _ in kept]
    if not all(bound > 0 and math.isfinite(bound) for bound in bounds):
        row = next(row for (row, _), bound in zip(kept, bounds) if not (bound > 0 and math.isfinite(bound)))
        raise UserError(
            f"expected a growth that is positive and finite, got {growth(*row):g} at {row}; start at larger sizes"
        )
    return max(cost / bound for (_, cost), bound in zip(kept, bounds))


@shown
@dataclass(frozen=True)
class PowerLaw:
    """cost ≈ constant · n₁^exponents₁ ⋯ n_d^exponents_d; `standard_errors` are those of the exponents."""

    constant: float
    exponents: tuple[float, ...]
    standard_errors: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Of a power law in one size."""
        if len(self.exponents) != 1:
            raise UserError(f"expected a power law in one size, got one in {len(self.exponents)}; read its exponents")
        return self.exponents[0]

    def __call__(self, *sizes: float) -> float:
        """The cost that the power law gives at these sizes."""
        if len(sizes) != len(self.exponents):
            raise UserError(f"expected {len(self.exponents)} sizes, got {len(sizes)}; give one for each exponent")
        return self.constant * math.prod(size**exponent for size, exponent in zip(sizes, self.exponents))


def fit_complexity(sizes: Sizes, costs: Sequence[float]) -> PowerLaw:
    """The power law nearest to the runs by least squares on logarithms: ln cost = ln C + Σ_i a_i ln n_i + noise.

    `sizes` are numbers, or rows of d numbers where several sizes change. A factor of ln n is no power: with it the
    exponent comes out about 1/ln n too large, less and less for larger runs.

    >>> law = fit_complexity([(8, 2), (16, 2), (8, 4), (32, 16)], [128, 512, 256, 16384])
    >>> [round(exponent, 6) for exponent in law.exponents], round(law(64, 64))
    ([2.0, 1.0], 262144)

    Notes: D4-1, D4-2.
    """
    rows, values = _runs(sizes, costs)
    num_runs, num_sizes = rows.shape
    if num_runs < num_sizes + 2:
        raise UserError(
            f"expected {num_sizes + 2} runs or more to fit {num_sizes} exponents, got {num_runs}; measure at more sizes"
        )
    if not (values > 0).all():
        raise UserError(f"expected positive costs, got {float(values.min()):g}; a cost of zero has no logarithm")
    logs = rows.log()
    center, level = logs.mean(dim=0), values.log().mean()
    away = logs - center  # centred, for ln n is large beside its changes
    if int(torch.linalg.matrix_rank(away)) < num_sizes:
        raise UserError(
            "expected sizes that change independently, got some that move together or not at all; vary them one by one"
        )
    exponents = torch.linalg.lstsq(away, (values.log() - level)[:, None]).solution[:, 0]
    left = values.log() - level - away @ exponents
    variance = left.square().sum() / (num_runs - num_sizes - 1)
    errors = (variance * torch.linalg.inv(away.mT @ away).diagonal()).sqrt()
    constant = math.exp(float(level - center @ exponents))
    return PowerLaw(constant, tuple(exponents.tolist()), tuple(errors.tolist()))


def _runs(sizes: Sizes, costs: Sequence[float]) -> tuple[Tensor, Tensor]:  # (r, d), (r,)
    """Sizes in rows, beside their costs; sizes are positive, costs not negative, all finite."""
    given = [size if isinstance(size, Sequence) else (size,) for size in sizes]
    if not given or len(given) != len(costs):
        raise UserError(f"expected one cost for each run, got {len(costs)} for {len(given)}; give as many of both")
    if not given[0] or any(len(row) != len(given[0]) for row in given):
        raise UserError(
            f"expected as many sizes in every run, got {sorted({len(row) for row in given})}; give the same ones in all"
        )
    rows, values = torch.tensor(given, dtype=torch.float64), torch.tensor(list(costs), dtype=torch.float64)
    if not (rows.isfinite().all() and (rows > 0).all()):
        raise UserError("expected finite sizes above zero, got others; leave those runs out")
    if not (values.isfinite().all() and (values >= 0).all()):
        raise UserError("expected finite costs that are not negative, got others; leave those runs out")
    return rows, values
