"""The exhibit in a browser: an anywidget that sends the state of the controls and shows what Python answers.

It works in marimo and in Jupyter. The browser computes nothing: it draws the controls, inserts the picture, and turns
the hand's moves into a new state; the newest wins, one is under way at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from quoin import notes
from quoin.errors import UserError
from quoin.lab.parts.exhibit import Exhibit, View
from quoin.lab.parts.items import item_html
from quoin.lab.parts.marks import escape, scripts
from quoin.lab.parts.proofs import has_claims, outcome_html, submit
from quoin.lab.parts.style import style_sheet

__all__ = ["Asking", "ExhibitWidget", "ItemsWidget", "LinesWidget", "answer"]

_FOLDER = Path(__file__).parent


def answer(exhibit: Exhibit, state: Mapping[str, object]) -> dict[str, Any]:
    """What the browser shows for a state: the view, or in one line what is wrong, or which models must be trained."""
    try:
        exhibit.parse(state)
        if missing := exhibit.missing:
            return {"needs": {"recipes": [each.recipe for each in missing], "seconds": sum(m.seconds for m in missing)}}
        return view_json(exhibit.view(state))
    except UserError as error:
        return {"error": str(error)}


def view_json(view: View) -> dict[str, Any]:
    """A view as the browser takes it."""
    return {
        "svg": view.picture.svg(),
        "alt": view.picture.alt,
        "numbers": [{"label": n.label, "text": n.text, "printed": n.printed} for n in view.numbers],
        "reached": view.reached,
        "code": view.code,
        "note": view.note,
        "steps": view.steps,
    }


def source_html(definitions: tuple[Callable[..., Any], ...]) -> str:
    """The source of the functions, for the folded definition."""
    blocks = []
    for each in definitions:
        try:
            source = inspect.getsource(inspect.unwrap(each))
        except (OSError, TypeError):
            continue
        blocks.append(f"<p><code>{escape(each.__module__)}</code></p><pre>{escape(inspect.cleandoc(source))}</pre>")
    return "".join(blocks)


class Asking(anywidget.AnyWidget):
    """A widget whose browser asks for things by number, and is told."""

    _esm = _FOLDER / "widget.js"
    _css = style_sheet()

    request = traitlets.Dict().tag(sync=True)
    told = traitlets.Dict().tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self._checks: dict[str, Future] = {}
        self.observe(self._requested, "request")

    def _requested(self, change: Mapping[str, Any]) -> None:
        asked = change["new"]
        if isinstance(asked, dict) and "n" in asked:
            self.told = {"n": asked["n"], **self._tell(asked)}

    def _tell(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"kind": "unknown"}

    def _verdict(self, ids: tuple[str, ...], seed: object) -> dict[str, Any]:
        """The verdicts on these ids, once they are there; until then, that they are not."""
        number = seed if isinstance(seed, int) and 0 <= seed < 10**6 else 0
        key = f"{' '.join(ids)} {number}"
        if key not in self._checks:
            self._checks[key] = submit(ids, number)
        if not self._checks[key].done():
            return {"kind": "verdict", "waiting": True}
        try:
            outcomes = self._checks[key].result()
        except Exception as error:  # a worker that was killed: the page says so and lives on
            self._checks.pop(key)
            return {"kind": "verdict", "html": f"<p>no verdict: {escape(error)}</p>", "summary": "no verdict"}
        held = sum(outcome.verdict == "holds" for outcome in outcomes)
        summary = "no claim" if not outcomes else f"✓ {held} of {len(outcomes)} hold"
        return {
            "kind": "verdict",
            "html": "".join(map(outcome_html, outcomes)),
            "summary": summary if held == len(outcomes) else summary.replace("✓", "✗"),
        }


class ExhibitWidget(Asking):
    """An exhibit to play with."""

    spec = traitlets.Dict().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, exhibit: Exhibit, page: str = "") -> None:
        super().__init__()
        self.exhibit = exhibit
        titles = notes.titles()
        self.spec = {
            "slug": exhibit.slug,
            "page": page,
            "question": exhibit.question,
            "intro": exhibit.intro,
            "surprise": exhibit.surprise,
            "ids": [[id, scripts(titles[id])] for id in exhibit.ids],
            "controls": [control.spec() for control in exhibit.controls],
            "has_definition": bool(exhibit.definitions),
            "has_claims": has_claims(exhibit.ids),
        }
        self.view = {"n": 0, **answer(exhibit, {})}
        self.observe(self._asked, "asked")

    def _asked(self, change: Mapping[str, Any]) -> None:
        asked = change["new"]
        state = asked.get("state")
        self.view = {"n": asked.get("n", 0), **answer(self.exhibit, state if isinstance(state, dict) else {})}

    def _tell(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        match asked.get("kind"):
            case "verdict":
                return self._verdict(self.exhibit.ids, asked.get("seed"))
            case "definition":
                return {"kind": "definition", "html": source_html(self.exhibit.definitions)}
            case "train" | "training" | "stop" as kind:
                return self._training(kind)
        return {"kind": "unknown"}

    def _training(self, kind: str) -> dict[str, Any]:
        missing = self.exhibit.missing
        if not missing:
            return {"kind": "training", "done": True}
        model = missing[0]  # one after the other: two cores
        if kind == "stop":
            if model.training and model.training.is_running:
                model.training.stop()
            return {"kind": "training", "stopped": True}
        training = model.training
        if kind == "train" and not (training and training.is_running):
            training = model.train()
        if training is not None and training.error:
            return {"kind": "training", "error": training.error}
        if training is None or not training.is_running:
            training = model.train()  # the one before it has just been finished
        return {"kind": "training", "recipe": model.recipe, "fraction": training.fraction}


class ItemsWidget(Asking):
    """Items of the notes, each folded: what it says, its verdict, its figure, its source.

    Args:
        links: Addresses of the exhibits that show an item.
        filtered: Whether there is a box to filter them by words.
        tags: For each id its value under each heading of a list to choose from, such as {"class": "spelling"}.
    """

    items = traitlets.List().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)
    filtered = traitlets.Bool().tag(sync=True)

    def __init__(
        self,
        heading: str,
        entries: list[notes.Entry],
        links: Mapping[str, str] | None = None,
        filtered: bool = False,
        tags: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.heading, self.filtered = heading, filtered
        areas = notes.areas()
        self.items = [
            {
                "id": entry.id,
                "html": scripts(entry.title),
                "words": f"{entry.id} {entry.title} {areas[entry.area]}",
                "notation": entry.kind == "wording",
                "claim": bool(entry.claims),
                "figure": bool(entry.figures),
                "link": (links or {}).get(entry.id, ""),
                "tags": dict((tags or {}).get(entry.id, {})),
            }
            for entry in entries
        ]
        self._ids = {entry.id for entry in entries}

    def _tell(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        id = asked.get("id")
        if id not in self._ids:
            return {"kind": "unknown"}
        match asked.get("kind"):
            case "verdict":
                return {**self._verdict((str(id),), asked.get("seed")), "id": id}
            case "item":
                return {"kind": "item", "id": id, "html": item_html(str(id))}
        return {"kind": "unknown"}


class LinesWidget(Asking):
    """A heading and a list of lines to read."""

    lines = traitlets.List().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)

    def __init__(self, heading: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.heading, self.lines = heading, [scripts(line) for line in lines]
