"""What a pixel may see, and what stacks of masked convolutions let it see."""

import itertools

import torch

from quoin.data import keyed_generator
from quoin.models import GatedPixelCNN, PixelCNN, PixelModel
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

SIDE = 9  # of the image


@figure(
    "D5.2-8",
    "Which pixels the logits of one pixel (dark) depend on, by their gradients: blue is seen; orange is within "
    "reach and before it, but "
    "not. Left: a plain stack of 3 × 3 masked convolutions is blind to the right above. Right: two stacks see all.",
    {"num_layers": (1, 8), "row": (0, 8), "column": (0, 8)},
)
def receptive_fields(num_layers: int = 3, row: int = 5, column: int = 4) -> Plot:
    from matplotlib.patches import Rectangle

    weights, shape = keyed_generator("receptive fields", 0), (1, SIDE, SIDE)
    sizes = {"channels": 32, "num_layers": num_layers, "kernel_size": 3, "first_kernel_size": 3}
    models = {
        "plain stack": PixelCNN(shape, 2, generator=weights, **sizes),
        "two stacks": GatedPixelCNN(shape, 2, generator=weights, **sizes),
    }
    reach = 1 + num_layers
    with house_style():
        sheet = new_figure(height=3.6)
        for axes, (name, model) in zip(sheet.subplots(1, 2), models.items()):
            seen, blind = _seen(model, row, column), 0
            for i, j in itertools.product(range(SIDE), repeat=2):
                hidden = (i, j) < (row, column) and max(row - i, abs(j - column)) <= reach and not seen[i, j]
                blind += hidden
                color = COLORS[0] if seen[i, j] else COLORS[1] if hidden else "white"
                if (i, j) == (row, column):
                    color = INK
                axes.add_patch(Rectangle((j, i), 1, 1, facecolor=color, edgecolor=FAINT, linewidth=0.8))
            axes.set(xlim=(-0.05, SIDE + 0.05), ylim=(SIDE + 0.05, -0.05), aspect="equal")
            axes.set_axis_off()
            axes.set_title(f"{name}: {blind or 'no'} blind pixels", fontsize=10)
        return Plot(sheet, "receptive fields of two kinds of masked convolutions")


def _seen(model: PixelModel, row: int, column: int) -> torch.Tensor:  # -> (h, w), bool
    images = torch.full((1, *model.image_shape), 0.5, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.double().logits(images)[0, :, row, column].square().sum(), images)
    return gradient[0, 0] != 0
