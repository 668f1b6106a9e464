"""An exhibit: a question, a picture that answers to the hand, at most three numbers, the surprise, and the proof.

    @exhibit("Why the root?", ids="Z11.15 Z11.16", controls=(Slider("d", "dimension d", 2, 512, 8, log=True),),
             surprise="Without the root ...", definition=scaled_dot_score)
    def why_the_root(d: int) -> View: ...

What it shows is one pure function of its state, and stays a function (marimo keeps it as a cell): `exhibit_of` gives
the exhibit around it, and the browser, the still page and the tests all ask `Exhibit.view`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quoin import notes
from quoin.errors import UserError
from quoin.lab.parts.controls import Control
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.ticks import digits
from quoin.lab.parts.trained import TrainedModel

__all__ = ["Exhibit", "Number", "View", "exhibit", "exhibit_of"]

Show = Callable[..., "View"]
_MARK = "quoin_exhibit"  # the attribute of the function


@dataclass(frozen=True)
class Number:
    """A number beside the picture: `printed` marks that of the notes' printed form."""

    label: str
    value: float | str
    unit: str = ""
    printed: bool = False

    @property
    def text(self) -> str:
        shown = self.value if isinstance(self.value, str) else digits(self.value)
        return f"{shown} {self.unit}".strip()


@dataclass(frozen=True)
class View:
    """What an exhibit shows in one state.

    Args:
        reached: Whether the surprise can be seen now.
        code: Three to eight lines that print the first number, from Quoin's public names.
        note: A line under the controls, such as what a file holds.
        steps: How many steps this state has, where its control Step allows for more; 0 if all of them.
    """

    picture: Picture
    numbers: Sequence[Number] = ()
    reached: bool = False
    code: str = ""
    note: str = ""
    steps: int = 0


@dataclass(frozen=True)
class Exhibit:
    """A question with a picture to play with; made by `exhibit`."""

    slug: str
    question: str
    intro: str
    ids: tuple[str, ...]
    controls: tuple[Control, ...]
    surprise: str
    surprise_at: Mapping[str, Any]
    definitions: tuple[Callable[..., Any], ...]
    needs: Mapping[str, TrainedModel]
    show: Callable[..., View]
    yours: bool = False

    def initial(self) -> dict[str, Any]:
        """The state that a reader finds, as the browser has it."""
        return {control.name: control.initial for control in self.controls}

    def parse(self, state: Mapping[str, object]) -> dict[str, Any]:
        """The state as `show` takes it; what is missing is at its default, a name that is no control's is an error."""
        known = {control.name for control in self.controls}
        if unknown := sorted(set(state) - known):
            raise UserError(f"expected {', '.join(sorted(known))}, got {unknown[0]!r}; correct the link")
        return {control.name: control.parse(state.get(control.name, control.initial)) for control in self.controls}

    @property
    def missing(self) -> list[TrainedModel]:
        """The models that it needs and that are not trained yet."""
        return [model for model in self.needs.values() if not model.is_ready]

    def view(self, state: Mapping[str, object] | None = None, models: Mapping[str, Any] | None = None) -> View:
        """What it shows in `state` (by default in the initial one).

        Args:
            models: Runs in place of the trained ones that it needs, by name.
        """
        given = models or {name: model.open() for name, model in self.needs.items()}
        return self.show(**self.parse(state or {}), **given)


def exhibit(
    question: str,
    *,
    ids: str = "",
    intro: str = "",
    controls: Sequence[Control] = (),
    surprise: str = "",
    surprise_at: Mapping[str, Any] | None = None,
    definition: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    needs: Mapping[str, TrainedModel] | None = None,
    yours: bool = False,
) -> Callable[[Show], Show]:
    """Make an exhibit of a function whose parameters are the names of the controls, then those of `needs`.

    Args:
        ids: Of the notes, with spaces between.
        intro: What to do, in a sentence.
        surprise: What a reader finds, in a sentence; shown once a view says that it is reached.
        surprise_at: What differs from the initial state where it is reached, as the browser has it.
        definition: The functions whose source is shown.
        needs: Models to train at first use, by the name of the parameter that takes the opened run.
        yours: Whether it is about the reader's own things; such an exhibit may have no surprise.
    """
    known = notes.known(ids.split()) if ids.split() else ()
    needs = needs or {}
    definitions = (definition,) if callable(definition) else tuple(definition)

    def declare(show: Show) -> Show:
        expected = [*(control.name for control in controls), *needs]
        got = list(inspect.signature(show).parameters)
        if got != expected:
            raise ValueError(f"exhibit {show.__name__}: expected parameters {expected}, got {got}")
        slug = re.sub(r"_+", "-", show.__name__).strip("-")
        if bool(surprise) != bool(surprise_at) or not (surprise or yours):
            raise ValueError(f"exhibit {show.__name__}: a surprise and the state that shows it belong together")
        made = Exhibit(
            slug,
            question,
            intro,
            known,
            tuple(controls),
            surprise,
            surprise_at or {},
            definitions,
            needs,
            show,
            yours,
        )
        setattr(show, _MARK, made)
        return show

    return declare


def exhibit_of(show: object) -> Exhibit | None:
    """The exhibit that a function was made into, if it was."""
    return getattr(show, _MARK, None) if inspect.isfunction(show) else None
