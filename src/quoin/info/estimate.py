"""Information of distributions known by samples alone: from counts (plug-in) and from nearest-neighbour distances;
with standard errors.

Rows are taken for independent samples. `standard_error` is that of the estimate; each docstring says what bias is left,
which no sample shows. Where too few rows are given to estimate the standard error it is NaN.   n, m rows, d and e
features, k-th neighbours
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.units import convert_base
from quoin.tensor import check_finite, check_floating, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "Estimate",
    "knn_entropy",
    "knn_kl_divergence",
    "ksg_mutual_information",
    "miller_madow_entropy",
    "miller_madow_mutual_information",
    "plug_in_entropy",
    "plug_in_mutual_information",
]

# From the standard deviation of so many groups a standard error is estimated, itself known to a quarter then; larger
# groups are more like the whole.
_GROUPS = 10
_LEAST_ROWS = 15  # of a group, for each neighbour asked for


@shown
class Estimate(NamedTuple):
    """A number from a sample, and the standard deviation that it would show over many such samples."""

    output: Float[Tensor, "*batch"]
    standard_error: Float[Tensor, "*batch"]


def plug_in_entropy(
    counts: Real[Tensor, "*batch cells"] | ArrayLike, *, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """H(p^) of the proportions p^_i = c_i / N; too low by about (cells - 1) / 2N on average, for rare
    outcomes are missed.

    Args:
        counts: c_i, how often each outcome was seen.
        base: Of the logarithm: 2 for bits, e for nats.

    >>> plug_in_entropy(torch.tensor([3, 1]), base=2)
    tensor(0.8113, dtype=torch.float64)
    """
    counts = number_tensor(counts, "counts")
    proportions, _ = _proportions(counts, 1)
    return convert_base(-torch.special.xlogy(proportions, proportions).sum(dim=-1), base)


def miller_madow_entropy(counts: Real[Tensor, "*batch cells"] | ArrayLike, *, base: float = math.e) -> Estimate:
    """H(p^) + (cells that occurred - 1) / 2N: the plug-in with the correction of Miller and Madow.

    A bias of order 1/N² is left if every outcome that is possible occurred, and a downward one of about half the
    missing cells over N if not. The standard error is that of a mean of N surprises, √(Var_p^(log p^) / N), and zero
    for proportions that are all alike.

    Args:
        counts: How often each outcome was seen.
        base: Of the logarithm: 2 for bits, e for nats.
    """
    counts = number_tensor(counts, "counts")
    proportions, total = _proportions(counts, 1)
    surprise = -torch.where(proportions > 0, proportions, 1).log()
    entropy = (proportions * surprise).sum(dim=-1)
    corrected = entropy + ((proportions > 0).sum(dim=-1) - 1) / (2 * total)
    variance = (proportions * (surprise - entropy[..., None]).square()).sum(dim=-1) / total
    return Estimate(convert_base(corrected, base), convert_base(variance.sqrt(), base))


def plug_in_mutual_information(
    counts: Real[Tensor, "*batch rows columns"] | ArrayLike, *, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """I of the proportions c_ij / N of pairs; too high by about (rows - 1)(columns - 1) / 2N on average,
    also under independence.

    Args:
        counts: c_ij, how often each pair was seen.
        base: Of the logarithm: 2 for bits, e for nats.
    """
    counts = number_tensor(counts, "counts")
    return convert_base(_pointwise(counts)[1], base)


def miller_madow_mutual_information(
    counts: Real[Tensor, "*batch rows columns"] | ArrayLike, *, base: float = math.e
) -> Estimate:
    """I(p^) - (cells - rows - columns + 1) / 2N, counting those that occurred: Miller and Madow's correction
    of three entropies.

    May come out below zero where the variables are independent. The variance is that of a mean of N pointwise
    informations, which chance makes f / N² too large for f = (rows - 1)(columns - 1), plus f / 2N², that of the
    chi-square distribution which is all there is at independence.

    Args:
        counts: How often each pair was seen.
        base: Of the logarithm: 2 for bits, e for nats.
    """
    counts = number_tensor(counts, "counts")
    proportions, information, pointwise, total = _pointwise(counts)
    cells = (proportions > 0).sum(dim=(-2, -1))
    rows, columns = ((proportions.sum(dim=dim) > 0).sum(dim=-1) for dim in (-1, -2))
    corrected = information - (cells - rows - columns + 1) / (2 * total)
    pointwise_variance = (proportions * (pointwise - information[..., None, None]).square()).sum(dim=(-2, -1)) / total
    under_independence = (rows - 1) * (columns - 1) / total.square()
    variance = (pointwise_variance - under_independence).clamp(min=0) + under_independence / 2
    return Estimate(convert_base(corrected, base), convert_base(variance.sqrt(), base))


def knn_entropy(sample: Float[Tensor, "n d"] | ArrayLike, *, k: int = 3, base: float = math.e) -> Estimate:
    """ψ(n) - ψ(k) + log V_d + (d / n) Σ_i log ρ_i, where ρ_i is the distance to the k-th neighbour and V_d the
    unit ball's volume.

    The estimate of Kozachenko and Leonenko. Its bias falls like (k/n)^(2/d) for a smooth density on all of R^d and like
    (k/n)^(1/d) where the density breaks off at an edge (too high there); in many dimensions it is large.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.
    """
    sample = float_tensor(sample, "sample")
    _check_sample(sample, "sample", k)

    def estimate(rows: Tensor) -> Tensor:
        n, d = rows.shape
        return _psi(n) - _psi(k) + _log_ball(d) + d * _distances_to_kth(rows, rows, k, itself=True).log().mean()

    return _with_error(estimate, (sample,), k, base)


def knn_kl_divergence(
    first: Float[Tensor, "n d"] | ArrayLike,
    second: Float[Tensor, "m d"] | ArrayLike,
    *,
    k: int = 3,
    base: float = math.e,
) -> Estimate:
    """(d / n) Σ_i log(ν_i / ρ_i) + log(m / (n - 1)): ν_i reaches from first_i to its k-th neighbour in `second`,
    ρ_i in `first`.

    The estimate of Wang, Kulkarni and Verdu of KL(P || Q). The bias vanishes with n and m, slowly where Q has few rows
    at P's: it is downwards then, and where KL is infinite the estimate is finite all the same.

    Args:
        first: A sample of P.
        second: A sample of Q.
        base: Of the logarithm: 2 for bits, e for nats.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    check_shapes("n d, m d", first=first, second=second)
    check_same_dtype(first, second)
    _check_sample(first, "first", k)
    _check_sample(second, "second", k)

    def estimate(p: Tensor, q: Tensor) -> Tensor:
        log_ratio = _distances_to_kth(p, q, k, itself=False).log() - _distances_to_kth(p, p, k, itself=True).log()
        return p.shape[1] * log_ratio.mean() + math.log(len(q) / (len(p) - 1))

    return _with_error(estimate, (first, second), k, base)


