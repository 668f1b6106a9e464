"""The contract of normalisation: each definition equals torch's module in value, gradient and running averages."""

import copy
import statistics
from typing import Any, TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from near import assert_near
from quoin.errors import UserError
from quoin.layers import (
    Moments,
    add_batch_norm,
    batch_norm_definition,
    batch_norm_eval_definition,
    check_batch_norm,
    dense_batch_norm_definition,
    layer_norm_definition,
    moments,
    position_batch_norm_definition,
    update_running_stats,
)

# A variance near eps makes slopes of up to 1/sqrt(eps) = 316, and rounding as much larger.
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-11}
MODULES: dict[int, Any] = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}

Filled = TypeVar("Filled", bound=nn.Module)

dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
batches = st.tuples(st.integers(2, 6), st.integers(1, 5), *[st.integers(1, 4)] * 2).flatmap(
    lambda shape: st.sampled_from([shape[:2], shape[:3], shape])
)
eps = st.sampled_from([1e-5, 1e-3, 0.1])
few = settings(deadline=None, max_examples=20)


def assert_same_slopes(ours: Tensor, theirs: Tensor, leaves: list[Tensor], generator: torch.Generator) -> None:
    assert_near(ours, theirs, TOLERANCE)
    upstream = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    for mine, its in zip(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream), strict=True
    ):
        assert_near(mine, its, TOLERANCE)


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Entries with a mean and a spread of their own, neither near 0 nor 1."""
    return (3 + 2 * torch.randn(shape, generator=generator, dtype=dtype)).requires_grad_()


def filled(module: Filled, generator: torch.Generator) -> Filled:
    for parameter in module.parameters():
        nn.init.normal_(parameter, generator=generator)
    return module


@few
@given(batches, dtypes, eps, seeds)
def test_batch_norm_is_torchs_in_training(shape, dtype, eps, seed):
    generator = torch.Generator().manual_seed(seed)
    x = drawn(shape, dtype, generator)
    fast = filled(MODULES[len(shape)](shape[1], eps=eps, dtype=dtype), generator)
    found = batch_norm_definition(x, fast.weight, fast.bias, eps=eps)
    assert_same_slopes(found.output, fast(x), [x, fast.weight, fast.bias], generator)
    last = batch_norm_definition(x.movedim(1, -1), fast.weight, fast.bias, channel_dim=-1, eps=eps)
    torch.testing.assert_close(last.output.movedim(-1, 1), found.output)
    columns = x.detach().movedim(1, 0).flatten(1)  # (c, all else): the statistics, by hand
    assert_near(
        found.mean.detach(),
        torch.tensor([statistics.fmean(column.tolist()) for column in columns], dtype=dtype),
        TOLERANCE,
    )
    assert_near(
        found.variance.detach(),
        torch.tensor([statistics.pvariance(column.tolist()) for column in columns], dtype=dtype),
        TOLERANCE,
    )


@few
@given(batches, dtypes, eps, seeds, st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]))
def test_running_averages_are_torchs_after_several_steps(shape, dtype, eps, seed, momentum):
    generator = torch.Generator().manual_seed(seed)
    fast = filled(MODULES[len(shape)](shape[1], eps=eps, momentum=momentum, dtype=dtype), generator)
    running = Moments(torch.zeros(shape[1], dtype=dtype), torch.ones(shape[1], dtype=dtype))
    for _ in range(4):
        x = drawn(shape, dtype, generator)
        fast(x)
        found = batch_norm_definition(x.detach(), fast.weight.detach(), fast.bias.detach(), eps=eps)
        running = update_running_stats(
            running, Moments(found.mean, found.variance), x.numel() // shape[1], momentum=momentum
        )
    assert_near(running.mean, fast.running_mean, TOLERANCE)
    assert_near(running.variance, fast.running_var, TOLERANCE)
    fast.eval()
    x = drawn((1, *shape[1:]), dtype, generator)  # at test one example is enough
    ours = batch_norm_eval_definition(x, running, fast.weight, fast.bias, eps=eps)
    assert_same_slopes(ours, fast(x), [x, fast.weight, fast.bias], generator)
    last = batch_norm_eval_definition(x.movedim(1, -1), running, fast.weight, fast.bias, channel_dim=-1, eps=eps)
    torch.testing.assert_close(last.movedim(-1, 1), ours)


@few
@given(batches, dtypes, eps, seeds)
def test_batch_norm_by_position_is_torchs_on_flat_examples(shape, dtype, eps, seed):
    generator = torch.Generator().manual_seed(seed)
    x = drawn(shape, dtype, generator)
    fast: Any = filled(nn.BatchNorm1d(x[0].numel(), eps=eps, dtype=dtype), generator)
    found = position_batch_norm_definition(x, fast.weight.reshape(shape[1:]), fast.bias.reshape(shape[1:]), eps=eps)
    assert_same_slopes(found.output, fast(x.flatten(1)).reshape(shape), [x, fast.weight, fast.bias], generator)
    assert found.mean.shape == found.variance.shape == shape[1:]


@few
@given(batches, st.integers(1, 4), dtypes, eps, seeds)
def test_layer_norm_is_torchs_over_any_last_axes(shape, num_axes, dtype, eps, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = (*shape[:-1], shape[-1] + 1)  # of one entry alone nothing is left
    over = shape[-min(num_axes, len(shape)) :]
    x = drawn(shape, dtype, generator)
    fast = filled(nn.LayerNorm(list(over), eps=eps, dtype=dtype), generator)
    found = layer_norm_definition(x, fast.weight, fast.bias, eps=eps)
    assert_same_slopes(found.output, fast(x), [x, fast.weight, fast.bias], generator)
    assert found.mean.shape == found.variance.shape == shape[: len(shape) - len(over)]


@few
@given(batches, dtypes, seeds, st.data())
def test_moments_are_torchs_biased_ones(shape, dtype, seed, data):
    generator = torch.Generator().manual_seed(seed)
    x = drawn(shape, dtype, generator)
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    for keepdim in (False, True):
        for part, fast in enumerate([x.mean(axes, keepdim=keepdim), x.var(axes, correction=0, keepdim=keepdim)]):
            assert_same_slopes(moments(x, axes, keepdim=keepdim)[part], fast, [x], generator)
    assert moments(x).mean.shape == ()


@few
@given(st.tuples(*[st.integers(2, 6)] * 3), dtypes, seeds)
def test_a_dense_layer_with_batch_norm_needs_no_bias(sizes, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    b, d, c = sizes
    x, bias = drawn((b, d), dtype, generator), drawn((c,), dtype, generator)
    linear = filled(nn.Linear(d, c, bias=False, dtype=dtype), generator)
    norm = filled(nn.BatchNorm1d(c, eps=0.1, dtype=dtype), generator)
    ours = dense_batch_norm_definition(x, linear.weight, bias, norm.weight, norm.bias, torch.tanh, eps=0.1)
    assert_same_slopes(
        ours, nn.Sequential(linear, norm, nn.Tanh())(x), [x, linear.weight, norm.weight, norm.bias], generator
    )


def small_network() -> nn.Sequential:
    """Convolutions on two levels; behind the second pooling an 8 x 8 image is one pixel."""
    inner = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        inner,
        nn.Conv2d(6, 5, 1),
        nn.Flatten(),
        nn.Linear(5, 3),
    )


def test_batch_norm_is_put_behind_every_convolution_and_the_model_left_alone():
    generator = torch.Generator().manual_seed(0)
    plain: Any = filled(small_network(), generator).double()
    before = copy.deepcopy(plain.state_dict())
    normed = add_batch_norm(plain)
    assert all(torch.equal(value, before[name]) for name, value in plain.state_dict().items())
    assert [type(each).__name__ for each in normed.modules()].count("BatchNorm2d") == 3
    x = torch.randn(7, 1, 8, 8, generator=generator, dtype=torch.float64)

    def convolved(layer, h):
        h = nn.functional.conv2d(h, layer.weight, padding=layer.padding)
        return batch_norm_definition(h, torch.ones(h.shape[1]).double(), torch.zeros(h.shape[1]).double()).output

    h = nn.functional.max_pool2d(convolved(plain[0], x).relu(), 2)
    h = nn.functional.max_pool2d(convolved(plain[3][0], h).relu(), 4)
    torch.testing.assert_close(normed(x), plain[6](convolved(plain[4], h).flatten(1)))


@pytest.mark.parametrize(("rows", "side"), [(1, 8), (2, 8), (1, 16), (1, 11)])
def test_a_batch_too_small_is_refused_where_torch_would_stop_and_nothing_is_changed(rows, side):
    """The oracle is torch's own refusal, on a copy."""
    model: Any = add_batch_norm(small_network()[:5]).train()
    model[4].eval()  # a part that someone froze
    before = copy.deepcopy(model.state_dict())
    images = torch.randn(rows, 1, side, side, generator=torch.Generator().manual_seed(0))
    twin = copy.deepcopy(model).train()
    try:
        twin(images)
    except ValueError:
        with pytest.raises(UserError, match=rf"layer 4\.1 \(BatchNorm2d\) while training, got one: a batch of {rows}"):
            check_batch_norm(model, images)
        refused = True
    else:
        check_batch_norm(model, images)
        refused = False
    assert refused == ((rows, side) in {(1, 8), (1, 11)})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [each.training for each in model] == [True, True, True, True, False]
    assert not any(each._forward_pre_hooks for each in model.modules())


