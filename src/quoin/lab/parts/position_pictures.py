"""Pictures of positions: a sentence and its words in another order, and clocks whose hands are an encoding."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.picture import Picture

__all__ = ["draw_clocks", "draw_order"]

SHOWN = 8  # entries of an output that are drawn
MOST = 2.0  # an entry of this size has the full colour


def _strip(picture: Picture, output: Float[Tensor, " dim"], middle: float, top: float, width: float) -> None:
    axes = picture.axes((0, SHOWN), (0, 1), box=(middle - width / 2, top, width, 22), bare=True)
    axes.cells([output[:SHOWN].tolist()], most=MOST)


def draw_order(
    picture: Picture,
    words: Sequence[str],
    order: Sequence[int],
    outputs: tuple[Float[Tensor, "word dim"], Float[Tensor, "word dim"]],
    places: Sequence[Sequence[float]],
) -> None:
    """The words and their outputs, below them both in `order`; threads join the outputs of the same word, thick and red
    where they differ. The words below are the points `places` to drag."""
    before, after = outputs
    far = max(len(words), 3)
    width = min(624 / far - 14, 130)
    sheet = picture.axes((0.4, far + 0.6), (0, 420), box=(8, 0, 624, 420), bare=True)
    for word, output in enumerate(before):
        middle = sheet.place(word + 1, 0)[0]
        picture.text(middle, 38, words[word][:10], anchor="middle", size=16)
        _strip(picture, output, middle, 52, width)
    for slot, word in enumerate(order):
        change = float((after[slot] - before[word]).abs().max())
        role = "change" if change > 1e-6 else "model"
        sheet.line([word + 1, slot + 1], [338, 190], role, width=1.5 + 5 * min(change / MOST, 1.0))
        middle = sheet.place(slot + 1, 0)[0]
        _strip(picture, after[slot], middle, 236, width)
        picture.text(middle, 286, words[word][:10], anchor="middle", size=16)
    picture.text(10, 14, "the sentence, and the output of each word", role="faint", size=13)
    picture.text(10, 400, "drag: the words in your order, and their outputs above", role="faint", size=13)
    rail = picture.axes((0.4, far + 0.6), (-1, 1), box=(8, 310, 624, 60), bare=True)
    rail.line([0.4, far + 0.6], [0, 0], "grid", width=2)
    shown = [min(place[0], far + 0.5) for place in places[: len(words)]]  # one may lie behind a sentence now shorter
    rail.points_to_drag("places", [(place, 0.0) for place in shown], label="word", along="x")
    for place, word in zip(shown, words):
        rail.text(place, 0, word[:10], "hand", anchor="middle", dy=26)


def draw_clocks(picture: Picture, encoding: Float[Tensor, " d"], d: int, role: str, known: bool) -> None:
    """A clock for each pair of features: the hand of clock i points to (sin, cos), so that it turns clockwise."""
    count, in_row = d // 2, min(d // 2, 8)
    size = min(150.0, 616 / in_row - 8, 190 / (1 if count <= 8 else 2) - 18)
    for clock in range(count):
        row, column = divmod(clock, in_row)
        box = (12 + column * (616 / in_row), 22 + row * (size + 18), size, size)
        axes = picture.axes((-1.15, 1.15), (-1.15, 1.15), box=box, bare=True)
        axes.circle((0, 0), 1.0, "faint")
        if known:
            hand = encoding[2 * clock : 2 * clock + 2].tolist()
            axes.arrow((0, 0), hand, role, label=f"sin {hand[0]:.2f}, cos {hand[1]:.2f}")
    if not known:
        sheet = picture.axes((0, 1), (0, 1), box=(0, 0, 640, 200), bare=True)
        sheet.text(0.5, 0.5, f"no encoding: as printed, positions end at d = {d}", "printed", anchor="middle", size=17)
    picture.text(12, 14, "fast", role="faint", size=13)
    picture.text(624, 14, "slow", role="faint", size=13, anchor="end")
