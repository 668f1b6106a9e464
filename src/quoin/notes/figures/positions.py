"""Positions drawn: what each code says of a place, and what two places say of each other."""

import torch

from quoin.data import keyed_generator
from quoin.layers import ALiBi, TwoSidedBuckets, rotary, sinusoidal
from quoin.notes.figures.figure import figure
from quoin.plot import Drawing
from quoin.plot.drawing import COLOURS, INK, house_style, new_figure

POSITIONS, FEATURES = 128, 32


@figure(
    ("D3-7", "D3-7c"),
    "Sinusoidal codes, a wave in each pair of features, from fast to slow; the inner product of two codes is the same along each diagonal.",
)
def sinusoidal_codes() -> Drawing:
    codes = sinusoidal(POSITIONS, FEATURES)
    tables = {
        "codes": (codes, "feature", "position m", 1.0),
        "inner products of codes": (codes @ codes.T, "position n", "position m", FEATURES / 2),
    }
    with house_style():
        drawn = new_figure(height=3.7)
        for axes, (name, (table, x_label, y_label, top)) in zip(drawn.subplots(1, 2, width_ratios=(1, 2)), tables.items()):
            image = axes.imshow(table, cmap="RdBu", vmin=-top, vmax=top, interpolation="none", aspect="auto")
            axes.set(title=name, xlabel=x_label, ylabel=y_label)
            axes.set_xticks(range(0, table.shape[1], table.shape[1] // 4))
            axes.set_yticks(range(0, POSITIONS, 32))
            bar = drawn.colorbar(image, ax=axes, shrink=0.8, pad=0.03)
            bar.outline.set_visible(False)  # type: ignore[operator]
        return Drawing(drawn, "sinusoidal codes")


@figure(
    ("D3-8", "D3-8c"),
    "Rotary scores against the offset n − m: wherever the query stands they are the same; equal vectors lose touch with distance "
    "(left); turned the other way, the curve is mirrored (right).",
)
def rotary_scores() -> Drawing:
    offsets = torch.arange(-60, 61)
    ones = torch.ones(1, FEATURES, dtype=torch.float64)
    query, key = torch.randn(2, 1, FEATURES, generator=keyed_generator("figure D3-8"), dtype=torch.float64)

    def scores(query, key, m: int, clockwise: bool = False):
        turned = rotary(query, torch.tensor([m]), clockwise=clockwise)
        return rotary(key.expand(len(offsets), -1), m + offsets, clockwise=clockwise) @ turned[0] / FEATURES

    with house_style():
        drawn = new_figure(height=3.4)
        left, right = drawn.subplots(1, 2)
        for m, style in ((60, {"color": COLOURS[4], "linewidth": 5}), (1000, {"color": INK, "linewidth": 1.2})):
            left.plot(offsets, scores(ones, ones, m), label=f"query at m = {m}", **style)
        left.set_title("q = k, all ones", fontsize=10)
        right.plot(offsets, scores(query, key, 60), color=COLOURS[0], label="RoFormer")
        right.plot(offsets, scores(query, key, 60, clockwise=True), color=COLOURS[1], label="as printed")
        right.set_title("random q and k", fontsize=10)
        for axes in (left, right):
            axes.axvline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.grid(True)
            axes.set_xlabel("offset n − m")
        left.set_ylabel(r"score ⟨$R_m$q, $R_n$k⟩ / d")
        drawn.legend(loc="outside lower center", ncols=4)
        return Drawing(drawn, "rotary scores")


@figure(
    "D3-9",
    "What biases make of a distance: ALiBi lowers the score in proportion, each head at half the rate of the one before; "
    "T5 learns one number for each bucket, near distances apart and far ones together.",
)
def biases_by_distance() -> Drawing:
    heads, reach = 8, 32
    with house_style():
        drawn = new_figure(height=3.4)
        left, right = drawn.subplots(1, 2)
        row = ALiBi(heads)(1, 2 * reach + 1, reach)[:, 0]
        for head, bias in enumerate(row):
            left.plot(torch.arange(-reach, reach + 1), bias, color=COLOURS[0], alpha=1 - 0.1 * head, linewidth=1.5)
        for head in range(5):  # the other three are too near each other to be named apart
            place = (reach, float(row[head, -1]))
            left.annotate(f"{head + 1}", place, xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
        left.set(title="ALiBi, 8 heads", xlabel="distance j − i", ylabel="added to the score")
        for side in (torch.arange(-150, 1), torch.arange(1, 151)):
            right.step(side, TwoSidedBuckets()(side), where="mid", color=COLOURS[1], linewidth=1.5)
        right.set(title="T5, 32 buckets", xlabel="distance j − i", ylabel="bucket")
        for axes in (left, right):
            axes.grid(True)
        return Drawing(drawn, "biases by distance")
