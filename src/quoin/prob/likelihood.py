"""Maximum likelihood: for a family of distributions, the one under which the data are most probable, in closed form or
by a few Newton steps.

A family is a class of `torch.distributions`, and what comes back is one of its members. Examples are along the first
axis; further axes are fitted side by side.   n examples
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Real, Shaped
from torch import Tensor
from torch import distributions as families
from torch.distributions import Distribution

from quoin.errors import UserError, did_you_mean, format_value
from quoin.prob.checks import check_parameters
from quoin.tensor import check_finite, one_hot
from quoin.tensor.array_like import ArrayLike, number_tensor

__all__ = ["log_likelihood", "mle"]

_NEWTON_STEPS = 50


def log_likelihood(distribution: Distribution, data: Real[Tensor, "n ..."] | ArrayLike) -> Float[Tensor, "*batch"]:
    """log P(x_1, ..., x_n | theta) = sum_i log p(x_i | theta) for independent examples.

    Notes: Z13.5.
    """
    data = number_tensor(data, "data")
    check_parameters(distribution)
    return distribution.log_prob(data).sum(dim=0)


def mle(family: type[Distribution], data: Shaped[Tensor, "n ..."] | ArrayLike) -> Distribution:
    """argmax over theta of sum_i log p(x_i | theta), as the member of the family with that theta.

    Three heads in four throws of a coin are most probable if heads have probability 3/4:

    Args:
        family: Of `torch.distributions`: Bernoulli, Categorical, Exponential, Gamma, Geometric, Laplace, LogNormal,
            MultivariateNormal, Normal, Poisson or Uniform.
        data: Examples along the first axis.

    >>> mle(torch.distributions.Bernoulli, torch.tensor([1.0, 1.0, 0.0, 1.0]))
    Bernoulli(probs: 0.75)

    Notes: Z13.5.
    """
    data = number_tensor(data, "data")
    if family not in _FITS:
        known = {each.__name__ for each in _FITS}
        named = getattr(family, "__name__", str(family))
        raise UserError(
            f"expected a family whose likelihood is maximised here, got {format_value(named)[1:-1]}; "
            f"{did_you_mean(named, known)}"
        )
    if data.ndim == 0 or len(data) == 0:
        raise UserError(f"expected examples along the first axis, got shape {tuple(data.shape)}; give at least one")
    if not data.is_floating_point() and family is not families.Categorical:
        data = data.double()
    if data.is_floating_point():
        check_finite(data, "data")
    return _FITS[family](data)


def _bernoulli(x: Tensor) -> Distribution:
    _check_in(x, (x == 0) | (x == 1), "zeros and ones")
    return families.Bernoulli(x.mean(dim=0))


def _categorical(x: Tensor) -> Distribution:  # labels from 0 on: as many as the largest needs
    if x.is_floating_point():
        raise UserError(f"expected integer labels from 0 on, got {x.dtype}; convert them with .long()")
    _check_in(x, x >= 0, "labels from 0 on")
    num_labels = int(x.max()) + 1
    return families.Categorical(one_hot(x, num_labels, dtype=torch.float64).mean(dim=0))


def _geometric(x: Tensor) -> Distribution:  # failures before the first success
    _check_in(x, (x >= 0) & (x == x.round()), "counts from 0 on")
    return families.Geometric(1 / (1 + x.mean(dim=0)))


def _poisson(x: Tensor) -> Distribution:
    _check_in(x, (x >= 0) & (x == x.round()), "counts from 0 on")
    return families.Poisson(x.mean(dim=0))


def _exponential(x: Tensor) -> Distribution:
    _check_in(x, x >= 0, "numbers from 0 on")
    return families.Exponential(1 / _spread(x.mean(dim=0), "a mean above zero"))


def _normal(x: Tensor) -> Distribution:
    return families.Normal(x.mean(dim=0), _spread(x.std(dim=0, correction=0), "two different examples"))


def _log_normal(x: Tensor) -> Distribution:
    _check_in(x, x > 0, "numbers above 0")
    logs = x.log()
    return families.LogNormal(logs.mean(dim=0), _spread(logs.std(dim=0, correction=0), "two different examples"))


def _laplace(x: Tensor) -> Distribution:
    middle = x.quantile(0.5, dim=0)
    return families.Laplace(middle, _spread((x - middle).abs().mean(dim=0), "two different examples"))


def _uniform(x: Tensor) -> Distribution:
    low, high = x.amin(dim=0), x.amax(dim=0)
    _spread(high - low, "two different examples")
    return families.Uniform(
        low, torch.nextafter(high, torch.full_like(high, torch.inf))
    )  # torch's interval leaves its upper end out


def _multivariate_normal(x: Tensor) -> Distribution:  # (n, ..., d)
    if x.ndim < 2:
        raise UserError(f"expected vectors along the last axis, got shape {tuple(x.shape)}; use Normal for numbers")
    mean = x.mean(dim=0)
    off = (x - mean).movedim(0, -1)  # (..., d, n)
    covariance = off @ off.mT / len(x)
    root, failed = torch.linalg.cholesky_ex(covariance)
    # A direction without variance leaves a pivot that is rounding alone.
    least = x.shape[-1] * torch.finfo(x.dtype).eps * covariance.diagonal(dim1=-2, dim2=-1)
    if bool(failed.any()) or not bool((root.diagonal(dim1=-2, dim2=-1) ** 2 > least).all()):
        raise UserError(
            f"expected examples that vary in all {x.shape[-1]} directions, got {len(x)} that do not; give more of them"
        )
    return families.MultivariateNormal(mean, scale_tril=root)


def _gamma(x: Tensor) -> Distribution:
    """The derivative in the shape k is zero at log k - digamma(k) = log E x - E log x; then rate = k / E x."""
    _check_in(x, x > 0, "numbers above 0")
    right = _spread(x.mean(dim=0).log() - x.log().mean(dim=0), "two different examples")
    k = (3 - right + ((right - 3) ** 2 + 24 * right).sqrt()) / (12 * right)  # Minka's start, within 1.5 percent
    for _ in range(_NEWTON_STEPS):
        step = (k.log() - torch.digamma(k) - right) / (1 / k - torch.polygamma(1, k))
        k = torch.where(k - step > 0, k - step, k / 2)
        if bool((step.abs() <= 4 * torch.finfo(k.dtype).eps * k).all()):
            break
    return families.Gamma(k, k / x.mean(dim=0))


_FITS: dict[type[Distribution], Callable[[Tensor], Distribution]] = {
    families.Bernoulli: _bernoulli,
    families.Categorical: _categorical,
    families.Exponential: _exponential,
    families.Gamma: _gamma,
    families.Geometric: _geometric,
    families.Laplace: _laplace,
    families.LogNormal: _log_normal,
    families.MultivariateNormal: _multivariate_normal,
    families.Normal: _normal,
    families.Poisson: _poisson,
    families.Uniform: _uniform,
}


def _check_in(x: Tensor, inside: Tensor, support: str) -> None:
    if not bool(inside.all()):
        raise UserError(f"expected {support}, got {float(x[~inside][0]):g}; this family gives it no probability")


def _spread(width: Tensor, needed: str) -> Tensor:
    if not bool((width > 0).all()):
        raise UserError(
            f"expected {needed} for each distribution to fit, got none; the likelihood grows without end and has "
            "no largest value"
        )
    return width
