"""The contract of masked convolutions and of PixelCNN: each definition equals its fast form in value and in every
gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quoin.errors import UserError
from quoin.layers import (
    GatedPixelLayer,
    MaskedConv2d,
    PixelStacks,
    gated_pixel_layer_definition,
    mask_a,
    mask_b,
    mask_rows_above,
    mask_rows_through,
    masked_conv2d_definition,
)
from quoin.models import GatedPixelCNN, PixelCNN, WindowPixelPredictor, dequantize, pixel_log_prob_definition, quantize

pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out

DTYPES = st.sampled_from([torch.float32, torch.float64])
SEEDS = st.integers(0, 10_000)
MASKS = {"a": mask_a, "b": mask_b, "above": mask_rows_above, "rows": mask_rows_through}


def agree(ours: Tensor, theirs: Tensor, given: list[Tensor]) -> None:
    """Equal in value, dtype and every gradient."""
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if ours.dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-11}
    torch.testing.assert_close(ours, theirs, **tolerance)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1), dtype=ours.dtype)
    slopes = (torch.autograd.grad(each, given, upstream, retain_graph=True) for each in (ours, theirs))
    torch.testing.assert_close(*slopes, **tolerance)


def normal(generator: torch.Generator, dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def test_masks_are_those_of_the_paper():
    assert mask_a(5).int().tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0] * 5, [0] * 5]
    assert mask_b(3).int().tolist() == [[1, 1, 1], [1, 1, 0], [0, 0, 0]]
    assert mask_rows_above((3, 1)).int().tolist() == [[1], [0], [0]]
    assert mask_rows_through((3, 5)).int().tolist() == [[1] * 5, [1] * 5, [0] * 5]
    # The two first kernels of the gated model together are the mask of type A.
    row = torch.zeros(5, 5, dtype=torch.bool)
    row[2] = mask_a((1, 5))[0]
    assert torch.equal(mask_rows_above(5) | row, mask_a(5))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_masked_convolution_agrees_with_its_definition(data):
    kind, dtype = data.draw(st.sampled_from(sorted(MASKS))), data.draw(DTYPES)
    kernel = (data.draw(st.sampled_from([1, 3, 5])), data.draw(st.sampled_from([1, 3, 5])))
    mask = MASKS[kind](kernel)
    if not mask.any():
        with pytest.raises(UserError, match="lets something through"):
            MaskedConv2d(1, 1, mask)
        return
    n, c, d, h, w = (data.draw(st.integers(1, most)) for most in (3, 3, 3, 6, 6))
    generator = torch.Generator().manual_seed(data.draw(SEEDS))
    layer = MaskedConv2d(c, d, mask, generator=generator).to(dtype)
    x = normal(generator, dtype, n, c, h, w)
    whole = layer.full_weight()
    assert whole.shape == (d, c, *kernel)
    # What the mask hides may be anything: the definition does not look at it.
    hidden = whole + torch.randn(whole.shape, generator=generator, dtype=dtype) * ~mask
    agree(layer(x), masked_conv2d_definition(x, hidden, mask, layer.bias), [x, layer.weight, layer.bias])


def test_masked_convolution_starts_by_what_its_mask_leaves():
    layer = MaskedConv2d(8, 500, mask_a(5), generator=torch.Generator().manual_seed(0))
    bound = (8 * 12) ** -0.5  # 12 of 25 entries of each channel
    assert 0.99 * bound < float(layer.weight.detach().abs().max()) <= bound
    again = MaskedConv2d(8, 500, mask_a(5), generator=torch.Generator().manual_seed(0))
    assert torch.equal(layer.weight, again.weight)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_gated_layer_agrees_with_its_definition(data):
    dtype, kernel, told = data.draw(DTYPES), data.draw(st.sampled_from([1, 3, 5])), data.draw(st.booleans())
    n, c, h, w = (data.draw(st.integers(1, most)) for most in (3, 4, 5, 5))
    generator = torch.Generator().manual_seed(data.draw(SEEDS))
    layer = GatedPixelLayer(c, kernel, generator=generator).to(dtype)
    stacks = PixelStacks(normal(generator, dtype, n, c, h, w), normal(generator, dtype, n, c, h, w))
    shift = normal(generator, dtype, n, 4 * c) if told else None
    given = [*stacks, *layer.parameters(), *([shift] if shift is not None else [])]
    ours, theirs = layer(stacks, shift), gated_pixel_layer_definition(stacks, layer.weights(), shift)
    agree(torch.cat(list(ours)), torch.cat(list(theirs)), given)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_one_pass_gives_the_product_over_pixels(data):
    dtype, gated, classes = data.draw(DTYPES), data.draw(st.booleans()), data.draw(st.sampled_from([None, 3]))
    n, h, w, levels = (data.draw(st.integers(low, most)) for low, most in ((1, 3), (1, 4), (1, 4), (2, 6)))
    generator = torch.Generator().manual_seed(data.draw(SEEDS))
    if gated:
        model = GatedPixelCNN(
            (1, h, w), levels, channels=3, num_layers=2, num_classes=classes, dropout=0.5, generator=generator
        )
    else:
        model, classes = PixelCNN((1, h, w), levels, channels=3, num_layers=2, generator=generator), None
    model = model.to(dtype).eval()
    if classes:
        torch.nn.init.normal_(model.shifts, generator=generator)
    images = dequantize(torch.randint(levels, (n, h, w), generator=generator), levels, dtype)
    labels = torch.randint(classes, (n,), generator=generator) if classes else None
    slow = pixel_log_prob_definition(lambda seen: model(seen, labels), images, levels)
    agree(model.log_prob(images, labels), slow, list(model.parameters()))


def test_a_model_that_looks_ahead_is_told_apart_by_the_definition():
    model = PixelCNN((1, 3, 3), 3, channels=4, num_layers=1, generator=torch.Generator().manual_seed(0)).double()
    images = dequantize(torch.randint(3, (4, 3, 3), generator=torch.Generator().manual_seed(1)), 3, torch.float64)
    model.first = MaskedConv2d(
        1, 4, mask_b(3), generator=torch.Generator().manual_seed(2)
    ).double()  # sees the pixel itself
    with torch.no_grad():
        apart = model.log_prob(images) - pixel_log_prob_definition(model.logits, images, 3)
    assert float(apart.abs().max()) > 1e-3


@pytest.mark.parametrize("levels", [2, 17, 256])
def test_levels_go_there_and_back(levels):
    every = torch.arange(levels).reshape(1, 1, -1)
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(quantize(dequantize(every, levels, dtype), levels), every)


@pytest.mark.parametrize("classes", [None, 2])
@pytest.mark.parametrize(("layers", "kernel", "first"), [(1, 3, 3), (2, 5, 3), (2, 3, 7), (3, 1, 5)])
def test_readers_give_the_scores_of_whole_images_pixel_by_pixel(layers, kernel, first, classes):
    sizes, weights = (
        {"channels": 4, "num_layers": layers, "kernel_size": kernel, "first_kernel_size": first},
        torch.Generator().manual_seed(0),
    )
    whole = dequantize(torch.randint(3, (3, 6, 7), generator=weights), 3, torch.float64)
    labels = None if classes is None else torch.tensor([0, 1, 1])
    gated = GatedPixelCNN((1, 6, 7), 3, num_classes=classes, generator=weights, **sizes).double()
    if classes:
        torch.nn.init.normal_(gated.shifts, generator=weights)
    models = (
        [(gated, labels)]
        if classes
        else [(gated, None), (PixelCNN((1, 6, 7), 3, generator=weights, **sizes).double(), None)]
    )
    for model, told in models:
        for build in {WindowPixelPredictor, type(model.predictor(whole, told))}:
            images = torch.zeros_like(whole)
            reader, expected = build(model, images, told), model(whole, told).detach()
            for place in range(42):
                torch.testing.assert_close(reader(place), expected[:, :, place // 7, place % 7], rtol=1e-12, atol=1e-12)
                images.flatten(1)[:, place] = whole.flatten(1)[:, place]
    with pytest.raises(UserError, match="expected to be asked for pixel 0, the next, got 1"):
        gated.predictor(images, labels)(1)
