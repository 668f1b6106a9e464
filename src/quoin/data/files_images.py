"""A folder of pictures: `images:FOLDER`, one folder a class, alone or inside `train/`, `validation/` and `test/`.

PNG, JPEG, WebP and BMP; all else in the folders is left out, and said so. Decoded once: see image_cache.py.
"""

import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from quoin.callbacks import current_listener
from quoin.data.dataset import MAX_CLASSES, Dataset, column_names
from quoin.data.files import existing_folder, quoted
from quoin.data.image_cache import DecodedImages, ImageFile, ImageSettings, decode_images
from quoin.data.image_decoding import SUFFIXES
from quoin.data.stored_images import StoredImages
from quoin.errors import UserError, format_value

__all__ = ["Pictures", "load_images", "read_pictures"]

SPLITS = {"train": "train", "validation": "validation", "val": "validation", "valid": "validation", "test": "test"}
MAX_NAMED = 4096  # features whose names a run keeps; those of a photograph would be megabytes
MAX_TOLD = 20  # broken pictures that are named
AS_THEY_ARE = ImageSettings()
_LAYOUT = "one folder for each class with its pictures inside"


class Pictures(NamedTuple):
    """Pictures that need no class."""

    names: tuple[str, ...]
    images: StoredImages


def load_images(path: str, settings: ImageSettings = AS_THEY_ARE, *, skip_broken: bool = False) -> Dataset:
    """The pictures of a folder in [0, 1] with their classes, stored: see `StoredImages`.

    Args:
        settings: Height and width, and 1 or 3 channels; where left out, those that all pictures share, and 1 if all are
            grey, else 3.
        skip_broken: Leave out files that cannot be read instead of refusing them.
    """
    folder = existing_folder(path)
    notes: list[str] = []  # told when all is well: beside an error they would be in its way
    found = {split: _classes(place, notes) for split, place in _split_folders(folder).items()}
    trained = found["train"]
    if not trained:
        raise UserError(f"expected {_LAYOUT} in {quoted(path)}, got no folder with pictures: {_advice(folder)}")
    for split, classes in found.items():
        if strange := sorted(set(classes) - set(trained)):
            raise UserError(
                f"expected the classes of train/ in {split}/ of {quoted(path)}, got {format_value(strange[0])}, which "
                "train/ lacks: move or remove it"
            )
        if not classes:
            raise UserError(f"expected pictures in {split}/ of {quoted(path)}, got none: add some or remove the folder")
    names = tuple(sorted(trained))
    if len(names) > MAX_CLASSES:
        raise UserError(
            f"expected at most {MAX_CLASSES} classes, but {quoted(path)} has {len(names)} folders: give fewer"
        )
    files: list[ImageFile] = []
    targets: list[int] = []
    starts: dict[str, int] = {}
    for split in ("train", "validation", "test"):
        starts[split] = len(files)
        for number, name in enumerate(names):
            inside = found.get(split, {}).get(name, [])
            files += inside
            targets += [number] * len(inside)
    decoded = decode_images(folder, files, settings)
    whole = _whole(decoded, files, skip_broken, notes)
    for note in notes:
        current_listener().say(note)

    def start_of(split: str) -> int | None:
        return int((whole < starts[split]).sum()) if split in found else None

    return Dataset(
        f"images:{path}",
        StoredImages(decoded, whole),
        torch.tensor(targets)[whole],
        column_names(decoded.shape) if math.prod(decoded.shape) <= MAX_NAMED else (),
        names,
        ("class",),
        start_of("test"),
        start_of("validation"),
    )


def read_pictures(path: str, settings: ImageSettings) -> Pictures:
    """All pictures of a folder, in whatever folders inside it, or one picture, with their names."""
    found = Path(path).expanduser()
    if os.path.isdir(found):
        files = _files(found, found, Counter())
        if not files:
            raise UserError(
                f"expected pictures ({', '.join(SUFFIXES)}) in {quoted(path)}, got none: give another folder"
            )
    else:
        files = [_file(str(found), found.name)]
    folder = found if os.path.isdir(found) else found.parent
    # Removed as soon as it is mapped: the pixels last as long as they are used.
    with tempfile.TemporaryDirectory(prefix="quoin-images-") as place:
        decoded = decode_images(folder, files, settings, Path(place))
    whole = _whole(decoded, files, False, [])
    return Pictures(tuple(file.name for file in files), StoredImages(decoded, whole))


