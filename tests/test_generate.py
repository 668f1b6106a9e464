"""Decoding against what the distributions say: by enumeration, by counting draws, and against another library's
cuts."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin.errors import UserError
from quoin.generate import (
    TokenSampler,
    beam_search,
    greedy_search,
    sample_tokens,
    stream_tokens,
    temperature_softmax,
    top_k_filter,
    top_p_filter,
)
from quoin.layers import SinusoidalPositionalEncoding, transformer_block
from quoin.models import GPT, RecurrentLanguageModel, TransformerLanguageModel

END = 0


class Table:
    """A model whose distribution depends on the last token alone: logits[last, next]. It is its own state, and counts
    what it read."""

    def __init__(self, logits):
        self.logits = logits

    def select(self, indices):
        return self

    def decode_step(self, cache, tokens):
        return self.logits[tokens], self


def random_table(tokens, seed):
    return Table(3 * torch.randn(tokens, tokens, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def log_prob(table, first, sequence):
    """The definition: one factor after another."""
    total = 0.0
    for token in sequence:
        total += math.log(float(torch.softmax(table.logits[first], dim=-1)[token]))
        first = token
    return total


def every_sequence(tokens, longest):
    """All that can be said in at most `longest` tokens: ended by END, or cut at the maximum."""
    for length in range(1, longest + 1):
        for words in product(range(1, tokens), repeat=length - 1):
            yield (*words, END)
    yield from product(range(1, tokens), repeat=longest)


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(2, 4),
    longest=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_beam_as_wide_as_all_sequences_ranks_them_all(tokens, longest, seed, penalty):
    table = random_table(tokens, seed)
    prompt = torch.tensor([[1], [tokens - 1]])
    found = beam_search(
        table, table, prompt, num_beams=tokens**longest, max_tokens=longest, eos_token_id=END, length_penalty=penalty
    )
    for row, first in enumerate(prompt[:, 0].tolist()):
        scored = (
            (log_prob(table, first, each) / len(each) ** penalty, each) for each in every_sequence(tokens, longest)
        )
        right = sorted(scored, reverse=True)
        alive = found.log_probs[row].isfinite()
        assert int(alive.sum()) == len(right)
        assert torch.allclose(
            found.scores[row][alive], torch.tensor([score for score, _ in right], dtype=torch.float64), atol=1e-9
        )
        told = [
            tuple(each[:length].tolist()) for each, length in zip(found.tokens[row][alive], found.lengths[row][alive])
        ]
        assert sorted(told) == sorted(each for _, each in right)  # the order is that of the scores: some are equal
        assert [bool(each) for each in found.ended[row][alive]] == [each[-1] == END for each in told]
        ours = [log_prob(table, first, each) for each in told]
        assert torch.allclose(found.log_probs[row][alive], torch.tensor(ours, dtype=torch.float64), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(tokens=st.integers(2, 6), seed=st.integers(0, 10**6), longest=st.integers(1, 6))
def test_a_beam_of_one_goes_greedily(tokens, seed, longest):
    table = random_table(tokens, seed)
    prompt = torch.arange(tokens).unsqueeze(-1)
    narrow = beam_search(table, table, prompt, num_beams=1, max_tokens=longest, eos_token_id=END)
    went = greedy_search(table, table, prompt, max_tokens=longest, eos_token_id=END)
    assert torch.equal(narrow.tokens[:, 0], went.tokens)
    assert torch.equal(narrow.lengths[:, 0], went.lengths)
    assert torch.equal(narrow.ended[:, 0], went.ended)
    assert torch.allclose(narrow.log_probs[:, 0], went.log_probs)
    for row in range(tokens):
        said = went.tokens[row, : went.lengths[row]].tolist()
        assert log_prob(table, row, said) == pytest.approx(float(went.log_probs[row]))
        assert bool(went.ended[row]) == (said[-1] == END)


def test_beams_carry_the_state_of_their_parents():
    """A recurrent model has a memory, so that a beam that forks must take its own along: again by enumeration."""
    model = RecurrentLanguageModel(nn.LSTM, 3, 4, 6, generator=torch.Generator().manual_seed(3)).double()
    nn.init.normal_(model.lm_head.weight, std=3, generator=torch.Generator().manual_seed(4))
    prompt = torch.tensor([[1, 2], [2, 2]])
    found = beam_search(model, model.init_cache(2), prompt, num_beams=81, max_tokens=4)
    sequences = torch.tensor(list(product(range(3), repeat=4)))
    for row in range(2):
        whole = torch.cat([prompt[row].expand(81, -1), sequences], dim=1)
        with torch.no_grad():
            laws = model.eval()(whole[:, :-1]).log_softmax(dim=-1)[:, 1:]
        chances = laws.gather(-1, sequences.unsqueeze(-1)).sum(dim=(1, 2))
        assert torch.allclose(found.log_probs[row], chances.sort(descending=True).values, atol=1e-9)
        assert torch.equal(found.tokens[row], sequences[chances.argsort(descending=True)])
    assert not found.ended.any()


def test_what_has_ended_stays_and_is_filled_with_its_end():
    logits = torch.full((3, 3), -torch.inf)
    logits[1, END] = logits[2, 1] = 0.0  # 1 ends at once, 2 says 1 first
    table = Table(logits)
    found = greedy_search(table, table, torch.tensor([[1], [2]]), max_tokens=9, eos_token_id=END)
    assert found.tokens.tolist() == [[END, END], [1, END]]
    assert found.lengths.tolist() == [1, 2]
    assert found.ended.all()
    assert found.log_probs.tolist() == [0, 0]
    cut = greedy_search(table, table, torch.tensor([[1], [2]]), max_tokens=1, eos_token_id=END)
    assert cut.ended.tolist() == [True, False]  # the maximum was reached


def test_a_stream_is_read_as_it_comes_and_leaves_the_model_as_it_was():
    model = RecurrentLanguageModel(nn.GRU, 5, 4, 6, dropout=0.5).train()
    model.dropout.eval()
    got = stream_tokens(model, model.init_cache(1), torch.tensor([[1]]), lambda logits: logits.argmax(-1), max_tokens=4)
    assert next(got).tokens.shape == (1,)
    assert not model.training
    assert not next(got).log_probs.requires_grad
    got.close()
    assert model.training
    assert not model.dropout.training


@pytest.mark.parametrize(
    "model",
    [
        RecurrentLanguageModel(nn.GRU, 5, 4, 6),
        GPT(5, embed_dim=8, num_heads=2, num_layers=1, context_length=8),
        TransformerLanguageModel(
            5, [transformer_block(8, num_heads=2)], position_embedding=SinusoidalPositionalEncoding(8)
        ),
    ],
    ids=["recurrent", "learned positions", "sinusoidal positions"],
)
def test_what_was_generated_can_be_trained_on(model):
    """Nothing that generation makes or keeps is left in inference mode, where no gradient may use it."""
    found = sample_tokens(model, model.init_cache(2, 8), torch.ones(2, 1, dtype=torch.long), max_tokens=5)
    model(found.tokens).logsumexp(dim=-1).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert not any(each.is_inference() for each in found)
    steps = stream_tokens(
        model, model.init_cache(2, 8), found.tokens, lambda logits: logits.argmax(-1), max_tokens=2, eos_token_id=END
    )
    assert not any(each.is_inference() for step in steps for each in step)


def test_draws_follow_the_law():
    """20,000 draws of three tokens each against their probabilities: Bernstein's bound at a level of 10^-7 for each."""
    table, count = random_table(3, 5), 20_000
    generator = torch.Generator().manual_seed(11)
    found = sample_tokens(
        table, table, torch.ones(count, 1, dtype=torch.long), max_tokens=3, eos_token_id=END, generator=generator
    )
    shares = 0.0
    for each in every_sequence(3, 3):
        chance = math.exp(log_prob(table, 1, each))
        share = float((found.tokens[:, : len(each)] == torch.tensor(each)).all(dim=1).double().mean())
        assert abs(share - chance) <= 6 * math.sqrt(chance * (1 - chance) / count) + 12 / count
        shares += share
    assert shares == pytest.approx(1)
    again = sample_tokens(
        table,
        table,
        torch.ones(count, 1, dtype=torch.long),
        max_tokens=3,
        eos_token_id=END,
        generator=torch.Generator().manual_seed(11),
    )
    assert torch.equal(found.tokens, again.tokens)