two, three = torch.ones(2), torch.ones(3)
table = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            lambda: batch_norm_definition(table, two, three),
            r"weight of shape \(3,\) for x of shape \(2, 3\), got \(2,\)",
        ),
        (lambda: batch_norm_definition(table, three, two), r"bias of shape \(3,\)"),
        (lambda: batch_norm_definition(three, three, three), r"examples on axis 0 .* got shape \(3,\)"),
        (lambda: batch_norm_definition(table, two, two, channel_dim=0), "channels on axis 0"),
        (lambda: batch_norm_definition(table, two, two, channel_dim=-2), "channels on axis -2"),
        (lambda: batch_norm_definition(table.long(), three, three), "float dtype, got torch.int64"),
        (lambda: batch_norm_definition(table, three, three, eps=-1.0), "eps of at least 0, got -1.0"),
        (
            lambda: batch_norm_definition(table[:0], three, three),
            r"at least one entry to take a mean of, got shape \(0, 3\)",
        ),
        (
            lambda: batch_norm_eval_definition(table, Moments(two, three), three, three),
            r"running mean of shape \(3,\), got \(2,\)",
        ),
        (lambda: batch_norm_eval_definition(table, Moments(three, three), three, three, eps=float("nan")), "got nan"),
        (lambda: position_batch_norm_definition(three, three, three), "at least two axes"),
        (lambda: position_batch_norm_definition(table, table, table), r"weight of shape \(3,\)"),
        (lambda: layer_norm_definition(table, two, two), r"weight of shape \(3,\)"),
        (lambda: layer_norm_definition(three, table, table), "weight of one to 1 axes"),
        (lambda: update_running_stats(Moments(two, two), Moments(two, two), 1), "at least 2 values a channel"),
        (
            lambda: update_running_stats(Moments(two, two), Moments(two, two), 5, momentum=1.5),
            "momentum from 0 to 1, got 1.5",
        ),
        (lambda: add_batch_norm(nn.Linear(2, 3)), "Conv2d inside, got Linear with none"),
        (lambda: add_batch_norm(add_batch_norm(small_network())), "without batch normalization, got Sequential"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
