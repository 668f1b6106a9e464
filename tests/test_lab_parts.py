"""What the lab's pages are made of: controls, pictures, formulas, tables of one's own, trained models, widgets."""

import base64
import math
import re
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quoin import notes
from quoin.errors import UserError
from quoin.lab.catalog import PAGES
from quoin.lab.parts import (
    DragPoints,
    File,
    Handle,
    Paint,
    Picture,
    Slider,
    Step,
    Switch,
    Text,
    digits,
    exhibits_of,
    read_table,
    ticks,
)
from quoin.lab.parts.errata_rows import CLASSES, FOUND_RIGHT, errata_tags
from quoin.lab.parts.exhibit import exhibit, exhibit_of
from quoin.lab.parts.formula import parse_formula
from quoin.lab.parts.marks import kept_inside, scripts, text_width, words_on
from quoin.lab.parts.proofs import outcome_html, outcomes
from quoin.lab.parts.trained import TrainedModel
from quoin.lab.parts.widget import ExhibitWidget, ItemsWidget, LinesWidget
from quoin.notes.claims import collect
from quoin.plot.palette import DARK, LIGHT, contrast

# ---- formulas ----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["x", "y"])
LEAVES = NAMES | st.integers(0, 9).map(str)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(st.sampled_from("+-*"), inner, inner).map(lambda t: f"({t[1]} {t[0]} {t[2]})")
        | inner.map(lambda t: f"-{t}")
        | inner.map(lambda t: f"sin({t})")
    ),
    max_leaves=8,
)


@given(TREES)
def test_a_formula_is_what_python_makes_of_it(text):
    x, y = 0.7, -1.3
    got = parse_formula(text).of({"x": torch.tensor(x, dtype=torch.float64), "y": torch.tensor(y, dtype=torch.float64)})
    assert float(got) == pytest.approx(eval(text, {"sin": math.sin, "x": x, "y": y}), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2^3^2", 512), ("-2^2", -4), ("2 - 3 - 4", -5), ("8 / 4 / 2", 1), ("max(1, 2) * pi / pi", 2), ("2e1 + .5", 20.5)],
)
def test_precedence(text, value):
    assert float(parse_formula(text).of({})) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x +",
        "(x",
        "x)",
        "x y",
        "foo(x)",
        "sin",
        "sin(x, y)",
        "max(x)",
        "__import__('os')",
        "x.y",
        "x[0]",
        "1" * 201,
        "+".join("x" * 61),
        "(" * 100 + "x" + ")" * 100,
        "-" * 150 + "x",
        "2^" * 60 + "2",
        "x; y",
        "λ x",
    ],
)
def test_what_is_no_formula_is_one_line(text):
    with pytest.raises(UserError) as error:
        parse_formula(text)
    assert "\n" not in str(error.value)


def test_a_name_that_has_no_value_is_told():
    with pytest.raises(UserError, match="'z'"):
        parse_formula("x + z").of({"x": torch.tensor(1.0)})


# ---- controls ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("control", "good", "bad"),
    [
        (Slider("a", "a", 0, 1, 0.5), [(0, 0.0), ("0.25", 0.25)], [-0.1, 1.1, "x", None, math.nan, [1]]),
        (Slider("a", "a", default=8, choices=(2, 8, 32)), [(9, 8), (32, 32)], [1, 64]),
        (Switch("a", "a"), [(True, True), ("1", True), (0, False)], ["maybe", 2]),
        (Text("a", "a", "x"), [("y" * 200, "y" * 200)], ["y" * 201]),
        (Text("a", "a", "x", most=3), [("abc", "abc"), ("\ud800", "?")], ["abcd", 3, None]),
        (Step("a", "a", 5), [(3, 3)], [-1, 6]),
        (Handle("a", "a"), [([0.5, -1], (0.5, -1.0))], [[2, 0], [0], "00", [0, math.inf]]),
        (DragPoints("a", "a", ((0, 0),), most=2), [([[0, 1]], [(0.0, 1.0)])], [[], [[0, 0]] * 3, [[0]], "ab"]),
        (DragPoints("a", "a", ((0, 0, 1),), classes=2), [([[0, 1, 1]], [(0.0, 1.0, 1)])], [[[0, 0, 2]], [[0, 0]]]),
        (Paint("a", "a", 1, 2), [([0, 1], [0, 1])], [[0], [0, 2], "01", None]),
        (File("a", "a", most=4), [(None, None), (base64.b64encode(b"abc").decode(), b"abc")], ["A" * 100, "é", 3]),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_controls_read_what_is_theirs_and_nothing_else(control, good, bad):
    for given_value, expected in good:
        assert control.parse(given_value) == expected
    for value in bad:
        with pytest.raises(UserError) as error:
            control.parse(value)
        assert "\n" not in str(error.value)
    control.parse(control.initial)


# ---- pictures ----------------------------------------------------------------------------------------------------


@given(st.floats(-1e12, 1e12))
def test_three_digits_are_within_half_a_unit_of_the_third(value):
    text = digits(value).replace("−", "-").replace(",", "").replace("·10", "e")
    number = float(text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    assert number == pytest.approx(value, rel=0.00501, abs=1e-300)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 6))
