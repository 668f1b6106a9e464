"""How far back recurrent networks learn: the derivative of a state by those before it, against the lag."""

import torch
from torch import nn

from quoin.inspect import contraction_bound, gradients_through_time
from quoin.layers import gru_cell_definition, lstm_cell_definition, recurrent_weights, rnn_cell_definition
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, curves

HIDDEN, INPUTS = 32, 16


@figure(
    ["D1.1-27c", "Z9.0"],
    "The norm of the derivative of a state by the one so many steps before it, on random inputs: plain cells whose "
    "weights on the state "
    "shorten (0.8), keep (1) and lengthen (1.4) a vector, each under its bound, and an LSTM and a GRU that begin "
    "with open gates.",
    {"num_lags": (2, 500), "scales": (0.1, 3)},
)
def gradients_by_lag(num_lags: int = 60, scales: tuple[float, float, float] = (0.8, 1.0, 1.4)) -> Plot:
    generator = torch.Generator().manual_seed(0)
    x = 0.5 * torch.randn(num_lags, INPUTS, generator=generator, dtype=torch.float64)
    begin = torch.zeros(HIDDEN, dtype=torch.float64)
    lags = list(range(1, num_lags + 1))
    lines = {}
    for size in scales:
        weights = recurrent_weights(_module(nn.RNN, generator, size))[0][0]
        found = gradients_through_time(rnn_cell_definition, x, [begin], weights)
        lines[f"plain, ‖W_h‖ = {size:g}"] = (lags, found.norms.tolist())
        if size != 1:
            lines[f"its bound, {size:g}^lag"] = (lags, contraction_bound(weights.weight_hh, num_lags).tolist())
    for name, kind, cell, state in (
        ("GRU, update gate open", nn.GRU, gru_cell_definition, [begin]),
        ("LSTM, forget gate open", nn.LSTM, lstm_cell_definition, [begin, begin]),
    ):
        weights = recurrent_weights(_module(kind, generator, 1.0))[0][0]
        bias = weights.bias_hh.clone()
        bias[HIDDEN : 2 * HIDDEN] = 4.0  # of the gate that says how much stays: sigmoid(4) = 0.98
        lines[name] = (lags, gradients_through_time(cell, x, state, weights._replace(bias_hh=bias)).norms.tolist())
    kept = {"bound where ‖W_h‖ = 1": 1.0}
    return curves(
        lines,
        title="Gradients through time",
        x_label="lag t - s",
        y_label="norm of ∂h_t / ∂h_s",
        log_y=True,
        reference_lines=kept,
    )


@torch.no_grad()
def _module(kind: type[nn.RNN] | type[nn.GRU] | type[nn.LSTM], generator: torch.Generator, size: float) -> nn.RNNBase:
    """Weights on the hidden state that rotate it and multiply its length by `size`, small ones on the input, no
    biases."""
    module = kind(INPUTS, HIDDEN, dtype=torch.float64)
    for name, weight in module.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.split(HIDDEN):
                gate.copy_(
                    size * torch.linalg.qr(torch.randn(HIDDEN, HIDDEN, generator=generator, dtype=torch.float64))[0]
                )
        elif name.startswith("weight"):
            nn.init.normal_(weight, std=0.3, generator=generator)
        else:
            nn.init.zeros_(weight)
    return module.requires_grad_(False)
