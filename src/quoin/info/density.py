"""Information of distributions with a density: differential entropy, joint and conditional; truncated KL
divergence; mutual information.

The definitions are integrals, done by quadrature in float64: of a `Density`, or of one `torch.distributions`
distribution on the line. The others take the closed form where torch has one (normal, uniform, exponential, Laplace,
gamma, beta, ...; batched) and the integral elsewhere. A density may exceed one, so an entropy here may be negative;
only its differences mean what they do for tables. Nats, unless a base is given. How an integral is found infinite,
quoin.prob.density_nodes says; KL divergence and cross-entropy are in quoin.prob.divergence.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from quoin.errors import UserError
from quoin.info.entropy import conditional_entropy
from quoin.info.mutual import mutual_information
from quoin.prob import Density, convert_base
from quoin.prob.closed_form import NoClosedFormError, closed_form_entropy
from quoin.prob.density_nodes import as_log_density, check_mass, common_edges, positive_nodes, product_nodes, sum_nodes

__all__ = [
    "conditional_differential_entropy",
    "differential_entropy",
    "differential_entropy_definition",
    "kl_by_truncation",
    "mutual_information_of_density",
]


def differential_entropy_definition(p: Density | Distribution, base: float = math.e) -> Float[Tensor, ""]:
    """h(X) = -∫ p(x) log p(x) dx; of a density in several coordinates this is their joint entropy.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> half = Density(lambda x: 2 + 0 * x, (0, 0.5))
    >>> round(float(differential_entropy_definition(half, base=2)), 9)  # minus one bit
    -1.0

    Notes: Z13.8, Z13.14.
    """
    density = as_log_density(p)
    nodes = positive_nodes(density, product_nodes(density.edges, density.num_nodes))
    check_mass(density, nodes)
    log_p = density.log(*nodes.points)
    return convert_base(sum_nodes(nodes, -log_p.exp() * log_p), base)


def differential_entropy(p: Density | Distribution, base: float = math.e) -> Float[Tensor, "*batch"]:
    """`differential_entropy_definition` in closed form where torch has it, for each distribution of a batch: ½ log(2πe
    σ²) of a normal, log(b - a) of a uniform distribution.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> differential_entropy(torch.distributions.Uniform(0.0, 0.5))
    tensor(-0.6931)

    Notes: Z13.8, Z13.14.
    """
    if isinstance(p, Distribution):
        try:
            return convert_base(closed_form_entropy(p), base)
        except NoClosedFormError:
            pass
    return differential_entropy_definition(p, base)


def kl_by_truncation(
    p: Density | Distribution, q: Density | Distribution, radii: Sequence[float]
) -> Float[Tensor, "radii"]:
    """∫ p(x) log(p(x) / q(x)) dx over |x| ≤ R for each radius R, in nats: D(P || Q) is its limit for R → ∞, and
    infinite if this grows for ever.

    >>> cauchy, normal = torch.distributions.Cauchy(0.0, 1.0), torch.distributions.Normal(0.0, 1.0)
    >>> kl_by_truncation(cauchy, normal, (10, 100, 1000))  # P << Q, and yet
    tensor([  1.5367,  29.7949, 316.2083], dtype=torch.float64)

    Notes: Z13.24.
    """
    first, second = as_log_density(p), as_log_density(q)
    if len(first.edges) != 1 or not all(0 < radius < math.inf for radius in radii):
        raise UserError(
            f"expected distributions on the line and finite radii above zero, got {len(first.edges)} coordinates, "
            f"{tuple(radii)}"
        )
    (edges,) = common_edges(first, second)
    found = []
    for radius in radii:
        low, high = edges[0].clamp(min=-radius), edges[-1].clamp(max=radius)
        inner = edges[(low < edges) & (edges < high)]
        nodes = positive_nodes(first, product_nodes((torch.cat([low[None], inner, high[None]]),), first.num_nodes))
        log_p, log_q = first.log(*nodes.points), second.log(*nodes.points)
        found.append((nodes.weights * log_p.exp() * (log_p - log_q)).sum())
    return torch.stack(found)


def conditional_differential_entropy(
    joint: Density | MultivariateNormal, *given: int, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """h(Y | X) = -∫ p(x, y) log p(y | x) dx dy, X being the coordinates `given` and Y the others; h(X, Y) - h(X).

    Of a normal distribution ½ log((2πe)^m det Σ_{Y|X}) with det Σ_{Y|X} = det Σ / det Σ_XX, batched.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    Notes: Z13.16.
    """
    if isinstance(joint, MultivariateNormal):
        _complement(joint.event_shape[0], given)
        whole, of_given = closed_form_entropy(joint), closed_form_entropy(_marginal(joint, given))
        return convert_base(whole - of_given, base)
    masses, weights = _table(joint, given)
    # Each node is a cell of width w: h(Y | X) = H(cell of Y | cell of X) + E log w_Y, as for ever finer bins.
    return convert_base(conditional_entropy(masses) + (masses.sum(dim=0) * weights.log()).sum(), base)


def mutual_information_of_density(
    joint: Density | MultivariateNormal, *first: int, base: float = math.e
) -> Float[Tensor, "*batch"]:
    """I(X, Y) = ∫ p(x, y) log(p(x, y) / (p_X(x) p_Y(y))) dx dy, X being the coordinates `first` and Y the others.

    Of a normal distribution ½ log(det Σ_XX det Σ_YY / det Σ), batched: -½ log(1 - ρ²) for a pair.

    Args:
        base: Of the logarithm: 2 for bits, e for nats.

    >>> correlated = MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.6], [0.6, 1.0]]))
    >>> mutual_information_of_density(correlated, 0)  # -log 0.8
    tensor(0.2231)

    Notes: Z13.18.
    """
    if isinstance(joint, MultivariateNormal):
        rest = _complement(joint.event_shape[0], first)
        parts = closed_form_entropy(_marginal(joint, first)) + closed_form_entropy(_marginal(joint, rest))
        return convert_base(parts - closed_form_entropy(joint), base)
    masses, _ = _table(joint, first)
    return mutual_information(masses, base)  # of the cells at the nodes: their widths cancel in p(x, y) / (p(x) p(y))


def _table(joint: Density, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The probabilities of the nodes, the chosen coordinates along the rows, and the weights of the others' nodes."""
    rest = _complement(joint.dim, chosen)
    rows, columns = (product_nodes([joint.edges[axis] for axis in axes], joint.num_nodes) for axes in (chosen, rest))
    at = dict(zip(chosen, (each[:, None] for each in rows.points))) | dict(zip(rest, columns.points))
    return rows.weights[:, None] * columns.weights * joint(*(at[axis] for axis in range(joint.dim))), columns.weights


def _complement(dim: int, chosen: Sequence[int]) -> list[int]:
    """The coordinates that were not chosen; some must be on either side."""
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) < set(range(dim)):
        raise UserError(
            f"expected some but not all of the coordinates 0 to {dim - 1}, got {tuple(chosen)}; name each once"
        )
    return [axis for axis in range(dim) if axis not in chosen]


def _marginal(distribution: MultivariateNormal, axes: Sequence[int]) -> MultivariateNormal:
    axes = list(axes)
    return MultivariateNormal(distribution.loc[..., axes], distribution.covariance_matrix[..., axes, :][..., axes])
