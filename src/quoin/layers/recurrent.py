"""Recurrent layers from their definition, one cell a function; torch.nn.RNN, GRU and LSTM are the fast forms.

A cell reads one input of a sequence and the hidden state that the inputs before it left; `unroll` applies it to every
step in turn with the same weights, `recurrent_definition` stacks layers and adds the backward direction. Weights are
laid out as torch's, the gates one below the other.

    T steps, d inputs, h hidden units, g gates (1, 3 or 4), of which the weights have g h rows, the `gate_units`
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.activation import sigmoid, tanh
from quoin.layers.dense import affine_definition
from quoin.tensor import check_shapes

__all__ = [
    "CellStep",
    "GRUStep",
    "LSTMStep",
    "RNNStep",
    "Recurrent",
    "RecurrentWeights",
    "gru_cell_definition",
    "lstm_cell_definition",
    "recurrent_definition",
    "recurrent_weights",
    "rnn_cell_definition",
    "unroll",
]


@shown
class RecurrentWeights(NamedTuple):
    """What one layer has in one direction. Two biases, as torch has: only a GRU's candidate tells them apart."""

    weight_ih: Float[Tensor, "gate_units in_features"]
    weight_hh: Float[Tensor, "gate_units hidden"]
    bias_ih: Float[Tensor, "gate_units"]
    bias_hh: Float[Tensor, "gate_units"]


@runtime_checkable
class CellStep(Protocol):
    """One step of a cell: its output first, and the hidden state that the next step starts from."""

    @property
    def output(self) -> Float[Tensor, "*batch hidden"]: ...

    @property
    def state(self) -> tuple[Float[Tensor, "*batch hidden"], ...]: ...


@shown
class RNNStep(NamedTuple):
    """A step of a plain cell."""

    output: Float[Tensor, "*batch hidden"]
    preactivation: Float[Tensor, "*batch hidden"]  # before the activation

    @property
    def state(self) -> tuple[Float[Tensor, "*batch hidden"], ...]:
        return (self.output,)


@shown
class GRUStep(NamedTuple):
    """A step of a gated recurrent unit."""

    output: Float[Tensor, "*batch hidden"]
    reset: Float[Tensor, "*batch hidden"]  # in (0, 1)
    update: Float[Tensor, "*batch hidden"]  # in (0, 1): the fraction of the old hidden state that stays
    candidate: Float[Tensor, "*batch hidden"]  # in (-1, 1)

    @property
    def state(self) -> tuple[Float[Tensor, "*batch hidden"], ...]:
        return (self.output,)


@shown
class LSTMStep(NamedTuple):
    """A step of a cell with long short-term memory."""

    output: Float[Tensor, "*batch hidden"]
    cell: Float[Tensor, "*batch hidden"]  # the cell state
    input_gate: Float[Tensor, "*batch hidden"]  # in (0, 1)
    forget_gate: Float[Tensor, "*batch hidden"]  # in (0, 1)
    output_gate: Float[Tensor, "*batch hidden"]  # in (0, 1)
    candidate: Float[Tensor, "*batch hidden"]  # in (-1, 1)

    @property
    def state(self) -> tuple[Float[Tensor, "*batch hidden"], ...]:
        return (self.output, self.cell)


Cell = Callable[[Tensor, Sequence[Tensor], RecurrentWeights], CellStep]


def rnn_cell_definition(
    x: Float[Tensor, "*batch in_features"],
    state: Sequence[Float[Tensor, "*batch hidden"]],
    weights: RecurrentWeights,
    activation: Callable[[Tensor], Tensor] = tanh,
) -> RNNStep:
    """h_t = φ(W_x x_t + W_h h_{t-1} + b), the bias b in its two parts; the notes write the matrices on the right,
    transposed. The state is (h,).

    Notes: Z9.0, D1.1-27.
    """
    (h,) = _checked(x, state, weights, gates=1, tensors=1)
    preactivation = _from_input(x, weights) + _from_state(h, weights)
    return RNNStep(activation(preactivation), preactivation)