def test_ticks_are_inside_and_apart_and_two_at_least(low, width, about):
    found = [place for place, _ in ticks(low, low + width, about=about)]
    assert 2 <= len(found) <= max(about + 1, 5)
    assert all(low - width * 1e-6 <= place <= low + width * (1 + 1e-6) for place in found)


@given(st.floats(-12, 12), st.floats(0.3, 30), st.integers(2, 6))
def test_ticks_of_powers_are_inside_and_two_at_least(power, decades, about):
    low, high = 10**power, 10 ** (power + decades)
    found = [place for place, _ in ticks(low, high, log=True, about=about)]
    assert 2 <= len(found) == len(set(found))
    assert all(low * (1 - 1e-6) <= place <= high * (1 + 1e-6) for place in found)


def test_places_and_escapes():
    picture = Picture('a "sentence" <b>')
    axes = picture.axes((0, 10), (0, 1), box=(100, 50, 200, 100))
    assert axes.place(0, 0) == (100, 150)
    assert axes.place(10, 1) == (300, 50)
    axes.text(1, 1, "<script>")
    axes.handle("<x>", 1, 1, label='"<y>')
    svg = picture.svg()
    assert "<script>" not in svg
    assert "<b>" not in svg
    assert "<x>" not in svg
    assert "<y>" not in svg
    wide = Picture("equal").axes((0, 1), (0, 1), box=(0, 0, 400, 100), equal=True)
    assert wide.x[1] - wide.x[0] == pytest.approx(4)


def test_what_is_not_finite_is_drawn_nowhere():
    picture = Picture("breaks")
    axes = picture.axes()
    axes.line([0, 0.5, 1], [0, math.nan, math.inf])
    axes.points([math.nan, 0.5], [0, 0.5])
    axes.cells([[math.nan, 1.0]])
    assert "nan" not in picture.svg().replace("not a number", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Q_iK_i", "Q<sub>i</sub>K<sub>i</sub>"),
        ("R_mW_ηx", "R<sub>m</sub>W<sub>η</sub>x"),
        ("ℝ^{d_in}", "ℝ<sup>d<sub>in</sub></sup>"),
        ("(Σ|x_i|^p)^(1/p)", "(Σ|x<sub>i</sub>|<sup>p</sup>)<sup>1/p</sup>"),
        ("P_Φ(y|x) < a_ b", "P<sub>Φ</sub>(y|x) &lt; a_ b"),
        ("n^(-1/(d+4)) e^-40 (A + c)^-1", "n<sup>-1/(d+4)</sup> e<sup>-40</sup> (A + c)<sup>-1</sup>"),
        ("E e^⟨a,x⟩ p", "E e<sup>⟨a,x⟩</sup> p"),
        (
            "`up_probability` and nn.functional.layer_norm",
            "<code>up_probability</code> and <code>nn.functional.layer_norm</code>",
        ),
        ("a_-", "a<sub>-</sub>"),
    ],
)
def test_indices_are_set_low_and_powers_high(text, expected):
    assert scripts(text) == expected


def as_read(html):
    """The words of a page as they are read: without its tags, and without what is code."""
    return re.sub("<[^>]*>", "", re.sub("<code>.*?</code>", "", html))


