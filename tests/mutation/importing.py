"""How a mutant, or the marks that record what is executed, get into a process: at import, in memory.

No file is changed, so a test that reads the source sees nothing, and a mutant counts as caught only for what it does.
Every process that a test starts does the same (site/sitecustomize.py), told by an environment variable.
"""

import ast
import builtins
import hashlib
import importlib.machinery
import json
import marshal
import mmap
import os
import sys
from pathlib import Path
from typing import Any

from mutation.blocks import HITS, instrument
from mutation.operators import changes

VARIABLE = "QUOIN_MUTATION"
TOOL_FAILED = 98


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a changed syntax tree; nothing of it is kept where other processes would find it."""

    def __init__(self, name: str, path: str, asked: dict[str, Any], relative: str) -> None:
        super().__init__(name, path)
        self.asked, self.relative = asked, relative

    def get_code(self, fullname: str) -> Any:
        source = self.get_data(self.path)
        if self.asked["mode"] == "mutant":
            return self.mutant(source)
        offset = self.asked["offsets"][self.relative]
        kept = Path(self.asked["code"], hashlib.sha256(source + f"{self.path} {offset}".encode()).hexdigest())
        if kept.exists():
            return marshal.loads(kept.read_bytes())
        code = compile(instrument(ast.parse(source), offset), self.path, "exec", dont_inherit=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(marshal.dumps(code))
        part.replace(kept)
        return code

    def mutant(self, source: bytes) -> Any:
        """A failure in here is the tool's own and must not pass for a test that fails."""
        try:
            tree = ast.parse(source)
            changes(tree)[self.asked["index"]].make()
            return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)
        except Exception as error:
            print(f"mutant {self.asked['index']} of {self.relative} could not be made: {error}", file=sys.stderr)
            os._exit(TOOL_FAILED)


class _Finder:
    """Before all others on `sys.meta_path`, for the modules that are changed."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.source, self.package = Path(asked["source"]), asked["package"]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader) or spec.origin is None:
            return None
        try:
            relative = Path(spec.origin).relative_to(self.source).as_posix()
        except ValueError:
            return None
        wanted = relative == self.asked["file"] if self.asked["mode"] == "mutant" else relative in self.asked["offsets"]
        if not wanted:
            return None
        spec.loader = _Loader(name, spec.origin, self.asked, relative)
        return spec


def install(told: str | None = None) -> None:
    """Do in this process what the environment variable asks for; nothing without it."""
    told = told or os.environ.get(VARIABLE)
    if not told:
        return
    asked = json.loads(Path(told).read_text())
    if asked["mode"] == "map":
        with open(asked["hits"], "r+b") as file:
            setattr(builtins, HITS, mmap.mmap(file.fileno(), 0))
    sys.meta_path.insert(0, _Finder(asked))  # type: ignore[arg-type]


def go_first() -> None:
    """Before pytest's own hook, which takes a module whose examples it was asked to run."""
    ours = [each for each in sys.meta_path if isinstance(each, _Finder)]
    sys.meta_path[:] = [*ours, *(each for each in sys.meta_path if not isinstance(each, _Finder))]
