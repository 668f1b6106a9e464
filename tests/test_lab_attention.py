"""What the page on attention shows, against softmax, kernel sums and alignments in numpy and plain Python."""

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax

from lab_states import exhibit_named, states, tiny_run
from quoin.data import keyed_generator
from quoin.errors import UserError
from quoin.lab import attention
from quoin.lab.parts.smoothing_windows import KERNELS
from quoin.runs import Run
from quoin.tasks.translation import translate

ASK, ROOT, SEEN, WINDOW, DATES, YOURS = (
    exhibit_named("attention", slug)
    for slug in ("ask", "why-the-root", "what-may-be-seen", "a-window-on-a-line", "who-looks-where", "your-sentence")
)


@pytest.mark.parametrize("state", states(ASK))
def test_asking_is_a_softmax(state):
    given = ASK.parse(state)
    weights = softmax(given["sharpness"] * attention.KEYS.numpy() @ np.array(given["query"]))
    largest, entropy = (number.value for number in ASK.view(state).numbers)
    assert largest == pytest.approx(weights.max(), rel=1e-4)
    assert entropy == pytest.approx(-(weights * np.log(np.maximum(weights, 1e-300))).sum(), abs=1e-4)


def test_the_root_keeps_the_weights_apart():
    shown = {(d, p): ROOT.view({"d": d, "printed": p}).numbers[0].value for d in (2, 64, 512) for p in (False, True)}
    assert shown[64, True] > 0.85
    assert shown[512, True] > shown[64, True] > shown[2, True]
    # 200 largest weights with a standard deviation of at most 1/4 each: 0.1 is over four standard errors
    assert max(shown[d, False] for d in (2, 64, 512)) - min(shown[d, False] for d in (2, 64, 512)) < 0.1


def expected_answers(words, length, causal, printed):
    x = np.stack([torch.randn(16, generator=keyed_generator("word", word)).numpy() for word in words]).astype(float)
    scores, letters = x @ x.T / 4, np.array([len(word) for word in words], dtype=float)
    rows = []
    for i, row in enumerate(scores):
        seen = min(length, i + 1) if causal else length
        if printed:
            weights = softmax(row)
            weights[seen:] = -1e6
        else:
            weights = np.concatenate([softmax(row[:seen]), np.zeros(len(row) - seen)])
        rows.append(weights @ letters)
    return rows


@pytest.mark.parametrize("state", states(SEEN))
@pytest.mark.parametrize("words", ["the dog bites a man of letters", "yes no", "a bb ccc dddd eeeee ffffff ggggggg hh"])
def test_what_is_masked_has_no_weight(state, words):
    given, said = SEEN.parse({**state, "words": words}), words.split()
    expected = expected_answers(said, min(round(given["wall"][0]), len(said)), given["causal"], given["printed"])
    view = SEEN.view({**state, "words": words})
    assert view.numbers[0].value == pytest.approx(expected[-1], rel=1e-4)
    assert given["printed"] or view.numbers[1].value == pytest.approx(1, abs=1e-5)
    assert view.reached == (min(expected) < -1e5)


def test_a_mask_in_the_weights_answers_minus_millions():
    answer = SEEN.view({"printed": True}).numbers[0].value
    assert answer == pytest.approx(-1e6 * (len("of") + len("letters")), rel=1e-5)
    assert not SEEN.view({"printed": True, "wall": [8, 0]}).reached  # nothing is hidden, so nothing goes wrong
    for words in ("alone", "", "one two three four five six seven eight nine"):
        with pytest.raises(UserError, match="expected 2 to 8 words"):
            SEEN.view({"words": words})


def plain_kernel(name, u):
    forms = {
        "boxcar": float(u <= 1),
        "triangular": max(1 - u, 0.0),
        "Epanechnikov": max(1 - u * u, 0.0),
        "Gaussian": math.exp(-u * u / 2),
    }
    return forms[name]


def plain_regression(x, points, name, bandwidth):
    weights = [plain_kernel(name, abs(x - a) / bandwidth) for a, _ in points]
    if sum(weights) == 0:
        return None
    return sum(weight * b for weight, (_, b) in zip(weights, points)) / sum(weights)


