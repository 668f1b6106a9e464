"""What the page on language models shows, against counts in plain Python, products of probabilities and numpy."""

import base64
import math
import re
from collections import Counter

import numpy as np
import pytest
import torch

from lab_states import exhibit_named, states, tiny_run
from quoin.errors import UserError
from quoin.lab.parts import language_reading as reading
from quoin.runs import Run

NEXT, SMOOTHING, TRIM, BEAMS, SUM, LAG, YOURS = (
    exhibit_named("language", slug)
    for slug in (
        *("what-comes-next", "smoothing", "trim-the-bet", "beams-as-a-tree", "does-it-sum-to-one", "how-far-back"),
        "your-text",
    )
)
TEXT = "The end. the cat sat on the mat and the dog sat on the cat. " * 30


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Run]:
    place = tmp_path_factory.mktemp("texts")
    (place / "text.txt").write_text(TEXT)
    data = {"data": f"text:{place / 'text.txt'}", "epochs": 1}
    small = {"embed_dim": 8, "context_length": 16}
    return {
        "ngram": tiny_run("ngram", place / "ngram", {**data, "order": 4}),
        "lstm": tiny_run("lstm-lm", place / "lstm", {**data, **small, "hidden_dim": 8}),
        "transformer": tiny_run("transformer-lm", place / "tf", {**data, **small, "num_heads": 2, "num_layers": 1}),
    }


def plain_bits(run, text):
    """Bits of each character, reading the whole text anew for each of them."""
    trained, found = run.trained, []
    for end, character in enumerate(text):
        tokens = torch.cat([trained.encode_prompt("")[0], trained.tokenizer.encode(text[:end])])
        with torch.no_grad():
            probs = run.model(tokens[None])[0, -1].double().softmax(dim=-1)
        found.append(-math.log2(float(probs[int(trained.tokenizer.encode(character)[0])])))
    return found


@pytest.mark.parametrize("text", ["the cat", "tdg eso", "."])
def test_bits_are_those_of_one_character_at_a_time(runs, text):
    view = NEXT.view({"text": text}, models=runs)
    for number, run in zip(view.numbers, runs.values()):
        bits = plain_bits(run, text)
        assert number.value == pytest.approx(sum(bits) / len(bits), rel=1e-4)
    assert view.reached == (min(number.value for number in view.numbers) > 3.3)


def test_a_text_that_no_model_can_read_is_one_line(runs):
    for text in ("", "Ünknown"):
        with pytest.raises(UserError):
            NEXT.view({"text": text}, models=runs)


@pytest.mark.parametrize("state", states(SMOOTHING))
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("text", ["abacabadabcaab", "aaab", "abcabcabca"])
def test_smoothed_rows(state, order, text):
    state = {**state, "text": text, "order": [order, 0]}
    epsilon, letters = SMOOTHING.parse(state)["epsilon"], sorted(set(text))
    printed = state.get("printed", False) and order > 1
    grams = Counter(text[at : at + order] for at in range(len(text) - order + 1))
    occur = Counter(text[at : at + order - 1] for at in range(len(text) - order + 2))
    successors = Counter(text[at : at + order - 1] for at in range(len(text) - order + 1))
    singles = Counter(text)
    lower = {each: (singles[each] + 1 / len(letters)) / (len(text) + 1) if order > 1 else 1 / len(letters)
             for each in letters}  # fmt: skip

    def probability(before, after):
        if successors[before] + epsilon == 0:  # nothing follows it, and nothing is added: the lower order decides
            return 0.0 if printed else lower[after]
        total = (occur if printed else successors)[before] + epsilon
        return (grams[before + after] + epsilon * lower[after]) / total

    total, backwards = (number.value for number in SMOOTHING.view(state).numbers)
    last = text[len(text) - order + 1 :]
    assert total == pytest.approx(sum(probability(last, after) for after in letters), abs=1e-9)
    turned = text[::-1]
    windows = [turned[at : at + order] for at in range(len(text) - order + 1)]
    costs = [probability(each[:-1], each[-1]) for each in windows]
    expected = math.inf if 0.0 in costs else math.exp(-sum(map(math.log, costs)) / len(costs))
    assert backwards == pytest.approx(expected)


@pytest.mark.parametrize("last", ["b", "d"])  # ab was followed before, ad never was
def test_of_pairs_before_a_letter_the_most_frequent_have_a_row(last):
    text = "abcdefgabcdegfedcbaga" + last
    view = SMOOTHING.view({"order": [3, 0], "text": text})
    rows = re.findall(r'class="tick"[^>]*>([a-g]{2})<', view.picture.svg())
    assert len(rows) == 2 * 9
    assert {"ab", "bc", "cd", "de"} <= set(rows)  # those that occur twice
    followed = {text[at : at + 2] for at in range(len(text) - 2)}
    assert text[-2:] in rows
    assert f"{len(followed - set(rows))} more occur" in view.picture.svg()


def test_the_printed_row_sums_to_seven_ninths():
    assert SMOOTHING.view({"printed": True}).numbers[0].value == pytest.approx(7 / 9)
    assert SMOOTHING.view({"epsilon": 0.0}).numbers[1].value == math.inf
    for text in ("ab", "abcdefgh", ""):
        with pytest.raises(UserError, match="expected 3 characters"):
            SMOOTHING.view({"text": text})


