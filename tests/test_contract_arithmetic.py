"""Arithmetic codes: the streaming coder against exact fractions, both coders against the cross-entropy, and the words
of each refusal."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.info import (
    AdaptiveModel,
    ArithmeticDecoder,
    ArithmeticEncoder,
    StaticModel,
    arithmetic_decode,
    arithmetic_encode,
    arithmetic_encode_definition,
    arithmetic_interval,
    integer_frequencies,
    range_decode,
    range_encode,
)

weights = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1e-25]), st.floats(0.0, 1.0)), min_size=1, max_size=40
)


def law_of(numbers, dtype=torch.float64):
    law = torch.tensor(numbers, dtype=torch.float64)
    law[0] += float(law.sum() < 1e-250)
    return (law / law.sum()).to(dtype)


def drawn(law, count, seed=0):
    return torch.multinomial(law.double(), count, replacement=True, generator=torch.Generator().manual_seed(seed))


class Counting:
    """The test's own model: one count for every symbol to begin with, more for those that came; its totals are no
    powers of two."""

    def __init__(self, num_symbols, gain):
        self.counts, self.gain = [1] * num_symbols, gain

    def frequencies(self):
        cumulative = [0]
        for count in self.counts:
            cumulative.append(cumulative[-1] + count)
        return cumulative

    def update(self, symbol):
        self.counts[symbol] += self.gain


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000_000), st.data())
def test_the_coder_keeps_to_the_exact_interval(num_symbols, gain, data):
    symbols = data.draw(st.lists(st.integers(0, num_symbols - 1), max_size=60))
    low, width = arithmetic_interval(symbols, Counting(num_symbols, gain))
    assert 0 <= low < low + width <= 1
    surprise = math.log2(width.denominator) - math.log2(width.numerator)
    bits = arithmetic_encode_definition(symbols, Counting(num_symbols, gain))
    number = Fraction(int(bits or "0", 2), 2 ** len(bits))
    assert low <= number < low + width
    assert len(bits) <= math.ceil(surprise + 1e-9)
    sent = arithmetic_encode(symbols, Counting(num_symbols, gain))
    assert abs(8 * len(sent) - surprise) <= 8 + 1e-4
    assert arithmetic_decode(sent, Counting(num_symbols, gain), len(symbols)) == symbols


def test_short_messages_of_dyadic_laws_lie_in_the_interval_itself():
    # Totals of 2^8 divide 64 bits five times without remainder, so nothing was rounded yet.
    choose = random.Random(0)
    for _ in range(300):
        cuts = sorted(choose.sample(range(1, 256), 4))
        model = StaticModel(torch.tensor([1.0]))
        model._frequencies = [0, *cuts, 256]
        symbols = [choose.randrange(5) for _ in range(5)]
        low, width = arithmetic_interval(symbols, model)
        sent = arithmetic_encode(symbols, model)
        assert low <= Fraction(int.from_bytes(sent), 256 ** len(sent)) < low + width


def test_carries_run_through_many_bytes():
    # Thirds have no end in base two: after 0.5 less a little, a carry changes every byte sent since.
    third, half = [0, 1, 2, 3], [0, 1, 2]
    for ones in (1, 20, 200):
        laws = [half] + [third] * ones
        for first, rest, last in ((0, 2, 2), (0, 2, 0), (1, 0, 0), (0, 2, 1)):
            symbols = [first, *[rest] * (ones - 1), last]
            encoder = ArithmeticEncoder()
            for symbol, law in zip(symbols, laws):
                encoder.push(symbol, law)
            decoder = ArithmeticDecoder(encoder.finish())
            assert [decoder.pop(law) for law in laws] == symbols
            decoder.finish()
    choose = random.Random(0)
    for _ in range(300):
        symbols = [choose.randrange(3) for _ in range(300)]
        assert arithmetic_decode(arithmetic_encode(symbols, Counting(3, 0)), Counting(3, 0), 300) == symbols


def test_numpy_frequencies_do_not_overflow():
    frequencies = np.array([0, 1 << 31, 1 << 32])
    encoder = ArithmeticEncoder()
    for symbol in (1, 0, 1, 1):
        encoder.push(symbol, frequencies)
    assert encoder.finish() == b"\xb0"  # 1011 as bits


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 60), st.integers(1, 300))
def test_foreign_bytes_give_symbols_or_a_mistake(data, count, num_symbols):
    try:
        symbols = arithmetic_decode(data, Counting(num_symbols, 3), count)
    except UserError:
        return
    assert all(0 <= symbol < num_symbols for symbol in symbols)
    assert len(symbols) == count


@settings(max_examples=100, deadline=None)
@given(weights, st.sampled_from([40, 41, 1 << 16, 1 << 32]))
def test_integer_frequencies_leave_nothing_out(numbers, total):
    law = law_of(numbers)
    cumulative = integer_frequencies(law, total)
    counts = np.diff(cumulative)
    assert (cumulative[0], cumulative[-1], len(cumulative)) == (0, total, len(law) + 1)
    assert counts.min() >= 1
    p = law.numpy()
    assert (counts >= p * (total - len(p)) - 1e-3).all()
    assert (counts <= p * (total - len(p)) + 1 + 1e-3 + len(p) * (p == p.max())).all()


def chain(seed=0, k=8):
    """A distribution for each previous symbol, some very uneven."""
    scores = 2.5 * torch.randn(k, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return scores.softmax(-1)


def walk(rows, count, seed=0):
    choose, table, state, symbols = random.Random(seed), rows.tolist(), 0, []
    for _ in range(count):
        state = choose.choices(range(len(table)), table[state])[0]
        symbols.append(state)
    return symbols


class ChainModel:
    """The chain in integers, one row made once for each state."""

    def __init__(self, rows):
        self.rows, self.state = [integer_frequencies(row) for row in rows], 0

    def frequencies(self):
        return self.rows[self.state]

    def update(self, symbol):
        self.state = symbol


def surprises(rows, symbols):
    before = torch.tensor([0, *symbols[:-1]])
    return -rows[before, torch.tensor(symbols)].log2().sum().item()


def test_our_coder_is_within_a_thousandth_of_the_cross_entropy():
    rows, symbols = chain(), walk(chain(), 100_000)
    sent = arithmetic_encode(symbols, ChainModel(rows))
    assert 8 * len(sent) == pytest.approx(surprises(rows, symbols), rel=1e-3)
    assert 8 * len(sent) == pytest.approx(surprises(rows, symbols), abs=9)  # and closer than was asked
    assert arithmetic_decode(sent, ChainModel(rows), len(symbols)) == symbols


def test_a_model_of_probabilities_steps_on_both_sides():
    rows = chain(1).float()
    seen = []

    def next_distribution(context):
        seen.append(list(context))
        return rows[context[-1] if context else 0]

    symbols = walk(rows, 200)
    sent = arithmetic_encode(symbols, AdaptiveModel(next_distribution))
    assert seen == [symbols[:length] for length in range(200)]
    assert 8 * len(sent) == pytest.approx(surprises(rows.double(), symbols), abs=8.1)
    assert arithmetic_decode(sent, AdaptiveModel(next_distribution), 200) == symbols


REFUSED = {
    "symbol from 0 to 1, got 2;": lambda: arithmetic_encode([2], StaticModel(law_of([1.0, 1.0]))),
    "symbol 1 to have a fraction of a total of at most 2^32, got 3 to 3 of 4;": lambda: ArithmeticEncoder().push(
        1, [0, 3, 3, 4]
    ),
    "got 0 to 1 of 8589934592;": lambda: ArithmeticEncoder().push(0, [0, 1, 1 << 33]),
    "got 4 bytes, which end before; were they cut?": lambda: arithmetic_decode(
        b"abcd", StaticModel(law_of([1.0] * 256)), 20
    ),
    "expected at most 1 bytes for these symbols, got 2;": lambda: arithmetic_decode(
        b"01", StaticModel(law_of([1.0, 1.0])), 8
    ),
    "a total from 3, one for each symbol, to 2^32, got 2;": lambda: integer_frequencies(torch.ones(3) / 3, total=2),
    "expected probs to be non-negative and to sum to one": lambda: StaticModel(torch.tensor([0.5, 0.6])),
}


@pytest.mark.parametrize(("words", "act"), REFUSED.items(), ids=REFUSED.keys())
def test_mistakes_are_told_in_one_line(words, act):
    with pytest.raises(UserError) as caught:
        act()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- constriction -----------------------------------------------------------------------------------------------


def test_constriction_is_within_a_thousandth_of_the_cross_entropy():
    pytest.importorskip("constriction")
    law = torch.tensor([0.6, 0.2, 0.1, 0.05, 0.04, 0.01], dtype=torch.float64)
    symbols = drawn(law, 1_000_000)
    sent = range_encode(symbols, law)
    assert 8 * len(sent) == pytest.approx(-law[symbols].log2().sum().item(), rel=1e-3)
    assert torch.equal(range_decode(sent, law, len(symbols)), symbols)


def test_constriction_takes_a_law_for_each_symbol_and_agrees_with_ours():
    pytest.importorskip("constriction")
    rows, symbols = chain(2), walk(chain(2), 20_000)
    laws = rows[torch.tensor([0, *symbols[:-1]])]
    sent = range_encode(torch.tensor(symbols), laws)
    ours = arithmetic_encode(symbols, ChainModel(rows))
    assert len(sent) == pytest.approx(len(ours), rel=1e-3)
    assert range_decode(sent, laws, len(symbols)).tolist() == symbols


def test_constriction_at_the_edges():
    pytest.importorskip("constriction")
    two, one = torch.tensor([0.5, 0.5]), torch.tensor([1.0])
    assert range_encode(torch.zeros(0, dtype=torch.int64), two) == b""
    assert range_decode(b"", two, 0).tolist() == []
    assert range_encode(torch.zeros(5, dtype=torch.int64), one) == b""
    assert range_decode(b"", one, 5).tolist() == [0] * 5
    sent = range_encode(torch.arange(100) % 2, two)
    uneven = torch.tensor([0.6, 0.2, 0.1, 0.05, 0.04, 0.01])
    cut = range_encode(drawn(uneven, 20_000), uneven)[:400]
    for words, act in {
        "four to a word, got 3": lambda: range_decode(b"abc", two, 1),
        "no bytes for 5 symbols of these distributions, got 4": lambda: range_decode(b"abcd", one, 5),
        "end with symbol 3, got more": lambda: range_decode(sent, two, 3),
        "bytes of range_encode under these distributions, got others;": lambda: range_decode(cut, uneven, 20_000),
        "symbols from 0 to 1, got int64 of shape (1,) from 2 to 2": lambda: range_encode(torch.tensor([2]), two),
        "or one for each of 1 symbols (n, k), got shape (3, 2)": lambda: range_encode(
            torch.tensor([1]), two.expand(3, 2)
        ),
        "sum 0.5 away from one": lambda: range_encode(torch.tensor([0]), torch.tensor([0.25, 0.25])),
    }.items():
        with pytest.raises(UserError) as caught:
            act()
        assert words in str(caught.value)


def test_without_constriction_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "constriction", None)
    with pytest.raises(UserError, match=r"pip install 'quoin\[coding\]', or use arithmetic_encode"):
        range_encode(torch.tensor([0]), torch.tensor([0.5, 0.5]))
