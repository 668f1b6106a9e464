# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Convolution: the same few weights everywhere. Area 8 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Convolution · Quoin lab")

with app.setup:
    import functools
    from typing import Any

    import torch
    from jaxtyping import Float
    from torch import Tensor

    from quoin.inspect import ReceptiveFields, feature_maps, input_gradient, receptive_fields, saliency
    from quoin.lab.parts import Number, Picture, TrainedModel, View, digits, exhibit, head, play, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.controls import Choice, File, Handle, Paint, Slider, Switch
    from quoin.lab.parts.image_pictures import draw_box, draw_map, own_image, painted, panel, ring
    from quoin.layers import (
        avg_pool2d_definition,
        conv_output_size,
        convolution_matrix,
        convolve2d,
        convolve2d_definition,
        cross_correlate2d,
        cross_correlate2d_definition,
        max_pool2d_definition,
    )
    from quoin.notes.claims.convolution import convolution_is_equivariant, layer_is_convolution_with, padding_in_total
    from quoin.runs import Run

    SIDE = 12
    LEVELS = (0.0, 1.0, -1.0)  # of a painted kernel
    KERNEL = (1, 1, 1, 0, 0, 0, 2, 2, 0)
    LETTER = ("...........", ".######....", ".#.........", ".#.........", ".####......", ".#.........", ".#.........")
    IMAGE = tuple(int(cell == "#") for row in [*LETTER, *[""] * 5] for cell in row.ljust(SIDE, "."))
    LAYERS = ("circular padding", "zero padding", "stride 2", "max pooling", "average pooling")
    KERNEL_1D = torch.tensor([0.5, 1.0, -0.5])
    MAPS = {"first": "features.1", "second": "features.4"}
    LENET = TrainedModel("inductive-bias", {"num_rows": [1200], "epochs": 10}, seconds=20)
    EDGES = {
        "upright edges": ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)),
        "level edges": ((-1, -2, -1), (0, 0, 0), (1, 2, 1)),
        "blur": ((1 / 9,) * 3,) * 3,
        "sharpen": ((0, -1, 0), (-1, 5, -1), (0, -1, 0)),
    }


@app.cell
def _():
    head("convolution")
    return


@app.function
@exhibit(
    "Slide it",
    ids="Z7.5 Z7.7 Z7.7c Z7.9 ZE16",
    intro="Paint the image and the kernel: empty is 0, green 1, vermilion −1. Drag the window.",
    controls=(
        Paint("image", "image", SIDE, SIDE, 2, IMAGE),
        Paint("kernel", "kernel", 3, 3, 3, KERNEL),
        Handle("window", "window", (3.5, 9.5), (1.5, 1.5), (10.5, 10.5), whole=True),
        Switch("printed", "as printed: the layer is a convolution"),
    ),
    surprise="A convolution flips the kernel; the layer does not. What is called convolution is cross-correlation.",
    surprise_at={"printed": True},
    definition=(cross_correlate2d_definition, convolve2d_definition),
)
def slide_it(image: list[int], kernel: list[int], window: tuple[float, float], printed: bool) -> View:
    """An image, a kernel, nine products, and the cell that they add up to."""
    x, weight = painted(image, SIDE), painted(kernel, 3, LEVELS)
    layer = cross_correlate2d_definition(x[None, None], weight[None, None])[0, 0]
    form = form_of(layer_is_convolution_with, printed)
    convolved = convolve2d(x, form(weight))[2:SIDE, 2:SIDE]
    output, lying = (convolved, weight.flip(0, 1)) if printed else (layer, weight)
    row, column = round(SIDE - window[1] - 1.5), round(window[0] - 1.5)
    products = x[row : row + 3, column : column + 3] * lying
    off = float((convolved - layer).abs().max())
    here = float(output[row, column])
    picture = Picture(f"The window at row {row + 1}, column {column + 1}: nine products that add up to {digits(here)}.")
    left = panel(picture, 10, 34, 250, SIDE, SIDE, "image")
    left.paint("image", image, SIDE, SIDE)
    draw_box(left, row, row + 3, column, column + 3, "model")
    left.handle("window", *window, label="window")
    panel(picture, 285, 34, 84, 3, 3, "kernel").paint("kernel", kernel, 3, 3, roles=("paper", "hand", "change"))
    panel(picture, 285, 160, 84, 3, 3, "as it lies").cells(lying, numbers=True, most=2.0)
    panel(picture, 285, 286, 84, 3, 3, "products").cells(products, numbers=True, most=2.0)
    right = panel(picture, 395, 34, 235, SIDE - 2, SIDE - 2, "output, as printed" if printed else "output")
    draw_map(right, output, most=max(3.0, float(output.abs().max())))
    draw_box(right, row, row + 1, column, column + 1, "printed" if printed else "ink")
    picture.text(395, 310, f"sum of the products: {digits(here)}", role="printed" if printed else "model", size=16)
    return View(
        picture,
        [Number("sum of the products", here, printed=printed), Number("layer − convolution", off, printed=printed)],
        reached=printed and off > 0,
        code=(
            "import torch\n"
            "from quoin.layers import convolve2d, cross_correlate2d_definition\n"
            f"x = torch.tensor({x.int().tolist()!r}).float()\n"
            f"kernel = torch.tensor({weight.tolist()!r})\n"
            "layer = cross_correlate2d_definition(x[None, None], kernel[None, None])[0, 0]\n"
            f"print(float({'convolve2d(x, kernel)[2:, 2:]' if printed else 'layer'}[{row}, {column}]))"
        ),
    )


