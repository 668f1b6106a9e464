"""The contract of attention pooling: scores, weights, lookups and additive attention agree with their definitions in
value and gradient."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from quoin.errors import UserError
from quoin.layers import (
    AdditiveAttention,
    AdditiveScore,
    BilinearScore,
    CacheSpec,
    additive_attention_definition,
    additive_score_definition,
    argmax_weights,
    attention_pooling,
    attention_pooling_definition,
    bilinear_score_definition,
    dot_score,
    dot_score_definition,
    gaussian_score,
    gaussian_score_definition,
    linear_lookup,
    linear_lookup_definition,
    pool_values,
    pool_values_definition,
    scaled_dot_score,
    scaled_dot_score_definition,
    soft_lookup,
    soft_lookup_definition,
    softmax_weights,
    uniform_weights,
)
from quoin.tensor import sequence_mask

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}
dtypes = st.sampled_from([torch.float32, torch.float64])
batches = st.sampled_from([(), (3,), (2, 2)])
sizes = st.integers(1, 6)
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=20)


def drawn(*shape: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """Equal in value and in every leaf's gradient, up to rounding as counted from the largest entry."""
    upstream = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).reshape(ours.shape).cos()
    slopes = [
        torch.autograd.grad(each, leaves, upstream, retain_graph=True, allow_unused=True) for each in (ours, theirs)
    ]
    for mine, its in [(ours, theirs), *zip(*slopes, strict=True)]:
        assert (mine is None) == (its is None)
        if mine is not None:
            scale = max(1.0, float(its.detach().abs().max()))
            torch.testing.assert_close(mine, its, rtol=0, atol=TOLERANCE[ours.dtype] * scale)


