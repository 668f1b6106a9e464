"""torch's recurrent layers as a loop over time inside an exported program, so that its length stays free.

torch.export writes torch.nn.RNN, GRU and LSTM out step by step, as many steps as the example has, and the program then
takes sequences of that length alone. Here the steps are one `scan`, which torch.export and ONNX both keep as a loop.
Slower than torch's kernels, so nothing but an export calls it.

    b sequences, T steps, d inputs, h hidden units
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan_op
from torch.nn import functional

from quoin.layers.recurrent import RecurrentWeights, recurrent_weights

__all__ = ["recurrent_step", "scan_recurrent", "scan_steps"]

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, Tensor, Tensor], State]  # W_x x + b, the state, W_h and its bias -> the state after


def scan_recurrent(
    module: nn.RNNBase,
    inputs: Float[Tensor, "batch time in_features"],
    state: Sequence[Float[Tensor, "layers_and_directions batch hidden"]] | None = None,
    lengths: Int[Tensor, "batch"] | None = None,
) -> tuple[Float[Tensor, "batch time out_features"], tuple[Float[Tensor, "layers_and_directions batch hidden"], ...]]:
    """What `module` gives for sequences, batch first, and its state after them, (h,) or of an LSTM (h, c).

    Args:
        state: What the first steps start from; zeros unless given.
        lengths: How many steps of each sequence are read, as if it were packed; outputs behind them are zero.
    """
    layers = recurrent_weights(module)
    step, x, ends = _step_of(module), inputs, []
    if state is None:
        shape = (sum(map(len, layers)), inputs.shape[0], module.hidden_size)
        state = [inputs.new_zeros(shape) for _ in range(2 if isinstance(module, nn.LSTM) else 1)]
    real = None if lengths is None else torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]
    for number, layer in enumerate(layers):
        if number:
            x = functional.dropout(x, module.dropout, module.training)
        outputs = []
        for way, weights in enumerate(layer):
            start = tuple(each[len(ends)] for each in state)
            from_x = functional.linear(x, weights.weight_ih, weights.bias_ih)
            end, output = _one_way(step, from_x, start, weights, real, backward=way == 1)
            ends.append(end)
            outputs.append(output)
        x = torch.cat(outputs, dim=-1) if len(outputs) > 1 else outputs[0]
    return x, tuple(torch.stack(each) for each in zip(*ends, strict=True))


def recurrent_step(
    module: nn.RNNBase, x: Float[Tensor, "batch in_features"], state: Sequence[Float[Tensor, "layers batch hidden"]]
) -> tuple[Float[Tensor, "batch hidden"], tuple[Float[Tensor, "layers batch hidden"], ...]]:
    """One step of all layers of a module of one direction: the last layer's output, and the state after it."""
    step, ends = _step_of(module), []
    for number, (weights,) in enumerate(recurrent_weights(module)):
        before = tuple(each[number] for each in state)
        from_x = functional.linear(x, weights.weight_ih, weights.bias_ih)
        ends.append(step(from_x, before, weights.weight_hh, weights.bias_hh))
        x = ends[-1][0]
    return x, tuple(torch.stack(each) for each in zip(*ends, strict=True))


def scan_steps(
    step: Callable[[State, State, State], tuple[State, State]], state: State, inputs: State, constants: State = ()
) -> tuple[State, tuple[Float[Tensor, "batch time *rest"], ...]]:
    """`step` of the state and the inputs of one time after another: the state at the end, and what each step gave.

    Args:
        step: From the state, the inputs (batch, ...) and the constants to the state after them and the outputs
            (batch, ...). It may use no other tensors: the program keeps it as a function of these.
        inputs: Each (batch, time, ...).
        constants: What is the same at all times, such as the weights.
    """
    if inputs[0].shape[1] == 1:  # one step needs no loop
        after, outputs = step(state, tuple(each.squeeze(1) for each in inputs), constants)
        return after, tuple(each.unsqueeze(1) for each in outputs)
    begin, end = len(state), len(state) + len(inputs)

    def flat(*tensors: Tensor) -> list[Tensor]:
        after, outputs = step(tensors[:begin], tensors[begin:end], tensors[end:])
        return [*after, *(each.clone() for each in outputs)]  # no output may be the state itself

    # The operator below torch's `scan`, which would have the step traced by the compiler: that makes the batch a
    # constant once it has seen the same step at other sizes.
    found = scan_op(flat, list(state), [each.transpose(0, 1) for each in inputs], constants)
    return tuple(found[:begin]), tuple(each.transpose(0, 1) for each in found[begin:])


def _one_way(
    step: Step, from_x: Tensor, start: State, weights: RecurrentWeights, real: Tensor | None, *, backward: bool
) -> tuple[State, Tensor]:
    """The state after the last step and the outputs (b, T, h) of one layer in one direction.

    From the end, what stands behind a sequence comes first: the state stays as it is until the first real step.
    """

    def taken(state: State, now: State, constants: State) -> tuple[State, State]:
        after = step(now[0], state, *constants)
        if len(now) == 1:
            return after, after[:1]
        held = now[1][:, None]
        after = tuple(torch.where(held, new, old) for new, old in zip(after, state, strict=True))
        return after, (torch.where(held, after[0], 0),)

    inputs = (from_x,) if real is None else (from_x, real)
    inputs = tuple(each.flip(1) for each in inputs) if backward else inputs
    end, (output,) = scan_steps(taken, start, inputs, (weights.weight_hh, weights.bias_hh))
    return end, output.flip(1) if backward else output


def _step_of(module: nn.RNNBase) -> Step:
    if isinstance(module, nn.LSTM):
        return _lstm_step
    if isinstance(module, nn.GRU):
        return _gru_step
    return _relu_step if module.mode == "RNN_RELU" else _tanh_step


def _tanh_step(from_x: Tensor, state: State, weight: Tensor, bias: Tensor) -> State:
    return (torch.tanh(from_x + functional.linear(state[0], weight, bias)),)


def _relu_step(from_x: Tensor, state: State, weight: Tensor, bias: Tensor) -> State:
    return (torch.relu(from_x + functional.linear(state[0], weight, bias)),)


def _gru_step(from_x: Tensor, state: State, weight: Tensor, bias: Tensor) -> State:
    (h,) = state
    reset_x, update_x, candidate_x = from_x.chunk(3, dim=-1)
    reset_h, update_h, candidate_h = functional.linear(h, weight, bias).chunk(3, dim=-1)
    update = torch.sigmoid(update_x + update_h)
    candidate = torch.tanh(candidate_x + torch.sigmoid(reset_x + reset_h) * candidate_h)
    return (update * h + (1 - update) * candidate,)


def _lstm_step(from_x: Tensor, state: State, weight: Tensor, bias: Tensor) -> State:
    h, c = state
    i, f, g, o = (from_x + functional.linear(h, weight, bias)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c
