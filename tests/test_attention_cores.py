"""What every attention owes to the layers around it, each core held to the same contract: add a core to CORES and it is
tested.

A core's own mathematics is tested beside it; here only what `quoin.layers.InnerAttention` promises.
"""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from near import assert_near
from quoin.errors import UserError
from quoin.layers import (
    AdditiveAttention,
    ALiBi,
    AttentionCache,
    CacheSpec,
    ExactAttention,
    FeatureMapAttention,
    ForwardOnlyAttention,
    HyperbolicFeatures,
    InnerAttention,
    LinearAttention,
    MultiHeadAttention,
    PerformerAttention,
    RotaryEmbedding,
)
from quoin.tensor import causal_mask, sequence_mask

HEADS, WIDTH = 4, 6


class Own(torch.nn.Module):
    """As somebody would write it who knows nothing of caches; the kernel's own mask is what it is handed."""

    def __init__(self):
        super().__init__()
        self.exact = ExactAttention()

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return self.exact(query, key, value, mask=mask)

    def weights(self, query: Tensor, key: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return self.exact.weights(query, key, mask=mask)


CORES: dict[str, Callable[[], InnerAttention]] = {
    "exact": ExactAttention,
    "exact, scale 1": lambda: ExactAttention(scale=1.0),
    "own, forward alone": lambda: ForwardOnlyAttention(Own()),
    "exact, ALiBi": lambda: ExactAttention(bias=ALiBi(HEADS)),
    "additive": lambda: AdditiveAttention(WIDTH, WIDTH, 5, generator=torch.Generator().manual_seed(0)),
    "linear": lambda: LinearAttention(chunk_size=3),
    "Performer": lambda: PerformerAttention(WIDTH, 5, generator=torch.Generator().manual_seed(0), chunk_size=4),
    "cosh features": lambda: FeatureMapAttention(
        HyperbolicFeatures(WIDTH, 6, generator=torch.Generator().manual_seed(0)), chunk_size=2
    ),
}
ROUNDING = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 0.1}

every_core = pytest.mark.parametrize("name", CORES)
dtypes = st.sampled_from([torch.float32, torch.float64])
groups = st.sampled_from([1, 2, HEADS])
lengths = st.integers(1, 9)
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=12)


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def core_of(name: str, dtype: torch.dtype = torch.float64) -> InnerAttention:
    core = CORES[name]()
    return core.to(dtype) if isinstance(core, torch.nn.Module) else core


def drawn(
    queries: int, keys: int, groups: int, dtype: torch.dtype, generator: torch.Generator, batch: int = 2
) -> list[Tensor]:
    shapes = [(batch, HEADS, queries, WIDTH), (batch, groups, keys, WIDTH), (batch, groups, keys, WIDTH)]
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def slopes(output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    upstream = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape).sin()
    return [
        torch.zeros_like(leaf) if slope is None else slope
        for leaf, slope in zip(leaves, torch.autograd.grad(output, leaves, upstream, allow_unused=True))
    ]


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """Equal in value, and in slope by every leaf."""
    assert_near(ours, theirs, ROUNDING)
    for mine, its in zip(slopes(ours, leaves), slopes(theirs, leaves), strict=True):
        assert_near(mine, its, ROUNDING)


@every_core
def test_a_core_keeps_the_protocol(name):
    assert isinstance(core_of(name), InnerAttention)


