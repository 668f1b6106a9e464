"""Every public class shows itself: in one short line, and in a notebook as a table or a picture, whatever its texts.

Named tuples and dataclasses are made here from their annotations, with tensors too large to print and texts that would
be markup; of the other classes each has a maker below, and one that is missing fails."""

import dataclasses
import html.parser
import importlib
import inspect
import re
import types
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import AbstractArray
from torch import nn

import quoin
from quoin import autodiff, data, info, optim, plot, prob
from quoin import tensor as tensors
from quoin.display import Listing, bar_chart, chain_graph, code_tree, line_chart, number_table, one_line, short, table
from quoin.notes import claims, figures

SCRIPT = "<script>alert(1)</script>"
# what is no thing to look at: who listens, what options are made of, how JSON is checked, what commands and bench use
LEFT_OUT = {
    "callbacks",
    "options",
    "documents",
    "errors",
    "lazy",
    "processor",
    "display",
    "cli",
    "bench",
    "recipes",
    "estimators",
    "lab",
}
MODULES = [*(f"quoin.{each}" for each in quoin._packages() if each not in LEFT_OUT), "quoin.notes.claims"]
MODULES += ["quoin.notes.figures"]


def is_shown(cls: type) -> bool:
    """torch shows modules, tensors and optimizers; an exception has its message, and a protocol no instances."""
    theirs = (nn.Module, BaseException, torch.Tensor, torch.optim.Optimizer)
    return (
        not issubclass(cls, theirs) and not getattr(cls, "_is_protocol", False) and cls.__module__.startswith("quoin")
    )


