"""How far a product of random features is from the kernel that it estimates: variances in closed form.

All estimates are unbiased, so that the variance is the mean squared error. It falls as 1/m in the number m of features,
and grows
exponentially in the length of the vectors.   s = x + y, d features, k projections
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes, rbf_kernel

__all__ = [
    "fourier_variance",
    "hyperbolic_variance",
    "orthogonal_variance_reduction",
    "performer_attention_variance",
    "performer_variance",
]


def performer_variance(
    x: Real[Tensor, "*batch dim"], y: Real[Tensor, "*batch dim"], num_features: int
) -> Float[Tensor, "*batch"]:
    """Var ψ(x)·ψ(y) = e^{2⟨x,y⟩} (e^{‖x+y‖²} - 1) / m for `performer_features_definition` along m independent
    directions.

    Notes: D4.1-10, D4.1-12.
    """
    kernel, size = _squared_kernel(x, y, num_features)
    return kernel * size.expm1() / num_features


def hyperbolic_variance(
    x: Real[Tensor, "*batch dim"], y: Real[Tensor, "*batch dim"], num_features: int
) -> Float[Tensor, "*batch"]:
    """Var ψ(x)·ψ(y) = e^{2⟨x,y⟩} (cosh ‖x+y‖² - 1) · 2 / m for `hyperbolic_features_definition` along m / 2 independent
    directions.

    For each direction ½ (1 - e^{-‖x+y‖²}) times that of `performer_variance`, for each feature 1 - e^{-‖x+y‖²} times:
    always less.

    Notes: D4.1-10, D4.1-12, DE65.
    """
    kernel, size = _squared_kernel(x, y, num_features)
    return kernel * 4 * torch.sinh(size / 2).square() / num_features


def fourier_variance(
    x: Real[Tensor, "*batch dim"], y: Real[Tensor, "*batch dim"], num_features: int, gamma: float
) -> Float[Tensor, "*batch"]:
    """Var ψ(x)·ψ(y) = (1 - κ² + κ⁴/2) / m, κ = e^{-γ‖x-y‖²}, for `fourier_features_definition` along m independent
    directions.

    Notes: D4.1-13, D4.1-14.
    """
    _squared_kernel(x, y, num_features)
    square = rbf_kernel(x, y, gamma).square()
    return (1 - square + square.square() / 2) / num_features


def orthogonal_variance_reduction(
    x: Real[Tensor, "*batch dim"], y: Real[Tensor, "*batch dim"], num_projections: int
) -> Float[Tensor, "*batch"]:
    """What `orthogonal_random_matrix` takes off the variance of Performer's or hyperbolic features: never less than
    nothing.

    e^{2⟨x,y⟩} (1 - e^{-‖s‖²} M(d, d/2, ‖s‖²/2)) p / k², where p counts the ordered pairs of directions in one block of
    d. Of two such directions the sum is as likely to point anywhere, and its squared length is χ² of 2d degrees; with E
    e^{⟨u,s⟩} as a series in ‖s‖² this gives Kummer's function M.
    """
    kernel, size = _squared_kernel(x, y, num_projections)
    head_dim = x.shape[-1]
    blocks, left = divmod(num_projections, head_dim)
    pairs = blocks * head_dim * (head_dim - 1) + left * (left - 1)
    return kernel * -torch.expm1(_log_kummer(head_dim, size / 2) - size) * pairs / num_projections**2


def performer_attention_variance(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
    num_features: int,
) -> Float[Tensor, "*batch query value_dim"]:
    """The variance of Performer attention about softmax attention, along independent directions, for many features.

    (1/m) Σ_jl w_ij w_il (v_j - r_i) (v_l - r_i) (e^{⟨s_j,s_l⟩} - 1) with s_j = q_i + k_j, both scaled, w the softmax
    weights and r their pooled values: what errors of the estimates do to a ratio, to first order. At far keys they are
    large but weigh little.

    Notes: D4.1-11, D4.1-12.
    """
    check_shapes("... n d, ... m d, ... m v", query=query, key=key, value=value)
    q, k = (each / each.shape[-1] ** 0.25 for each in (query, key))
    weights = (q @ k.mT).softmax(dim=-1)
    off = weights.unsqueeze(-1) * (value.unsqueeze(-3) - (weights @ value).unsqueeze(-2))  # (..., n, m, v)
    s = q.unsqueeze(-2) + k.unsqueeze(-3)
    return torch.einsum("...jv,...jl,...lv->...v", off, torch.expm1(s @ s.mT), off) / num_features


def _log_kummer(d: int, z: Tensor) -> Tensor:  # (...) -> (...)
    """ln M(d, d/2, z) for z >= 0, M = Σ_j (d)_j / (d/2)_j z^j / j!: all terms are positive, the largest near j = 2z at
    most."""
    terms = torch.arange(64 + 8 * math.ceil(float(z.max())) if z.numel() else 1, dtype=torch.float64, device=z.device)
    half = torch.tensor(d / 2, dtype=torch.float64, device=z.device)
    rising = torch.lgamma(d + terms) - torch.lgamma(2 * half) - torch.lgamma(half + terms) + torch.lgamma(half)
    power = torch.special.xlogy(terms, z.double().unsqueeze(-1))
    return torch.logsumexp(rising + power - torch.lgamma(terms + 1), dim=-1).to(z.dtype)


def _squared_kernel(x: Tensor, y: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """e^{2⟨x,y⟩} and ‖x + y‖²."""
    check_shapes("... d, ... d", x=x, y=y)
    if count < 1:
        raise UserError(f"expected at least one feature, got {count}; the error falls with their number")
    x, y = as_floating(x, y), as_floating(y, x)
    return (2 * (x * y).sum(dim=-1)).exp(), (x + y).square().sum(dim=-1)
