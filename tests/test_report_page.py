"""A report's sections: two in a row where the window is wide, alone in theirs where one may be broader than half."""

import re

import pytest

from quoin.train.report_page import page

PLOT = "<figure><svg></svg></figure>"


def table(columns: int) -> str:
    return f"<table><tr>{'<th>n</th>' * columns}</tr></table>"


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (f"<h2>Loss</h2>{PLOT}", False),
        (f"<h2>Loss</h2>{PLOT}{PLOT}", True),
        (f"{PLOT}", False),
        (f"<h2>Loss</h2>{PLOT}{table(5)}", False),
        (f"<h2>Test</h2>{table(4)}", False),
        (f"<h2>Test</h2>{table(5)}", True),
        ("<h2>Options</h2><details>all</details>", True),
        ("<p>by itself</p>", True),
    ],
)
def test_a_section_stands_alone_in_its_row_where_it_may_be_broad(part, whole):
    (section,) = re.findall(r"<section[^>]*>", page("A run", "of a test", [part]))
    assert ('class="whole"' in section) == whole


def test_contents_name_each_section_once_and_lead_to_it():
    text = page("A run", "of a test", ["<h2>Loss</h2>", "<h2>Loss</h2>", "<h2>μ &amp; σ²</h2>", "<h2>²</h2>"])
    targets = re.findall(r'<section id="([^"]+)"', text)
    assert targets == ["loss", "loss-2", "section", "section-2"]
    assert re.findall(r'<a href="#([^"]+)">', text) == targets


@pytest.mark.parametrize(("count", "listed"), [(2, False), (3, True)])
def test_contents_stand_where_there_are_more_than_two_sections(count, listed):
    text = page("A run", "of a test", [f"<h2>Part {i}</h2>" for i in range(count)])
    assert ("<nav" in text) == listed
    assert ("<body class" in text) == listed


def test_what_has_no_heading_belongs_to_the_section_before_it_unless_that_shows_a_plot():
    after_words = page("A run", "of a test", ["<h2>Test</h2><p>one</p>", "<p>two</p>", PLOT])
    assert re.findall(r"<section[^>]*>\n(.*?)\n</section>", after_words, re.DOTALL) == [
        f"<h2>Test</h2><p>one</p>\n<p>two</p>\n{PLOT}"
    ]
    after_plot = page("A run", "of a test", [f"<h2>Loss</h2>{PLOT}", "<p>two</p>"])
    assert after_plot.count("<section") == 2
    assert page("A run", "of a test", ["", "<h2>Test</h2>", ""]).count("<section") == 1


def test_only_a_page_with_plots_has_the_script_that_enlarges_them():
    assert "<script>" in page("A run", "of a test", [PLOT])
    assert "<script>" not in page("A run", "of a test", ["<p>none</p>"])


def test_title_and_lead_are_text():
    text = page("a<b>", "c & d", ["<p>none</p>"], style="p { color: red }")
    assert text.count("a&lt;b&gt;") == 2
    assert "c &amp; d" in text
    assert "p { color: red }</style>" in text
