"""The page on classification: what each exhibit shows, held against numpy, scipy and closed forms."""

import base64
import math
import random

import numpy as np
import pytest
import torch
from scipy import optimize, special, stats

from quoin.errors import UserError
from quoin.lab import classification
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.class_problems import held_out, own_classes, patients, stated

BET = exhibit_of(classification.bet)
MARGINS = exhibit_of(classification.margins)
APART = exhibit_of(classification.how_far_apart)
DECIDE = exhibit_of(classification.decision)
OWN = exhibit_of(classification.yours)


def bets():
    chance = random.Random(1)
    return [
        ([1.5, 1.5, -0.5], 1.0, 0.0),
        ([-3.0, -3.0, -3.0], 0.01, -3.0),
        ([3.0, 3.0, 3.0], 10.0, 3.0),
        *(([chance.uniform(-3, 3) for _ in range(3)], chance.uniform(0.1, 5), 1.5) for _ in range(3)),
    ]


def at(logits):
    return {name: [i, value] for i, (name, value) in enumerate(zip(classification.BEASTS, logits))}


@pytest.mark.parametrize(("logits", "temperature", "lift"), bets())
def test_a_bet_by_scipy(logits, temperature, lift):
    scores = np.array(logits) / temperature
    view = BET.view({**at(logits), "temperature": temperature, "lift": lift})
    assert view.numbers[0].value == pytest.approx(special.logsumexp(scores) - scores[1], abs=1e-9)
    assert view.numbers[1].value == pytest.approx(special.softmax(scores)[1], abs=1e-9)
    assert view.numbers[2].value == pytest.approx(1)
    printed = BET.view({**at(logits), "temperature": temperature, "lift": lift, "printed": True})
    e = np.exp(scores - scores.max())
    assert printed.numbers[0].value == pytest.approx(e[1] / (e[0] + e[1]))
    assert printed.numbers[1].value == pytest.approx((e / np.cumsum(e)).sum())
    assert printed.numbers[1].printed


def test_ties_cool_to_a_half_and_a_lift_moves_nothing():
    cold = BET.view({"temperature": 0.01})
    assert cold.reached
    assert cold.numbers[0].value == pytest.approx(math.log(2))
    assert not BET.view({**at([1.5, 1.6, -0.5]), "temperature": 0.01}).reached
    lifted, before = BET.view({"lift": 2.0}), BET.view()
    assert [each.text for each in lifted.numbers] == [each.text for each in before.numbers]


@pytest.mark.parametrize("m", [-1.0, -4.0, 4.0, 0.3, 2.2, -2.7])
def test_losses_of_a_margin(m):
    view = MARGINS.view({"m": [m, 0.0]})
    assert view.numbers[0].value == pytest.approx(math.log1p(math.exp(-m)))
    assert view.numbers[1].value == pytest.approx(-1 / (1 + math.exp(m)))
    losses = classification.losses_at(torch.tensor([m], dtype=torch.float64))
    assert float(losses["hinge"]) == pytest.approx(max(0, 1 - m))
    assert float(losses["0-1"]) == (m < 0)


def test_the_weight_of_least_loss_and_none_where_classes_are_apart():
    x = np.array([point[0] for point in classification.STRIP])
    y = np.array([2 * point[2] - 1 for point in classification.STRIP])
    found = optimize.minimize_scalar(
        lambda w: np.log1p(np.exp(-2 * w * x * y)).mean(), bounds=(0, 20), method="bounded"
    )
    view = MARGINS.view()
    assert float(view.numbers[2].value) == pytest.approx(found.x, rel=0.05)  # its grid has steps of 4.7%
    apart = MARGINS.view({"points": classification.APART})
    assert apart.numbers[2].text == "none"
    assert apart.reached
    assert not view.reached
    # as printed some weight is least; of 1, 2, 4, ..., 128 the last beats all others
    printed = MARGINS.view({"points": classification.APART, "printed": True})
    assert printed.numbers[2].text == "1"
    assert MARGINS.view({"printed": True}).numbers[2].text == "0"


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.8), (0.0, 0.3), (1.0, 1.0), (0.13, 0.92), (0.5, 0.51), (0.77, 0.2)])
def test_five_distances(p, q):
    P, Q = np.array([p, 1 - p]), np.array([q, 1 - q])
    view = APART.view({"p": [p, 0.0], "q": [q, 0.0]})
    kl = special.rel_entr(P, Q).sum()
    assert view.numbers[0].value == pytest.approx(kl, abs=1e-12)
    assert view.numbers[1].value == pytest.approx(abs(p - q))
    found = classification.distances(torch.tensor(P), torch.tensor(Q))
    expected = (2 * abs(p - q), math.sqrt(2) * abs(p - q), abs(p - q), kl, kl + special.entr(P).sum())
    assert [float(value) for value in found.values()] == pytest.approx(expected, abs=1e-9)
    mixed = special.rel_entr((0.5 + P) / 2, (0.5 + Q) / 2).sum()
    assert view.numbers[2].value == pytest.approx(mixed - kl / 2, abs=1e-12)
    assert view.numbers[2].value <= 1e-12
    printed = APART.view({"p": [p, 0.0], "q": [q, 0.0], "printed": True}).numbers[2]
    assert printed.value == pytest.approx(mixed, abs=1e-12)
    assert printed.printed
    assert (printed.value > 0) == (p != q)


