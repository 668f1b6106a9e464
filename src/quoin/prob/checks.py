"""What a distribution on finitely many outcomes is: non-negative numbers along the last axis that sum to one."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import UserError
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["check_joint_probs", "check_parameters", "check_probs", "check_probs_pair", "rounding_of"]

_SLACK = 1e-4  # a distribution that float32 rounded must pass, also when it comes as float64


def check_probs(probs: Float[Tensor, "*batch n"] | ArrayLike, name: str) -> None:
    """Raise an error for `probs` (called `name` in the message) unless it holds probabilities over its last axis."""
    probs = float_tensor(probs, "probs")
    if not probs.is_floating_point() or probs.ndim == 0 or probs.shape[-1] == 0:
        got = f"{str(probs.dtype).removeprefix('torch.')} of shape {tuple(probs.shape)}"
        raise UserError(
            f"expected {name} as floats over at least one outcome on the last axis, got {got}; convert or reshape it"
        )
    if torch.compiler.is_compiling() or probs.numel() == 0:
        return  # reading values would break the graph: a compiled step trusts its data
    probs = probs.detach()
    low, far = float(probs.min()), float((probs.sum(dim=-1) - 1).abs().max())
    if not (low >= 0 and far <= max(_SLACK, 2 * torch.finfo(probs.dtype).eps)):  # NaN fails too
        raise UserError(
            f"expected {name} to be non-negative and to sum to one over the last axis, got a least entry of "
            f"{low:.3g} and "
            f"a sum {far:.3g} away from one; divide counts by their sum, or take a softmax of scores"
        )


def check_joint_probs(joint: Float[Tensor, "*batch n m"] | ArrayLike) -> None:
    """Raise an error for `joint` unless its last two axes together hold the probabilities of a pair."""
    joint = float_tensor(joint, "joint")
    check_shapes("... n m", joint=joint)
    check_probs(joint.flatten(-2), "the joint table, its last two axes taken as one,")


def check_parameters(distribution: Distribution) -> None:
    """Raise an error for one of torch's distributions whose parameters are whole numbers: torch computes with them as
    they are, where 20² is 144 in uint8.
    """
    for name in distribution.arg_constraints:
        value = vars(distribution).get(name)
        if isinstance(value, Tensor) and not value.is_floating_point():
            raise UserError(
                f"expected the {name} of {type(distribution).__name__} as floats, got {value.dtype}; convert it "
                "with .double()"
            )


def rounding_of(probs: Float[Tensor, "..."]) -> float:
    """Up to where a difference of probabilities is rounding: 1e-9, in float32 64 roundings. Half precision
    is too coarse.
    """
    eps = torch.finfo(probs.dtype).eps
    if eps > 1e-4:
        raise UserError(
            f"expected probabilities in float32 or float64 to compare, got {probs.dtype}; convert with .double()"
        )
    return max(1e-9, 64 * eps)


def check_probs_pair(p: Float[Tensor, "*batch n"] | ArrayLike, q: Float[Tensor, "*batch n"] | ArrayLike) -> None:
    """Raise an error for `p` and `q` unless they are distributions on the same outcomes, as many of the one as
    of the other.
    """
    p = float_tensor(p, "p", q)
    q = float_tensor(q, "q", p)
    check_probs(p, "p")
    check_probs(q, "q")
    check_shapes("... n, ... n", p=p, q=q)
