"""Vectors as arrows: angles, projections, and the side of a hyperplane on which a point lies.   n dimensions"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.entries import check_finite, check_floating, check_same_dtype
from quoin.tensor.norms import norm, power_of_two
from quoin.tensor.products import dot
from quoin.tensor.shapes import check_shapes

__all__ = [
    "angle",
    "cosine_similarity",
    "cosine_similarity_definition",
    "hyperplane_distance",
    "hyperplane_side",
    "project",
]


def cosine_similarity_definition(x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """cos θ = x · y / (‖x‖ ‖y‖).

    As the equation stands, so x · y may overflow.

    Notes: Z13.1.
    """
    return dot(x, y) / (norm(x) * norm(y))


def cosine_similarity(x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """`cosine_similarity_definition` of unit vectors, which cannot overflow, kept in [-1, 1]; a zero vector has no
    angle.

    Notes: Z13.1.
    """
    check_shapes("... n, ... n", x=x, y=y)
    return dot(_unit(x, "x"), _unit(y, "y")).clamp(-1, 1)


def angle(x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """θ in [0, π] with cos θ = x · y / (‖x‖ ‖y‖), as 2 atan(‖u - v‖ / ‖u + v‖) of the unit vectors.

    The arccosine would lose half of the digits of a small angle.

    Notes: Z13.1.
    """
    check_shapes("... n, ... n", x=x, y=y)
    check_same_dtype(x, y)
    u, v = _unit(x, "x"), _unit(y, "y")
    return 2 * torch.atan2(norm(u - v), norm(u + v))


def project(x: Float[Tensor, "*batch n"], onto: Float[Tensor, "n"] | Float[Tensor, "n k"]) -> Float[Tensor, "*batch n"]:
    """The point nearest to x in the span of the vector, or of the k columns, `onto`: A (AᵀA)^(-1) Aᵀ x.

    Columns may depend on each other (the pseudo-inverse counts each direction once); the span of zeros is the origin.

    Notes: Z13.1.
    """
    A = onto.unsqueeze(-1) if onto.ndim == 1 else onto
    check_shapes("... n, n k", x=x, onto=A)
    check_floating(x)
    check_same_dtype(x, A)
    check_finite(A, "onto")
    A = A / power_of_two(A)  # the span stays, and the gradient of the pseudo-inverse squares A
    return x @ (A @ torch.linalg.pinv(A)).mT


def hyperplane_distance(
    x: Float[Tensor, "*batch n"], normal: Float[Tensor, "n"], offset: Real[Tensor, ""] | float = 0.0
) -> Float[Tensor, "*batch"]:
    """The signed distance (w · x + b) / ‖w‖ from the hyperplane {x: w · x + b = 0}, positive on the side to which w
    points.

    It overflows where the distance itself does, not where w · x would.

    >>> hyperplane_distance(torch.tensor([3e30, 0.0]), torch.tensor([1e30, 0.0]))
    tensor(3.0000e+30)

    Notes: Z13.1.
    """
    check_shapes("... n, n, ()", x=x, normal=normal, offset=offset if isinstance(offset, Tensor) else None)
    check_same_dtype(x, normal)
    _unit(normal, "normal")
    scale = power_of_two(normal)  # w and b together, so that a point on the plane stays there to the last bit
    normal = normal / scale
    return (x @ normal + offset / scale) / norm(normal)


def hyperplane_side(
    x: Float[Tensor, "*batch n"], normal: Float[Tensor, "n"], offset: Real[Tensor, ""] | float = 0.0
) -> Float[Tensor, "*batch"]:
    """sign(w · x + b): 1 on the side to which w points, -1 on the other, 0 on the hyperplane.

    Notes: Z13.1.
    """
    return hyperplane_distance(x, normal, offset).sign()


def _unit(x: Tensor, name: str) -> Tensor:
    length = norm(x).unsqueeze(-1)
    if not torch.compiler.is_compiling() and bool((length.detach() == 0).any()):
        raise UserError(
            f"expected {name} without zero vectors, got one in shape {tuple(x.shape)}; zero has no direction, "
            "leave it out"
        )
    return x / length
