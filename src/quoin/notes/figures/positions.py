"""Positions plotted: each encoding, and the inner products of two of them."""

import torch

from quoin.data import keyed_generator
from quoin.layers import ALiBi, BidirectionalBuckets, apply_rotary, sinusoidal_encoding
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, INK, house_style, new_figure, signed_map


@figure(
    ("D3-7", "D3-7c"),
    "Sinusoidal encodings, a wave in each pair of features, from fast to slow; the inner product of two encodings is "
    "the same along each diagonal.",
    {"num_positions": (8, 1024), "dim": (8, 256)},
)
def sinusoidal_encodings(num_positions: int = 128, dim: int = 32) -> Plot:
    encoding = sinusoidal_encoding(num_positions, dim)
    tables = {
        "encodings": (encoding, "feature", "position m", 1.0),
        "inner products of encodings": (encoding @ encoding.T, "position n", "position m", dim / 2),
    }
    with house_style():
        sheet = new_figure(height=3.7)
        for axes, (name, (table, x_label, y_label, top)) in zip(
            sheet.subplots(1, 2, width_ratios=(1, 2)), tables.items()
        ):
            image = axes.imshow(
                table.numpy(), cmap=signed_map(), vmin=-top, vmax=top, interpolation="none", aspect="auto"
            )
            axes.set(title=name, xlabel=x_label, ylabel=y_label)
            axes.set_xticks(range(0, table.shape[1], table.shape[1] // 4))
            axes.set_yticks(range(0, num_positions, max(1, num_positions // 4)))
            bar = sheet.colorbar(image, ax=axes, shrink=0.8, pad=0.03)
            bar.outline.set_visible(False)  # type: ignore[operator]
        return Plot(sheet, "sinusoidal encodings")


@figure(
    ("D3-8", "D3-8c"),
    "Rotary scores against the offset n − m: wherever the query stands they are the same; equal vectors lose touch "
    "with distance "
    "(left); rotated the other way, the curve is mirrored (right).",
    {"reach": (1, 500), "dim": (2, 256)},
)
def rotary_scores(reach: int = 60, dim: int = 32) -> Plot:
    offsets = torch.arange(-reach, reach + 1)
    ones = torch.ones(1, dim, dtype=torch.float64)
    query, key = torch.randn(2, 1, dim, generator=keyed_generator("figure D3-8"), dtype=torch.float64)

    def scores(query, key, m: int, clockwise: bool = False):
        rotated = apply_rotary(query, torch.tensor([m]), clockwise=clockwise)
        return apply_rotary(key.expand(len(offsets), -1), m + offsets, clockwise=clockwise) @ rotated[0] / dim

    with house_style():
        sheet = new_figure(height=3.4)
        left, right = sheet.subplots(1, 2)
        for m, style in ((reach, {"color": COLORS[4], "linewidth": 5}), (1000, {"color": INK, "linewidth": 1.2})):
            left.plot(offsets, scores(ones, ones, m), label=f"query at m = {m}", **style)
        left.set_title("q = k, all ones", fontsize=10)
        right.plot(offsets, scores(query, key, reach), color=COLORS[0], label="RoFormer")
        right.plot(offsets, scores(query, key, reach, clockwise=True), color=COLORS[1], label="as printed")
        right.set_title("random q and k", fontsize=10)
        for axes in (left, right):
            axes.axvline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.grid(True)
            axes.set_xlabel("offset n − m")
        left.set_ylabel(r"score ⟨$R_m$q, $R_n$k⟩ / d")
        sheet.legend(loc="outside lower center", ncols=4)
        return Plot(sheet, "rotary scores")


@figure(
    "D3-9",
    "What biases make of a distance: ALiBi lowers the score in proportion, each head at half the slope of the one "
    "before; "
    "T5 learns one number for each bucket, near distances apart and far ones together.",
    {"num_heads": (1, 16), "reach": (1, 200)},
)
def biases_by_distance(num_heads: int = 8, reach: int = 32) -> Plot:
    with house_style():
        sheet = new_figure(height=3.4)
        left, right = sheet.subplots(1, 2)
        row = ALiBi(num_heads)(1, 2 * reach + 1, reach)[:, 0]
        for head, bias in enumerate(row):
            left.plot(
                torch.arange(-reach, reach + 1), bias, color=COLORS[0], alpha=1 - 0.8 * head / num_heads, linewidth=1.5
            )
        for head in range(min(num_heads, 5)):  # the others are too near each other to be named apart
            index = (reach, float(row[head, -1]))
            left.annotate(f"{head + 1}", index, xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
        left.set(title=f"ALiBi, {num_heads} heads", xlabel="distance j − i", ylabel="added to the score")
        for side in (torch.arange(-150, 1), torch.arange(1, 151)):
            right.step(side, BidirectionalBuckets()(side), where="mid", color=COLORS[1], linewidth=1.5)
        right.set(title="T5, 32 buckets", xlabel="distance j − i", ylabel="bucket")
        for axes in (left, right):
            axes.grid(True)
        return Plot(sheet, "biases by distance")