def gru_cell_definition(
    x: Float[Tensor, "*batch in_features"], state: Sequence[Float[Tensor, "*batch hidden"]], weights: RecurrentWeights
) -> GRUStep:
    """A mean of the old hidden state and a candidate, weighted by a gate: h_t = z ⊙ h_{t-1} + (1 - z) ⊙ n.

        r = σ(W_xr x + W_hr h + b_r),  z = σ(W_xz x + W_hz h + b_z),  n = tanh(W_xn x + b_xn + r ⊙ (W_hn h + b_hn))

    The state is (h,).

    Notes: Z10.
    """
    (h,) = _checked(x, state, weights, gates=3, tensors=1)
    from_x, from_h = _from_input(x, weights).chunk(3, dim=-1), _from_state(h, weights).chunk(3, dim=-1)
    reset, update = sigmoid(from_x[0] + from_h[0]), sigmoid(from_x[1] + from_h[1])
    candidate = tanh(from_x[2] + reset * from_h[2])
    return GRUStep(update * h + (1 - update) * candidate, reset, update, candidate)


def lstm_cell_definition(
    x: Float[Tensor, "*batch in_features"], state: Sequence[Float[Tensor, "*batch hidden"]], weights: RecurrentWeights
) -> LSTMStep:
    """A memory that is kept, written to and read through gates: c_t = f ⊙ c_{t-1} + i ⊙ g and h_t = o ⊙ tanh(c_t).

        i, f, o = σ(W_x x_t + W_h h_{t-1} + b), each with weights of its own, and g = tanh(W_xg x_t + W_hg h_{t-1} +
        b_g)

    The state is (h, c).

    Notes: Z10.
    """
    h, c = _checked(x, state, weights, gates=4, tensors=2)
    preactivation = _from_input(x, weights) + _from_state(h, weights)
    i, f, g, o = preactivation.chunk(4, dim=-1)
    input_gate, forget_gate, candidate, output_gate = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    cell = forget_gate * c + input_gate * candidate
    return LSTMStep(output_gate * tanh(cell), cell, input_gate, forget_gate, output_gate, candidate)


def unroll(
    cell: Cell,
    inputs: Float[Tensor, "batch time in_features"],
    state: Sequence[Float[Tensor, "batch hidden"]],
    weights: RecurrentWeights | Sequence[RecurrentWeights],
) -> tuple[CellStep, ...]:
    """h_1, ..., h_T, each from its input and the hidden state before it: a network of T layers whose weights are one
    and the same.

    Args:
        cell: One step, such as `gru_cell_definition`.
        state: What the first step starts from: (h,), of an LSTM (h, c).
        weights: Once, or one for each step, which unties them: the same network with a copy in every layer.

    Notes: D1.1-27, Z9.0.
    """
    num_steps = inputs.shape[1]
    each = [weights] * num_steps if isinstance(weights, RecurrentWeights) else list(weights)
    if len(each) != num_steps:
        raise UserError(
            f"expected weights once, or one for each of {num_steps} steps, got {len(each)}; give as many as there "
            "are steps"
        )
    steps = []
    for x, own in zip(inputs.unbind(dim=1), each):
        steps.append(cell(x, state, own))
        state = steps[-1].state
    return tuple(steps)


@shown
class Recurrent(NamedTuple):
    """All that layers of cells gave."""

    output: Float[Tensor, "batch time out_features"]  # of the last layer: the hidden units, or both ways' side by side
    # after the last step read, layers and directions as torch stacks them
    state: tuple[Float[Tensor, "layers_and_directions batch hidden"], ...]
    steps: tuple[tuple[tuple[CellStep, ...], ...], ...]  # by layer, direction (the second reads from the end), and step


