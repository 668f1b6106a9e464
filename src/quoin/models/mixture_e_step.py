"""The E-step for many points: their likelihood under a Gaussian mixture, and the weighted moments of each component.

These moments, weighted by the responsibilities, are all that the M-step (`m_step` in mixture_em.py) needs of the
points, so that the responsibilities themselves need not be kept. The points are centred and scaled, kept as given and
summed in float64, in pieces that fit a cache, in one of two ways. *Packed*: the log joint is a linear function of the
products x_a x_b, and the moments are sums of these, so that a pass is two matrix products. It cancels digits where a
component is much narrower than the whole, which `keeps_digits` measures. *Centred*: distances from each mean, and
second moments about the new means, in two passes; nothing cancels. n points, k components, d coordinates, c points of a
piece
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.prob import ComponentNormals, GaussianMixtureDistribution, WeightedMoments
from quoin.prob.parallel_map import parallel_map
from quoin.tensor import check_finite, check_floating

__all__ = ["EStep", "Points", "e_step", "keeps_digits", "weighted_moments"]

_MOST_PRODUCTS = 4096  # columns of the packed way: beyond about 90 coordinates they are larger than what they save
_NUMBERS = {"cpu": 2**19, "cuda": 2**26}  # in a piece: a cache of some megabytes, or enough to keep a GPU busy


class EStep(NamedTuple):
    """What the points say of each component, each point by its responsibilities r_ni under one distribution, and their
    likelihood under it.
    """

    moments: WeightedMoments  # N_i = Σ_n r_ni, Σ_n r_ni x_n / N_i, and the second moments about these means
    log_likelihood: Float[Tensor, ""]  # Σ_n ln p(x_n)


class Points:
    """Points ready for steps of EM: less their mean, over their standard deviations as far as the family of covariances
    allows, in pieces.
    """

    def __init__(self, x: Float[Tensor, "points dim"], covariance_type: type[ComponentNormals], num_components: int):
        _check_points(x, num_components)
        self.num_points, self.dim = x.shape
        self.covariance_type = covariance_type
        self.dtype = (
            x.dtype if x.device.type == "mps" else torch.float64
        )  # of all that is computed from them; mps knows no other
        self.shift = x.mean(dim=0, dtype=self.dtype).to(x.dtype)
        away = x - self.shift  # in the numbers that they came in: points near each other lose nothing
        variances = away.to(self.dtype).square().mean(dim=0)
        if not bool(variances.any()):
            raise UserError(
                f"expected points that differ, got {self.num_points} that are the same; a normal distribution has "
                "a variance above 0"
            )
        if not bool(variances.isfinite().all()):
            raise UserError(
                f"expected points whose squares are finite, got entries up to {float(x.abs().max()):.3g}; scale "
                "them down"
            )
        # A coordinate that never changes has no scale of its own: it takes that of the others.
        self.scale = covariance_type.scale_of(torch.where(variances > 0, variances, variances.mean()).sqrt()).to(
            x.dtype
        )
        self.rows = away / self.scale
        products = self.dim if covariance_type.only_variances else self.dim * (self.dim + 1) // 2
        self._can_be_packed = products <= _MOST_PRODUCTS
        widest = max(num_components * self.dim, products if self._can_be_packed else 0)
        size = max(64, _NUMBERS.get(x.device.type, _NUMBERS["cpu"]) // widest)
        self.pieces = [piece.mT.contiguous() for piece in self.rows.split(size)]  # (d, c) each: a coordinate in a row

    def inner(self, mixture: GaussianMixtureDistribution) -> GaussianMixtureDistribution:
        """The distribution in the coordinates of the pieces, and in the numbers that are counted in."""
        if mixture.dim != self.dim:
            raise UserError(
                f"expected a distribution on the points' {self.dim} coordinates, got one on {mixture.dim}; give "
                "points of as many"
            )
        if mixture.weights.dtype != self.rows.dtype or mixture.weights.device != self.rows.device:
            got = f"{mixture.weights.dtype} on {mixture.weights.device} and {self.rows.dtype} on {self.rows.device}"
            raise UserError(
                f"expected a distribution and points of one dtype on one device, got {got}; convert one of them"
            )
        shift, scale = self.shift.to(self.dtype), self.scale.to(self.dtype)
        return mixture.to(self.dtype).affine(-shift / scale, 1 / scale)

    def outer(self, mixture: GaussianMixtureDistribution) -> GaussianMixtureDistribution:
        """The distribution in the original coordinates of the points."""
        return mixture.affine(self.shift.to(self.dtype), self.scale.to(self.dtype)).to(self.rows.dtype)

    def outer_likelihood(self, log_likelihood: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Densities are per volume, and the scale has changed the unit of it."""
        return log_likelihood - self.num_points * self.scale.to(self.dtype).log().sum()

    def packs(self, mixture: GaussianMixtureDistribution) -> bool:
        """Whether an E-step with this distribution may be a packed one."""
        return self._can_be_packed and keeps_digits(mixture)

    def log_likelihood(self, mixture: GaussianMixtureDistribution) -> Float[Tensor, ""]:
        """Σ_n ln p(x_n) for a distribution in the coordinates of the pieces."""
        if self.packs(mixture):
            return e_step(self, mixture, packed=True).log_likelihood
        return torch.stack(
            parallel_map(lambda piece: mixture.log_prob(piece.to(self.dtype).mT).sum(), self.pieces)
        ).sum()