@settings(max_examples=30, deadline=None)
@given(
    tokens=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    temperature=st.floats(0.05, 20),
    k=st.integers(1, 12),
    mass=st.floats(0.01, 1.0),
)
def test_laws_by_their_definition(tokens, seed, temperature, k, mass):
    logits = 2 * torch.randn(3, tokens, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    law = TokenSampler(temperature, k, mass).probs(logits)
    for row, found in zip(logits, law):
        chances = [math.exp(float(each)) ** (1 / temperature) for each in row - row.max()]
        chances = [each / sum(chances) for each in chances]
        ranked = sorted(range(tokens), key=lambda token: -chances[token])
        kept = ranked[:k]
        total = sum(chances[token] for token in kept)
        nucleus, gathered = [], 0.0
        for token in kept:
            if nucleus and gathered >= mass:
                break
            nucleus.append(token)
            gathered += chances[token] / total
        expected = torch.zeros(tokens, dtype=torch.float64)
        whole = sum(chances[token] for token in nucleus)
        for token in nucleus:
            expected[token] = chances[token] / whole
        assert torch.allclose(found, expected, atol=1e-9)


def test_cuts_agree_with_transformers():
    warpers = pytest.importorskip("transformers").generation.logits_process
    logits = 2 * torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    for k in (1, 3, 40):
        theirs = warpers.TopKLogitsWarper(k)(None, logits).softmax(dim=-1)
        assert torch.allclose(top_k_filter(logits.softmax(dim=-1), k), theirs, atol=1e-6)
    for mass in (0.1, 0.5, 0.9):
        theirs = warpers.TopPLogitsWarper(mass)(None, logits).softmax(dim=-1)
        assert torch.allclose(top_p_filter(logits.softmax(dim=-1), mass), theirs, atol=1e-6)
    assert torch.allclose(
        temperature_softmax(logits, 0.7), warpers.TemperatureLogitsWarper(0.7)(None, logits).softmax(dim=-1), atol=1e-6
    )


def test_of_equals_so_many_are_kept_as_asked():
    law = torch.full((4,), 0.25)
    assert top_k_filter(law, 2).tolist() == [0.5, 0.5, 0, 0]
    assert top_p_filter(law, 0.5).tolist() == [0.5, 0.5, 0, 0]
    assert temperature_softmax(torch.tensor([0.0, 1e4, -torch.inf]), 1e-30).tolist() == [0, 1, 0]  # nothing overflows


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t, p: beam_search(t, t, p, num_beams=0, max_tokens=3), "num_beams of 1 or more, got 0"),
        (lambda t, p: beam_search(t, t, p, num_beams=2, max_tokens=3, length_penalty=-1), "length penalty"),
        (lambda t, p: beam_search(t, t, p, num_beams=2, max_tokens=0), "maximum of 1 token"),
        (lambda t, p: greedy_search(t, t, p, max_tokens=0), "maximum of 1 token"),
        (lambda t, p: greedy_search(t, t, p[:, :0], max_tokens=2), "prompt"),
        (lambda t, p: greedy_search(t, t, p.double(), max_tokens=2), "prompt of token ids"),
        (lambda t, p: greedy_search(t, t, p[:0], max_tokens=2), "prompt of token ids"),
        (lambda t, p: greedy_search(t, t, p, max_tokens=2, eos_token_id=3), "an eos_token_id from 0 to 2, got 3"),
        (
            lambda t, p: beam_search(t, t, p, num_beams=2, max_tokens=2, eos_token_id=3),
            "an eos_token_id from 0 to 2, got 3",
        ),
        (
            lambda t, p: beam_search(t, t, p, num_beams=2, max_tokens=2, eos_token_id=-1),
            "an eos_token_id from 0 to 2, got -1",
        ),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, temperature=0), "temperature above 0, got 0"),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, temperature=-1), "temperature above 0"),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, temperature=math.nan), "temperature above 0"),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, top_k=0), "1 or more, got 0"),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, top_p=0), "nucleus above 0"),
        (lambda t, p: sample_tokens(t, t, p, max_tokens=2, top_p=1.5), "nucleus above 0 and at most 1, got 1.5"),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as told:
        call(random_table(3, 0), torch.tensor([[1]]))
    assert "\n" not in str(told.value)
