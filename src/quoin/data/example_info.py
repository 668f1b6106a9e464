"""What a run of a module of one's own records of its data."""

from dataclasses import dataclass
from typing import Annotated

from quoin.data.data_info import DataInfo
from quoin.documents import Count, Must

__all__ = ["ExampleInfo"]


@dataclass(frozen=True)
class ExampleInfo(DataInfo):
    """How many examples there are, and of which dtypes and shapes."""

    num_train: Annotated[int, Must("a whole number from 1 on", lambda number: number >= 1)]
    num_validation: Count
    num_test: Count
    inputs: str  # dtype and shape of an example, such as float32 (3,)
    targets: str  # "" where the model computes its own loss
    feature_names: tuple[str, ...] = ()  # of a data frame: the columns in their order
    class_names: tuple[str, ...] | None = None  # of targets that were text