def test_no_title_and_no_claim_of_the_notes_shows_how_an_index_is_typed():
    lines = [*notes.titles().values(), *(claim.statement for claim in collect())]
    assert len(lines) > 700
    shown = [as_read(scripts(line)) for line in lines]
    assert [words for words in shown if re.search(r"[_^]\S|[`\\]", words)] == []


def test_what_an_id_says_is_set_like_its_title():
    hovered = {id: html for name in PAGES for each in exhibits_of(name) for id, html in ExhibitWidget(each).spec["ids"]}
    assert len(hovered) > 350
    assert [id for id, html in hovered.items() if re.search(r"[_^]\S|[`\\]", as_read(html))] == []
    assert hovered["D5-24"].startswith("Conditional Gaussian: mean μ<sub>X</sub> + Σ<sub>XY</sub>Σ<sub>YY</sub>")


def test_a_verdict_is_set_like_a_title():
    found = "".join(map(outcome_html, outcomes(("DE25",))))
    assert "<code>torch.nn.functional.layer_norm</code>" in found
    assert "‖x‖<sub>p</sub> &lt;= n<sup>1/p</sup>" in outcome_html(outcomes(("Z2.4",))[0])


@pytest.mark.parametrize("role", ["model", "change", "hand", "hidden", "ink", "faint", "printed", "series-6"])
def test_words_on_a_cell_can_be_read_on_light_and_dark_paper(role):
    for percent in range(101):
        colors = words_on(role, percent / 100).removeprefix("words-").split("-")
        for palette, words in zip((LIGHT, DARK), colors):
            name, _, number = role.partition("-")
            full = palette.series[int(number) - 1] if name == "series" else getattr(palette, role)
            pairs = [(int(full[at : at + 2], 16), int(palette.paper[at : at + 2], 16)) for at in (1, 3, 5)]
            cell = "#" + "".join(f"{round((percent * a + (100 - percent) * b) / 100):02x}" for a, b in pairs)
            assert contrast(cell, {"black": "#000000", "white": "#ffffff"}[words]) >= 4.5


def test_numbers_in_cells_are_whole_where_all_are_and_as_small_as_the_cell_asks():
    def texts(table, width):
        picture = Picture("cells")
        picture.axes(box=(0, 0, width, 40), bare=True).cells(table, numbers=True)
        return [(float(size), words) for size, words in re.findall(r'font-size="([0-9.]+)">([^<]+)<', picture.svg())]

    assert [words for _, words in texts([[2, 16.0]], 200)] == ["2", "16"]
    assert [words for _, words in texts([[2, 0.5]], 200)] == ["2.0", "0.50"]
    (narrow, words), *_ = texts([[-0.0013, 1.0]], 80)
    assert words == "−0.0013"
    assert narrow < 10
    assert text_width(words, narrow) <= 40


@given(st.floats(-2000, 2000), st.text("ab ", max_size=40), st.sampled_from(["start", "middle", "end"]))
def test_a_text_at_a_point_stays_on_the_sheet(x, text, anchor):
    left = kept_inside(x, text, anchor, 13, 640) - {"start": 0, "middle": 0.5, "end": 1}[anchor] * text_width(text, 13)
    assert left >= 2 - 1e-9
    assert left + text_width(text, 13) <= 638 + 1e-9


# ---- a table of one's own -----------------------------------------------------------------------------------------


def test_a_table_is_read():
    table = read_table("a;b;c\n1;2;x\n3;4;y\n".encode("utf-8-sig"))
    names, values = table.first_numbers(2)
    assert names == ("a", "b")
    assert values.tolist() == [[1, 2], [3, 4]]
    assert table.words == {"c": ["x", "y"]}


@pytest.mark.parametrize(
    "content", [b"", b"a\n1\n", b"a,b\n1,2\n3\n", b"a\n1\nnan\n2\n", b"a\n1\n\xff\n", b"a\n1\nx\n2\n", b"a\n1\n,\n2"]
)
def test_a_table_that_is_none_is_one_line(content):
    with pytest.raises(UserError) as error:
        read_table(content).first_numbers(1)
    assert "\n" not in str(error.value)


# ---- widgets -------------------------------------------------------------------------------------------------------


def wait(widget, request):
    for number in range(600):
        widget.request = {"n": number, **request}
        if not widget.told.get("waiting"):
            return widget.told
        time.sleep(0.1)
    raise AssertionError("no answer")


