"""Arithmetic coding of images pixel by pixel, under a model that gives each pixel's distribution from those before it.

Many images are read in parallel, for that is when such a model is quick; their pixels are interleaved in one code.

    k grey levels
"""

from collections.abc import Callable

import torch
from jaxtyping import Int64
from torch import Tensor

from quoin.callbacks import ProgressCallback
from quoin.errors import UserError
from quoin.info.arithmetic import ArithmeticDecoder, ArithmeticEncoder
from quoin.info.interleaved_tokens import stream_frequencies
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, number_tensor

__all__ = ["MakePixelModel", "decode_pixels", "encode_pixels"]

IMAGES_PER_BATCH = 256  # images in parallel

MakePixelModel = Callable[[Tensor], Callable[[int], Tensor]]
"""From levels (images, height, width), int64, all 0 as yet, what gives the distributions (images, k) of pixel 0, 1, 2
and so on, once those before are filled in."""


def encode_pixels(
    levels: Int64[Tensor, "images height width"] | ArrayLike,
    make_pixel_model: MakePixelModel,
    on_progress: ProgressCallback = lambda done, total: None,
) -> bytes:
    """`levels` as bytes: -log2 P of all images, give or take a byte for all together.

    The model is shown what the decoder will show it, pixel by pixel, though all is known here: one pass over whole
    images might round its sums in another order, and one differing bit would break all that follows.

    Args:
        levels: Grey levels of the images, whole numbers from 0.
        make_pixel_model: Takes levels, all 0 as yet, to a function that gives the distributions (images, k) of pixel 0,
            1, 2 and so on, once those before are filled in.
        on_progress: Called with how much is done and of how much.
    """
    levels = number_tensor(levels, "levels")
    _check(levels)
    encoder, done = ArithmeticEncoder(), 0
    for images in levels.split(IMAGES_PER_BATCH):
        known = torch.zeros_like(images)
        pixel_probs = make_pixel_model(known)
        for index, symbols in enumerate(images.flatten(1).T):
            all_frequencies = stream_frequencies(pixel_probs(index)).numpy()
            for symbol, frequencies in zip(symbols.tolist(), all_frequencies):
                encoder.push(symbol, frequencies)
            known.flatten(1)[:, index] = symbols
            done += len(symbols)
            on_progress(done, levels.numel())
    return encoder.finish()


def decode_pixels(
    data: bytes,
    count: int,
    size: tuple[int, int],
    make_pixel_model: MakePixelModel,
    on_progress: ProgressCallback = lambda done, total: None,
) -> Int64[Tensor, "images height width"]:
    """The `count` images of this height and width that `encode_pixels` made `data` of, with a model that predicts what
    the encoder's did.

    Args:
        size: Height and width.
        make_pixel_model: As in `encode_pixels`.
        on_progress: Called with how much is done and of how much.
    """
    levels, decoder, done = torch.zeros(count, *size, dtype=torch.int64), ArithmeticDecoder(data), 0
    for known in levels.split(IMAGES_PER_BATCH):  # views: what is decoded stands in its place
        pixel_probs = make_pixel_model(known)
        for index in range(known[0].numel()):
            all_frequencies = stream_frequencies(pixel_probs(index)).numpy()
            known.flatten(1)[:, index] = torch.tensor([decoder.pop(frequencies) for frequencies in all_frequencies])
            done += len(all_frequencies)
            on_progress(done, levels.numel())
    decoder.finish()
    return levels


def _check(levels: Tensor) -> None:
    check_shapes("n h w", levels=levels)
    if levels.dtype != torch.int64 or not levels.numel():
        got = f"{levels.dtype} of shape {tuple(levels.shape)}"
        raise UserError(f"expected the levels of at least one image as int64, got {got}; quantize gives them")
