"""What convolution, pooling and image batches say to a mistake: one line with what was expected, what came and what to
do."""

import pytest
import torch

from quoin.errors import UserError
from quoin.layers import (
    WindowSpec,
    avg_pool2d_definition,
    conv_output_size,
    convolution_integral,
    convolution_matrix,
    convolve1d,
    convolve2d_definition,
    cross_correlate1d,
    cross_correlate1d_definition,
    cross_correlate2d,
    cross_correlate2d_definition,
    cut_offsets,
    image_dense_definition,
    max_pool2d_definition,
    offset_dense_definition,
    receptive_field,
    shared_dense_definition,
    slide_kernel,
    split_padding,
    weights_by_offset,
)
from quoin.tensor import channels_last, check_image_batch, flatten_images, unflatten_images

X, V = torch.ones(2, 4, 8, 8), torch.ones(6, 4, 3, 3)  # images of 4 channels, 6 kernels for them

# what is wrong -> (x, weight, bias, options, words of the message)
CONVOLUTIONS = {
    "kernel larger than the padded input": (
        X,
        torch.ones(6, 4, 11, 3),
        None,
        {"padding": 1},
        ["8 + 2", "got 11", "pad more"],
    ),
    "dilated kernel larger": (X, V, None, {"dilation": 4}, ["8 + 0", "got 3 dilated to 9"]),
    "kernel of no entries": (X, torch.ones(6, 4, 0, 3), None, {}, ["kernel", "at least 1", "got 0"]),
    "groups that do not divide the inputs": (
        X,
        V,
        None,
        {"groups": 3},
        ["divide 4 input and 6 output channels", "got 3"],
    ),
    "groups that do not divide the outputs": (
        X,
        V,
        None,
        {"groups": 4},
        ["divide 4 input and 6 output channels", "got 4"],
    ),
    "no groups": (X, V, None, {"groups": 0}, ["groups", "at least 1", "got 0"]),
    "half a group": (X, V, None, {"groups": 0.5}, ["groups", "whole number", "got 0.5"]),
    "wrong channel count": (X[:, :3], V, None, {}, ["expected 4 input channels", "(6, 4, 3, 3)", "got 3"]),
    "weight not cut for its groups": (X, V, None, {"groups": 2}, ["expected 8 input channels", "2 groups", "got 4"]),
    "no channels": (X[:, :0], V[:, :0], None, {}, ["at least one channel", "got 0 and 6"]),
    "stride of zero": (X, V, None, {"stride": 0}, ["stride", "at least 1", "got 0"]),
    "negative stride": (X, V, None, {"stride": (1, -2)}, ["stride", "at least 1", "got -2"]),
    "fractional stride": (X, V, None, {"stride": 1.5}, ["stride", "whole number", "got 1.5"]),
    "true as a stride": (X, V, None, {"stride": True}, ["stride", "whole number", "got True"]),
    "three strides": (X, V, None, {"stride": (1, 1, 1)}, ["one stride or one for each of 2 axes", "(1, 1, 1)"]),
    "dilation of zero": (X, V, None, {"dilation": 0}, ["dilation", "at least 1", "got 0"]),
    "negative padding": (X, V, None, {"padding": -1}, ["padding", "at least 0", "got -1"]),
    "torch's padding for each axis": (
        X,
        V,
        None,
        {"padding": (1, 2)},
        ["(before, after) for each of 2 axes", "((1, 2), (1, 2))"],
    ),
    "one pair for two axes": (X, V, None, {"padding": ((1, 2),)}, ["(before, after) for each of 2 axes", "((1, 2),)"]),
    "padding by a word": (X, V, None, {"padding": "same"}, ["one number or as (before, after)", "'same'"]),
    "empty batch": (X[:0], V, None, {}, ["at least one example", "(0, 4, 8, 8)"]),
    "one image without its batch": (X[0], V, None, {}, ["4 axes", "(4, 8, 8)"]),
    "integer images": (X.long(), V, None, {}, ["x of a float dtype", "torch.int64"]),
    "integer kernels": (X, V.int(), None, {}, ["weight of a float dtype", "torch.int32"]),
    "two dtypes": (X.double(), V, None, {}, ["one dtype", "torch.float64 and torch.float32"]),
    "bias of another dtype": (X, V, torch.ones(6).double(), {}, ["one dtype", "torch.float32 and torch.float64"]),
    "too long a bias": (X, V, torch.ones(7), {}, ["axis d of bias to be 6 as in weight", "got 7"]),
}