def e_step(points: Points, mixture: GaussianMixtureDistribution, *, packed: bool) -> EStep:
    """Responsibilities under a distribution in the coordinates of the pieces, and the moments that they weight; packed
    only where `packs` allows.

    Notes: D6-10.
    """
    return (_packed if packed else _centered)(points, mixture)


def _packed(points: Points, mixture: GaussianMixtureDistribution) -> EStep:
    """Log joints as C Φ and sums as R Φ^T, where a column of Φ holds the products x_a x_b with a <= b, the x_a and a
    one."""
    coefficients = _coefficients(mixture)

    def counted(piece: Tensor) -> tuple[Tensor, Tensor]:  # (d, c) -> (), (k, products + d + 1)
        features = _features(piece.to(points.dtype), points.covariance_type.only_variances)
        responsibilities = coefficients @ features  # (k, c)
        top = responsibilities.amax(dim=0)
        sums = responsibilities.sub_(top).exp_().sum(dim=0)
        return (sums.log() + top).sum(), responsibilities.div_(sums) @ features.mT

    log_likelihood, sums = _added(parallel_map(counted, points.pieces))
    second, first, totals = sums.split([sums.shape[1] - points.dim - 1, points.dim, 1], dim=1)
    totals_or_one = torch.where(totals > 0, totals, 1)
    means = first / totals_or_one
    if points.covariance_type.only_variances:
        scatter_matrices = second / totals_or_one - means.square()
    else:
        a, b = _pairs(points.dim, sums.device)
        scatter_matrices = means.unsqueeze(-1) * -means.unsqueeze(-2)
        scatter_matrices[:, a, b] += second / totals_or_one
        scatter_matrices[:, b, a] = scatter_matrices[:, a, b]
    return EStep(WeightedMoments(totals.squeeze(1), means, scatter_matrices), log_likelihood)


def _centered(points: Points, mixture: GaussianMixtureDistribution) -> EStep:
    """Responsibilities by distances from each mean; new means from them, and second moments about those."""

    def shared(piece: Tensor) -> tuple[Tensor, Tensor]:  # (d, c) -> (), (c, k)
        joint = mixture.log_likelihoods(piece.to(points.dtype).mT) + mixture.weights.log()
        total = joint.logsumexp(dim=-1)
        return total.sum(), (joint - total.unsqueeze(-1)).exp()

    found = parallel_map(shared, points.pieces)
    log_likelihood = torch.stack([each for each, _ in found]).sum()
    return EStep(weighted_moments(points, [responsibilities for _, responsibilities in found]), log_likelihood)


