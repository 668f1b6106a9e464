"""Image classifiers as runs: ViT and ResNet of Hugging Face's form, and safetensors files with torchvision's names."""

import math
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.data import TabularInfo
from quoin.errors import UserError, format_value
from quoin.models import num_parameters
from quoin.models.pretrained import read_json
from quoin.models.resnet import load_huggingface_resnet
from quoin.runs.catalog import Recipe, find_recipe
from quoin.runs.import_weights import ImportedModel, ImportRequest
from quoin.tasks.fine_tuning import ALEXNET, DENSENET, GOOGLENET, RESNET, VGG, VIT, PretrainedFamily
from quoin.tasks.fine_tuning_options import IMAGENET, ImageStatistics
from quoin.train import DeviceContext

__all__ = ["from_folder", "from_torchvision"]

TORCHVISION = {
    "alexnet": ALEXNET,
    "densenet": DENSENET,
    "googlenet": GOOGLENET,
    "resnet": RESNET,
    "resnext": RESNET,
    "vgg": VGG,
    "vit": VIT,
}  # by recipe
USUAL_SIZE = 224  # of images, where nothing tells
HALF: ImageStatistics = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)  # ViT's own


class _Case(NamedTuple):
    """A recipe at one of its sizes, and how foreign weights fill its model."""

    recipe: Recipe
    options: Any
    load: Callable[[Any, Mapping[str, Tensor]], None]
    family: str


def from_torchvision(weights: Mapping[str, Shaped[Tensor, "..."]], path: Path, request: ImportRequest) -> ImportedModel:
    """The model whose names and shapes the tensors of a file have."""
    size = request.image_size or _size_of_positions(weights) or USUAL_SIZE
    mistakes: list[tuple[int, str]] = []  # how many tensors more or fewer a case has, and what does not fit
    for case, head in _torchvision_cases(weights):
        channels = next(tensor.shape[1] for tensor in weights.values() if tensor.ndim == 4)
        shape = (channels, size, size)
        info = _data_info(request, shape, num_classes=len(head), names=None)
        try:
            _fill(case, info, {name: tensor.to("meta") for name, tensor in weights.items()}, "meta")
        except UserError as error:
            mistakes.append((abs(_num_tensors(case, info) - len(weights)), f"{_called(case)}: {error}"))
            continue
        # What torchvision normalises by differs from family to family: GoogLeNet's expect pixels from -1 to 1.
        return _imported(case, info, weights, _chosen(request, channels, case.options.trained_on), request)
    if mistakes:
        raise UserError(
            f"expected the weights of a model that can be imported, got another's in {format_value(str(path))}; the "
            f"nearest is {min(mistakes, key=lambda each: each[0])[1]}"
        )
    first = next(iter(weights), "none")
    raise UserError(
        f"expected torchvision's names of one of {', '.join(TORCHVISION)}, got others in {format_value(str(path))}, "
        f"such as {format_value(first)}: give the folder, if config.json lies beside it"
    )


def _called(case: _Case) -> str:
    return f"{case.recipe.name} --size {case.options.size}"


def _num_tensors(case: _Case, info: TabularInfo) -> int:
    """Of the recipe's model; 0 where it cannot be built for such images."""
    try:
        with torch.device("meta"):
            return len(case.recipe.model(case.options, info).state_dict())
    except UserError:
        return 0


def _torchvision_cases(weights: Mapping[str, Tensor]) -> Iterator[tuple[_Case, Tensor]]:
    """Every recipe at every size whose head the weights have."""
    for name, family in TORCHVISION.items():
        recipe = find_recipe(name)
        head = next((weights[f"{each}.weight"] for each in _heads(family) if f"{each}.weight" in weights), None)
        if head is None or head.ndim != 2 or not any(tensor.ndim == 4 for tensor in weights.values()):
            continue
        kind: Any = recipe.options
        for size in typing.get_args(typing.get_type_hints(kind)["size"]):
            if size != "small" or name == "resnet":
                yield _Case(recipe, kind(size=size, data=""), family.load, f"torchvision {name}"), head


