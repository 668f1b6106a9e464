"""What the page on positions shows, against permutations, complex numbers and sines in numpy."""

import cmath
import math

import numpy as np
import pytest
import torch

from lab_states import exhibit_named, states, tiny_run
from quoin.errors import UserError
from quoin.lab import positions
from quoin.runs import Run

SHUFFLE, CLOCKS, TURN, YOURS = (
    exhibit_named("positions", slug) for slug in ("shuffle-the-words", "clocks", "turn-both", "your-distances")
)
ORDERS = [[1, 2, 3, 4], [4, 3, 2, 1], [2.2, 1.1, 3.9, 3.2], [1.5, 8.5, 1.4, 0.5]]


def placed(xs):
    return [[x, 0.0] for x in xs] + [[float(i), 0.0] for i in range(len(xs) + 1, 9)]


def attend(x, layer):
    """Two heads in numpy, from the layer's weights."""
    heads = []
    for head in layer.head_projections():
        q, k, v = (f(torch.from_numpy(x)).detach().numpy() for f in head)
        scores = q @ k.T / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(weights / weights.sum(axis=-1, keepdims=True) @ v)
    return (
        np.concatenate(heads, axis=-1) @ layer.out_proj.weight.detach().numpy().T + layer.out_proj.bias.detach().numpy()
    )


@pytest.mark.parametrize("xs", ORDERS)
@pytest.mark.parametrize("kind", positions.KINDS)
def test_only_positions_see_the_order(xs, kind):
    state = {"sentence": "dog bites man again", "places": placed(xs), "positions": kind}
    view, moved = SHUFFLE.view(state), xs != sorted(xs)
    change = view.numbers[0].value
    unseen = kind == "none" or (kind == "ALiBi" and xs == sorted(xs, reverse=True))  # a mirror keeps all distances
    assert (change > 1e-3) == (moved and not unseen)
    assert view.reached == (moved and unseen)


def test_the_outputs_are_those_of_attention():
    words = ["dog", "bites", "man"]
    x = np.stack(
        [torch.randn(16, generator=positions.keyed_generator("word", word)).double().numpy() for word in words]
    )
    expected = attend(x, positions.self_attention("none"))
    assert SHUFFLE.view().numbers[1].value == pytest.approx(np.abs(expected).max(), rel=1e-9)
    for sentence in ("alone", "a b c d e f g h i"):
        with pytest.raises(UserError, match="expected 2 to 8 words"):
            SHUFFLE.view({"sentence": sentence})


@pytest.mark.parametrize("state", states(CLOCKS))
def test_products_depend_on_the_offset_alone(state):
    given = CLOCKS.parse(state)
    k, d = round(given["offset"][0]), given["d"]
    view = CLOCKS.view(state)
    expected = sum(math.cos(k * 10000 ** (-2 * i / d)) for i in range(d // 2))
    assert view.numbers[0].value == pytest.approx(expected, abs=1e-9)
    assert view.numbers[1].value == (positions.TOKENS - d if given["printed"] else 0)


def test_a_printed_position_ends_at_d():
    without = [m for m in range(64) if CLOCKS.view({"printed": True, "position": m}).reached]
    assert without == [0, *range(9, 64)]


def turned_score(query, key, m, n, printed):
    q, k = complex(*query), complex(*key)
    sign = -1 if printed else 1
    q, k = q * cmath.exp(1j * sign * m), k * cmath.exp(1j * sign * n)
    return (q * k.conjugate()).real


@pytest.mark.parametrize("state", states(TURN))
def test_turning_both_is_a_complex_product(state):
    given = TURN.parse(state)
    query, key, offset, printed = given["query"], given["key"], given["offset"], given["printed"]
    score, start, _ = (number.value for number in TURN.view(state).numbers)
    assert score == pytest.approx(turned_score(query, key, given["m"], given["m"] + offset, printed), abs=1e-9)
    assert start == pytest.approx(turned_score(query, key, 0, offset, printed), abs=1e-9)
    assert score == pytest.approx(start, abs=1e-9)
    mirrored = TURN.view({**state, "offset": -offset, "printed": not printed}).numbers[0].value
    assert score == pytest.approx(mirrored, abs=1e-9)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> Run:
    place = tmp_path_factory.mktemp("text")
    (place / "text.txt").write_text("the cat sat on the mat. " * 40)
    sizes = {"embed_dim": 8, "num_heads": 2, "num_layers": 1, "epochs": 1, "context_length": 16}
    return tiny_run("transformer-lm", place, {"data": f"text:{place / 'text.txt'}", **sizes})


def test_distances_of_your_heads(transformer):
    sentence = "the cat sat."
    view = YOURS.view({"sentence": sentence}, models={"run": transformer})
    (maps,) = positions.attention_maps(transformer.model, transformer.trained.tokenizer.encode(sentence)[None])
    offsets = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    expected = (maps.weights.numpy() * offsets).sum(axis=-1).mean(axis=-1)
    assert sorted(number.value for number in view.numbers) == pytest.approx(sorted(expected), rel=1e-4)
    with pytest.raises(UserError):
        YOURS.view({"sentence": "t"}, models={"run": transformer})
