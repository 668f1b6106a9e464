"""Networks as the notes show them: circles in layers, all edges; and the functions that a small one can be."""

import torch

from quoin.data import keyed_generator
from quoin.models import MLP, functional_model, num_parameters
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, network
from quoin.plot.plots import house_style, new_figure


@figure(
    "Z3.F1",
    "Linear regression is a network of one layer: n inputs, each joined to the one output.",
    {"num_outputs": (1, 12)},
)
def linear_regression(num_outputs: int = 1) -> Plot:
    return network(["n", num_outputs], title="Linear regression as a one-layer network")


@figure("D1F1", "A network with two inputs, one hidden layer of five units and one output.", {"hidden_dim": (1, 16)})
def two_five_one(hidden_dim: int = 5) -> Plot:
    return network([2, hidden_dim, 1], title=f"The 2-{hidden_dim}-1 network")


@figure("Z5.F2", "An MLP with one hidden layer of four units; d inputs and q outputs.", {"hidden_dim": (1, 16)})
def four_hidden_units(hidden_dim: int = 4) -> Plot:
    count = "four" if hidden_dim == 4 else str(hidden_dim)
    return network(["d", hidden_dim, "q"], title=f"An MLP with {count} hidden units")


@figure(
    "D1F2",
    "Six functions of two variables that the 2-5-1 ReLU network realises, each at other random parameters.",
    {"hidden_dim": (1, 256), "std": (0.01, 100)},
)
def random_realizations(hidden_dim: int = 5, std: float = 1.0) -> Plot:
    generator = keyed_generator("figure D1F2", 0)
    model = MLP([2, hidden_dim, 1], generator=generator).double()
    line = torch.linspace(-2, 2, 33, dtype=torch.float64)
    first, second = torch.meshgrid(line, line, indexing="ij")
    points = torch.stack([first, second], dim=-1).reshape(-1, 2)
    with house_style():
        sheet = new_figure(height=4.2)
        for index in range(6):
            theta = std * torch.randn(num_parameters(model), generator=generator, dtype=torch.float64)
            height = functional_model(model, theta)(points).reshape(first.shape)
            axes = sheet.add_subplot(2, 3, index + 1, projection="3d")
            surface = {"cmap": "Blues_r", "linewidth": 0.15, "edgecolor": "#444444", "rasterized": True}
            axes.plot_surface(first.numpy(), second.numpy(), height.detach().numpy(), rcount=33, ccount=33, **surface)
            axes.set_box_aspect(None, zoom=1.1)  # type: ignore[arg-type]
            axes.tick_params(labelsize=6, pad=-2)
            axes.set_xlabel("$x_1$", fontsize=8, labelpad=-8)
            axes.set_ylabel("$x_2$", fontsize=8, labelpad=-8)
        return Plot(sheet, "six random realisations of the 2-5-1 network")
