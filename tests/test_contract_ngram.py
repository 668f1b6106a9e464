"""n-gram models: the tree of counts equals the table, the fast distributions equal the definitions, steps equal the
whole; floats of both sizes."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.losses import cross_entropy, token_nll, token_nll_definition
from quoin.metrics import perplexity
from quoin.models import (
    CausalLM,
    DecodingCache,
    MarkovModel,
    chain_rule_log_prob,
    chain_rule_log_prob_definition,
    kneser_ney_counts,
    kneser_ney_discounts,
    kneser_ney_ngram,
    kneser_ney_probs,
    laplace_bigram,
    laplace_ngram,
    laplace_probs,
    laplace_trigram,
    laplace_unigram,
    markov_log_prob_definition,
    ngram_counts,
    ngram_counts_definition,
)

CLOSE: dict[torch.dtype, Any] = {
    torch.float32: {"rtol": 2e-5, "atol": 1e-6},
    torch.float64: {"rtol": 1e-12, "atol": 1e-13},
}
dtypes = st.sampled_from([torch.float32, torch.float64])


@st.composite
def texts(draw):
    """Tokens, how many kinds there may be, and an order that the text is long enough for."""
    m, order = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return torch.tensor(draw(st.lists(st.integers(0, m - 1), min_size=order, max_size=40))), m, order


def tables(counts, values):
    """What the tree holds as dense tables: one of (m,) * length for each length, 0 where an n-gram does not occur."""
    words, m = [()], counts.vocab_size
    dense = [torch.zeros((m,) * length, dtype=values.dtype) for length in range(counts.order + 1)]
    for node in range(1, len(counts.keys)):
        words.append((*words[int(counts.parents[node])], int(counts.tokens[node])))
        dense[len(words[node])][words[node]] = values[node]
    return dense[1:]


def laplace_tables(tokens, m, strengths, dtype):
    laws, shorter = [], torch.full((m,), 1 / m, dtype=dtype)
    for length, strength in enumerate(strengths, 1):
        shorter = laplace_probs(
            ngram_counts_definition(tokens, m, length), torch.tensor(strength, dtype=dtype), shorter
        )
        laws.append(shorter)
        shorter = shorter.expand(
            m, *shorter.shape
        )  # the distribution after a longer context begins as that after its last tokens
    return laws


def kneser_ney_tables(tokens, m, order, dtype):
    laws, shorter = [], torch.full((m,), 1 / m, dtype=dtype)
    for length in range(1, order + 1):
        if length == order:
            counts = ngram_counts_definition(tokens, m, length)
        else:
            counts = (ngram_counts_definition(tokens, m, length + 1) > 0).sum(dim=0)  # different tokens before it
        shorter = kneser_ney_probs(counts, kneser_ney_discounts(counts), shorter)
        laws.append(shorter)
        shorter = shorter.expand(m, *shorter.shape)
    return laws


@given(texts())
def test_the_tree_counts_what_the_table_counts(case):
    tokens, m, order = case
    counts = ngram_counts(tokens, m, order)
    assert bool((counts.keys.diff() > 0).all())
    for length, found in enumerate(tables(counts, counts.counts), 1):
        assert torch.equal(found, ngram_counts_definition(tokens, m, length))
    assert torch.equal(ngram_counts(tokens, m, order).up_to(1).counts, ngram_counts(tokens, m, 1).counts)
    before = tables(counts, kneser_ney_counts(counts))
    for length in range(1, order):
        assert torch.equal(before[length - 1], (ngram_counts_definition(tokens, m, length + 1) > 0).sum(dim=0))


@given(texts(), st.integers(2, 2**40))
def test_sparse_keys_are_sorted_and_counted_as_dense_ones(case, spread):
    """A vocabulary far larger than the text takes the other way through the counting."""
    tokens, m, order = case
    few, many = ngram_counts(tokens, m, order), ngram_counts(tokens, m + spread, order)
    assert torch.equal(few.counts, many.counts)
    assert torch.equal(few.tokens[1:], many.tokens[1:])
    assert few.begins == many.begins


@settings(max_examples=40)
@given(texts(), dtypes, st.data())
def test_fast_laws_equal_the_definitions(case, dtype, data):
    tokens, m, order = case
    strengths = data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 40.0, math.inf]), min_size=order, max_size=order))
    counts = ngram_counts(tokens, m, order)
    sequences = torch.tensor(
        data.draw(st.lists(st.lists(st.integers(0, m - 1), min_size=6, max_size=6), min_size=1, max_size=3))
    )
    for model, laws in (
        (laplace_ngram(counts, strengths, dtype=dtype), laplace_tables(tokens, m, strengths, dtype)),
        (kneser_ney_ngram(counts, dtype=dtype), kneser_ney_tables(tokens, m, order, dtype)),
    ):
        chain = MarkovModel(laws)
        assert model(sequences).dtype == dtype
        torch.testing.assert_close(model(sequences).exp(), chain(sequences).exp(), **CLOSE[dtype])
        torch.testing.assert_close(model.first_logits().exp(), laws[0], **CLOSE[dtype])
        expected = torch.stack([markov_log_prob_definition(laws, row) for row in sequences])
        torch.testing.assert_close(model.token_log_probs(sequences).sum(dim=1).exp(), expected.exp(), **CLOSE[dtype])


@settings(max_examples=40)
@given(texts(), st.data())
def test_steps_in_pieces_and_selected_rows_equal_the_whole(case, data):
    tokens, m, order = case
    sequences = torch.tensor(
        data.draw(st.lists(st.lists(st.integers(0, m - 1), min_size=7, max_size=7), min_size=2, max_size=3))
    )
    cut = data.draw(st.integers(0, 7))
    model = kneser_ney_ngram(ngram_counts(tokens, m, order), dtype=torch.float64)
    rows = torch.tensor([1, 0, 1])
    for each in (model, MarkovModel(kneser_ney_tables(tokens, m, order, torch.float64))):
        assert isinstance(each, CausalLM)
        logits, state = each.decode_step(each.init_cache(len(sequences), 7), sequences[:, :cut])
        assert isinstance(state, DecodingCache)
        torch.testing.assert_close(logits, each(sequences)[:, :cut])
        rest, _ = each.decode_step(state.select(rows), sequences[rows, cut:])
        torch.testing.assert_close(rest, each(sequences)[rows, cut:])
        first = each.first_logits()
        torch.testing.assert_close(
            chain_rule_log_prob(each, sequences, first),
            chain_rule_log_prob_definition(each, sequences, first),
            **CLOSE[torch.float64],
        )


@settings(max_examples=40)
@given(texts(), dtypes)
def test_unigram_bigram_and_trigram_are_orders_of_the_recursion(case, dtype):
    tokens, m, _ = case
    tokens = torch.cat([tokens, tokens.new_zeros(3)])
    strengths = [torch.tensor(value, dtype=dtype) for value in (0.7, 1.3, 2.1)]
    single, pairs, triples = (ngram_counts_definition(tokens, m, length) for length in (1, 2, 3))
    unigram = laplace_unigram(single, strengths[0])
    laws = [unigram, laplace_bigram(pairs, unigram, strengths[1]), laplace_trigram(triples, unigram, strengths[2])]
    counts = ngram_counts(tokens, m, 3)
    two = laplace_ngram(counts.up_to(2), [0.7, 1.3], dtype=dtype)
    torch.testing.assert_close(two(torch.arange(m)[:, None])[:, 0].exp(), laws[1], **CLOSE[dtype])
    three = laplace_ngram(counts, [0.7, math.inf, 2.1], dtype=dtype)
    contexts = torch.cartesian_prod(torch.arange(m), torch.arange(m))
    torch.testing.assert_close(three(contexts)[:, 1].exp(), laws[2].flatten(0, 1), **CLOSE[dtype])


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(1, 3), dtypes, st.integers(0, 2**31))
def test_gradients_of_a_chain_flow_as_by_its_definition(m, num_laws, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    raw = [
        torch.randn((m,) * read, generator=generator, dtype=torch.float64).to(dtype).softmax(-1)
        for read in range(1, num_laws + 1)
    ]
    tokens = torch.randint(m, (1, 6), generator=generator)
    model = MarkovModel(raw)
    laws = [law.clone().requires_grad_() for law in raw]
    fast = torch.cat(
        [model.first_logits()[tokens[:, :1]], model(tokens)[:, :-1].gather(-1, tokens[:, 1:, None])[..., 0]], dim=1
    ).sum()
    slow = markov_log_prob_definition(laws, tokens[0])
    torch.testing.assert_close(fast, slow, **CLOSE[dtype])
    fast.backward()
    slow.backward()
    for mine, theirs in zip(model.transition, laws):
        zero = torch.zeros_like(theirs)
        torch.testing.assert_close(
            zero if mine.grad is None else mine.grad, zero if theirs.grad is None else theirs.grad, **CLOSE[dtype]
        )


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 5), dtypes, st.integers(0, 2**31))
def test_the_cost_of_a_token_equals_its_definition(n, m, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, n, m, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    tokens = torch.randint(m, (2, n), generator=generator)
    fast = token_nll(logits, tokens).exp()
    slow = token_nll_definition(logits.softmax(-1).gather(-1, tokens[..., None])[..., 0]).exp()
    torch.testing.assert_close(fast, slow, **CLOSE[dtype])
    torch.testing.assert_close(perplexity(cross_entropy(logits, tokens)), slow, **CLOSE[dtype])
    gradients = [torch.autograd.grad(each.sum(), logits, retain_graph=True)[0] for each in (fast, slow)]
    torch.testing.assert_close(*gradients, **CLOSE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_smoothing_has_a_gradient_in_its_strength(dtype):
    """d/dε (n + ε P) / (N + ε) = (P N - n) / (N + ε)², by hand."""
    counts, shorter, strength = (
        torch.tensor([3, 1, 0]),
        torch.tensor([0.2, 0.3, 0.5], dtype=dtype),
        torch.tensor(2.0, dtype=dtype),
    )
    found = torch.autograd.functional.jacobian(lambda value: laplace_probs(counts, value, shorter), strength)
    torch.testing.assert_close(found, (shorter * 4 - counts) / 36)


def test_perplexity_is_the_geometric_mean_of_one_over_the_chances_of_every_text():
    """Enumerated: all 3⁴ texts by a chain, whose probabilities sum to one; and their beginnings, by lengths and by a
    mask."""
    generator = torch.Generator().manual_seed(0)
    start, move = (torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1 for shape in ((3,), (3, 3)))
    start, move = start / start.sum(), move / move.sum(dim=-1, keepdim=True)
    texts = list(itertools.product(range(3), repeat=4))
    chances = [[float(start[text[0]]), *(float(move[a, b]) for a, b in itertools.pairwise(text))] for text in texts]
    assert sum(math.prod(each) for each in chances) == pytest.approx(1)
    nll = -torch.tensor(chances, dtype=torch.float64).log()
    for count in (1, 2, 3, 4):
        expected = torch.tensor([math.prod(each[:count]) ** (-1 / count) for each in chances], dtype=torch.float64)
        padded = nll.clone()
        padded[:, count:] = math.nan
        lengths, seen = torch.full((len(texts),), count), torch.arange(4) < count
        for found in (perplexity(nll[:, :count]), perplexity(padded, lengths=lengths), perplexity(padded, mask=seen)):
            torch.testing.assert_close(found, expected)
    torch.testing.assert_close(perplexity(nll, mask=seen.flip(0), lengths=lengths), perplexity(nll))


@pytest.mark.parametrize(
    ("mistaken", "words"),
    [
        (lambda: perplexity(torch.tensor(1.0)), "one token or more"),
        (lambda: perplexity(torch.zeros(2, 0)), "one token or more"),
        (lambda: perplexity(torch.zeros(2, 3), lengths=torch.tensor([3])), r"lengths of shape \(2,\)"),
        (lambda: perplexity(torch.zeros(2, 3), lengths=torch.tensor([3, 0])), "a text with none"),
        (lambda: perplexity(torch.zeros(2, 3), lengths=torch.tensor([3, 4])), "from 0 to 3, got 4"),
        (lambda: perplexity(torch.zeros(2, 3), mask=torch.ones(2, 3)), "boolean mask"),
        (lambda: perplexity(torch.zeros(2, 3).long()), "float dtype"),
    ],
)
def test_perplexity_says_what_it_needs(mistaken, words):
    with pytest.raises(UserError, match=words):
        mistaken()
