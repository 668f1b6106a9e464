"""A trained model of images as a compressor: a file of images in, the same file out, at -log2 P of its pixels and next
to nothing more.

A file is one array of bytes (n, h, w) behind a header, as MNIST's own IDX files and NumPy's .npy files are. Both ends
show the same
model the same pixels on one thread, so that equal builds see equal floats.   n images, h height, w width, k grey levels
"""

import io
import math
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import quoin
from quoin.callbacks import ProgressCallback
from quoin.errors import UserError, format_value
from quoin.info import context_mixing_decode, context_mixing_encode, decode_pixels, encode_pixels, model_fingerprint
from quoin.models import PixelModel, dequantize
from quoin.runs.language_codec import in_bytes
from quoin.tensor.single_thread import single_thread

__all__ = ["PixelCodec"]

_SIZES = struct.Struct("<HHB")  # bytes of the header, of its code, from one level to the next


class PixelCodec:
    """A `Codec` for archives of image files, by a model of their pixels without classes."""

    method = 4

    def __init__(self, model: PixelModel, name: str) -> None:
        if model.num_classes is not None:
            raise UserError(
                "expected a model that needs no classes, for a file of images has none, got one that does; train "
                "one without"
            )
        self._model = model.cpu().eval()
        with single_thread():
            self.fingerprint = model_fingerprint(f"{name}, Quoin {quoin.__version__},", model.state_dict())

    def encode(self, content: bytes, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
        start, shape = _image_file(content)
        if shape[1:] != self._model.image_shape[1:]:
            wanted, got = ("{} x {}".format(*size) for size in (self._model.image_shape[1:], shape[1:]))
            raise UserError(
                f"expected images of {wanted} pixels as the model knows them, got {got}; give a model of such images"
            )
        values = torch.from_numpy(np.frombuffer(content, np.uint8, offset=start).reshape(shape).astype(np.int64))
        step = _step(values, self._model.num_levels)
        header = context_mixing_encode(content[:start])
        with single_thread():
            code = encode_pixels(values // step, self._probs, in_bytes(on_progress, len(content)))
        return _SIZES.pack(start, len(header), step) + header + code

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback = lambda done, total: None) -> bytes:
        start, header_size, step = _SIZES.unpack_from(code)
        begin = _SIZES.size + header_size
        header = context_mixing_decode(code[_SIZES.size : begin], start)
        size = self._model.image_shape[1:]
        try:
            with single_thread():
                levels = decode_pixels(
                    code[begin:], (length - start) // math.prod(size), size, self._probs, in_bytes(on_progress, length)
                )
        except UserError as error:
            raise UserError(
                f"the model gives other numbers here than where the archive was made ({error}); decode it there"
            ) from None
        return header + (levels * step).numpy().astype(np.uint8).tobytes()

    def _probs(self, levels: Tensor) -> Callable[[int], Tensor]:  # (n, h, w) -> (n, k) of each pixel in turn
        top = self._model.num_levels - 1
        images = dequantize(levels, top + 1)
        read = self._model.predictor(images)

        def probs(index: int) -> Tensor:
            if index:
                images.flatten(1)[:, index - 1] = levels.flatten(1)[:, index - 1] / top
            return read(index).double().softmax(dim=-1)

        return probs


class _ImageFile(NamedTuple):
    start: int  # of the pixels
    shape: tuple[int, int, int]


def _image_file(content: bytes) -> _ImageFile:
    """Where the pixels of an image file begin, and how many they are."""
    found = _idx(content) or _npy(content)
    if (
        found is None
        or 0 in found.shape
        or len(content) - found.start != math.prod(found.shape)
        or found.start > 0xFFFF
    ):
        raise UserError(
            "expected images as bytes (n, h, w) in an IDX or .npy file, which the model can code, got another "
            "file, which opens with "
            f"{format_value(content[:8])}; write uint8 of three axes with numpy.save, or leave out --model"
        )
    return found


def _idx(content: bytes) -> _ImageFile | None:
    """Two zero bytes, 8 for unsigned bytes, 3 for as many axes, and the size of each."""
    if content[:4] != bytes([0, 0, 8, 3]) or len(content) < 16:
        return None
    return _ImageFile(16, struct.unpack(">3I", content[4:16]))


def _npy(content: bytes) -> _ImageFile | None:
    """An array of bytes, row by row, as numpy.save writes it."""
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            return None
        shape, columns_first, dtype = np.lib.format.read_array_header_1_0(stream)
    except ValueError:
        return None
    plain = dtype == np.uint8 and not columns_first and len(shape) == 3
    return _ImageFile(stream.tell(), shape) if plain else None  # pyright: ignore[reportArgumentType]


def _step(values: Tensor, num_levels: int) -> int:
    """What a byte grows by from level to level: 1 where bytes are levels, else as much as spreads the levels over a
    byte."""
    if int(values.max()) < num_levels:
        return 1
    step, left = divmod(255, num_levels - 1)
    if left or (values % step).any():
        top = int(values.max())
        raise UserError(
            f"expected bytes on the model's {num_levels} levels, 0 to {num_levels - 1}, got {top}; bring them to "
            "that scale"
        )
    return step