@every_core
@few
@given(n=lengths, m=lengths, groups=groups, dtype=dtypes, seed=seeds)
def test_the_weights_are_those_that_gather(name, n, m, groups, dtype, seed):
    core = core_of(name, dtype)
    query, key, value = leaves = drawn(n, m, groups, dtype, torch.Generator().manual_seed(seed))
    weights = core.weights(query, key)
    assert weights.shape == (2, HEADS, n, m)
    assert_near(weights.sum(-1), torch.ones_like(weights[..., 0]), ROUNDING)
    assert_same(core(query, key, value), weights @ value.repeat_interleave(HEADS // groups, dim=1), leaves)


@every_core
@few
@given(n=lengths, m=lengths, lengths=st.tuples(st.integers(0, 9), st.integers(0, 9)), dtype=dtypes, seed=seeds)
def test_padding_changes_nothing(name, n, m, lengths, dtype, seed):
    core, generator = core_of(name, dtype), torch.Generator().manual_seed(seed)
    lengths = [min(length, m) for length in lengths]
    query, key, value = leaves = drawn(n, m, HEADS, dtype, generator)
    mask = sequence_mask(torch.tensor(lengths), m)[:, None, None]
    padded = core(query, key, value, mask=mask)
    alone = [
        core(query[i, None], key[i, None, :, :length], value[i, None, :, :length]) if length else 0 * query[i, None]
        for i, length in enumerate(lengths)
    ]
    assert_same(padded, torch.cat(alone), leaves)
    assert (core.weights(query, key, mask=mask).masked_select(~mask) == 0).all()
    for slope in slopes(core(query, key, value, mask=mask), leaves)[1:]:  # exact zeros: padding is not merely damped
        assert (slope.masked_select(~mask.mT) == 0).all()


@every_core
@few
@given(n=lengths, groups=groups, dtype=dtypes, seed=seeds)
def test_causal_is_what_each_prefix_gives(name, n, groups, dtype, seed):
    core = core_of(name, dtype)
    query, key, value = leaves = drawn(n, n, groups, dtype, torch.Generator().manual_seed(seed))
    whole = core(query, key, value, causal=True)
    last = [core(query[:, :, : i + 1], key[:, :, : i + 1], value[:, :, : i + 1])[:, :, i:] for i in range(n)]
    assert_same(whole, torch.cat(last, dim=2), leaves)
    hidden = ~causal_mask(n)
    assert (core.weights(query, key, causal=True)[..., hidden] == 0).all()


@every_core
@few
@given(pieces=st.lists(st.integers(1, 4), min_size=1, max_size=5), groups=groups, dtype=dtypes, seed=seeds)
def test_step_by_step_is_all_at_once(name, pieces, groups, dtype, seed):
    core, n = core_of(name, dtype), sum(pieces)
    query, key, value = drawn(n, n, groups, dtype, torch.Generator().manual_seed(seed))
    whole = core(query, key, value, causal=True)
    with torch.no_grad():
        state = core.init_cache(CacheSpec(2, groups, WIDTH, WIDTH, n, dtype, torch.device("cpu")))
        found, states = [], [state]
        for q, k, v in zip(*(x.split(pieces, dim=2) for x in (query, key, value)), strict=True):
            output, state = core.decode_step(state, q, k, v)
            found.append(output)
            states.append(state)
        assert isinstance(state, AttentionCache)
        assert_near(torch.cat(found, dim=2), whole, ROUNDING)
        assert [each.seq_len for each in states] == [sum(pieces[:i]) for i in range(len(pieces) + 1)]
        # An earlier state still stands for what it had seen, though others have gone on from it.
        start = sum(pieces[:-1])
        other = core.decode_step(states[-2], -query[:, :, start:], -key[:, :, start:], -value[:, :, start:]).output
        again = core.decode_step(states[-2], query[:, :, start:], key[:, :, start:], value[:, :, start:]).output
        assert_near(again, whole[:, :, start:], ROUNDING)
        assert not torch.equal(other, again)


@every_core
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_sequence_of_padding_alone_gives_zeros(name, dtype):
    core = core_of(name, dtype)
    query, key, value = leaves = drawn(5, 7, 2, dtype, torch.Generator().manual_seed(0), batch=3)
    mask = sequence_mask(torch.tensor([7, 0, 3]), 7)[:, None, None]
    output = core(query, key, value, mask=mask)
    assert (output[1] == 0).all()
    assert output[0].abs().min() > 0
    assert (core.weights(query, key, mask=mask)[1] == 0).all()
    for slope in slopes(output, leaves):
        assert slope.isfinite().all()
        assert (slope[1] == 0).all()
        assert (slope[0] != 0).any()


@every_core
@few
@given(n=lengths, length=lengths, rotary=st.booleans(), num_kv_heads=groups, seed=seeds)
def test_layers_of_any_core_ignore_padding_and_decode(name, n, length, rotary, num_kv_heads, seed):
    generator, dtype, length = torch.Generator().manual_seed(seed), torch.float64, min(n, length)
    turn = RotaryEmbedding(WIDTH) if rotary else None
    layer = MultiHeadAttention(
        HEADS * WIDTH, HEADS, num_kv_heads=num_kv_heads, inner_attention=CORES[name](), rotary=turn, generator=generator
    ).to(dtype)
    x = torch.randn(2, n, HEADS * WIDTH, generator=generator, dtype=dtype)
    lengths = torch.tensor([n, length])
    for causal in (False, True):
        padded = layer(x, lengths=lengths, causal=causal)
        assert_near(padded[0], layer(x[:1], causal=causal)[0], ROUNDING)
        assert_near(padded[1, :length], layer(x[1:, :length], causal=causal)[0], ROUNDING)
        seen = layer.attend_with_weights(x, lengths=lengths, causal=causal)
        assert torch.equal(seen.output, padded)  # asking for the weights changes nothing
        assert seen.weights.shape == (2, HEADS, n, n)
    whole = layer(x, causal=True)
    with torch.no_grad():
        state, found = layer.init_cache(2, n), []
        for i in range(n):
            output, state = layer.decode_step(state, x[:, i : i + 1])
            found.append(output)
    assert_near(torch.cat(found, dim=1), whole, ROUNDING)


@pytest.mark.parametrize(
    "name", [name for name in CORES if name != "additive"]
)  # it takes more shapes, and tells its own mistakes
def test_mistakes_are_told_in_one_line(name):
    core = core_of(name)
    query, key, value = drawn(5, 7, 2, torch.float64, torch.Generator().manual_seed(0))
    for mistaken, words in (
        (lambda: core(query, key, value, causal=True), "as many keys as queries"),
        (lambda: core.weights(query, key, causal=True), "as many keys as queries"),
        (lambda: core(query, key, value[:, :, :6]), "axis m of value to be 7"),
        (lambda: core(query[:1], key, value), "to be 1 as in query, got 2"),
        (lambda: core(query[..., :5], key, value), "axis d of key to be 5"),
        (lambda: core(query[:, :3], key, value), "multiple of num_kv_heads 2, got 3"),
        (lambda: core(query[0], key, value), "query with 4 axes"),
        (lambda: core(query, key, value, mask=torch.ones(5, 7)), "boolean"),
        (lambda: core(query, key, value, mask=torch.ones(5, 6, dtype=torch.bool)), r"broadcasts to \(2, 4, 5, 7\)"),
        (
            lambda: core(query, key, value, mask=torch.ones(1, 2, 4, 5, 7, dtype=torch.bool)),
            r"broadcasts to \(2, 4, 5, 7\)",
        ),
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)