def recurrent_definition(
    cell: Cell,
    inputs: Float[Tensor, "batch time in_features"],
    state: Sequence[Float[Tensor, "layers_and_directions batch hidden"]],
    weights: Sequence[Sequence[RecurrentWeights]],
) -> Recurrent:
    """Layers of cells, each reading the outputs of the one below; with two directions a layer reads the sequence from
    both ends.

        deep: x^{l+1}_t = h^l_t,  both ways: x^{l+1}_t = (forward h^l_t, backward h^l_t)

    torch.nn.RNN, GRU and LSTM with `batch_first` are the fast form.

    Args:
        cell: One step, such as `gru_cell_definition`.
        state: What the first steps start from, (h,) or of an LSTM (h, c), stacked as torch stacks layers and
            directions.
        weights: By layer and direction: `weights[layer][direction]`.

    Notes: Z10.
    """
    directions = {len(layer) for layer in weights}
    if inputs.ndim != 3 or inputs.shape[1] == 0:
        raise UserError(
            f"expected inputs (batch, steps, features) with a step or more, got shape {tuple(inputs.shape)}; "
            "reshape them"
        )
    if not weights or directions not in ({1}, {2}):
        raise UserError(
            "expected layers of one direction each or of two each, got others; give weights[layer][direction]"
        )
    x, ends, all_steps, at = inputs, [], [], 0
    for layer in weights:
        ways = []
        for way, own in enumerate(layer):
            begin = tuple(each[at] for each in state)
            ways.append(unroll(cell, x.flip(1) if way else x, begin, own))
            ends.append(ways[-1][-1].state)
            at += 1
        outputs = [torch.stack([step.output for step in steps], dim=1) for steps in ways]
        x = torch.cat([found.flip(1) if way else found for way, found in enumerate(outputs)], dim=-1)
        all_steps.append(tuple(ways))
    return Recurrent(x, tuple(torch.stack(each) for each in zip(*ends)), tuple(all_steps))


def recurrent_weights(module: nn.RNNBase) -> list[list[RecurrentWeights]]:
    """The weights of a torch module as `recurrent_definition` takes them: the same tensors, by layer and direction."""
    if not module.bias or module.proj_size:
        raise UserError(
            "expected a recurrent module with biases and without projections, got another; build it with torch's "
            "defaults"
        )
    ways = 2 if module.bidirectional else 1
    flat = [RecurrentWeights(*each) for each in module.all_weights]
    return [flat[start : start + ways] for start in range(0, len(flat), ways)]


def _from_input(x: Tensor, weights: RecurrentWeights) -> Tensor:  # (..., d) -> (..., g h)
    return affine_definition(x, weights.weight_ih, weights.bias_ih)


def _from_state(h: Tensor, weights: RecurrentWeights) -> Tensor:  # (..., h) -> (..., g h)
    return affine_definition(h, weights.weight_hh, weights.bias_hh)


def _checked(
    x: Tensor, state: Sequence[Tensor], weights: RecurrentWeights, *, gates: int, tensors: int
) -> tuple[Tensor, ...]:
    """The hidden state, checked to fit the cell and its weights."""
    if len(state) != tensors:
        raise UserError(
            f"expected a hidden state of {tensors} tensor{'s' * (tensors > 1)}, got {len(state)}; give what this "
            "kind of cell keeps"
        )
    check_shapes(
        "m d, m h, m, m",
        weight_ih=weights.weight_ih,
        weight_hh=weights.weight_hh,
        bias_ih=weights.bias_ih,
        bias_hh=weights.bias_hh,
    )
    rows, units = weights.weight_hh.shape
    if rows != gates * units:
        raise UserError(
            f"expected {gates} x {units} rows of weights for {units} units, got {rows}; give the weights of this "
            "kind of cell"
        )
    check_shapes("... d, m d", x=x, weight_ih=weights.weight_ih)
    for each in state:
        check_shapes("... h, m h", state=each, weight_hh=weights.weight_hh)
    return tuple(state)
