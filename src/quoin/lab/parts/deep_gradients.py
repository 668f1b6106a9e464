"""Gradients through fifty blocks with and without skips."""

from __future__ import annotations

import functools

import torch
from torch import nn

from quoin.inspect import gradient_norms
from quoin.layers import Residual
from quoin.notes.claims.residual import dense_body, jacobian

__all__ = ["BODIES", "DEPTH", "WIDTH", "gradients_back"]

DEPTH, WIDTH = 50, 12
BODIES = ("with skips", "no skips", "with skips, F(x) = −x")


@functools.lru_cache(maxsize=64)
def gradients_back(body: str, norm: float) -> tuple[list[float], list[float]]:
    """The gradient's norm at the output of each of DEPTH blocks, and the singular values of one block's Jacobian.

    Args:
        body: One of BODIES; F(x) is tanh(A x) with this norm of A, or minus this times x.
    """
    generator = torch.Generator().manual_seed(0)
    bodies = [dense_body(WIDTH, norm, generator) for _ in range(DEPTH)]
    if body == BODIES[2]:
        bodies = [_minus(norm) for _ in range(DEPTH)]
    blocks = bodies if body == BODIES[1] else [Residual(each) for each in bodies]
    x = torch.randn(1, WIDTH, generator=generator, dtype=torch.float64)
    found = gradient_norms(nn.Sequential(*blocks), x, lambda output: output.sum())
    # of tanh(A x) the report has two rows, of which the last is the block's output: adding x leaves its gradient alone
    at_blocks = found[len(bodies[0]) - 1 :: len(bodies[0])]
    return at_blocks, torch.linalg.svdvals(jacobian(blocks[0], x[0])).tolist()


def _minus(norm: float) -> nn.Sequential:
    linear = nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.float64)
    linear.weight.data = -norm * torch.eye(WIDTH, dtype=torch.float64)
    return nn.Sequential(linear)