def _heads(family: PretrainedFamily) -> tuple[str, ...]:
    return family.foreign_heads


def from_folder(
    config: Mapping[str, Any], weights: Mapping[str, Shaped[Tensor, "..."]], folder: Path, request: ImportRequest
) -> ImportedModel:
    """The ViT or ResNet of a folder, whose config and weights are read already."""
    name, processor = config["model_type"], folder / "preprocessor_config.json"
    about = read_json(processor) if processor.exists() else {}
    size = request.image_size or _image_size(config, about)
    head = weights.get("classifier.weight" if name == "vit" else "classifier.1.weight")
    if head is None:
        raise UserError(
            f"expected an image classifier, got {name} weights without a head in {format_value(str(folder))}: give "
            "those of ForImageClassification"
        )
    info = _data_info(request, (config.get("num_channels", 3), size, size), len(head), _labels(config, len(head)))
    channels = info.image_shape[0]
    statistics = _chosen(request, channels, _statistics(about, channels, HALF if name == "vit" else IMAGENET))
    mistakes: list[str] = []
    for case in _folder_cases(name, config):
        try:
            _fill(case, info, {each: tensor.to("meta") for each, tensor in weights.items()}, "meta")
        except UserError as error:
            mistakes.append(f"--size {case.options.size}: {error}")
            continue
        return _imported(case, info, weights, statistics, request)
    raise UserError(
        f"expected a {name} of a size that the recipe {name} has, got another in {format_value(str(folder))} "
        f"({mistakes[-1] if mistakes else 'no size fits'})"
    )


def _folder_cases(name: str, config: Mapping[str, Any]) -> Iterator[_Case]:
    recipe = find_recipe(name)
    kind: Any = recipe.options
    load = load_huggingface_resnet if name == "resnet" else VIT.load
    for size in typing.get_args(typing.get_type_hints(kind)["size"]):
        if size != "small":
            yield _Case(recipe, kind(size=size, data=""), load, f"Hugging Face {name}")


def _image_size(config: Mapping[str, Any], about: Mapping[str, Any]) -> int:
    """Of ViT's own config, else of the preprocessor's."""
    found = about.get("crop_size") or about.get("size") or {}
    values = list(found.values()) if isinstance(found, Mapping) else [found]
    size = config.get("image_size", values[0] if values else USUAL_SIZE)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise UserError(f"expected one image_size in config.json, got {format_value(size)}: restore the file")
    return size


def _size_of_positions(weights: Mapping[str, Tensor]) -> int | None:
    """The side of the images of a ViT's table of positions: one for the class token, then one for each patch."""
    table = next((each for each in weights.values() if each.ndim == 3 and len(each) == 1 < each.shape[1]), None)
    patch = next((each.shape[-1] for each in weights.values() if each.ndim == 4), None)
    if table is None or patch is None:
        return None
    across = math.isqrt(table.shape[1] - 1)
    return across * patch if across * across == table.shape[1] - 1 else None


def _chosen(request: ImportRequest, channels: int, known: ImageStatistics) -> ImageStatistics:
    """--image-mean and --image-std, else what is known; nothing is of weights that read grey images."""
    mean, std = (request.image_mean, request.image_std) if request.image_mean or request.image_std else known
    if not len(mean) == len(std) == channels:
        got = f"{len(request.image_mean)} and {len(request.image_std)}"
        raise UserError(
            f"expected --image-mean and --image-std of {channels} numbers, one for each channel that the weights read, "
            f"got {got}: give those that they were trained with, pixels being in [0, 1]"
        )
    if bad := [each for each in (*mean, *std) if not math.isfinite(each)] + [each for each in std if each <= 0]:
        raise UserError(
            f"expected finite numbers for --image-mean and --image-std, the latter above 0, got {bad[0]}: check them"
        )
    return mean, std


