"""RUN/log: the files that loggers write for other tools. As in all of a run folder, no link is followed."""

from collections.abc import Iterator
from contextlib import contextmanager

from quoin.train.durable import Directory, describe_os_error
from quoin.train.folder import RunFolder

__all__ = ["LogFolder"]


class LogFolder:
    """The folder `log` of a run, made if it is missing."""

    def __init__(self, folder: RunFolder) -> None:
        self.path = folder.path / "log"
        with self._explained("."):
            self._directory: Directory = folder.directory.enter("log", make=True)

    def names(self) -> list[str]:
        return self._directory.names()

    def read(self, name: str) -> bytes:
        """All of a file; nothing, where there is none."""
        return self._directory.read(name) if self._directory.kind(name) else b""

    def append(self, name: str, content: bytes) -> None:
        with self._explained(name):
            self._directory.append(name, content)

    def replace(self, name: str, content: bytes) -> None:
        """A file of this content, or none where there is no content."""
        with self._explained(name):
            self._directory.expect(name, "a file")
            if content:
                self._directory.replace(name, content)
            else:
                self._directory.remove(name)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise describe_os_error(error, self.path / name, then="`quoin resume` the run") from error
