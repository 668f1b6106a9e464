"""What models of classes and numbers can be asked: a picture, a row, a test row, a text; of several runs side by side,
one input through all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.lab.parts.controls import Control, Slider, Text
from quoin.lab.parts.exhibit import Exhibit, Number, View
from quoin.lab.parts.given_picture import PictureInput
from quoin.lab.parts.open_runs import run_names
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.run_data import test_rows, test_sources
from quoin.lab.parts.run_exhibit import run_exhibit
from quoin.runs import Run

__all__ = ["row_exhibits", "text_class_exhibits"]

MOST_BARS = 12
MOST_TYPED = 50  # numbers of a row that somebody would type


def row_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """Pictures, tables and signals, for runs whose rows have one shape and whose answers have the same names."""
    shape = tuple(runs[0].data_info.feature_shape)
    if len(shape) == 3:
        return [_picture(runs)]
    if len(shape) == 1 and shape[0] <= MOST_TYPED:
        return [_typed(runs)]
    return [_test_row(runs)] if test_rows(runs[0]) is not None else []


def _picture(runs: Sequence[Run]) -> Exhibit:
    given = PictureInput(runs[0])

    def what_is_it(source: str, row: int = 1, file: bytes | None = None, image: Sequence[int] = ()) -> View:
        found = given.read(source, row, file, image)
        draw = lambda picture: given.draw(picture, found, 16, 30, 250)  # noqa: E731
        return _answers(runs, found.features[None], "A picture.", found.truth, draw)

    intro = "Choose a test row, paint (each click makes a cell darker), or give a file."
    return run_exhibit(what_is_it, "What is it?", intro, given.controls, runs)


def _typed(runs: Sequence[Run]) -> Exhibit:
    trained: Any = runs[0].trained
    info, rows = trained.data_info, test_rows(runs[0])
    first = trained.feature_scaler.mean.flatten()
    if rows is not None:
        first = trained.feature_scaler.inverse_transform(rows.features[:1])[0]
    named = [f"{name} {float(value):.3g}" for name, value in zip(info.feature_names, first)]

    def your_row(row: str) -> View:
        try:
            numbers = [float(cell.split()[-1]) for cell in row.replace(";", ",").split(",")]
        except (ValueError, IndexError):
            raise UserError("expected numbers with commas between, got something else; correct the row") from None
        return _answers(runs, torch.tensor([numbers]), "Your row.")

    intro = "The numbers of one example in the order of the columns, with commas between; names may stand before them."
    return run_exhibit(your_row, "What of this row?", intro, (Text("row", "row", ", ".join(named), 2000, 4),), runs)


def _test_row(runs: Sequence[Run]) -> Exhibit:
    trained: Any = runs[0].trained
    rows, names = test_rows(runs[0]), trained.data_info.class_names
    assert rows is not None
    features, targets = rows.features, rows.targets

    def of_a_test_row(row: int) -> View:
        at = min(row, len(features)) - 1
        given = trained.feature_scaler.inverse_transform(features[at : at + 1]).float()
        truth = names[int(targets[at])] if names else ""
        return _answers(runs, given, f"Test row {row}.", truth, lambda picture: _signal(picture, given[0]))

    slider = Slider("row", "test row", 1, max(len(features), 2), 1, step=1)
    return run_exhibit(of_a_test_row, "What of this row?", "A row that it was not trained on.", (slider,), runs)


def _signal(picture: Picture, row: Tensor) -> None:
    """The numbers of a row over their places; the channels of a signal over one another."""
    channels = row if row.ndim == 2 else row[None]
    low, high = float(channels.min()), float(channels.max())
    span = (low, high) if high > low else (low - 1, high + 1)
    axes = picture.axes((0, channels.shape[1] - 1), span, box=(50, 30, 216, 250))
    for number, values in enumerate(channels[:7]):
        axes.line(range(len(values)), values, "ink" if len(channels) == 1 else f"series-{number + 1}", width=1.6)


def text_class_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """A text through classifiers of texts with the same classes."""
    example = next(iter(test_sources(runs[0])), "")

    def of_which_class(text: str) -> View:
        probabilities = []
        for run in runs:
            trained: Any = run.trained
            probabilities.append(trained.predict([text]).probabilities[0])
        return _bars(runs, probabilities, "Your text.", "", None)

    controls: tuple[Control, ...] = (Text("text", "text", example[:1000], 1000, 3),)
    return [run_exhibit(of_which_class, "Of which class?", "Type a text of the kind it learnt.", controls, runs)]


def _answers(
    runs: Sequence[Run],
    features: Float[Tensor, "1 ..."],
    alt: str,
    truth: str = "",
    draw: Callable[[Picture], object] | None = None,
) -> View:
    """What each run says of one row in the source's own units."""
    found = []
    for run in runs:
        trained: Any = run.trained
        found.append(trained.predict(features))
    if all(each.probabilities is not None for each in found):
        return _bars(runs, [each.probabilities[0] for each in found], alt, truth, draw)
    return _words(runs, [each.values[0] for each in found], alt, truth, draw)


