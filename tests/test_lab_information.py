"""The page on information and coding: what it shows, against numpy, fractions and plain loops."""

import heapq
import itertools
import lzma
import math
import random

import numpy as np
import pytest

from quoin.lab.parts import digits, exhibits_of
from quoin.lab.parts.bumps import GRID, TWO_BUMPS, descended_bump, normal_bars
from quoin.lab.parts.coded_text import coded_sizes, coded_text
from quoin.lab.parts.densities import as_density, with_a_point_hole

EXHIBITS = {each.slug: each for each in exhibits_of("information")}


def numbers(slug, **state):
    return [number.value for number in EXHIBITS[slug].view(state).numbers]


def heap_length(weights):
    """Huffman's mean length: the sum of all joined weights over the sum of the weights."""
    heap, joined = list(weights), 0.0
    heapq.heapify(heap)
    while len(heap) > 1:
        pair = heapq.heappop(heap) + heapq.heappop(heap)
        joined += pair
        heapq.heappush(heap, pair)
    return joined / sum(weights)


def bits(p):
    p = np.asarray(p, dtype=float) / np.sum(p)
    return float(-(p[p > 0] * np.log2(p[p > 0])).sum())


FIBONACCI = [1, 1, 2, 3, 5, 8, 13, 21]
WEIGHTS = [[1, 1, 2, 3, 5, 8, 13, 8], FIBONACCI, [0.1] * 8, [32] + [0.1] * 7]
WEIGHTS += [[random.Random(seed).uniform(0.1, 32) for _ in range(8)] for seed in range(3)]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_mean_length_and_entropy(weights):
    points = [[place, weight] for place, weight in enumerate(weights)]
    mean, entropy, nats = numbers("halve-it", weights=points)
    assert mean == pytest.approx(heap_length(weights))
    assert entropy == pytest.approx(bits(weights))
    assert nats == pytest.approx(bits(weights) * math.log(2))
    assert numbers("halve-it", weights=points, printed=True)[2] == pytest.approx(bits(weights) / math.log(2))
    shannon = numbers("halve-it", weights=points, code="Shannon")[0]
    p = np.array(weights) / sum(weights)
    assert shannon == pytest.approx(float((p * np.ceil(-np.log2(p) - 1e-12)).sum()))
    assert entropy - 1e-9 <= mean <= shannon < entropy + 1


def test_the_rarest_of_fibonaccis_weights_breaks_the_bound():
    view = EXHIBITS["halve-it"].view({"weights": [[i, w] for i, w in enumerate(FIBONACCI)]})
    assert view.reached
    assert "7 &gt; 6.75" in view.picture.svg()  # log2(54) + 1 = 6.755
    assert (
        not EXHIBITS["halve-it"].view({"weights": [[i, w] for i, w in enumerate(FIBONACCI)], "code": "Shannon"}).reached
    )


@pytest.mark.parametrize("text", ["abracadabra", "aaaaaaab", "", "a", "äöü €", "the cat sat on the mat"])
def test_a_text_four_ways(text):
    shown = text or "a"
    arithmetic, huffman, nats = numbers("four-ways", text=text)
    counts = [shown.count(letter) for letter in set(shown)]
    assert arithmetic == pytest.approx(bits(counts), abs=1e-12)
    assert nats == pytest.approx(bits(counts) * math.log(2), abs=1e-12)
    assert huffman == pytest.approx(heap_length(counts) if len(counts) > 1 else huffman)
    found = coded_text(shown)
    assert found.read_back
    assert found.sent["8 bits each"] == 8 * len(shown.encode())
    assert abs(found.sent["context mixing"] - sum(found.bits["context mixing"])) <= 16  # the last bytes of a message
    assert found.sent["arithmetic"] <= math.ceil(sum(found.bits["arithmetic"]) + 1e-6)


def test_huffman_cannot_go_below_a_bit():
    arithmetic, huffman, _ = numbers("four-ways", text="aaaaaaab")
    assert huffman == 1
    assert arithmetic == pytest.approx(0.5436, abs=1e-4)
    assert coded_text("aaaaaaab").bits["arithmetic"][0] == pytest.approx(math.log2(8 / 7))  # a fifth of a bit


@pytest.mark.parametrize(("text", "step"), [("abacab", 0), ("abacab", 6), ("abacab", 12), ("aab", 2), ("xyzzy", 4)])
def test_the_width_is_the_probability(text, step):
    width, cost, word = numbers("into-the-interval", text=text, step=step)
    expected = math.prod(text.count(letter) / len(text) for letter in text[:step])
    assert width == pytest.approx(expected, rel=1e-6)
    assert cost == pytest.approx(-math.log2(expected), abs=1e-6)
    if step:
        low = 0.0
        for letter in reversed(text[:step]):
            below = sum(text.count(other) for other in set(text) if other < letter) / len(text)
            low = below + low * text.count(letter) / len(text)
        number = sum(int(bit) / 2 ** (place + 1) for place, bit in enumerate(word.removeprefix("0.")) if bit in "01")
        assert low - 1e-8 <= number < low + expected + 1e-8


def kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(p > 0, p * np.log2(p / q), 0).sum())


@pytest.mark.parametrize("q", [(1.2, 1.4), (-5, 0.4), (5, 4), (0.3, 2.2), (-2.5, 0.6), (2, 3.3)])
def test_both_divergences(q):
    p = TWO_BUMPS.numpy()
    bars = np.exp(-(((GRID.numpy() - q[0]) / q[1]) ** 2) / 2)
    bars /= bars.sum()
    covering, picking, _ = numbers("two-ways", q=list(q))
    assert covering == pytest.approx(kl(p, bars), rel=1e-6)
    assert picking == pytest.approx(kl(bars, p), rel=1e-6)


