"""The contract of attention by features: sums, chunks and steps equal the quadratic definition in value and gradient,
safely.

What every attention owes its callers (padding, prefixes, decoding, shared heads) is in test_attention_cores.py.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from near import assert_near
from quoin.errors import UserError
from quoin.layers import (
    CacheSpec,
    EluPlusOne,
    ExactAttention,
    FeatureMapAttention,
    Features,
    KeyValueSums,
    LinearAttention,
    LinearAttentionCache,
    PerformerAttention,
    PerformerFeatures,
    batched_causal_feature_attention,
    causal_feature_attention,
    causal_feature_step,
    elu_plus_one,
    elu_plus_one_definition,
    feature_attention,
    feature_attention_definition,
    init_sums,
    query_sums,
    update_sums,
)
from quoin.layers.attention.linear_forms import split
from quoin.tensor import causal_mask

ROUNDING = {torch.float32: 1e-4, torch.float64: 1e-12}

dtypes = st.sampled_from([torch.float32, torch.float64])
lengths = st.integers(1, 11)
chunks = st.integers(1, 13)
spreads = st.sampled_from([None, 1.0, 30.0, 1e4])  # of the log-scales of keys; e^1e4 is no float
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=20)


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """Equal in value, and in slope by every leaf."""
    assert_near(ours, theirs, ROUNDING)
    upstream = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).reshape(ours.shape).sin()
    mine, its = (torch.autograd.grad(output, leaves, upstream, retain_graph=True) for output in (ours, theirs))
    for one, other in zip(mine, its, strict=True):
        assert_near(one, other, ROUNDING)


def drawn(
    n: int, m: int, dtype: torch.dtype, spread: float | None, seed: int
) -> tuple[Features, Features, Tensor, list[Tensor]]:
    """Positive features of queries and keys, values, and the leaves: float64 draws, so that both dtypes see the same
    case."""
    generator = torch.Generator().manual_seed(seed)

    def leaf(*shape: int, spread: float = 1.0) -> Tensor:
        return (spread * torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    q, k, v = leaf(n, 5), leaf(m, 5), leaf(m, 4)
    if spread is None:
        return Features(elu_plus_one(q)), Features(elu_plus_one(k)), v, [q, k, v]
    scale = leaf(m, 1, spread=spread)
    return Features(elu_plus_one(q)), Features(elu_plus_one(k), scale), v, [q, k, v, scale]


def in_logarithms(query: Features, key: Features, value: Tensor, seen: Tensor) -> Tensor:
    """The second opinion: φ(q)·φ(k) / Σ as a softmax of logarithms, which torch keeps from overflowing; in float64."""
    scores = (query.values.double() @ key.values.double().mT).log()
    scores = scores if key.log_scale is None else scores + key.log_scale.double().mT
    return (scores.masked_fill(~seen, -torch.inf).softmax(dim=-1) @ value.double()).to(value.dtype)


@few
@given(lengths, lengths, dtypes, spreads, seeds)
def test_the_definition_and_the_sums_are_a_softmax_of_logarithms(n, m, dtype, spread, seed):
    q, k, v, leaves = drawn(n, m, dtype, spread, seed)
    expected = in_logarithms(q, k, v, torch.ones(n, m, dtype=torch.bool))
    found = feature_attention_definition(q, k, v)
    assert_same(found.output, expected, leaves)
    assert_near(found.weights.sum(-1), torch.ones_like(found.weights[..., 0]), ROUNDING)
    assert_same(feature_attention(q, k, v), expected, leaves)


@few
@given(lengths, chunks, dtypes, spreads, seeds)
def test_chunks_and_steps_are_the_causal_definition(n, chunk, dtype, spread, seed):
    q, k, v, leaves = drawn(n, n, dtype, spread, seed)
    expected = in_logarithms(q, k, v, causal_mask(n))
    assert_same(feature_attention_definition(q, k, v, causal=True).output, expected, leaves)
    assert_same(causal_feature_attention(q, k, v, chunk_size=chunk), expected, leaves)
    assert_same(batched_causal_feature_attention(q, k, v, chunk_size=chunk), expected, leaves)
    sums, outputs = init_sums(k, v), []
    for position in zip(split(q, 1), split(k, 1), v.split(1, dim=-2), strict=True):
        output, sums = causal_feature_step(sums, *position)
        outputs.append(output)
    assert_same(torch.cat(outputs, dim=-2), expected, leaves)


@few
@given(lengths, chunks, dtypes, spreads, seeds)
def test_sums_do_not_mind_in_how_many_parts_the_keys_come(m, chunk, dtype, spread, seed):
    q, k, v, leaves = drawn(4, m, dtype, spread, seed)
    sums = init_sums(k, v)
    for piece in zip(split(k, chunk), v.split(chunk, dim=-2), strict=True):
        sums = update_sums(sums, *piece)
    assert_same(query_sums(sums, q), feature_attention(q, k, v), leaves)
    if spread is None:
        assert_near(sums.key_values, torch.einsum("bhmf,bhmv->bhfv", k.values, v), ROUNDING)
        assert_near(sums.keys, k.values.sum(-2), ROUNDING)


@few
@given(lengths, chunks, st.booleans(), dtypes, seeds)
def test_hidden_keys_take_no_part_even_if_they_are_nan(n, chunk, causal, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(2, 4, n, 6, generator=generator, dtype=dtype) for _ in range(3))
    mask = torch.rand(2, 4, 1, n, generator=generator) < 0.6
    hidden = ~mask.mT
    leaves = [query, key.masked_fill(hidden, torch.nan), value.masked_fill(hidden, torch.nan)]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    for core in (LinearAttention(chunk_size=chunk), PerformerAttention(6, 5, generator=generator, chunk_size=chunk)):
        whole = mask & causal_mask(n) if causal else mask.expand(2, 4, n, n)
        weights = core.weights(query, key, mask=whole)  # of keys without NaN, by the definition
        linear = core(*leaves, mask=mask, causal=causal)
        assert_near(linear, weights @ value.masked_fill(hidden, 0), ROUNDING)
        assert_same(linear, core(*leaves, mask=whole), leaves)  # the quadratic way, NaN and all
        nothing = ~whole.any(dim=-1)
        assert (linear[nothing] == 0).all()
        for slope, leaf_hidden in zip(
            torch.autograd.grad(linear.square().sum(), leaves), (nothing.unsqueeze(-1), hidden, hidden)
        ):
            assert slope.isfinite().all()
            assert (slope.masked_select(leaf_hidden) == 0).all()


def test_the_elu_features_are_those_of_torch_and_stay_positive():
    x = torch.linspace(-30, 30, 241, dtype=torch.float64).requires_grad_()
    for ours in (elu_plus_one(x), elu_plus_one_definition(x)):
        theirs = nn.functional.elu(x) + 1
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-15 * 31)
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (ours, theirs)))
    for dtype, lowest in ((torch.float32, -87.0), (torch.float64, -700.0)):
        x = torch.linspace(lowest, 0, 500, dtype=dtype)
        assert (elu_plus_one(x) == elu_plus_one_definition(x)).all()
        assert (elu_plus_one(x) > 0).all()
    far = torch.tensor([-1e30, 1e30, 0.0]).requires_grad_()
    for form in (elu_plus_one, elu_plus_one_definition):
        assert torch.autograd.grad(form(far).sum(), far)[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("low", [-40.0, -80.0, -5000.0])
def test_far_negative_queries_and_keys_attend(low):
    """All entries of q are `low` and those of k -40: the weights are those of the keys' own differences."""
    query = torch.full((1, 1, 3, 4), low).requires_grad_()
    key = (torch.tensor([0.0, 1.0, 2.0]).reshape(1, 1, 3, 1) - 40).expand(1, 1, 3, 4)
    value = torch.eye(3).reshape(1, 1, 3, 3)
    expected = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    for causal in (False, True):
        output = LinearAttention()(query, key, value, causal=causal)
        torch.testing.assert_close(output[0, 0, 2], expected)
        assert torch.autograd.grad(output.square().sum(), query)[0].isfinite().all()


