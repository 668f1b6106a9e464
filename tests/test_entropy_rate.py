"""Sources of known entropy: the rate beside entropies of listed texts, samples beside their distributions, generated
corpora."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.data import MarkovSource, keyed_generator, make_hmm_source, make_markov_source, make_symbol_corpus
from quoin.errors import UserError
from quoin.info import entropy, entropy_rate, hmm_entropy_rate, hmm_entropy_rate_bounds
from quoin.prob import CategoricalEmission, GaussianEmission, HiddenMarkovModel, MarkovChain, stationary_distribution

SEEDS = st.integers(0, 10**6)


def drawn(seed):
    return keyed_generator("rate", seed)


@settings(deadline=None)
@given(SEEDS, st.integers(1, 5), st.sampled_from([torch.float32, torch.float64]))
def test_the_rate_is_what_each_step_adds_to_the_entropy(seed, k, dtype):
    """H(X_0, ..., X_n) - H(X_0, ..., X_{n-1}) of the settled chain, from its listed distributions."""
    source = make_markov_source(k, generator=drawn(seed))
    chain = MarkovChain(source.chain.initial.to(dtype), source.chain.transition.to(dtype))
    added = entropy(chain.joint_distribution(3).double().flatten()) - entropy(
        chain.joint_distribution(2).double().flatten()
    )
    torch.testing.assert_close(
        entropy_rate(chain).double(), added, atol=1e-5 if dtype == torch.float32 else 1e-12, rtol=0
    )
    torch.testing.assert_close(entropy_rate(chain, base=2), entropy_rate(chain) / math.log(2))


@settings(deadline=None, max_examples=10)
@given(SEEDS)
def test_the_gradient_of_the_rate_is_that_of_its_differences(seed):
    scores = torch.randn(3, 3, dtype=torch.float64, generator=drawn(seed), requires_grad=True)
    start = torch.full((3,), 1 / 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: entropy_rate(MarkovChain(start, x.softmax(dim=-1))), scores)


def test_rates_that_are_known():
    tossed = make_markov_source(4, 2, sharpness=0.0, generator=drawn(0))
    torch.testing.assert_close(entropy_rate(tossed.chain, base=2), torch.tensor(2.0, dtype=torch.float64))
    certain = MarkovChain(torch.tensor([1.0, 0.0]), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    assert entropy_rate(certain) == 0
    half_tossed = torch.tensor([[0.5, 0.5], [1.0, 0.0]])  # settles in (2/3, 1/3), wherever it begins
    for start in ([1.0, 0.0], [0.0, 1.0]):
        torch.testing.assert_close(
            entropy_rate(MarkovChain(torch.tensor(start), half_tossed), base=2), torch.tensor(2 / 3)
        )
    p = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    h = -0.9 * math.log2(0.9) - 0.1 * math.log2(0.1)
    torch.testing.assert_close(entropy_rate(MarkovChain(torch.tensor([0.5, 0.5]), p), base=2), torch.tensor(h))


@settings(deadline=None, max_examples=20)
@given(SEEDS, st.integers(1, 3), st.integers(2, 3))
def test_a_source_of_higher_order_is_a_chain_of_its_contexts(seed, order, m):
    source = make_markov_source(m, order, generator=drawn(seed))
    start = source.chain.initial
    torch.testing.assert_close(start @ source.chain.transition, start)
    contexts = list(itertools.product(range(m), repeat=order))
    laws = source.transition.reshape((m,) * (order + 1))
    rate = 0.0
    for number, context in enumerate(contexts):
        for symbol in range(m):
            after = contexts.index((*context[1:], symbol))
            torch.testing.assert_close(source.chain.transition[number, after], laws[context][symbol])
        rate += float(start[number] * entropy(laws[context]))
    torch.testing.assert_close(entropy_rate(source.chain), torch.tensor(rate, dtype=torch.float64))


def listed_entropy(model, n, start):
    """H(O_1, ..., O_n) of a hidden model begun in `initial`, text by text."""
    begun = HiddenMarkovModel(MarkovChain(start, model.chain.transition), model.emission)
    texts = torch.tensor(list(itertools.product(range(model.emission.num_symbols), repeat=n)))
    return entropy(begun.log_prob(texts).exp()) if n else torch.zeros((), dtype=torch.float64)


@settings(deadline=None, max_examples=15)
@given(SEEDS, st.integers(1, 3), st.integers(2, 3), st.integers(1, 4))
def test_the_bounds_of_a_hidden_source_are_its_conditional_entropies(seed, k, m, n):
    model = make_hmm_source(k, m, generator=drawn(seed))
    bounds, settled = hmm_entropy_rate_bounds(model, n), model.chain.initial
    torch.testing.assert_close(bounds.upper, listed_entropy(model, n, settled) - listed_entropy(model, n - 1, settled))
    begun = [
        listed_entropy(model, n, each) - listed_entropy(model, n - 1, each)
        for each in torch.eye(k, dtype=torch.float64)
    ]
    torch.testing.assert_close(bounds.lower, (settled * torch.stack(begun)).sum())
    nearer = hmm_entropy_rate_bounds(model, n + 1)
    slack = 1e-12
    assert bounds.lower <= nearer.lower + slack <= nearer.upper + 2 * slack <= bounds.upper + 3 * slack


def test_a_hidden_chain_that_shows_itself_has_the_chains_rate():
    chain = make_markov_source(3, generator=drawn(1)).chain
    shown = HiddenMarkovModel(chain, CategoricalEmission(torch.eye(3, dtype=torch.float64)))
    for bound in hmm_entropy_rate_bounds(shown, 2):
        torch.testing.assert_close(bound, entropy_rate(chain))


def test_the_filtered_estimate_is_within_its_error_of_the_bounds():
    for seed in range(3):
        model = make_hmm_source(3, 3, sharpness=1.0, generator=drawn(seed))
        bounds = hmm_entropy_rate_bounds(model, 10)
        assert bounds.upper - bounds.lower < 1e-4
        found = hmm_entropy_rate(model, 300, 200, generator=drawn(seed))
        assert found.standard_error < 0.02
        assert bounds.lower - 6 * found.standard_error < found.output < bounds.upper + 6 * found.standard_error
        torch.testing.assert_close(
            hmm_entropy_rate(model, 300, 200, generator=drawn(seed), base=2).output, found.output / math.log(2)
        )


def test_a_long_sample_follows_its_laws():
    source = make_markov_source(3, 2, sharpness=1.0, generator=drawn(2))
    tokens = source.sample(60_000, generator=drawn(3))
    context = tokens[:-2] * 3 + tokens[1:-1]
    counts = torch.bincount(context * 3 + tokens[2:], minlength=27).reshape(9, 3).double()
    seen = counts.sum(dim=-1, keepdim=True)
    # Given its context a symbol is tossed by the distribution alone: six standard deviations of a count.
    assert (
        (counts - seen * source.transition).abs()
        <= 6 * (seen * source.transition * (1 - source.transition)).sqrt() + 1e-9
    ).all()
    assert source.sample(100, generator=drawn(3)).equal(source.sample(100, generator=drawn(3)))


def test_what_cannot_happen_is_never_drawn():
    ring = MarkovSource(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]))
    tokens = ring.sample(2000, generator=drawn(4))
    pairs = set(zip(tokens[:-1].tolist(), tokens[1:].tolist()))
    assert pairs == {(0, 1), (1, 1), (1, 2), (2, 0)}


def test_a_generated_corpus_has_one_letter_for_each_symbol():
    for source in (make_markov_source(5, generator=drawn(5)), make_hmm_source(2, 5, generator=drawn(5))):
        corpus = make_symbol_corpus("generated", source, 1000, generator=drawn(6))
        assert [len(part.tokens) for part in (corpus.train, corpus.validation, corpus.test)] == [800, 100, 100]
        assert corpus.test.num_characters == 100
        assert corpus.tokenizer.encode("abcde").tolist() == [0, 1, 2, 3, 4]
        again = make_symbol_corpus("generated", source, 1000, generator=drawn(6))
        assert (
            again.fingerprint
            == corpus.fingerprint
            != make_symbol_corpus("generated", source, 1000, generator=drawn(7)).fingerprint
        )
    model = make_hmm_source(2, 3, sharpness=1.0, generator=drawn(8))
    tokens = make_symbol_corpus("generated", model, 50_000, generator=drawn(9)).train.tokens
    expected = stationary_distribution(model.chain.transition) @ model.emission.probabilities
    assert isinstance(tokens, torch.Tensor)
    assert (torch.bincount(tokens) / len(tokens) - expected).abs().max() < 0.05


def test_sources_that_cannot_be_are_refused():
    plain = make_hmm_source(2, 2, generator=drawn(0))
    spoken = HiddenMarkovModel(plain.chain, GaussianEmission(torch.zeros(2, 1).double(), torch.ones(2, 1, 1).double()))
    for make in (
        lambda: MarkovSource(torch.ones(2)),
        lambda: MarkovSource(torch.full((2, 3), 1 / 3)),
        lambda: MarkovSource(torch.ones(2, 2)),
        lambda: make_markov_source(2, 0, generator=drawn(0)),
        lambda: make_markov_source(0, generator=drawn(0)),
        lambda: make_markov_source(2, sharpness=-1.0, generator=drawn(0)),
        lambda: make_markov_source(70, 2, generator=drawn(0)),
        lambda: hmm_entropy_rate_bounds(plain, 0),
        lambda: hmm_entropy_rate_bounds(plain, 40),
        lambda: hmm_entropy_rate_bounds(spoken, 2),
        lambda: hmm_entropy_rate(plain, 0, 2, generator=drawn(0)),
        lambda: make_symbol_corpus("short", plain, 5, generator=drawn(0)),
    ):
        with pytest.raises(UserError) as caught:
            make()
        assert len(str(caught.value).splitlines()) == 1
