"""One picture file as the bytes of its pixels; and the process that decodes many, `python -m
quoin.data.image_decoding`.

Imports no torch: such a process starts in a tenth of a second. It reads one job a line, JSON, and answers with one.
"""

import hashlib
import json
import os
import signal
import sys
import warnings
from typing import Any

import numpy as np
from PIL import Image

__all__ = ["SUFFIXES", "decode_image", "probe_image"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
MAX_PIXELS = 2**27  # of a picture: a small file, a decompression bomb, can hold more than memory does
_GREY = {"1", "L", "LA", "I", "F"}
_ORIENTATION = 0x0112  # the tag of EXIF
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_QUARTERS = {5, 6, 7, 8}  # width and height change places


def probe_image(path: str) -> tuple[int, int, bool]:
    """Height and width of a picture as it is shown, and whether it is grey; its pixels are not decoded."""
    with _opened(path) as image:
        width, height = image.size
        if _orientation(image) in _QUARTERS:
            width, height = height, width
        return height, width, _is_grey(image)


def decode_image(path: str, shape: tuple[int, int, int]) -> Image.Image:
    """A picture of `shape` (1 or 3 channels, height, width), mode L or RGB.

    It is resized until it covers height and width, and the middle is kept. EXIF orientation is honoured, what is
    transparent stands on white, and 16 bits become 8.
    """
    channels, height, width = shape
    with _opened(path) as image:
        orientation = _orientation(image)
        size = (width, height) if orientation in _QUARTERS else (height, width)
        # A JPEG can be decoded at a fraction of its size; twice what is wanted leaves the resampling its choice.
        image.draft(None, (2 * size[1], 2 * size[0]))
        image.load()
        image = _middle(_plain(image, channels), *size)
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def _opened(path: str) -> Image.Image:
    image = Image.open(path, formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise ValueError(f"{image.width} x {image.height} pixels, and more than {MAX_PIXELS:,} are refused")
    return image


def _orientation(image: Image.Image) -> int:
    # Pillow would decode a whole PNG to look for EXIF data behind its pixels, where hardly any writer puts them.
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    return image.getexif().get(_ORIENTATION, 1)


def _is_grey(image: Image.Image) -> bool:
    if image.mode == "P":
        palette = np.array(image.getpalette("RGB")).reshape(-1, 3)
        return bool((palette == palette[:, :1]).all())
    return image.mode.partition(";")[0] in _GREY


def _plain(image: Image.Image, channels: int) -> Image.Image:
    """`image` in mode L or RGB."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode.startswith("I"):  # Pillow would cut at 255 what counts to 65535
        wide = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray(((wide + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image if image.mode == mode else image.convert(mode)


def _middle(image: Image.Image, height: int, width: int) -> Image.Image:
    if image.size == (width, height):
        return image
    scale = max(width / image.width, height / image.height)
    covered = width / scale, height / scale  # of the picture
    left, top = (image.width - covered[0]) / 2, (image.height - covered[1]) / 2
    box = max(0.0, left), max(0.0, top), min(image.width, left + covered[0]), min(image.height, top + covered[1])
    return image.resize((width, height), Image.Resampling.BILINEAR, box=box, reducing_gap=3.0)


# ---- the process ----------------------------------------------------------------------------------------------------


def _decoded(path: str, shape: tuple[int, int, int], out: int, row: int) -> list[Any] | str:
    """Write the pixels to row `row` of the file `out`; their digest, and of each channel the sum of the values and of
    their squares, the least and the largest. Text, if the picture cannot be decoded."""
    try:
        image = decode_image(path, shape)
    except Exception as error:  # a broken file can make a decoder raise anything
        return _reason(error)
    pixels = np.asarray(image).reshape(*shape[1:], shape[0]).transpose(2, 0, 1).tobytes()
    _write(out, pixels, row * len(pixels))
    counts = np.array(image.histogram(), np.int64).reshape(shape[0], 256)
    values = np.arange(256)
    there = [values[count > 0] for count in counts]
    statistics = [
        [int(count @ values), int(count @ values**2), int(seen[0]), int(seen[-1])]
        for count, seen in zip(counts, there, strict=True)
    ]
    return [_digest(pixels), statistics]


def _probed(path: str) -> list[Any] | str:
    try:
        return list(probe_image(path))
    except Exception as error:
        return _reason(error)


def _write(out: int, content: bytes, offset: int) -> None:
    done = 0
    while done < len(content):
        done += os.pwrite(out, content[done:] if done else content, offset + done)


def _digest(pixels: bytes) -> str:
    return hashlib.blake2b(pixels, digest_size=16).hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return f"no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(reason.split())[:120]


def _answer(job: dict[str, Any]) -> list[Any]:
    """One entry a file: what was found, or text that says why it cannot be."""
    if job["do"] == "probe":
        return [_probed(path) for path in job["files"]]
    shape, start = tuple(job["shape"]), job["start"]
    out = os.open(job["out"], os.O_RDWR)
    try:
        if job["do"] == "check":  # whether rows of an earlier, interrupted process reached the file
            size = int(np.prod(shape))
            rows = enumerate(job["digests"], start)
            return [digest is None or _digest(os.pread(out, size, row * size)) == digest for row, digest in rows]
        return [_decoded(path, shape, out, row) for row, path in enumerate(job["files"], start)]
    finally:
        os.close(out)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and closes the pipe
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None  # ours is checked in `_opened`
    for line in sys.stdin:
        try:
            answer: Any = _answer(json.loads(line))
        except OSError as error:  # of the file that is written, such as a full disk
            answer = {"error": error.strerror}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