def test_infinite_at_the_edge():
    for p, q in ((0.4, 1.0), (0.4, 0.0), (0.9, 1.0)):
        view = APART.view({"p": [p, 0.0], "q": [q, 0.0]})
        assert view.numbers[0].value == math.inf
        assert view.reached
    assert not APART.view({"p": [1.0, 0.0], "q": [1.0, 0.0]}).reached


@pytest.mark.parametrize(
    ("threshold", "miss", "sharp"),
    [(0.5, 1.0, False), (0.01, 0.1, False), (0.99, 50.0, True), (0.3, 4.0, True), (0.7, 2.0, False), (0.1, 9.0, False)],
)
def test_the_cost_of_a_threshold(threshold, miss, sharp):
    _, x, labels = (each.numpy() if isinstance(each, torch.Tensor) else each for each in patients())
    odds = (stats.norm.pdf(x, 2) / stats.norm.pdf(x, 0)) ** (2 if sharp else 1)
    treated = odds / (1 + odds) > threshold
    cost = (miss * (~treated & (labels == 1)) + (treated & (labels == 0))).mean()
    view = DECIDE.view({"threshold": [threshold, 0.0], "miss": miss, "sharp": sharp})
    assert view.numbers[0].value == pytest.approx(cost)
    assert view.numbers[2].value == pytest.approx(1 / (1 + miss))
    best = odds ** (0.5 if sharp else 1) * miss > 1
    assert view.numbers[1].value == pytest.approx((miss * (~best & (labels == 1)) + (best & (labels == 0))).mean())
    # in expectation, to five standard errors
    cut = 1 + math.log(threshold / (1 - threshold)) / (4 if sharp else 2)
    expected = (miss * stats.norm.cdf(cut, 2) + stats.norm.sf(cut, 0)) / 2
    assert cost == pytest.approx(expected, abs=5 * max(miss, 1) / math.sqrt(4 * 2000))


def test_one_half_is_not_the_best_threshold():
    at_half, at_tenth = DECIDE.view({"miss": 9.0}), DECIDE.view({"miss": 9.0, "threshold": [0.1, 0.0]})
    assert at_half.reached
    assert not at_tenth.reached
    assert at_tenth.numbers[0].value < 0.8 * at_half.numbers[0].value
    x = patients()[1]
    assert stated(x, True).amax(dim=1).mean() > stated(x, False).amax(dim=1).mean()


def csv(rows, header="a,b,kind"):
    text = header + "\n" + "\n".join(",".join(map(str, row)) for row in rows)
    return base64.b64encode(text.encode()).decode()


def test_ones_own_classes():
    chance = np.random.default_rng(1)
    rows = [(chance.normal() + 6 * k, chance.normal() - 6 * k, "xyz"[k]) for k in chance.integers(3, size=80)]
    view = OWN.view({"file": csv(rows)})
    assert view.numbers[0].value == 1
    assert view.numbers[1].value < 0.7
    assert view.numbers[2].value < 0.1
    with pytest.raises(UserError, match="choose softmax"):
        OWN.view({"file": csv(rows), "kind": "SVM"})
    two = [(a, b, 0 if kind == "x" else 1) for a, b, kind in rows]
    for kind in classification.CLASSIFIERS:
        view = OWN.view({"file": csv(two), "kind": kind})
        assert view.numbers[0].value == 1
    given = own_classes(None)
    found = held_out(None, "logistic")
    assert int(found.confusion.sum()) == found.held == len(given.labels) // 4
    assert found.right == pytest.approx(float(found.confusion.diagonal().sum()) / found.held)


def test_tables_without_classes():
    with pytest.raises(UserError, match="two columns of numbers"):
        OWN.view({"file": csv([(1, "u"), (2, "v"), (3, "u")], "a,kind")})
    with pytest.raises(UserError, match="two to six classes"):
        OWN.view({"file": csv([(i, i, f"k{i}") for i in range(9)])})
    with pytest.raises(UserError, match="every class"):
        OWN.view({"file": csv([(1, 2, "u"), (2, 1, "v"), (3, 4, "w")])})
