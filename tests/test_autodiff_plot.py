"""Plots of graphs: a layout that keeps its invariants, and files that hold the numbers and refer to nothing outside."""

import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from quoin import plot
from quoin.autodiff import plot_graph, trace
from quoin.errors import UserError
from quoin.notes import figures
from quoin.plot.layered import layered


def random_graph(seed: int) -> tuple[list[float], list[tuple[int, int]]]:
    chance = random.Random(seed)
    count = chance.randint(1, 25)
    edges = [(i, j) for i, j in combinations(range(count), 2) if chance.random() < 2 / count]
    names = list(range(count))
    chance.shuffle(names)  # the numbers of nodes need not follow the edges
    return [chance.uniform(0.5, 2) for _ in range(count)], [(names[i], names[j]) for i, j in edges]


@pytest.mark.parametrize("seed", range(30))
def test_a_layout_goes_down_and_nothing_overlaps(seed):
    widths, edges = random_graph(seed)
    layout = layered(widths, edges, 0.2)
    assert all(layout.positions[a][1] < layout.positions[b][1] for a, b in edges)
    for a, b in combinations(range(len(widths)), 2):
        (x, row), (u, other) = layout.positions[a], layout.positions[b]
        assert row != other or abs(x - u) >= (widths[a] + widths[b]) / 2 + 0.2 - 1e-9
    for (a, b), route in layout.routes.items():
        assert (route[0], route[-1]) == (layout.positions[a], layout.positions[b])
        assert [row for _, row in route] == list(range(route[0][1], route[-1][1] + 1))
        for x, row in route[1:-1]:  # an edge passes beside the boxes, not through them
            assert all(abs(x - u) >= width / 2 for (u, other), width in zip(layout.positions, widths) if other == row)


def test_a_layout_unties_what_can_be_untied():
    layout = layered([1.0] * 6, [(0, 5), (1, 4), (2, 3)], 0.2)
    (a, b, c), (f, e, d) = (layout.positions[i][0] for i in (0, 1, 2)), (layout.positions[i][0] for i in (5, 4, 3))
    assert sorted([a, b, c]) == [a, b, c]
    assert sorted([f, e, d]) == [f, e, d]


def test_a_chain_is_straight_and_its_weights_stand_aside():
    layout = layered([1.0] * 6, [(0, 2), (1, 2), (2, 4), (3, 4), (4, 5)], 0.2)
    x = [place for place, _ in layout.positions]
    assert max(abs(x[i] - x[j]) for i, j in ((2, 4), (4, 5))) < 0.1


def traced():
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=generator)
    return trace(lambda x: (model(x) - 1).square().mean(), torch.randn(4, 2, generator=generator))


def test_the_svg_is_deterministic_standalone_and_tells_each_node():
    graph = traced()
    drawing = plot_graph(graph, title="a < b")
    svg = drawing.svg()
    assert svg == plot_graph(traced(), title="a < b").svg()
    root = ElementTree.fromstring(svg)
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 1 + len(graph.nodes)
    assert f"value: {float(graph.output):.6g}" in titles[1 + graph.outputs[0]]
    assert set(re.findall(r"https?://[^\"'<> ]*", svg)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', svg))


def test_the_page_holds_the_numbers_of_every_node_both_ways():
    graph = traced()
    page = plot_graph(graph).html("A < B")
    assert "<title>A &lt; B</title>" in page
    assert "://" not in page
    assert "<script" not in page
    for node in graph.nodes:
        section = re.search(rf'<section id="about-{node.index}">(.*?)</section>', page, re.DOTALL)
        assert section is not None
        assert f'<a href="#about-{node.index}">' in page
        for tensor in (node.value, node.adjoint):
            assert tensor is None or all(f"{number:.6g}" in section[1] for number in tensor.reshape(-1).tolist())


def test_every_box_and_arrow_is_there(tmp_path):
    graph = traced()
    drawing = plot_graph(graph)
    kinds = [type(artist).__name__ for artist in drawing.figure.axes[0].patches]
    assert kinds.count("FancyBboxPatch") == len(graph.nodes)
    assert kinds.count("FancyArrowPatch") == len(graph.edges)
    for name in ("a.svg", "a.png", "a.html"):
        assert drawing.save(tmp_path / name).stat().st_size > 1000


def test_a_hostile_name_stays_text():
    box = plot.Box("<script>$x$", ("a & b",), details=(("v", "<b>1</b>"),))
    drawing = plot.graph([box], [])
    assert "<script>" not in drawing.html()
    assert "<b>" not in drawing.html()
    ElementTree.fromstring(drawing.svg())


def test_the_figures_of_graphs_draw(tmp_path):
    chosen = figures.select(figures.collect(), ["Z5.16", "Z2.6"])
    assert [path.name for path in figures.plot_all(chosen, tmp_path, "html")] == ["Z2.6.html", "Z5.16.html"]


@pytest.mark.parametrize(
    "bad",
    [
        lambda: plot.graph([], []),
        lambda: plot.graph([plot.Box("a")] * 501, []),
        lambda: plot.graph([plot.Box("a")] * 2, [(0, 1), (1, 0)]),
        lambda: plot.graph([plot.Box("a")], [(0, 0)]),
        lambda: plot.graph([plot.Box("a")], [(0, 1)]),
    ],
)
def test_a_mistake_is_one_line(bad):
    with pytest.raises(UserError) as caught:
        bad()
    assert "\n" not in str(caught.value)
