"""Activation functions as curves, plotted from their definitions."""

import torch

from quoin.layers import (
    elu,
    elu_derivative,
    gelu,
    gelu_derivative,
    relu,
    relu_derivative,
    sigmoid,
    sigmoid_derivative,
    tanh,
    tanh_derivative,
)
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, house_style, new_figure

_FIVE = {
    "ReLU": (relu, relu_derivative),
    "tanh": (tanh, tanh_derivative),
    "sigmoid": (sigmoid, sigmoid_derivative),
    "GELU": (gelu, gelu_derivative),
    "ELU": (elu, elu_derivative),
}


@figure(
    "D1F0",
    "The five activation functions and their derivatives; that of ReLU jumps at 0, where its value is taken to be 0.",
    {"reach": (0.5, 50)},
)
def activations(reach: float = 4.0) -> Plot:
    x = torch.linspace(-reach, reach, 801, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.6)
        left, right = sheet.subplots(1, 2)
        for axes, title, which in ((left, "Activation", 0), (right, "Derivative", 1)):
            axes.set_title(title)
            axes.set_xlabel("x")
            axes.grid(True)
            for color, dash, (name, pair) in zip(COLORS, ("-", "--", "-.", "-", ":"), _FIVE.items()):
                y = pair[which](x)
                if name == "ReLU" and which == 1:
                    y[x == x[x > 0].min()] = torch.nan  # a jump is no steep line
                axes.plot(x.numpy(), y.numpy(), dash, color=color, label=name)
        left.set_ylim(-1.4, 3.2)
        right.set_ylim(-0.3, 1.3)
        sheet.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        return Plot(sheet, "five activations and their derivatives")
