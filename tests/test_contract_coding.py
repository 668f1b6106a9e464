"""Prefix codes: packed bytes against strings of bits, Huffman against a second implementation, and the words of each
refusal."""

import heapq
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.info import (
    PrefixCode,
    canonical_code,
    huffman_code,
    huffman_lengths,
    kraft_sum,
    prefix_decode_definition,
    prefix_encode_definition,
    shannon_code,
    shannon_lengths,
)
from quoin.info import prefix_bits as fast

weights = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1e-25]), st.floats(0.0, 1.0)), min_size=1, max_size=40
)


def law_of(numbers, dtype=torch.float64):
    law = torch.tensor(numbers, dtype=torch.float64)
    law[0] += float(law.sum() < 1e-250)
    return (law / law.sum()).to(dtype)


def drawn(law, count, seed=0):
    return torch.multinomial(law.double(), count, replacement=True, generator=torch.Generator().manual_seed(seed))


def packed(bits):
    return bytes(int(bits[start : start + 8].ljust(8, "0"), 2) for start in range(0, len(bits), 8))


@settings(max_examples=60, deadline=None)
@given(
    weights, st.sampled_from([0, 1, 7, 60, 700]), st.integers(0, 99), st.sampled_from([torch.float32, torch.float64])
)
def test_packed_bytes_are_the_definition_s_bits(numbers, count, seed, dtype):
    law = law_of(numbers, dtype)
    message = drawn(law, count, seed) if count else torch.zeros(0, dtype=torch.int64)
    for code in (shannon_code(law), huffman_code(law)):
        bits = prefix_encode_definition(code, message.tolist())
        assert code.encode(message) == packed(bits)
        assert prefix_decode_definition(code, bits, count) == message.tolist()
        assert torch.equal(code.decode(packed(bits), count), message)
        assert [word is None for word in code.codewords] == (law == 0).tolist()


def fibonacci(size):
    numbers = [1.0, 1.0]
    while len(numbers) < size:
        numbers.append(numbers[-1] + numbers[-2])
    return law_of(numbers)


LONG = {
    "7 bits for all, so lanes never fall in step": torch.full((128,), 1 / 128, dtype=torch.float64),
    "words of more than 64 bits": fibonacci(80),
    "more symbols than bytes": law_of([1 / rank for rank in range(1, 3000)]),
    "one symbol": torch.tensor([0.0, 1.0]),
    "two symbols": torch.tensor([0.01, 0.99]),
}


@pytest.mark.parametrize("entries", [1 << 18, 1 << 14, 1])  # units of eight bits and of fewer
@pytest.mark.parametrize("law", LONG.values(), ids=LONG.keys())
def test_long_messages_come_back(law, entries, monkeypatch):
    monkeypatch.setattr(fast, "_MOST_ENTRIES", entries)
    message = drawn(law, 70_001)
    message[-len(law) :] = torch.arange(len(law)) if bool((law > 0).all()) else 1
    for code in (shannon_code(law), huffman_code(law)):
        sent = code.encode(message)
        assert sent == packed(prefix_encode_definition(code, message.tolist()))
        assert torch.equal(code.decode(sent, len(message)), message)


def test_bytes_are_symbols_too():
    code = canonical_code([8] * 256)
    assert code.encode(bytes(range(256))) == bytes(range(256))
    assert code.encode(torch.arange(256, dtype=torch.uint8)) == bytes(range(256))


def test_canonical_codewords_are_those_of_rfc_1951():
    words = ("010", "011", "100", "101", "110", "00", "1110", "1111")  # its section 3.2.2
    assert canonical_code([3, 3, 3, 3, 3, 2, 4, 4]).codewords == words


@settings(max_examples=60, deadline=None)
@given(weights)
def test_huffman_is_as_short_as_a_second_implementation(numbers):
    law = law_of(numbers)
    exact = [Fraction(p) for p in law.tolist()]
    heap = [p for p in exact if p]
    heapq.heapify(heap)
    joined = Fraction(0)
    while len(heap) > 1:
        joined += (both := heapq.heappop(heap) + heapq.heappop(heap))
        heapq.heappush(heap, both)
    lengths = huffman_lengths(law)
    assert (
        sum(p * length for p, length in zip(exact, lengths) if length is not None) == joined
    )  # the mean length, to the last digit
    assert kraft_sum(lengths) == 1


def test_huffman_ties_are_settled():
    # Both (1, 2, 3, 3) and (2, 2, 2, 2) are best; the shallower is taken, whatever the order.
    for order in ([2, 2, 1, 1], [1, 2, 1, 2], [1, 1, 2, 2]):
        assert huffman_lengths(law_of([float(weight) for weight in order])) == [2, 2, 2, 2]
    assert huffman_code(law_of([1.0, 1.0, 1.0])).codewords == ("10", "11", "0")


