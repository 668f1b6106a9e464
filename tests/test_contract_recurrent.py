"""The contract of recurrent layers: each definition equals torch's fused module on the same weights, in value and
gradient."""

import functools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from near import assert_near
from quoin.errors import UserError
from quoin.inspect import gradients_through_time
from quoin.layers import (
    GRUStep,
    LSTMStep,
    RecurrentWeights,
    gru_cell_definition,
    lstm_cell_definition,
    recurrent_definition,
    recurrent_weights,
    rnn_cell_definition,
    unroll,
)
from quoin.layers.recurrent import Cell
from quoin.layers.recurrent_scan import recurrent_step, scan_recurrent

TOLERANCE = {torch.float32: 3e-5, torch.float64: 1e-12}
CELLS: dict[Any, Cell] = {nn.RNN: rnn_cell_definition, nn.GRU: gru_cell_definition, nn.LSTM: lstm_cell_definition}

few = settings(deadline=None, max_examples=12)
kinds = st.sampled_from(list(CELLS))
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
sizes = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 4), st.integers(1, 5))  # b, T, d, h


def drawn(
    kind: Any, sizes: tuple[int, int, int, int], dtype: torch.dtype, seed: int, layers: int = 1, both_ways: bool = False
):
    """A module with weights of some size, inputs, and a state to begin with that is not zero."""
    generator = torch.Generator().manual_seed(seed)
    b, T, d, h = sizes
    module = kind(d, h, layers, batch_first=True, bidirectional=both_ways, dtype=dtype)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.7, generator=generator)
    inputs = torch.randn(b, T, d, generator=generator, dtype=dtype).requires_grad_()
    count = 2 if kind is nn.LSTM else 1
    shape = (layers * (1 + both_ways), b, h)
    state = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for _ in range(count)]
    return module, inputs, state, generator


@few
@given(kinds, sizes, dtypes, st.integers(1, 3), st.booleans(), seeds)
def test_definition_is_torchs_module(kind, sizes, dtype, layers, both_ways, seed):
    module, inputs, state, generator = drawn(kind, sizes, dtype, seed, layers, both_ways)
    found = recurrent_definition(CELLS[kind], inputs, state, recurrent_weights(module))
    output, after = module(inputs, tuple(state) if kind is nn.LSTM else state[0])
    after = after if isinstance(after, tuple) else (after,)
    assert_near(found.output, output, TOLERANCE)
    for mine, its in zip(found.state, after, strict=True):
        assert_near(mine, its, TOLERANCE)
    upstream = [torch.randn(each.shape, generator=generator, dtype=dtype) for each in (output, *after)]
    leaves = [inputs, *state, *module.parameters()]
    ours = torch.autograd.grad((found.output, *found.state), leaves, upstream)
    theirs = torch.autograd.grad((output, *after), leaves, upstream)
    for mine, its in zip(ours, theirs, strict=True):
        assert_near(mine, its, TOLERANCE)


