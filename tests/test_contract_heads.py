"""The contract of exact, single-head and multi-head attention: equal to their definitions, and to torch's, in value and
gradient."""

import copy
from typing import TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from near import assert_near
from quoin.errors import UserError
from quoin.layers import (
    ALiBi,
    Attention,
    CacheSpec,
    ExactAttention,
    KeyValueCache,
    MultiHeadAttention,
    SelfAttention,
    attention_layer_definition,
    from_torch_multihead,
    multi_head_attention_definition,
    scaled_dot_product_attention_definition,
)
from quoin.tensor import causal_mask, sequence_mask
from seeds import seeded

ROUNDING = {torch.float32: 2e-5, torch.float64: 1e-12}
CPU = torch.device("cpu")
Layer = TypeVar("Layer", bound=nn.Module)

dtypes = st.sampled_from([torch.float32, torch.float64])
sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32)
scales = st.sampled_from([None, 1.0])
few = settings(deadline=None, max_examples=20)


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def shaken(layer: Layer, dtype: torch.dtype, generator: torch.Generator) -> Layer:
    """Every parameter drawn anew, for biases that start at zero would hide a mistake."""
    for parameter in layer.to(dtype).parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return layer


def leaf(*shape: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    assert_near(ours, theirs, ROUNDING)
    upstream = torch.randn(ours.shape, dtype=ours.dtype, generator=seeded(ours.numel()))
    for mine, its in zip(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream), strict=True
    ):
        assert_near(mine, its, ROUNDING)


@few
@given(
    n=sizes,
    m=sizes,
    d=sizes,
    v=sizes,
    masked=st.booleans(),
    biased=st.booleans(),
    scale=scales,
    dtype=dtypes,
    seed=seeds,
)
def test_the_kernel_is_the_definition(n, m, d, v, masked, biased, scale, dtype, seed):
    generator = seeded(seed)
    leaves = [leaf(2, 3, *shape, dtype=dtype, generator=generator) for shape in ((n, d), (m, d), (m, v))]
    mask = torch.rand(2, 1, n, m, generator=generator) < 0.6 if masked else None  # some rows come out empty
    table = leaf(3, n, m, dtype=dtype, generator=generator) if biased else None
    core = ExactAttention(scale=scale, bias=None if table is None else lambda queries, keys, offset: table)
    found = scaled_dot_product_attention_definition(*leaves, mask, scale, table)
    assert_same(core(*leaves, mask=mask), found.output, leaves + ([table] if table is not None else []))
    torch.testing.assert_close(core.weights(*leaves[:2], mask=mask), found.weights)
    # by hand, one query of one head: the definition itself
    q, k, x = (each[0, 0].detach().double() for each in leaves)
    s = 1 / d**0.5 if scale is None else scale
    terms = [float(torch.exp(s * q[0] @ k[j] + (0 if table is None else table.detach()[0, 0, j]))) for j in range(m)]
    terms = [term * (mask is None or bool(mask[0, 0, 0, j])) for j, term in enumerate(terms)]
    by_hand = sum((term * x[j] for j, term in enumerate(terms)), start=torch.zeros(v).double()) / (sum(terms) or 1)
    torch.testing.assert_close(found.output[0, 0, 0].double(), by_hand, rtol=1e-4, atol=1e-5)


@few
@given(
    n=sizes,
    m=sizes,
    widths=st.tuples(sizes, sizes, sizes, sizes, sizes),
    scale=scales,
    batch=st.sampled_from([None, 3]),
    masked=st.booleans(),
    dtype=dtypes,
    seed=seeds,
)
def test_the_layer_with_maps_is_its_definition(n, m, widths, scale, batch, masked, dtype, seed):
    generator, (d_q, d_k, d_v, k, v) = seeded(seed), widths
    layer = shaken(Attention(d_q, d_k, d_v, k, v, scale), dtype, generator)
    lead = () if batch is None else (batch,)
    inputs = [leaf(*lead, *shape, dtype=dtype, generator=generator) for shape in ((n, d_q), (m, d_k), (m, d_v))]
    mask = torch.rand(*lead, n, m, generator=generator) < 0.7 if masked else None
    matrices = [layer.q_proj.weight.T, layer.k_proj.weight.T, layer.v_proj.weight.T]
    expected = attention_layer_definition(*inputs, *matrices, mask=mask, scale=scale).output
    assert_same(layer(*inputs, mask=mask), expected, [*inputs, *layer.parameters()])