def _statistics(about: Mapping[str, Any], channels: int, usual: ImageStatistics) -> ImageStatistics:
    if not about.get("do_normalize", True):
        return (0.0,) * channels, (1.0,) * channels
    if "image_mean" not in about and "image_std" not in about:
        return usual
    mean, std = about.get("image_mean", usual[0]), about.get("image_std", usual[1])
    for name, values in (("image_mean", mean), ("image_std", std)):
        if not (
            isinstance(values, list | tuple)
            and len(values) == channels
            and all(isinstance(each, int | float) for each in values)
        ):
            raise UserError(
                f"expected {channels} numbers as {name} in preprocessor_config.json, got {format_value(values)}: "
                "restore the file"
            )
    return tuple(map(float, mean)), tuple(map(float, std))


def _labels(config: Mapping[str, Any], num_classes: int) -> tuple[str, ...] | None:
    """The names of the classes that a config.json tells, if it does."""
    found = config.get("id2label")
    if not isinstance(found, Mapping):
        return None
    names = tuple(str(found.get(str(number), number)) for number in range(num_classes))
    return names if len(set(names)) == num_classes else None


def _data_info(
    request: ImportRequest, shape: tuple[int, int, int], num_classes: int, names: tuple[str, ...] | None
) -> TabularInfo:
    if request.class_names is not None:
        names = _read_names(request.class_names, num_classes)
    return TabularInfo(
        source=request.data,
        fingerprint="",
        num_rows=0,
        feature_names=(),
        feature_shape=shape,
        target_names=("label",),
        class_names=names or tuple(map(str, range(num_classes))),
    )


def _read_names(path: Path, num_classes: int) -> tuple[str, ...]:
    try:
        names = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UserError(f"--class-names {format_value(str(path))} cannot be read ({told}): check it") from error
    if len(names) != num_classes or len(set(names)) != len(names):
        raise UserError(
            f"--class-names: expected {num_classes} different names, a line for each class of the weights, got "
            f"{len(names)} lines, {len(set(names))} of them different, in {format_value(str(path))}: give another"
        )
    return names


def _fill(case: _Case, info: TabularInfo, weights: Mapping[str, Tensor], device: str) -> nn.Module:
    """The recipe's model with these weights; on the device `meta` only names and shapes are checked."""
    with torch.device(device):
        model = case.recipe.model(case.options, info)
    case.load(model, weights)
    return model


def _imported(
    case: _Case,
    info: TabularInfo,
    weights: Mapping[str, Tensor],
    statistics: ImageStatistics,
    request: ImportRequest,
) -> ImportedModel:
    kind: Any = case.recipe.options
    mean, std = statistics
    options = kind(size=case.options.size, data=request.data, image_mean=mean, image_std=std)
    case = case._replace(options=options)
    if request.data:
        found = case.recipe.build(options, DeviceContext()).data_info
        assert isinstance(found, TabularInfo)
        if found.feature_shape != info.feature_shape or len(found.class_names or ()) != len(info.class_names or ()):
            raise UserError(
                f"--data {format_value(request.data)}: expected images of {info.feature_shape} of "
                f"{len(info.class_names or ())} classes, as the weights have, got {found.feature_shape} of "
                f"{len(found.class_names or ())}: give others, or fine-tune with `quoin train {case.recipe.name} "
                "--pretrained`"
            )
        info = found
    model = _fill(case, info, weights, "cpu")
    scales = {
        name: torch.tensor(values, dtype=torch.float64)[:, None, None]
        for name, values in (("feature_mean", mean), ("feature_std", std))
    }
    remarks = ()
    if info.class_names == tuple(map(str, range(len(info.class_names or ())))):
        remarks = ("the weights do not tell the names of their classes: they are called by number; see --class-names",)
    saved = {"weights": model.state_dict(), "scales": scales}
    return ImportedModel(
        case.recipe, options, "classification", info, saved, num_parameters(model), case.family, remarks
    )
