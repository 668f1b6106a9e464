"""Files that survive a kill and keep to their folder: each write is whole or absent, and none goes through a link.

Four moves bring all that a run must not lose to the disk: write and sync a file, sync a folder or a file that grew,
rename, remove. The tests crash the process at every single one of them.

Each is made relative to the descriptor of a folder that is held open (`Directory`), and never follows a link: whatever
stands in a run folder, and whatever another process puts there meanwhile, no move reaches a file outside it.
"""

import errno
import hashlib
import mmap
import os
import re
import secrets
import shutil
import stat
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from quoin.errors import UserError

__all__ = ["Directory", "describe_os_error", "replace_file", "write_here"]

Content = bytes | Iterable[bytes | memoryview]  # whole, or piece by piece

_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}


class Directory:
    """A folder held by its descriptor; the names of its methods' arguments are those of entries directly in it.

    The path it was opened by may lead through links: the user gave it. From there on nothing does, and what is done is
    done in the folder that was opened, even when its path leads elsewhere by then. A move that the system refuses
    raises `OSError`, which `describe_os_error` puts into words; an entry of another kind than expected is a
    `UserError`.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle
        weakref.finalize(self, os.close, handle)

    @classmethod
    def at(cls, path: Path) -> "Directory":
        """The folder that `path` leads to now."""
        try:
            return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        except OSError as error:
            raise UserError(
                f"the folder {path} cannot be opened ({error.strerror}): check its name and permissions"
            ) from None

    def enter(self, name: str, *, make: bool = False) -> "Directory":
        """The folder `name`, made if it is missing and `make` says so."""
        if make and self.kind(name) is None:
            self.make(name)
            self.sync()
        self.expect(name, "a folder")
        try:
            return Directory(
                self.path / name, os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._handle)
            )
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise UserError(f"the folder {self.path / name} is missing: restore it, or train again") from None
            raise self._unreadable(error, name, "a folder") from None

    def kind(self, name: str) -> str | None:
        """What stands under the name, a link not followed; None for nothing."""
        try:
            return _KINDS.get(stat.S_IFMT(self.about(name).st_mode), "a pipe or a device")
        except FileNotFoundError:
            return None

    def about(self, name: str) -> os.stat_result:
        assert "/" not in name, "the name of an entry, not a path: a part of it could be a link"
        assert name not in ("", ".", ".."), "an entry of the folder, not one outside"
        return os.stat(name, dir_fd=self._handle, follow_symlinks=False)

    def expect(self, name: str, kind: str) -> None:
        """Refuse what is there and is of another kind."""
        if (found := self.kind(name)) not in (None, kind):
            link = ", and links in a run are not followed" if found == "a link" else ""
            raise UserError(
                f"expected {self.path / name} to be {kind}, got {found}{link}: put {kind} in its place, or remove it"
            )

    def names(self) -> list[str]:
        return sorted(os.listdir(self._handle))

    def same_as(self, other: os.stat_result) -> bool:
        return os.path.samestat(os.fstat(self._handle), other)

    # files

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of the plain file `name`. All else is an error, a pipe without waiting for its other end."""
        self.expect(name, "a file")
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=self._handle)
        if not stat.S_ISREG(os.fstat(handle).st_mode):  # put there since it was looked at
            os.close(handle)
            raise OSError(errno.EINVAL, "it is no plain file")
        return handle

    def read(self, name: str) -> bytes:
        """All of a file; `FileNotFoundError` is the caller's to report."""
        try:
            with open(self.open_file(name, os.O_RDONLY), "rb") as file:
                return file.read()
        except OSError as error:
            raise self._unreadable(error, name, "a file") from None

    def map(self, name: str, digest: str, size: int) -> mmap.mmap | bytearray:
        """A file whose SHA-256 is `digest`, mapped rather than read: it holds no memory that the system could not take
        back. What is written into the map is this process's own and never reaches the file, which may be removed. (Cut
        short in place, which nothing of ours does to a file, it would end the process with SIGBUS.) Another file is a
        `ValueError` that says in what it differs; `FileNotFoundError` is the caller's to report."""
        try:
            with open(self.open_file(name, os.O_RDONLY), "rb") as file:
                if (found := os.fstat(file.fileno()).st_size) != size:
                    raise ValueError(f"{name} has {found} bytes, expected {size}")
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    raise ValueError(f"{name} is not as it was written (SHA-256 differs)")
                return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) if size else bytearray()
        except OSError as error:
            raise self._unreadable(error, name, "a file") from None

    def write(self, name: str, content: Content) -> None:
        """Write a file that was not there before, and wait until the disk has it."""
        with open(self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            for piece in (content,) if isinstance(content, bytes) else content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())

    def set_aside(self, pieces: Iterable[bytes | memoryview]) -> mmap.mmap:
        """Bytes that only this process needs, on the disk instead of in its memory: a mapped file without a name, which
        is gone when the map is, or the process."""
        draft = draft_name("aside")
        with open(self.open_file(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b") as file:
            os.unlink(draft, dir_fd=self._handle)
            for piece in pieces:
                file.write(piece)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def append(self, name: str, content: bytes) -> None:
        """Add to the end of a file, without waiting for the disk."""
        handle = self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if os.fstat(handle).st_nlink == 1:
            with open(handle, "ab") as file:
                file.write(content)
        else:  # a hard link, such as a backup's: what has another name elsewhere is not ours to change
            os.close(handle)
            self.replace(name, self.read(name) + content)

    def replace(self, name: str, content: Content) -> None:
        """Put `content` in place of whatever `name` held, a link itself and not what it leads to; a reader sees the old
        file or the new."""
        for debris in self.drafts_of(re.escape(name)):
            with suppress(OSError):
                os.unlink(debris, dir_fd=self._handle)
        draft = draft_name(name)
        try:
            self.write(draft, content)
            self.rename(draft, name)
        except OSError:
            with suppress(OSError):
                os.unlink(draft, dir_fd=self._handle)
            raise
        self.sync()

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._handle)

    # folders

    def make(self, name: str) -> None:
        os.mkdir(name, dir_fd=self._handle)

    def remove_folder(self, name: str) -> None:
        """Remove a folder so that a kill half-way leaves a dot-name that nobody reads, not a folder with files
        missing."""
        self.expect(name, "a folder")
        doomed = draft_name(name, "doomed")
        self.rename(name, doomed)
        self.clear(doomed)

    def clear(self, name: str) -> None:
        """Remove a folder with all that is in it, as far as that can be done; a link in its place stays, one inside it
        goes unfollowed."""
        shutil.rmtree(name, ignore_errors=True, dir_fd=self._handle)

    def drafts_of(self, names: str, kinds: str = "draft") -> list[str]:
        """What `draft_name` called for names of the pattern `names`, and a kill left."""
        return [name for name in self.names() if re.fullmatch(rf"\.(?:{names})\.[0-9a-f]{{16}}\.(?:{kinds})", name)]

    # both

    def rename(self, source: str, target: str) -> None:
        """Give `source` its final name; the file system does this in one piece, and links are renamed or replaced
        themselves."""
        os.rename(source, target, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def sync(self, name: str | None = None) -> None:
        """Wait until the disk has the folder's names, or all that was appended to one of its files."""
        if name is None:
            os.fsync(self._handle)
            return
        handle = self.open_file(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _unreadable(self, error: OSError, name: str, kind: str) -> Exception:
        if isinstance(error, FileNotFoundError):
            return error
        self.expect(name, kind)  # changed since it was looked at: then this says into what
        return UserError(
            f"{self.path / name} cannot be read ({error.strerror or error}): check its permissions, or restore it"
        )


def draft_name(name: str, kind: str = "draft") -> str:
    """A name for what is not finished, which nobody can have put something under, and which is known as ours
    afterwards."""
    return f".{name}.{secrets.token_hex(8)}.{kind}"


def replace_file(path: Path, content: Content) -> None:
    """Put `content` in place of whatever `path` held; a reader sees the old file or the new one, never a mixture."""
    try:
        Directory.at(path.parent).replace(path.name, content)
    except OSError as error:
        raise describe_os_error(error, path) from error


def write_here(name: str, content: bytes) -> None:
    """Write a command's output of a name that it chose itself into the working folder; no link of that name is
    followed."""
    here = Directory.at(Path())
    here.expect(name, "a file")
    try:
        here.replace(name, content)
    except OSError as error:
        raise describe_os_error(error, Path(name), elsewhere="choose another place with --out") from error


RUNS = "choose a folder of your own with --runs FOLDER"


def describe_os_error(error: OSError, path: Path, *, then: str = "try again", elsewhere: str = RUNS) -> UserError:
    """The operating system's refusal to write in one line that says what to do: on a full disk free some space, `then`
    ..."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UserError(f"the disk is full: {path} could not be written; free some space, then {then}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"{path} cannot be written ({error.strerror}): {elsewhere}")
    return UserError(f"{path} could not be written: {error.strerror or error}")
