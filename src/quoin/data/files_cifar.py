"""CIFAR-10 in its binary version: `cifar10:FOLDER`.

Six files of records; a record is one label byte, then 3 x 32 x 32 bytes of red, green and blue rows. The version
pickled for Python is an error: unpickling runs whatever the file says.
"""

from pathlib import Path

import numpy as np
import torch

from quoin.data.dataset import Dataset, column_names
from quoin.data.files import existing_folder, quoted, read_bytes
from quoin.errors import UserError

__all__ = ["load_cifar10"]

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IMAGE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_ADVICE = 'get the "CIFAR-10 binary version (suitable for C programs)", cifar-10-binary.tar.gz, and unpack it'


def load_cifar10(path: str) -> Dataset:
    """The images (n, 3, 32, 32) in [0, 1] and their classes; test_batch.bin is the test split."""
    folder = existing_folder(path)
    if (folder / "cifar-10-batches-bin").is_dir():
        folder = folder / "cifar-10-batches-bin"  # the folder where the archive was unpacked
    files = [folder / f"data_batch_{number}.bin" for number in range(1, 6)] + [folder / "test_batch.bin"]
    missing = [file.name for file in files if not file.exists()]
    if missing and any((folder / name).exists() for name in ("data_batch_1", "cifar-10-batches-py")):
        raise UserError(
            f"{quoted(folder)} holds the pickled CIFAR-10, which is not read because a pickle can run code: {_ADVICE}"
        )
    if missing:
        raise UserError(f"expected {missing[0]} in {quoted(folder)}, but it is not there: {_ADVICE}")
    batches = [_records(file) for file in files]
    records = np.concatenate(batches)
    images = torch.from_numpy(records[:, 1:].astype(np.float32)).div_(255).reshape(-1, *_IMAGE)
    targets = torch.from_numpy(records[:, 0].astype(np.int64))
    test_start = len(records) - len(batches[-1])
    return Dataset(f"cifar10:{path}", images, targets, column_names(_IMAGE), CLASS_NAMES, ("label",), test_start)


def _records(path: Path) -> np.ndarray:
    """(n, 3073) bytes."""
    content = read_bytes(path)
    if len(content) % _RECORD:
        raise UserError(
            f"expected records of {_RECORD} bytes in {quoted(path)}, got {len(content)} bytes, no multiple of it: "
            f"{_ADVICE} again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    if records[:, 0].max() >= len(CLASS_NAMES):
        raise UserError(
            f"expected labels 0 to 9 in {quoted(path)}, got {records[:, 0].max()}: the file is damaged; {_ADVICE} again"
        )
    return records
