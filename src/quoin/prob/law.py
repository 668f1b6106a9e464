"""What a law on finitely many outcomes is: non-negative numbers along the last axis that sum to one."""

import torch
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import Mistake
from quoin.tensor import check_shapes

__all__ = ["check_joint", "check_law", "check_laws", "check_parameters", "rounding_of"]

_SLACK = 1e-4  # a law that float32 rounded must pass, also when it comes as float64


def check_law(law: Tensor, name: str) -> None:
    """Refuse `law` (called `name` in the message) unless it holds probabilities over its last axis."""
    if not law.is_floating_point() or law.ndim == 0 or law.shape[-1] == 0:
        came = f"{str(law.dtype).removeprefix('torch.')} of shape {tuple(law.shape)}"
        raise Mistake(f"expected {name} as floats over at least one outcome on the last axis, came {came}; convert or reshape it")
    if torch.compiler.is_compiling() or law.numel() == 0:
        return  # reading values would break the graph: a compiled step trusts its data
    law = law.detach()
    low, far = float(law.min()), float((law.sum(dim=-1) - 1).abs().max())
    if not (low >= 0 and far <= max(_SLACK, 2 * torch.finfo(law.dtype).eps)):  # NaN fails too
        raise Mistake(
            f"expected {name} to be non-negative and to sum to one over the last axis, came a least entry of {low:.3g} and "
            f"a sum {far:.3g} away from one; divide counts by their sum, or take a softmax of scores"
        )


def check_joint(joint: Tensor) -> None:
    """Refuse `joint` unless its last two axes together hold the probabilities of a pair."""
    check_shapes("... n m", joint=joint)
    check_law(joint.flatten(-2), "the joint table, its last two axes taken as one,")


def check_parameters(law: Distribution) -> None:
    """Refuse one of torch's laws whose parameters are whole numbers: torch computes with them as they are, where 20² is 144 in uint8."""
    for name in law.arg_constraints:
        value = vars(law).get(name)
        if isinstance(value, Tensor) and not value.is_floating_point():
            raise Mistake(f"expected the {name} of {type(law).__name__} as floats, came {value.dtype}; convert it with .double()")


def rounding_of(law: Tensor) -> float:
    """Up to where a difference of probabilities says nothing: 1e-9, in float32 64 roundings. Half precision tells none from some."""
    eps = torch.finfo(law.dtype).eps
    if eps > 1e-4:
        raise Mistake(f"expected probabilities in float32 or float64 to tell equal from unequal, came {law.dtype}; convert with .double()")
    return max(1e-9, 64 * eps)


def check_laws(p: Tensor, q: Tensor) -> None:
    """Refuse `p` and `q` unless they are laws on the same outcomes, as many of the one as of the other."""
    check_law(p, "p")
    check_law(q, "q")
    check_shapes("... n, ... n", p=p, q=q)
