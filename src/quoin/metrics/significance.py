"""Is one method better than another, or were its seeds luckier? Intervals and permutation tests over repeated runs.

The tests assume no distribution of the metric. Few repeats bound what they can show: three pairs give no p-value below
0.25, which `smallest_p` says. n and m are numbers of repeats.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor import check_finite, check_floating, check_shapes
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "PermutationTest",
    "StudentInterval",
    "holm_correction",
    "permutation_test_paired",
    "permutation_test_paired_definition",
    "permutation_test_unpaired",
    "permutation_test_unpaired_definition",
    "student_t_probability",
    "student_t_quantile",
    "t_interval",
]

MOST_ENUMERATED = 20  # values whose sign flips or splits are all tried: a million of them
_ENTRIES_PER_BLOCK = 1_000_000  # of random flips held at once
_ROUNDING = 1e-9  # sums that differ by less, of the sum of all absolute values, count as equal


@shown
class PermutationTest(NamedTuple):
    """A difference of means, and how often chance alone gives one at least as large in absolute value."""

    output: float  # the difference
    p_value: float  # two-sided
    exact: bool  # every permutation was tried; otherwise num_permutations random ones
    num_permutations: int
    smallest_p: float  # no data of these sizes give a smaller p-value


@shown
class StudentInterval(NamedTuple):
    """A mean and the confidence interval around it."""

    output: float
    low: float
    high: float


def permutation_test_paired_definition(differences: Float[Tensor, "n"]) -> float:
    """The p-value of the mean of paired differences: if the two methods are alike, each difference is as probable with
    the other sign, so it is the fraction of all 2^n choices of signs whose mean is at least as far from zero."""
    d = differences.detach().double().tolist()
    at_hand, slack = abs(math.fsum(d)), _ROUNDING * math.fsum(map(abs, d))
    sums = [
        abs(math.fsum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    return sum(each >= at_hand - slack for each in sums) / len(sums)


def permutation_test_paired(
    differences: Float[Tensor, "n"], *, num_permutations: int = 99_999, generator: torch.Generator | None = None
) -> PermutationTest:
    """The sign-flip test of paired differences, such as those of two methods under the same seeds.

    Args:
        num_permutations: How many random choices of signs are tried where there are more than 20 differences, and with
            them all 2^n are too many. The p-value is then (1 + those at least as far from zero) / (1 + all tried).
        generator: For these; by default one of seed 0.
    """
    _check(differences, differences, num_permutations)
    d = differences.detach().double()
    n, at_hand, slack = len(d), abs(float(d.sum())), _ROUNDING * float(d.abs().sum())
    if n <= MOST_ENUMERATED:
        sums = d.new_zeros(1)
        for each in d:  # all sums of the differences so far, with either sign of the next
            sums = torch.cat([sums + each, sums - each])
        p = float((sums.abs() >= at_hand - slack).double().mean())
        return PermutationTest(float(d.mean()), p, True, len(sums), 2.0 ** (1 - n))
    generator, as_far = generator or torch.Generator().manual_seed(0), 0
    for block in torch.arange(num_permutations).split(rows_per_block(n, _ENTRIES_PER_BLOCK)):
        signs = 2 * torch.randint(2, (len(block), n), generator=generator).double() - 1
        as_far += int(((signs.to(d.device) @ d).abs() >= at_hand - slack).sum())
    total = 1 + num_permutations
    return PermutationTest(float(d.mean()), (1 + as_far) / total, False, num_permutations, 1 / total)


def permutation_test_unpaired_definition(first: Float[Tensor, "n"], second: Float[Tensor, "m"]) -> float:
    """The p-value of the difference of two means: if both samples come from one distribution, every choice of n of the
    n + m values is as probable to be the first, so it is the fraction of those whose means are at least as far
    apart."""
    values = torch.cat([first, second]).detach().double().tolist()
    n, m, total = len(first), len(second), math.fsum(values)
    apart = [
        abs(math.fsum(chosen) / n - (total - math.fsum(chosen)) / m) for chosen in itertools.combinations(values, n)
    ]
    slack = _ROUNDING * math.fsum(map(abs, values)) * (1 / n + 1 / m)
    return sum(each >= apart[0] - slack for each in apart) / len(apart)


def permutation_test_unpaired(
    first: Float[Tensor, "n"],
    second: Float[Tensor, "m"],
    *,
    num_permutations: int = 99_999,
    generator: torch.Generator | None = None,
) -> PermutationTest:
    """The permutation test of two samples' means, mean of `first` minus mean of `second`.

    Args:
        num_permutations: How many random splits are tried where there are more than 20 values together. The p-value is
            then (1 + those at least as far apart) / (1 + all tried).
        generator: For these; by default one of seed 0.
    """
    _check(first, second, num_permutations)
    x, y = first.detach().double(), second.detach().double()
    values, n, m = torch.cat([x, y]), len(x), len(y)
    difference = float(x.mean() - y.mean())
    # The difference of the means is (1/n + 1/m) (sum of the first - its expected value n/(n+m) of the total).
    expected = float(values.sum()) * n / (n + m)
    least = abs(float(x.sum()) - expected) - _ROUNDING * float(values.abs().sum())
    if n + m <= MOST_ENUMERATED:
        sums = _sums_of(values, n)
        p, splits = float(((sums - expected).abs() >= least).double().mean()), math.comb(n + m, n)
        return PermutationTest(difference, p, True, splits, (2 if n == m else 1) / splits)
    generator, as_far = generator or torch.Generator().manual_seed(0), 0
    for block in torch.arange(num_permutations).split(rows_per_block(n + m, _ENTRIES_PER_BLOCK)):
        orders = torch.rand(len(block), n + m, generator=generator, dtype=torch.float64).argsort(dim=1)
        sums = values[orders[:, :n].to(values.device)].sum(dim=1)
        as_far += int(((sums - expected).abs() >= least).sum())
    total = 1 + num_permutations
    return PermutationTest(difference, (1 + as_far) / total, False, num_permutations, 1 / total)


def _sums_of(values: Tensor, count: int) -> Tensor:
    """The sums of all choices of `count` values, each value in turn left out or taken."""
    sums = [values.new_zeros(1), *(values.new_zeros(0) for _ in range(count))]  # by the number of values taken
    for each in values:
        sums = [sums[0], *(torch.cat([sums[k], sums[k - 1] + each]) for k in range(1, count + 1))]
    return sums[count]


def student_t_probability(theta: float, df: int) -> float:
    """P(|T| <= t) for Student's t with df degrees of freedom, where t = sqrt(df) tan(theta): a finite sum of powers of
    cos(theta), as df is whole (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(theta), math.cos(theta)
    if df % 2:
        term, total = sine * cosine, 0.0
        for k in range(1, df - 1, 2):
            total += term
            term *= cosine**2 * (k + 1) / (k + 2)
        return 2 / math.pi * (theta + total)
    term, total = sine, 0.0
    for k in range(0, df - 1, 2):
        total += term
        term *= cosine**2 * (k + 1) / (k + 2)
    return total


def student_t_quantile(confidence: float, df: int) -> float:
    """The t with P(|T| <= t) = confidence for Student's t with df degrees of freedom, by bisection."""
    if not 0 < confidence < 1:
        raise UserError(f"expected a confidence between 0 and 1, got {format_value(confidence)}; 0.95 is usual")
    if df < 1:
        raise UserError(f"expected at least one degree of freedom, got {df}; give two values or more")
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_t_probability(middle, df) < confidence else (low, middle)
    return math.sqrt(df) * math.tan(low)


def t_interval(values: Float[Tensor, "n"], confidence: float = 0.95) -> StudentInterval:
    """mean ± t s / sqrt(n), with s the standard deviation of the sample and t Student's quantile of n - 1 degrees of
    freedom: it holds the true mean with this probability if the values are independent and normal."""
    _check(values, values)
    if len(values) < 2:
        raise UserError(f"expected two or more values for an interval, got {len(values)}; train with more seeds")
    v = values.detach().double()
    mean = float(v.mean())
    half = student_t_quantile(confidence, len(v) - 1) * float(v.std()) / math.sqrt(len(v))
    return StudentInterval(mean, mean - half, mean + half)


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm, 1979): the probability of rejecting any true hypothesis at level α is
    at most α, however the tests depend on one another. The smallest is multiplied by their number, the next by one less
    and so on, and none is below one before it.

    >>> [round(p, 3) for p in holm_correction([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted


def _check(first: Tensor, second: Tensor, num_permutations: int = 1) -> None:
    check_shapes("n, m", first=first, second=second)
    for name, sample in (("first", first), ("second", second)):
        check_floating(sample, name)
        check_finite(sample, name)
        if len(sample) == 0:
            raise UserError(f"expected at least one value, got shape {tuple(sample.shape)} for {name}; give more")
    if num_permutations < 1:
        raise UserError(f"expected at least one permutation, got {num_permutations}; 99999 give p-values to 0.00001")
