"""Convolution plotted: a kernel over an image, the edges it finds, and the matrix it is."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import load
from quoin.errors import UserError
from quoin.layers import convolution_as_dense, cross_correlate2d
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, heatmap
from quoin.plot.plots import COLORS, INK, house_style, new_figure, signed_map


def number(value: Float[Tensor, ""]) -> str:
    return f"{float(value):g}".replace("-", "−")


@figure(
    "Z7.9",
    "A 2×2 kernel slides over a 4×4 image: each of the 3×3 outputs is the sum of the products under the kernel.",
    {"row": (0, 2), "column": (0, 2)},
)
def kernel_over_image(row: int = 1, column: int = 2) -> Plot:
    image = torch.tensor([[0.0, 1, 2, 1], [3, 1, 0, 2], [2, 0, 1, 3], [1, 2, 3, 0]])
    kernel = torch.tensor([[1.0, 0], [-1, 2]])
    output = cross_correlate2d(image[None, None], kernel[None, None])[0, 0]
    factors = [(number(image[row + a, column + b]), number(kernel[a, b])) for a in range(2) for b in range(2)]
    products = " + ".join(f"{x}·({v})" if v.startswith("−") else f"{x}·{v}" for x, v in factors)
    with house_style():
        from matplotlib.patches import Rectangle

        sheet = new_figure(height=3.0)
        axes = sheet.add_subplot(xlim=(-0.1, 12.1), ylim=(4.9, -0.6), aspect="equal")
        axes.set_axis_off()
        for name, cells, left, marked in [
            ("input", image, 0, (row, column, 2)),
            ("kernel", kernel, 5.5, (0, 0, 2)),
            ("output", output, 9, (row, column, 1)),
        ]:
            top = (4 - len(cells)) / 2
            i, j, side = marked
            axes.add_patch(Rectangle((left + j, top + i), side, side, facecolor=COLORS[0], alpha=0.25, linewidth=0))
            axes.text(left, top - 0.15, name, ha="left", va="bottom", weight="bold")
            for (i, j), value in zip(
                torch.cartesian_prod(*map(torch.arange, cells.shape)).tolist(), cells.flatten(), strict=True
            ):
                axes.add_patch(Rectangle((left + j, top + i), 1, 1, fill=False, edgecolor=INK, linewidth=0.6))
                axes.text(left + j + 0.5, top + i + 0.5, number(value), ha="center", va="center", fontsize=12)
        for index, sign in [(4.75, "⋆"), (8.25, "=")]:
            axes.text(index, 2, sign, ha="center", va="center", fontsize=15)
        axes.text(6, 4.55, f"{products} = {number(output[row, column])}", ha="center", va="center")
        return Plot(sheet, "a kernel sliding over an image")


@figure(
    "Z7.14",
    "Digits, and their edges as two kernels find them: blue where it gets lighter rightwards or downwards, vermilion "
    "where darker.",
    {"digits": (0, 9)},
)
def edges_of_digits(digits: tuple[int, int, int, int] = (0, 1, 4, 7)) -> Plot:
    data = load("digits")
    images = data.features[[int((data.targets == digit).nonzero()[0]) for digit in digits]]
    across = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 4
    edges = cross_correlate2d(images, torch.stack([across, across.T]).unsqueeze(1), padding=1)
    rows = {"image": images[:, 0], "left to right": edges[:, 0], "top to bottom": edges[:, 1]}
    with house_style():
        sheet = new_figure(height=5.0)
        for line, (name, pictures) in zip(sheet.subplots(len(rows), len(images)), rows.items(), strict=True):
            for axes, picture in zip(line, pictures, strict=True):
                colors = (
                    {"cmap": "gray", "vmin": 0, "vmax": 1}
                    if name == "image"
                    else {"cmap": signed_map(), "vmin": -1, "vmax": 1}
                )
                axes.imshow(picture.numpy(), interpolation="nearest", **colors)
                axes.set_axis_off()
            line[0].set_title(name)
        return Plot(sheet, "edges of handwritten digits")


@figure(
    "D1.1-23",
    "The matrix of a kernel of three numbers slid along a vector of nine: banded, the same number all along each "
    "diagonal.",
    {"kernel": (-100, 100), "num_inputs": (1, 24)},
)
def kernel_as_matrix(kernel: tuple[float, ...] = (1.0, 2.0, -1.0), num_inputs: int = 9) -> Plot:
    if len(kernel) > num_inputs:
        raise UserError(f"expected a kernel of at most {num_inputs} numbers, got {len(kernel)}; raise num_inputs")
    numbers = ", ".join(number(torch.tensor(each)) for each in kernel)
    matrix = convolution_as_dense(torch.tensor(kernel), num_inputs)
    return heatmap(
        matrix, title=f"A kernel ({numbers}) as a dense layer", x_label="input", y_label="output", show_values=True
    )
