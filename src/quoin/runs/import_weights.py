"""Weights that another library trained, as a run folder: evaluated, sampled from, inspected and fine-tuned like any
other.

What is in them is told by their names and a config.json beside them: import_language.py reads language models,
import_images.py image classifiers. Nothing is written before all of it is known to fit, and no pickle is opened.
"""

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from quoin.data.data_info import DataInfo
from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value
from quoin.models.hf_config import read_folder
from quoin.models.pretrained import check_finite_weights, read_safetensors
from quoin.options import ValidatedOptions
from quoin.runs.catalog import Recipe
from quoin.runs.environment import environment_of
from quoin.runs.removing_runs import find_removable, remove_run
from quoin.runs.run_config import RunConfig
from quoin.train import DeviceContext, RunFolder
from quoin.train.durable import Directory, describe_os_error, draft_name
from quoin.train.run_files import ResultFile

__all__ = ["ImportRequest", "Imported", "ImportedModel", "import_weights"]

FOLDER_FAMILIES = ("gpt2", "gpt_neox", "llama", "resnet", "vit")  # by the model_type of a config.json


@dataclass(frozen=True)
class ImportRequest:
    """What the user says of the weights, beside where they are."""

    data: str = ""  # to evaluate and inspect on, named as for `quoin train --data`
    class_names: Path | None = None  # a file with a line for each class
    image_size: int = 0  # of image classifiers; 0 for the one that the weights were trained with
    image_mean: tuple[float, ...] = ()  # of each channel; none for that of the weights' family
    image_std: tuple[float, ...] = ()


@dataclass(frozen=True)
class ImportedModel:
    """A recipe, its options, and a model that it would build, filled."""

    recipe: Recipe
    options: ValidatedOptions
    kind: str
    data_info: DataInfo
    saved: dict[str, Any]  # weights by name, and what else a run of this kind keeps of its model
    num_parameters: int  # the running averages of batch norms are weights of the file and no parameters
    family: str  # how the names were read
    remarks: tuple[str, ...] = field(default=())


@shown
class Imported(NamedTuple):
    """What was written."""

    path: Path
    recipe: str
    family: str
    num_parameters: int
    remarks: tuple[str, ...]


def import_weights(
    source: Path,
    out: Path | None = None,
    *,
    request: ImportRequest = ImportRequest(),  # noqa: B008 - frozen
    runs: Path = Path("runs"),
    force: bool = False,
) -> Imported:
    """Write the weights at `source`, a folder of Hugging Face's or a safetensors file with torchvision's names, as the
    run `out`, or `runs`/<recipe>-<n>."""
    if out is not None:
        _check_out(out, force)
    found = read_foreign(source, request)
    config = {
        "kind": found.kind,
        "options": dataclasses.asdict(found.options),
        "settings": dataclasses.asdict(RunConfig()),
        "data": found.data_info.as_json(),
        "imported": {"source": str(source.absolute()), "family": found.family},
    }
    path = _write(found, config, out, runs, force)
    return Imported(path, found.recipe.name, found.family, found.num_parameters, found.remarks)


def read_foreign(source: Path, request: ImportRequest) -> ImportedModel:
    """The weights at `source` as a recipe would hold them."""
    from quoin.runs import import_images, import_language

    if not os.path.exists(source):  # unlike Path.exists, also for a name too long to be one
        raise UserError(
            f"expected a folder of Hugging Face's or a .safetensors file, got nothing at {format_value(str(source))}: "
            "check the path"
        )
    if not os.path.isdir(source):
        weights = read_safetensors(source)
        check_finite_weights(weights)
        return import_images.from_torchvision(weights, source, request)
    if (source / "model_index.json").exists() or (source / "unet").exists():
        raise UserError(f"{format_value(str(source))} is a pipeline of diffusers: these are exported, not imported")
    if not (source / "config.json").exists():
        raise UserError(_no_config(source))
    config, weights = read_folder(source)
    check_finite_weights(weights)
    model_type = config.get("model_type")
    if model_type not in FOLDER_FAMILIES:
        raise UserError(
            f"expected the folder of a model that can be imported, got model_type {format_value(model_type)} in "
            f"{source / 'config.json'}: {did_you_mean(str(model_type), FOLDER_FAMILIES)}"
        )
    read = import_images.from_folder if model_type in ("resnet", "vit") else import_language.from_folder
    return read(config, weights, source, request)


def _no_config(source: Path) -> str:
    files = sorted(each.name for each in source.glob("*.safetensors"))
    instead = f"give the file, {source / files[0]}" if files else "give another folder"
    return f"expected a config.json in {format_value(str(source))}, as save_pretrained writes it, got none: {instead}"


def _check_out(out: Path, force: bool) -> None:
    if os.path.lexists(out):
        if not force:
            raise UserError(
                f"{format_value(str(out))} is there already: choose another with -o, or write over it with --force"
            )
        find_removable(out)  # a run, and nothing else in it


def _write(found: ImportedModel, config: dict[str, Any], out: Path | None, runs: Path, force: bool) -> Path:
    """The run under another name, which it loses when all of it is there."""
    root = runs if out is None else out.absolute().parent
    draft = draft_name("import" if out is None else out.name)
    environment = environment_of(found.recipe, DeviceContext(), found.options.seed)  # type: ignore[attr-defined]
    folder = RunFolder.create(root, found.recipe.name, config, environment, name=draft)
    try:
        folder.save_checkpoint(_state(found.saved), 0)
        folder.save_result(_result(found.num_parameters))
        if out is not None and force and os.path.lexists(out):
            remove_run(find_removable(out))
        name = _rename(root, draft, found.recipe.name, out)
        return root / name if out is None else out
    except BaseException:
        folder.remove()
        raise


def _rename(root: Path, draft: str, recipe: str, out: Path | None) -> str:
    inside, number = Directory.at(root), 1
    while out is None and inside.kind(f"{recipe}-{number}") is not None:
        number += 1
    name = f"{recipe}-{number}" if out is None else out.name
    try:
        if inside.kind(name) is not None:
            raise UserError(f"{format_value(str(root / name))} is there already: choose another with -o")
        inside.rename(draft, name)
        inside.sync()
    except OSError as error:
        raise describe_os_error(error, root / name, elsewhere="choose another place with -o") from error
    return name


def _state(saved: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint holds: a model, and no training behind it."""
    trainer = {
        "step": 0,
        "seconds": 0.0,
        "num_lines": 0,
        "best_value": None,
        "best_step": 0,
        "epochs_without_improvement": 0,
        "finished": True,
    }
    return {"task": {"model": saved}, "trainer": trainer, "means": [], "best": None, "generators": {}}


def _result(num_parameters: int) -> ResultFile:
    return {
        "metrics": {},
        "target": None,
        "steps": 0,
        "epochs": 0,
        "best_step": 0,
        "seconds": 0.0,
        "saving_seconds": 0.0,
        "num_parameters": num_parameters,
    }
