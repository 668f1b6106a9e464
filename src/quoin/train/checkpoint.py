"""Checkpoints: a folder of safetensors and JSON under a manifest of hashes, renamed into place.

    checkpoints/00000120/tensors.safetensors    every tensor of the state, once
                         state.json             the rest of the tree, with references to the tensors
                         manifest.json          format, recipe, step, SHA-256 and size of the two above and of itself

A folder that has its final name is complete; one bit changed in any of the three files is an error. Imports torch only
where tensors are read or written: the folder of a run is listed without.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quoin.errors import UserError
from quoin.train.durable import Directory, draft_name

__all__ = ["FORMAT", "checkpoint_steps", "read_checkpoint", "write_checkpoint"]

FORMAT = 1
_MANIFEST, _TENSORS, _STATE = "manifest.json", "tensors.safetensors", "state.json"
STEP = re.compile("[0-9]{8,18}")  # what the folder of a step is called; a count of steps has no more digits
_MANIFEST_KEYS = {"format", "recipe", "step", "files"}  # what the manifest holds beside its own hash


def write_checkpoint(folder: Path | Directory, state: Any, *, recipe: str, step: int) -> Path:
    """Write `state` as `folder/<step>`; a kill at any moment leaves the folder whole or absent, a disk that refuses is
    an `OSError`.

    A run has one state per step, so a step that is already there is left as it is.

    Args:
        recipe: Whose state it is; `read_checkpoint` expects the same name.
    """
    import safetensors.torch

    from quoin.train.state import flatten_state

    if isinstance(folder, Path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder = Directory.at(folder.parent).enter(folder.name, make=True)
    name = f"{step:08d}"
    if folder.kind(name):
        return folder.path / name
    skeleton, tensors = flatten_state(state)
    files = {_TENSORS: safetensors.torch.save(tensors), _STATE: _compact(skeleton)}
    manifest = {
        "format": FORMAT,
        "recipe": recipe,
        "step": step,
        "files": {name: {"sha256": _digest(content), "bytes": len(content)} for name, content in files.items()},
    }
    files[_MANIFEST] = _sealed(manifest)
    draft = draft_name(name)
    folder.make(draft)
    try:
        inside = folder.enter(draft)
        for file, content in files.items():
            inside.write(file, content)
        inside.sync()
        folder.rename(draft, name)
    except OSError:
        folder.clear(draft)  # on a full disk it is in the way
        raise
    folder.sync()
    return folder.path / name


def read_checkpoint(path: Path | Directory, *, recipe: str) -> Any:
    """The state in `path`, after every byte of it was found to be as it was written; else a `UserError`.

    Args:
        recipe: The name that the checkpoint was written with; another is an error.
    """
    import safetensors.torch

    from quoin.train.state import unflatten_state

    inside = Directory.at(path.parent).enter(path.name) if isinstance(path, Path) else path
    path = inside.path
    manifest = _read_manifest(inside)
    if manifest["format"] > FORMAT:
        raise UserError(
            f"checkpoint {path} has format {manifest['format']}, this Quoin reads up to {FORMAT}: install a newer "
            "Quoin to open it"
        )
    if manifest["recipe"] != recipe:
        raise UserError(
            f"checkpoint {path} belongs to recipe {manifest['recipe']!r}, expected {recipe!r}: open the run it "
            "came from"
        )
    if f"{manifest['step']:08d}" != path.name:
        raise _damaged(path, f"{_MANIFEST} is that of step {manifest['step']}")
    contents = {}
    for name, expected in manifest["files"].items():
        content = _read(inside, name)
        if len(content) != expected["bytes"]:
            raise _damaged(path, f"{name} has {len(content)} bytes, expected {expected['bytes']}")
        if _digest(content) != expected["sha256"]:
            raise _damaged(path, f"{name} is not as it was written (SHA-256 differs)")
        contents[name] = content
    try:
        return unflatten_state(json.loads(contents[_STATE]), safetensors.torch.load(contents[_TENSORS]))
    except (
        safetensors.SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:  # sealed, but not by Quoin
        raise _damaged(path, f"{_STATE} and {_TENSORS} do not make a state ({type(error).__name__})") from None


def checkpoint_steps(folder: Path | Directory) -> list[int]:
    """The steps that have a checkpoint in `folder`, oldest first; drafts and doomed folders have dot-names."""
    if isinstance(folder, Path):
        if not folder.is_dir():
            return []
        folder = Directory.at(folder)
    return sorted(step for name in folder.names() if (step := _step_of(name)) is not None)


def _step_of(name: str) -> int | None:
    """The step of a checkpoint's folder, None where the name is not one that `write_checkpoint` gives, such as ² or
    12."""
    return int(name) if STEP.fullmatch(name) and f"{int(name):08d}" == name else None


def prune(folder: Path | Directory, keep: Iterable[int]) -> None:
    """Remove every checkpoint but those of the steps in `keep`, and what a kill left half-written or half-removed of
    ours."""
    if isinstance(folder, Path):
        folder = Directory.at(folder)
    kept = set(keep)
    for step in checkpoint_steps(folder):
        if step not in kept:
            folder.remove_folder(f"{step:08d}")
    for debris in folder.drafts_of(STEP.pattern, "draft|doomed"):
        folder.clear(debris)


def _compact(value: Any) -> bytes:
    """JSON that keeps a dict's order: a task may sum over one, and another order gives other bits."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sealed(manifest: dict[str, Any]) -> bytes:
    """The manifest with the hash of its own canonical text inside it."""
    return _canonical({**manifest, "sha256": _digest(_canonical(manifest))})


def _read_manifest(folder: Directory) -> dict[str, Any]:
    content = _read(folder, _MANIFEST)
    try:
        manifest = json.loads(content)
        body = {key: value for key, value in manifest.items() if key != "sha256"}
        whole = _sealed(body) == content  # byte for byte: a changed blank or letter case counts too
        # A newer format may say other things; that it is newer is then the message.
        whole = whole and (
            body["format"] > FORMAT or (body.keys() == _MANIFEST_KEYS and body["files"].keys() == {_TENSORS, _STATE})
        )
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        manifest, whole = {}, False
    if not whole:
        raise _damaged(folder.path, f"{_MANIFEST} is not as it was written")
    return manifest


def _read(folder: Directory, name: str) -> bytes:
    try:
        return folder.read(name)
    except FileNotFoundError:
        raise _damaged(folder.path, f"{name} is missing") from None
    except UserError:
        kind = folder.kind(name)
        raise _damaged(
            folder.path, f"{name} cannot be read" + (f", it is {kind}" if kind != "a file" else "")
        ) from None


def _damaged(path: Path, what: str) -> UserError:
    others = [step for step in checkpoint_steps(path.parent) if f"{step:08d}" != path.name]
    way_out = (
        f"continue from another one with --step {others[-1]}" if others else "no other checkpoint is left: train again"
    )
    return UserError(f"checkpoint {path} is damaged: {what}; {way_out}")