# ---- scores -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "definition"),
    [
        (dot_score, dot_score_definition),
        (scaled_dot_score, scaled_dot_score_definition),
        (gaussian_score, gaussian_score_definition),
    ],
)
@few
@given(batches, sizes, sizes, sizes, dtypes, seeds)
def test_scores_of_one_width(block, definition, batch, n, m, d, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key = (
        drawn(*batch, n, d, dtype=dtype, generator=generator),
        drawn(*batch, m, d, dtype=dtype, generator=generator),
    )
    assert_same(block(query, key), definition(query, key), [query, key])


@few
@given(batches, sizes, sizes, sizes, sizes, sizes, dtypes, seeds)
def test_scores_of_two_widths(batch, n, m, d, e, h, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key = (
        drawn(*batch, n, d, dtype=dtype, generator=generator),
        drawn(*batch, m, e, dtype=dtype, generator=generator),
    )
    bilinear = BilinearScore(d, e, generator=generator).to(dtype)
    assert_same(
        bilinear(query, key), bilinear_score_definition(query, key, bilinear.matrix), [query, key, bilinear.matrix]
    )
    additive = AdditiveScore(d, e, h, generator=generator).to(dtype)
    weights = [additive.query_weight, additive.key_weight, additive.output_weight]
    assert_same(additive(query, key), additive_score_definition(query, key, *weights), [query, key, *weights])
    # A second implementation: torch's own bilinear form, on every pair.
    pairs = [
        x.reshape(-1, x.shape[-1])
        for x in (query.unsqueeze(-2).expand(*batch, n, m, d), key.unsqueeze(-3).expand(*batch, n, m, e))
    ]
    theirs = nn.functional.bilinear(*pairs, bilinear.matrix.unsqueeze(0)).reshape(*batch, n, m)
    assert_same(bilinear(query, key), theirs, [query, key, bilinear.matrix])


def test_a_gaussian_score_far_from_the_origin():
    """The expanded square would lose all its digits at an offset of 10⁴ in float32, where squares are 10⁸ apart by
    8."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(5, 3, generator=generator) + 1e4, torch.randn(7, 3, generator=generator) + 1e4
    exact = gaussian_score_definition(query.double(), key.double())
    assert float((gaussian_score(query, key) - exact).abs().max()) < 1e-4
    naive = query @ key.mT - key.square().sum(-1) / 2 - query.square().sum(-1, keepdim=True) / 2
    assert float((naive - exact).abs().max()) > 1  # the test can see it


def test_starting_weights_keep_scores_of_size_one():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(400, 24, generator=generator), torch.randn(400, 40, generator=generator)
    assert float(BilinearScore(24, 40, generator=generator)(query, key).detach().std()) == pytest.approx(1, abs=0.15)
    assert torch.equal(
        AdditiveScore(3, 4, 5, generator=torch.Generator().manual_seed(1)).key_weight,
        AdditiveScore(3, 4, 5, generator=torch.Generator().manual_seed(1)).key_weight,
    )


# ---- pooling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weigh", [softmax_weights, argmax_weights, uniform_weights])
@few
@given(batches, sizes, sizes, sizes, sizes, st.booleans(), dtypes, seeds)
def test_pooling(weigh, batch, n, m, d, v, masked, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key, value = leaves = [
        drawn(*batch, *shape, dtype=dtype, generator=generator) for shape in ((n, d), (m, d), (m, v))
    ]
    mask = torch.rand(n, m, generator=generator) < 0.6 if masked else None
    ours = attention_pooling(query, key, value, scaled_dot_score, weigh, mask=mask)
    theirs = attention_pooling_definition(query, key, value, scaled_dot_score_definition, weigh, mask=mask)
    assert_same(ours.output, theirs.output, leaves)
    torch.testing.assert_close(ours.weights, theirs.weights)
    total = ours.weights.detach().sum(dim=-1)
    sees = torch.ones(n, dtype=torch.bool) if mask is None else mask.any(dim=-1)
    torch.testing.assert_close(total, sees.to(dtype).expand_as(total))
    if mask is not None:
        assert (ours.weights.masked_select(~mask) == 0).all()


@few
@given(batches, sizes, sizes, sizes, dtypes, seeds)
def test_values_are_combined_by_any_weights(batch, n, m, v, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    weights, value = (
        drawn(*batch, n, m, dtype=dtype, generator=generator),
        drawn(*batch, m, v, dtype=dtype, generator=generator),
    )
    assert_same(pool_values(weights, value), pool_values_definition(weights, value), [weights, value])
    assert_same(pool_values(weights, value), torch.einsum("...nm,...mv->...nv", weights, value), [weights, value])


def test_hard_weights_take_the_first_of_equals_and_only_what_is_seen():
    scores = torch.tensor([[1.0, 3.0, 3.0], [math.nan, 1.0, 2.0], [5.0, 4.0, 3.0]])
    mask = torch.tensor([[True, True, True], [False, True, True], [False, False, False]])
    assert torch.equal(argmax_weights(scores, mask), torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    assert torch.equal(uniform_weights(scores, mask), torch.tensor([[1 / 3] * 3, [0, 0.5, 0.5], [0, 0, 0]]))


@few
@given(batches, sizes, sizes, sizes, sizes, dtypes, seeds)
def test_lookups(batch, n, m, d, v, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    query, key, value = leaves = [
        drawn(*batch, *shape, dtype=dtype, generator=generator) for shape in ((n, d), (m, d), (m, v))
    ]
    assert_same(linear_lookup(query, key, value), linear_lookup_definition(query, key, value).output, leaves)
    assert_same(soft_lookup(query, key, value), soft_lookup_definition(query, key, value).output, leaves)
    same = nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0)  # a peer
    assert_same(soft_lookup(query, key, value), same, leaves)


def test_a_lookup_takes_the_cheaper_order():
    """Of the two orders of (Q Kᵀ) V = Q (Kᵀ V) the one with fewer multiplications, counted by torch."""
    for n, m, d, v in ((100, 100, 4, 4), (3, 100, 40, 40), (1, 5, 5, 3), (50, 2, 30, 30)):
        with FlopCounterMode(display=False) as counter:
            linear_lookup(torch.ones(n, d), torch.ones(m, d), torch.ones(m, v))
        assert counter.get_total_flops() == 2 * min(n * m * (d + v), d * v * (n + m))


# ---- additive attention -----------------------------------------------------------------------------------------


@few
@given(batches, sizes, sizes, sizes, sizes, st.booleans(), dtypes, seeds)
def test_additive_attention(batch, n, m, d, e, masked, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    attend = AdditiveAttention(d, e, 5, generator=generator).to(dtype)
    query, key, value = (drawn(*batch, *shape, dtype=dtype, generator=generator) for shape in ((n, d), (m, e), (m, 3)))
    mask = torch.rand(n, m, generator=generator) < 0.6 if masked else None
    score = attend.score
    weights = [score.query_weight, score.key_weight, score.output_weight]
    definition = additive_attention_definition(query, key, value, *weights, mask)
    assert_same(attend(query, key, value, mask=mask), definition.output, [query, key, value, *weights])
    assert_same(attend.weights(query, key, mask=mask), definition.weights, [query, key, *weights])
    memory = attend.project_memory(key, value)
    steps = torch.cat(
        [attend.attend_memory(memory, each).output for each in query.split(1, dim=-2)], dim=-2
    )  # a decoder's
    assert_same(steps, attend(query, key, value), [query, key, value, *weights])


def test_remembered_keys_are_projected_once():
    n, m, d, e, h, v = 1, 50, 6, 8, 10, 4
    attend = AdditiveAttention(d, e, h)
    with FlopCounterMode(display=False) as counter:
        memory = attend.project_memory(torch.ones(m, e), torch.ones(m, v))
    assert counter.get_total_flops() == 2 * m * e * h
    with FlopCounterMode(display=False) as counter:
        attend.attend_memory(memory, torch.ones(n, d))
    assert (
        counter.get_total_flops() < 2 * m * e * h
    )  # the query's projection, the products with w_v and with the values
    with FlopCounterMode(display=False) as counter:
        state = attend.init_cache(CacheSpec(1, 1, e, v, m, torch.float32, torch.device("cpu")))
        with torch.no_grad():
            for _ in range(m):
                state = attend.decode_step(
                    state, torch.ones(1, 1, 1, d), torch.ones(1, 1, 1, e), torch.ones(1, 1, 1, v)
                ).cache
    projections = 2 * m * h * (d + e)
    pooling = sum(2 * seen * v for seen in range(1, m + 1))
    scores = sum(2 * seen * h for seen in range(1, m + 1))
    assert projections + pooling <= counter.get_total_flops() <= projections + pooling + scores


class Pooling(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return attention_pooling(query, key, value, scaled_dot_score, softmax_weights, mask=mask).output


PADDED: dict[str, Callable[[], nn.Module]] = {
    "additive": lambda: AdditiveAttention(4, 4, 5, generator=torch.Generator().manual_seed(0)),
    "pooling": Pooling,
}


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("junk", [math.nan, math.inf, 1e30])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_stands_at_padding_never_matters(name, junk, dtype):
    """NaN in the keys and values of padding: outputs and gradients are those of the sequences cut to their length."""
    attend, generator = PADDED[name]().to(dtype), torch.Generator().manual_seed(0)
    lengths = torch.tensor([3, 0, 5])
    query, key, value = (torch.randn(3, 1, n, 4, generator=generator).to(dtype) for n in (2, 5, 5))
    padded = ~sequence_mask(lengths, 5)[:, None, :, None]
    leaves = [
        query.requires_grad_(),
        key.masked_fill(padded, junk).requires_grad_(),
        value.masked_fill(padded, junk).requires_grad_(),
    ]
    output = attend(*leaves, mask=sequence_mask(lengths, 5)[:, None, None])
    slopes = torch.autograd.grad(output.sum(), leaves)
    for b, length in enumerate(lengths.tolist()):
        if length == 0:
            assert (output[b] == 0).all()
            assert all((slope[b] == 0).all() for slope in slopes)
            continue
        alone = [leaf[b : b + 1, :, : length if i else None].detach().requires_grad_() for i, leaf in enumerate(leaves)]
        expected = attend(*alone)
        its = torch.autograd.grad(expected.sum(), alone)
        tolerance = {"rtol": 0, "atol": 16 * torch.finfo(dtype).eps}
        torch.testing.assert_close(output[b : b + 1], expected, **tolerance)
        for slope, mine in zip(slopes, its):
            torch.testing.assert_close(slope[b : b + 1, :, : mine.shape[2]], mine, **tolerance)
            assert (slope[b, :, mine.shape[2] :] == 0).all()


def test_remembered_padding_never_matters():
    attend = AdditiveAttention(4, 3, 5, generator=torch.Generator().manual_seed(0))
    key, value = torch.randn(2, 5, 3), torch.randn(2, 5, 2)
    key[0, 2:], value[0, 2:] = math.nan, math.inf
    query = torch.randn(2, 1, 4)
    found = attend.attend_memory(attend.project_memory(key, value, lengths=torch.tensor([2, 5])), query)
    torch.testing.assert_close(found.output[:1], attend(query[:1], key[:1, :2], value[:1, :2]))
    assert torch.equal(found.weights[0, 0, 2:], torch.zeros(3))


# ---- mistakes ---------------------------------------------------------------------------------------------------

Q, K, V = torch.zeros(2, 5, 4), torch.zeros(2, 7, 3), torch.zeros(2, 7, 6)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: dot_score(Q, K), "axis d of key to be 4 as in query, got 3"),
        (lambda: scaled_dot_score(Q[0], Q), r"leading axes \(\) of key as in query, got \(2,\)"),
        (lambda: BilinearScore(3, 3)(Q, K), "axis d of query to be 3 as in matrix, got 4"),
        (lambda: BilinearScore(0, 3), "query_dim to be a positive whole number, got 0"),
        (lambda: AdditiveScore(4, 3, -1), "hidden_dim to be a positive whole number, got -1"),
        (lambda: AdditiveAttention(5, 3, 2)(Q, K, V), "axis d of query to be 5 as in query_weight, got 4"),
        (lambda: AdditiveAttention(4, 4, 2)(Q, K, V), "axis e of key to be 4 as in key_weight, got 3"),
        (lambda: AdditiveAttention(4, 3, 2)(Q, K, V[:, :6]), "axis m of value to be 7 as in key, got 6"),
        (
            lambda: AdditiveAttention(4, 3, 2)(Q, K, V, causal=True),
            "as many keys as queries where attention is causal, got 7",
        ),
        (lambda: AdditiveAttention(4, 3, 2)(Q, K, V, mask=torch.ones(5, 7)), "boolean mask"),
        (
            lambda: AdditiveAttention(4, 3, 2)(Q, K, V, mask=torch.ones(2, 7, dtype=torch.bool)),
            r"broadcasts to \(2, 5, 7\)",
        ),
        (lambda: AdditiveAttention(4, 3, 2).project_memory(K, V, lengths=torch.tensor([7, 8])), "from 0 to 7, got 8"),
        (lambda: AdditiveAttention(4, 3, 2).project_memory(K, V[:, 1:]), "axis m of value to be 7"),
        (lambda: AdditiveAttention(4, 3, 2).decode_step("state", Q, K, V), "cache that init_cache gave, got str"),  # type: ignore[arg-type]
        (lambda: pool_values(torch.zeros(5, 6), V[0]), "axis m of value to be 6 as in weights, got 7"),
        (lambda: pool_values(torch.zeros(5, 7), V[0], torch.ones(5, 6, dtype=torch.bool)), r"broadcasts to \(5, 7\)"),
        (lambda: attention_pooling(Q, K[:, :0], V[:, :0], dot_score, softmax_weights), "at least one key"),
        (lambda: attention_pooling(Q, K, V[:, 1:], dot_score, softmax_weights), "axis m of value to be 7"),
        (lambda: linear_lookup(Q, K, V), "axis d of key to be 4"),
        (lambda: soft_lookup(K, K.double(), V), "operands of one dtype"),
        (lambda: argmax_weights(torch.zeros(2, 3), torch.ones(2, 3)), "boolean mask"),
        (lambda: uniform_weights(torch.zeros(2, 3).long()), "float dtype"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