def test_a_widget_answers_what_it_is_asked():
    from quoin.lab.attention import why_the_root

    widget = ExhibitWidget(exhibit_of(why_the_root))
    first = widget.view
    widget.asked = {"n": 7, "state": {"d": 64, "printed": True}}
    assert widget.view["n"] == 7
    assert widget.view["reached"]
    assert widget.view["svg"] != first["svg"]
    widget.asked = {"n": 8, "state": {"d": "many"}}
    assert "expected" in widget.view["error"]
    widget.asked = {"n": 9, "state": "nonsense"}
    assert widget.view["svg"] == first["svg"]
    widget.request = {"n": 1, "kind": "definition"}
    assert "scaled_dot_product_attention_definition" in widget.told["html"]
    widget.request = {"n": 2, "kind": "../../etc"}
    assert widget.told == {"n": 2, "kind": "unknown"}


def test_verdicts_come_from_the_claims_themselves():
    from quoin import notes

    widget = ItemsWidget("some", [entry for entry in notes.entries() if entry.id in ("DE27", "Z11.15")])
    told = wait(widget, {"kind": "verdict", "id": "DE27", "seed": 3})
    assert "holds" in told["html"]
    assert "as printed: fails" in told["html"]
    widget.request = {"n": 700, "kind": "item", "id": "ZE1"}
    assert widget.told["kind"] == "unknown"
    widget.request = {"n": 701, "kind": "item", "id": "Z11.15"}
    assert "quoin check Z11.15" in widget.told["html"]


def test_an_exhibit_says_at_once_what_is_wrong_with_it():
    with pytest.raises(ValueError, match="parameters"):
        exhibit("?", controls=(Switch("a", "a"),), surprise="s", surprise_at={"a": True})(lambda b: None)
    with pytest.raises(ValueError, match="surprise"):
        exhibit("?", controls=(Switch("a", "a"),))(lambda a: None)
    with pytest.raises(ValueError, match="ids"):
        exhibit("?", ids="Q9")


# ---- trained models ------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_a_model_is_trained_once_kept_whole_and_stopped_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path))
    model = TrainedModel("mlp", {"epochs": 2, "data": "iris"})
    with pytest.raises(UserError):
        model.open()
    training = model.train()
    assert model.train() is training
    training._process.wait(300)
    assert training.error == ""
    assert model.is_ready
    assert model.open().metrics["test_accuracy"] > 0.2
    long = TrainedModel("mlp", {"epochs": 10_000})
    begun = long.train()
    while begun.is_running and not begun.fraction:
        time.sleep(0.1)
    begun.stop()
    assert not long.is_ready
    assert [path.name for path in (tmp_path / "models").iterdir()] == [model.key]
    wrong = TrainedModel("mlp", {"epochs": 1, "data": "nosuchdata"}).train()
    wrong._process.wait(300)
    assert "nosuchdata" in wrong.error
    assert "\n" not in wrong.error


def test_every_erratum_has_a_note_a_class_and_an_area_to_choose():
    errata = [entry for entry in notes.entries() if entry.id[1] == "E"]
    tags = errata_tags()
    assert set(tags) == {entry.id for entry in errata}
    # as they were counted when the errata were written
    assert [len(ids) for ids in CLASSES.values()] == [48, 29, 49, 2]
    assert sum(map(len, CLASSES.values())) == len({id for ids in CLASSES.values() for id in ids}) == 128
    assert all(tags[entry.id]["area"] == notes.areas()[entry.area] for entry in errata)
    assert all(
        {"Zhao": "Z", "Diehl": "D", "McAllester": "M"}[tags[entry.id]["note"]] == entry.id[0] for entry in errata
    )
    spelling = [entry for entry in errata if tags[entry.id]["class"] == "spelling"]
    assert not any(entry.claims for entry in spelling)
    widget = ItemsWidget("all", errata, filtered=True, tags=tags)
    assert [item["tags"] for item in widget.items] == [tags[entry.id] for entry in errata]
    assert LinesWidget("right", FOUND_RIGHT).lines[10].endswith("(νAⁿ)<sub>j</sub>, and KL under a diffeomorphism.")
