"""Which tests are tried on a mutant: those that execute its block, found by running each test file once with marks in
the code. Test files are recorded when a mutant first asks for them, those that speak of the changed module first."""

import ast
import functools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation.blocks import number_blocks
from mutation.forks import run_tests
from mutation.plugin import OUT_OF_TIME, Clock, Recorder
from mutation.project import Mutant, Project, digest

RECORDED = (0, 1, 2, 5, OUT_OF_TIME)  # also with failures, and where a package it needs is not installed
MOST_USERS = 5
EVERY = -1  # all bits: any block of a file

Wanted = dict[str, int]  # for each source file the blocks, as bits


@dataclass(frozen=True)
class Test:
    name: str
    file: str
    seconds: float


class Map:
    """Which test executes which block, kept in a folder, one file for each file of tests."""

    def __init__(self, project: Project, folder: Path, seconds: float, scratch: Path) -> None:
        self.project, self.folder = project, folder
        self.scratch = scratch  # of this process alone
        self.seconds = seconds  # for one file of tests; what is recorded by then is kept
        (folder / "code").mkdir(parents=True, exist_ok=True)
        self._records: dict[str, dict[str, Any]] = {}

    def _path(self, file: str) -> Path:
        return self.folder / f"{file.replace('/', '.')}.json"

    def record(self, file: str) -> dict[str, Any] | None:
        """What was recorded of a file of tests as it is now."""
        if file not in self._records and self._path(file).exists():
            self._records[file] = json.loads(self._path(file).read_text())
        found = self._records.get(file)
        return found if found and found["digest"] == digest((self.project.copy / file).read_text()) else None

    def make(self, file: str) -> None:
        """Run a file of tests and record it."""
        offsets, size = {}, 0
        for name in self.project.files():
            offsets[name] = size
            size += self.project.read(name).count("\n") + 1  # no module has more blocks than lines
        hits, out = self.scratch / "hits", self.scratch / "recording"
        hits.write_bytes(bytes(size))
        out.write_text("")

        def plugins() -> list[Any]:
            import builtins

            marks = getattr(builtins, "__quoin_hits__")  # noqa: B009  # the hook has put it there
            return [Recorder(marks, offsets, out), Clock(self.seconds)]

        asked = {"mode": "map", "hits": str(hits), "offsets": offsets, "code": str(self.folder / "code")}
        code = run_tests(self.project, asked, [file], plugins, 120 + 2 * self.seconds)
        if code is not None and code not in RECORDED and code >= 0:
            raise RuntimeError(
                f"pytest ended with {code} where {file} was recorded; see QUOIN_MUTATION_LOG in forks.py"
            )
        tests = [json.loads(line) for line in out.read_text().splitlines()]
        touched = sorted({name for test in tests for name in (*test["setup"], *test["blocks"])})
        record = {
            "digest": digest((self.project.copy / file).read_text()),
            "code": code,
            "sources": {name: digest(self.project.read(name)) for name in touched},
            "tests": tests,
        }
        part = self.scratch / "record.part"
        part.write_text(json.dumps(record))
        part.replace(self._path(file))
        self._records[file] = record

    def tests(self, file: str, wanted: Wanted) -> list[Test]:
        """The tests of a file that execute a wanted block and pass; what a fixture executes counts for all of them."""
        record = self.record(file)
        if record is None:
            return []

        def hit(blocks: dict[str, str]) -> bool:
            for name in blocks.keys() & wanted.keys():
                same = record["sources"][name] == digest(self.project.read(name))
                if int(blocks[name], 16) & (wanted[name] if same else EVERY):
                    return True
            return False

        shared = any(hit(each["setup"]) for each in record["tests"])
        return [
            Test(each["test"], file, each["seconds"])
            for each in record["tests"]
            if each["passed"] and (shared or hit(each["blocks"]))
        ]


