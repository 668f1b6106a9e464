"""Marks of the lab that stand for a number: each lies on its curve, or where the mathematics puts it; and the sentences
that come with a state."""

import numpy as np
import pytest
from scipy import special, stats

from lab_picture import Read
from lab_states import exhibit_named


def view(page, slug, **state):
    return exhibit_named(page, slug).view(state)


def picture(page, slug, **state):
    return Read(view(page, slug, **state).picture.svg())


# Page, exhibit, a state, and frame and colour of a curve on which marks of this colour lie.
ON_THEIR_CURVE = [
    ("regularisation", "wiggle", {"degree": 7}, 1, "model", 1),
    ("regularisation", "wiggle", {"degree": 7}, 1, "ink", 1),
    ("normalisation", "epsilon", {"std": 0.004}, 0, "model", 1),
    ("expressivity", "fold", {"k": 6, "pieces": 9}, 1, "model", 1),
    ("expressivity", "polynomials-stick", {"width": 16}, 1, "model", 1),
    ("expressivity", "draw-a-curve", {}, 0, "model", 7),
    ("tensors", "unreachable-rank", {"epsilon": 0.03}, 4, "model", 1),
    ("tensors", "unreachable-rank", {"epsilon": 0.03}, 4, "change", 1),
    ("initialisation", "a-thousand-in-the-exponent", {"size": 30.0, "x": [20.0, 0.0]}, 0, "model", 1),
    ("initialisation", "a-thousand-in-the-exponent", {"size": 30.0, "x": [20.0, 0.0]}, 1, "model", 1),
    *(("classification", "how-far-apart", {"q": [0.6, 0.0]}, 0, f"series-{number}", 1) for number in (1, 2, 3, 5, 6)),
    ("classification", "margins", {}, 1, "model", 1),
    ("classification", "decision", {"threshold": [0.51, 0.0]}, 1, "model", 1),
    ("latent", "one-peak-or-two", {"apart": [2.5, 0.0]}, 0, "model", 0),
]


@pytest.mark.parametrize(("page", "slug", "state", "number", "role", "least"), ON_THEIR_CURVE)
def test_a_mark_lies_on_its_curve(page, slug, state, number, role, least):
    read = picture(page, slug, **state)
    curve = next(each.points for each in read.marks(number, role, "path"))
    dots = [each.points[0] for each in read.marks(number, role, "circle")]
    assert len(dots) >= least
    order = curve[:, 0].argsort(kind="stable")
    for x, y in dots:
        # on the sheet, where the lines between the points are straight
        away = np.hypot(curve[:, 0] - x, curve[:, 1] - y).min()
        assert min(away, abs(np.interp(x, *curve[order].T) - y)) <= 1.6
        left, top, width, height = read.frames[number].box
        assert left - 0.1 <= x <= left + width + 0.1
        assert top - 0.1 <= y <= top + height + 0.1


def test_the_peaks_of_two_hills_are_the_highest_points_around():
    read = picture("latent", "one-peak-or-two", apart=[2.0, 0.0], sigma=1.0)
    curve = read.values(0, "model")[0]
    peaks = [points[0] for points in read.values(0, "change", "circle")]
    tops = [b for a, b, c in zip(curve, curve[1:], curve[2:]) if b[1] > max(a[1], c[1])]
    assert len(peaks) == 2
    assert sorted(x for x, _ in peaks) == pytest.approx([-tops[-1][0], tops[-1][0]], abs=0.15)
    for x, y in peaks:
        assert y == pytest.approx(np.interp(x, *curve.T), abs=0.004)