def test_one_order_covers_and_one_picks_a_side():
    assert numbers("two-ways", steps=40)[2] < 0.6
    assert numbers("two-ways", steps=40, way="KL(P‖Q)")[2] > 0.95
    assert descended_bump(1.2, 1.4, 40, True)[0] == pytest.approx(0, abs=0.05)  # the moments of P
    for covers in (True, False):
        path = [descended_bump(1.2, 1.4, steps, covers) for steps in range(41)]
        pairs = [(TWO_BUMPS.numpy(), normal_bars(*at).numpy()) for at in path]
        found = [kl(*pair) if covers else kl(*pair[::-1]) for pair in pairs]
        assert found[-1] == pytest.approx(min(found), rel=1e-3)


def test_a_hole_is_infinitely_wrong_one_way_only():
    covering, picking, _ = numbers("two-ways", hole=[2.5, 0])
    assert covering == math.inf
    assert math.isfinite(picking)
    assert math.isnan(numbers("two-ways", hole=[2.5, 0], printed="DE66")[1])  # 0 log 0 is left undefined
    assert math.isfinite(numbers("two-ways")[0])


@pytest.mark.parametrize(("q", "hole"), [((1.2, 1.4), 2.5), ((0.0, 2.6), -1.0), ((5.0, 4.0), 6.6)])
def test_one_point_makes_no_density_infinitely_wrong(q, hole):
    view = EXHIBITS["two-ways"].view({"q": list(q), "hole": [hole, 0], "printed": "ZE35"})
    x = np.linspace(-12, 12, 200_001)
    normal = lambda mean, std: np.exp(-(((x - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))  # noqa: E731
    p = (normal(-2.5, 0.6) + normal(2.5, 0.6)) / 2
    expected = float(np.trapezoid(p * (np.log2(p) - np.log2(normal(*q))), x))
    assert view.numbers[2].text == "yes"  # by the printed rule
    assert f"KL(P‖Q) = {digits(expected)} bits" in view.note
    found = with_a_point_hole(*q, hole)
    assert found.kl == pytest.approx(expected, rel=1e-8)
    assert not found.infinite


TABLES = [[4, 1, 0, 1, 3, 1, 0, 1, 4], [4, 0, 0, 0, 4, 0, 0, 0, 4], [1] * 9, [0] * 9, [0, 0, 0, 0, 0, 0, 0, 0, 3]]
TABLES += [[random.Random(seed).randrange(5) for _ in range(9)] for seed in range(3)]


@pytest.mark.parametrize("table", TABLES)
def test_what_two_variables_share(table):
    weights = np.array(table if any(table) else [1] * 9, dtype=float).reshape(3, 3)
    p = weights / weights.sum()
    shared = bits(p.sum(0)) + bits(p.sum(1)) - bits(p.ravel())
    right, form, joint = numbers("what-do-they-share", table=table)
    assert right == pytest.approx(shared, abs=1e-9)
    assert form == pytest.approx(shared, abs=1e-9)
    assert joint == pytest.approx(bits(p.ravel()), abs=1e-9)
    printed = sum(
        p[i].sum() * p[:, j].sum() * p[i, j] * math.log2(p[i, j] / (p[i].sum() * p[:, j].sum()))
        for i, j in itertools.product(range(3), repeat=2)
        if p[i, j]
    )
    assert numbers("what-do-they-share", table=table, printed="ZE33")[1] == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize("table", TABLES)
def test_a_pair_of_densities_may_have_less_entropy_than_one(table):
    weights = np.array(table if any(table) else [1] * 9, dtype=float).reshape(3, 3)
    p = weights / weights.sum()
    # over cells of side 1/3 a table's entropy falls by log 3 for each coordinate
    h_x, h_y, h_xy = bits(p.sum(1)) - math.log2(3), bits(p.sum(0)) - math.log2(3), bits(p.ravel()) - 2 * math.log2(3)
    right, breach, _ = numbers("what-do-they-share", table=table, printed="ZE32")
    assert breach == pytest.approx(max(h_x, h_y) - h_xy, abs=1e-9)
    assert breach >= -1e-9  # always, on the unit square: none is left only where Y is even given X
    found = as_density(tuple(map(tuple, p.tolist())))
    assert found.breach == pytest.approx(0, abs=1e-9)
    assert (found.h_x, found.h_xy) == pytest.approx((h_x, h_xy), abs=1e-9)
    assert right == pytest.approx(h_x + h_y - h_xy, abs=1e-9)  # what they share is the same for both


def test_the_printed_expectation_is_about_a_tenth():
    right, printed, _ = numbers("what-do-they-share", printed="ZE33")
    assert printed / right == pytest.approx(0.11, abs=0.01)


def test_a_file_of_the_readers_own():
    import base64

    content = b"to be or not to be, that is the question. " * 12
    found = numbers("your-file", file=base64.b64encode(content).decode())
    assert found[2] == pytest.approx(8 * len(lzma.compress(content, format=lzma.FORMAT_ALONE, preset=9)) / len(content))
    assert coded_sizes(content)["bytes' entropy"] == pytest.approx(len(content) * bits(np.bincount(list(content))) / 8)
    assert all(value < 2 for value in found)  # a repeated line costs little in every way that sees repetition