@settings(max_examples=60, deadline=None)
@given(weights, st.sampled_from([torch.float32, torch.float64]))
def test_shannon_lengths_are_the_rounded_surprise(numbers, dtype):
    law = law_of(numbers, dtype)
    lengths = shannon_lengths(law)
    slack = Fraction(len(law) * torch.finfo(dtype).eps)  # what the distribution's sum may be away from one
    for p, length in zip(map(Fraction, law.tolist()), lengths):
        assert (length is None) if p == 0 else (p * (1 - slack) / 2 < Fraction(1, 2**length) <= p)
    assert kraft_sum(lengths) <= 1


def test_shannon_lengths_of_laws_that_do_not_sum_to_one_exactly():
    # 0.5 is given as such and gets its one bit, though as float32 the three sum to more than one.
    assert shannon_lengths(torch.tensor([0.5, 0.3, 0.2])) == [1, 2, 3]
    # Here the lengths of the numbers as given, 1, 1 and 57, would break Kraft's inequality.
    law = torch.tensor([0.5, 0.5, 1e-17], dtype=torch.float64)
    assert shannon_lengths(law) == [2, 2, 57]
    assert shannon_lengths(torch.tensor([0.25, 0.25, 0.25, 0.25])) == [2, 2, 2, 2]
    assert shannon_lengths(torch.tensor([5e-324, 1.0], dtype=torch.float64)) == [1075, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_expected_length_batches_and_differentiates(dtype):
    code = PrefixCode(("0", "10", None, "110"))
    laws = torch.tensor([[0.5, 0.25, 0.0, 0.25], [0.0, 1.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    mean = code.expected_length(laws)
    assert mean.tolist() == [1.75, 2.0]
    (slope,) = torch.autograd.grad(mean.sum(), laws)
    assert slope.tolist() == [[1, 2, 0, 3]] * 2
    assert code.expected_length(torch.tensor([0.5, 0.0, 0.5, 0.0], dtype=dtype)).item() == math.inf


REFUSED = {
    "expected symbols from 0 to 2, got 3;": lambda: huffman_code(law_of([1.0, 1.0, 2.0])).encode(torch.tensor([0, 3])),
    "expected symbols from 0 to 1, got -1;": lambda: huffman_code(law_of([1.0, 2.0])).encode(torch.tensor([-1])),
    "got 1, which has none;": lambda: huffman_code(law_of([1.0, 0.0, 2.0])).encode(torch.tensor([0, 1])),
    "of the code, got 7, which has none;": lambda: prefix_encode_definition(huffman_code(law_of([1.0, 2.0])), [0, 7]),
    "whole numbers as symbols, got float32 of shape": lambda: canonical_code([1, 1]).encode(torch.zeros(2)),
    "expected 3 symbols, got bits that end inside codeword 2;": lambda: prefix_decode_definition(
        canonical_code([2, 2, 2]), "000", 3
    ),
    "expected 5 symbols, got bits that end inside codeword 3;": lambda: canonical_code([1, 3, 3, 3, 3]).decode(
        b"\xff", 5
    ),
    "bits that begin none of them at symbol 2;": lambda: PrefixCode(("0", "10")).decode(b"\x70", 3),
    "got 2 more; ask": lambda: prefix_decode_definition(canonical_code([1, 1]), "0110", 2),
    "expected 1 bytes for 8 symbols, got 2;": lambda: canonical_code([1, 1]).decode(b"ab", 8),
    "expected 0 bytes for 3 symbols, got 1;": lambda: huffman_code(torch.tensor([1.0])).decode(b"a", 3),
    "count of at least 0, got -1": lambda: canonical_code([1, 1]).decode(b"", -1),
    "no codeword to begin another, got '1' and '10'": lambda: PrefixCode(("1", "0", "10")),
    "a codeword of 0 and 1 for at least one symbol, got ('02',)": lambda: PrefixCode(("02",)),
    "Kraft sum of at most 1, got 1.25;": lambda: canonical_code([1, 1, 2]),
    "lengths of at least 0, got -1;": lambda: canonical_code([-1]),
    "over the code's 2 symbols, got 3": lambda: canonical_code([1, 1]).expected_length(torch.ones(3) / 3),
    "sum 0.1 away from one": lambda: huffman_code(torch.tensor([0.5, 0.4])),
    "least entry of -0.5": lambda: shannon_code(torch.tensor([-0.5, 1.5])),
    "least entry of nan": lambda: huffman_code(torch.tensor([math.nan, 0.5])),
    "expected probs with 1 axis (k), got shape (2, 2)": lambda: shannon_code(torch.full((2, 2), 0.5)),
}


@pytest.mark.parametrize(("words", "act"), REFUSED.items(), ids=REFUSED.keys())
def test_mistakes_are_told_in_one_line(words, act):
    with pytest.raises(UserError) as caught:
        act()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
