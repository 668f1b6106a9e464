"""The notes' figures called with other numbers than the notes': every parameter changes the picture, and what is out of
its range is one line."""

import inspect
import math
import re

import pytest

from quoin.errors import UserError
from quoin.notes import figures

EVERY = {each.name: each for each in figures.collect()}
CASES = [(name, parameter) for name, each in EVERY.items() for parameter in each.ranges]


def other(name: str, parameter: str):
    """A value in the parameter's range that is not the notes', near to it so that it costs no more."""
    figure = EVERY[name]
    default = figure.signature.parameters[parameter].default
    low, high = figure.ranges[parameter]
    if isinstance(default, tuple):
        turned = tuple(reversed(default))
        if name == "below_sets":  # levels, whose order does not matter
            return (0.3, *default[1:])
        return turned if turned != default else tuple(nearby(each, low, high) for each in default)
    return default - 2 if parameter == "dim" else nearby(default, low, high)  # features rotate in pairs


def nearby(value, low, high):
    if isinstance(value, int):
        return value - 1 if value > low else value + 1
    return value - (value - low) / 4 if value > low else low + (min(high, low + 1) - low) / 4


def plain(svg: str) -> str:
    """Without the alt text, which tells the arguments by itself, and the ids, which are made from all of the plot."""
    return re.sub(r"<title>.*?</title>|\bq[0-9a-f]{8}\b", "", svg, flags=re.DOTALL)


def test_every_figure_is_exported_by_its_name():
    for name, figure in EVERY.items():
        assert getattr(figures, name) is figure
        assert name in figures.__all__
        assert name in dir(figures)


def test_every_figure_has_a_number_that_may_be_another():
    assert [name for name, figure in EVERY.items() if not figure.ranges] == []


@pytest.mark.parametrize("name", ["sample_paths", "code_trees", "reverse_mode", "two_five_one"])
def test_the_call_without_arguments_is_the_figure_of_the_notes(name):
    assert EVERY[name]().svg() == EVERY[name].plot().svg()


@pytest.mark.deep
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_another_argument_gives_another_picture(name, parameter):
    figure, value = EVERY[name], other(name, parameter)
    changed = figure(**{parameter: value})
    assert plain(changed.svg()) != plain(figure.plot().svg())
    assert f"{parameter}={value}" in changed.alt


def test_a_list_serves_as_a_tuple():
    assert plain(figures.code_trees([0.5, 0.25, 0.25]).svg()) == plain(figures.code_trees((0.5, 0.25, 0.25)).svg())


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_what_is_out_of_range_is_one_line(name, parameter):
    figure = EVERY[name]
    default, (low, high) = figure.signature.parameters[parameter].default, figure.ranges[parameter]
    bad = [low - 1, high + 1, math.nan, "three", None, True]
    if isinstance(default, int):
        bad.append(low + 0.5)
    for each in bad:
        value = (each,) * len(default) if isinstance(default, tuple) else each
        with pytest.raises(UserError, match=r"expected .*got .*; ") as told:
            figure(**{parameter: value})
        assert "\n" not in str(told.value)
        assert parameter in str(told.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_path": 5}, "did you mean 'num_paths'"),
        ({"num_paths": 8}, "from 1 to 7"),
    ],
)
def test_a_wrong_argument_says_which_would_be_right(arguments, words):
    with pytest.raises(UserError, match=re.escape(words)):
        figures.sample_paths(**arguments)


def test_too_many_arguments_are_one_line():
    with pytest.raises(UserError, match="expected arguments of sample_paths, got 3 arguments"):
        figures.sample_paths(1, 2, 3)  # type: ignore[call-arg]


def test_as_many_numbers_as_the_notes_have():
    with pytest.raises(UserError, match="expected 3 numbers for distances"):
        figures.one_hill_or_two(distances=(1.0, 2.0))


def test_probabilities_must_sum_to_one():
    with pytest.raises(UserError, match="sum to one"):
        figures.code_trees(probs=(0.5, 0.25))


def test_type_checkers_see_the_parameters():
    assert inspect.signature(figures.sample_paths.function).parameters.keys() == {"num_paths", "num_steps"}
    assert "num_paths: int = 6" in repr(figures.sample_paths)
