"""Copying: what the task asks, a reader that answers by hand-made attention, decoding step by step, and the recipes'
own promises."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.data import keyed_generator, make_copy_sequences
from quoin.errors import UserError
from quoin.layers import EluPlusOne, ExactAttention, FeatureMapAttention, PerformerFeatures
from quoin.models import CopyTransformer, CopyTransformerBlock
from quoin.runs import find_recipe
from quoin.tasks.copying import ATTENTIONS, copy_transformer
from quoin.train import DeviceContext


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


CORES = {
    "exact": ExactAttention,
    "linear": lambda: FeatureMapAttention(EluPlusOne()),
    "performer": lambda: FeatureMapAttention(PerformerFeatures(4, 8, generator=generator(1))),
}


# ---- the task ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 30), st.integers(0, 1000))
def test_a_sequence_is_its_symbols_a_mark_and_the_symbols_again(rows, length, symbols, seed):
    made = make_copy_sequences(rows, length, symbols, generator=generator(seed))
    assert made.symbols.shape == (rows, 2 * length)
    assert torch.equal(made.symbols[:, :length], made.answers)
    assert (made.symbols[:, length] == symbols).all()
    assert torch.equal(made.symbols[:, length + 1 :], made.answers[:, :-1])
    assert made.answers.min() >= 0
    assert made.answers.max() < symbols
    assert torch.equal(made.symbols, make_copy_sequences(rows, length, symbols, generator=generator(seed)).symbols)


def test_symbols_are_equally_likely_and_independent_of_their_neighbours():
    answers = make_copy_sequences(4000, 10, 8, generator=generator()).answers
    counts = torch.bincount(answers.flatten(), minlength=8)
    assert float(((counts - 5000.0) ** 2 / 5000).sum()) < 45  # chi-square, 7 degrees: above once in 10⁷
    pairs = torch.bincount((8 * answers[:, :-1] + answers[:, 1:]).flatten(), minlength=64)
    expected = 36_000 / 64
    assert float(((pairs - expected) ** 2 / expected).sum()) < 150  # 63 degrees: above less than once in 10⁸


@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_nothing_to_copy_is_a_mistake(sizes):
    with pytest.raises(UserError, match="at least one row, position and symbol"):
        make_copy_sequences(*sizes, generator=generator())


# ---- the reader -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
@settings(max_examples=5, deadline=None)
@given(length=st.integers(1, 9), split=st.data())
def test_reading_step_by_step_is_reading_at_once(core, length, split):
    net = CopyTransformer(6, 8, num_heads=2, num_layers=2, make_attention=core, generator=generator()).double().eval()
    symbols = torch.randint(6, (3, length), generator=generator(length))
    with torch.no_grad():
        whole = net(symbols)
        states, found, place = net.init_cache(3, length), [], 0
        while place < length:
            new = split.draw(st.integers(1, length - place))
            scores, states = net.decode_step(states, symbols[:, place : place + new])
            found.append(scores)
            place += new
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_no_score_knows_what_comes_later(core):
    net = CopyTransformer(6, 8, num_heads=2, num_layers=2, make_attention=core, generator=generator()).double().eval()
    symbols = torch.randint(6, (2, 7), generator=generator())
    later = symbols.clone()
    later[:, 4:] = (later[:, 4:] + 1) % 6
    with torch.no_grad():
        before, after = net(symbols), net(later)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=1e-12, atol=1e-12)
    assert (before[:, 4:] - after[:, 4:]).abs().max() > 1e-3


def test_a_block_is_its_equation():
    block = CopyTransformerBlock(8, num_heads=2, inner_attention=ExactAttention(), generator=generator()).double()
    x = torch.randn(2, 5, 8, generator=generator(), dtype=torch.float64)
    y = x + block.attention(torch.nn.functional.layer_norm(x, (8,)), causal=True)
    first, _, second = block.feed_forward
    hidden = (torch.nn.functional.layer_norm(y, (8,)) @ first.weight.T + first.bias).clamp(min=0)  # pyright: ignore
    expected = y + hidden @ second.weight.T + second.bias  # pyright: ignore
    torch.testing.assert_close(block(x), expected, rtol=1e-12, atol=1e-12)


def test_a_generator_decides_every_weight():
    one, other = (
        CopyTransformer(6, 8, num_heads=2, num_layers=2, generator=generator(5)).state_dict() for _ in range(2)
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(UserError, match="at least one symbol and one block, got 6 and 0"):
        CopyTransformer(6, 8, num_heads=2, num_layers=0)
    with pytest.raises(UserError, match="num_heads that divide embed_dim 8, got 3"):
        CopyTransformer(6, 8, num_heads=3, num_layers=1)


# ---- the recipes ------------------------------------------------------------------------------------------------

SMALL = {
    "sequence_length": 4,
    "num_symbols": 4,
    "embed_dim": 16,
    "epochs": 1,
    "num_rows": 128,
    "batch_size": 64,
    "num_features": 8,
}


def test_each_name_is_its_attention():
    options = find_recipe("performer-copy").options(**SMALL)
    for name, kind in {"exact": ExactAttention, "linear": EluPlusOne, "performer": PerformerFeatures}.items():
        found = {type(each) for each in copy_transformer(name, options).modules()}
        assert found & {ExactAttention, EluPlusOne, PerformerFeatures} == {kind}


def test_readers_differ_in_their_attention_alone():
    options = find_recipe("performer-copy").options(**SMALL)
    nets = {attention: dict(copy_transformer(attention, options).named_parameters()) for attention in ATTENTIONS}
    for name, weight in nets["exact"].items():
        assert all(torch.equal(weight, net[name]) for net in nets.values())
    assert all(net.keys() == nets["exact"].keys() for net in nets.values())


@pytest.mark.parametrize("name", ["linear-attention-copy", "performer-copy"])
def test_a_run_tells_of_all_three_and_of_its_own_first(name):
    recipe = find_recipe(name)
    task = recipe.build(recipe.options(**SMALL), DeviceContext())
    for rows in task.batches:
        task.step(rows)
    kept = name.split("-")[0]
    found = task.evaluate("test")
    assert found["accuracy"] == found[f"accuracy_{kept}"]
    assert {f"{of}_{attention}" for of in ("accuracy", "whole") for attention in ATTENTIONS} <= set(found)
    assert all(0 <= value <= 1 for value in found.values())
    assert all(found[f"whole_{attention}"] <= found[f"accuracy_{attention}"] for attention in ATTENTIONS)
    assert task.evaluate("train") == {}
    assert recipe.target.metric.removeprefix("test_") in found
    titles = [panel.title for panel in task.panels()]
    assert ("Transferred weights" in titles) == (name == "performer-copy")
    assert ("swapped_16" in found) == (name == "performer-copy")


def test_exact_attention_learns_to_copy():
    """Two symbols of four, so that the recipes' full task is left to `make recipes`; chance is 1/4."""
    options = find_recipe("linear-attention-copy").options(**SMALL | {"sequence_length": 2})
    net = copy_transformer("exact", options)
    adam = torch.optim.Adam(net.parameters(), 0.01)
    for step in range(100):
        batch = make_copy_sequences(32, 2, 4, generator=generator(step))
        adam.zero_grad()
        torch.nn.functional.cross_entropy(net(batch.symbols)[:, -2:].flatten(0, 1), batch.answers.flatten()).backward()
        adam.step()
    new = make_copy_sequences(256, 2, 4, generator=generator(10**6))
    assert (net(new.symbols)[:, -2:].argmax(-1) == new.answers).double().mean() > 0.95


def test_keys_of_the_parts_differ():
    first, second = (
        make_copy_sequences(64, 8, 16, generator=keyed_generator("copy", 0, part)).answers
        for part in ("validation", "test")
    )
    assert not torch.equal(first, second)