@pytest.mark.parametrize("state", states(WINDOW))
@pytest.mark.parametrize("name", list(KERNELS))
def test_a_window_is_a_weighted_mean(state, name):
    given = WINDOW.parse({**state, "kernel": name})
    view = WINDOW.view({**state, "kernel": name})
    x, points, bandwidth = given["query"][0], given["points"], given["bandwidth"]
    form = "triangular" if given["printed"] and name == "Epanechnikov" else name
    expected = plain_regression(x, points, form, bandwidth)
    if expected is None and given["printed"] and name == "boxcar":
        assert math.isnan(view.numbers[0].value)
    elif expected is None:
        assert view.numbers[0].value == min(points, key=lambda point: abs(point[0] - x))[1]
    else:
        assert view.numbers[0].value == pytest.approx(expected, rel=1e-6)


def test_leaving_one_out():
    points, errors = attention.POINTS, []
    for i, (x, y) in enumerate(points):
        errors.append((plain_regression(x, points[:i] + points[i + 1 :], "Gaussian", 0.8) - y) ** 2)
    shown = WINDOW.view({"kernel": "Gaussian"}).numbers[1].value
    assert shown == pytest.approx(sum(errors) / len(errors), rel=1e-6)


def test_the_printed_window():
    assert math.isnan(WINDOW.view({"printed": True}).numbers[0].value)
    same = {"query": [1.2, 0], "printed": True}
    assert WINDOW.view({**same, "kernel": "Epanechnikov"}).numbers[0].value == pytest.approx(
        WINDOW.view({"query": [1.2, 0], "kernel": "triangular"}).numbers[0].value
    )
    assert not WINDOW.view({"kernel": "Gaussian", "printed": True}).reached  # printed as it is


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Run:
    place = tmp_path_factory.mktemp("dates")
    return tiny_run("translate-dates", place, {"num_pairs": 40, "hidden_dim": 8, "embed_dim": 4, "epochs": 1})


def test_an_alignment_is_that_of_the_decoder(translator):
    date = translator.load_task().corpus.test.pairs.sources[0]
    view = DATES.view({"date": date, "character": 3}, models={"run": translator})
    largest, probability, letters = (number.value for number in view.numbers)
    assert 1 / (len(date) + 1) <= largest <= 1
    assert 0 <= letters <= 1 + 1e-6
    # the probabilities of all characters multiply to that of the translation, as the recipe's own search says it
    found = attention.align(translator, date)
    source = translator.data_info.source_tokenizer.encode(date)[None]
    model, lengths = translator.model, torch.tensor([source.shape[1]])
    whole = translate(model, source, lengths, num_beams=1, max_tokens=len(found.target)).log_probs
    assert float(found.probabilities.log().sum()) == pytest.approx(float(whole), abs=1e-3)
    assert probability == pytest.approx(float(found.probabilities[2]))
    assert torch.allclose(found.weights.sum(dim=-1), torch.ones(len(found.target)), atol=1e-5)
    with pytest.raises(UserError):
        DATES.view({"date": " "}, models={"run": translator})


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> Run:
    place = tmp_path_factory.mktemp("text")
    (place / "text.txt").write_text("the cat sat on the mat. " * 40)
    sizes = {"embed_dim": 8, "num_heads": 2, "num_layers": 2, "epochs": 1, "context_length": 16}
    return tiny_run("transformer-lm", place, {"data": f"text:{place / 'text.txt'}", **sizes})


@pytest.mark.parametrize("character", [1, 9, 60])
def test_every_head_of_your_sentence(transformer, character):
    view = YOURS.view({"sentence": "the cat sat.", "character": character}, models={"run": transformer})
    largest = view.numbers[0].value
    seen = min(character, 12)
    assert 1 / seen - 1e-6 <= largest <= 1 + 1e-6
    assert view.picture.svg().count("<image") == 4
    with pytest.raises(UserError):
        YOURS.view({"sentence": "häuser"}, models={"run": transformer})