def ksg_mutual_information(
    x: Float[Tensor, "n d"] | ArrayLike, y: Float[Tensor, "n e"] | ArrayLike, *, k: int = 3, base: float = math.e
) -> Estimate:
    """ψ(k) + ψ(n) - (1 / n) Σ_i [ψ(a_i + 1) + ψ(b_i + 1)], the first estimate of Kraskov, Stögbauer and Grassberger.

    ρ_i is the largest-coordinate distance of the pair (x_i, y_i) to its k-th neighbour; a_i other rows of x are nearer
    than ρ_i to x_i, and b_i of y to y_i. Without bias, as far as experiments show, for independent variables; too low
    where they nearly determine each other, for k rows cannot show more than about ψ(n).

    Args:
        base: Of the logarithm: 2 for bits, e for nats.
    """
    x = float_tensor(x, "x", y)
    y = float_tensor(y, "y", x)
    check_shapes("n d, n e", x=x, y=y)
    check_same_dtype(x, y)
    _check_sample(x, "x", k)
    _check_sample(y, "y", k)

    def estimate(x: Tensor, y: Tensor) -> Tensor:
        n, terms = len(x), []
        for rows in torch.arange(n, device=x.device).split(rows_per_block(n)):
            apart = [torch.cdist(each[rows], each, p=math.inf) for each in (x, y)]
            radius = (
                torch.maximum(*apart).kthvalue(k + 1, dim=1, keepdim=True).values
            )  # the nearest of all is the row itself
            _refuse_ties(radius, k)
            nearer = [(each < radius).sum(dim=1).to(x.dtype) for each in apart]  # with the row itself: a_i + 1
            terms.append(sum(each.digamma() for each in nearer))
        return _psi(k) + _psi(n) - torch.cat(terms).mean()

    return _with_error(estimate, (x, y), k, base)


