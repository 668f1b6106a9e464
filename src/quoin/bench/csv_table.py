"""The benchmark `csv`: a million rows of twenty numbers and a class, from a file to tensors; beside polars' own
reader."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from quoin.bench.worker import Repeats, peak_bytes

__all__ = ["polars_alone", "quoin"]

ROWS, COLUMNS, CLASSES = 1_000_000, 20, 3
AT_ONCE = 50_000  # rows written together, so that the writing sets no peak of memory


def quoin(repeats: Repeats) -> dict[str, float]:
    from quoin.data import load

    def read(path: Path) -> tuple[Tensor, Tensor]:
        data = load(f"csv:{path}")
        return data.features, data.targets

    return _measured(repeats, read)


def polars_alone(repeats: Repeats) -> dict[str, float]:
    import polars

    def read(path: Path) -> tuple[Tensor, Tensor]:
        frame = polars.read_csv(path)
        features = torch.from_numpy(frame.drop("label").to_numpy(writable=True))
        return features, torch.from_numpy(frame["label"].to_numpy(writable=True))

    return _measured(repeats, read)


def _measured(repeats: Repeats, read: Callable[[Path], tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Peak memory beyond what the process held before it read, in sizes of the tensors; and a checksum."""
    torch.set_num_threads(repeats.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        _write(path)
        _first_rows(path, read)  # everything is imported
        before = _resident_bytes()
        features, targets = read(path)
        peak, size = peak_bytes(), features.nbytes + targets.nbytes  # before a second reading lies beside the first
        del features, targets
        features, targets = repeats.timed(lambda: read(path))
    return {
        "memory in tensors": (peak - before) / size,
        "checksum": float(features.sum() + targets.double().sum()),
    }


def _write(path: Path) -> None:
    import polars

    generator = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, ROWS, AT_ONCE):
            columns: dict[str, np.ndarray] = {
                f"x{at}": generator.normal(size=AT_ONCE).round(5) for at in range(COLUMNS)
            }
            columns["label"] = generator.integers(0, CLASSES, AT_ONCE)
            polars.DataFrame(columns).write_csv(file, include_header=start == 0)


def _first_rows(path: Path, read: Callable[[Path], tuple[Tensor, Tensor]]) -> None:
    few = path.with_name("few.csv")
    with path.open() as whole:
        few.write_text("".join(whole.readline() for _ in range(100)))
    read(few)


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmRSS")
