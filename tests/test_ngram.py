"""n-gram models beside dictionaries of counts written from the formulas, their run, and input that cannot be right."""

import json
import math
import random
from collections import Counter, defaultdict

import pytest
import torch

from quoin.cli import main
from quoin.errors import UserError
from quoin.losses import token_nll
from quoin.metrics import bits_per_character
from quoin.models import (
    MarkovModel,
    NgramModel,
    chain_rule_log_prob,
    kneser_ney_discounts,
    kneser_ney_ngram,
    laplace_ngram,
    laplace_probs,
    laplace_unigram,
    ngram_counts,
    ngram_counts_definition,
)
from quoin.runs import Run
from quoin.train import load_state_dict_strict, load_weights, save_weights

WORDS = "the cat sat on the mat and the dog sat on the cat while the man and the cat ate the hat that the dog had on"


@pytest.fixture(scope="module")
def text():
    """Long enough for counts of one, two, three and four at every length."""
    chosen, words, phrase = random.Random(0), [], WORDS.split()
    while len(words) < 600:
        at = chosen.randrange(len(phrase) - 5)
        words += phrase[at : at + chosen.randint(1, 5)]
    names = sorted(set(words))
    return [names.index(word) for word in words], len(names)


def laplace_by_dict(tokens, m, order, strength):
    grams = Counter(tuple(tokens[i : i + k]) for k in range(1, order + 1) for i in range(len(tokens) - k + 1))
    contexts = Counter(tuple(tokens[i : i + k]) for k in range(order) for i in range(len(tokens) - k))

    def chance(word, context):
        shorter = chance(word, context[1:]) if context else 1 / m
        return (grams[(*context, word)] + strength * shorter) / (contexts[context] + strength)

    return chance


def kneser_ney_by_dict(tokens, m, order):
    """Chen and Goodman's equations, level by level, in sets and dictionaries."""
    grams = [Counter(tuple(tokens[i : i + k]) for i in range(len(tokens) - k + 1)) for k in range(order + 1)]
    counts = {order: grams[order]}
    for k in range(1, order):
        left = defaultdict(set)
        for first, *rest in grams[k + 1]:
            left[tuple(rest)].add(first)
        counts[k] = Counter({gram: len(found) for gram, found in left.items()})
    discounts = {}
    for k in range(1, order + 1):
        t = Counter(counts[k].values())
        if min(t[1], t[2], t[3], t[4]) == 0:
            discounts[k] = [0, 0.5, 1.0, 1.5]
            continue
        y = t[1] / (t[1] + 2 * t[2])
        discounts[k] = [0, 1 - 2 * y * t[2] / t[1], 2 - 3 * y * t[3] / t[2], 3 - 4 * y * t[4] / t[3]]
        if not all(0 < found <= j for j, found in enumerate(discounts[k][1:], 1)):
            discounts[k] = [0, 0.5, 1.0, 1.5]

    def chance(word, context):
        shorter = chance(word, context[1:]) if context else 1 / m
        k = len(context) + 1
        followers = [counts[k][(*context, each)] for each in range(m)]
        if sum(followers) == 0:
            return shorter
        mine, d = counts[k][(*context, word)], discounts[k]
        gamma = sum(d[min(each, 3)] for each in followers) / sum(followers)
        return (mine - d[min(mine, 3)]) / sum(followers) + gamma * shorter

    return chance, discounts


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_both_smoothings_equal_dictionaries(text, order):
    tokens, m = text
    counts = ngram_counts(torch.tensor(tokens), m, order)
    kneser_ney, discounts = kneser_ney_by_dict(tokens, m, order)
    if order == 3:
        assert discounts[3] != [0, 0.5, 1.0, 1.5]  # so that the text does try the discounts that are estimated
    other = random.Random(1).choices(range(m), k=80) + tokens[100:180]  # contexts that are new, and some that are not
    for model, chance in (
        (laplace_ngram(counts, 0.8, dtype=torch.float64), laplace_by_dict(tokens, m, order, 0.8)),
        (kneser_ney_ngram(counts, dtype=torch.float64), kneser_ney),
    ):
        expected = [math.log(chance(word, tuple(other[max(0, at - order + 1) : at]))) for at, word in enumerate(other)]
        found = model.token_log_probs(torch.tensor([other]))[0]
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-11, atol=1e-11)
        whole = chain_rule_log_prob(model, torch.tensor([other]), model.first_logits())
        assert float(whole) == pytest.approx(sum(expected), rel=1e-11)