@pytest.mark.parametrize("sharpness", [0.5, 4.0])
def test_an_answer_is_the_mean_of_the_values_by_the_softmax_of_the_scores(sharpness):
    query = np.array([0.7, -0.3])
    read = picture("attention", "ask", query=query.tolist(), sharpness=sharpness)
    keys, values = (np.concatenate(read.values(number, "ink", "circle")) for number in (0, 1))
    weights = special.softmax(sharpness * keys @ query)
    (answer,) = (points[0] for points in read.values(1, "model", "circle"))
    assert answer == pytest.approx(weights @ values, abs=0.02)
    for number, rows in ((0, keys), (1, values)):
        lines = read.marks(number, "model", "path")
        assert [each.width for each in lines] == pytest.approx(0.5 + 11 * weights, abs=0.2)
        ends = [read.frames[number].value(each.points) for each in lines]
        begin = query if number == 0 else answer
        assert np.allclose([each[0] for each in ends], begin, atol=0.02)
        assert np.allclose([each[1] for each in ends], rows, atol=0.02)


def test_the_weights_of_a_window_and_its_answer():
    state = {"query": [3.3, 0.0], "kernel": "Gaussian", "bandwidth": 0.9}
    read = picture("attention", "a-window-on-a-line", **state)
    points = np.array(exhibit_named("attention", "a-window-on-a-line").initial()["points"])
    weights = special.softmax(-((points[:, 0] - 3.3) ** 2) / (2 * 0.81))
    bars = [(np.mean(each[:, 0]), each[0, 1]) for each in read.values(1, "model", "rect")]
    assert np.array(bars) == pytest.approx(np.stack([points[:, 0], weights], 1), abs=0.015)
    (diamond,) = read.values(0, "model", "polygon")
    assert diamond.mean(0) == pytest.approx((3.3, weights @ points[:, 1]), abs=0.02)
    for line, point in zip(read.values(0, "model")[1:], points[weights > 0], strict=True):
        assert np.allclose(line, [(3.3, weights @ points[:, 1]), point], atol=0.02)


def test_a_bet_moves_by_its_gradient():
    logits = np.array([0.5, 1.5, -1.0])
    state = {name: [place, height] for place, (name, height) in enumerate(zip(("cat", "chicken", "dog"), logits))}
    read = picture("classification", "bet", **state, temperature=2.0, lift=1.0)
    p = special.softmax((logits + 1) / 2)
    slope = p - [0, 1, 0]
    tops = [max(each[:, 1], key=abs) for each in read.values(0, "model", "rect")]
    assert tops == pytest.approx(logits + 1, abs=0.05)
    for place, (start, tip) in enumerate(read.arrows(0, "change")):
        height = logits[place] + 1
        assert np.allclose(
            [start, tip], [(place + 0.36, height), (place + 0.36, height - 2.5 * slope[place])], atol=0.05
        )
    corners = np.array([[0, 0], [0.5, np.sqrt(0.75)], [1, 0]])
    ((dot,),) = read.values(1, "model", "circle")
    assert dot == pytest.approx(p @ corners, abs=0.01)
    ((start, tip),) = read.arrows(1, "change")
    after = special.softmax((logits + 1) / 2 - slope) @ corners
    assert np.allclose([start, tip], [p @ corners, after], atol=0.01)
    ((truth,),) = read.values(1, "ink", "circle")
    assert truth == pytest.approx(corners[1], abs=0.01)


def test_where_a_chain_is_and_where_it_would_stay():
    edges = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 1, 1], [1, 0, 0, 0, 1]])
    read = picture("chains", "walk", edges=edges.ravel().tolist(), time=7)
    P = edges / edges.sum(1, keepdims=True)
    now, settled = np.linalg.matrix_power(P, 7)[0], np.linalg.matrix_power(P, 4000)[0]
    for role, expected, aside in (("model", now, -0.18), ("faint", settled, 0.18)):
        bars = read.values(2, role, "rect")
        assert [each[0, 1] for each in bars] == pytest.approx(expected, abs=0.01)
        assert [each[:, 0].mean() for each in bars] == pytest.approx(np.arange(5) + aside, abs=0.01)


