"""Coding by language models without a run: lanes against the plain coder, sliding windows against full recomputation,
bytes and tokens."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.data import BPETokenizer, ByteTokenizer, CharTokenizer, TextStream, WordTokenizer
from quoin.errors import UserError
from quoin.info import (
    arithmetic_encode,
    decode_interleaved,
    encode_interleaved,
    integer_frequencies,
    stream_frequencies,
)
from quoin.info import interleaved_tokens as laning
from quoin.metrics import sliding_window_nll
from quoin.models import GPT, CausalLM, SlidingWindowModel
from quoin.runs.language_codec import as_symbols, from_symbols

VOCABULARIES = {
    "characters": CharTokenizer("abé \n"),
    "words": WordTokenizer("abé \n", ["ab", "baé"]),
    "bytes": ByteTokenizer(),
    "bpe": BPETokenizer([(ord("a"), ord("b")), (0xC3, 0xA9), (0xA9, ord("a"))]),  # the last ends within a character
}


# ---- lanes ------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 40), st.sampled_from([64, 1000, 1 << 32]), st.integers(0, 2**32))
def test_rows_of_frequencies_are_the_definition(rows, k, total, seed):
    """Distributions of dyadic numbers, which sum to one without rounding; zeros among them."""
    chance = np.random.default_rng(seed)
    laws = torch.tensor(chance.multinomial(1 << 12, chance.dirichlet([0.2] * k), rows) / (1 << 12))
    found = stream_frequencies(laws, total)
    assert found.tolist() == [integer_frequencies(law, total) for law in laws]


def test_a_law_that_is_none_is_told():
    with pytest.raises(UserError, match="not finite"):
        stream_frequencies(torch.tensor([[0.5, torch.nan]]))


class Pairs:
    """The distribution of the next symbol by the last, from a table; as a `StreamModel`, and as a `CodingModel` of
    symbols that take turns."""

    def __init__(self, table: torch.Tensor, num_streams: int):
        self.table, self.last, self.turn = table, [0] * num_streams, 0

    def frequencies(self):
        return stream_frequencies(self.table[self.last]).numpy()

    def update(self, symbols):
        self.last = list(symbols)


class InTurn(Pairs):
    def frequencies(self):
        return super().frequencies()[self.turn]

    def update(self, symbol):
        self.last[self.turn] = symbol
        self.turn = (self.turn + 1) % len(self.last)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 90), st.integers(2, 6), st.integers(0, 2**32))
def test_lanes_take_turns_in_the_plain_code_and_come_back(size, k, seed):
    chance = np.random.default_rng(seed)
    table = torch.tensor(chance.dirichlet([0.4] * k, k))
    symbols = chance.integers(0, k, size).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laning, "SYMBOLS_PER_STREAM", 10)
        patch.setattr(laning, "MOST_STREAMS", 5)
        told = []
        code = encode_interleaved(
            symbols, lambda lanes: Pairs(table, lanes), lambda done, total: told.append((done, total))
        )
        assert decode_interleaved(code, lambda lanes: Pairs(table, lanes), size) == symbols
    lanes = min(max(size // 10, 1), 5)
    pieces = [
        each.tolist() for each in np.array_split(symbols, lanes)
    ]  # numpy too gives the first ones what does not divide
    in_turn = [int(piece[step]) for step in range(-(-size // lanes)) for piece in pieces if step < len(piece)]
    assert code == arithmetic_encode(in_turn, InTurn(table, lanes))
    assert told[-1:] == ([(size, size)] if size else [])


# ---- sliding windows --------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.data(), st.integers(1, 20), st.integers(0, 2**32))
def test_sliding_is_reading_the_window_again(window, data, length, seed):
    fresh = data.draw(st.integers(1, window))
    generator = torch.Generator().manual_seed(seed)
    model = GPT(5, embed_dim=8, num_heads=2, num_layers=1, context_length=window, generator=generator).double().eval()
    sliding = SlidingWindowModel(model, window, stride=fresh)
    assert isinstance(sliding, CausalLM)
    tokens = torch.randint(5, (2, length), generator=generator)
    expected = []
    with torch.no_grad():
        for t in range(length):
            begin = 0 if t < window else fresh * ((t - window) // fresh + 1)
            expected.append(model(tokens[:, begin : t + 1])[:, -1])
    expected = torch.stack(expected, dim=1)
    assert torch.allclose(sliding(tokens), expected, atol=1e-12)
    cut = data.draw(st.integers(0, length))
    state = sliding.init_cache(2)
    pieces = []
    for piece in (tokens[:, :cut], tokens[:, cut:]):
        if piece.shape[1]:
            logits, state = sliding.decode_step(state, piece)
            pieces.append(logits)
    assert torch.allclose(torch.cat(pieces, dim=1), expected, atol=1e-12)
    swapped, _ = sliding.decode_step(state.select(torch.tensor([1, 0, 1])), tokens[[1, 0, 1], :1])
    assert torch.allclose(swapped[[1, 0]], sliding.decode_step(state, tokens[:, :1]).logits, atol=1e-12)


def test_sliding_costs_what_a_text_is_judged_by():
    generator = torch.Generator().manual_seed(3)
    model = GPT(7, embed_dim=8, num_heads=2, num_layers=2, context_length=6, generator=generator).double().eval()
    tokens = torch.randint(7, (43,), generator=generator)  # whole halves of windows
    logits = SlidingWindowModel(model, 6)(tokens[None, :-1])[0]
    costs = torch.nn.functional.cross_entropy(logits, tokens[1:], reduction="none")
    assert torch.allclose(costs, sliding_window_nll(model, tokens, window=6, stride=3).double(), atol=1e-6)


def test_a_window_that_is_none_is_told():
    model = GPT(7, embed_dim=8, num_heads=2, num_layers=1, context_length=6)
    for window, fresh in ((0, None), (4, 0), (4, 5)):
        with pytest.raises(UserError, match="window"):
            SlidingWindowModel(model, window, stride=fresh)


# ---- bytes and tokens -------------------------------------------------------------------------------------------

TEXTS = st.text("abé \nzü水", max_size=30).map(str.encode)
CONTENTS = st.one_of(
    st.binary(max_size=40), TEXTS, st.lists(st.one_of(st.binary(max_size=4), TEXTS), max_size=6).map(b"".join)
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(VOCABULARIES)), CONTENTS)
def test_any_bytes_are_symbols_and_come_back(name, content):
    vocabulary = VOCABULARIES[name]
    symbols = as_symbols(content, vocabulary)
    assert all(0 <= symbol < vocabulary.vocab_size + 256 for symbol in symbols)
    assert len(symbols) <= len(content)
    assert from_symbols(symbols, vocabulary) == content


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_text_of_the_vocabulary_escapes_nothing(name):
    text = "ab baé\na é"
    assert as_symbols(text.encode(), VOCABULARIES[name]) == VOCABULARIES[name].encode(text).tolist()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["bytes", "bpe"]), st.binary(max_size=12), st.integers(0, 2**32))
def test_streamed_text_is_the_whole_text(name, content, seed):
    vocabulary = VOCABULARIES[name]
    tokens = [*content]
    random.Random(seed).shuffle(tokens)
    tokens += vocabulary.encode("aé水ab\ufffd").tolist()
    said = TextStream(vocabulary)
    pieces = [said.push(token) for token in tokens]
    assert "".join([*pieces, said.finish()]) == vocabulary.decode(tokens)


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_a_whole_character_is_never_late_or_broken(name):
    text = "ab éa" if name in ("characters", "words") else "ab éa水🜁x"
    vocabulary, said, shown = VOCABULARIES[name], TextStream(VOCABULARIES[name]), ""
    tokens = vocabulary.encode(text).tolist()
    for number, token in enumerate(tokens, start=1):
        shown += said.push(token)
        assert shown == vocabulary.decode(tokens[:number]).removesuffix("\ufffd")
    assert (shown, said.finish()) == (text, "")
