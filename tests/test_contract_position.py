"""The contract of positions: fast forms equal their definitions in value and gradient, and the papers' own formulas."""

import copy
import math
import runpy
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from near import assert_each_near
from quoin.errors import UserError
from quoin.layers import (
    ALiBi,
    BidirectionalBuckets,
    CausalBuckets,
    ClippedBuckets,
    HalfSplitRotaryEmbedding,
    LearnedPositionalEmbedding,
    RelativePositionBias,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    additive_position_definition,
    alibi_definition,
    alibi_slopes,
    apply_half_split_rotary,
    apply_half_split_rotary_definition,
    apply_rotary,
    apply_rotary_definition,
    position_angles,
    positional_qkv_definition,
    relative_distances,
    relative_position_bias_definition,
    rotary_matrix,
    rotary_position_definition,
    sinusoidal_encoding,
    sinusoidal_encoding_definition,
    to_half_split,
    to_interleaved,
)
from quoin.layers.attention import CacheSpec, ExactAttention, MultiHeadAttention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
lengths = st.integers(1, 6)
offsets = st.integers(0, 300)
even = st.integers(1, 5).map(lambda half: 2 * half)
bases = st.sampled_from([10000.0, 500000.0, 10.0])
leads = st.lists(st.integers(1, 3), max_size=2)
few = settings(deadline=None, max_examples=30)

PAIRINGS = [
    (RotaryEmbedding, apply_rotary, apply_rotary_definition),
    (HalfSplitRotaryEmbedding, apply_half_split_rotary, apply_half_split_rotary_definition),
]


def normal(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype)


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor], generator: torch.Generator) -> None:
    """Values and gradients."""
    assert_each_near(ours, theirs, TOLERANCE)
    upstream = normal(*ours.shape, generator=generator, dtype=ours.dtype)
    slopes = [torch.autograd.grad(each, leaves, upstream, retain_graph=True) for each in (ours, theirs)]
    for mine, its in zip(*slopes, strict=True):
        assert_each_near(mine, its, TOLERANCE)


# ---- codes that are added ---------------------------------------------------------------------------------------


