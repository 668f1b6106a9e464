"""Where a run's files are, seen from here: its options name them as they were seen from where it was started."""

import dataclasses
import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.data import check_source_name

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["options_here", "options_seen_from_here"]

_SOURCES = ("data", "test_data")  # options that name a source, FORM:PATH
_PATHS = ("classifier", "pretrained")  # and those that are a path


def options_here(run: "Run") -> Any:
    """The options of a run with paths that lead to its files from the present folder.

    A relative path is looked for from the folder where the run was started, which config.json remembers as seen from
    the run itself: a project may be moved as a whole, and commands be given anywhere. What is not there is left as it
    is. Where the user says where the data are now, that counts; the data's fingerprint guards either.
    """
    options = dataclasses.asdict(run.options)
    changed = options_seen_from_here(options, run.path / run.folder.config["folder"])
    if run.data_now is not None:
        check_source_name(run.data_now)
        changed["data"] = run.data_now
    return dataclasses.replace(run.options, **changed)


def options_seen_from_here(options: Mapping[str, Any], start: Path) -> dict[str, str]:
    """Those of a run's options that name files, as the present folder sees them.

    Args:
        start: The folder where the run was started.
    """
    changed, start_path = {}, os.path.normpath(start)
    for name in (*_SOURCES, *_PATHS):
        if given := options.get(name, ""):
            form, colon, path = given.partition(":") if name in _SOURCES else ("", "", given)
            changed[name] = f"{form}{colon}{_seen_from_here(path, start_path)}" if path else given
    return changed


def _seen_from_here(path: str, start: str) -> str:
    place = os.path.join(start, path)
    if os.path.isabs(path) or path.startswith("~") or "\0" in path or Path(start) == Path.cwd():
        return path
    return os.path.relpath(place) if os.path.exists(place) or glob.glob(place) else path