def test_a_shuffled_word_is_joined_to_its_place():
    places = [[3.0, 0.0], [1.0, 0.0], [2.0, 0.0], *([each, 0.0] for each in range(4, 9))]
    read = picture("positions", "shuffle-the-words", places=places, positions="none")
    lines = [*read.values(0, "model")]
    # from each word's output, above, to where the word is now: at heights of the sheet
    assert sorted(tuple(line[:, 0].round(2)) for line in lines) == [(1, 3), (2, 1), (3, 2)]
    assert all(line[:, 1] == pytest.approx([338, 190], abs=0.2) for line in lines)
    changed = picture("positions", "shuffle-the-words", places=places, positions="sinusoidal")
    assert changed.values(0, "change")
    assert not read.values(0, "change")


def test_letters_stand_in_the_middle_of_their_bits():
    text = "abracadabra"
    read = picture("information", "four-ways", text=text)
    for number in range(4):
        areas = [(each.points[:, 0].min(), each.points[:, 0].max()) for each in read.marks(number, tag="polygon")]
        left, top, _, height = read.frames[number].box
        assert areas[0][0] == pytest.approx(left, abs=0.11)
        here = [each for each in read.texts() if len(each.words) == 1 and top < each.at[1] < top + height]
        for letter, (low, high) in zip(text, areas, strict=True):
            if high - low > 8.2:
                near = [each.words for each in here if abs(each.at[0] - (low + high) / 2) < 1]
                assert near == [letter]


def test_each_interval_is_the_chosen_part_of_the_one_above():
    read = picture("information", "into-the-interval", text="abacab", step=3)
    p = {"a": 1 / 2, "b": 1 / 3, "c": 1 / 6}
    frames = [number for number in range(len(read.frames)) if read.marks(number, tag="polygon")]
    assert len(frames) == 4
    for number in frames:
        parts = [read.frames[number].value(each.points)[:, 0] for each in read.marks(number, tag="polygon")]
        assert [np.ptp(each) for each in parts] == pytest.approx(list(p.values()), abs=0.002)
    joins = [number for number in range(len(read.frames)) if read.values(number, "hand", "path")]
    edges = np.cumsum([0, *p.values()])
    for number, letter in zip(joins, "aba", strict=True):
        at = "abc".index(letter)
        lines = read.values(number, "hand", "path")
        assert np.allclose(lines, [[(edges[at], 1), (0, 0)], [(edges[at + 1], 1), (1, 0)]], atol=0.02)


@pytest.mark.parametrize(("way", "mean"), [("KL(Q‖P)", 0.9), ("KL(P‖Q)", 0.4)])
def test_bars_of_two_bumps_and_what_they_add(way, mean):
    read = picture("information", "two-ways", q=[mean, 1.2], way=way)
    p, q = ([each[0, 1] for each in read.values(0, role, "rect")] for role in ("faint", "model"))
    grid = np.array([each[:, 0].mean() for each in read.values(0, "faint", "rect")])
    p, q = np.array(p[: len(grid)]), np.array(q[: len(grid)])
    normal = stats.norm.pdf(grid, mean, 1.2)
    assert q == pytest.approx(normal / normal.sum(), abs=0.005)
    assert p.sum() == pytest.approx(1, abs=0.03)
    assert p == pytest.approx(p[::-1], abs=0.005)
    added = read.values(1, "model")[0]
    # where both are large enough to be read off
    large = (p > 0.02) & (q > 0.02)
    assert added[large, 1] == pytest.approx(q[large] * np.log2(q[large] / p[large]), abs=0.06)
    assert read.values(1, "faint")[0][:, 0] == pytest.approx(added[:, 0], abs=0.06)
    deviation = next(line for line in read.values(2, "model") if len(line) == 2 and np.ptp(line[:, 1]) < 0.01)
    assert deviation == pytest.approx(np.array([(mean - 1.2, 1.2), (mean + 1.2, 1.2)]), abs=0.03)


