"""NumPy archives: `npz:PATH`, or `signals:PATH`, with arrays `features` (or `x`, `X`) and `targets` (or `y`,
`labels`)."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.dataset import Dataset, column_names, number_targets, text_targets
from quoin.data.files import existing_file, quoted
from quoin.errors import UserError

__all__ = ["load_npz", "load_npz_signals", "read_npz_features", "read_npz_points", "read_npz_signals"]

_FEATURES = ("features", "x", "X")
_POINTS = (*_FEATURES, "points")  # where no targets are asked for
_TARGETS = ("targets", "y", "labels")


def load_npz(source_path: str) -> Dataset:
    """Features (n, d), or images (n, h, w) or (n, c, h, w) where whole bytes 0..255 become [0, 1]; targets (n,)."""
    return _dataset("npz", source_path, _features)


def load_npz_signals(source_path: str) -> Dataset:
    """Signals (n, channels, length), or (n, length) of one channel, their numbers as they are; targets (n,)."""
    return _dataset("signals", source_path, _signals)


def _dataset(form: str, source_path: str, read: Callable[[Path, np.ndarray], np.ndarray]) -> Dataset:
    path = existing_file(source_path)
    arrays = _arrays(path, (_FEATURES, _TARGETS))
    features, targets = read(path, arrays[0]), arrays[1]
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.shape != (len(features),):
        raise UserError(
            f"expected {len(features)} targets in {quoted(path)}, one a row, got an array of shape "
            f"{targets.shape}: reshape it"
        )
    if targets.dtype.kind == "U":
        values, class_names = text_targets(targets.tolist())
    else:
        values, class_names = number_targets(_finite(path, "targets", targets))
    return Dataset(
        f"{form}:{source_path}", torch.from_numpy(features), values, column_names(features.shape[1:]), class_names
    )


def read_npz_features(source_path: str | Path, feature_names: Sequence[str]) -> Float[Tensor, "samples features"]:
    """The features of the archive at `source_path`, float64, images flattened in float32; arrays have no names, so
    order counts."""
    path = existing_file(source_path)
    features = _features(path, _arrays(path, (_POINTS,))[0])
    if math.prod(features.shape[1:]) != len(feature_names):
        raise UserError(
            f"expected {len(feature_names)} features a row in {quoted(path)}, got shape {features.shape}: give "
            "what was trained on"
        )
    return torch.from_numpy(features).flatten(1)


def read_npz_signals(source_path: str | Path) -> Float[Tensor, "samples channels length"]:
    """The signals of the archive at `source_path`, whatever their number of channels and length."""
    path = existing_file(source_path)
    return torch.from_numpy(_signals(path, _arrays(path, (_FEATURES,))[0]))


def read_npz_points(source_path: str | Path) -> np.ndarray:
    """The rows (n, d), float64, of the archive at `source_path`, whose targets are of no matter; images flattened."""
    path = existing_file(source_path)
    features = _features(path, _arrays(path, (_POINTS,))[0])
    return features.reshape(len(features), -1).astype(np.float64)


def _arrays(path: Path, wanted: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
    """The first array found under each of the `wanted` sets of names."""
    try:
        with open(path, "rb") as file:  # ours to close: of a damaged archive numpy would leave it open
            return _arrays_in(file, path, wanted)
    except OSError as error:
        raise UserError(f"{quoted(path)} cannot be read ({error.strerror}): check its permissions") from None


def _arrays_in(file: BinaryIO, path: Path, wanted: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
    try:
        archive = np.load(file, allow_pickle=False)
    except Exception as error:  # numpy and zipfile raise a dozen kinds for damaged bytes, and none of them is our fault
        raise UserError(
            f"expected a NumPy .npz archive, but {quoted(path)} cannot be opened ({_reason(error)}): write it again"
        ) from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise UserError(
            f"expected a NumPy .npz archive, but {quoted(path)} holds a single array: save it with numpy.savez"
        )
    found = []
    with archive:
        for names in wanted:
            name = next((name for name in names if name in archive.files), None)
            if name is None:
                raise UserError(
                    f"expected an array named {' or '.join(names)} in {quoted(path)}, but there is none: save one "
                    "with numpy.savez"
                )
            try:
                array = archive[name]
            except Exception as error:  # as above; object arrays, which would need pickle, also end here
                raise UserError(
                    f"expected a plain array {name!r} in {quoted(path)}, but it cannot be read ({_reason(error)}): "
                    "write it again"
                ) from None
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
                raise UserError(
                    f"expected numbers or text in {name!r} of {quoted(path)}, got "
                    f"{getattr(array, 'dtype', 'raw bytes')}: convert it"
                )
            found.append(array)
    return found


def _features(path: Path, array: np.ndarray) -> np.ndarray:
    """(n, d) float64 or (n, c, h, w) float32, and finite."""
    if array.ndim == 3:
        array = array[:, None]
    if array.ndim not in (2, 4) or 0 in array.shape:
        raise UserError(
            f"expected features (n, d), (n, h, w) or (n, c, h, w) in {quoted(path)}, got shape {array.shape}: "
            "reshape them"
        )
    if array.ndim == 4 and array.shape[3] in (1, 3) and array.shape[1] not in (1, 3):
        raise UserError(
            f"expected images (n, c, h, w) in {quoted(path)}, got the channels last, {array.shape}: transpose them"
        )
    array, whole = _finite(path, "features", array), array.dtype == np.uint8
    if array.ndim == 2:
        _check_told_apart(path, array)
        return np.ascontiguousarray(array, dtype=np.float64)
    values = np.ascontiguousarray(array, dtype=np.float32)
    return values / np.float32(255) if whole else values


def _signals(path: Path, array: np.ndarray) -> np.ndarray:
    """(n, channels, length) and finite, float32 where they are so, else float64."""
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise UserError(
            f"expected signals (n, channels, length) or (n, length) in {quoted(path)}, got shape {array.shape}: "
            "reshape them"
        )
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    values = np.ascontiguousarray(_finite(path, "features", array), dtype=dtype)
    return values if array.ndim == 3 else values[:, None]


def _check_told_apart(path: Path, array: np.ndarray) -> None:
    """Refuse whole numbers of 64 bits that differ, and not as float64 holds them."""
    if (
        array.dtype.kind not in "iu"
        or array.dtype.itemsize < 8
        or not (np.abs(array.astype(np.float64)) >= 2**53).any()
    ):
        return
    for number, column in enumerate(array.T):
        exact = np.unique(column)
        same = np.flatnonzero(np.diff(exact.astype(np.float64)) == 0)
        if len(same):
            raise UserError(
                f"expected numbers that 64 bits of a float can distinguish in features {number} of {quoted(path)}, "
                f"but {exact[same[0]]} and {exact[same[0] + 1]} are one there: subtract what all have in common"
            )


def _finite(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    """`array` itself, known to hold numbers that float32 can hold."""
    if array.dtype.kind == "U":
        raise UserError(f"expected numbers as {name} in {quoted(path)}, got text: encode it as numbers")
    with np.errstate(over="ignore"):
        bad = np.argwhere(~np.isfinite(array.astype(np.float32)))
    if len(bad):
        where = tuple(bad[0].tolist())
        raise UserError(
            f"expected finite numbers as {name} in {quoted(path)}, got {array[where]} at {where}: mend or drop that row"
        )
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _reason(error: Exception) -> str:
    """Why, in few words and on one line."""
    if isinstance(error, ValueError) and "allow_pickle" in str(error):
        return "it needs pickle, which can run code"
    return " ".join(str(error).split())[:100] or type(error).__name__