def test_self_attention_gives_all_three_the_same_input():
    generator = seeded(0)
    layer = SelfAttention(6, head_dim=3, out_features=2, generator=generator).double()
    x = leaf(4, 5, 6, dtype=torch.float64, generator=generator)
    assert_same(layer(x), layer.attention(x, x, x), [x, *layer.parameters()])
    assert_same(layer(x, causal=True), layer.attention(x, x, x, mask=causal_mask(5)), [x])
    stacked = nn.Sequential(layer, SelfAttention(2, head_dim=4, out_features=7).double())
    assert stacked(x).shape == (4, 5, 7)


@few
@given(
    n=sizes,
    m=sizes,
    heads=st.sampled_from([(1, 1), (4, 4), (4, 2), (4, 1), (6, 3)]),
    d=sizes,
    joint=st.booleans(),
    bias=st.booleans(),
    masked=st.booleans(),
    dtype=dtypes,
    seed=seeds,
)
def test_many_heads_are_single_heads_side_by_side(n, m, heads, d, joint, bias, masked, dtype, seed):
    generator, (h, g) = seeded(seed), heads
    wider = {} if joint else {"key_dim": 5, "value_dim": 3}
    layer = shaken(MultiHeadAttention(h * d, h, num_kv_heads=g, bias=bias, **wider), dtype, generator)
    inputs = [leaf(2, *shape, dtype=dtype, generator=generator) for shape in zip((n, m, m), layer.input_dims)]
    mask = torch.rand(2, n, m, generator=generator) < 0.7 if masked else None
    expected = multi_head_attention_definition(
        *inputs, layer.head_projections(), layer.out_proj.weight.T, layer.out_proj.bias, mask=mask
    )
    assert_same(layer(*inputs, mask=mask), expected.output, [*inputs, *layer.parameters()])
    seen = layer.attend_with_weights(*inputs, mask=mask)
    torch.testing.assert_close(seen.weights, expected.weights.movedim(0, 1))
    if joint:  # one product for the three maps, or three: the same layer
        x = inputs[0]
        assert_same(layer(x), layer(x, x.clone(), x.clone()), [x, *layer.parameters()])


@few
@given(
    n=sizes,
    m=sizes,
    heads=st.sampled_from([1, 2, 4]),
    kind=st.sampled_from(["self", "cross", "widths"]),
    bias=st.booleans(),
    padded=st.booleans(),
    causal=st.booleans(),
    dtype=dtypes,
    seed=seeds,
)
def test_equals_torchs_layer_on_its_weights(n, m, heads, kind, bias, padded, causal, dtype, seed):
    generator, width = seeded(seed), 4 * heads
    wider = {"kdim": 5, "vdim": 3} if kind == "widths" else {}
    theirs = shaken(nn.MultiheadAttention(width, heads, bias=bias, batch_first=True, **wider), dtype, generator)
    ours = from_torch_multihead(theirs)
    query = leaf(2, n, width, dtype=dtype, generator=generator)
    leaves = [query]
    if kind != "self":
        key = leaf(2, m, wider.get("kdim", width), dtype=dtype, generator=generator)
        value = leaf(2, m, wider.get("vdim", width), dtype=dtype, generator=generator)
        leaves += [key, value]
    q, k, v = leaves if kind != "self" else leaves * 3
    causal = causal and kind == "self"
    lengths = torch.randint(1, k.shape[1] + 1, (2,), generator=generator) if padded else None

    def format_value() -> list[Tensor]:  # to torch padding is a query still, to us it is nothing
        return (
            [q, k, v]
            if kind != "self" or lengths is None
            else [torch.where(sequence_mask(lengths, n).unsqueeze(-1), q, 0)] * 3
        )

    expected, weights = theirs(
        *format_value(),
        key_padding_mask=None if lengths is None else ~sequence_mask(lengths, k.shape[1]),
        attn_mask=~causal_mask(n) if causal else None,
        average_attn_weights=False,
    )
    found = ours.attend_with_weights(q, k, v, lengths=lengths, causal=causal)
    torch.testing.assert_close(found.weights, weights)
    assert torch.equal(ours(q, k, v, lengths=lengths, causal=causal), found.output)
    assert_same(found.output, expected, leaves)
    # and by its parameters, whose gradients both keep in their own way: the stacked matrix, and the last
    upstream = torch.randn(expected.shape, dtype=dtype, generator=generator)
    ours(q, k, v, lengths=lengths, causal=causal).backward(upstream)
    again = theirs(
        *format_value(),
        key_padding_mask=None if lengths is None else ~sequence_mask(lengths, k.shape[1]),
        attn_mask=~causal_mask(n) if causal else None,
    )[0]
    again.backward(upstream)
    mine = dict(ours.named_parameters())
    pairs = [(mine["out_proj.weight"], theirs.out_proj.weight)]
    if kind == "widths":
        pairs += [(mine[f"in_proj.{letter}_proj.weight"], getattr(theirs, f"{letter}_proj_weight")) for letter in "qkv"]
    else:
        pairs += [(mine["in_proj.linear.weight"], theirs.in_proj_weight)]
    if bias and kind != "widths":
        pairs += [(mine["in_proj.linear.bias"], theirs.in_proj_bias), (mine["out_proj.bias"], theirs.out_proj.bias)]
    for our_weight, their_weight in pairs:
        assert our_weight.grad is not None
        assert_near(our_weight.grad, their_weight.grad, ROUNDING)