def weighted_moments(
    points: Points, responsibilities: Sequence[Float[Tensor, "_points components"]]
) -> WeightedMoments:
    """N_i, μ_i, and the second moments about μ_i, in two passes; each piece of the points has its responsibilities."""

    def first(given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        piece, mine = given
        return mine.sum(dim=0), mine.mT @ piece.to(points.dtype).mT

    both = list(zip(points.pieces, responsibilities))
    totals, sums = _added(parallel_map(first, both))
    totals_or_one = torch.where(totals > 0, totals, 1).unsqueeze(-1)
    means = sums / totals_or_one

    def second(given: tuple[Tensor, Tensor]) -> tuple[Tensor]:
        piece, mine = given
        away = piece.to(points.dtype).mT - means.unsqueeze(1)  # (k, c, d)
        weighted = away * mine.mT.unsqueeze(-1)
        return ((weighted * away).sum(dim=1) if points.covariance_type.only_variances else weighted.mT @ away,)

    (scatter_matrices,) = _added(parallel_map(second, both))
    return WeightedMoments(
        totals, means, scatter_matrices / totals_or_one.reshape(-1, *[1] * (scatter_matrices.ndim - 1))
    )


def _check_points(x: Tensor, num_components: int) -> None:
    """Raise an error for what no mixture of so many components can be fitted to."""
    check_floating(x, "x")
    if x.ndim != 2 or x.shape[1] == 0:
        raise UserError(
            f"expected points (n, d) of at least one coordinate, got shape {tuple(x.shape)}; give a row for each point"
        )
    num_points = x.shape[0]
    if not 1 <= num_components <= num_points:
        raise UserError(
            f"expected from 1 to {num_points} components for {num_points} points, got {num_components}; take fewer "
            "or more points"
        )
    check_finite(x, "x")


def _added(pieces: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Sums over pieces."""
    return tuple(torch.stack(each).sum(dim=0) for each in zip(*pieces))


def _pairs(dim: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Coordinates a <= b of the products, in the order of `_features`."""
    a, b = torch.triu_indices(dim, dim, device=device)
    return a, b


def _features(piece: Tensor, only_variances: bool) -> Tensor:  # (d, c) -> (products + d + 1, c)
    if only_variances:
        return torch.cat([piece.square(), piece, piece.new_ones(1, piece.shape[1])])
    dim = len(piece)
    features = piece.new_empty(dim * (dim + 1) // 2 + dim + 1, piece.shape[1])
    start = 0
    for a in range(dim):
        torch.mul(piece[a:], piece[a], out=features[start : start + dim - a])
        start += dim - a
    features[start:-1] = piece
    features[-1] = 1
    return features


def _coefficients(mixture: GaussianMixtureDistribution) -> Tensor:  # (k, products + d + 1)
    """C with C_i φ(x) = ln φ_i + ln N(x; μ_i, Σ_i) = ln φ_i - ½ (x^T P x - 2 x^T P μ + μ^T P μ + ln det Σ + d ln 2π), P
    = Σ_i^-1."""
    components = mixture.components
    means, precisions = components.means, components.precisions
    if type(components).only_variances:
        square, linear = precisions, precisions * means
    else:
        a, b = _pairs(mixture.dim, means.device)
        square = precisions[:, a, b] * torch.where(a == b, 1, 2)
        linear = (precisions @ means.unsqueeze(-1)).squeeze(-1)
    volume = 2 * components.half_log_dets() + mixture.dim * math.log(2 * math.pi)
    constant = mixture.weights.log() - ((linear * means).sum(dim=-1) + volume) / 2
    return torch.cat([-square / 2, linear, constant.unsqueeze(-1)], dim=1)


def keeps_digits(mixture: GaussianMixtureDistribution) -> bool:
    """Whether sums about the mean of all points lose few digits: tr(Σ_i^-1) (|μ_i|² + tr Σ_i), in roundings, far below
    one.

    A distance from μ_i is made of terms up to the largest precision times |x|², and so is a variance of it; the points
    that matter to the component have |x|² about |μ_i|² + tr Σ_i.
    """
    components = mixture.components
    precisions, covariances = components.precisions, components.covariance_matrices
    narrow = precisions.sum(dim=-1) if precisions.ndim == 2 else precisions.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    far = components.means.square().sum(dim=-1) + covariances.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    eps = torch.finfo(precisions.dtype).eps
    return bool((eps * narrow * far <= math.sqrt(eps) / 4).all())
