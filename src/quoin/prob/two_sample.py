"""Two-sample test: do two samples come from one distribution, as is assumed when a test error is reported?

n and m examples, d features
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_finite, check_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor
from quoin.tensor.blocks import rows_per_block

__all__ = ["TwoSampleTest", "energy_distance", "energy_test"]

MOST_ROWS = 20_000  # of both samples together: all pairs of them are compared
_ENTRIES_PER_BLOCK = 1_000_000  # entries of permutations held at once


@shown
class TwoSampleTest(NamedTuple):
    """How far apart two samples are, and how probable that is for two samples of one distribution;
    true unless `rejected`.
    """

    output: float  # the energy distance
    p_value: float

    @property
    def rejected(self) -> bool:
        """Whether the samples differ at the level of one in a hundred."""
        return self.p_value <= 0.01

    def __bool__(self) -> bool:
        return not self.rejected


def energy_distance(
    first: Float[Tensor, "n d"] | ArrayLike, second: Float[Tensor, "m d"] | ArrayLike
) -> Float[Tensor, ""]:
    """2 E|X - Y| - E|X - X'| - E|Y - Y'| for the distributions that give each row of a sample the same weight; zero for
    equal distributions only.

    Notes: Z3.21.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    _check(first, second)
    crossed, within_first, within_second = (
        torch.cdist(first, second),
        torch.cdist(first, first),
        torch.cdist(second, second),
    )
    return 2 * crossed.mean() - within_first.mean() - within_second.mean()


def energy_test(
    first: Float[Tensor, "n d"] | ArrayLike,
    second: Float[Tensor, "m d"] | ArrayLike,
    *,
    num_permutations: int = 999,
    generator: torch.Generator | None = None,
) -> TwoSampleTest:
    """A permutation test of the assumption that all rows are independent samples from one distribution.

    The p-value is the fraction of random splits into samples of the same sizes that are at least as far apart, the one
    at hand counted in. If all rows are samples from one distribution it is at most α with probability at most α, for
    any distribution. Bring features to one scale first.

    Notes: Z3.21.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    _check(first, second)
    if num_permutations < 1:
        raise UserError(f"expected at least one permutation, got {num_permutations}; 999 give p-values down to 0.001")
    rows = torch.cat([first, second]).detach().double()
    if len(rows) > MOST_ROWS:
        raise UserError(f"expected at most {MOST_ROWS} rows together, got {len(rows)}; test a random subset of them")
    distances = torch.cdist(rows, rows)
    n, m = len(first), len(second)
    # a_i = 1/n for rows of the first sample and -1/m for the others: the energy distance is -aᵀDa.
    signs = torch.cat([rows.new_full((n,), 1 / n), rows.new_full((m,), -1 / m)])
    at_hand = -(signs @ distances @ signs)
    as_far, slack = 0, 1e-9 * float(distances.mean())  # equal up to rounding counts as equal
    for block in torch.arange(num_permutations).split(rows_per_block(n + m, _ENTRIES_PER_BLOCK)):
        orders = torch.rand(len(block), n + m, generator=generator, dtype=torch.float64).argsort(dim=1)
        a = signs[orders.to(rows.device)]
        as_far += int((-((a @ distances) * a).sum(dim=1) >= at_hand - slack).sum())
    return TwoSampleTest(float(at_hand), (1 + as_far) / (1 + num_permutations))


def _check(first: Tensor, second: Tensor) -> None:
    check_shapes("n d, m d", first=first, second=second)
    for name, sample in (("first", first), ("second", second)):
        check_floating(sample, name)
        check_finite(sample, name)
        if len(sample) == 0:
            raise UserError(
                f"expected at least one row in each sample, got shape {tuple(sample.shape)} for {name}; give more"
            )