def _with_error(estimate: Callable[..., Tensor], samples: tuple[Tensor, ...], k: int, base: float) -> Estimate:
    """The estimate from all rows, and its standard error: the standard deviation over disjoint groups of
    rows, over √groups.

    Neighbours share neighbours, so the variance of single terms would be too small; groups are independent
    of each other.
    """
    groups = min(_GROUPS, *(len(sample) // (_LEAST_ROWS * k) for sample in samples))
    whole = estimate(*samples)
    if groups < 2:
        return Estimate(convert_base(whole, base), torch.full_like(whole, math.nan))
    # Mixed in an order fixed beforehand, so that rows which come sorted are no trouble; where x and y are pairs they
    # stay pairs.
    groups_of_rows = [sample.detach()[_mixed(len(sample), sample.device)].tensor_split(groups) for sample in samples]
    estimates = torch.stack([estimate(*rows) for rows in zip(*groups_of_rows)])
    return Estimate(convert_base(whole, base), convert_base(estimates.std() / math.sqrt(groups), base))


def _mixed(n: int, device: torch.device) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(device)


def _distances_to_kth(rows: Tensor, others: Tensor, k: int, *, itself: bool) -> Tensor:  # (n, d), (m, d) -> (n,)
    """How far the k-th nearest of `others` is; `itself` where the rows stand among them and do not count."""
    rank = k + 1 if itself else k
    # Not by the squares' expansion, which is quicker and gives neighbours that are near a distance of zero.
    blocks = rows.split(rows_per_block(len(others)))
    found = [
        torch.cdist(each, others, compute_mode="donot_use_mm_for_euclid_dist").topk(rank, dim=1, largest=False)
        for each in blocks
    ]
    radius = torch.cat([each.values[:, -1] for each in found])
    _refuse_ties(radius, k)
    return radius


def _refuse_ties(radius: Tensor, k: int) -> None:
    if (ties := int((radius == 0).sum())) > 0:
        raise UserError(
            f"expected rows of a distribution with a density, which never repeat, got {ties} that coincide with "
            f"{k} or more others; "
            "add noise as small as the rounding, or count them and use the estimates from counts"
        )


def _psi(n: int) -> float:
    return float(torch.tensor(float(n), dtype=torch.float64).digamma())


def _log_ball(d: int) -> float:
    """log of π^(d/2) / Γ(d/2 + 1), the volume of the unit ball."""
    return d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)


def _pointwise(counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Proportions, their mutual information, log p_ij / (p_i p_j) where p_ij > 0 and zero elsewhere, and the
    number of pairs.
    """
    proportions, total = _proportions(counts, 2)
    product = proportions.sum(dim=-1, keepdim=True) * proportions.sum(dim=-2, keepdim=True)
    pointwise = torch.where(proportions > 0, proportions / torch.where(product > 0, product, 1), 1).log()
    return proportions, (proportions * pointwise).sum(dim=(-2, -1)), pointwise, total


def _proportions(counts: Tensor, num_dims: int) -> tuple[Tensor, Tensor]:
    if counts.ndim < num_dims or counts.shape[counts.ndim - num_dims :].numel() == 0:
        raise UserError(
            f"expected counts over the last {num_dims} axes, not empty, got shape {tuple(counts.shape)}; count the "
            "outcomes"
        )
    if counts.is_complex():
        raise UserError(f"expected counts, got {counts.dtype}; give whole numbers")
    if not bool(((counts >= 0) & (counts == counts.round()) & counts.isfinite()).all()):
        raise UserError(
            "expected counts, whole and not negative, got others; give how often each outcome occurred, not its "
            "proportion"
        )
    counts = counts.double()
    dims = tuple(range(-num_dims, 0))
    total = counts.sum(dim=dims)
    if not bool((total > 0).all()):
        raise UserError("expected at least one outcome counted, got none; sample first")
    return counts / total.reshape(*total.shape, *[1] * num_dims), total


def _check_sample(sample: Tensor, name: str, k: int) -> None:
    check_shapes("n d", sample=sample)
    check_floating(sample, name)
    check_finite(sample, name)
    if k < 1:
        raise UserError(
            f"expected a neighbour to look for, got k = {k}; 3 is usual, more lower the variance and raise the bias"
        )
    if len(sample) <= k or sample.shape[1] == 0:
        raise UserError(
            f"expected more than k = {k} rows of at least one feature in {name}, got shape {tuple(sample.shape)}; "
            "sample more"
        )