def test_the_path_of_stochastic_descent_and_the_line_that_it_ends_with():
    read = picture("linear", "a-step-by-hand", batch=16, rate=[0.2, 0.0], steps=6)
    x, y = np.concatenate(read.values(1, "ink", "circle")).T
    path = read.values(0, "model")[0]
    (w, b), seen = path[0], [path[0]]
    for _ in range(6):
        off = w * x + b - y
        w, b = w - 0.2 * (off * x).mean(), b - 0.2 * off.mean()
        seen.append((w, b))
    assert path == pytest.approx(np.array(seen), abs=0.06)
    line = read.values(1, "model")[0]
    assert line == pytest.approx(np.array([(-3, b - 3 * w), (3, b + 3 * w)]), abs=0.2)
    cross = read.values(0, "ink", "polygon")[0]
    assert cross.mean(0) == pytest.approx(np.polyfit(x, y, 1), abs=0.03)


def test_a_line_through_zero_parts_the_two_classes_of_a_promise():
    read = picture("optimisation", "held-to-its-bound")
    (start, end) = read.values(1, "model")[0]
    assert start == pytest.approx(-end, abs=0.06)
    above, bound = read.values(0, "model")[0], read.values(0, "ink")[0]
    assert above[:, 0] == pytest.approx(range(1, 61), rel=0.01)
    seen = (above[:, 1] > 1e-6) & (bound[:, 1] < 10)
    assert np.all(above[seen, 1] <= bound[seen, 1] * 1.02)


def test_the_edges_of_a_full_tree_join_parents_to_children():
    read = picture("information", "halve-it", weights=[[place, 4] for place in range(8)])
    # eight equal weights: a full tree, all of whose edges lead half as far aside as those above
    edges = [line for line in read.values(1, "faint") if len(line) == 2]
    assert len(edges) == 14
    for level, aside in ((1, 2.0), (2, 1.0), (3, 0.5)):
        at = [line for line in edges if round(-line[1, 1]) == level]
        assert len(at) == 2**level
        assert all(abs(np.diff(line[:, 0])[0]) == pytest.approx(aside, abs=0.02) for line in at)
        assert all(line[0, 1] == pytest.approx(1 - level, abs=0.02) for line in at)
    digits = [text.words for text in read.texts() if text.words in ("0", "1") and text.size == 11]
    assert digits.count("0") == digits.count("1") == 7
    assert set("abcdefgh") <= {text.words for text in read.texts()}


# ---- sentences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "off"), [(-0.05, True), (0.0, False), (0.5, False), (1.0, False), (1.05, True)])
def test_only_a_weight_outside_of_the_chord_is_said_to_leave_it(weight, off):
    assert ("Only λ from 0 to 1" in view("optimisation", "is-it-convex", weight=weight).note) == off


# What some exhibit says of itself in every state, as a word of it.
SAID = {
    ("linear", "the-best-guess"): "No function of X has less",
    ("linear", "a-step-by-hand"): "the last batch",
    ("linear", "yours"): "95%",
    ("classification", "bet"): "bet minus truth",
    ("classification", "how-far-apart"): "convex",
    ("initialisation", "the-bottleneck"): "rounding",
    ("initialisation", "yours"): "√2",
    ("attention", "a-window-on-a-line"): "nearest key",
    ("normalisation", "skip"): "50 blocks of 12 units",
    ("optimisation", "the-map-of-momentum"): "from 1 to 20",
    ("probability", "slice-it"): "correlation",
    ("probability", "pair-them"): "Variances 1 of X and 2 of Y",
    ("information", "four-ways"): "decoded back",
    ("information", "into-the-interval"): "up to",
    ("information", "your-file"): "bytes",
    ("mlp", "where-does-it-fold"): "21 parameters",
    ("tensors", "unreachable-rank"): "2 × 2 × 2",
    ("convolution", "yours"): "An example of ours",
    ("expressivity", "your-curve"): "An example of ours",
    ("probability", "two-columns"): "An example of ours",
    ("normalisation", "train-and-eval"): "An example of ours",
}


@pytest.mark.parametrize(("page", "slug"), list(SAID))
def test_what_is_to_be_known_of_a_picture_is_said_beside_it(page, slug):
    assert SAID[page, slug] in view(page, slug).note
