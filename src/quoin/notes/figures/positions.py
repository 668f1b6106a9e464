"""Positions plotted: each encoding, and the inner products of two of them."""

import torch

from quoin.data import keyed_generator
from quoin.layers import ALiBi, BidirectionalBuckets, apply_rotary, sinusoidal_encoding
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, INK, house_style, new_figure

POSITIONS, FEATURES = 128, 32


@figure(
    ("D3-7", "D3-7c"),
    "Sinusoidal encodings, a wave in each pair of features, from fast to slow; the inner product of two encodings is "
    "the same along each diagonal.",
)
def sinusoidal_encodings() -> Plot:
    encoding = sinusoidal_encoding(POSITIONS, FEATURES)
    tables = {
        "encodings": (encoding, "feature", "position m", 1.0),
        "inner products of encodings": (encoding @ encoding.T, "position n", "position m", FEATURES / 2),
    }
    with house_style():
        sheet = new_figure(height=3.7)
        for axes, (name, (table, x_label, y_label, top)) in zip(
            sheet.subplots(1, 2, width_ratios=(1, 2)), tables.items()
        ):
            image = axes.imshow(table, cmap="RdBu", vmin=-top, vmax=top, interpolation="none", aspect="auto")
            axes.set(title=name, xlabel=x_label, ylabel=y_label)
            axes.set_xticks(range(0, table.shape[1], table.shape[1] // 4))
            axes.set_yticks(range(0, POSITIONS, 32))
            bar = sheet.colorbar(image, ax=axes, shrink=0.8, pad=0.03)
            bar.outline.set_visible(False)  # type: ignore[operator]
        return Plot(sheet, "sinusoidal encodings")


@figure(
    ("D3-8", "D3-8c"),
    "Rotary scores against the offset n − m: wherever the query stands they are the same; equal vectors lose touch "
    "with distance "
    "(left); rotated the other way, the curve is mirrored (right).",
)
def rotary_scores() -> Plot:
    offsets = torch.arange(-60, 61)
    ones = torch.ones(1, FEATURES, dtype=torch.float64)
    query, key = torch.randn(2, 1, FEATURES, generator=keyed_generator("figure D3-8"), dtype=torch.float64)

    def scores(query, key, m: int, clockwise: bool = False):
        rotated = apply_rotary(query, torch.tensor([m]), clockwise=clockwise)
        return apply_rotary(key.expand(len(offsets), -1), m + offsets, clockwise=clockwise) @ rotated[0] / FEATURES

    with house_style():
        sheet = new_figure(height=3.4)
        left, right = sheet.subplots(1, 2)
        for m, style in ((60, {"color": COLORS[4], "linewidth": 5}), (1000, {"color": INK, "linewidth": 1.2})):
            left.plot(offsets, scores(ones, ones, m), label=f"query at m = {m}", **style)
        left.set_title("q = k, all ones", fontsize=10)
        right.plot(offsets, scores(query, key, 60), color=COLORS[0], label="RoFormer")
        right.plot(offsets, scores(query, key, 60, clockwise=True), color=COLORS[1], label="as printed")
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
)
def biases_by_distance() -> Plot:
    heads, reach = 8, 32
    with house_style():
        sheet = new_figure(height=3.4)
        left, right = sheet.subplots(1, 2)
        row = ALiBi(heads)(1, 2 * reach + 1, reach)[:, 0]
        for head, bias in enumerate(row):
            left.plot(torch.arange(-reach, reach + 1), bias, color=COLORS[0], alpha=1 - 0.1 * head, linewidth=1.5)
        for head in range(5):  # the other three are too near each other to be named apart
            index = (reach, float(row[head, -1]))
            left.annotate(f"{head + 1}", index, xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
        left.set(title="ALiBi, 8 heads", xlabel="distance j − i", ylabel="added to the score")
        for side in (torch.arange(-150, 1), torch.arange(1, 151)):
            right.step(side, BidirectionalBuckets()(side), where="mid", color=COLORS[1], linewidth=1.5)
        right.set(title="T5, 32 buckets", xlabel="distance j − i", ylabel="bucket")
        for axes in (left, right):
            axes.grid(True)
        return Plot(sheet, "biases by distance")
