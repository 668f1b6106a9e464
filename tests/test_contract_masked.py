"""The contract of what is computed over seen positions: definition, fast form and plain loops agree in value and
gradient, and nothing that stands at hidden positions matters. Padding of sequences, too."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import quoin.tensor.masked
from quoin.data import pad_sequences
from quoin.errors import UserError
from quoin.tensor import (
    attention_mask,
    check_mask,
    masked_mean,
    masked_softmax,
    masked_softmax_definition,
    sequence_mask,
    zero_masked,
)

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
dtypes = st.sampled_from(DTYPES)
batches = st.sampled_from([(), (3,), (2, 3)])
sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=25)


def some_mask(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """A random mask that broadcasts to `shape`: some axes left out, some of size one; now and then a row with nothing
    to see."""
    kept = [size if torch.rand((), generator=generator) < 0.7 else 1 for size in shape]
    mask = torch.rand(kept, generator=generator) < 0.6
    left_out = int(torch.randint(len(shape), (), generator=generator))
    return mask[(0,) * left_out]


def row_by_row(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of the seen scores of each row, taken out and put back; in float64."""
    seen = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, allowed in zip(scores.double().reshape(-1, scores.shape[-1]), seen):
        weights = torch.zeros_like(row)
        rows.append(weights.masked_scatter(allowed, torch.softmax(row[allowed], dim=-1)) if allowed.any() else weights)
    return torch.stack(rows).reshape(scores.shape)


def assert_close(ours: Tensor, expected: Tensor) -> None:
    """Within some roundings of our dtype."""
    bound = 16 * torch.finfo(ours.dtype).eps * max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(ours.double(), expected.double(), rtol=0, atol=bound)


def slope(output: Tensor, x: Tensor, upstream: Tensor) -> Tensor:
    if not output.requires_grad:  # the loop over rows of which none sees anything
        return torch.zeros_like(x)
    return torch.autograd.grad(output, x, upstream.to(output.dtype), retain_graph=True)[0]