def test_discounts_are_those_of_the_counts_of_counts_or_half_one_and_one_and_a_half():
    found = kneser_ney_discounts(torch.tensor([1] * 6 + [2] * 3 + [3] * 2 + [4] + [9] * 5))  # t = 6, 3, 2, 1; Y = 1/2
    assert found.tolist() == pytest.approx([0, 0.5, 1.0, 2.0])
    for counts in ([1, 1, 1], [2, 3, 4, 5], [0], [7] * 9, [1] * 9 + [2] + [3] * 9 + [4]):
        assert kneser_ney_discounts(torch.tensor(counts)).tolist() == [0, 0.5, 1.0, 1.5]


def test_the_beginning_of_a_text_and_its_end_are_no_context_of_their_own():
    """`b` stands only at the end, so nothing follows it; `c` only at the beginning, so nothing stands before it."""
    tokens = torch.tensor([2, 0, 0, 0, 1])
    for model in (laplace_ngram(ngram_counts(tokens, 3, 2), 1.0), kneser_ney_ngram(ngram_counts(tokens, 3, 2))):
        laws = model(torch.tensor([[0], [1], [2]])).exp()[:, 0]
        torch.testing.assert_close(laws.sum(dim=1), torch.ones(3))
        torch.testing.assert_close(laws[1], model.first_logits().exp())
        assert bool((laws > 0).all())


def test_nltk_counts_the_same(text):
    lm = pytest.importorskip("nltk.lm")
    from nltk.util import everygrams

    tokens, m = text
    counter = lm.NgramCounter([everygrams(tokens, max_len=3)])
    assert ngram_counts_definition(torch.tensor(tokens), m, 1).tolist() == [counter.unigrams[word] for word in range(m)]
    for length in (2, 3):
        dense = ngram_counts_definition(torch.tensor(tokens), m, length)
        theirs = torch.zeros_like(dense)
        for context, following in counter[length].items():
            for word, count in following.items():
                theirs[(*context, word)] = count
        assert torch.equal(dense, theirs)


