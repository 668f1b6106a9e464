"""Fetching a data set: the one place that opens a connection, and only when it is called.

Each file grows under another name, so that what came before a break is kept and the next attempt asks for the rest; it
gets its own name when its hash is the pinned one, and the folder its own when all of it is there. pooch
(`pip install 'quoin[fetch]'`) makes the requests and checks the hashes.
"""

import fcntl
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from quoin.callbacks import ProgressCallback
from quoin.data.fetched import RemoteDataset, RemoteFile, fetched_folder, find_remote, is_fetched
from quoin.data.files import quoted
from quoin.errors import UserError, format_value

__all__ = ["fetch"]

PIECE = 1 << 13  # bytes; of a connection that breaks, at most one piece is lost
TIMEOUT = 30.0  # seconds without a byte after which a connection counts as broken
MOST_BREAKS = 20  # in one file; after each, the rest is asked for at once as long as something came before it


def fetch(
    name: str, *, url: str | None = None, force: bool = False, on_progress: ProgressCallback | None = None
) -> Path:
    """Bring a data set of `REMOTE_DATASETS` into the cache and give back its folder; nothing is fetched if it is there.

    Args:
        url: Folder of a mirror with the same files, instead of the published one.
        force: Fetch it again even if it is there.
        on_progress: Called with how many bytes have come, of how many.
    """
    remote, folder = find_remote(name), fetched_folder(name)
    if url is not None:
        _check_url(url)
    if is_fetched(name) and not force:
        return folder
    library = _library()
    growing = folder.with_name(f"{name}.part")
    with _explain_cache(growing):
        growing.mkdir(parents=True, exist_ok=True)
        with _locked(growing, name):
            before = 0
            for file in remote.files:
                incoming = _Incoming(library, growing, file, name, before, remote.num_bytes, on_progress)
                incoming.fetch(f"{(url or remote.url).rstrip('/')}/{file.name}")
                before += file.num_bytes
            if remote.members:
                _unpack(growing / remote.files[0].name, remote, growing)
            for path in growing.iterdir():
                if path.name not in remote.contents:  # an archive, or what a killed process left
                    path.unlink()
            if folder.exists():
                shutil.rmtree(folder)
            growing.rename(folder)
    return folder


