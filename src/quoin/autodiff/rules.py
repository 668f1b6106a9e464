"""The table of the tape: what each operation computes, and what it does to an adjoint on the way back.

For y = op(x_1, ..., x_k) and the adjoint g = ∂J/∂y, a row gives g ∂y/∂x_1, ..., g ∂y/∂x_k. The values are tensors; the
adjoints are written in the tape's own variables, so the way back is a computation like any other, and can be
differentiated again. Broadcasting is an operation of its own, which leaves the others free of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from quoin.display import shown

__all__ = ["RULES", "Rule"]


@shown
class Rule(NamedTuple):
    """`value(*inputs, *settings)` on tensors, `adjoints(g, y, *inputs, *settings)` on variables, one for each input."""

    value: Callable[..., torch.Tensor]
    adjoints: Callable[..., tuple[Any, ...]]


def _put(g: torch.Tensor, shape: torch.Size, index: Any) -> torch.Tensor:
    """A tensor of zeros with g added at `index`, once for each time it is named there."""
    zeros = g.new_zeros(shape)
    indices = torch.arange(zeros.numel(), device=g.device).reshape(shape)[index]
    return zeros.reshape(-1).index_add(0, indices.reshape(-1), g.reshape(-1)).reshape(shape)


def _parts(g: Any, y: Any, *inputs_and_dim: Any) -> tuple[Any, ...]:
    *inputs, dim = inputs_and_dim
    parts, start = [], 0
    for each in inputs:
        stop = start + each.shape[dim]
        parts.append(g[(slice(None),) * dim + (slice(start, stop),)])
        start = stop
    return tuple(parts)


RULES: dict[str, Rule] = {
    # arithmetic
    "add": Rule(lambda x, y: x + y, lambda g, out, x, y: (g, g)),
    "sub": Rule(lambda x, y: x - y, lambda g, out, x, y: (g, -g)),
    "mul": Rule(lambda x, y: x * y, lambda g, out, x, y: (g * y, g * x)),
    "div": Rule(lambda x, y: x / y, lambda g, out, x, y: (g / y, -g * out / y)),
    "neg": Rule(lambda x: -x, lambda g, out, x: (-g,)),
    "pow": Rule(lambda x, n: x**n, lambda g, out, x, n: (g * n * x ** (n - 1) if n else g * 0,)),
    # functions of one number
    "exp": Rule(torch.exp, lambda g, out, x: (g * out,)),
    "log": Rule(torch.log, lambda g, out, x: (g / x,)),
    "sin": Rule(torch.sin, lambda g, out, x: (g * x.cos(),)),
    "cos": Rule(torch.cos, lambda g, out, x: (-g * x.sin(),)),
    "sqrt": Rule(torch.sqrt, lambda g, out, x: (g / (2 * out),)),
    "tanh": Rule(torch.tanh, lambda g, out, x: (g * (1 - out * out),)),
    "sigmoid": Rule(torch.sigmoid, lambda g, out, x: (g * out * (1 - out),)),
    "relu": Rule(torch.relu, lambda g, out, x: (g * out.sign(),)),  # 0 at 0
    "abs": Rule(torch.abs, lambda g, out, x: (g * x.sign(),)),
    "sign": Rule(torch.sign, lambda g, out, x: (g * 0,)),
    # sums and products over axes
    "sum": Rule(
        lambda x, dims: x.sum(dim=dims, keepdim=True) if dims else x.clone(),
        lambda g, out, x, dims: (g.expand(x.shape),),
    ),
    "expand": Rule(
        lambda x, shape: x.expand(shape),
        lambda g, out, x, shape: (g.sum_to(x.shape),),
    ),
    "matmul": Rule(lambda x, y: x @ y, lambda g, out, x, y: (g @ y.mT, x.mT @ g)),
    # moving numbers about
    "reshape": Rule(lambda x, shape: x.reshape(shape), lambda g, out, x, shape: (g.reshape(x.shape),)),
    "mT": Rule(lambda x: x.mT, lambda g, out, x: (g.mT,)),
    "take": Rule(lambda x, index: x[index], lambda g, out, x, index: (g.put(x.shape, index),)),
    "put": Rule(_put, lambda g, out, x, shape, index: (g[index],)),
    "concatenate": Rule(lambda *given: torch.cat(given[:-1], dim=given[-1]), _parts),
}
