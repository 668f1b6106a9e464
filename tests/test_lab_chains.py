"""The page on Markov chains: what it shows, against powers of matrices, sums over all paths, and plain loops."""

import base64
import itertools
import math
import random
import re

import numpy as np
import pytest

from quoin.errors import UserError
from quoin.lab.parts import exhibits_of
from quoin.lab.parts.own_chain import hidden_states, letter_chain

EXHIBITS = {each.slug: each for each in exhibits_of("chains")}


def numbers(slug, **state):
    return [number.value for number in EXHIBITS[slug].view(state).numbers]


def matrix_of(edges):
    weights = np.array(edges, dtype=float).reshape(5, 5)
    for i in range(5):
        if not weights[i].any():
            weights[i, i] = 1
    return weights / weights.sum(axis=1, keepdims=True)


NOTES = EXHIBITS["walk"].initial()["edges"]
PERIODIC = EXHIBITS["walk"].surprise_at["edges"]
CASES = [(NOTES, 30), (NOTES, 0), (PERIODIC, 30), (PERIODIC, 31), ([0] * 25, 5), ([1] * 25, 60)]
CASES += [([random.Random(s + i).randrange(2) for i in range(25)], 7 * s) for s in (1, 2, 3)]


@pytest.mark.parametrize(("edges", "time"), CASES)
def test_distance_to_the_stationary_distribution(edges, time):
    matrix = matrix_of(edges)
    now = np.linalg.matrix_power(matrix, time)[0]
    settled = np.mean([np.linalg.matrix_power(matrix, 5000 + k)[0] for k in range(60)], axis=0)
    distance, mass, _ = numbers("walk", edges=edges, time=time)
    assert distance == pytest.approx(abs(now - settled).sum() / 2, abs=1e-6)
    assert mass == pytest.approx(1)


def test_a_periodic_chain_goes_round_for_ever():
    assert numbers("walk")[0] < 0.001
    assert all(numbers("walk", edges=PERIODIC, time=time)[0] > 0.5 for time in (30, 31, 32, 60))


def test_columns_that_sum_to_one_make_mass():
    assert numbers("walk", time=1, printed=True)[1] == pytest.approx(1.2)
    for time in (0, 1, 2, 5):
        expected = np.linalg.matrix_power(matrix_of(NOTES).T, time)[0].sum()
        assert numbers("walk", time=time, printed=True)[1] == pytest.approx(expected)


def by_all_paths(colors):
    """P(next dark | before, now) of the notes' chain, by all 125 paths."""
    matrix = matrix_of(NOTES)
    start = np.linalg.matrix_power(matrix, 4000)[0]
    table = np.zeros((2, 2, 2))
    for a, b, c in itertools.product(range(5), repeat=3):
        table[colors[a], colors[b], colors[c]] += start[a] * matrix[a, b] * matrix[b, c]
    return table


@pytest.mark.parametrize("colors", [(0, 0, 0, 1, 1), (0,) * 5, (1,) * 5, (1, 0, 1, 0, 0), (0, 1, 1, 1, 0)])
def test_colors_of_a_chain(colors):
    table = by_all_paths(colors)
    pasts = table.sum(axis=2)
    gap, after_light, after_dark = numbers("not-markov", colors=list(colors))
    given = {(x, y): table[x, y, 1] / pasts[x, y] for x in range(2) for y in range(2) if pasts[x, y] > 1e-9}
    # against P[next | now] of the marginal chain, or between two pasts: the page's number is the largest between pasts
    expected = max((abs(given[0, y] - given[1, y]) for y in range(2) if (0, y) in given and (1, y) in given), default=0)
    assert gap == pytest.approx(expected, abs=1e-9)
    for shown, past in ((after_light, (0, 0)), (after_dark, (1, 0))):
        if past in given:
            assert float(shown) == pytest.approx(given[past], abs=6e-4)
        else:
            assert shown == "none"
    assert numbers("not-markov", colors=list(colors), history=True)[0] == pytest.approx(0, abs=1e-9)


def test_the_notes_function_is_not_markov():
    assert numbers("not-markov", colors=[0, 0, 0, 1, 1])[1:] == ["0.208", "0.167"]  # 5/24 and 1/6
    assert numbers("not-markov", colors=[0, 0, 0, 1, 1], printed="DE53")[1:] == ["1.00", "1.00"]


def test_the_printed_matrix_is_no_chains():
    view = EXHIBITS["not-markov"].view({"printed": "DE52"})
    found = re.findall("Σ ([0-9.]+)", view.picture.svg())
    assert [float(each) for each in found] == pytest.approx([1.2, 1.2, 0.7, 1.2, 0.7])
    assert "no chain" in view.note
    assert "Σ" not in EXHIBITS["not-markov"].view({}).picture.svg()


