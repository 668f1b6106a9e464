"""The project whose tests are tried: a copy of its tree, its code lines, its test files."""

import ast
import functools
import hashlib
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation.blocks import number_blocks
from mutation.operators import Change, changes

EXCLUDED = ("bench/", "layers/kernels/")  # timings; code for a compiler that tests without a GPU do not have

LONGEST, CONTEXT = 160, 50  # characters of a line that are shown, and of what stands around a change in a longer one


@dataclass(frozen=True)
class Mutant:
    """One fault: the `index`-th change of `file`, and in words what it does."""

    file: str
    index: int
    line: int
    kind: str
    function: str
    before: str
    after: str
    block: int | None  # of the function it stands in; None outside functions
    digest: str  # of the file's source

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a judgement names: it holds wherever the line moves."""
        return self.file, self.function, self.before, self.after

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function or 'module'}: {self.before} -> {self.after} ({self.kind})"


@dataclass(frozen=True)
class Project:
    """`root` holds src/`package` and tests; `copy` is the tree in which tests are run."""

    root: Path
    package: str
    copy: Path

    @property
    def source(self) -> Path:
        return self.copy / "src" / self.package

    def make_copy(self) -> None:
        """Bring the copy to the state of the tree: what git knows or would take, and nothing else."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
        files = {name for name in listed if name and (self.root / name).is_file()}
        for path in [*self.copy.rglob("*")] if self.copy.exists() else []:
            inside = path.relative_to(self.copy).as_posix()
            if path.is_file() and inside not in files and not inside.startswith(".venv"):
                path.unlink()
        for name in sorted(files):
            there, here = self.copy / name, self.root / name
            if not (there.exists() and there.read_bytes() == here.read_bytes()):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here, there)
        if (self.root / ".venv").exists() and not (self.copy / ".venv").exists():
            (self.copy / ".venv").symlink_to((self.root / ".venv").resolve())

    def files(self) -> list[str]:
        """The modules that are changed, by their paths inside the package."""
        found = sorted(path.relative_to(self.source).as_posix() for path in self.source.rglob("*.py"))
        return [name for name in found if not name.startswith(EXCLUDED)]

    def test_files(self) -> list[str]:
        """Files of tests, and modules with examples in their docstrings."""
        tests = sorted(path for path in (self.copy / "tests").rglob("test_*.py"))
        examples = sorted(path for path in self.source.rglob("*.py") if ">>>" in path.read_text())
        names = [path.relative_to(self.copy).as_posix() for path in (*tests, *examples)]
        return [name for name in names if "/bench/" not in name and "/kernels/" not in name]

    def read(self, file: str) -> str:
        return (self.source / file).read_text()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_lines(project: Project) -> list[tuple[str, int]]:
    """Every line of the code in which something can be changed."""
    return [(file, line) for file in project.files() for line in sorted({c.line for c in _changes(project, file)})]


def drawn(project: Project, seed: int) -> Iterator[Mutant]:
    """Mutants without end, uniform over lines, none twice; the first of them are the same however many are taken.

    Lines are in the order of a hash of the seed and their text, so that an edit elsewhere leaves the others drawn.
    """
    for file, line, chance in sorted(_with_chances(project, seed), key=lambda each: each[2]):
        found = [index for index, change in enumerate(_changes(project, file)) if change.line == line]
        random.Random(chance).shuffle(found)
        mutants = (mutant(project, file, index) for index in found)
        if first := next((each for each in mutants if each is not None), None):
            yield first


def _with_chances(project: Project, seed: int) -> Iterator[tuple[str, int, str]]:
    repeats: Counter[tuple[str, str]] = Counter()
    texts = {file: project.read(file).splitlines() for file in project.files()}
    for file, line in code_lines(project):
        text = texts[file][line - 1].strip()
        repeats[file, text] += 1
        yield file, line, hashlib.sha256(f"{seed} {file} {text} {repeats[file, text]}".encode()).hexdigest()


def mutant(project: Project, file: str, index: int) -> Mutant | None:
    """The change described, or None if it changes nothing or Python does not take it."""
    source = project.read(file)
    tree = ast.parse(source)
    blocks = number_blocks(tree)
    change = changes(tree)[index]
    plain = _header(change.statement)
    body, place = _place(tree, change.statement)
    change.make()
    changed = _header(body[place])
    try:
        compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if changed == plain:
        return None
    before, after = _difference(plain, changed)
    block = blocks.get(change.statement)
    return Mutant(file, index, change.line, change.kind, change.function, before, after, block, digest(source))


@functools.cache
def _changes(project: Project, file: str) -> list[Change]:
    return changes(ast.parse(project.read(file)))


def _place(tree: ast.Module, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and any(each is statement for each in value):
                return value, next(i for i, each in enumerate(value) if each is statement)
    raise LookupError(f"line {statement.lineno} is in no body")


def _header(statement: ast.stmt) -> list[str]:
    return ast.unparse(ast.fix_missing_locations(statement)).splitlines()


def _difference(before: list[str], after: list[str]) -> tuple[str, str]:
    """The lines that differ; of a long one the part that does."""
    if len(before) == len(after):
        pairs = [(one.strip(), other.strip()) for one, other in zip(before, after) if one != other]
        before, after = [one for one, _ in pairs], [other for _, other in pairs]
    one, other = "\n".join(before), "\n".join(after)
    if len(one) <= LONGEST:
        return one, other
    start = max(0, _common(one, other) - CONTEXT)
    tail = max(0, _common(one[:start:-1], other[:start:-1]) - CONTEXT)
    return one[start : len(one) - tail], other[start : len(other) - tail]


def _common(one: str, other: str) -> int:
    """How many characters the two begin with together."""
    return next((place for place, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
