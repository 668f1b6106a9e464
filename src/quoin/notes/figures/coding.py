"""Codes as trees: a codeword is the way from the root to its symbol, left for 0 and right for 1."""

from collections.abc import Sequence

import torch

from quoin.errors import UserError
from quoin.info import PrefixCode, entropy, huffman_code, shannon_code
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

SYMBOLS = "abcdefghijkl"
PROBS = (0.38, 0.21, 0.16, 0.12, 0.08, 0.05)


@figure(
    "M20F",
    "Shannon's and Huffman's code for the same six symbols: common ones lie high in the tree. Both mean lengths "
    "are within a bit of "
    "the entropy; Shannon's leaves branches unused (dotted), Huffman's none.",
    {"probs": (0, 1)},
)
def code_trees(probs: tuple[float, ...] = PROBS) -> Plot:
    if len(probs) > len(SYMBOLS):
        raise UserError(f"expected at most {len(SYMBOLS)} probabilities, got {len(probs)}; join some symbols")
    distribution = torch.tensor(probs, dtype=torch.float64)
    codes = {"Shannon": shannon_code(distribution), "Huffman": huffman_code(distribution)}
    with house_style():
        sheet = new_figure(height=4.6)
        sheet.suptitle(
            f"Two codes for one distribution of entropy {float(entropy(distribution, base=2)):.2f} bits",
            fontsize=11,
            fontweight="bold",
        )
        deepest = max(len(word) for code in codes.values() for word in code.codewords if word)
        for index, (name, code) in enumerate(codes.items(), start=1):
            axes = sheet.add_subplot(1, 2, index)
            mean = float(code.expected_length(distribution))
            axes.set_title(f"{name}: {mean:.2f} bits on average", fontsize=10, fontweight="normal", loc="center")
            _plot_tree(axes, code, probs)
            axes.set_ylim(-deepest - 0.75, 0.25)
            axes.set_axis_off()
        return Plot(sheet, "code trees of Shannon and Huffman")


def _plot_tree(axes, code: PrefixCode, probs: Sequence[float]) -> None:
    """The leaves side by side, evenly; a node in the middle of its two branches, as deep as its bits are many."""
    symbol_of = {word: symbol for symbol, word in enumerate(code.codewords) if word}
    inner = {word[:end] for word in symbol_of for end in range(len(word))}
    unused = {node + bit for node in inner for bit in "01"} - inner - symbol_of.keys()
    across = {word: float(index) for index, word in enumerate(sorted(unused | symbol_of.keys()))}
    for node in sorted(inner, key=lambda word: (-len(word), word)):
        across[node] = (across[node + "0"] + across[node + "1"]) / 2
        for bit in "01":
            child = node + bit
            color, style = (FAINT, ":") if child in unused else (INK, "-")
            axes.plot(
                [across[node], across[child]], [-len(node), -len(child)], style, color=color, linewidth=1.2, zorder=1
            )
            middle, behind = (across[node] + across[child]) / 2, {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(
                middle, -len(node) - 0.5, bit, fontsize=8, ha="center", va="center", color=color, bbox=behind, zorder=2
            )
        axes.scatter(across[node], -len(node), s=14, color=INK, zorder=3)
    for word, symbol in symbol_of.items():
        axes.scatter(across[word], -len(word), s=260, color=COLORS[0], zorder=3)
        axes.text(
            across[word], -len(word), SYMBOLS[symbol], color="white", fontsize=10, ha="center", va="center", zorder=4
        )
        axes.text(
            across[word],
            -len(word) - 0.3,
            f"{probs[symbol]:.2f}\n{word}",
            fontsize=8,
            ha="center",
            va="top",
            linespacing=1.3,
        )