def forward_backward(values, stay):
    b = [[math.exp(-((v - m) ** 2) / 2) for m in (-1, 1)] for v in values]
    step = [[stay, 1 - stay], [1 - stay, stay]]
    alpha, beta = [[0.5 * b[0][i] for i in range(2)]], [[1.0, 1.0]]
    for row in b[1:]:
        alpha.append([row[j] * sum(alpha[-1][i] * step[i][j] for i in range(2)) for j in range(2)])
    for row in reversed(b[1:]):
        beta.insert(0, [sum(step[i][j] * row[j] * beta[0][j] for j in range(2)) for i in range(2)])
    joint = [[a[i] * c[i] for i in range(2)] for a, c in zip(alpha, beta)]
    return [row[1] / sum(row) for row in joint], b, step


DEFAULT = [value for _, value in EXHIBITS["what-was-hidden"].initial()["seen"]]
PULLED = [value for _, value in EXHIBITS["what-was-hidden"].surprise_at["seen"]]
RANDOM = [[random.Random(seed).uniform(-3, 3) for _ in range(20)] for seed in range(3)]


@pytest.mark.parametrize(("values", "stay"), [(DEFAULT, 0.8), (PULLED, 0.8), *zip(RANDOM, (0.5, 0.99, 0.7))])
def test_hidden_states(values, stay):
    windy, b, step = forward_backward(values, stay)
    shown, differ, _ = numbers("what-was-hidden", seen=[[d, v] for d, v in enumerate(values)], stay=stay)
    assert shown == pytest.approx(windy[7], abs=1e-9)
    score, back = [math.log(0.5 * b[0][i]) for i in range(2)], []
    for row in b[1:]:
        ways = [[score[i] + math.log(step[i][j]) for i in range(2)] for j in range(2)]
        back.append([max(range(2), key=way.__getitem__) for way in ways])
        score = [max(way) + math.log(row[j]) for j, way in enumerate(ways)]
    path = [max(range(2), key=score.__getitem__)]
    for arrows in reversed(back):
        path.insert(0, arrows[path[0]])
    assert differ == sum((w > 0.5) != bool(s) for w, s in zip(windy, path))


def test_one_point_changes_the_day_before():
    before, after = (
        numbers("what-was-hidden")[0],
        EXHIBITS["what-was-hidden"].view({"seen": [[d, v] for d, v in enumerate(PULLED)]}).numbers[0].value,
    )
    assert before > 0.7
    assert after < 0.5


@pytest.mark.parametrize("process", ["Brownian motion", "random walk"])
@pytest.mark.parametrize("zoom", [1, 10, 100, 1000])
@pytest.mark.parametrize("drift", [-4.0, 0.0, 2.7])
def test_the_spread_is_the_root_of_time_at_every_zoom(process, zoom, drift):
    spread, inside, drifted = numbers("diffuse", zoom=zoom, drift=drift, process=process)
    assert 0.5 < spread < 1.6  # of 30 paths: chi-squared, wider than one in ten thousand
    assert inside > 0.8
    assert drifted == pytest.approx(abs(drift) / math.sqrt(zoom))


@pytest.mark.parametrize("state", [{"drift": 2.0}, {"process": "random walk", "drift": -1.0, "zoom": 100}])
def test_the_code_of_diffuse(state, capsys):
    view = EXHIBITS["diffuse"].view(state)
    exec(view.code, {})
    assert float(capsys.readouterr().out) == pytest.approx(view.numbers[0].value, rel=1e-6)


def test_letters_as_a_chain():
    names, chain = letter_chain("abab abac")
    assert names == ["a", "b", "c"]
    # the ring a b a b a b a c: a is followed by b, b, b, c
    assert np.allclose(chain.transition.numpy(), [[0, 0.75, 0.25], [1, 0, 0], [1, 0, 0]])
    rate, alone = numbers("your-letters", text="abab abac")
    quarter = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    assert rate == pytest.approx(quarter / 2)
    assert alone == pytest.approx(-sum(p * math.log2(p) for p in (1 / 2, 3 / 8, 1 / 8)))
    with pytest.raises(UserError, match="at least two letters"):
        EXHIBITS["your-letters"].view({"text": "aaaa"})


def test_a_series_of_the_readers_own():
    values = [0.0, 0.1, -0.1] * 20 + [5.0, 5.1, 4.9] * 20
    content = "x\n" + "\n".join(map(str, values))
    view = EXHIBITS["your-series"].view({"file": base64.b64encode(content.encode()).decode()})
    assert "120 rows" in view.note
    found = hidden_states(tuple(values), 2)
    assert found.path.tolist() == [0] * 60 + [1] * 60
    assert found.means.tolist() == pytest.approx([0, 5], abs=0.01)
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(found.log_probs))
    with pytest.raises(UserError, match="a series that changes"):
        EXHIBITS["your-series"].view({"file": base64.b64encode(b"x\n1\n1\n1\n").decode()})