@app.cell
def _():
    play(slide_it)
    return


@app.function
def layer_of(name: str, x: Float[Tensor, "h w"]) -> Float[Tensor, "1 1 p q"]:
    """One of LAYERS on an image; its kernel finds edges."""
    kernel = torch.tensor([[1.0, 0.5, -1.0], [1.5, 0.0, -1.5], [1.0, -0.5, -1.0]])[None, None]
    around = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="circular")
    if name == "zero padding":
        return cross_correlate2d(x[None, None], kernel, padding=1)
    output = cross_correlate2d(around, kernel, stride=2 if name == "stride 2" else 1)
    pools = {"max pooling": max_pool2d_definition, "average pooling": avg_pool2d_definition}
    return pools[name](output, 2) if name in pools else output


@app.function
@exhibit(
    "Shift it",
    ids="Z7.4 ZE15 Z7.15 Z7.16 Z7.17",
    intro="Drag the letter. Does the output move along? Right: the layer's output minus the one expected.",
    controls=(
        Handle("by", "shift", (2.0, 0.0), (-3.0, -7.0), (8.0, 3.0), whole=True),
        Choice("layer", "layer", LAYERS),
        Switch("printed", "as printed: the output stays (invariance)"),
    ),
    surprise="The output moves along; that it stays, as printed, fails at once. "
    "Moving along ends at a border of zeros, and for odd shifts at stride 2.",
    surprise_at={"printed": True},
    definition=(cross_correlate2d_definition, max_pool2d_definition),
)
def shift_it(by: tuple[float, float], layer: str, printed: bool) -> View:
    """A layer's output for a shifted image beside its shifted output."""
    x, (across, up) = painted(IMAGE, SIDE), (round(by[0]), round(by[1]))
    moved = x.roll((-up, across), dims=(0, 1))
    before, after = layer_of(layer, x), layer_of(layer, moved)
    step = SIDE // before.shape[-1]
    form = form_of(convolution_is_equivariant, printed)
    way = (-(up // step), across // step)
    off = form(after, before, way)
    expected = before if printed else before.roll(way, dims=(-2, -1))
    picture = Picture(f"{layer}, shifted by {across} and {up}: the largest difference is {digits(off)}.", height=400)
    rows, most = before.shape[-1], float(before.abs().max())
    first = panel(picture, 10, 34, 150, SIDE, SIDE, "image, shifted")
    draw_map(first, moved)
    grip = picture.axes((-3.5, 8.5), (-8.0, 4.0), box=first.box, bare=True)  # where no shift is on the letter
    grip.handle("by", *by, label="shift")
    draw_map(panel(picture, 170, 34, 150, rows, rows, "its output"), after[0, 0], most=most)
    title = "expected to stay" if printed else "moved along"
    draw_map(panel(picture, 330, 34, 150, rows, rows, title), expected[0, 0], most=most)
    draw_map(panel(picture, 490, 34, 140, rows, rows, "difference"), (after - expected)[0, 0], most=most)
    draw_map(panel(picture, 10, 224, 150, SIDE, SIDE, "image"), x)
    draw_map(panel(picture, 170, 224, 150, rows, rows, "its output"), before[0, 0], most=most)
    return View(
        picture,
        [Number("largest difference, relative", off, printed=printed), Number("shift", f"{across}, {up}")],
        reached=off > 1e-5,
        code=(
            "import torch\n"
            "from quoin.lab.convolution import IMAGE, layer_of\n"
            "from quoin.notes.claims.convolution import convolution_is_equivariant\n"
            "x = torch.tensor(IMAGE).reshape(12, 12).float()\n"
            f"output, shifted = layer_of({layer!r}, x), layer_of({layer!r}, x.roll({(-up, across)}, dims=(0, 1)))\n"
            f"print(convolution_is_equivariant.{'printed' if printed else 'right'}(shifted, output, {way}))"
        ),
    )


@app.cell
def _():
    play(shift_it)
    return


@app.function
@exhibit(
    "Count it",
    ids="Z7.10 Z7.11 ZE17 D1.1-22 D1.1-23 D1.1-24",
    intro="A kernel of three slides along a row; drag the row's end. The same as a matrix: one band, one kernel.",
    controls=(
        Handle("end", "length", (8.0, 0.0), (3.0, 0.0), (12.0, 0.0), whole=True),
        Slider("padding", "padding on each side", 0, 3, 1, 1),
        Slider("stride", "stride", 1, 3, 1, 1),
        Switch("printed", "as printed: p read as one side's padding"),
    ),
    surprise="In ⌊(n − k + p + s)/s⌋ p counts both sides. Read as one side's padding, the size is wrong.",
    surprise_at={"printed": True},
    definition=(conv_output_size, convolution_matrix),
)
def count_it(end: tuple[float, float], padding: int, stride: int, printed: bool) -> View:
    """The positions of a window on a row, counted, by formula, and as the rows of a matrix."""
    n = round(end[0])
    form = form_of(padding_in_total, printed)
    size = conv_output_size(n, 3, stride=stride, total_padding=form(padding))
    matrix = convolution_matrix(KERNEL_1D[None, None], (1, n), stride=stride, padding=padding)
    picture = Picture(
        f"A row of {n}, padding {padding}, stride {stride}: {len(matrix)} positions; the formula says {size}."
    )
    axes = picture.axes((-3, 15), (-9, 1), box=(10, 24, 330, 370), bare=True, title="positions of the window")
    for cell in range(-padding, n + padding):
        inside = 0 <= cell < n
        corners = [(cell, 0.1), (cell + 1, 0.1), (cell + 1, 0.9), (cell, 0.9)]
        axes.polygon(corners, "ink 30%" if inside else "paper", edge="edge", label="entry" if inside else "padding: 0")
    for position in range(len(matrix)):
        start, y = position * stride - padding, -0.4 - 8.4 * position / max(len(matrix), 8)
        axes.line([start + 0.08, start + 2.92], [y, y], "model", width=6, label=f"position {position + 1}")
    if printed:
        y = -0.4 - 8.4 * (size - 0.5) / max(len(matrix), 8)
        axes.line([-3, 15], [y, y], "printed", label="as printed")
        axes.text(15, y, f"as printed: {size}", "printed", anchor="end", dy=-6)
    axes.handle("end", end[0], 0.5, label="length", along="x")
    tall = min(26 * len(matrix), 350)
    table = picture.axes(box=(360, 24, min(23 * n, 270), tall), bare=True, title=f"matrix, {len(matrix)} × {n}")
    table.cells(matrix, most=1.2)
    return View(
        picture,
        [
            Number("size by the formula", str(size), printed=printed),
            Number("positions counted", str(len(matrix))),
            Number("weights, if dense", str(matrix.numel()), "instead of 3"),
        ],
        reached=size != len(matrix),
        code=(
            "from quoin.layers import conv_output_size\n"
            f"print(conv_output_size({n}, 3, stride={stride}, total_padding={form(padding)}))"
        ),
    )


@app.cell
def _():
    play(count_it)
    return


@app.function
@functools.lru_cache(maxsize=8)
def fields_of(model: torch.nn.Module, layer: str) -> ReceptiveFields:
    """The pixels that each unit of a layer can see."""
    return receptive_fields(model, layer, (1, 8, 8))


@app.function
@exhibit(
    "Inside a CNN",
    ids="D1.1F1 Z7.1 Z7.1c Z7.14",
    intro="Paint a digit. Drag over the feature map: the box on your digit is what that unit can see.",
    controls=(
        Paint("digit", "digit", 32, 32, 2, ring(32)),
        Handle("unit", "unit", (0.3, 0.3), (0.0, 0.0), (0.999, 0.999)),
        Choice("layer", "convolution", tuple(MAPS)),
        Slider("channel", "channel", 1, 32, 1, 1),
        Switch("shuffled", "shuffle the pixels of all images alike"),
    ),
    surprise="Shuffle all pixels alike: an MLP learns as before, the CNN does not. It had relied on neighbours.",
    surprise_at={"shuffled": True},
    definition=(feature_maps, receptive_fields),
    needs={"run": LENET},
)
def inside_a_cnn(
    digit: list[int], unit: tuple[float, float], layer: str, channel: int, shuffled: bool, run: Run
) -> View:
    """A painted digit, a feature map, what a unit sees, what the answer depends on, and ten probabilities."""
    counts = painted(digit, 32).reshape(8, 4, 8, 4).sum(dim=(1, 3))  # as the data were made: ink in 4 x 4 blocks
    trained: Any = run.trained
    x = trained.feature_scaler.transform(counts.reshape(1, 1, 8, 8))
    (probabilities,) = run.predict(counts.reshape(1, 64)).probabilities
    maps = feature_maps(run.model, x[0], [MAPS[layer]])[0].maps
    chosen = maps[channel - 1]
    size = chosen.shape[-1]
    row, column = min(int((1 - unit[1]) * size), size - 1), int(unit[0] * size)
    seen = fields_of(run.model, MAPS[layer]).at(row, column)
    best, errors = int(probabilities.argmax()), run.metrics or {}
    picture = Picture(f"The network says {best} with probability {float(probabilities[best]):.2f}.")
    paper = panel(picture, 10, 30, 240, 32, 32, "your digit")
    paper.paint("digit", digit, 32, 32)
    draw_box(paper, 4 * seen.top, 4 * seen.bottom, 4 * seen.left, 4 * seen.right, "model")
    feature = panel(picture, 270, 30, 170, size, size, f"channel {channel} of {len(maps)}")
    draw_map(feature, chosen)
    draw_box(feature, row, row + 1, column, column + 1, "model")
    parts = panel(picture, 270, 30, 170, 1, 1)  # the handle counts in parts of the map, whatever its size
    parts.handle("unit", *unit, label="unit")
    shown = saliency(input_gradient(run.model, x))[0]
    draw_map(panel(picture, 460, 30, 170, 8, 8, "saliency"), shown)
    if shuffled:
        names = ("CNN", "CNN shuffled", "MLP", "MLP shuffled")
        keys = ("test_cnn_error", "test_scrambled_cnn_error", "test_mlp_error", "test_scrambled_mlp_error")
        bars = picture.axes((-0.6, 3.6), (0, 0.3), box=(300, 250, 330, 130), title="test error", x_ticks=False)
        bars.bars([errors[key] for key in keys], "model", names=names)
    else:
        bars = picture.axes((-0.6, 9.6), (0, 1), box=(300, 250, 330, 130), title="probabilities", x_ticks=False)
        bars.bars(probabilities, "model", names=[str(each) for each in range(10)])
    lost = errors["test_scrambled_cnn_error"] - errors["test_cnn_error"]
    return View(
        picture,
        [
            Number(f"P(a {best})", float(probabilities[best])),
            Number("CNN loses by shuffling", lost),
            Number("MLP loses by shuffling", errors["test_scrambled_mlp_error"] - errors["test_mlp_error"]),
        ]
        if shuffled
        else [
            Number(f"P(a {best})", float(probabilities[best])),
            Number("value of the unit", float(chosen[row, column])),
        ],
        reached=shuffled and lost > 0.05,
        code=(
            "import torch\n"
            "from quoin.lab.convolution import LENET\n"
            f"counts = torch.tensor({counts.int().flatten().tolist()!r}).float()\n"
            "print(float(LENET.open().predict(counts.reshape(1, 64)).probabilities.max()))"
        ),
    )


@app.cell
def _():
    play(inside_a_cnn)
    return


@app.function
@exhibit(
    "Yours: an image",
    intro="A PNG or JPEG, in grey, 64 by 64. Choose a kernel.",
    controls=(
        File("file", "an image", (".png", ".jpg", ".jpeg"), 1_000_000),
        Choice("kernel", "kernel", tuple(EDGES)),
        Slider("stride", "stride", 1, 4, 1, 1),
    ),
    definition=cross_correlate2d_definition,
    yours=True,
)
def yours(file: bytes | None, kernel: str, stride: int) -> View:
    """An image of the reader's own under one kernel."""
    image = own_image(file, 64) if file else 1 - painted(ring(64), 64)
    weight = torch.tensor(EDGES[kernel], dtype=torch.float32)
    output = cross_correlate2d((1 - image)[None, None], weight[None, None], stride=stride)[0, 0]
    picture = Picture(f"An image and its {kernel}: {output.shape[0]} by {output.shape[1]} numbers.", height=360)
    panel(picture, 10, 34, 300, 64, 64, "image").image(1 - image)
    draw_map(panel(picture, 330, 34, 300, len(output), len(output), kernel), output)
    return View(
        picture,
        [Number("side of the output", str(len(output))), Number("largest", float(output.abs().max()))],
        note="" if file else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("convolution")
    return


if __name__ == "__main__":
    app.run()