@few
@given(sizes, dtypes, seeds)
def test_a_plain_cell_may_have_another_activation(sizes, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    b, _, d, h = sizes
    cell = nn.RNNCell(d, h, nonlinearity="relu", dtype=dtype)
    x, before = (torch.randn(b, n, generator=generator, dtype=dtype) for n in (d, h))
    weights = RecurrentWeights(cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    assert_near(rnn_cell_definition(x, (before,), weights, torch.relu).output, cell(x, before), TOLERANCE)


@few
@given(kinds, sizes, seeds)
def test_steps_can_be_untied_and_gates_seen(kind, sizes, seed):
    """Copies of the weights, one a step, give the same values; gates lie between 0 and 1, candidates between -1 and
    1."""
    module, inputs, state, _ = drawn(kind, sizes, torch.float64, seed)
    weights = recurrent_weights(module)[0][0]
    begin = [each[0] for each in state]
    tied = unroll(CELLS[kind], inputs, begin, weights)
    untied = unroll(
        CELLS[kind], inputs, begin, [RecurrentWeights(*(each.detach().clone() for each in weights)) for _ in tied]
    )
    assert len(tied) == inputs.shape[1]
    for one, other in zip(tied, untied, strict=True):
        assert torch.equal(one.output, other.output)
        if isinstance(one, GRUStep):
            gates = (one.reset, one.update)
        elif isinstance(one, LSTMStep):
            gates = (one.input_gate, one.forget_gate, one.output_gate)
        else:
            assert_near(one.output, one.preactivation.tanh(), TOLERANCE)
            continue
        assert all(bool(((gate >= 0) & (gate <= 1)).all()) for gate in gates)
        assert float(one.candidate.detach().abs().max()) <= 1


@few
@given(kinds, sizes, seeds)
def test_jacobians_through_time_are_autograds(kind, sizes, seed):
    """The derivative of the last state by the one `lag` steps before, of the tail of the network taken as one
    function."""
    module, inputs, state, _ = drawn(kind, sizes, torch.float64, seed)
    weights, x, begin = recurrent_weights(module)[0][0], inputs[0].detach(), [each[0, 0].detach() for each in state]
    weights = RecurrentWeights(*(each.detach() for each in weights))
    found = gradients_through_time(CELLS[kind], x, begin, weights)
    steps = unroll(CELLS[kind], x[None], [each[None] for each in begin], weights)
    along = [torch.cat(begin), *(torch.cat(step.state, dim=-1)[0] for step in steps)]
    for lag in range(1, len(x) + 1):

        def tail(flat: Tensor, lag: int = lag) -> Tensor:
            last = unroll(
                CELLS[kind], x[None, len(x) - lag :], [each[None] for each in flat.chunk(len(begin))], weights
            )[-1]
            return torch.cat(last.state, dim=-1)[0]

        expected = torch.autograd.functional.jacobian(tail, along[len(x) - lag])
        assert_near(found.jacobians[lag - 1], expected, TOLERANCE)
        assert_near(found.norms[lag - 1], torch.linalg.svdvals(expected)[0], TOLERANCE)
    with pytest.raises(UserError, match="leave out the batch axis"):
        gradients_through_time(CELLS[kind], x[None], begin, weights)


def test_what_does_not_fit_costs_a_line():
    module, inputs, state, _ = drawn(nn.LSTM, (2, 3, 4, 5), torch.float32, 0)
    weights = recurrent_weights(module)
    with pytest.raises(UserError, match="a hidden state of 2 tensors, got 1"):
        recurrent_definition(lstm_cell_definition, inputs, state[:1], weights)
    with pytest.raises(UserError, match="3 x 5 rows of weights for 5 units, got 20"):
        recurrent_definition(gru_cell_definition, inputs, state[:1], weights)
    with pytest.raises(UserError, match="axis d of weight_ih"):
        recurrent_definition(lstm_cell_definition, inputs[..., :3], state, weights)
    with pytest.raises(UserError, match="axis h of weight_hh"):
        recurrent_definition(lstm_cell_definition, inputs, [each[..., :2] for each in state], weights)
    with pytest.raises(UserError, match="a step or more"):
        recurrent_definition(lstm_cell_definition, inputs[:, :0], state, weights)
    with pytest.raises(UserError, match=r"weights\[layer\]\[direction\]"):
        recurrent_definition(lstm_cell_definition, inputs, state, [])
    with pytest.raises(UserError, match="one for each of 3 steps, got 2"):
        unroll(lstm_cell_definition, inputs, [each[0] for each in state], [weights[0][0]] * 2)
    with pytest.raises(UserError, match="with biases and without projections"):
        recurrent_weights(nn.LSTM(3, 4, bias=False))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM, functools.partial(nn.RNN, nonlinearity="relu")])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("given_state", [False, True])
def test_the_scan_of_an_exported_program_is_torchs_module(kind, bidirectional, given_state):
    """Whole sequences, and packed ones of different lengths, in any order; one step as well."""
    torch.manual_seed(0)
    module = kind(3, 4, num_layers=2, batch_first=True, bidirectional=bidirectional, dtype=torch.float64)
    kept = 2 if isinstance(module, nn.LSTM) else 1
    for time in (1, 6):
        inputs = torch.randn(5, time, 3, dtype=torch.float64)
        state = None
        if given_state:
            state = [torch.randn(4 if bidirectional else 2, 5, 4, dtype=torch.float64) for _ in range(kept)]
        started = None if state is None else tuple(state) if kept == 2 else state[0]
        lengths = torch.tensor([3, 6, 1, 2, 6]).clamp(max=time)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        with torch.no_grad():
            whole, end = module(inputs, started)
            padded, last = module(packed, started)
            found = scan_recurrent(module, inputs, state)
            found_padded = scan_recurrent(module, inputs, state, lengths)
        torch.testing.assert_close(found, (whole, end if kept == 2 else (end,)))
        padded = pad_packed_sequence(padded, batch_first=True, total_length=time)[0]
        torch.testing.assert_close(found_padded, (padded, last if kept == 2 else (last,)))


def test_one_step_of_all_layers_is_torchs_module():
    module = nn.LSTM(3, 4, num_layers=2, batch_first=True, dtype=torch.float64)
    x, state = torch.randn(5, 3, dtype=torch.float64), tuple(torch.randn(2, 2, 5, 4, dtype=torch.float64))
    with torch.no_grad():
        output, after = module(x[:, None], state)
        torch.testing.assert_close(recurrent_step(module, x, state), (output[:, 0], after))
