"""The E-step for many points: how likely a mixture of normal laws makes them, and the moments that each component takes from them.

These moments, weighted by the responsibilities, are all that the M-step (`m_step` in mixture_em.py) needs of the points, so that the
responsibilities themselves need not be kept. The points are centred and scaled, kept as they came and counted in float64, in pieces
that fit a cache, in one of two ways. *Packed*: the log joint is a linear function of the products x_a x_b, and the moments are sums of
these, so that a pass is two matrix products. It cancels digits where a component is much narrower than the whole, which `keeps_digits`
measures. *Centred*: distances from each mean, and second moments about the new means, in two passes; nothing cancels.
n points, k components, d coordinates, c points of a piece
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob import ComponentNormals, NormalMixture, WeightedMoments
from quoin.prob.side_by_side import side_by_side
from quoin.tensor import check_finite, check_floating

__all__ = ["EStep", "Points", "e_step", "keeps_digits", "weighted_moments"]

_MOST_PRODUCTS = 4096  # columns of the packed way: beyond about 90 coordinates they are larger than what they save
_NUMBERS = {"cpu": 2**19, "cuda": 2**26}  # in a piece: a cache of some megabytes, or enough to keep a GPU busy


class EStep(NamedTuple):
    """What the points say of each component, each point by its responsibilities r_ni under one law, and how likely that law makes them."""

    moments: WeightedMoments  # N_i = Σ_n r_ni, Σ_n r_ni x_n / N_i, and the second moments about these means
    log_likelihood: Tensor  # (): Σ_n ln p(x_n)


class Points:
    """Points ready for steps of EM: less their mean, over their deviations as far as the family of covariances allows, in pieces."""

    def __init__(self, x: Tensor, family: type[ComponentNormals], num_components: int):
        _check_points(x, num_components)
        self.count, self.dim = x.shape
        self.family = family
        self.dtype = x.dtype if x.device.type == "mps" else torch.float64  # of all that is computed from them; mps knows no other
        self.shift = x.mean(dim=0, dtype=self.dtype).to(x.dtype)
        away = x - self.shift  # in the numbers that they came in: points near each other lose nothing
        variances = away.to(self.dtype).square().mean(dim=0)
        if not bool(variances.any()):
            raise Mistake(f"expected points that differ, came {self.count} that are the same; a normal law has a variance above 0")
        if not bool(variances.isfinite().all()):
            raise Mistake(f"expected points whose squares are finite, came entries up to {float(x.abs().max()):.3g}; scale them down")
        # A coordinate that never changes has no scale of its own: it takes that of the others.
        self.scale = family.scale_of(torch.where(variances > 0, variances, variances.mean()).sqrt()).to(x.dtype)
        self.rows = away / self.scale
        products = self.dim if family.only_variances else self.dim * (self.dim + 1) // 2
        self._can_be_packed = products <= _MOST_PRODUCTS
        widest = max(num_components * self.dim, products if self._can_be_packed else 0)
        size = max(64, _NUMBERS.get(x.device.type, _NUMBERS["cpu"]) // widest)
        self.pieces = [piece.mT.contiguous() for piece in self.rows.split(size)]  # (d, c) each: a coordinate in a row

    def inner(self, law: NormalMixture) -> NormalMixture:
        """The law in the coordinates of the pieces, and in the numbers that are counted in."""
        if law.dim != self.dim:
            raise Mistake(f"expected a law on the points' {self.dim} coordinates, came one on {law.dim}; give points of as many")
        if law.weights.dtype != self.rows.dtype or law.weights.device != self.rows.device:
            came = f"{law.weights.dtype} on {law.weights.device} and {self.rows.dtype} on {self.rows.device}"
            raise Mistake(f"expected a law and points of one dtype on one device, came {came}; convert one of them")
        shift, scale = self.shift.to(self.dtype), self.scale.to(self.dtype)
        return law.to(self.dtype).moved(-shift / scale, 1 / scale)

    def outer(self, law: NormalMixture) -> NormalMixture:
        """The law in the coordinates that the points came in."""
        return law.moved(self.shift.to(self.dtype), self.scale.to(self.dtype)).to(self.rows.dtype)

    def outer_likelihood(self, log_likelihood: Tensor) -> Tensor:
        """Densities are per volume, and the scale has changed the unit of it."""
        return log_likelihood - self.count * self.scale.to(self.dtype).log().sum()

    def packs(self, law: NormalMixture) -> bool:
        """Whether an E-step with this law may be a packed one."""
        return self._can_be_packed and keeps_digits(law)

    def log_likelihood(self, law: NormalMixture) -> Tensor:  # ()
        """Σ_n ln p(x_n) for a law in the coordinates of the pieces."""
        if self.packs(law):
            return e_step(self, law, packed=True).log_likelihood
        return torch.stack(side_by_side(lambda piece: law.log_prob(piece.to(self.dtype).mT).sum(), self.pieces)).sum()


def e_step(points: Points, law: NormalMixture, *, packed: bool) -> EStep:
    """Responsibilities under a law in the coordinates of the pieces, and the moments that they weight; packed only where `packs` allows.

    Notes: D6-10.
    """
    return (_packed if packed else _centred)(points, law)


def _packed(points: Points, law: NormalMixture) -> EStep:
    """Log joints as C Φ and sums as R Φ^T, where a column of Φ holds the products x_a x_b with a <= b, the x_a and a one."""
    coefficients = _coefficients(law)

    def counted(piece: Tensor) -> tuple[Tensor, Tensor]:  # (d, c) -> (), (k, products + d + 1)
        features = _features(piece.to(points.dtype), points.family.only_variances)
        shares = coefficients @ features  # (k, c)
        top = shares.amax(dim=0)
        sums = shares.sub_(top).exp_().sum(dim=0)
        return (sums.log() + top).sum(), shares.div_(sums) @ features.mT

    log_likelihood, sums = _added(side_by_side(counted, points.pieces))
    second, first, totals = sums.split([sums.shape[1] - points.dim - 1, points.dim, 1], dim=1)
    totals_or_one = torch.where(totals > 0, totals, 1)
    means = first / totals_or_one
    if points.family.only_variances:
        spreads = second / totals_or_one - means.square()
    else:
        a, b = _pairs(points.dim, sums.device)
        spreads = means.unsqueeze(-1) * -means.unsqueeze(-2)
        spreads[:, a, b] += second / totals_or_one
        spreads[:, b, a] = spreads[:, a, b]
    return EStep(WeightedMoments(totals.squeeze(1), means, spreads), log_likelihood)


def _centred(points: Points, law: NormalMixture) -> EStep:
    """Responsibilities by distances from each mean; new means from them, and second moments about those."""

    def shared(piece: Tensor) -> tuple[Tensor, Tensor]:  # (d, c) -> (), (c, k)
        joint = law.log_likelihoods(piece.to(points.dtype).mT) + law.weights.log()
        total = joint.logsumexp(dim=-1)
        return total.sum(), (joint - total.unsqueeze(-1)).exp()

    found = side_by_side(shared, points.pieces)
    log_likelihood = torch.stack([each for each, _ in found]).sum()
    return EStep(weighted_moments(points, [shares for _, shares in found]), log_likelihood)


def weighted_moments(points: Points, shares: Sequence[Tensor]) -> WeightedMoments:  # of each piece (c, k)
    """N_i, μ_i, and the second moments about μ_i, in two passes."""

    def first(given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        piece, mine = given
        return mine.sum(dim=0), mine.mT @ piece.to(points.dtype).mT

    both = list(zip(points.pieces, shares))
    totals, sums = _added(side_by_side(first, both))
    totals_or_one = torch.where(totals > 0, totals, 1).unsqueeze(-1)
    means = sums / totals_or_one

    def second(given: tuple[Tensor, Tensor]) -> tuple[Tensor]:
        piece, mine = given
        away = piece.to(points.dtype).mT - means.unsqueeze(1)  # (k, c, d)
        weighted = away * mine.mT.unsqueeze(-1)
        return ((weighted * away).sum(dim=1) if points.family.only_variances else weighted.mT @ away,)

    (spreads,) = _added(side_by_side(second, both))
    return WeightedMoments(totals, means, spreads / totals_or_one.reshape(-1, *[1] * (spreads.ndim - 1)))


def _check_points(x: Tensor, num_components: int) -> None:
    """Refuse what no mixture of so many components can be fitted to."""
    check_floating(x, "x")
    if x.ndim != 2 or x.shape[1] == 0:
        raise Mistake(f"expected points (n, d) of at least one coordinate, came shape {tuple(x.shape)}; give a row for each point")
    if not 1 <= num_components <= len(x):
        raise Mistake(f"expected from 1 to {len(x)} components for {len(x)} points, came {num_components}; take fewer or more points")
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


def _coefficients(law: NormalMixture) -> Tensor:  # (k, products + d + 1)
    """C with C_i φ(x) = ln φ_i + ln N(x; μ_i, Σ_i) = ln φ_i - ½ (x^T P x - 2 x^T P μ + μ^T P μ + ln det Σ + d ln 2π), P = Σ_i^-1."""
    components = law.components
    means, precisions = components.means, components.precisions
    if type(components).only_variances:
        square, linear = precisions, precisions * means
    else:
        a, b = _pairs(law.dim, means.device)
        square = precisions[:, a, b] * torch.where(a == b, 1, 2)
        linear = (precisions @ means.unsqueeze(-1)).squeeze(-1)
    volume = 2 * components.log_volumes() + law.dim * math.log(2 * math.pi)
    constant = law.weights.log() - ((linear * means).sum(dim=-1) + volume) / 2
    return torch.cat([-square / 2, linear, constant.unsqueeze(-1)], dim=1)


def keeps_digits(law: NormalMixture) -> bool:
    """Whether sums about the mean of all points lose few digits: tr(Σ_i^-1) (|μ_i|² + tr Σ_i), in roundings, far below one.

    A distance from μ_i is made of terms up to the largest precision times |x|², and so is a variance of it; the points that matter to
    the component have |x|² about |μ_i|² + tr Σ_i.
    """
    components = law.components
    precisions, covariances = components.precisions, components.covariances
    narrow = precisions.sum(dim=-1) if precisions.ndim == 2 else precisions.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    far = components.means.square().sum(dim=-1) + covariances.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    eps = torch.finfo(precisions.dtype).eps
    return bool((eps * narrow * far <= math.sqrt(eps) / 4).all())
