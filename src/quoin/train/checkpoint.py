"""Checkpoints: a folder of safetensors and JSON under a manifest of hashes, renamed into place.

    checkpoints/00000120/tensors.safetensors    every tensor of the state, once; see tensor_file.py
                         state.json             the rest of the tree, with references to the tensors
                         manifest.json          format, recipe, step, SHA-256 and size of the two above and of itself

A folder that has its final name is complete; one bit changed in any of the three files is an error. Imports torch only
where tensors are read or written: the folder of a run is listed without.

Nothing here holds a second copy of the tensors. They are written one at a time, in pieces, while they are hashed; what
is read is hashed in pieces and then mapped, so that it is brought into memory only where it is copied into place. With
several processes the main one writes, the others call `give_shards`, and a tensor that is sharded over them is gathered
when its turn comes: what is written does not depend on how many they are.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quoin.errors import UserError
from quoin.train.durable import Directory, draft_name

__all__ = ["FORMAT", "checkpoint_steps", "give_shards", "read_checkpoint", "set_aside", "write_checkpoint"]

FORMAT = 1
_MANIFEST, _TENSORS, _STATE = "manifest.json", "tensors.safetensors", "state.json"
STEP = re.compile("[0-9]{8,18}")  # what the folder of a step is called; a count of steps has no more digits
_MANIFEST_KEYS = {"format", "recipe", "step", "files"}  # what the manifest holds beside its own hash


def write_checkpoint(folder: Path | Directory, state: Any, *, recipe: str, step: int) -> Path:
    """Write `state` as `folder/<step>`; a kill at any moment leaves the folder whole or absent, a disk that refuses is
    an `OSError`.

    A run has one state per step, so a step that is already there is left as it is. Of several processes the main one
    calls this, and every other one `give_shards`.

    Args:
        recipe: Whose state it is; `read_checkpoint` expects the same name.
    """
    if isinstance(folder, Path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder = Directory.at(folder.parent).enter(folder.name, make=True)
    name = f"{step:08d}"
    with _gathering(state, wanted=folder.kind(name) is None) as found:
        if found is None:
            return folder.path / name
        skeleton, pieces = found
        draft = draft_name(name)
        folder.make(draft)
        try:
            inside = folder.enter(draft)
            tensors, state_file = _Hashed(pieces), _Hashed([_compact(skeleton)])
            inside.write(_TENSORS, tensors)
            inside.write(_STATE, state_file)
            files = {_TENSORS: tensors.about(), _STATE: state_file.about()}
            inside.write(_MANIFEST, _sealed({"format": FORMAT, "recipe": recipe, "step": step, "files": files}))
            inside.sync()
            folder.rename(draft, name)
        except OSError:
            folder.clear(draft)  # on a full disk it is in the way
            raise
        folder.sync()
    return folder.path / name


def set_aside(folder: Directory, state: Any) -> Any:
    """A copy of `state` that training on does not change and that holds no memory: its large tensors lie in a file
    without a name, which goes with the process. Of several processes the main one calls this, the others
    `give_shards`."""
    from quoin.train.state import unflatten_state
    from quoin.train.tensor_file import read_tensors

    with _gathering(state) as found:
        assert found is not None, "it was wanted"
        skeleton, pieces = found
        return unflatten_state(skeleton, read_tensors(folder.set_aside(pieces)))


def give_shards(state: Any) -> None:
    """Take part in what the main process does with `state` in `write_checkpoint` or `set_aside`: give it the parts that
    this process has of sharded tensors. What kept the main process from writing is an error here too."""
    from quoin.train.processes import from_main
    from quoin.train.state import flatten_state
    from quoin.train.tensor_file import file_order, whole_tensor

    _, tensors = flatten_state(state)
    names = _sharded_names(tensors, file_order(tensors))
    theirs = from_main(None)
    if theirs is not None:
        assert theirs == names, f"the main process has other sharded tensors: {theirs[:3]}, here {names[:3]}"
        for name in names:
            whole_tensor(tensors[name])
    if (problem := from_main(None)) is not None:
        raise UserError(f"the main process could not write: {problem}")


@contextmanager
def _gathering(state: Any, *, wanted: bool = True) -> Iterator[tuple[Any, Iterator[bytes | memoryview]] | None]:
    """The skeleton of a state, and its tensors as pieces of a file, which the other processes help to gather; None if
    it is not `wanted`."""
    from quoin.train.processes import from_main, num_processes
    from quoin.train.state import flatten_state
    from quoin.train.tensor_file import file_order, tensor_pieces

    if num_processes() == 1 and not wanted:
        yield None
        return
    skeleton, tensors = flatten_state(state)
    from_main(_sharded_names(tensors, file_order(tensors)) if wanted else None)
    pieces = tensor_pieces(tensors)
    try:
        yield (skeleton, pieces) if wanted else None
    except OSError as error:
        if num_processes() > 1:
            for _ in pieces:  # the others wait until all is gathered
                pass
            from_main(error.strerror or str(error))
        raise
    from_main(None)


def _sharded_names(tensors: dict[str, Any], order: list[str]) -> list[str]:
    from quoin.train.tensor_file import is_sharded

    return [name for name in order if is_sharded(tensors[name])]


def read_checkpoint(path: Path | Directory, *, recipe: str) -> Any:
    """The state in `path`, after every byte of it was found to be as it was written; else a `UserError`.

    Its large tensors lie in the file, mapped: to write into one changes this process's memory and never the file, which
    may be removed meanwhile. Weights are copied into place from there, and `GradientUpdater` copies what its optimizer
    keeps.

    Args:
        recipe: The name that the checkpoint was written with; another is an error.
    """
    from quoin.train.state import unflatten_state
    from quoin.train.tensor_file import read_tensors

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
    skeleton, tensors = (_map(inside, name, manifest["files"][name]) for name in (_STATE, _TENSORS))
    try:
        return unflatten_state(json.loads(bytes(skeleton)), read_tensors(tensors))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # sealed, but not by Quoin
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
    for debris in folder.drafts_of("aside"):
        folder.remove(debris)


def _compact(value: Any) -> bytes:
    """JSON that keeps a dict's order: a task may sum over one, and another order gives other bits."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


