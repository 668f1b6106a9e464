"""How far back a recurrent network can learn: the size of ∂h_t/∂h_s against the lag t - s.

The derivative is a product of one Jacobian a step, and a product of many factors seldom stays near one by itself:
below, what is long past teaches nothing (the gradient vanishes); above, one update throws the weights away (it
explodes, and is clipped).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import RecurrentWeights, unroll
from quoin.layers.recurrent import Cell
from quoin.plot import Plot, curves

__all__ = ["GradientThroughTime", "contraction_bound", "gradients_through_time", "plot_gradients_through_time"]


@shown
class GradientThroughTime(NamedTuple):
    """Spectral norms of the derivative of the last state by each one before, the nearest first."""

    norms: Float[Tensor, "lags"]  # for the lags 1 .. T
    # ∂(state T)/∂(state T - lag), the state of an LSTM being its output and its cell
    jacobians: Float[Tensor, "lags states states"]


def gradients_through_time(
    cell: Cell,
    inputs: Float[Tensor, "steps features"],
    state: Sequence[Float[Tensor, "hidden"]],
    weights: RecurrentWeights,
) -> GradientThroughTime:
    """‖∂h_T/∂h_s‖ for s = T - 1, ..., 0 along one sequence of T steps: the spectral norm of the product of Jacobians.

        ∂h_T/∂h_s = J_T J_{T-1} ... J_{s+1},  J_t = ∂h_t/∂h_{t-1}

    Args:
        cell: One step, such as `quoin.layers.rnn_cell_definition`.
        state: h_0, as the cell takes it: (h,), of an LSTM (h, c).

    Notes: D1.1-27c.
    """
    if inputs.ndim != 2 or not len(inputs):
        raise UserError(
            f"expected one sequence (steps, features) of a step or more, got shape {tuple(inputs.shape)}; "
            "leave out the batch axis"
        )
    sizes = [len(each) for each in state]

    def next_state(flat: Tensor, x: Tensor) -> Tensor:
        return torch.cat(cell(x, flat.split(sizes), weights).state)

    with torch.no_grad():
        steps = unroll(cell, inputs.unsqueeze(0), [each.unsqueeze(0) for each in state], weights)
        before = torch.stack([torch.cat(tuple(state)), *(torch.cat(step.state, dim=-1)[0] for step in steps[:-1])])
        each_step = torch.func.vmap(torch.func.jacrev(next_state))(before, inputs)  # (T, s, s), all at once
    products = [each_step[-1]]
    for jacobian in reversed(each_step[:-1].unbind()):
        products.append(products[-1] @ jacobian)
    jacobians = torch.stack(products)
    return GradientThroughTime(torch.linalg.matrix_norm(jacobians, ord=2), jacobians)


def contraction_bound(
    weight_hh: Float[Tensor, "hidden hidden"], num_lags: int, max_derivative: float = 1.0
) -> Float[Tensor, "{num_lags}"]:
    """(‖W_h‖ sup|φ'|)^lag for the lags 1 .. num_lags, above which no derivative of a plain cell lies.

    Where ‖W_h‖ sup|φ'| < 1 the derivative vanishes whatever is read.

    Args:
        max_derivative: sup|φ'| of the activation: 1 for tanh, 1/4 for the sigmoid.

    Notes: D1.1-27c.
    """
    base = torch.linalg.matrix_norm(weight_hh, ord=2) * max_derivative
    return base ** torch.arange(1, num_lags + 1, dtype=weight_hh.dtype, device=weight_hh.device)


def plot_gradients_through_time(
    found: Mapping[str, GradientThroughTime], bounds: Mapping[str, Float[Tensor, "_lags"]] | None = None
) -> Plot:
    """The norms against the lag, on a logarithmic axis, and bounds beside them.

    Args:
        found: What `gradients_through_time` gave, by the names of the curves.
        bounds: What `contraction_bound` gave, by the names of these curves.
    """
    lines = {name: (list(range(1, len(each.norms) + 1)), each.norms.tolist()) for name, each in found.items()}
    lines |= {name: (list(range(1, len(each) + 1)), each.tolist()) for name, each in (bounds or {}).items()}
    return curves(lines, x_label="lag t - s", y_label="norm of ∂h_t/∂h_s", log_y=True)
