"""Where an export goes: a new folder, or with --force one that an export wrote and that holds nothing else.

A folder with a config.json alone may be a run, or a model that was downloaded: neither is ever written over.
"""

import os
from pathlib import Path

from quoin.errors import UserError, format_value

__all__ = ["check_out", "default_out"]

MARK = "\n- quoin\n"  # among the tags of the model cards that we write
SUFFIXES = (".data", ".json", ".md", ".onnx", ".pt2", ".py", ".pyc", ".safetensors")


def default_out(run_path: Path, to: str) -> Path:
    """Where an export goes unless told: beside the working directory's files, by the run's name."""
    return Path(f"{run_path.resolve().name}-{to}")


def check_out(out: Path, *, force: bool) -> None:
    """Refuse a place that must not be written, before the work."""
    try:
        if os.path.lexists(out) and not force:
            raise UserError(
                f"{format_value(str(out))} is there already: choose another with -o, or write over it with --force"
            )
        if os.path.lexists(out) and not (out.is_dir() and not out.is_symlink()):
            raise UserError(f"expected a folder to write over, got {format_value(str(out))}, which is none: move it")
        if os.path.lexists(out) and (others := _others(out)):
            raise UserError(
                f"{format_value(str(out))} holds other files than an export's, such as {format_value(others[0])}: "
                "choose another place with -o"
            )
        os.stat(f"{out.absolute().parent}/")
    except OSError as error:
        raise UserError(
            f"{format_value(str(out))} cannot be written ({error.strerror}): choose another place with -o"
        ) from None


def _others(folder: Path) -> list[str]:
    """The files of a folder that no export wrote: all of them, unless it is the folder of an export."""
    files = sorted(
        str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_symlink() or not each.is_dir()
    )
    if not _is_export(folder):
        return files
    return [name for name in files if not name.endswith(SUFFIXES) or (folder / name).is_symlink()]


def _is_export(folder: Path) -> bool:
    if (folder / "quoin.json").is_file():
        return True
    card = folder / "README.md"
    if not card.is_file():
        return False
    with open(card, encoding="utf-8", errors="replace") as file:
        return MARK in file.read(1000)