def test_torchs_dropout_and_mode_come_along():
    theirs = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    for mode in (True, False):
        ours = from_torch_multihead(theirs.train(mode))
        assert isinstance(ours.inner_attention, ExactAttention)
        assert ours.inner_attention.dropout.p == 0.5
        assert ours.training is mode
        x = torch.randn(2, 5, 8, generator=seeded(0))
        assert torch.equal(ours(x), ours(x)) is not mode  # dropout draws anew in training only


def test_dropout_drops_weights_and_keeps_their_mean():
    query, key = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 4000, 4)
    output = ExactAttention(dropout=0.25).train()(query, key, torch.ones(1, 1, 4000, 1))
    # the mean of 4000 entries that are 0 or 4/3: mean 1, deviation sqrt(1/3 / 4000) = 0.0091; ten of them
    assert 0 < abs(float(output) - 1) < 0.091
    assert float(ExactAttention(dropout=0.25).eval()(query, key, torch.ones(1, 1, 4000, 1))) == pytest.approx(
        1, abs=1e-4
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [None, lambda queries, keys, offset: torch.zeros(2, queries, keys)])
def test_queries_with_nothing_to_see_give_zeros(dtype, bias):
    query, key, value = leaves = [
        torch.randn(2, 2, 6, 4, generator=seeded(seed)).to(dtype).requires_grad_() for seed in range(3)
    ]
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    mask[0, :, 3] = False
    core = ExactAttention(bias=bias)
    output = core(query, key, value, mask=mask)
    assert (output[0, :, 3] == 0).all()
    assert (core.weights(query, key, mask=mask)[0, :, 3] == 0).all()
    slopes = torch.autograd.grad(output.float().square().sum(), leaves)
    assert all(slope.isfinite().all() for slope in slopes)
    assert (slopes[0][0, :, 3] == 0).all()
    assert (slopes[0][0, :, 2] != 0).any()


def test_scores_as_large_as_bfloat16_carries_are_safe():
    query, key, value = (100 * torch.randn(1, 1, 9, 8, generator=seeded(seed)).bfloat16() for seed in range(3))
    output = ExactAttention()(query, key, value)
    chosen = value[
        0, 0, (query[0, 0].double() @ key[0, 0].double().T).argmax(-1)
    ]  # so large are the scores that one key takes all
    assert torch.equal(output[0, 0], chosen)


# ---- the cache --------------------------------------------------------------------------------------------------


def room(capacity: int) -> CacheSpec:
    return CacheSpec(2, 3, 4, 5, capacity, torch.float32, CPU)


def test_a_cache_writes_each_position_once():
    state = KeyValueCache.empty(room(8))
    keys, values = torch.randn(2, 3, 8, 4, generator=seeded(0)), torch.randn(2, 3, 8, 5, generator=seeded(1))
    places = set()
    for i in range(8):
        state = state.append(keys[:, :, i : i + 1], values[:, :, i : i + 1])
        places.add((state.keys.data_ptr(), state.values.data_ptr()))
    assert len(places) == 1  # nothing moved
    assert torch.equal(state.keys, keys)
    assert torch.equal(state.values, values)


