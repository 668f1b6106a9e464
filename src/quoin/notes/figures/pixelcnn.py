"""What a pixel may see, and what stacks of masked convolutions let it see."""

import itertools

import torch

from quoin.data import keyed_generator
from quoin.models import GatedPixelCNN, PixelCNN, PixelModel
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

SIDE, ROW, COLUMN = 9, 5, 4  # of the image, and of the predicted pixel
LAYERS = 3


@figure(
    "D5.2-8",
    "Which pixels the logits of one pixel (dark) depend on, by their gradients: blue is seen; orange is within "
    "reach and before it, but "
    "not. Left: a plain stack of 3 × 3 masked convolutions is blind to the right above. Right: two stacks see all.",
)
def receptive_fields() -> Plot:
    from matplotlib.patches import Rectangle

    weights, shape = keyed_generator("receptive fields", 0), (1, SIDE, SIDE)
    sizes = {"channels": 32, "num_layers": LAYERS, "kernel_size": 3, "first_kernel_size": 3}
    models = {
        "plain stack": PixelCNN(shape, 2, generator=weights, **sizes),
        "two stacks": GatedPixelCNN(shape, 2, generator=weights, **sizes),
    }
    reach = 1 + LAYERS
    with house_style():
        sheet = new_figure(height=3.6)
        for axes, (name, model) in zip(sheet.subplots(1, 2), models.items()):
            seen, blind = _seen(model), 0
            for row, column in itertools.product(range(SIDE), repeat=2):
                hidden = (
                    (row, column) < (ROW, COLUMN)
                    and max(ROW - row, abs(column - COLUMN)) <= reach
                    and not seen[row, column]
                )
                blind += hidden
                color = COLORS[0] if seen[row, column] else COLORS[1] if hidden else "white"
                if (row, column) == (ROW, COLUMN):
                    color = INK
                axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor=FAINT, linewidth=0.8))
            axes.set(xlim=(-0.05, SIDE + 0.05), ylim=(SIDE + 0.05, -0.05), aspect="equal")
            axes.set_axis_off()
            axes.set_title(f"{name}: {blind or 'no'} blind pixels", fontsize=10)
        return Plot(sheet, "receptive fields of two kinds of masked convolutions")


def _seen(model: PixelModel) -> torch.Tensor:  # -> (h, w), bool
    images = torch.full((1, *model.image_shape), 0.5, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.double().logits(images)[0, :, ROW, COLUMN].square().sum(), images)
    return gradient[0, 0] != 0