@pytest.mark.parametrize("norm", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("causal", [False, True])
def test_performer_is_safe_at_large_norms_in_every_dtype(norm, causal):
    generator = torch.Generator().manual_seed(0)
    core = PerformerAttention(8, 16, generator=generator, chunk_size=16)
    q, k, v = (torch.randn(1, 2, 70, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    q, k = norm * q, norm * k
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        leaves = [each.to(dtype).requires_grad_() for each in (q, k, v)]
        output = core(*leaves, causal=causal)
        assert output.dtype == dtype
        assert output.isfinite().all()
        assert (
            float(output.detach().abs().max()) <= float(leaves[2].detach().abs().max()) * 1.001
        )  # an average of values, or nothing
        assert all(slope.isfinite().all() for slope in torch.autograd.grad(output.float().sum(), leaves))


@pytest.mark.parametrize("causal", [False, True])
def test_long_keys_do_not_drown_the_short_ones_before_them(causal):
    """Keys of growing length have features of e^-0 to e^-40,000: in float32 as in float64, where scores are
    logarithms."""
    generator = torch.Generator().manual_seed(0)
    core = PerformerAttention(8, 64, generator=generator, chunk_size=16)
    q, k, v = (torch.randn(1, 2, 70, 8, generator=generator) for _ in range(3))
    directions, n = core.feature_map.projection.matrix.double(), 70
    for lengths in (torch.linspace(0, 4, n), torch.linspace(4, 0, n)):
        key = k * lengths.unsqueeze(-1)
        logs = [
            x.double() @ directions.mT / 8**0.25 - x.double().square().sum(-1, keepdim=True) / 2 / 8**0.5
            for x in (q, key)
        ]
        scores = (logs[0].unsqueeze(-2) + logs[1].unsqueeze(-3)).logsumexp(dim=-1)
        expected = (scores.masked_fill(~causal_mask(n), -torch.inf) if causal else scores).softmax(dim=-1) @ v.double()
        torch.testing.assert_close(core(q, key, v, causal=causal).double(), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_sums_in_bfloat16_do_not_stall(causal):
    """Equal keys give a mean of 0 and 1, each half the time; a bfloat16 sum of ones ends at 256."""
    n = 4096
    ones = torch.ones(1, 1, n, 4, dtype=torch.bfloat16)
    value = (torch.arange(n) % 2).to(torch.bfloat16).reshape(1, 1, n, 1)
    output = LinearAttention()(ones, ones, value, causal=causal)
    assert output.dtype == torch.bfloat16
    assert abs(float(output[0, 0, -1]) - 0.5) <= 2**-9


@pytest.mark.parametrize("causal", [False, True])
def test_autocast_does_not_reach_the_sums(causal):
    core = LinearAttention(chunk_size=4)
    inputs = torch.randn(3, 1, 2, 10, 4, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = core(*inputs, causal=causal), core.weights(*inputs[:2], causal=causal)
    assert torch.equal(output, core(*inputs, causal=causal))
    assert torch.equal(weights, core.weights(*inputs[:2], causal=causal))


def saved_bytes(core: nn.Module, n: int, *, causal: bool) -> int:
    """What a training step keeps for its backward pass, each storage once."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    leaves = [torch.ones(1, 1, n, 16).requires_grad_() for _ in range(3)]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = core(*leaves, causal=causal)
    assert output.requires_grad  # the graph, and what it keeps, lives until here
    return sum(kept.values())


@pytest.mark.parametrize("causal", [False, True])
def test_a_training_step_keeps_memory_linear_in_the_length(causal):
    for core in (
        LinearAttention(chunk_size=32),
        PerformerAttention(16, 32, generator=torch.Generator().manual_seed(0), chunk_size=32),
    ):
        once, twice = (saved_bytes(core, n, causal=causal) for n in (1024, 2048))
        assert twice <= 2 * once + 4096
        assert twice <= 2048 * 4 * 16 * 60  # some tens of inputs; the sums after each position would be hundreds


class Counting(EluPlusOne):
    """Notes on how many positions it was called, for queries and for keys."""

    def __init__(self):
        super().__init__()
        self.calls: list[tuple[bool, int]] = []

    def forward(self, x: Tensor, *, is_query: bool) -> Features:
        self.calls.append((is_query, x.shape[-2]))
        return super().forward(x, is_query=is_query)


@pytest.mark.parametrize("causal", [False, True])
def test_no_more_than_a_chunk_of_features_is_made_at_a_time(causal):
    counting = Counting()
    FeatureMapAttention(counting, chunk_size=4)(*torch.randn(3, 1, 1, 10, 4), causal=causal)
    assert [n for is_query, n in counting.calls if is_query] == [4, 4, 2]
    assert max(n for _, n in counting.calls) == 4


def test_directions_drawn_anew_are_those_of_one_pass_throughout():
    core = FeatureMapAttention(
        PerformerFeatures(4, 6, generator=torch.Generator().manual_seed(0), redraw_interval=1), chunk_size=3
    )
    q, k, v = torch.randn(3, 1, 1, 10, 4, generator=torch.Generator().manual_seed(1))
    first, second = core(q, k, v, causal=True), core(q, k, v, causal=True)
    assert not torch.allclose(first, second)
    torch.testing.assert_close(second, core.eval().weights(q, k, causal=True) @ v)  # the directions of the last pass


def room(key_dim: int = 4, value_dim: int = 5) -> CacheSpec:
    return CacheSpec(2, 3, key_dim, value_dim, 10**9, torch.bfloat16, torch.device("cpu"))


def test_the_state_is_of_constant_size_and_full_precision():
    core = LinearAttention()
    state = core.init_cache(room())
    sizes = set()
    for new in (1, 1, 200, 3):
        q, k, v = (torch.randn(2, 3, new, width, dtype=torch.bfloat16) for width in (4, 4, 5))
        output, state = core.decode_step(state, q, k, v)
        assert isinstance(state, LinearAttentionCache)
        assert output.shape == (2, 3, new, 5)
        assert state.sums.moments.dtype == torch.float32
        sizes.add(state.sums.moments.untyped_storage().nbytes())
    assert state.seq_len == 205
    assert sizes == {2 * 3 * 4 * (5 + 1) * 4}


def test_no_positions_give_nothing_and_no_keys_give_zeros():
    for core in (LinearAttention(), PerformerAttention(4, 6, generator=torch.Generator().manual_seed(0))):
        assert core(*torch.randn(3, 1, 1, 0, 4), causal=True).shape == (1, 1, 0, 4)
        assert (core(torch.randn(1, 1, 3, 4), *torch.randn(2, 1, 1, 0, 4)) == torch.zeros(1, 1, 3, 4)).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("features", ["linear", "performer"])
def test_chunks_side_by_side_are_chunks_one_after_another(features, causal, monkeypatch):
    """As other devices than the CPU compute: grouped heads, padding that is not a number, no position at all."""
    make = {
        "linear": lambda: LinearAttention(chunk_size=4),
        "performer": lambda: PerformerAttention(4, 6, chunk_size=4, generator=torch.Generator().manual_seed(0)),
    }[features]
    attend, generator = make().double().eval(), torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, heads, 11, 4, generator=generator, dtype=torch.float64) for heads in (6, 3, 3))
    mask = torch.rand(2, 1, 1, 11, generator=generator) > 0.3
    k, v = (each.masked_fill(~mask.mT, torch.nan) for each in (k, v))
    leaves = [each.requires_grad_() for each in (q, k, v)]
    one_by_one = attend(*leaves, mask=mask, causal=causal)
    monkeypatch.setattr("quoin.layers.attention.feature_map.CHUNK_BY_CHUNK", ())
    assert_same(attend(*leaves, mask=mask, causal=causal), one_by_one, leaves)
    assert attend(*torch.randn(3, 1, 1, 0, 4, dtype=torch.float64), causal=True).shape == (1, 1, 0, 4)


@pytest.mark.parametrize("chunk", [0, -3, 2.5, True])
def test_a_chunk_must_hold_a_position(chunk):
    with pytest.raises(UserError, match="expected a chunk of at least one position, got"):
        LinearAttention(chunk_size=chunk)
    q, k, v, _ = drawn(3, 3, torch.float64, None, 0)
    with pytest.raises(UserError, match="at least one position"):
        causal_feature_attention(q, k, v, chunk_size=chunk)
    with pytest.raises(UserError, match="at least one position"):
        batched_causal_feature_attention(q, k, v, chunk_size=chunk)


def test_mistakes_are_said_in_one_line():
    core = LinearAttention()
    q, k, v = torch.randn(3, 2, 3, 6, 4)
    longer = torch.randn(2, 3, 7, 4)
    cases = [
        (lambda: core(q, longer, longer, causal=True), "causal"),
        (lambda: core(q, k, longer), "axis m of value"),
        (lambda: core(q, k, v, mask=torch.ones(2, 3, 1, 5, dtype=torch.bool)), "mask"),
        (lambda: core(q, k, v, mask=torch.ones(6, 6)), "bool"),
        (lambda: core(q, k.double(), v), "one dtype"),
        (lambda: core.weights(q, longer, causal=True), "causal"),
        (lambda: core.decode_step(core.init_cache(room()), q, k, v), "values of width 5"),
        (
            lambda: core.decode_step(ExactAttention().init_cache(room()._replace(max_seq_len=8)), q, k, v),
            "each attention keeps its own kind",
        ),
        (lambda: core.init_cache(room(key_dim=0)), "key_dim"),
    ]
    for act, words in cases:
        with pytest.raises(UserError, match=words) as caught:
            act()
        assert "\n" not in str(caught.value)


def test_sums_without_a_scale_take_none():
    sums = init_sums(Features(torch.ones(2, 3, 5)), torch.ones(2, 3, 4))
    assert isinstance(sums, KeyValueSums)
    assert sums.log_scale is None
    assert sums.moments.shape == (2, 5, 5)
