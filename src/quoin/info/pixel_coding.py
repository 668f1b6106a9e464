"""Arithmetic coding of images pixel by pixel, under a model that gives each pixel's law from those before it.

Many images are read side by side, for that is when such a model is quick; their pixels take turns in one code.

    n images, h height, w width, k grey levels
"""

from collections.abc import Callable

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.info.arithmetic import ArithmeticDecoder, ArithmeticEncoder
from quoin.info.lanes import Tell
from quoin.info.token_lanes import lane_frequencies
from quoin.tensor import check_shapes

__all__ = ["NewLaws", "pixels_decode", "pixels_encode"]

IMAGES_PER_BATCH = 256  # images side by side

NewLaws = Callable[[Tensor], Callable[[int], Tensor]]
"""From levels (n, h, w), int64, all 0 as yet, what gives the laws (n, k) of pixel 0, 1, 2 and so on, when those before are filled in."""


def pixels_encode(levels: Tensor, new_laws: NewLaws, tell: Tell = lambda done, total: None) -> bytes:  # (n, h, w), int64
    """`levels` as bytes: -log2 P of all images, give or take a byte for all together.

    The model is shown what the decoder will show it, pixel by pixel, though all is known here: one pass over whole images might round
    its sums in another order, and one differing bit would break all that follows.
    """
    _check(levels)
    encoder, done = ArithmeticEncoder(), 0
    for images in levels.split(IMAGES_PER_BATCH):
        known = torch.zeros_like(images)
        laws_of = new_laws(known)
        for place, symbols in enumerate(images.flatten(1).T):
            laws = lane_frequencies(laws_of(place)).numpy()
            for symbol, law in zip(symbols.tolist(), laws):
                encoder.push(symbol, law)
            known.flatten(1)[:, place] = symbols
            done += len(symbols)
            tell(done, levels.numel())
    return encoder.finish()


def pixels_decode(
    data: bytes, count: int, size: tuple[int, int], new_laws: NewLaws, tell: Tell = lambda done, total: None
) -> Tensor:  # -> (n, h, w), int64
    """The `count` images of this height and width that `pixels_encode` made `data` of, with a model that says what the encoder's did."""
    levels, decoder, done = torch.zeros(count, *size, dtype=torch.int64), ArithmeticDecoder(data), 0
    for known in levels.split(IMAGES_PER_BATCH):  # views: what is decoded stands in its place
        laws_of = new_laws(known)
        for place in range(known[0].numel()):
            laws = lane_frequencies(laws_of(place)).numpy()
            known.flatten(1)[:, place] = torch.tensor([decoder.pop(law) for law in laws])
            done += len(laws)
            tell(done, levels.numel())
    decoder.finish()
    return levels


def _check(levels: Tensor) -> None:
    check_shapes("n h w", levels=levels)
    if levels.dtype != torch.int64 or not levels.numel():
        came = f"{levels.dtype} of shape {tuple(levels.shape)}"
        raise Mistake(f"expected the levels of at least one image as int64, came {came}; to_levels gives them")