def _bars(
    runs: Sequence[Run],
    probabilities: Sequence[Tensor],
    alt: str,
    truth: str,
    draw: Callable[[Picture], object] | None,
) -> View:
    """A panel of probabilities for each run, all over the same classes: the most probable of any of them."""
    names = [str(name) for name in runs[0].data_info.class_names]
    most = torch.stack(list(probabilities)).amax(0).topk(min(MOST_BARS, len(names))).indices.sort().values
    called = run_names([run.path for run in runs])
    said = [(names[int(each.argmax())], float(each.max())) for each in probabilities]
    answers = "; ".join(f"{each}: {name}, {value:.2f}" for each, (name, value) in zip(called, said))
    left = 330 if draw else 60
    down = 280 if len(runs) == 1 else 96
    picture = Picture(f"{alt} {answers}.", height=max(60 + (down + 54) * len(runs), 340 if draw else 0))
    if draw:
        draw(picture)
    for number, (run, each, (name, _)) in enumerate(zip(called, probabilities, said)):
        title = f"{run}: {name}" if len(runs) > 1 else ""
        axes = picture.axes((-0.5, len(most) - 0.5), (0, 1), y_label="probability", x_ticks=False, title=title,
                            box=(left, 30 + (down + 54) * number, 622 - left, down))  # fmt: skip
        axes.bars(each[most], "model", names=[names[int(index)][:9] for index in most])
    numbers = [Number("class", truth)] if truth else []
    if len(runs) == 1:
        numbers += [Number("prediction", said[0][0]), Number("probability", said[0][1])]
    else:
        numbers.append(Number("different predictions", len({name for name, _ in said})))
    return View(picture, numbers, note=answers if len(runs) > 1 else "")


def _words(
    runs: Sequence[Run],
    values: Sequence[Tensor],
    alt: str,
    truth: str,
    draw: Callable[[Picture], object] | None,
) -> View:
    """The answer of each run in words: numbers in the target's unit, or a class without a probability."""
    info = runs[0].data_info
    said = []
    for each in values:
        if info.class_names is not None:
            said.append(str(info.class_names[int(each)]))
        else:
            said.append(", ".join(f"{float(one):.4g}" for one in each.flatten()))
    left = 330 if draw else 20
    picture = Picture(f"{alt} {'; '.join(said)}.", height=max(60 + 60 * len(runs), 320 if draw else 0))
    if draw:
        draw(picture)
    for number, (name, words) in enumerate(zip(run_names([run.path for run in runs]), said)):
        picture.text(left, 30 + 60 * number, name, role="faint")
        picture.text(left, 54 + 60 * number, words, role="model", size=20)
    numbers = [Number("class", truth)] if truth else []
    target = "prediction" if info.class_names is not None else ", ".join(info.target_names) or "prediction"
    return View(picture, [*numbers, Number(target, said[0])] if len(runs) == 1 else numbers)
