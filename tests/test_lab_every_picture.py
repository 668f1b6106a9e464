"""Every picture of the lab read back from its SVG, in six states of its exhibit and at its surprise: handles stand
where their values are on the axes, axes say what they measure, texts and frames are on the sheet, what is printed shows
that it is, and what is shown depends on the state alone."""

import functools
import math
import re

import numpy as np
import pytest

from lab_picture import Read, along, widened
from lab_states import states
from quoin.lab.catalog import PAGES, page_path
from quoin.lab.parts import RIGHT, digits, exhibit_of, exhibits_of
from quoin.lab.parts.controls import Choice, DragPoints, Handle, Paint, Slider
from quoin.lab.parts.marks import text_width
from quoin.lab.parts.widget import answer

EXHIBITS = [(name, each) for name in PAGES if page_path(name).exists() for each in exhibits_of(name)]
PLAIN = [pytest.param(each, id=f"{name}:{each.slug}") for name, each in EXHIBITS if not each.needs]
HELD = (Handle, DragPoints, Paint)
HALF = 0.0501  # places are written to a tenth of a unit


@functools.cache
def _seen(show):
    exhibit = exhibit_of(show)
    asked = [*states(exhibit), dict(exhibit.surprise_at)]
    return [(exhibit.parse(state), answer(exhibit, state)) for state in asked]


def seen(exhibit):
    """States, and what each shows."""
    return _seen(exhibit.show)


def pictures(exhibit):
    """States and pictures, where the state is not refused."""
    found = [(state, Read(shown["svg"])) for state, shown in seen(exhibit) if "error" not in shown]
    assert len(found) >= 2
    return found


def place(frame, x, y):
    """Where a point of these coordinates is on the sheet, from what the browser is told of the frame."""
    left, top, width, height = frame.box
    parts = []
    for value, span, log in zip((x, y), (frame.x, frame.y), frame.logs):
        low, high, value = (math.log(each) if log else each for each in (*span, value))
        parts.append((value - low) / (high - low))
    return left + width * parts[0], top + height * (1 - parts[1])


def spoken(value):
    """A value as it is said: a whole number, if it was one, without decimals."""
    return {digits(value), digits(int(value)) if value == int(value) else digits(value)}


# ---- what is held ------------------------------------------------------------------------------------------------


# The formula has two variables, and the text three words.
FEWER = {("where-does-a-derivative-go", "inputs"): 2, ("shuffle-the-words", "places"): 3}


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_control_that_is_held_is_in_the_picture(exhibit):
    root = Read(seen(exhibit)[0][1]["svg"]).root
    held = [each.get("data-name", each.get("data-paint", "")) for each in root.iter("g")]
    for control in exhibit.controls:
        if isinstance(control, HELD):
            found = [name for name in held if name.partition(".")[0] == control.name]
            if isinstance(control, DragPoints):
                count = FEWER.get((exhibit.slug, control.name), len(control.initial))
                assert found == [f"{control.name}.{index}" for index in range(count)]
            else:
                assert found == [control.name]


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_handle_stands_where_its_value_is_on_the_axes(exhibit):
    controls = {control.name: control for control in exhibit.controls}
    for state, picture in pictures(exhibit):
        for told, target, drawn in picture.handles():
            name, _, index = told["data-name"].partition(".")
            x, y = float(told["data-x"]), float(told["data-y"])
            assert place(picture.frames[int(told["data-frame"])], x, y) == pytest.approx(target, abs=HALF)
            assert drawn.mean(axis=0) == pytest.approx(target, abs=1.5)  # a triangle's corners are lower than it
            value = state[name][int(index)] if index else state[name]
            value = (value, value) if isinstance(controls[name], Slider) else value
            near = 1.0 if getattr(controls[name], "whole", False) and isinstance(controls[name], Handle) else 1e-6
            for axis, at, stated in zip("xy", (x, y), value):
                assert axis not in told["data-along"] or at == pytest.approx(stated, rel=1e-6, abs=near), name
            alone = x if told["data-along"] == "x" else y
            assert float(told["aria-valuenow"]) == pytest.approx(alone, rel=1e-5, abs=1e-9)
            said = [spoken(x), spoken(y)] if told["data-along"] == "xy" else [spoken(alone)]
            assert all(each in forms for each, forms in zip(told["aria-valuetext"].split(", "), said, strict=True))


# A shorter text than eight words has a wall that may stand behind it; words stand in rows of three.
NARROWER = {("what-may-be-seen", "wall"), ("shuffle-the-words", "places")}


@pytest.mark.parametrize("exhibit", PLAIN)
def test_where_a_handle_may_go_there_is_axis(exhibit):
    controls = {control.name: control for control in exhibit.controls}
    picture = Read(seen(exhibit)[0][1]["svg"])
    for told, _, _ in picture.handles():
        name, frame = told["data-name"].partition(".")[0], picture.frames[int(told["data-frame"])]
        low, high = controls[name].low, controls[name].high
        for number, axis in enumerate("xy"):
            if axis in told["data-along"] and (exhibit.slug, name) not in NARROWER:
                ends = sorted((frame.x, frame.y)[number])
                one = [each if isinstance(controls[name], Slider) else each[number] for each in (low, high)]
                assert ends[0] - 1e-9 <= one[0] < one[1] <= ends[1] + 1e-9, (name, axis)


# ---- axes and texts ----------------------------------------------------------------------------------------------