@pytest.mark.parametrize("form", [cross_correlate2d_definition, cross_correlate2d])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_that_does_not_fit(name, form):
    x, weight, bias, options, words = CONVOLUTIONS[name]
    tell(lambda: form(x, weight, bias, **options), words)


@pytest.mark.parametrize("form", [cross_correlate1d_definition, cross_correlate1d])
def test_a_convolution_of_sequences_that_does_not_fit(form):
    x, weight = torch.ones(2, 3, 5), torch.ones(4, 3, 3)
    tell(lambda: form(x, torch.ones(4, 3, 6)), ["5 + 0", "got 6"])
    tell(lambda: form(x, weight, padding=(1, 2)), ["for each of 1 axes", "write e.g. ((1, 2),)"])
    tell(lambda: form(x, weight, stride=(1, 1)), ["for each of 1 axes", "(1, 1)"])
    tell(lambda: form(x.unsqueeze(0), weight), ["3 axes", "(1, 2, 3, 5)"])
    tell(lambda: form(x, weight[:, :2]), ["expected 2 input channels", "got 3"])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: conv_output_size(4, 7), ["4 + 0", "got 7"]),
        (lambda: conv_output_size(0, 1), ["size", "at least 1", "got 0"]),
        (lambda: conv_output_size(4, 2, total_padding=-1), ["total padding", "got -1"]),
        (lambda: split_padding(2, -1), ["total padding", "got -1"]),
        (lambda: receptive_field([WindowSpec(3), WindowSpec(3, stride=0)]), ["stride", "got 0"]),
        (lambda: slide_kernel(torch.ones(2), torch.ones(3)), ["2 + 0", "got 3"]),
        (lambda: slide_kernel(torch.ones(2), torch.ones(1).double()), ["one dtype"]),
        (lambda: convolve1d(torch.ones(3), torch.ones(0)), ["at least one entry of g", "(0,)"]),
        (lambda: convolve1d(torch.ones(3).long(), torch.ones(2)), ["f of a float dtype", "torch.int64"]),
        (lambda: convolve2d_definition(torch.ones(3), torch.ones(2, 2)), ["f with 2 axes", "(3,)"]),
        (lambda: convolution_matrix(V, (4, 8)), ["weight with 3 axes", "(6, 4, 3, 3)"]),
        (lambda: convolution_matrix(V, (2, 4, 8, 8)), ["(c, l) or (c, h, w)", "leave the batch out"]),
        (lambda: convolution_matrix(V, (3, 8, 8)), ["expected 4 input channels", "got 3"]),
        (lambda: convolution_matrix(V.long(), (4, 8, 8)), ["weight of a float dtype"]),
        (
            lambda: convolution_integral(torch.sin, torch.sin, torch.ones(3, 1), [(1.0, 0.0)]),
            ["low below high", "(1.0, 0.0)"],
        ),
        (lambda: convolution_integral(torch.sin, torch.sin, torch.ones(3, 2), [(0.0, 1.0)]), ["each of 2 axes"]),
        (
            lambda: convolution_integral(torch.sin, torch.sin, torch.ones(3, 3), [(0.0, 1.0)] * 3),
            ["at most 10000000", "400^3"],
        ),
        (
            lambda: convolution_integral(torch.sin, torch.sin, torch.ones(3, 1), [(0.0, 1.0)], num_points=0),
            ["number of points", "got 0"],
        ),
        (
            lambda: image_dense_definition(torch.ones(3, 4), torch.ones(3, 4, 4, 3), torch.ones(3, 4)),
            ["axis h of weight to be 3", "got 4"],
        ),
        (lambda: weights_by_offset(torch.ones(3, 4, 4, 3)), ["axis h of weight to be 3", "got 4"]),
        (
            lambda: offset_dense_definition(torch.ones(3, 3), torch.ones(3, 3, 2, 3), torch.ones(3, 3)),
            ["odd numbers", "got 2x3"],
        ),
        (
            lambda: shared_dense_definition(torch.ones(3, 3), torch.ones(3, 4), torch.tensor(0.0)),
            ["odd numbers", "got 3x4"],
        ),
        (lambda: cut_offsets(torch.ones(5, 3), 2), ["at most 1", "(5, 3)", "got 2"]),
        (lambda: cut_offsets(torch.ones(5, 3), -1), ["radius", "at least 0", "got -1"]),
        (lambda: max_pool2d_definition(X, 9), ["8 + 0", "got 9"]),
        (lambda: max_pool2d_definition(X, 2, padding=2), ["at most 1, half the window of 2", "got (2, 2)"]),
        (lambda: avg_pool2d_definition(X, (2, 2, 2)), ["one window or one for each of 2 axes"]),
        (lambda: avg_pool2d_definition(X, 0), ["window", "at least 1", "got 0"]),
        (lambda: avg_pool2d_definition(X, 2, stride=0), ["stride", "got 0"]),
        (lambda: avg_pool2d_definition(X[:0], 2), ["at least one example", "(0, 4, 8, 8)"]),
        (lambda: max_pool2d_definition(X.long(), 2), ["float dtype", "torch.int64"]),
        (lambda: max_pool2d_definition(X[0], 2), ["4 axes", "(4, 8, 8)"]),
        (lambda: channels_last(torch.ones(3, 4)), ["at least 3 axes", "(3, 4)"]),
        (lambda: flatten_images(torch.ones(3, 4, 5)), ["4 axes", "(3, 4, 5)"]),
        (lambda: unflatten_images(torch.ones(2, 10), (1, 3, 3)), ["vectors of 9 entries", "got 10"]),
        (lambda: check_image_batch(X, (4, 8)), ["(channels, height, width)", "(4, 8)"]),
        (lambda: check_image_batch(X, (4, 8, 0)), ["positive whole numbers", "(4, 8, 0)"]),
        (lambda: check_image_batch(X[0], (4, 8, 8)), ["(n, c, h, w)", "got shape (4, 8, 8)", "unsqueeze(0)"]),
        (lambda: check_image_batch(X, (1, 8, 8)), ["1 channel and 8x8 pixels", "4 channels and 8x8 pixels"]),
        (lambda: check_image_batch(X, (4, 28, 20)), ["28x20 pixels", "8x8 pixels", "build the model for (4, 8, 8)"]),
        (lambda: check_image_batch(channels_last(X), (4, 8, 8)), ["channels_first"]),
        (lambda: check_image_batch(X[:0], (4, 8, 8)), ["at least one image", "(0, 4, 8, 8)"]),
        (lambda: check_image_batch(X.to(torch.uint8), (4, 8, 8)), ["images of a float dtype", "torch.uint8"]),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    tell(bad, words)


def tell(bad, words):
    with pytest.raises(UserError) as caught:
        bad()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("expected"), message
    assert "; " in message, message
    assert all(word in message for word in words), message


def test_what_fits_is_let_through():
    check_image_batch(X, [4, 8, 8])
    check_image_batch(X.half(), torch.Size([4, 8, 8]))
    assert cross_correlate2d(X, V, torch.ones(6), padding=[(0, 1), (1, 0)]).shape == (2, 6, 7, 7)
    assert cross_correlate2d(X, torch.ones(6, 4, 10, 3), padding=1).shape == (2, 6, 1, 8)