def _whole(decoded: DecodedImages, files: Sequence[ImageFile], skip_broken: bool, notes: list[str]) -> torch.Tensor:
    """The rows that could be decoded: all, or those that are left when the user agrees to skip the others."""
    rows = torch.arange(len(files))
    if not decoded.broken:
        return rows
    count = len(decoded.broken)
    if not skip_broken:
        row, reason = next(iter(decoded.broken.items()))
        others = f" and {count - 1:,} more" if count > 1 else ""
        raise UserError(
            f"expected pictures, but cannot read {quoted(files[row].name)} ({reason}){others}: repair or remove "
            f"{'it' if count == 1 else 'them'}, or leave {'it' if count == 1 else 'them'} out with --skip-broken"
        )
    named = [quoted(files[row].name) for row in list(decoded.broken)[:MAX_TOLD]]
    more = f" and {count - MAX_TOLD:,} more" if count > MAX_TOLD else ""
    notes.append(f"{count:,} broken {'picture' if count == 1 else 'pictures'} left out: {', '.join(named)}{more}")
    keep = torch.ones(len(files), dtype=torch.bool)
    keep[list(decoded.broken)] = False
    return rows[keep]


def _split_folders(folder: Path) -> dict[str, Path]:
    """The folders of the three splits, or `folder` itself as that of training."""
    inside = [entry.name for entry in _entries(folder) if _is_folder(entry)]
    if "train" not in inside or not any(_is_folder(entry) for entry in _entries(folder / "train")):
        return {"train": folder}
    strange = [name for name in inside if name not in SPLITS]
    splits = [SPLITS[name] for name in inside if name in SPLITS]
    if strange or len(set(splits)) < len(splits):
        got = ", ".join(inside)
        raise UserError(
            f"expected train/, validation/ and test/ with classes inside in {quoted(folder)}, got {format_value(got)}: "
            "move the others away"
        )
    return {SPLITS[name]: folder / name for name in inside}


def _classes(folder: Path, notes: list[str]) -> dict[str, list[ImageFile]]:
    """The pictures of each class folder that has any."""
    ignored: Counter[str] = Counter()
    found: dict[str, list[ImageFile]] = {}
    for entry in _entries(folder):
        if not _is_folder(entry):
            what = "outside the class folders" if entry.name.lower().endswith(SUFFIXES) else "with other endings"
            ignored[what] += 1
            continue
        if not entry.name.isprintable() or entry.name != entry.name.strip():  # an undecodable byte is not printable
            raise UserError(
                f"expected class folders with plain names in {quoted(folder)}, got {format_value(entry.name)}: rename "
                "it"
            )
        found[entry.name] = _files(Path(entry.path), folder, ignored)
    for name in [name for name, files in found.items() if not files]:
        del found[name]
        notes.append(f"no picture in {quoted(folder / name)}: it is no class")
    for what, count in ignored.items():
        notes.append(f"{count:,} {'file' if count == 1 else 'files'} {what} in {quoted(folder)} ignored")
    return found


def _files(folder: Path, root: Path, ignored: Counter[str]) -> list[ImageFile]:
    """The pictures in a folder and the folders inside it, by name."""
    found = []
    for path in _walk(str(folder)):
        if path.lower().endswith(SUFFIXES):
            found.append(_file(path, path[len(str(root)) :].lstrip(os.sep)))
        else:
            ignored["with other endings"] += 1
    return found


def _walk(folder: str) -> Iterator[str]:
    for entry in _entries(Path(folder)):
        if entry.is_dir(follow_symlinks=False):  # a link may lead round in circles
            yield from _walk(entry.path)
        elif _is_file(entry):
            yield entry.path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; hidden things are none of ours."""
    try:
        with os.scandir(folder) as entries:
            return sorted((each for each in entries if not each.name.startswith(".")), key=lambda each: each.name)
    except OSError as error:
        raise UserError(
            f"the folder {quoted(folder)} cannot be read ({error.strerror}): check its permissions"
        ) from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return os.path.isdir(entry.path)  # unlike the entry's own, never an error: a link may lead to itself


def _is_file(entry: os.DirEntry[str]) -> bool:
    return os.path.isfile(entry.path)


def _file(path: str, name: str) -> ImageFile:
    about = os.stat(path)
    return ImageFile(path, name, about.st_size, about.st_mtime_ns, os.access(path, os.R_OK))


def _advice(folder: Path) -> str:
    if any(entry.name.lower().endswith(SUFFIXES) for entry in _entries(folder) if _is_file(entry)):
        return "sort the pictures into folders named after their classes"
    return f"add pictures ({', '.join(SUFFIXES)})"