def amount(label):
    """The number that an axis says, or None where it says a name."""
    plain = label.replace("−", "-").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    if re.search("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]", label):
        return 10.0 ** int(plain[2:])
    return float(plain)


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_number_of_an_axis_stands_where_it_is(exhibit):
    for _, picture in pictures(exhibit):
        for label, line, at in picture.ticks():
            upright = line[0, 0] == line[1, 0]
            said = amount(label)
            fits = []
            for frame in picture.frames:
                left, top, width, height = frame.box
                ends = ((left, top), (left, top + height)) if upright else ((left, 0), (left + width, 0))
                own = line[:, 1] if upright else line[:, 0]
                if frame.logs[0 if upright else 1] and said <= 0:
                    continue
                if np.allclose(own, [each[1 if upright else 0] for each in ends], atol=HALF):
                    x, y = place(frame, *((said, frame.y[0]) if upright else (frame.x[0], said)))
                    fits.append(abs((x if upright else y) - line[0, 0 if upright else 1]) < 0.11 + 1e-3 * height)
            assert any(fits), label
            # the number is under its line, or left of it
            near = abs(at[0] - line[0, 0]) <= 30 if upright else abs(at[1] - 4 - line[0, 1]) < 0.11
            assert near, label


@pytest.mark.parametrize("exhibit", PLAIN)
def test_texts_and_frames_are_on_the_sheet(exhibit):
    for _, picture in pictures(exhibit):
        for text in picture.texts():
            width = 0.85 * text_width(text.words, text.size)  # `text_width` is on the wide side
            left = text.at[0] - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
            assert left >= -1, text
            assert left + width <= picture.width + 6, text
            assert 0.65 * text.size <= text.at[1] <= picture.height, text
        for frame in picture.frames:
            left, top, width, height = frame.box
            assert min(left, top) >= 0
            assert min(width, height) > 0
            assert left + width <= picture.width
            assert top + height <= picture.height
            assert frame.x[0] != frame.x[1]
            assert frame.y[0] != frame.y[1]


@pytest.mark.parametrize("exhibit", PLAIN)
def test_frames_are_apart_or_one_in_another(exhibit):
    for _, picture in pictures(exhibit):
        boxes = [(x, y, x + width, y + height) for x, y, width, height in (frame.box for frame in picture.frames)]
        for number, (left, top, right, bottom) in enumerate(boxes):
            for a, b, c, d in boxes[:number]:
                apart = c <= left or right <= a or d <= top or bottom <= b
                inside = a <= left and b <= top and right <= c and bottom <= d
                assert apart or inside or (left <= a and top <= b and c <= right and d <= bottom)


@pytest.mark.parametrize("exhibit", PLAIN)
def test_what_is_drawn_in_a_frame_is_cut_off_at_it(exhibit):
    for _, picture in pictures(exhibit):
        rims = [widened(frame.box) for frame in picture.frames]
        for cut in picture.root.iter("svg"):
            if cut is picture.root:
                continue
            seen_part = [float(each) for each in cut.attrib["viewBox"].split()]
            assert [float(cut.attrib[name]) for name in ("x", "y", "width", "height")] == seen_part
            assert any(np.allclose(seen_part, rim, atol=0.11) for rim in rims)


# ---- numbers -----------------------------------------------------------------------------------------------------

# What the page is about: a sum that leaves the range of floats. A printed form may be none too.
NO_NUMBER = {"first weight, as written"}


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_number_is_one_and_has_its_name(exhibit):
    for _, shown in seen(exhibit):
        if "error" in shown:
            continue
        numbers = shown["numbers"]
        assert all(number["label"].strip() and number["text"].strip() for number in numbers)
        none = {number["label"] for number in numbers if number["text"] == "not a number" and not number["printed"]}
        assert none <= NO_NUMBER
        # the same quantity twice only in two units
        named = [(number["label"], re.sub(r"^\S+", "", number["text"])) for number in numbers]
        assert len(set(named)) == len(named)


@pytest.mark.parametrize("exhibit", PLAIN)
def test_what_is_printed_shows_that_it_is_and_nothing_else_does(exhibit):
    for state, shown in seen(exhibit):
        if "error" in shown:
            continue
        chosen = state.get("printed") not in (None, False, RIGHT)
        told = any(number["printed"] for number in shown["numbers"]) or "(--printed" in shown["svg"]
        assert told == chosen, state


@pytest.mark.parametrize("exhibit", PLAIN)
def test_what_is_shown_depends_on_the_state_alone(exhibit):
    first, *others = seen(exhibit)
    again = answer(exhibit, {})
    assert again == first[1]
    assert answer(exhibit, dict(exhibit.surprise_at)) == others[-1][1]


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_choice_shows_something_else(exhibit):
    for control in exhibit.controls:
        if isinstance(control, Choice):
            shown = [answer(exhibit, {control.name: option}) for option in control.options]
            told = {f"{each.get('numbers')}{each.get('svg')}{each.get('note')}" for each in shown}
            assert len(told) == len(control.options), control.name


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_slider_shows_something_else_at_each_place(exhibit):
    for control in exhibit.controls:
        if isinstance(control, Slider):
            values = [along((control.low, control.high), part, control.log) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
            shown = [answer(exhibit, {control.name: value}) for value in dict.fromkeys(map(control.parse, values))]
            told = {f"{each.get('numbers')}{each.get('svg')}{each.get('note')}" for each in shown}
            # rows and layers stop where there are no more, and a bet that is sure gets no surer
            assert len(told) >= (2 if exhibit.yours else len(shown) - 1), control.name
