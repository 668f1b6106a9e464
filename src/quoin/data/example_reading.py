"""From what a program has to `ModuleExamples`, by its type; and what a DataLoader says of its batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import BatchSampler as TorchBatchSampler
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, TensorDataset

from quoin.data.arrays import as_tensors, frame_features, is_frame, split_frame, target_tensor
from quoin.data.dataset import Dataset
from quoin.data.examples import CollatedExamples, ExampleLayout, ModuleExamples, StreamExamples, TensorExamples
from quoin.data.seeds import keyed_generator
from quoin.errors import UserError

__all__ = ["ReadExamples", "read_examples", "read_inputs", "split_off"]


@dataclass(frozen=True)
class ReadExamples:
    """Examples, and what is known of them beside."""

    examples: ModuleExamples
    splits: dict[str, ModuleExamples] = field(default_factory=dict)  # the source's own validation and test
    feature_names: tuple[str, ...] = ()  # of a data frame: columns in their order
    class_names: tuple[str, ...] | None = None  # of targets that were text
    loader: Any = None  # the DataLoader whose settings count
    shuffle: bool = True
    remarks: tuple[str, ...] = ()


class _Known(NamedTuple):
    """Columns and classes of the training data, which other data follow."""

    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] | None


def read_examples(
    data: Any,
    *,
    target: str | Sequence[str] | None = None,
    whole: bool = False,
    dtype: torch.dtype = torch.float32,
    feature_names: tuple[str, ...] = (),
    class_names: tuple[str, ...] | None = None,
) -> ReadExamples:
    """The examples in `data`, of any form that `quoin.fit` takes.

    Args:
        target: The target column of a data frame (or several), or the name of the target in examples that are dicts.
        whole: Whether the model computes its own loss: then it is given the whole example, the target too.
        dtype: What floating-point arrays and frames become; tensors stay as they are.
        feature_names: The columns of a data frame that are the features, in this order; all but the target otherwise.
        class_names: The classes of targets that are text, where they are known.
    """
    read = _read(data, target, whole, dtype, _Known(feature_names, class_names))
    for examples in (read.examples, *read.splits.values()):
        if len(examples) == 0:
            raise UserError("expected examples to learn from, got none: give more data")
    return read


def _read(data: Any, target: Any, whole: bool, dtype: torch.dtype, known: _Known) -> ReadExamples:
    if isinstance(data, Dataset):
        return _from_dataset(data, whole, dtype)
    if is_frame(data):
        features, found = split_frame(
            data, target, dtype, feature_names=known.feature_names, class_names=known.class_names
        )
        targets = [target] if isinstance(target, str) else list(target or ())
        names = known.feature_names or tuple(str(name) for name in data.columns if str(name) not in targets)
        examples = _in_memory(features, found.targets, whole, "data frame")
        return ReadExamples(examples, feature_names=names, class_names=found.class_names)
    layout = ExampleLayout(_one_name(target), whole)
    if isinstance(data, DataLoader):
        return _from_loader(data, layout)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, Mapping):
        tensors = as_tensors(data, dtype, "the data")
        return ReadExamples(TensorExamples(*layout.batch(tensors), "arrays by name"))
    if isinstance(data, (tuple, list)) and len(data) >= 2:
        *inputs, targets = data
        given = target_tensor(targets, dtype, known.class_names)
        features = as_tensors(inputs[0] if len(inputs) == 1 else tuple(inputs), dtype, "the inputs")
        names = tuple(str(name) for name in inputs[0].columns) if is_frame(inputs[0]) else ()
        examples = _in_memory(features, given.targets, whole, "arrays")
        return ReadExamples(examples, feature_names=names, class_names=given.class_names)
    if isinstance(data, IterableDataset):
        raise UserError(
            "an IterableDataset gives single examples: give quoin.fit a DataLoader of it, which makes batches"
        )
    if isinstance(data, Tensor) or hasattr(data, "__array__"):
        if whole:
            return ReadExamples(TensorExamples(as_tensors(data, dtype, "the data"), None, "arrays"))
        raise UserError(
            "expected inputs and targets, got one array: give data=(inputs, targets), or loss=None for a model that "
            "computes its own loss"
        )
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (str, bytes, tuple, list)):
        return ReadExamples(CollatedExamples(data, layout))
    raise UserError(
        f"expected data as (inputs, targets), a data frame, a Dataset or a DataLoader, got {type(data).__name__}: give "
        "one of these"
    )


def _in_memory(inputs: Any, targets: Any, whole: bool, source: str) -> TensorExamples:
    if whole:
        return TensorExamples((*(inputs if isinstance(inputs, tuple) else (inputs,)), targets), None, source)
    return TensorExamples(inputs, targets, source)


def _one_name(target: Any) -> str | None:
    if target is None or isinstance(target, str):
        return target
    raise UserError(f"several targets are for data frames; of these data name one with target='...', got {target!r}")


def _from_dataset(data: Dataset, whole: bool, dtype: torch.dtype) -> ReadExamples:
    if any(each.levels for each in data.columns) or (data.columns and bool(data.features.isnan().any())):
        raise UserError(
            f"{data.name} has categories or missing cells: encode them first, for instance with "
            "quoin.data.TableEncoder, and give (features, targets)"
        )
    targets = data.targets if data.is_classification else data.targets.to(dtype)
    features = data.features if data.features.ndim == 4 else data.features.to(dtype)
    test = data.num_rows if data.test_start is None else data.test_start
    validation = test if data.validation_start is None else data.validation_start
    bounds = {"train": (0, validation), "validation": (validation, test), "test": (test, data.num_rows)}
    parts = {
        split: _in_memory(_rows(features, start, end), targets[start:end], whole, f"Dataset {data.name}")
        for split, (start, end) in bounds.items()
        if end > start
    }
    return ReadExamples(parts.pop("train"), dict(parts), feature_names=data.feature_names, class_names=data.class_names)


def _rows(features: Tensor, start: int, end: int) -> Tensor:
    """Images that lie in a file stay there where all rows are wanted."""
    return features if end - start == len(features) else features[start:end]


def _from_loader(loader: DataLoader, layout: ExampleLayout) -> ReadExamples:
    """With the usual samplers the order is ours, and so resumable; else the loader's own."""
    ours = (
        not isinstance(loader.dataset, IterableDataset)
        and type(loader.batch_sampler) is TorchBatchSampler
        and (
            type(loader.sampler) is SequentialSampler
            or (type(loader.sampler) is RandomSampler and not loader.sampler.replacement and _whole_epoch(loader))
        )
    )
    if not ours:
        stream = StreamExamples(loader, layout)
        remarks = ["the DataLoader has an order of its own: a resumed run goes on, but not to equal bits"]
        if stream.is_counted:
            remarks.append(f"it has no length: an epoch is the {stream.num_batches} batches that one pass gave")
        return ReadExamples(stream, loader=loader, remarks=tuple(remarks))
    shuffle = type(loader.sampler) is RandomSampler
    examples = CollatedExamples(loader.dataset, layout, loader)
    remarks = [
        "the order of the DataLoader's examples is sampled from (seed, epoch), so that a resumed run has equal bits"
    ]
    if loader.num_workers:
        remarks.append("random transforms in its workers are outside of this")
    return ReadExamples(
        examples, loader=loader, shuffle=shuffle, remarks=tuple(remarks) if shuffle or loader.num_workers else ()
    )


