"""What the page on linear attention shows, against counts, closed forms and loops in numpy."""

import math

import numpy as np
import pytest
import torch

from lab_states import exhibit_named, states, tiny_run
from quoin.errors import UserError
from quoin.lab import linear_attention as page
from quoin.lab.parts import open_runs
from quoin.lab.parts.feature_pictures import estimates, relative_error
from quoin.lab.parts.text_models import queries_and_keys
from quoin.runs import Run

BRACKET, FEATURES, SUMS, RNN, YOURS = (
    exhibit_named("linear-attention", slug)
    for slug in ("move-the-bracket", "how-many-features", "the-sum-that-was-not", "it-is-an-rnn", "your-rank")
)


@pytest.mark.parametrize("state", states(BRACKET))
def test_multiplications_are_counted(state):
    given, d = BRACKET.parse(state), 64
    n, m = given["n"], given["features"]
    ratio, quadratic, linear = (number.value for number in BRACKET.view(state).numbers)
    assert quadratic == n * n * (d + d)
    assert linear == 2 * n * m * d
    assert ratio == pytest.approx(m / n)
    assert BRACKET.view(state).reached == (m > n)


@pytest.mark.parametrize("state", states(FEATURES))
def test_the_error_in_closed_form(state):
    given = FEATURES.parse(state)
    m, length = 2 * round(given["features"][0] / 2), given["length"]
    square = 2 * length**2  # of x + y, at right angles
    expected = {
        "independent": math.expm1(square) / m,
        "hyperbolic": 2 * (math.cosh(square) - 1) / m,
    }
    shown = FEATURES.view(state).numbers[0].value / 100
    if given["projection"] in expected:
        assert shown == pytest.approx(math.sqrt(expected[given["projection"]]), rel=1e-9)
    else:
        assert shown < math.sqrt(expected["independent"])


def test_eight_and_a_hundred_and_seventy_per_cent():
    assert round(FEATURES.view().numbers[0].value) == 8
    assert round(FEATURES.view({"length": 2.0}).numbers[0].value, -1) == 170


@pytest.mark.parametrize("projection", list(page.PROJECTIONS))
def test_what_is_measured_is_near_the_closed_form(projection):
    found = estimates(1024, 0.5, projection, False)
    # 20 samples of 16 pairs: if all pairs of a sample were one, the root of chi-squared/20 lies in (0.4, 1.8) but for
    # one in a million
    assert 0.4 < found.measured / relative_error(0.5, 1024, projection) < 1.8
    angles = np.arange(8) * np.pi / 4
    assert np.allclose(found.exact.numpy(), np.exp(0.25 * np.cos(np.subtract.outer(angles, angles))))
    assert found.opposite == pytest.approx(1, abs=0.1)


def test_cosh_of_each_is_another_kernel():
    """Its mean is cosh⟨x,y⟩: at opposite vectors e^(L²) cosh(L²) times the right value."""
    length = 0.7
    expected = math.exp(length**2) * math.cosh(length**2)
    assert FEATURES.view({"length": length, "printed": True}).numbers[2].value == pytest.approx(expected, rel=0.1)


def plain_linear_attention(queries, keys, values):
    def feature(x):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    rows = []
    for q in feature(np.array(queries)):
        weights = np.array([q @ k for k in feature(np.array(keys))])
        rows.append(weights / weights.sum() @ np.array(values))
    return np.array(rows)


@pytest.mark.parametrize("state", states(SUMS))
def test_the_sum_is_over_keys(state):
    given, values = SUMS.parse(state), np.array(page.VALUES)
    answers = plain_linear_attention([given["query"], *page.OTHERS], page.KEYS, values)
    if given["printed"]:
        answers = np.repeat(values.mean(axis=0)[None], 8, axis=0)
    spread, distance = (number.value for number in SUMS.view(state).numbers)
    assert spread == pytest.approx(max(np.linalg.norm(a - b) for a in answers for b in answers), abs=1e-6)
    assert distance == pytest.approx(np.linalg.norm(answers[0] - values.mean(axis=0)), abs=1e-6)


@pytest.mark.parametrize("tokens", [0, 1, 5, 16])
def test_the_state_does_not_grow(tokens):
    kept, state, difference = (number.value for number in RNN.view({"tokens": tokens}).numbers)
    assert kept == f"{tokens * 2 * 6 * 8:,}"
    assert state == 6 * 7 * 8
    assert difference == 0


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> Run:
    place = tmp_path_factory.mktemp("text")
    (place / "text.txt").write_text("the cat sat on the mat. " * 40)
    sizes = {"embed_dim": 16, "num_heads": 2, "num_layers": 2, "epochs": 1, "context_length": 16}
    return tiny_run("transformer-lm", place, {"data": f"text:{place / 'text.txt'}", **sizes})


def test_the_rank_of_your_head(transformer):
    state = {"sentence": "the cat sat on", "head_number": 3, "features": 4}
    exact, found, error = (number.value for number in YOURS.view(state, models={"run": transformer}).numbers)
    assert found == 4 < exact <= 14
    assert error > 0
    with pytest.raises(UserError):
        YOURS.view({"sentence": "t"}, models={"run": transformer})


def test_queries_and_keys_are_what_the_heads_compare(transformer):
    from quoin.inspect import attention_maps

    queries, keys = queries_and_keys(transformer, "the cat")
    scores = queries @ keys.mT / math.sqrt(8)
    weights = scores.masked_fill(~torch.ones(7, 7, dtype=torch.bool).tril(), -math.inf).softmax(dim=-1)
    maps = attention_maps(transformer.model, transformer.trained.tokenizer.encode("the cat")[None])
    assert torch.allclose(weights, torch.cat([each.weights for each in maps]), atol=1e-5)


def test_a_run_of_ones_own_comes_first(transformer, monkeypatch, tmp_path):
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path))
    assert YOURS.missing  # nothing is trained in this cache
    monkeypatch.setattr(open_runs, "_runs", [tmp_path / "gone", transformer.path])
    assert not YOURS.missing
    view = YOURS.view({"sentence": "the cat sat on", "head_number": 3, "features": 4})
    assert f"{transformer.path.name}: head 3 of 4" in view.note
    given = YOURS.view({"sentence": "the cat sat on", "head_number": 3, "features": 4}, models={"run": transformer})
    assert [each.value for each in view.numbers] == [each.value for each in given.numbers]
