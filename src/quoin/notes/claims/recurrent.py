"""Recurrent networks: an unrolled one is a deep one with shared weights, its gradient by hand, and how far back it
reaches."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.inspect import contraction_bound, gradients_through_time
from quoin.layers import (
    RecurrentWeights,
    gru_cell_definition,
    lstm_cell_definition,
    recurrence_as_dense,
    recurrent_definition,
    recurrent_weights,
    rnn_cell_definition,
    tanh,
    tanh_derivative,
    unroll,
)
from quoin.layers.recurrent import Cell
from quoin.models import mlp_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import excess, gap, max, min, randint, roundings

CASES = 12
ROUNDED = roundings(2048), "2048 float64 roundings"
CELLS: list[tuple[Cell, int, int]] = [
    (rnn_cell_definition, 1, 1),
    (gru_cell_definition, 3, 1),
    (lstm_cell_definition, 4, 2),
]


def normal(*shape: int, generator: torch.Generator, size: float = 1.0) -> Float[Tensor, "..."]:
    return size * torch.randn(shape, generator=generator, dtype=torch.float64)


def random_weights(
    gates: int, inputs: int, hidden: int, generator: torch.Generator, size: float = 0.7
) -> RecurrentWeights:
    rows = gates * hidden
    shapes = ((rows, inputs), (rows, hidden), (rows,), (rows,))
    return RecurrentWeights(*(normal(*shape, generator=generator, size=size) for shape in shapes))


def random_sequence(generator: torch.Generator) -> tuple[Float[Tensor, "b T d"], int]:
    """Inputs, and a number of units."""
    b, steps, inputs, hidden = (randint(1, most, generator) for most in (3, 7, 4, 5))
    return normal(b, steps, inputs, generator=generator), hidden


@claim(
    ["D1.1-27", "Z9.0"],
    "the gradient of a recurrent network is the sum of the gradients of its copies in the unrolled, deep one",
)
def gradients_add_up_over_copies(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for cell, gates, tensors in CELLS * (CASES // 3):
        inputs, hidden = random_sequence(generator)
        weights = random_weights(gates, inputs.shape[2], hidden, generator)
        state = [normal(len(inputs), hidden, generator=generator) for _ in range(tensors)]
        upstream = [normal(len(inputs), hidden, generator=generator) for _ in range(inputs.shape[1])]
        shared = RecurrentWeights(*(each.requires_grad_() for each in weights))
        copies = [RecurrentWeights(*(each.detach().clone().requires_grad_() for each in weights)) for _ in upstream]
        outputs = [[step.output for step in unroll(cell, inputs, state, given)] for given in (shared, copies)]
        tied = torch.autograd.grad(outputs[0], list(shared), upstream)
        own = torch.autograd.grad(outputs[1], [each for copy in copies for each in copy], upstream)
        for index, found in enumerate(tied):
            worst, cases = max(worst, gap(found, torch.stack(own[index::4]).sum(dim=0))), cases + 1
    return Evidence("largest |gradient - sum over the copies|, relative", worst, *ROUNDED, cases)


@claim(
    "D1.1-27",
    "a plain recurrent network is an MLP of one layer a step, its matrices masked over the inputs and tied over time",
)
def unrolled_is_a_deep_network(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        inputs, hidden = random_sequence(generator)
        b, steps, width = inputs.shape
        weights = random_weights(1, width, hidden, generator)
        begin = normal(b, hidden, generator=generator)
        x, h = inputs.flatten(1), begin
        for dense in recurrence_as_dense(weights.weight_ih, weights.weight_hh, steps):
            both, none = torch.cat([dense, torch.zeros_like(dense)]), torch.zeros(hidden, dtype=torch.float64)
            bias = torch.cat([weights.bias_ih + weights.bias_hh, none])
            keep = torch.cat(
                [torch.eye(hidden, dtype=torch.float64), torch.zeros(hidden, hidden, dtype=torch.float64)], dim=1
            )
            h = mlp_definition(torch.cat([x, h], dim=1), [both, keep], [bias, none], tanh).output
        found = unroll(rnn_cell_definition, inputs, [begin], weights)[-1].output
        worst = max(worst, gap(found, h))
    return Evidence("largest |state of the recurrent network - of the dense one|", worst, *ROUNDED, CASES)


@claim(
    "Z9.0", "back-propagation through time by hand, δ_{t-1} = W_hᵀ(φ'(a_t) ⊙ δ_t) + ∂J/∂h_{t-1}, is what autograd finds"
)
def by_hand_through_time(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(CASES):
        inputs, hidden = random_sequence(generator)
        module = nn.RNN(inputs.shape[2], hidden, batch_first=True, dtype=torch.float64)
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.7, generator=generator)
        begin = normal(1, len(inputs), hidden, generator=generator).requires_grad_()
        upstream = normal(len(inputs), inputs.shape[1], hidden, generator=generator)
        outputs, _ = module(inputs, begin)
        theirs = torch.autograd.grad(outputs, [begin, *module.parameters()], upstream)
        weights = RecurrentWeights(*(each.detach() for each in recurrent_weights(module)[0][0]))
        steps = unroll(rnn_cell_definition, inputs, [begin[0].detach()], weights)
        before = [begin[0].detach(), *(step.output for step in steps[:-1])]
        state = torch.zeros_like(before[0])
        ours = [torch.zeros_like(each) for each in weights]
        for t in reversed(range(len(steps))):
            a = tanh_derivative(steps[t].preactivation) * (state + upstream[:, t])  # pyright: ignore[reportAttributeAccessIssue]
            for total, more in zip(ours, (a.T @ inputs[:, t], a.T @ before[t], a.sum(dim=0), a.sum(dim=0))):
                total += more
            state = a @ weights.weight_hh
        for mine, its in zip([state.unsqueeze(0), *ours], theirs, strict=True):
            worst, cases = max(worst, gap(mine, its)), cases + 1
    return Evidence("largest |gradient by hand - autograd's|, relative", worst, *ROUNDED, cases)


@claim(
    "Z9.0", "clipping leaves a gradient's direction and makes its norm min(norm, bound), over all parameters together"
)
def clipping_keeps_the_direction(generator: torch.Generator) -> Evidence:
    worst, clipped = 0.0, 0
    for case in range(CASES):
        inputs, hidden = random_sequence(generator)
        module = nn.LSTM(inputs.shape[2], hidden, batch_first=True, dtype=torch.float64)
        module(inputs)[0].square().sum().backward()
        before = torch.cat([each.grad.flatten() for each in module.parameters() if each.grad is not None]).clone()
        bound = float(before.norm()) * (0.25 if case % 2 else 4.0)
        nn.utils.clip_grad_norm_(module.parameters(), bound)
        after = torch.cat([each.grad.flatten() for each in module.parameters() if each.grad is not None])
        expected = before * min(1.0, bound / float(before.norm()))
        # torch divides by norm + 1e-6, so that a gradient of zero stays one: the clipped norm falls short by that
        # fraction
        allowed = 1e-6 / float(before.norm()) if case % 2 else 0.0
        worst = max(worst, float((after - expected).norm() / expected.norm()) - allowed)
        clipped += int(after.norm() < before.norm())
    worst = worst if clipped == CASES // 2 else math.inf
    return Evidence("largest relative difference from the scaled gradient, beyond torch's 1e-6", worst, *ROUNDED, CASES)


@claim("Z10", "torch's RNN, GRU and LSTM, deep and both ways, are the cells of the notes on every step, in value")
def fused_modules_are_the_cells(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for kind, (cell, _, tensors) in list(zip((nn.RNN, nn.GRU, nn.LSTM), CELLS)) * (CASES // 3):
        inputs, hidden = random_sequence(generator)
        layers, ways = randint(1, 3, generator), randint(1, 2, generator)
        module = kind(inputs.shape[2], hidden, layers, batch_first=True, bidirectional=ways == 2, dtype=torch.float64)
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.7, generator=generator)
        state = [normal(layers * ways, len(inputs), hidden, generator=generator) for _ in range(tensors)]
        output, after = module(inputs, tuple(state) if tensors == 2 else state[0])
        found = recurrent_definition(cell, inputs, state, recurrent_weights(module))
        ends = after if isinstance(after, tuple) else (after,)
        pairs = [(found.output, output), *zip(found.state, ends, strict=True)]
        worst, cases = max(worst, *(gap(*pair) for pair in pairs)), cases + 1
    return Evidence("largest |definition - torch's module|", worst, *ROUNDED, cases)


@claim(
    "Z10",
    "an LSTM whose forget gate is open and whose input gate is shut hands its memory and the gradient of it on "
    "unchanged",
)
def open_gate_carries_gradients(generator: torch.Generator) -> Evidence:
    """Where a plain cell with the same weights on its state loses the gradient: the spectral norm after 50 steps is
    below 1e-6."""
    steps, hidden, inputs = 50, 4, 3
    weights = random_weights(4, inputs, hidden, generator, size=0.1)
    opened = weights.bias_hh.clone()
    opened[:hidden], opened[hidden : 2 * hidden] = -1000.0, 1000.0  # i = 0, f = 1 to the last bit
    weights = weights._replace(bias_hh=opened)
    x = normal(steps, inputs, generator=generator)
    state = [normal(hidden, generator=generator) for _ in range(2)]
    found = gradients_through_time(lstm_cell_definition, x, state, weights)
    memory = found.jacobians[:, hidden:, hidden:]  # of the cell by the cell
    worst = gap(memory, torch.eye(hidden, dtype=torch.float64).expand_as(memory))
    plain = random_weights(1, inputs, hidden, generator, size=0.1)
    lost = gradients_through_time(rnn_cell_definition, x, state[:1], plain).norms[-1]
    return Evidence("largest |∂c_t/∂c_s - 1|", worst if float(lost) < 1e-6 else math.inf, *ROUNDED, steps)


@claim(
    "D1.1-27c",
    "‖∂h_t/∂h_s‖ ≤ (‖W_h‖ sup|φ'|)^{t-s} for every lag, with equality where φ' is everywhere 1 and W_h is orthogonal",
)
def derivative_keeps_its_bound(generator: torch.Generator) -> Evidence:
    worst, cases = -math.inf, 0
    for _ in range(CASES):
        inputs, hidden = random_sequence(generator)
        x = inputs.new_zeros(randint(5, 20, generator), inputs.shape[2]) + inputs[0, :1]
        weights = random_weights(
            1, inputs.shape[2], hidden, generator, size=float(normal(generator=generator).abs()) + 0.1
        )
        found = gradients_through_time(rnn_cell_definition, x, [normal(hidden, generator=generator)], weights)
        bound = contraction_bound(weights.weight_hh, len(x))
        worst, cases = max(worst, excess(found.norms / bound, torch.ones_like(bound))), cases + len(x)
        orthogonal, _ = torch.linalg.qr(normal(hidden, hidden, generator=generator))
        linear = gradients_through_time(
            _linear_cell, x, [normal(hidden, generator=generator)], weights._replace(weight_hh=1.1 * orthogonal)
        )
        worst = max(worst, gap(linear.norms / contraction_bound(1.1 * orthogonal, len(x)), torch.ones_like(bound)))
    return Evidence("largest fraction of the bound, less 1", worst, *ROUNDED, cases)


@claim(
    "D1.1-27c",
    "the last state depends on every input, but where ‖W_h‖ < 1 the derivative falls by that factor a step or faster",
)
def influence_vanishes(generator: torch.Generator) -> Evidence:
    """The fitted fall of ln‖∂h_T/∂h_s‖ a step is at least -ln‖W_h‖ while every derivative by an input is above zero."""
    steps, hidden, inputs, worst = 40, 6, 3, -math.inf
    for _ in range(CASES):
        orthogonal, _ = torch.linalg.qr(normal(hidden, hidden, generator=generator))
        weights = random_weights(1, inputs, hidden, generator, size=0.5)._replace(weight_hh=0.8 * orthogonal)
        x, begin = normal(steps, inputs, generator=generator), normal(hidden, generator=generator)
        found = gradients_through_time(rnn_cell_definition, x, [begin], weights)
        given = x.clone().requires_grad_()
        last = unroll(rnn_cell_definition, given.unsqueeze(0), [begin.unsqueeze(0)], weights)[-1].output
        (by_input,) = torch.autograd.grad(last.sum(), given)
        seen = bool((by_input.norm(dim=1) > 0).all())
        fall = -float((found.norms[-1] / found.norms[0]).log()) / (steps - 1)
        worst = max(worst, -math.log(0.8) - fall if seen else math.inf)
    return Evidence(
        "largest -ln‖W_h‖ less the fall of ln‖∂h_T/∂h_s‖ a step", worst, 0.0, "exact: sup|tanh'| = 1", CASES
    )


def _linear_cell(x, state, weights):
    return rnn_cell_definition(x, state, weights, lambda summed: summed)
