"""The run folder of several processes: the main one has it, and tells the others what they must know of it.

Only the main process reads and writes; another may run on a machine that has no such folder. How a checkpoint comes
back to all is in receiving.py.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quoin.errors import UserError
from quoin.train.checkpoint import give_shards
from quoin.train.folder import RunFolder
from quoin.train.processes import from_main, is_main, num_processes

__all__ = ["FolderOfMain", "shared_folder"]


class FolderOfMain(RunFolder):
    """The folder of a run as another process than the main one knows it: what it was told, and nothing is written."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.path = Path(told["path"])
        self.checkpoints = self.path / "checkpoints"
        self.config, self.environment, self.result = told["config"], told["environment"], told["result"]
        self._names, self._code = set(told["names"]), told["code"]

    def has(self, name: str) -> bool:
        return name in self._names

    def read_code(self, name: str) -> bytes:
        if name not in self._code:
            raise UserError(f"{self.path} has lost its copy code/{name}: name your file with --code")
        return base64.b64decode(self._code[name])

    def save_code(self, name: str, content: bytes) -> None:
        pass

    def append_metrics(self, line: dict[str, Any]) -> None:
        pass

    def truncate_metrics(self, num_lines: int) -> None:
        pass

    def save_checkpoint(self, state: Any, step: int) -> None:
        give_shards(state)

    def set_aside(self, state: Any) -> Any:
        """None: the main process has the copy."""
        give_shards(state)

    def delete_after(self, step: int) -> None:
        pass

    def save_result(self, result: Any) -> None:
        self.result = result

    def delete_result(self) -> None:
        self.result = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield


def shared_folder(open_folder: Callable[[], RunFolder]) -> RunFolder:
    """The folder that `open_folder` makes or opens in the main process, which alone calls it, in every process."""
    if num_processes() == 1:
        return open_folder()
    if not is_main():
        return FolderOfMain(from_main(None))
    folder = open_folder()
    copies = [each["copy"] for each in folder.config.get("code", [])]
    from_main(
        {
            "path": str(folder.path.absolute()),
            "config": dict(folder.config),
            "environment": dict(folder.environment),
            "result": folder.result,
            "names": folder.directory.names(),
            "code": {name: base64.b64encode(folder.read_code(name)).decode() for name in copies if folder.has("code")},
        }
    )
    return folder