@few
@given(batches, sizes, sizes, dtypes, seeds)
def test_definition_block_and_loop_agree(batch, n, m, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = (3 * torch.randn(*batch, n, m, generator=generator)).to(dtype).requires_grad_()
    mask = some_mask((*batch, n, m), generator)
    upstream = torch.randn(*batch, n, m, generator=generator).to(dtype)
    expected = row_by_row(scores, mask)
    for form in (masked_softmax, masked_softmax_definition):
        weights = form(scores, mask)
        assert weights.dtype == dtype
        assert_close(weights, expected)
        assert_close(slope(weights, scores, upstream), slope(expected, scores, upstream))
        hidden = ~mask.expand(scores.shape)
        assert (weights[hidden] == 0).all()
        assert (slope(weights, scores, upstream)[hidden] == 0).all()


@few
@given(batches, sizes, sizes, dtypes, seeds)
def test_what_is_hidden_never_matters(batch, n, m, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    clean = torch.randn(*batch, n, m, generator=generator).to(dtype)
    mask = some_mask(clean.shape, generator)
    junk = torch.tensor([math.nan, math.inf, -math.inf, torch.finfo(dtype).max]).to(dtype)
    dirty = torch.where(mask, clean, junk[torch.randint(4, clean.shape, generator=generator)])
    upstream = torch.randn(clean.shape, generator=generator).to(dtype)
    for form in (masked_softmax, masked_softmax_definition):
        found = []
        for scores in (clean.clone().requires_grad_(), dirty.clone().requires_grad_()):
            weights = form(scores, mask)
            found.append((weights, slope(weights, scores, upstream)))
        for one, other in zip(*found):
            torch.testing.assert_close(one, other, rtol=0, atol=0)


@few
@given(st.integers(1, 3), sizes, sizes, st.booleans(), st.booleans(), st.booleans(), seeds)
def test_lengths_masks_and_causality_all_hold(batch, n, extra, causal, per_query, with_mask, seed):
    """Entry by entry: key j is seen by query i of sequence b if its mask, its length and its place allow it."""
    generator = torch.Generator().manual_seed(seed)
    m = n + extra - 1
    mask = some_mask((batch, n, m), generator) if with_mask else None
    lengths = torch.randint(m + 1, (batch, n) if per_query else (batch,), generator=generator)
    found = attention_mask((batch, n, m), mask, lengths=lengths, causal=causal)
    assert found is not None
    allowed = torch.ones(batch, n, m, dtype=torch.bool) if mask is None else mask.expand(batch, n, m)
    for b, i, j in torch.cartesian_prod(torch.arange(batch), torch.arange(n), torch.arange(m)).tolist():
        length = int(lengths[b, i] if per_query else lengths[b])
        seen = bool(allowed[b, i, j]) and j < length and (not causal or j <= i + m - n)
        assert bool(found.expand(batch, n, m)[b, i, j]) == seen
    scores = torch.randn(batch, n, m, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(masked_softmax(scores, mask, lengths=lengths, causal=causal), row_by_row(scores, found))


def test_one_length_a_sequence_serves_all_heads():
    lengths = torch.tensor([1, 3])
    mask = attention_mask((2, 4, 5, 3), lengths=lengths)
    assert mask is not None
    assert mask.shape == (2, 1, 1, 3)
    scores = torch.zeros(2, 4, 5, 3)
    assert torch.equal(masked_softmax(scores, lengths=lengths)[0], torch.tensor([1.0, 0, 0]).expand(4, 5, 3))
    assert attention_mask((2, 4, 5, 3)) is None
    assert torch.equal(masked_softmax(scores), torch.softmax(scores, dim=-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_nothing_to_see_is_zero_and_no_step_of_the_way_back_is_nan(dtype):
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    with torch.autograd.detect_anomaly():  # stops at a NaN, even one that a later step would have hidden
        weights = masked_softmax(scores, lengths=torch.tensor([0, 4, 2]))
        weights.square().sum().backward()
    assert torch.equal(weights[0], torch.zeros(4, dtype=dtype))
    assert scores.grad is not None
    assert torch.equal(scores.grad[0], torch.zeros(4, dtype=dtype))
    assert (scores.grad[1] != 0).all()
    assert torch.equal(masked_softmax(scores, torch.tensor(False)), torch.zeros(3, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_seen_outweighs_what_is_hidden_however_low_it_scores(dtype):
    lowest = torch.finfo(dtype).min
    scores = torch.tensor([[lowest, 0.0, lowest]], dtype=dtype)
    assert torch.equal(masked_softmax(scores, lengths=torch.tensor([1])), torch.tensor([[1.0, 0, 0]], dtype=dtype))
    half = torch.tensor([[0.5, 0, 0.5]], dtype=dtype)
    assert torch.equal(masked_softmax(scores, torch.tensor([True, False, True])), half)
    assert torch.equal(masked_softmax_definition(scores, torch.tensor([True, False, True])), half)


def test_second_derivatives_are_right():
    scores = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = sequence_mask(torch.tensor([0, 1, 3, 5]), 5)
    assert torch.autograd.gradcheck(masked_softmax, (scores, mask))
    assert torch.autograd.gradgradcheck(masked_softmax, (scores, mask))


def test_zeros_stand_where_no_query_looks():
    values = torch.tensor([[1.0, math.nan, 3.0]]).mT.expand(2, 3, 1)
    mask = torch.tensor([[True, False, False], [False, False, True]])
    assert torch.equal(zero_masked(values, mask).squeeze(-1), torch.tensor([[1.0, 0, 3], [1, 0, 3]]))
    assert torch.equal(zero_masked(values, mask[0]).squeeze(-1), torch.tensor([[1.0, 0, 0], [1, 0, 0]]))
    assert zero_masked(values.half(), mask).dtype == torch.float16
    leaf = values.clone().requires_grad_()
    zero_masked(leaf, mask).sum().backward()
    assert torch.equal(leaf.grad, torch.tensor([[1.0], [0], [1]]).expand(2, 3, 1))  # type: ignore[arg-type]


@few
@given(batches, sizes, sizes, dtypes, seeds)
def test_masked_mean_is_that_of_the_seen(batch, n, m, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    clean = torch.randn(*batch, n, m, generator=generator).to(dtype)
    mask = some_mask(clean.shape, generator)
    values = clean.masked_fill(~mask, math.nan).requires_grad_()
    seen = mask.expand(values.shape)
    mean = masked_mean(values, mask)
    assert mean.dtype == dtype
    chosen = [float(value) for value in clean[seen]]
    assert_close(mean, torch.tensor(math.fsum(chosen) / max(1, len(chosen)), dtype=torch.float64))
    assert_close(slope(mean, values, torch.ones(())), seen.double() / max(1, len(chosen)))
    for axis in range(-values.ndim, values.ndim):
        rows = zip(
            clean.movedim(axis, -1).reshape(-1, clean.shape[axis]),
            seen.movedim(axis, -1).reshape(-1, clean.shape[axis]),
        )
        expected = [math.fsum(row[kept].tolist()) / max(1, int(kept.sum())) for row, kept in rows]
        assert_close(masked_mean(values, mask, dim=axis).flatten(), torch.tensor(expected, dtype=torch.float64))


def test_a_mean_in_half_precision_may_be_of_many():
    many = torch.full((70_000,), 4.0, dtype=torch.float16)
    assert float(masked_mean(many, torch.ones(70_000, dtype=torch.bool))) == 4.0


# ---- padding ----------------------------------------------------------------------------------------------------


@few
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.sampled_from([(), (2,), (2, 3)]),
    st.integers(-3, 3),
    dtypes,
    seeds,
)
def test_sequences_are_followed_by_padding(lengths, width, padding, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    sequences = [torch.randn(length, *width, generator=generator).to(dtype) for length in lengths]
    tokens, found = pad_sequences(sequences, padding)
    assert found.tolist() == lengths
    assert tokens.shape == (len(lengths), max(lengths), *width)
    assert tokens.dtype == dtype
    for row, sequence in zip(tokens, sequences):
        assert torch.equal(row[: len(sequence)], sequence)
        assert (row[len(sequence) :] == padding).all()


def test_lists_of_tokens_are_sequences_too():
    tokens, lengths = pad_sequences([[], [4, 5], range(3)], padding=9)
    assert torch.equal(tokens, torch.tensor([[9, 9, 9], [4, 5, 9], [0, 1, 2]]))
    assert torch.equal(lengths, torch.tensor([0, 2, 3]))
    assert pad_sequences([[], []]).tokens.shape == (2, 0)
    assert pad_sequences([torch.ones(1), torch.ones(2)], math.nan).tokens[0, 1].isnan()
    assert torch.equal(pad_sequences([[True], []]).tokens, torch.tensor([[True], [False]]))


# ---- mistakes ---------------------------------------------------------------------------------------------------

SCORES = torch.zeros(2, 3, 4)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            lambda: masked_softmax(SCORES, torch.ones(4)),
            "boolean mask, True where something may be seen, got torch.float32",
        ),
        (
            lambda: masked_softmax(SCORES, torch.ones(2, 4, dtype=torch.bool)),
            r"broadcasts to \(2, 3, 4\), got shape \(2, 4\)",
        ),
        (lambda: masked_softmax(SCORES, torch.ones(5, 2, 3, 4, dtype=torch.bool)), r"got shape \(5, 2, 3, 4\)"),
        (lambda: masked_softmax_definition(SCORES, torch.ones(3, dtype=torch.bool)), r"got shape \(3,\)"),
        (lambda: masked_softmax(SCORES, lengths=torch.tensor([1, 5])), "valid lengths from 0 to 4, got 5"),
        (lambda: masked_softmax(SCORES, lengths=torch.tensor([-1, 1])), "from 0 to 4, got -1"),
        (lambda: masked_softmax(SCORES, lengths=torch.tensor([1, 2, 3])), r"such as shape \(2,\), got \(3,\)"),
        (lambda: masked_softmax(SCORES, lengths=torch.zeros(2, 3, 4).long()), r"got \(2, 3, 4\)"),
        (lambda: masked_softmax(SCORES, lengths=torch.ones(2)), "integer valid lengths, got torch.float32"),
        (lambda: masked_softmax(SCORES.mT, causal=True), "at least as many keys as queries, got 3 for 4"),
        (lambda: masked_softmax(torch.zeros(3), causal=True), r"got shape \(3,\)"),
        (lambda: masked_softmax(torch.zeros(2, 2).long()), "scores of a float dtype"),
        (lambda: zero_masked(SCORES, torch.ones(5, dtype=torch.bool)), r"over 3 positions, got shape \(5,\)"),
        (lambda: masked_mean(SCORES, torch.ones(2, dtype=torch.bool)), r"broadcasts to \(2, 3, 4\)"),
        (lambda: masked_mean(SCORES.long(), torch.ones(4, dtype=torch.bool)), "values of a float dtype"),
        (lambda: check_mask(torch.ones(3).int(), (3,)), "got torch.int32"),
        (lambda: pad_sequences([]), "at least one sequence"),
        (lambda: pad_sequences([["a", "b"]]), "numbers in sequence 0"),
        (lambda: pad_sequences([1, 2]), "single number 1"),  # type: ignore[list-item]
        (
            lambda: pad_sequences([torch.ones(2), torch.ones(2).long()]),
            r"one dtype and width, got torch.float32 \(\) and torch.int64",
        ),
        (lambda: pad_sequences([torch.ones(2, 3), torch.ones(2, 4)]), r"\(3,\) and torch.float32 \(4,\)"),
        (lambda: pad_sequences([[1, 2], [3]], 0.5), "padding that torch.int64 can hold, got 0.5"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)


SHAPES = [(), (3,), (2, 3), (0,), (2, 0), (0, 3), (0, 0)]
FUNCTIONS = {
    "masked_softmax": masked_softmax,
    "masked_softmax_definition": masked_softmax_definition,
    "masked_mean": masked_mean,
    "masked_mean along an axis": lambda x, mask: masked_mean(x, mask, dim=-1),
    "zero_masked": zero_masked,
    "check_mask": lambda x, mask: check_mask(mask, x.shape),
    "attention_mask": lambda x, mask: attention_mask(x.shape, mask),
    "attention_mask by lengths": lambda x, mask: attention_mask(
        x.shape, lengths=torch.zeros(x.shape[:-1], dtype=torch.long)
    ),
    "attention_mask by one length": lambda x, mask: attention_mask(x.shape, lengths=torch.tensor(0)),
    "attention_mask, causal": lambda x, mask: attention_mask(x.shape, causal=True),
    "masked_softmax by lengths": lambda x, mask: masked_softmax(x, lengths=torch.zeros(x.shape[:-1], dtype=torch.long)),
    "masked_softmax by one length": lambda x, mask: masked_softmax(x, lengths=torch.tensor(min(1, *x.shape, 1))),
    "masked_softmax, causal": lambda x, mask: masked_softmax(x, causal=True),
}


def test_every_function_of_the_file_is_tried_on_every_shape():
    assert {name.split()[0].strip(",") for name in FUNCTIONS} == set(quoin.tensor.masked.__all__)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_number_of_axes_and_no_entries_give_an_answer_or_a_mistake(name, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for mask in (
        torch.ones(shape, dtype=torch.bool),
        torch.zeros(shape, dtype=torch.bool),
        torch.tensor(True),
        torch.tensor(False),
    ):
        try:
            found = FUNCTIONS[name](x, mask)
        except UserError:
            assert len(shape) < 2 or 0 in shape or "zero_masked" in name or "causal" in name
            continue
        if "softmax" in name:
            assert found.shape == x.shape
            assert bool(((found.sum(dim=-1) - 1).abs() < 1e-6).logical_or(found.sum(dim=-1) == 0).all())


def test_scores_of_one_query_need_no_axis_for_it():
    scores = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
    for mask, kept in ((torch.tensor([True, False, True]), [0, 2]), (None, [0, 1, 2])):
        right = torch.zeros(3).index_put((torch.tensor(kept),), scores[kept].softmax(dim=0))
        torch.testing.assert_close(masked_softmax(scores, mask), right)
    torch.testing.assert_close(
        masked_softmax(scores, lengths=torch.tensor(2)), torch.cat([scores[:2].softmax(0), torch.zeros(1)])
    )
    torch.testing.assert_close(masked_softmax(scores, lengths=torch.tensor(0)), torch.zeros(3))
    with pytest.raises(UserError, match=r"such as shape \(\), got \(1,\)"):
        masked_softmax(scores, lengths=torch.tensor([2]))