def test_two_ways_on_from_one_state_do_not_meet():
    begun = KeyValueCache.empty(room(4)).append(torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 5))
    ones = begun.append(torch.ones(2, 3, 1, 4), torch.ones(2, 3, 1, 5))
    twos = begun.append(2 * torch.ones(2, 3, 1, 4), 2 * torch.ones(2, 3, 1, 5))
    ones = ones.append(torch.ones(2, 3, 2, 4), torch.ones(2, 3, 2, 5))
    assert ones.keys[0, 0, :, 0].tolist() == [0, 1, 1, 1]
    assert twos.values[0, 0, :, 0].tolist() == [0, 2]
    assert begun.seq_len == 1


# ---- mistakes ---------------------------------------------------------------------------------------------------


def test_mistakes_are_told_in_one_line():
    layer, x = MultiHeadAttention(8, 2), torch.zeros(2, 5, 8)
    single = Attention(6, 5, 4, 3, 2)
    state = KeyValueCache.empty(room(2))
    key, value = torch.zeros(2, 3, 3, 4), torch.zeros(2, 3, 3, 5)
    for mistaken, words in (
        (lambda: MultiHeadAttention(8, 3), "num_heads that divide embed_dim 8, got 3"),
        (lambda: MultiHeadAttention(8, 0), "heads to be a positive whole number, got 0"),
        (lambda: MultiHeadAttention(8, 4, num_kv_heads=3), "num_kv_heads that divide num_heads 4, got 3"),
        (lambda: MultiHeadAttention(8, 2, key_dim=-1), "key_dim to be a positive whole number, got -1"),
        (lambda: layer(x[0]), r"expected query \(batch, positions, 8\), got shape \(5, 8\)"),
        (lambda: layer(x, torch.zeros(2, 7, 6)), r"expected key \(batch, positions, 8\), got shape \(2, 7, 6\)"),
        (lambda: layer(x, torch.zeros(2, 7, 8), torch.zeros(2, 6, 8)), "axis m of value to be 7"),
        (lambda: layer(x, torch.zeros(2, 7, 8), causal=True), "as many keys as queries"),
        (lambda: layer(x, lengths=torch.tensor([5, 6])), "valid lengths from 0 to 5, got 6"),
        (lambda: layer(x, lengths=torch.tensor([5, 6, 1])), "axis b of query to be 3 as in lengths"),
        (lambda: layer(x, lengths=torch.tensor([5.0, 1.0])), "integer valid lengths"),
        (lambda: layer(x, mask=torch.ones(2, 5)), "boolean mask"),
        (lambda: layer(x, mask=torch.ones(2, 5, 4, dtype=torch.bool)), r"broadcasts to \(2, 2, 5, 5\)"),
        (
            lambda: layer.attend_with_weights(x, mask=torch.ones(4, 5, dtype=torch.bool)),
            r"broadcasts to \(2, 2, 5, 5\)",
        ),
        (lambda: layer.init_cache(0, 4), "batch_size to be a positive whole number"),
        (lambda: layer.decode_step(layer.init_cache(2, 4), x[:, :1]), "decode without gradients"),
        (
            lambda: single(torch.zeros(7, 6), torch.zeros(9, 5), torch.zeros(9, 5)),
            r"expected value \(positions, 4\), got shape \(9, 5\)",
        ),
        (lambda: single(torch.zeros(7, 6), torch.zeros(9, 5), torch.zeros(8, 4)), "axis m of value to be 9"),
        (lambda: Attention(6, 5, 4, 0, 2), "head_dim to be a positive whole number, got 0"),
        (
            lambda: MultiHeadAttention(8, 2, inner_attention=ExactAttention(bias=ALiBi(3)))(x),
            "a bias of num_heads 2, got one of 3",
        ),
        (lambda: ExactAttention(dropout=1.0), "dropout probability of at least 0 and below 1, got 1.0"),
        (lambda: state.append(key, value), "at most 2 positions, got number 3"),
        (lambda: state.append(key[..., :3], value), "axis d of key to be 4"),
        (lambda: from_torch_multihead(nn.MultiheadAttention(8, 2, add_bias_kv=True)), "without add_bias_kv"),
        (lambda: ExactAttention().decode_step(object(), key, key, value), "the cache that init_cache gave, got object"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)


def test_layers_can_be_copied_and_saved():
    layer = MultiHeadAttention(8, 2, generator=seeded(0))
    x = torch.randn(2, 5, 8, generator=seeded(1))
    other = MultiHeadAttention(8, 2)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))
    assert torch.equal(MultiHeadAttention(8, 2, generator=seeded(0))(x), layer(x))  # the generator alone decides
