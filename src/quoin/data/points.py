"""Points: rows of numbers without a target, for models of their distribution."""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.data_info import DataInfo
from quoin.data.dataset import Dataset, column_names
from quoin.data.files_npz import read_npz_points
from quoin.data.memory import explain_out_of_memory
from quoin.data.sources import check_source_name, load
from quoin.data.splits import split
from quoin.data.table_files import FORMATS
from quoin.data.tables import read_table_numbers
from quoin.display import number_table, shown
from quoin.documents import Count
from quoin.errors import UserError, format_value

__all__ = ["PointInfo", "PointSet", "PointSplits", "load_points", "split_points"]

_RESOLVED = 1e4  # standard deviations of a column from zero: float32 keeps three digits of the spread


@shown
@dataclass(frozen=True)
class PointInfo(DataInfo):
    """What a model must know of its points."""

    num_rows: Count
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.feature_names:
            raise UserError("expected a name for each column of the points, got none; restore them")

    @property
    def num_features(self) -> int:
        return len(self.feature_names)


@shown
@dataclass(frozen=True, eq=False)
class PointSet:
    """Rows of finite numbers, two or more of them."""

    name: str
    values: Float[Tensor, "points features"]
    feature_names: tuple[str, ...]

    def _repr_html_(self) -> str:
        title = f"{self.name}: {len(self.values)} points"
        return number_table(self.values[:5].tolist(), columns=self.feature_names, caption=title)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.feature_names) or not self.feature_names:
            raise ValueError(f"expected points (n, {len(self.feature_names)}), got {tuple(self.values.shape)}")
        if len(self.values) < 2:
            raise UserError(
                f"expected two points or more in {format_value(self.name, 200)}, got {len(self.values)}: add rows"
            )

    @cached_property
    def info(self) -> PointInfo:
        digest = hashlib.sha256(repr((tuple(self.values.shape), self.feature_names)).encode("utf-8", "surrogatepass"))
        digest.update(self.values.contiguous().cpu().numpy().data)
        return PointInfo(self.name, digest.hexdigest(), len(self.values), self.feature_names)


@shown
@dataclass(frozen=True, eq=False)
class PointSplits:
    """Points to learn from and points held out; `validation` may be empty."""

    info: PointInfo
    train: Float[Tensor, "train features"]
    validation: Float[Tensor, "validation features"]
    test: Float[Tensor, "test features"]

    def to(self, *, dtype: torch.dtype) -> "PointSplits":
        """The same in another dtype; a column that float32 cannot resolve is a UserError."""
        if dtype == torch.float32 and self.train.dtype == torch.float64:
            mean, std = self.train.mean(dim=0), self.train.std(dim=0)
            far = (mean.abs() > _RESOLVED * std) & (std > 0)
            if far.any():
                name = format_value(self.info.feature_names[int(far.nonzero()[0])])
                raise UserError(
                    f"expected columns that 32 bits resolve, but the mean of {name} is more than {_RESOLVED:g} times "
                    "its standard deviation: subtract what all rows have in common, or leave it out with --ignore"
                )
        splits = {name: getattr(self, name).to(dtype) for name in ("train", "validation", "test")}
        return dataclasses.replace(self, **splits)


@explain_out_of_memory("the data do not fit in memory: give fewer rows or columns")
def load_points(source: str, *, ignore: Sequence[str] = (), seed: int = 0) -> PointSet:
    """The points that `source` names, float64: all columns of a table but those to `ignore`, the array `points` or
    `features` of an npz:PATH, and of any other data set its features.

    Args:
        seed: Decides what a generated source samples.
    """
    check_source_name(source)
    form, _, path = source.partition(":")
    if ignore and form not in FORMATS:
        raise UserError(
            f"--ignore is for tables, such as csv:PATH, but the data are {format_value(source)}: leave it out"
        )
    if form in FORMATS:
        table = read_table_numbers(form, path, ignore)
        return PointSet(source, torch.from_numpy(table.values), tuple(column.name for column in table.columns))
    if form == "npz":
        values = torch.from_numpy(read_npz_points(path))
        return PointSet(source, values, column_names(values.shape[1:]))
    dataset = load(source, seed=seed)
    return PointSet(source, dataset.features.flatten(1).double(), dataset.feature_names)


def split_points(points: PointSet, seed: int, *, validation: float = 0.1, test: float = 0.2) -> PointSplits:
    """Hold points out, as `split` does rows."""
    nothing = torch.zeros(len(points.values), dtype=torch.float64)
    rows = split(
        Dataset(points.name, points.values, nothing, points.feature_names, None), seed, validation=validation, test=test
    )
    return PointSplits(points.info, *(points.values[each] for each in rows))
