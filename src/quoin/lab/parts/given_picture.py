"""A picture that a reader hands to models of images: a test row, cells painted, a file; on the scale of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.lab.parts.controls import Choice, Control, File, Paint, Slider
from quoin.lab.parts.image_pictures import picture_like
from quoin.lab.parts.picture import Axes, Picture
from quoin.lab.parts.run_data import test_rows
from quoin.runs import Run

__all__ = ["Given", "PictureInput"]

MOST_CELLS = 32 * 32  # that a hand would paint
MOST_ROWS = 1000  # of the slider
FILE_BYTES = 1_000_000
LEVELS = 4  # of a painted cell
TEST_ROW, PAINTED, FILE, INVERTED = "a test row", "painted by you", "a file", "a file, inverted"


class Given(NamedTuple):
    """One picture, with what is known of it."""

    features: Float[Tensor, "channels height width"]
    truth: str = ""  # the class of a test row
    painted: tuple[int, ...] = ()


class PictureInput:
    """The ways to hand a picture to runs whose images have one shape; test rows are those of the first of them."""

    def __init__(self, run: Run) -> None:
        trained: Any = run.trained
        self.shape: tuple[int, int, int] = tuple(trained.data_info.feature_shape)
        self._classes, self._scaler = trained.data_info.class_names, trained.feature_scaler
        self._rows = test_rows(run)
        self.level = self._level()
        self.paintable = self.shape[0] == 1 and self.shape[1] * self.shape[2] <= MOST_CELLS

    def _level(self) -> float:
        """The value of the darkest ink: the largest of some test rows, or what the scaler makes believe."""
        if self._rows is None:
            return float(self._scaler.mean.max() + 2 * self._scaler.std.max())
        return float(self._scaler.inverse_transform(self._rows.features[:200]).max()) or 1.0

    @property
    def controls(self) -> tuple[Control, ...]:
        """Which picture, and what the choices need; cells to paint stand in the picture itself."""
        rows = 0 if self._rows is None else min(len(self._rows.features), MOST_ROWS)
        options = [TEST_ROW] * bool(rows) + [PAINTED] * self.paintable
        options += [FILE, INVERTED] if self.shape[0] in (1, 3) else []
        found: list[Control] = [Choice("source", "picture", tuple(options))]
        if rows:
            found.append(Slider("row", "test row", 1, max(rows, 2), 1, step=1))
        if FILE in options:
            found.append(File("file", "a file", (".png", ".jpg", ".jpeg"), FILE_BYTES))
        if self.paintable:
            found.append(Paint("image", "picture", *self.shape[1:], LEVELS))
        return tuple(found)

    def read(self, source: str, row: int, file: bytes | None, image: Sequence[int]) -> Given:
        """The picture that the controls say."""
        if source == TEST_ROW and self._rows is not None:
            at = min(row, len(self._rows.features)) - 1
            features = self._scaler.inverse_transform(self._rows.features[at : at + 1])[0].float()
            return Given(features, self._classes[int(self._rows.targets[at])] if self._classes else "")
        if source == PAINTED:
            cells = torch.tensor(image, dtype=torch.float32).reshape(self.shape)
            return Given(cells / (LEVELS - 1) * self.level, painted=tuple(image))
        if file is None:
            raise UserError("expected a picture, got no file yet; choose a PNG or JPEG")
        found = picture_like(file, self.shape) * self.level
        return Given(self.level - found if source == INVERTED else found)

    def draw(self, picture: Picture, given: Given, left: float, top: float, side: float) -> Axes:
        """The picture on the sheet, `side` long at its longer side; one that is painted is painted on there."""
        rows, columns = self.shape[1:]
        unit = side / max(rows, columns)
        axes = picture.axes((0, columns), (0, rows), bare=True, box=(left, top, unit * columns, unit * rows))
        if given.painted:
            axes.paint("image", given.painted, rows, columns, roles=("paper", "hand 33%", "hand 66%", "hand"))
        elif self.shape[0] == 3:
            axes.image(given.features.movedim(0, -1) / self.level, turns=False)
        else:
            axes.image(given.features[0] / self.level)
        if not given.painted:
            axes.line([0, columns, columns, 0, 0], [0, 0, rows, rows, 0], "faint", width=0.8)
        return axes
