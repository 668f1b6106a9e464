"""Files that survive a kill: each write is whole or absent.

Three moves bring all that a run must not lose to the disk: write and sync a file, sync a folder or a file that grew,
rename. The tests crash the process at every single one of them.
"""

import errno
import os
import shutil
from pathlib import Path

from quoin.errors import Mistake

__all__ = ["remove_folder", "rename", "replace_file", "sync", "told", "write_synced"]


def write_synced(path: Path, content: bytes) -> None:
    """Write `content` to `path` and wait until the disk has it."""
    try:
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise told(error, path) from error


def sync(path: Path) -> None:
    """Wait until the disk has a folder's names, or all that was appended to a file."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise told(error, path) from error


def rename(source: Path, target: Path) -> None:
    """Give `source` its final name; the file system does this in one piece."""
    try:
        os.rename(source, target)
    except OSError as error:
        raise told(error, target) from error


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in place of whatever `path` held; a reader sees the old file or the new one, never a mixture."""
    draft = path.with_name(f".{path.name}.draft")
    write_synced(draft, content)
    rename(draft, path)
    sync(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a folder so that a kill half-way leaves a dot-name that nobody reads, not a folder with files missing."""
    doomed = path.with_name(f".{path.name}.doomed")
    shutil.rmtree(doomed, ignore_errors=True)
    rename(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def told(error: OSError, path: Path) -> Mistake:
    """The operating system's refusal in one line that says what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Mistake(
            f"the disk is full: {path} could not be written; free some space, then `quoin resume` the run: "
            "its last checkpoint is whole"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Mistake(f"{path} cannot be written ({error.strerror}): choose a folder of your own with --runs FOLDER")
    return Mistake(f"{path} could not be written: {error.strerror or error}")