class _Incoming:
    """One file on its way. pooch calls it to download, and the request writes to it."""

    def __init__(
        self,
        library: ModuleType,
        folder: Path,
        file: RemoteFile,
        name: str,
        before: int,
        total: int,
        on_progress: ProgressCallback | None,
    ) -> None:
        self._library, self._folder, self._file, self._name = library, folder, file, name
        self._before, self._total, self._on_progress = before, total, on_progress
        self._path = folder / f"{file.name}.incomplete"
        self._num_bytes = 0  # that are there
        self._output = -1  # a descriptor, while a request is under way

    def fetch(self, url: str) -> None:
        """Leave the file in the folder, whole and verified."""
        file = self._file
        self._library.get_logger().setLevel("ERROR")
        try:
            self._library.retrieve(url, f"sha256:{file.sha256}", file.name, self._folder, downloader=self)
        except UserError:
            raise
        except ValueError:  # pooch's word for another hash; it has removed the file
            raise self._altered("its SHA-256 is another") from None
        self._report(file.num_bytes)

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """What pooch asks of a downloader: the content of `url` in `output_file`."""
        self._num_bytes = self._path.stat().st_size if self._path.exists() else 0
        if self._num_bytes > self._file.num_bytes:
            self._restart()
        for _ in range(MOST_BREAKS):
            if self._num_bytes == self._file.num_bytes:
                os.replace(self._path, output_file)
                return
            begun_at = self._num_bytes
            try:
                self._request(url)
            except OSError as error:  # those of `requests` are such
                if self._num_bytes <= begun_at:
                    raise self._broken(url, error) from None
            else:
                if self._num_bytes < self._file.num_bytes:
                    found = self._num_bytes
                    self._path.unlink()
                    raise self._altered(f"it has {found:,} bytes instead of {self._file.num_bytes:,}")
        raise self._broken(url, None)

    def _request(self, url: str) -> None:
        """Ask for what is missing, and append it."""
        # As it is, not compressed on the way: otherwise a range would count other bytes.
        headers = {"Accept-Encoding": "identity"}
        if self._num_bytes:
            headers["Range"] = f"bytes={self._num_bytes}-"
        download = self._library.HTTPDownloader(
            chunk_size=PIECE, timeout=TIMEOUT, headers=headers, hooks={"response": self._on_response}
        )
        try:
            self._output = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        try:
            download(url, self, None)
        finally:
            os.close(self._output)

    def _on_response(self, response: Any, **settings: Any) -> None:
        """Called by `requests` before the content, with settings of its own: a server that does not know ranges
        sends the file from its beginning."""
        if response.status_code == 200:
            self._restart()
        elif response.status_code == 206:
            told = response.headers.get("Content-Range", "")
            if not told.startswith(f"bytes {self._num_bytes}-"):
                self._restart()
                raise UserError(
                    f"expected the rest of {self._file.name}, but the server sent {format_value(told)}: run "
                    f"`quoin fetch {self._name}` again, or choose another server with --from"
                )

    def _restart(self) -> None:
        if self._path.exists():
            os.truncate(self._path, 0)
        self._num_bytes = 0

    def write(self, content: bytes) -> None:
        """Append what came; a file that does not end is not kept."""
        if self._num_bytes + len(content) > self._file.num_bytes:
            self._path.unlink(missing_ok=True)
            raise self._altered(f"it has more than {self._file.num_bytes:,} bytes")
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except OSError as error:
            raise _unwritable(self._path, error) from None
        self._num_bytes += len(content)
        self._report(self._num_bytes)

    def flush(self) -> None:
        """Each piece is written at once."""

    def _report(self, num_bytes: int) -> None:
        if self._on_progress is not None:
            self._on_progress(self._before + num_bytes, self._total)

    def _altered(self, how: str) -> UserError:
        return UserError(
            f"{self._file.name} is not the file that {self._name} was published with: {how}; nothing of it was kept, "
            "choose another server with --from"
        )

    def _broken(self, url: str, error: OSError | None) -> UserError:
        response = getattr(error, "response", None)
        if response is not None:
            return UserError(
                f"the server answered {response.status_code} {response.reason} for {format_value(url, 120)}: try "
                "later, or choose another server with --from"
            )
        host = urlsplit(url).netloc
        if not self._num_bytes:
            return UserError(
                f"no connection to {format_value(host)} ({type(error).__name__}): check the network, or choose another "
                "server with --from"
            )
        got = f"{self._num_bytes / 1e6:.1f} of {self._file.num_bytes / 1e6:.1f} MB of {self._file.name}"
        return UserError(
            f"the connection to {format_value(host)} broke off after {got}: run `quoin fetch {self._name}` again, it "
            "goes on from there"
        )


def _unpack(archive: Path, remote: RemoteDataset, folder: Path) -> None:
    """The members that are expected, each a plain file of its size, under their own names; the archive's other names
    lead nowhere."""
    wanted = dict(remote.members)
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            num_bytes = wanted.pop(member.name, None)
            if num_bytes is None:
                continue
            content = tar.extractfile(member) if member.isreg() and member.size == num_bytes else None
            if content is None:
                raise UserError(f"expected a file of {num_bytes:,} bytes as {member.name} in {quoted(archive)}")
            with content, open(folder / Path(member.name).name, "wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
    if wanted:
        raise UserError(f"expected {next(iter(wanted))} in {quoted(archive)}, but it is not there")


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """One process fetches at a time: two would write into one file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is fetching {name}: wait until it is done") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _explain_cache(path: Path) -> Iterator[None]:
    """A cache that cannot be written, in one line."""
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{quoted(path)} cannot be written ({error.strerror or error}): free some space, or set QUOIN_CACHE to another "
        "folder"
    )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fits = False
    if not fits:
        raise UserError(
            f"--from expects the address of a folder, got {format_value(url)}: write e.g. https://example.org/mnist"
        )


def _library() -> ModuleType:
    try:
        import pooch
    except ImportError:
        raise UserError(
            "fetching needs the library `pooch`, which is not installed: pip install 'quoin[fetch]'"
        ) from None
    return pooch