@few
@given(lengths, even, bases, offsets)
def test_sinusoidal_codes_are_their_formula_and_powers_of_one_turn(n, d, base, start):
    assert_each_near(sinusoidal_encoding(n, d, base=base), sinusoidal_encoding_definition(n, d, base=base), TOLERANCE)
    assert_each_near(
        sinusoidal_encoding(n, d, start=start, base=base),
        sinusoidal_encoding_definition(start + n, d, base=base)[start:],
        TOLERANCE,
    )
    speeds = torch.tensor([base ** (-2 * i / d) for i in range(d // 2)], dtype=torch.float64)
    turns = torch.polar(torch.ones_like(speeds), speeds) ** torch.arange(n).unsqueeze(-1)  # e^{iθ} to the power m
    assert_each_near(
        sinusoidal_encoding(n, d, base=base), torch.stack([turns.imag, turns.real], dim=-1).flatten(-2), TOLERANCE
    )
    assert_each_near(position_angles(torch.tensor([1.0]), d, base=base)[0], speeds, TOLERANCE)


@few
@given(leads, lengths, even, st.integers(1, 4), offsets, dtypes, seeds)
def test_adding_codes_before_a_linear_layer_is_the_additive_map(lead, n, d, k, offset, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    x = normal(*lead, n, d, generator=generator, dtype=dtype).requires_grad_()
    linear = nn.Linear(d, k, bias=False, dtype=dtype)
    codes = sinusoidal_encoding_definition(offset + n, d)[offset:].to(dtype)
    fast = linear(SinusoidalPositionalEncoding(d)(x, offset))
    assert_same(fast, additive_position_definition(x, linear.weight, codes), [x, linear.weight], generator)
    learned = LearnedPositionalEmbedding(offset + n, d, generator=generator).to(dtype)
    defined = additive_position_definition(x, linear.weight, learned.weight[offset:])
    assert_same(linear(learned(x, offset)), defined, [x, linear.weight, learned.weight], generator)


@few
@given(lengths, even, even, seeds)
def test_maps_of_a_token_and_its_position(n, d, k, seed):
    generator = torch.Generator().manual_seed(seed)
    x, codes = normal(n, d, generator=generator), sinusoidal_encoding_definition(n, d)
    query, key, value = (normal(k, d, generator=generator) for _ in range(3))
    found = positional_qkv_definition(
        x, lambda x, m: rotary_matrix(m, k) @ query @ x, lambda x, m: key @ (x + codes[m]), lambda x, m: value @ x
    )
    assert_each_near(found.query, rotary_position_definition(x, query, torch.arange(n)), TOLERANCE)
    assert_each_near(found.key, additive_position_definition(x, key, codes), TOLERANCE)
    assert_each_near(found.value, x @ value.T, TOLERANCE)


def test_learned_codes_start_small_from_the_generator_alone():
    first, second = (
        LearnedPositionalEmbedding(500, 20, generator=torch.Generator().manual_seed(3)).weight for _ in range(2)
    )
    assert torch.equal(first, second)
    assert abs(float(first.detach().std()) / 0.02 - 1) < 0.05  # 10,000 draws: seven deviations


# ---- turns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "function", "definition"), PAIRINGS)
@few
@given(leads, lengths, even, offsets, bases, st.booleans(), dtypes, seeds)
def test_a_turn_is_its_matrix(module, function, definition, lead, n, d, offset, base, clockwise, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    x = normal(*lead, n, d, generator=generator, dtype=dtype).requires_grad_()
    positions = torch.arange(offset, offset + n)
    defined = definition(x, positions, base=base, clockwise=clockwise)
    assert_same(function(x, positions, base=base, clockwise=clockwise), defined, [x], generator)
    assert_same(module(d, base=base, clockwise=clockwise)(x, offset), defined, [x], generator)
    assert_each_near(definition(x, -positions, base=base, clockwise=not clockwise), defined, TOLERANCE)
    own = torch.stack([positions, positions + 5])[:, None]  # two sequences, each at its own positions, in two heads
    both = x.expand(2, 2, n, d) if not lead else x.reshape(-1, n, d)[0].expand(2, 2, n, d)
    turned = function(both, own, base=base, clockwise=clockwise)
    for row in range(2):
        assert_each_near(turned[row], definition(both[row], own[row, 0], base=base, clockwise=clockwise), TOLERANCE)


def llama(x: Tensor, positions: Tensor) -> Tensor:
    """Half-split as Llama writes it, with x turned a quarter by swapping halves."""
    d = x.shape[-1]
    frequencies = positions[:, None] * (1.0 / 10000.0 ** (torch.arange(0, d, 2, dtype=x.dtype) / d))
    angles = torch.cat([frequencies, frequencies], dim=-1)
    quarter = torch.cat([-x[..., d // 2 :], x[..., : d // 2]], dim=-1)
    return x * angles.cos() + quarter * angles.sin()


def gpt_j(x: Tensor, positions: Tensor) -> Tensor:
    """Interleaved as GPT-J writes it, with x turned a quarter by swapping neighbours."""
    d = x.shape[-1]
    frequencies = positions[:, None] * (1.0 / 10000.0 ** (torch.arange(0, d, 2, dtype=x.dtype) / d))
    angles = frequencies.repeat_interleave(2, dim=-1)
    quarter = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * angles.cos() + quarter * angles.sin()


@pytest.mark.parametrize(("module", "peer"), [(RotaryEmbedding, gpt_j), (HalfSplitRotaryEmbedding, llama)])
@few
@given(leads, lengths, even, offsets, dtypes, seeds)
def test_a_turn_is_the_peers(module, peer, lead, n, d, offset, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    x = normal(*lead, n, d, generator=generator).requires_grad_()
    theirs = peer(x, torch.arange(offset, offset + n, dtype=torch.float64))
    ours = module(d)(x, offset)
    assert_same(ours, theirs, [x], generator)
    theirs = theirs.to(dtype)  # computed in float64, for its float32 angles are coarse
    assert_each_near(module(d)(x.to(dtype), offset), theirs, TOLERANCE)


@few
@given(st.integers(1, 4), even, st.integers(1, 4), lengths, seeds)
def test_converted_weights_give_the_same_scores(heads, d, inputs, n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = normal(n, inputs, generator=generator)
    query, key = (normal(heads * d, inputs, generator=generator) for _ in range(2))
    bias = normal(heads * d, generator=generator)

    def scores(turn, query, key, bias):
        split = [nn.functional.linear(x, each, bias).unflatten(-1, (heads, d)).transpose(0, 1) for each in (query, key)]
        return turn(split[0]) @ turn(split[1]).mT

    converted = [to_half_split(each, heads) for each in (query, key, bias)]
    assert_each_near(
        scores(HalfSplitRotaryEmbedding(d), *converted), scores(RotaryEmbedding(d), query, key, bias), TOLERANCE
    )
    for before, after in zip((query, key, bias), converted):
        assert torch.equal(to_interleaved(after, heads), before)
    # Meta's own script, from its interleaved checkpoints to half-split ones
    assert torch.equal(converted[0], query.view(heads, d // 2, 2, inputs).transpose(1, 2).reshape(heads * d, inputs))


@pytest.mark.parametrize("module", [RotaryEmbedding, HalfSplitRotaryEmbedding])
def test_awkward_strides_and_the_compilers_path_change_nothing(module, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    turn, wide = module(6), normal(2, 5, 3, 7, generator=generator)
    views = [
        wide[..., 1:],
        wide[..., :6],
        wide[..., :6].transpose(1, 2),
        wide[:, 1:, :, 1:].transpose(1, 2),
        wide[:, :, 0, :1].expand(2, 5, 6),
    ]
    plain = [turn(view) for view in views]
    for view, found in zip(views, plain):
        assert_each_near(found, turn(view.clone(memory_format=torch.contiguous_format)), TOLERANCE)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for view, found in zip(views, plain):
        assert_each_near(turn(view), found, TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(
    ("module", "definition"),
    [(RotaryEmbedding, apply_rotary_definition), (HalfSplitRotaryEmbedding, apply_half_split_rotary_definition)],
)
def test_a_low_precision_rounds_the_numbers_and_not_the_angles(module, definition, dtype):
    x = normal(2, 3, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    offset = 100_003  # no bfloat16, and its turn by 1 radian a step is a matter of 6 digits
    turned = module(8).to(dtype)(x, offset)
    assert turned.dtype == dtype
    exact = definition(x.double(), torch.arange(offset, offset + 3))
    # Half a unit in the last place of the largest entry, and as much again for what is near a tie.
    assert float((turned.double() - exact).abs().max()) <= torch.finfo(dtype).eps * float(exact.abs().max())


# ---- what is kept between calls ---------------------------------------------------------------------------------

KINDS = [RotaryEmbedding, HalfSplitRotaryEmbedding, SinusoidalPositionalEncoding]


@pytest.mark.parametrize("kind", [*KINDS, lambda d: LearnedPositionalEmbedding(64, d)])
def test_a_sequence_in_pieces_is_the_sequence(kind):
    generator = torch.Generator().manual_seed(0)
    module, x = kind(4), normal(2, 40, 4, generator=generator, dtype=torch.float32)
    whole = copy.deepcopy(module)(x)
    pieces = [module(x[:, start:stop], start) for start, stop in ((0, 3), (3, 4), (4, 5), (5, 33), (33, 40))]
    assert_each_near(torch.cat(pieces, dim=1), whole, TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_kept_tables_follow_dtype_and_mode_and_are_no_state(kind):
    x = normal(1, 5, 4, generator=torch.Generator().manual_seed(0))
    module = kind(4)
    expected = kind(4)(x)
    assert not module.state_dict()
    with torch.inference_mode():
        module(x)
    assert torch.equal(
        torch.autograd.grad(module(x.requires_grad_()).sum(), x)[0], torch.autograd.grad(kind(4)(x).sum(), x)[0]
    )
    with FakeTensorMode():
        module(torch.empty(1, 50, 4, dtype=torch.float64))
    fresh = kind(4)
    for _ in range(4):
        for each in (fresh, module):
            assert each(x.float()).dtype == torch.float32
            assert torch.equal(each(x), expected)  # not from the float32 table
    module.to(torch.bfloat16)
    for each in (module, copy.deepcopy(module)):
        assert torch.equal(each(x), expected)
    assert len(rows_kept(module)) <= 16  # the double of 5, twice at most, however often the dtype changes


def rows_kept(module: nn.Module) -> Tensor:
    return (module.encoding if isinstance(module, SinusoidalPositionalEncoding) else module.table.rows).kept  # type: ignore[union-attr]


# ---- biases of the scores ---------------------------------------------------------------------------------------


def slopes_of_the_paper(n: int) -> list[float]:
    """Press, Smith and Lewis's own function."""

    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + slopes_of_the_paper(2 * closest)[0::2][: n - closest]


@pytest.mark.parametrize("heads", [*range(1, 41), 64, 71, 112, 128])
def test_alibi_has_the_papers_slopes(heads):
    assert_each_near(alibi_slopes(heads), torch.tensor(slopes_of_the_paper(heads), dtype=torch.float64), TOLERANCE)


@few
@given(st.integers(1, 12), lengths, lengths, offsets, dtypes)
def test_alibi_is_its_definition(heads, n, m, offset, dtype):
    defined = alibi_definition(heads, n, m, offset)
    slopes = slopes_of_the_paper(heads)
    by_hand = [[[-slope * abs(i + offset - j) for j in range(m)] for i in range(n)] for slope in slopes]
    assert_each_near(defined, torch.tensor(by_hand, dtype=torch.float64), TOLERANCE)
    module = ALiBi(heads).to(dtype)
    assert_each_near(module(n, m, offset), defined.to(dtype), TOLERANCE)
    assert torch.equal(module.to(torch.bfloat16).float()(n, m, offset), ALiBi(heads)(n, m, offset))
    assert not module.state_dict()


def bucket_of_t5(distance: Tensor, bidirectional: bool, num_buckets: int, max_distance: int) -> Tensor:
    """As the T5 authors compute it, in float32."""
    buckets = torch.zeros_like(distance)
    if bidirectional:
        num_buckets //= 2
        buckets = buckets + (distance > 0).long() * num_buckets
        steps = distance.abs()
    else:
        steps = -torch.min(distance, torch.zeros_like(distance))
    exact = num_buckets // 2
    far = exact + (torch.log(steps.float() / exact) / math.log(max_distance / exact) * (num_buckets - exact)).long()
    return buckets + torch.where(steps < exact, steps, far.clamp(max=num_buckets - 1))


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (32, 100), (64, 256), (8, 20), (6, 5), (4, 3)])
def test_buckets_are_t5s(num_buckets, max_distance):
    distance = torch.arange(-600, 601)
    for rule, bidirectional in ((BidirectionalBuckets, True), (CausalBuckets, False)):
        ours = rule(num_buckets, max_distance)(distance)
        assert torch.equal(ours, bucket_of_t5(distance, bidirectional, num_buckets, max_distance))
        assert int(ours.max()) == num_buckets - 1


def test_a_whole_logarithm_is_not_rounded_down():
    """With e = 4 and 5 far buckets up to 128 = 4 · 2^5 steps, a new one begins at every doubling."""
    assert math.log(8 / 4) / math.log(128 / 4) * 5 < 1  # what floats make of it
    assert CausalBuckets(9, 128)(-torch.tensor([3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 500])).tolist() == [
        3,
        4,
        4,
        5,
        5,
        6,
        6,
        7,
        7,
        8,
        8,
    ]


@few
@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(0, 20), st.integers(0, 2), dtypes, seeds)
def test_a_relative_bias_is_its_definition(heads, n, m, offset, which, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    buckets = (BidirectionalBuckets(8, 6), CausalBuckets(5, 7), ClippedBuckets(3))[which]
    module = RelativePositionBias(heads, buckets, generator=generator).to(dtype)
    ours, defined = module(n, m, offset), relative_position_bias_definition(module.table, buckets, n, m, offset)
    assert_same(ours, defined, [module.table], generator)
    by_hand = [[j - i - offset for j in range(m)] for i in range(n)]
    assert relative_distances(n, m, offset).tolist() == by_hand
    if isinstance(buckets, ClippedBuckets):
        of_head = module.table[:, 0].tolist()
        expected = [[of_head[min(3, max(-3, gap)) + 3] for gap in row] for row in by_hand]
        assert ours[0].tolist() == expected


@pytest.mark.parametrize(
    "bias",
    [
        ALiBi(4),
        RelativePositionBias(4, CausalBuckets(8, 12)),
        RelativePositionBias(4),
        RelativePositionBias(4, ClippedBuckets(2)),
    ],
)
def test_exact_attention_adds_the_bias_also_when_it_goes_on_token_by_token(bias):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (normal(2, 4, 7, 3, generator=generator, dtype=torch.float32) for _ in range(3))
    attend = ExactAttention(bias=bias)
    scores = query @ key.mT / math.sqrt(3) + bias(7, 7, 0)
    scores = scores.masked_fill(torch.ones(7, 7).triu(1).bool(), -math.inf)
    expected = scores.softmax(-1) @ value
    torch.testing.assert_close(attend(query, key, value, causal=True), expected)
    state, found = attend.init_cache(CacheSpec(2, 4, 3, 3, 7, torch.float32, torch.device("cpu"))), []
    for start, stop in ((0, 2), (2, 3), (3, 7)):
        output, state = attend.decode_step(state, *(each[:, :, start:stop] for each in (query, key, value)))
        found.append(output)
    torch.testing.assert_close(torch.cat(found, dim=2), expected)


@pytest.mark.parametrize("kind", [RotaryEmbedding, HalfSplitRotaryEmbedding])
@torch.no_grad()
def test_multi_head_attention_turns_queries_and_keys_also_when_it_goes_on_token_by_token(kind):
    generator = torch.Generator().manual_seed(0)
    layer = MultiHeadAttention(12, 3, rotary=kind(4), generator=generator)
    plain = MultiHeadAttention(12, 3)
    plain.load_state_dict(layer.state_dict())
    x = normal(2, 7, 12, generator=generator, dtype=torch.float32)
    turned, definition = (
        [],
        {RotaryEmbedding: apply_rotary_definition, HalfSplitRotaryEmbedding: apply_half_split_rotary_definition}[kind],
    )
    for maps in plain.head_projections():
        query, key = (definition(f(x), torch.arange(7)) for f in (maps.q_proj, maps.k_proj))
        scores = (query @ key.mT / 2).masked_fill(torch.ones(7, 7).triu(1).bool(), -math.inf)
        turned.append(scores.softmax(-1) @ maps.v_proj(x))
    expected = plain.out_proj(torch.cat(turned, dim=-1))
    torch.testing.assert_close(layer(x, causal=True), expected)
    state, found = layer.init_cache(2, 7), []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        output, state = layer.decode_step(state, x[:, start:stop])
        found.append(output)
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


def test_the_example_script_shows_which_ways_break_the_symmetry(tmp_path, monkeypatch, capsys):
    script = Path(__file__).parents[1] / "examples" / "attention.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "a.svg")])
    runpy.run_path(str(script), run_name="__main__")
    moved = {line[:18].strip(): float(line[18:]) for line in capsys.readouterr().out.splitlines()[1:-1]}
    assert len(moved) == 6
    assert moved.pop("none") < 1e-5
    assert min(moved.values()) > 1e-3
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


# ---- what does not fit ------------------------------------------------------------------------------------------

x = torch.zeros(2, 3, 4)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: RotaryEmbedding(7), "even number of features, to rotate them in pairs, got 7"),
        (lambda: HalfSplitRotaryEmbedding(0), "even number of features.* got 0"),
        (lambda: SinusoidalPositionalEncoding(5), "even number of features.* got 5"),
        (lambda: rotary_matrix(1, 3), "even number of features"),
        (lambda: apply_rotary(x[..., :3], torch.arange(3)), "even number of features.* got 3"),
        (lambda: sinusoidal_encoding_definition(3, 3), "even number of features"),
        (lambda: RotaryEmbedding(4, base=-1.0), "positive base of the frequencies, got -1.0"),
        (lambda: sinusoidal_encoding(4, 4, base=float("nan")), "positive base of the frequencies, got nan"),
        (lambda: sinusoidal_encoding(-1, 4), "number of positions from 0 on, got -1"),
        (lambda: sinusoidal_encoding(3, 4, start=-2), "positions from 0 on, got -2"),
        (lambda: RotaryEmbedding(4)(x, -1), "positions from 0 on, got -1"),
        (lambda: SinusoidalPositionalEncoding(4)(x, -1), "positions from 0 on, got -1"),
        (lambda: RotaryEmbedding(8)(x), r"queries or keys of 8 features, got shape \(2, 3, 4\)"),
        (lambda: RotaryEmbedding(4)(x.long()), "float dtype, got torch.int64"),
        (lambda: SinusoidalPositionalEncoding(8)(x), r"tokens of 8 features on the last axis, got shape \(2, 3, 4\)"),
        (
            lambda: apply_rotary(x, torch.arange(2)),
            r"one position for each token, got \(2,\) for x of shape \(2, 3, 4\)",
        ),
        (lambda: LearnedPositionalEmbedding(2, 4)(x), "among the 2 that were learned, got 0 to 2"),
        (lambda: LearnedPositionalEmbedding(9, 4)(x, 7), "among the 9 that were learned, got 7 to 9"),
        (lambda: LearnedPositionalEmbedding(9, 4)(x, -3), "positions from 0 on, got -3"),
        (lambda: LearnedPositionalEmbedding(9, 5)(x), "tokens of 5 features"),
        (lambda: LearnedPositionalEmbedding(0, 4), "positive number of positions and features, got 0 and 4"),
        (lambda: ALiBi(0), "at least one head, got 0"),
        (lambda: alibi_slopes(-2), "at least one head, got -2"),
        (lambda: RelativePositionBias(0), "at least one head, got 0"),
        (lambda: ALiBi(2)(0, 3), "at least one query and one key, got 0 and 3"),
        (lambda: RelativePositionBias(2)(3, 3, -1), "positions from 0 on, got -1"),
        (lambda: CausalBuckets(1), "at least 2 buckets"),
        (lambda: CausalBuckets(32, 16), "got 32 and 16; T5 has 32 and 128"),
        (lambda: BidirectionalBuckets(7), "even number of buckets, half for each side, got 7"),
        (lambda: ClippedBuckets(-1), "largest distance from 0 on, got -1"),
        (lambda: to_half_split(torch.zeros(10, 2), 4), "num_heads that divide the 10 rows, got 4"),
        (lambda: to_half_split(torch.zeros(10, 2), 2), "even number of features.* got 5"),
        (lambda: to_interleaved(torch.zeros(4, 2), 0), "divide the 4 rows, got 0"),
        (
            lambda: additive_position_definition(x, torch.zeros(5, 4), torch.zeros(2, 4)),
            "expected axis n of encoding to be 3",
        ),
        (
            lambda: positional_qkv_definition(x, *[lambda x, m: x] * 3),
            r"expected x with 2 axes \(n d\), got shape \(2, 3, 4\)",
        ),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
