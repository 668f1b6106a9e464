"""Gradients through up to sixty blocks with and without skips."""

from __future__ import annotations

import functools

import torch
from torch import nn

from quoin.inspect import gradient_norms
from quoin.lab.parts.picture import Picture
from quoin.layers import Residual
from quoin.notes.claims.residual import dense_body, jacobian

__all__ = ["BODIES", "DEPTH", "MOST_DEPTH", "WIDTH", "draw_gradients_back", "gradients_back"]

DEPTH, MOST_DEPTH, WIDTH = 50, 60, 12
BODIES = ("with skips", "no skips", "with skips, F(x) = −x")


@functools.lru_cache(maxsize=64)
def gradients_back(body: str, norm: float, depth: int = DEPTH) -> tuple[list[float], list[float]]:
    """The gradient's norm at the output of each of `depth` blocks, and the singular values of one block's Jacobian.

    Args:
        body: One of BODIES; F(x) is tanh(A x) with this norm of A, or minus this times x.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, WIDTH, generator=generator, dtype=torch.float64)
    bodies = [dense_body(WIDTH, norm, generator) for _ in range(depth)]  # a deeper network begins like a shallower one
    if body == BODIES[2]:
        bodies = [_minus(norm) for _ in range(depth)]
    blocks = bodies if body == BODIES[1] else [Residual(each) for each in bodies]
    found = gradient_norms(nn.Sequential(*blocks), x, lambda output: output.sum())
    # of tanh(A x) the report has two rows, of which the last is the block's output: adding x leaves its gradient alone
    at_blocks = found[len(bodies[0]) - 1 :: len(bodies[0])]
    return at_blocks, torch.linalg.svdvals(jacobian(blocks[0], x[0])).tolist()


def _minus(norm: float) -> nn.Sequential:
    linear = nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.float64)
    linear.weight.data = -norm * torch.eye(WIDTH, dtype=torch.float64)
    return nn.Sequential(linear)


def draw_gradients_back(
    picture: Picture, norms: list[float], values: list[float], at_least: float | None, promised: float | None
) -> None:
    """The gradient by block with the handle `depth` on the last one, and a block's singular values over their bounds.

    Args:
        at_least: What no singular value comes below, where there is such a bound.
        promised: The same as printed, where it is shown.
    """
    box, span = (56, 28, 330, 340), (1e-12, 1e12)
    plane = picture.axes((1, MOST_DEPTH), span, box=box, title="gradient by block", x_label="block", y_log=True)
    plane.line(range(1, len(norms) + 1), [max(each, 1e-30) for each in norms], "change")
    plane.handle("depth", len(norms), norms[-1], label="the last block", along="x")
    box = (430, 28, 194, 340)
    bars = picture.axes((-0.6, WIDTH - 0.4), (0, 2.6), box=box, title="a block's singular values", x_ticks=False)
    bars.bars(values, "model")
    if at_least is not None:
        bars.line([-0.6, WIDTH - 0.4], [at_least, at_least], "ink", dashed=True)
        bars.text(WIDTH - 0.6, 2.45, "dashed: at least 1 − norm", "ink", anchor="end", size=12)
    if promised is not None:
        bars.line([-0.6, WIDTH - 0.4], [promised, promised], "printed", width=3)