@pytest.mark.parametrize("top_k", [1, 3, 16])
@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("top_p", [0.05, 0.6, 1.0])
def test_a_bet_is_trimmed(runs, top_k, temperature, top_p):
    run = runs["transformer"]
    state = {"top_k": [top_k, 0], "temperature": temperature, "top_p": top_p, "characters": 3}
    view = TRIM.view(state, models={"run": run})
    entropy, left = (number.value for number in view.numbers[:2])
    grown = view.picture.alt.split("”")[0].removeprefix("“")
    logits = reading.read_text(run, grown).logits.numpy()
    hot = (logits == logits.max()).astype(float)
    probs = np.exp((logits - logits.max()) / temperature) if temperature else hot
    ranked = np.sort(probs / probs.sum())[::-1]
    ranked = ranked[: top_k if top_k < 16 else None]
    ranked = ranked / ranked.sum()
    ranked = ranked[np.cumsum(ranked) - ranked < top_p]
    ranked = ranked / ranked.sum()
    positive = ranked[ranked > 0]
    assert left == len(positive)
    assert entropy == pytest.approx(-(positive * np.log2(positive)).sum(), abs=1e-6)


def test_a_loop_is_found():
    assert reading.repeats("so " + "it loops " * 2) == len("it loops ")
    assert reading.repeats("nothing comes back here") == 0
    assert reading.repeats("abab") == 0  # too short to be a loop


def log_prob_of(run, prompt, word):
    trained, total = run.trained, 0.0
    text = prompt
    for character in word:
        with torch.no_grad():
            logits = run.model(trained.encode_prompt(text))[0, -1].double()
        total += float(logits.log_softmax(dim=-1)[int(trained.tokenizer.encode(character)[0])])
        text += character
    return total


@pytest.mark.parametrize("num_beams", [1, 3, 8])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_beams_are_words_with_their_probabilities(runs, num_beams, penalty):
    run = runs["ngram"]
    state = {"prompt": "on the ", "num_beams": num_beams, "length_penalty": penalty}
    view = BEAMS.view(state, models={"run": run})
    best, greedy = (number.value for number in view.numbers)
    assert best == pytest.approx(log_prob_of(run, "on the ", view.picture.alt.split("“")[2].split("”")[0]), abs=1e-3)
    assert penalty or num_beams == 1 or best >= greedy - 1e-6
    level = reading.beam_levels(run, "on the ", num_beams, penalty, 14)[-1]
    mean = level.log_probs[0] / level.lengths[0] ** penalty
    assert torch.allclose(mean, level.scores[0], atol=1e-4)
    assert level.scores[0].tolist() == sorted(level.scores[0].tolist(), reverse=True)


@pytest.mark.parametrize("state", states(SUM))
def test_sentences_sum_to_a_geometric_series(state):
    given = SUM.parse(state)
    go_on = 1 - given["end"]
    series = (1 - go_on ** (given["longest"] + 1)) / given["end"]
    expected = series if given["printed"] else series * given["end"]
    assert SUM.view(state).numbers[0].value == pytest.approx(expected)


def test_without_an_end_they_sum_to_ten_thirds():
    assert SUM.view({"printed": True, "longest": 40}).numbers[0].value == pytest.approx(10 / 3, rel=1e-5)


@pytest.mark.parametrize("norm", [0.5, 0.8, 1.0, 1.25, 1.5])
def test_gradients_stay_below_their_bound(norm):
    bound, gradient, lstm = (number.value for number in LAG.view({"norm": norm, "lstm": True}).numbers)
    assert bound == pytest.approx(norm**60)
    assert 0 < gradient <= bound * (1 + 1e-9)
    assert norm > 1 or lstm > gradient
    assert LAG.view({"norm": norm}).reached == (gradient < 1e-5)


def test_a_gradient_is_the_derivative_of_the_last_state():
    """The largest singular value of the Jacobian that autograd gives for the whole recurrence at once."""
    weights = reading.open_recurrence(0.9, False)
    inputs = 0.05 * torch.randn(60, 8, generator=reading.keyed_generator("inputs"), dtype=torch.float64)

    def last(h):
        for x in inputs:
            h = torch.tanh(weights.weight_ih @ x + weights.weight_hh @ h)
        return h

    jacobian = torch.autograd.functional.jacobian(last, torch.zeros(16, dtype=torch.float64))
    expected = float(torch.linalg.svdvals(jacobian)[0])
    assert float(reading.gradient_norms_by_lag(0.9, False)[-1]) == pytest.approx(expected, rel=1e-6)


def test_eight_tenths_a_step_and_an_open_gate():
    _, gradient, lstm = (number.value for number in LAG.view({"norm": 0.8, "lstm": True}).numbers)
    assert gradient < 2e-6
    assert lstm > 0.1


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def test_your_text_is_judged_on_its_last_tenth():
    text = "abcd" * 50
    held_out, counted = (number.value for number in YOURS.view({"file": encoded(text), "order": 1}).numbers)
    assert held_out == pytest.approx(2, abs=0.05)  # four letters alike: two bits
    assert counted == pytest.approx(2, abs=0.05)
    assert YOURS.view({"file": encoded(text), "order": 2}).numbers[0].value < 0.5  # each letter follows from the last
    example = [number.value for number in YOURS.view({"order": 8}).numbers]
    assert example[1] < example[0]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", "too short", ""])
def test_a_bad_text_is_one_line(content):
    if content == "":
        assert "Our example" in YOURS.view({"file": ""}).note
        return
    with pytest.raises(UserError):
        YOURS.view({"file": encoded(content)})