def test_weights_come_back_into_an_empty_model_and_no_others_do(text, tmp_path):
    tokens, m = text
    model = kneser_ney_ngram(ngram_counts(torch.tensor(tokens), m, 3))
    save_weights(model, tmp_path / "ngram.safetensors")
    again = NgramModel(m, 3)
    probe = torch.tensor([tokens[:50]])
    torch.testing.assert_close(again(probe).exp(), torch.full((1, 50, m), 1 / m))  # it knows nothing yet
    load_weights(again, tmp_path / "ngram.safetensors")
    assert torch.equal(again(probe), model(probe))
    uneven = model.state_dict() | {"keys": model.keys[:-1]}
    with pytest.raises(UserError, match="shape"):
        load_state_dict_strict(NgramModel(m, 3), uneven)
    with pytest.raises(UserError, match="lacks"):
        load_state_dict_strict(NgramModel(m, 3), {"keys": model.keys})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ngram_counts(torch.tensor([0, 1]), 2, 0), "order"),
        (lambda: ngram_counts(torch.tensor([0, 1]), 2, 3), "3 tokens or more"),
        (lambda: ngram_counts(torch.tensor([], dtype=torch.int64), 2, 1), "1 tokens or more"),
        (lambda: ngram_counts(torch.tensor([0, 2]), 2, 1), "from 0 to 1, got 2"),
        (lambda: ngram_counts(torch.tensor([0, -1]), 2, 1), "from 0 to 1, got -1"),
        (lambda: ngram_counts(torch.tensor([0.0, 1.0]), 2, 1), "integers of ndim 1"),
        (lambda: ngram_counts(torch.tensor([[0, 1]]), 2, 1), "ndim 1, got int64 of shape"),
        (lambda: ngram_counts(torch.tensor([0, 1]), 2**62, 1), "smaller vocabulary"),
        (lambda: ngram_counts_definition(torch.arange(9), 1000, 9), "at most"),
        (lambda: ngram_counts(torch.tensor([0, 1]), 2, 1).up_to(2), "from 1 to 1"),
        (lambda: laplace_ngram(ngram_counts(torch.tensor([0, 1]), 2, 2), -1.0), "0 or more, got -1"),
        (lambda: laplace_ngram(ngram_counts(torch.tensor([0, 1]), 2, 2), [1.0, math.nan]), "0 or more, got nan"),
        (lambda: laplace_ngram(ngram_counts(torch.tensor([0, 1]), 2, 2), [1.0]), "each of the 2"),
        (lambda: laplace_unigram(torch.tensor([1, 2]), -0.5), "0 or more"),
        (lambda: laplace_probs(torch.tensor([1, 2]), math.nan, torch.tensor([0.5, 0.5])), "0 or more"),
        (lambda: NgramModel(3, 0), "order"),
        (lambda: NgramModel(3, 2)(torch.tensor([[0, 3]])), "from 0 to 2, got 3"),
        (lambda: NgramModel(3, 2).token_log_probs(torch.tensor([0, 1])), "ndim 2"),
        (lambda: MarkovModel([]), "tables"),
        (lambda: MarkovModel([torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.5])]), "tables"),
        (lambda: MarkovModel([torch.tensor([0.5, 0.6])]), "a distribution"),
        (
            lambda: chain_rule_log_prob(NgramModel(3, 2), torch.zeros(2, 0, dtype=torch.int64), torch.zeros(3)),
            "one token or more",
        ),
        (lambda: bits_per_character(torch.tensor(1.0), 0), "one character or more"),
        (lambda: token_nll(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)), "one token or more"),
    ],
)
def test_what_cannot_be_right_is_told_in_one_line(make, told):
    with pytest.raises(UserError, match=told) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_run_by_either_smoothing_is_opened_again_without_its_text(tmp_path, capsys):
    place = tmp_path / "text.txt"
    place.write_text("the cat sat on the mat. " * 40)
    for smoothing, number in (("kneser-ney", 1), ("laplace", 2)):
        words = [
            "train",
            "ngram",
            "--data",
            f"text:{place}",
            "--order",
            "4",
            "--smoothing",
            smoothing,
            "--epochs",
            "2",
            "--num-threads",
            "1",
        ]
        assert main([*words, "--runs", str(tmp_path), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["metrics"]["test_bits_per_character"] < 0.6  # after four letters all is known
        lines = (tmp_path / f"ngram-{number}" / "metrics.jsonl").read_text().splitlines()
        assert len(lines) == 2
    place.unlink()
    run = Run.open(tmp_path / "ngram-1").trained
    assert isinstance(run.model, NgramModel)
    heard = run.model(run.tokenizer.encode("he ca")[None])[0, -1]
    assert run.tokenizer.decode([int(heard.argmax())]) == "t"


def test_laplace_smoothing_by_command_is_that_of_the_notes(tmp_path, capsys):
    """P(x''|x, x') = (n(x, x', x'') + ε₃ P(x'')) / (n(x, x') + ε₃) with P(x) = (n(x) + ε₁/m) / (n + ε₁), counted here
    by hand."""
    place = tmp_path / "text.txt"
    place.write_text("abacabadabcaab" * 5)
    words = ["train", "ngram", "--data", f"text:{place}", "--order", "3", "--smoothing", "laplace", "--epochs", "1"]
    more = ["--num-threads", "1", "--runs", str(tmp_path), "--json"]
    assert main([*words, "--pseudo-counts", "2", "3", "4", *more]) == 0
    capsys.readouterr()
    run = Run.open(tmp_path / "ngram-1")
    tokens = run.load_task().tokens.tolist()
    m = run.data_info.vocab_size
    singles, triples, pairs = Counter(tokens), Counter(zip(tokens, tokens[1:], tokens[2:])), Counter()
    for x, y, _ in triples.elements():
        pairs[x, y] += 1  # contexts: pairs that have a successor
    unigram = [(singles[z] + 2 / m) / (len(tokens) + 2) for z in range(m)]
    for x in range(m):
        for y in range(m):
            expected = [(triples[x, y, z] + 4 * unigram[z]) / (pairs[x, y] + 4) for z in range(m)]
            found = run.model(torch.tensor([[x, y]]))[0, -1].double().softmax(-1)
            assert found.tolist() == pytest.approx(expected, rel=1e-5)
            assert float(found.sum()) == pytest.approx(1)
    assert main([*words, "--pseudo-counts", "2", "3", *more]) == 2
    assert "one for each length up to --order 3, got 2" in capsys.readouterr().err


def test_a_run_that_cannot_be_costs_one_line(tmp_path, capsys):
    place = tmp_path / "text.txt"
    place.write_text("abcde " * 3)
    words = ["train", "ngram", "--data", f"text:{place}", "--runs", str(tmp_path)]
    assert main([*words, "--order", "40"]) == 2
    assert "lower --order" in capsys.readouterr().err
    place.write_text("ab" * 40 + "c" * 20)
    assert main([*words, "--order", "2", "--smoothing", "laplace", "--pseudo-counts", "0"]) == 1
    assert "raise --pseudo-counts" in capsys.readouterr().err