def _whole_epoch(loader: DataLoader) -> bool:
    return len(loader.sampler) == len(loader.dataset)  # type: ignore[arg-type]


def split_off(examples: ModuleExamples, fraction: float, seed: int) -> tuple[ModuleExamples, ModuleExamples]:
    """The rest and a random `fraction` of the examples, a function of the seed; both keep their order."""
    if not isinstance(examples, (TensorExamples, CollatedExamples)):
        raise UserError(
            f"validation={fraction} is a fraction of data with a length and an order; of this DataLoader give "
            "validation= data of its own"
        )
    total = len(examples)
    held_out = max(1, round(total * fraction))
    if held_out >= total:
        raise UserError(
            f"validation={fraction} of {total} examples leaves none to train on: give more, or less of them"
        )
    order = torch.randperm(total, generator=keyed_generator("validation", seed))
    return examples.take(order[held_out:].sort().values), examples.take(order[:held_out].sort().values)


def read_inputs(data: Any, feature_names: Sequence[str], dtype: torch.dtype) -> TensorExamples:
    """Inputs alone, to predict for: in the form of the training data, without targets.

    Args:
        feature_names: The columns that a data frame must have; others, such as the target, are left out.
    """
    if is_frame(data) and feature_names:
        return TensorExamples(frame_features(data, feature_names, dtype), None, "inputs")
    return TensorExamples(as_tensors(data, dtype, "the inputs"), None, "inputs")