def public_classes() -> dict[str, type]:
    found = {}
    for module in MODULES:
        package = importlib.import_module(module)
        for name in package.__all__:
            if inspect.isclass(value := getattr(package, name)) and is_shown(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


CLASSES = public_classes()


def value_for(hint: object) -> object:
    """Something of this type, large or dangerous to show."""
    if isinstance(hint, str):
        return torch.randn(7, 9) if "Tensor" in hint else SCRIPT
    if isinstance(hint, typing.TypeVar) or hint is typing.Any:
        return SCRIPT
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return value_for(args[0])
    if origin is typing.Literal:
        return args[0]
    if origin in (typing.Union, types.UnionType):
        return value_for(args[0])
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        return torch.randn([11] * max(1, len(getattr(hint, "dims", ()) or (1, 1))))
    if origin in (tuple, list) or (inspect.isclass(origin) and issubclass(origin, typing.Sequence)):
        return (list if origin is list else tuple)(value_for(args[0]) if args else 1 for _ in range(30))
    if inspect.isclass(origin) and issubclass(origin, typing.Mapping):
        return {f"{SCRIPT}{n}": value_for(args[1]) for n in range(9)}
    plain = {int: 3, float: 1 / 3, bool: True, str: SCRIPT * 3, bytes: b"<script>" * 30, np.ndarray: np.zeros((30, 30))}
    plain |= {Path: Path(SCRIPT), type(None): None}
    return plain.get(typing.cast(type, hint), SCRIPT)


def made_of_fields(cls: type) -> object:
    """A named tuple or dataclass with such values; what its own checks would say is not asked."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError:  # shapes are no names
        hints = dict(cls.__annotations__)
    if issubclass(cls, tuple):
        return cls._make(value_for(hints[name]) for name in cls._fields)  # type: ignore[attr-defined]
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        object.__setattr__(made, field.name, value_for(hints.get(field.name, str)))
    return made


def plain_object(cls: type) -> object:
    """An object of a class that keeps what its constructor was given, without running it."""
    made = object.__new__(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        if hasattr(made, "__dict__"):
            made.__dict__[name] = value_for(parameter.annotation)
    return made


CHAIN = prob.MarkovChain([1, 0], [[0.5, 0.5], [0.0, 1.0]])
SPACE = prob.ProbabilitySpace([SCRIPT, "b"], [0.5, 0.5])
PLOT = plot.bars({"a": 1.0})
DATASET = data.Dataset(SCRIPT, torch.rand(30, 1, 4, 4), torch.zeros(30).long(), (), (SCRIPT, "b"))
TABLE = data.Dataset(SCRIPT, torch.rand(30, 20), torch.rand(30), tuple(f"{SCRIPT}{n}" for n in range(20)), None)
MAKERS = {  # of classes that show more than their fields
    "Plot": lambda: PLOT,
    "GraphPlot": lambda: plot.graph([plot.Box("a"), plot.Box(SCRIPT)], [(0, 1)]),
    "AttentionPlot": lambda: plot.attention([plot.AttentionLayer("a", torch.eye(3)[None], tuple("abc"), tuple("abc"))]),
    "Panel": lambda: plot.Panel(SCRIPT, PLOT, SCRIPT),
    "Graph": lambda: autodiff.trace(lambda x: (x * x).sum(), torch.ones(50)),
    "Var": lambda: (autodiff.Var(torch.ones(40)) * 2).sum(),
    "ProbabilitySpace": lambda: SPACE,
    "RandomVariable": lambda: prob.RandomVariable(SPACE, lambda outcome: outcome),
    "MarkovChain": lambda: CHAIN,
    "InhomogeneousChain": lambda: prob.InhomogeneousChain(
        [1, 0], np.broadcast_to(np.eye(2, dtype=np.float32), (9, 2, 2))
    ),
    "HiddenMarkovModel": lambda: prob.HiddenMarkovModel(CHAIN, prob.CategoricalEmission([[1.0, 0.0], [0.5, 0.5]])),
    "MultivariateNormal": lambda: prob.MultivariateNormal(torch.zeros(30), torch.eye(30)),
    "GaussianMixtureDistribution": lambda: prob.GaussianMixtureDistribution(
        [0.5, 0.5], prob.SphericalNormals([[0.0], [1.0]], [1.0, 1.0])
    ),
    "Density": lambda: prob.Density(lambda x: 2 * x, (0, 1)),
    "NoiseSchedule": lambda: prob.linear_beta_schedule(1000),
    "PrefixCode": lambda: info.canonical_code([8] * 256),
    "Dataset": lambda: DATASET,
    "Text": lambda: data.Text(SCRIPT, SCRIPT * 1000),
    "Pairs": lambda: data.Pairs(SCRIPT, (SCRIPT,) * 30, ("b",) * 30),
    "PointSet": lambda: data.PointSet(SCRIPT, torch.rand(30, 2), (SCRIPT, "b")),
    "Evidence": lambda: claims.Evidence(SCRIPT * 9, 1.0, 2.0, SCRIPT, 3),
    "Figure": lambda: figures.two_five_one,
    "PreparedData": lambda: data.prepare(TABLE, data.split(TABLE, 0)),
    "TabularInfo": lambda: data.prepare(TABLE, data.split(TABLE, 0)).data_info,
}
# Whose making needs a folder, a run or a training loop: the notebook of test_notebook.py shows them.
IN_THE_NOTEBOOK = {"Run"}


def made(cls: type) -> object:
    if cls.__name__ in MAKERS:
        return MAKERS[cls.__name__]()
    if issubclass(cls, tuple) or dataclasses.is_dataclass(cls):
        return made_of_fields(cls)
    return plain_object(cls)


class Checker(html.parser.HTMLParser):
    """Every element that is opened is closed, in order; no text of ours became an element."""

    void: typing.ClassVar = {"img", "br", "path", "rect", "circle", "line", "polyline", "meta", "hr"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


def check_page(page: str) -> set[str]:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert "script" not in checker.seen
    return checker.seen


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if cls.__name__ not in IN_THE_NOTEBOOK])
def test_a_public_class_shows_itself(name):
    cls = CLASSES[name]
    if inspect.isabstract(cls):
        assert cls.__repr__ is not object.__repr__  # for those that extend it
        return
    thing = made(cls)
    line = repr(thing)
    assert type(thing).__name__ in line
    assert len(line) <= 200, line
    assert "\n" not in line
    assert "object at 0x" not in line
    if hasattr(thing, "_repr_svg_"):
        check_page(thing._repr_svg_())
        assert thing._repr_png_().startswith(b"\x89PNG")
    else:
        seen = check_page(thing._repr_html_())
        assert seen & {"table", "svg", "img"}


def test_there_are_many_of_them():
    assert len(CLASSES) > 250
    assert set(MAKERS) <= {cls.__name__ for cls in CLASSES.values()}


def test_a_class_that_shows_nothing_is_seen():
    class Bare:
        def __init__(self, values):
            self.values = values

    assert "object at 0x" in repr(Bare(1))
    assert not hasattr(Bare(1), "_repr_html_")


def test_what_a_class_writes_itself_stays():
    assert repr(prob.MultivariateNormal(torch.zeros(1), torch.eye(1))).startswith("MultivariateNormal(mean=[0.0]")
    assert "GaussianKernel" in repr(tensors.GaussianKernel())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (torch.zeros(3, 4), "float32[3, 4]"),
        (torch.zeros(100), "float32[100]"),
        (torch.zeros(3, device="meta"), "tensor(..., device='meta', size=(3,))"),
        (np.zeros((2, 5)), "float64[2, 5]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ...] of 100"),
        (nn.Linear(2, 3), "Linear"),
        ("a" * 100, "'" + "a" * 56 + "..."),
        ((1,), "(1,)"),
    ],
)
def test_short(value, expected):
    assert short(value) == expected


def test_a_line_ends_where_it_would_be_too_long():
    line = one_line("A", {f"field{n}": n for n in range(100)})
    assert len(line) <= 200
    assert line.endswith(", ...)")


def test_pictures_are_of_the_numbers():
    widths = re.findall(r'<rect [^>]*width="([\d.]+)"', bar_chart(["a", "b"], [1.0, 0.5]))
    assert [float(each) for each in widths] == [200.0, 100.0]
    assert "0.25" in chain_graph([[0.75, 0.25], [0.0, 1.0]])
    arrows = chain_graph([[0.75, 0.25], [0.0, 1.0]]).count("marker-end")
    assert arrows == 3  # what cannot happen has none
    assert code_tree(["0", "10", "11"]).count("<circle") == 2 * 3
    assert code_tree(["0", "10", "11"]).count("stroke-dasharray") == 0
    assert code_tree(["0", "10"]).count("stroke-dasharray") == 1  # to 11, which is no symbol
    thirty_two = [f"{number:05b}" for number in range(32)]
    assert code_tree(thirty_two).count("<circle") == 2 * 32
    assert "33 symbols, too many to draw" in code_tree([*thirty_two[:-1], "111110", "111111"])
    points = re.findall(r'points="([^"]*)"', line_chart([0, 1, 2], [0.0, float("nan"), 1.0]))
    assert points == ["10.0,110.0 290.0,10.0"]
    for page in (
        bar_chart([SCRIPT], [1.0]),
        number_table([[1.0]], rows=[SCRIPT], columns=[SCRIPT]),
        table([SCRIPT], []),
    ):
        check_page(page)


def test_nothing_is_drawn_in_a_fixed_colour():
    pages = [bar_chart(["a"], [1.0]), chain_graph([[1.0]]), code_tree(["0", "1"]), line_chart([0, 1], [0, 1])]
    assert not any(re.search(r"#[0-9a-f]{3,6}\b|\b(black|white)\b", page) for page in pages)


def test_a_listing_is_a_list_and_a_table():
    listing = Listing([optim.Momentum(0.1, 0.9), optim.Momentum(0.2, 0.8)])
    assert listing == [optim.Momentum(0.1, 0.9), optim.Momentum(0.2, 0.8)]
    page = listing._repr_html_()
    check_page(page)
    assert "momentum" in page
    assert "0.8" in page
    assert "2 in all" in page
    assert "3 in all" in Listing([1, 2, 3])._repr_html_()
    assert len(repr(Listing(range(1000)))) <= 200