def wanted_blocks(project: Project, mutant: Mutant) -> Wanted:
    """The blocks whose tests could see the mutant: its own; outside functions those of its file and, anywhere, those of
    the functions that speak of the name it defines. A function that remembers its results is asked once and seen by
    those who got the result, so it counts as one outside."""
    tree = ast.parse(project.read(mutant.file))
    blocks = number_blocks(tree)
    function = _function(tree, mutant.function)
    remembers = function is not None and any("cache" in ast.unparse(each) for each in function.decorator_list)
    if mutant.block is not None and not remembers:
        return {mutant.file: 1 << mutant.block}
    if function is not None and mutant.block is None:
        return {
            mutant.file: _bits(
                blocks[each] for each in ast.walk(function) if isinstance(each, ast.stmt) and each in blocks
            )
            or EVERY
        }
    name = function.name if function is not None else _bound_name(mutant.before) or mutant.function.split(".")[0]
    wanted = {mutant.file: EVERY}
    for file in project.files():
        if name and file != mutant.file and re.search(rf"\b{re.escape(name)}\b", project.read(file)):
            wanted[file] = _speaking(project.read(file), name)
    return {file: bits for file, bits in wanted.items() if bits}


def _speaking(source: str, name: str) -> int:
    tree = ast.parse(source)
    found = []
    for statement, block in number_blocks(tree).items():
        nodes = [node for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)
                 for node in ast.walk(child)]  # fmt: skip
        if any(name in (getattr(node, "id", None), getattr(node, "attr", None)) for node in nodes):
            found.append(block)
    return _bits(found)


def _bits(numbers: Any) -> int:
    return functools.reduce(lambda bits, number: bits | 1 << number, numbers, 0)


def _function(tree: ast.Module, qualified: str) -> Any:
    """The function of that qualified name, or None for a class or the module."""
    body, found = tree.body, None
    for name in qualified.split(".") if qualified else ():
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        named = [each for node in body for each in ast.walk(node) if isinstance(each, kinds) and each.name == name]
        if not named:
            return None
        found, body = named[0], named[0].body
    return None if isinstance(found, ast.ClassDef) else found


def _bound_name(statement: str) -> str:
    found = re.match(r"(\w+)\s*(?::[^=]*)?=", statement)
    return found[1] if found else ""


class Nearness:
    """Files of tests in the order in which they speak of a module: rare names that it defines weigh more."""

    def __init__(self, project: Project) -> None:
        self.project, self.files = project, project.test_files()
        self.words = {file: self._words((project.copy / file).read_text()) for file in self.files}

    @staticmethod
    def _words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text)) | set(re.findall(r"[\w-]+", text))

    @functools.lru_cache(maxsize=4096)  # noqa: B019  # one for the whole program
    def weight(self, word: str) -> float:
        held = sum(word in words for words in self.words.values())
        return math.log(len(self.files) / held) if held else 0.0

    @functools.lru_cache(maxsize=4096)  # noqa: B019  # one for the whole program
    def users(self, file: str) -> frozenset[str]:
        """The modules that use this one, where they are few: a part that no test names is tested through them."""
        word = re.compile(rf"\b{re.escape(Path(file).stem)}\b")
        files = [each for each in self.project.files() if each != file and word.search(self.project.read(each))]
        found = {Path(each).stem for each in files}
        return frozenset(found if len(found) <= MOST_USERS else ())

    def ranked(self, mutant: Mutant) -> list[str]:
        """All test files, the nearest first."""
        tree = ast.parse(self.project.read(mutant.file))
        names = {each.name for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
        stem = Path(mutant.file).stem
        names = {each for each in names if len(each) > 3 and not each.startswith("__")} | {stem, stem.replace("_", "-")}
        own = dict.fromkeys(mutant.function.split("."), 3.0)
        names |= {each for each in self._words(mutant.before) if len(each) > 3}  # flags, files, the names it uses
        names |= set(Path(mutant.file).parent.parts)
        folders = Path(mutant.file).parent.parts
        names |= self.users(mutant.file)
        named = {f"tests/test_{name}.py" for name in (stem, *folders[-1:])}
        starts = tuple(f"tests/test_{folder.removesuffix('s')}_" for folder in folders)
        named |= {each for each in self.files if starts and each.startswith(starts)}

        def score(file: str) -> tuple[bool, bool, float]:
            total = sum(self.weight(name) * own.get(name, 1.0) for name in names & self.words[file])
            return (
                file.endswith(f"src/{self.project.package}/{mutant.file}"),
                # claims and recipes are found by their folder, so that no word of theirs is in the test; a folder may
                # have many such files, of which those that speak of the module come first
                file in named,
                total / (2.0 if file.startswith("src/") else 1.0),  # examples touch much and check little of it
            )

        return sorted(self.files, key=score, reverse=True)


Progress = Callable[[str], None]
