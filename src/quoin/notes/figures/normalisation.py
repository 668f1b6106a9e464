"""What the kinds of normalization take a mean over, plotted by asking which entries a normalized entry depends on."""

import torch
from torch import Tensor

from quoin.data import keyed_generator
from quoin.layers import batch_norm_definition, layer_norm_definition, position_batch_norm_definition
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, INK, house_style, new_figure

CHOSEN = (0, 1, 0)  # example, position, channel


@figure(
    ("Z8.7", "Z8.8"),
    "Which entries share a mean and a variance with the highlighted one: batch norm averages across the examples, "
    "layer norm within one.",
    {"num_examples": (2, 6), "num_positions": (2, 8), "num_channels": (2, 6)},
)
def axes_of_the_means(num_examples: int = 4, num_positions: int = 5, num_channels: int = 3) -> Plot:
    x = torch.randn(
        num_examples, num_positions, num_channels, generator=keyed_generator("figure Z8.7"), dtype=torch.float64
    )
    one, zero = torch.ones_like(x[0]), torch.zeros_like(x[0])
    kinds = {
        "batch norm, by channel": lambda x: batch_norm_definition(x, one[0], zero[0], channel_dim=-1).output,
        "batch norm, per position": lambda x: position_batch_norm_definition(x, one, zero).output,
        "layer norm, by position": lambda x: layer_norm_definition(x, one[0], zero[0]).output,
        "layer norm, by example": lambda x: layer_norm_definition(x, one, zero).output,
    }
    with house_style():
        sheet = new_figure(height=4.0)
        for index, (name, norm) in enumerate(kinds.items()):
            axes = sheet.add_subplot(2, 2, index + 1, title=name, aspect="equal")
            _tensor(axes, _sharing(norm, x))
        return Plot(sheet, "axes of the means")


def _sharing(norm, x: Tensor) -> Tensor:  # (b, n, c) -> (b, n, c), true or false
    """The entries that the normalized entry at CHOSEN depends on: those its mean is over."""
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(norm(x)[CHOSEN], x)
    return gradient != 0


def _tensor(axes, shared: Tensor) -> None:
    """The examples as sheets side by side, positions down and channels across."""
    from matplotlib.patches import Rectangle

    num_examples, num_positions, num_channels = shared.shape
    wide = num_channels + 1.0
    for b, n, c in torch.cartesian_prod(*map(torch.arange, shared.shape)).tolist():
        color = COLORS[4] if shared[b, n, c] else "white"
        axes.add_patch(Rectangle((b * wide + c, n), 1, 1, facecolor=color, edgecolor=INK, linewidth=0.8))
    b, n, c = CHOSEN
    axes.plot(b * wide + c + 0.5, n + 0.5, "o", color=INK, markersize=5)
    for each in range(num_examples):
        axes.text(each * wide + num_channels / 2, -0.35, f"example {each + 1}", ha="center", va="bottom", fontsize=7)
    axes.set_xlim(-1.2, num_examples * wide - 0.8)
    axes.set_ylim(num_positions + 0.2, -1.3)
    axes.set_xlabel("channels", fontsize=8)
    axes.set_ylabel("positions", fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
