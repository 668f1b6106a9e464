"""Every page of the lab without a browser: what its exhibits show at the default, at both ends of each control and at
the surprise; the lines of code beside them; and the notebook as a script."""

import ast
import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quoin import notes
from quoin.lab.catalog import PAGES, page_path
from quoin.lab.exhibit_index import describe_exhibits, exhibit_links, listed_exhibits
from quoin.lab.parts import digits, exhibits_of
from quoin.lab.parts.controls import Choice, DragPoints, Handle, Paint, Slider, Step, Switch
from quoin.lab.parts.widget import answer
from quoin.notes.claims import collect

BUILT = [name for name in PAGES if page_path(name).exists()]
EXHIBITS = [pytest.param(each, id=f"{name}:{each.slug}") for name in BUILT for each in exhibits_of(name)]
PLAIN = [each for each in EXHIBITS if not each.values[0].needs]


class Elements(HTMLParser):
    """Reads a fragment and fails where an element is not closed."""

    VOID = ("br", "img", "input", "hr")

    def __init__(self, text: str):
        super().__init__()
        self.open, self.names = [], []
        self.feed(text)
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.names += [value for name, value in attrs if name in ("data-name", "data-paint", "data-place")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open, f"closed but not open: {tag}"
        assert self.open.pop() == tag


def ends(control):
    """The values at both ends of a control, as the browser has them, without its initial one."""
    match control:
        case Slider(low=low, high=high):
            found = [low, high]
        case Choice(options=options):
            found = list(options)
        case Switch():
            found = [False, True]
        case Step(most=most):
            found = [0, min(most, 3), most]
        case Handle(low=low, high=high):
            found = [list(low), list(high)]
        case DragPoints(low=low, high=high, classes=classes):
            kind = [0] if classes > 1 else []
            found = [[[*low, *kind], *control.initial[1:]], [[*high, *kind], *control.initial[1:]]]
        case Paint(rows=rows, columns=columns, levels=levels):
            found = [[0] * (rows * columns), [levels - 1] * (rows * columns)]
        case _:
            return []
    return [each for each in found if each != control.initial]


def shown(found):
    assert "error" not in found, found.get("error")
    Elements(found["svg"])
    assert not re.search(r'="(nan|inf|-inf)|NaN|\bnan\b', found["svg"]), "a number that is none in the picture"
    assert len(found["svg"]) < 700_000
    assert found["alt"].strip()
    assert 1 <= len(found["numbers"]) <= 3
    json.dumps(found)
    return found


@pytest.mark.parametrize("exhibit", PLAIN)
def test_every_end_of_every_control_changes_the_picture(exhibit):
    first = shown(answer(exhibit, {}))
    for control in exhibit.controls:
        views = [shown(answer(exhibit, {control.name: value})) for value in ends(control)]
        seen = [found["svg"] != first["svg"] or found["numbers"] != first["numbers"] for found in views]
        assert any(seen) or not views, f"{control.name} changes nothing"


def by_an_arrow(control, svg):
    """Where a handle of this picture may stand after an arrow key: a step of one, or a fiftieth of its axis."""
    for attributes in re.findall(rf'<g class="handle"[^>]* data-name="{control.name}"[^>]*>', svg):
        frame, along = re.search(r'data-frame="(\d+)" data-along="(\w+)"', attributes).groups()
        axes = json.loads(html.unescape(re.search(r'data-frames="(.*?)"', svg).group(1)))[int(frame)]
        for number, way in ((number, way) for number, name in enumerate("xy") if name in along for way in (-1, 1)):
            (low, high), moved = axes["xy"[number]], list(control.initial)
            if control.whole:
                moved[number] += way
            elif axes["xy"[number] + "log"]:
                moved[number] *= (high / low) ** (way / 50)
            else:
                moved[number] += way * (high - low) / 50
            moved[number] = min(max(moved[number], control.low[number]), control.high[number])
            if moved != control.initial:
                yield moved


@pytest.mark.parametrize("exhibit", PLAIN)
def test_an_arrow_key_moves_every_handle(exhibit):
    first = answer(exhibit, {})["svg"]
    for control in exhibit.controls:
        if isinstance(control, Handle) and control.name in Elements(first).names:
            moves = list(by_an_arrow(control, first))
            assert moves
            for moved in moves:
                assert answer(exhibit, {control.name: moved})["svg"] != first, (control.name, moved)


def test_the_stored_index_is_that_of_the_pages():
    assert listed_exhibits() == describe_exhibits(), "`make index` writes it anew"


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_every_printed_form_to_choose_is_an_erratum_that_differs(exhibit):
    wrong = {id for claim in collect() if claim.printed is not None for id in claim.ids}
    links = exhibit_links(printed=True)
    for control in exhibit.controls:
        if control.name != "printed" or not isinstance(control, Choice):
            continue
        forms = control.options[1:]
        assert set(forms) <= wrong & set(exhibit.ids)
        assert all(links[id].endswith(f"?at={exhibit.slug}&printed={id}") for id in forms)
        if not exhibit.needs:
            views = [answer(exhibit, {"printed": each}) for each in control.options]
            seen = {json.dumps([found["numbers"], found["svg"], found["note"]]) for found in views}
            assert len(seen) == len(control.options)


@pytest.mark.parametrize("exhibit", PLAIN)
def test_the_surprise_is_one_move_away(exhibit):
    if exhibit.yours and not exhibit.surprise:
        return
    assert not answer(exhibit, {})["reached"], "the default shows it already"
    assert shown(answer(exhibit, dict(exhibit.surprise_at)))["reached"]


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_what_an_exhibit_says(exhibit):
    assert exhibit.question
    assert len([each for each in exhibit.controls if each.kind not in ("handle", "points", "paint")]) <= 3
    assert exhibit.ids or exhibit.yours
    sentences = re.split(r"(?<=[.;:!?])\s", f"{exhibit.intro} {exhibit.surprise}")
    assert max(len(sentence.split()) for sentence in sentences) <= 25
    assert exhibit.definitions or exhibit.yours


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_words_hold_in_light_and_dark_and_need_no_typesetting(exhibit):
    labels = [getattr(control, "label", "") for control in exhibit.controls]
    choices = [text for control in exhibit.controls if isinstance(control, Choice) for text in control.options]
    shown = [] if exhibit.needs else [number.label for number in exhibit.view().numbers]
    words = " ".join([exhibit.intro, exhibit.surprise, *labels, *choices, *shown])
    # what is dark on white paper is light on black
    assert not re.search(r"\b(dark|darker|light|lighter|white|black)\b", words, re.IGNORECASE)
    assert not re.search(r"\w[_^]\w|`", words)


@pytest.mark.parametrize("exhibit", PLAIN)
def test_a_step_that_can_be_taken_changes_the_picture(exhibit):
    control = next((each for each in exhibit.controls if isinstance(each, Step)), None)
    if control is None:
        return
    last = exhibit.view().steps or control.most
    assert 0 < last <= control.most
    start = min(control.initial, last - control.by)
    before, after = (answer(exhibit, {control.name: at}) for at in (start, start + control.by))
    assert before["svg"] != after["svg"] or before["numbers"] != after["numbers"]
    at_end, beyond = (answer(exhibit, {control.name: at}) for at in (last, control.most))
    drawn = [re.sub('aria-label="[^"]*"', "", found["svg"], count=1) for found in (at_end, beyond)]
    assert last == control.most or (drawn[0] == drawn[1] and at_end["numbers"] == beyond["numbers"])


@pytest.mark.parametrize("exhibit", PLAIN)
def test_the_code_prints_the_first_number(exhibit, capsys):
    for state in ({}, dict(exhibit.surprise_at)):
        view = exhibit.view(state)
        if not view.code:
            assert exhibit.yours, "an exhibit without lines to paste"
            continue
        assert 2 <= len(view.code.splitlines()) <= 10
        exec(compile(view.code, exhibit.slug, "exec"), {})
        printed = capsys.readouterr().out.strip().splitlines()[-1]
        value = view.numbers[0].value
        expected = value if isinstance(value, str) else digits(value)
        found = printed if isinstance(value, str) else digits(float(printed))
        assert found == expected


@pytest.mark.parametrize("exhibit", EXHIBITS)
def test_what_comes_from_a_browser_is_not_trusted(exhibit):
    for control in exhibit.controls:
        for value in ("<script>", 10**400, float("nan"), [], [[]], {"a": 1}, None, "x" * 10**5, [1e9] * 3):
            found = answer(exhibit, {control.name: value})
            assert "error" not in found or ("\n" not in found["error"] and len(found["error"]) < 300)
            assert "<script>" not in found.get("svg", "")
    assert "error" in answer(exhibit, {"nobody": 1})


@pytest.mark.parametrize("name", BUILT)
def test_a_page_reaches_every_item_of_its_areas(name):
    from quoin.lab.parts import rest

    on_it = {id for each in exhibits_of(name) for id in each.ids} | {item["id"] for item in rest(name).items}
    assert {entry.id for entry in notes.entries() if entry.area in PAGES[name].areas} <= on_it
    assert len([each for each in exhibits_of(name) if each.controls]) >= 3


@pytest.mark.parametrize("name", BUILT)
def test_every_exhibit_has_its_cell(name):
    """A page shows what its cells play: each exhibit once, where it stands."""
    found = ast.parse(page_path(name).read_text(encoding="utf-8"))
    cells = [each for each in found.body if isinstance(each, ast.FunctionDef) and each.name == "_"]
    calls = [each for cell in cells for each in ast.walk(cell) if isinstance(each, ast.Call)]
    played = [ast.unparse(each.args[0]) for each in calls if ast.unparse(each.func) == "play"]
    assert played == [each.show.__name__ for each in exhibits_of(name)]
    assert [ast.unparse(each) for each in calls if ast.unparse(each.func) == "head"] == [f"head({name!r})"]


@pytest.mark.parametrize("name", BUILT)
def test_a_page_runs_as_a_script(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(page_path(name))], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(Path(tmp_path).iterdir()) == []