class _Hashed:
    """Pieces of a file, hashed and counted as they pass."""

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces, self._digest, self._bytes = pieces, hashlib.sha256(), 0

    def __iter__(self) -> Iterator[bytes | memoryview]:
        for piece in self._pieces:
            self._digest.update(piece)
            self._bytes += len(piece)
            yield piece

    def about(self) -> dict[str, Any]:
        return {"sha256": self._digest.hexdigest(), "bytes": self._bytes}


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
    with _readable(folder, name):
        return folder.read(name)


def _map(folder: Directory, name: str, expected: dict[str, Any]) -> Any:
    with _readable(folder, name):
        return folder.map(name, expected["sha256"], expected["bytes"])


@contextmanager
def _readable(folder: Directory, name: str) -> Iterator[None]:
    """A file of a checkpoint that is missing, unreadable or another, in one line."""
    try:
        yield
    except FileNotFoundError:
        raise _damaged(folder.path, f"{name} is missing") from None
    except UserError:
        kind = folder.kind(name)
        raise _damaged(
            folder.path, f"{name} cannot be read" + (f", it is {kind}" if kind != "a file" else "")
        ) from None
    except ValueError as error:
        raise _damaged(folder.path, str(error)) from None


def _damaged(path: Path, what: str) -> UserError:
    others = [step for step in checkpoint_steps(path.parent) if f"{step:08d}" != path.name]
    way_out = (
        f"continue from another one with --step {others[-1]}" if others else "no other checkpoint is left: train again"
    )
    return UserError(f"checkpoint {path} is damaged: {what}; {way_out}")
