"""The rows on decoding: both sides say the same tokens, and every attention goes on from its context. No clock in any
assertion."""

import io

import pytest

from quoin.bench import select_benchmarks
from quoin.bench.decode_quoin import from_context, greedily
from quoin.bench.worker import Repeats


def one_repeat(implementation, *arguments):
    return implementation(Repeats(1, 1, io.StringIO(), io.StringIO()), *arguments)


@pytest.mark.filterwarnings("ignore")
def test_both_sides_say_the_same_tokens():
    pytest.importorskip("transformers")
    from quoin.bench.decode_peers import transformers_generate

    ours, theirs = one_repeat(greedily), one_repeat(transformers_generate)
    assert ours["checksum"] == theirs["checksum"]
    assert ours["checksum"] > 0


@pytest.mark.parametrize("attention", ["linear", "performer", "exact"])
def test_every_attention_goes_on_from_its_context(attention):
    assert one_repeat(from_context, attention, "70")["tokens/s"] > 0


def test_the_rows_ask_for_what_the_issue_asks():
    decode, context = select_benchmarks(["decode", "decode-context"])
    assert [each.target.bound for each in decode.implementations if each.target] == [3.0]
    asked = [each for each in context.implementations if each.target]
    assert [each.arguments for each in asked] == [("linear", "4096"), ("performer", "4096")]
    names = {each.name for each in context.implementations}
    assert {each.target.other for each in asked} <= names
