"""Expectations under a normal distribution by Gauss-Hermite nodes, Gaussian integration by parts, and freeing a vector
of one of its coordinates.

d coordinates
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.covariance import check_covariance, slack_of
from quoin.prob.normal import MultivariateNormal
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["ByParts", "Decorrelation", "decorrelation", "integration_by_parts", "normal_expectation"]

_MOST_NODES = 1_000_000


def normal_expectation(
    f: Callable[[Tensor], Tensor], distribution: MultivariateNormal, *, num_nodes: int = 20
) -> Float[Tensor, "*batch"]:
    """E f(X) as sum_i w_i f(μ + F z_i) over num_nodes^d Gauss-Hermite nodes, for f that takes (..., d) to (...).

    Exact up to rounding for polynomials of degree below 2 num_nodes in each coordinate; other smooth f ask
    for more nodes.

    Args:
        num_nodes: For each coordinate.

    >>> distribution = MultivariateNormal(torch.ones(1).double(), torch.ones(1, 1).double())
    >>> round(float(normal_expectation(lambda x: x[..., 0] ** 4, distribution)), 10)  # μ⁴ + 6 μ² σ² + 3 σ⁴
    10.0
    """
    points, weights = _nodes(distribution, num_nodes)
    return torch.tensordot(weights, f(points), dims=1)


@shown
class ByParts(NamedTuple):
    """The two sides of the formula, equal where f and its derivatives grow at most polynomially."""

    product: Float[Tensor, "*batch"]  # E[(X_k - μ_k) f(X)]
    derivatives: Float[Tensor, "*batch"]  # sum_i Σ_ki E[∂_i f(X)]


def integration_by_parts(
    f: Callable[[Tensor], Tensor], distribution: MultivariateNormal, *, coordinate: int = 0, num_nodes: int = 20
) -> ByParts:
    """Both sides of E[(X_k - μ_k) f(X)] = sum_i Σ_ki E[∂_i f(X)], by Gauss-Hermite nodes and automatic
    derivatives of f, which takes (..., d) to (...).

    Args:
        coordinate: k.
        num_nodes: For each coordinate, as in `normal_expectation`.

    Notes: D5-22, DE76.
    """
    _check_coordinate(coordinate, distribution.dim)
    points, weights = _nodes(distribution, num_nodes)
    follow = points.requires_grad  # the sides can be differentiated in the distribution where that was asked for
    with torch.enable_grad():
        points = points if follow else points.detach().requires_grad_()
        values = f(points)
        total = values.sum() + 0 * points.sum()  # a constant f has a gradient too
        (gradients,) = torch.autograd.grad(total, points, create_graph=follow)  # (nodes, ..., d)
    values, points = (values, points) if follow else (values.detach(), points.detach())
    product = torch.tensordot(weights, (points - distribution.mean)[..., coordinate] * values, dims=1)
    mean_gradients = torch.tensordot(weights, gradients, dims=1)
    return ByParts(product, (distribution.covariance[..., coordinate, :] * mean_gradients).sum(dim=-1))


@shown
class Decorrelation(NamedTuple):
    """The map x -> x - λ x_k, as a matrix, and λ."""

    matrix: Float[Tensor, "*batch d d"]  # I - λ e_k^T
    loadings: Float[Tensor, "*batch d"]  # λ


def decorrelation(covariance: Float[Tensor, "*batch d d"] | ArrayLike, *, coordinate: int = 0) -> Decorrelation:
    """The matrix of X̂ = X - λ X_k with λ_i = Σ_ki / Σ_kk, for which Cov(X̂, X_k) = 0: for a centred normal X, X̂ is
    independent of X_k.

    Args:
        coordinate: k, of a variance above 0.

    Notes: D5-23, DE43.
    """
    covariance = float_tensor(covariance, "covariance")
    check_covariance(covariance)
    d = covariance.shape[-1]
    _check_coordinate(coordinate, d)
    variance = covariance[..., coordinate, coordinate].unsqueeze(-1)
    largest = covariance.detach().diagonal(dim1=-2, dim2=-1).amax(dim=-1, keepdim=True)
    if bool((variance.detach() <= slack_of(covariance) * largest).any()):
        raise UserError(
            f"expected coordinate {coordinate} to have a variance above 0, got {float(variance.min()):.3g}; choose "
            "another one"
        )
    loadings = covariance[..., coordinate, :] / variance
    own = torch.eye(d, dtype=covariance.dtype, device=covariance.device)
    return Decorrelation(own - loadings.unsqueeze(-1) * own[coordinate], loadings)


def _nodes(distribution: MultivariateNormal, num_nodes: int) -> tuple[Tensor, Tensor]:  # (nodes, ..., d), (nodes,)
    if num_nodes < 1 or num_nodes**distribution.dim > _MOST_NODES:
        raise UserError(
            f"expected from 1 to {_MOST_NODES:,} nodes in all, got {num_nodes} for each of {distribution.dim} "
            "coordinates; "
            "take fewer, or sample"
        )
    z, weights = (each.to(distribution.mean) for each in _grid(num_nodes, distribution.dim))
    root = distribution.support().root(distribution.covariance)
    z = z.reshape(-1, *[1] * len(distribution.batch_shape), distribution.dim, 1)
    return distribution.mean + (root @ z).squeeze(-1), weights


@lru_cache(maxsize=16)
def _grid(num_nodes: int, dim: int) -> tuple[Tensor, Tensor]:
    points, weights = (torch.from_numpy(each) for each in np.polynomial.hermite_e.hermegauss(num_nodes))
    axes = torch.meshgrid(*[points] * dim, indexing="ij")
    products = torch.meshgrid(*[weights / weights.sum()] * dim, indexing="ij")
    return torch.stack(axes, dim=-1).reshape(-1, dim), torch.stack(products, dim=-1).prod(dim=-1).flatten()


def _check_coordinate(coordinate: int, dim: int) -> None:
    if not 0 <= coordinate < dim:
        raise UserError(f"expected a coordinate from 0 to {dim - 1}, got {coordinate}; count from 0")
