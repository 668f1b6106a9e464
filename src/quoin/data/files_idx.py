"""MNIST and its kin in their own IDX files: `idx:FOLDER`.

An IDX file is two zero bytes, a type (8: unsigned bytes), the number of axes, each axis' size as a big-endian 32-bit
number, then the bytes.
"""

import math
import struct
from pathlib import Path

import numpy as np
import torch

from quoin.data.dataset import Dataset, column_names, number_targets
from quoin.data.files import existing_folder, quoted, read_bytes
from quoin.errors import UserError

__all__ = ["load_idx"]


def load_idx(path: str) -> Dataset:
    """The images (n, 1, h, w) in [0, 1] and labels of a folder; its t10k files, where there are any, are the test
    split."""
    folder = existing_folder(path)
    images, labels = _split(folder, "train")
    test_start = None
    if _found(folder, "t10k", "images", 3) or _found(folder, "t10k", "labels", 1):
        test_images, test_labels = _split(folder, "t10k")
        if test_images.shape[1:] != images.shape[1:]:
            raise UserError(
                f"expected test images as large as {images.shape[1:]} in {quoted(folder)}, got "
                f"{test_images.shape[1:]}: fetch the set again"
            )
        test_start = len(images)
        images, labels = np.concatenate([images, test_images]), np.concatenate([labels, test_labels])
    features = torch.from_numpy(images.astype(np.float32)).div_(255)[:, None]
    targets, class_names = number_targets(labels)
    return Dataset(
        f"idx:{path}", features, targets, column_names(features.shape[1:]), class_names, ("label",), test_start
    )


def _split(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, h, w) and labels (n,) of one split, train or t10k."""
    images, labels = _read(folder, split, "images", 3), _read(folder, split, "labels", 1)
    if len(images) != len(labels):
        raise UserError(
            f"expected as many {split} labels as images in {quoted(folder)}, got {len(labels)} and {len(images)}: "
            "fetch both again"
        )
    return images, labels


def _found(folder: Path, split: str, what: str, num_axes: int) -> Path | None:
    """The file if it is there; some mirrors write a point for the second hyphen."""
    stems = (f"{split}-{what}-idx{num_axes}-ubyte", f"{split}-{what}.idx{num_axes}-ubyte")
    paths = [folder / (stem + suffix) for stem in stems for suffix in ("", ".gz")]
    return next((path for path in paths if path.exists()), None)


def _read(folder: Path, split: str, what: str, num_axes: int) -> np.ndarray:
    path = _found(folder, split, what, num_axes)
    if path is None:
        raise UserError(
            f"expected {split}-{what}-idx{num_axes}-ubyte or the same with .gz in {quoted(folder)}, but it is not "
            "there: add it"
        )
    content = read_bytes(path)
    start = 4 + 4 * num_axes
    if content[:4] != bytes([0, 0, 8, num_axes]) or len(content) < start:
        raise UserError(
            f"expected an IDX file of {num_axes} axes, but {quoted(path)} opens with {content[:4].hex()}: fetch it "
            "again"
        )
    shape = struct.unpack(f">{num_axes}I", content[4:start])
    if 0 in shape:
        raise UserError(f"expected data in {quoted(path)}, but it states the shape {shape}: fetch it again")
    if len(content) - start != math.prod(shape):
        raise UserError(
            f"expected {math.prod(shape)} bytes after the header of {quoted(path)}, got {len(content) - start}: "
            "fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
