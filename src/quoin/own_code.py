"""The user's own Python files: a recipe, an attention, a loss, an optimizer. They run because the user named them.

A run keeps a copy of each such file and its hash. Code from a run folder, or at a path that a run folder names, never
runs by itself: whoever opens the run names the files again (`--code FILE`), or says that the copies may run
(`--trust-code`). Imports no torch.
"""

import contextlib
import hashlib
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from quoin.errors import UserError, did_you_mean, format_value

__all__ = [
    "CodeFile",
    "find_code",
    "import_code",
    "is_code_reference",
    "load_object",
    "read_code",
    "resolve_code_with",
]

_LONGEST = 10 * 2**20  # bytes of a file that somebody may have written


@dataclass(frozen=True)
class CodeFile:
    """A Python file as it was read: what runs is `content`, whatever becomes of the file meanwhile.

    Args:
        given: The path as the user wrote it, by which options name it.
        place: Where it lies.
    """

    given: str
    place: Path
    content: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


_imported: dict[tuple[str, str], ModuleType] = {}  # by place and hash: imported twice, its classes would be two
_resolver: ContextVar[Callable[[str], CodeFile] | None] = ContextVar("resolver", default=None)


def is_code_reference(text: str) -> bool:
    """Whether an option names something of a Python file, such as `my_file.py:MyAttention`.

    >>> is_code_reference("my_file.py:MyAttention"), is_code_reference("exact")
    (True, False)
    """
    return ".py:" in text


def read_code(given: str | Path) -> CodeFile:
    """The Python file at a path that the user gave."""
    path = Path(given).expanduser()
    shown = format_value(str(given))
    try:
        if path.is_dir():
            raise UserError(f"expected a Python file, got the folder {shown}: name the .py file in it")
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise UserError(f"{shown} cannot be read ({told}): give the path of a Python file") from None
    if len(content) > _LONGEST:
        raise UserError(f"expected a Python file of at most {_LONGEST:,} bytes, {shown} is larger: give another")
    return CodeFile(str(given), path.resolve(), content)


def import_code(file: CodeFile) -> ModuleType:
    """Run the file as a module, once for each content; files beside it can be imported from it as in a script."""
    key = (str(file.place), file.sha256)
    if key in _imported:
        return _imported[key]
    folder = str(file.place.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last: what lies there hides no installed package
    name = f"{file.place.stem}_{file.sha256[:12]}"  # two files of one name are two modules
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(file.place))
    assert spec is not None, "a spec without a loader can always be made"
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(file.place)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        _run(file, module)
    except BaseException:
        del sys.modules[name]
        raise
    _imported[key] = module
    return module


def _run(file: CodeFile, module: ModuleType) -> None:
    shown = format_value(file.given)
    printed = io.StringIO()
    try:
        code = compile(file.content, str(file.place), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):  # standard output is the command's: a table, or JSON
            exec(code, module.__dict__)
    except SyntaxError as error:
        raise UserError(f"{shown} is no Python, line {error.lineno}: {error.msg}; mend it and try again") from error
    except SystemExit as error:
        raise UserError(f"{shown} ends the program when it is imported (exit {error.code}): take that out") from error
    except Exception as error:
        line = _last_line(error, str(file.place))
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{shown} does not import{line}: {what[:160]}; mend it and try again") from error
    finally:
        if text := printed.getvalue():
            print(f"{Path(file.given).name}: {text}", end="" if text.endswith("\n") else "\n", file=sys.stderr)


def _last_line(error: BaseException, place: str) -> str:
    """Where in the user's file an error arose."""
    found, at = "", error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == place:
            found = f" (line {at.tb_lineno})"
        at = at.tb_next
    return found


def load_object(reference: str, what: str) -> Any:
    """What `FILE.py:NAME` names; in a run that is opened, of the file that the user names now.

    Args:
        what: What was expected, for the error, such as "an attention (a class of nn.Module)".
    """
    given, _, name = reference.rpartition(":")
    file = find_code(given)
    module = import_code(file)
    try:
        found = getattr(module, name)
    except AttributeError:
        names = [each for each in vars(module) if not each.startswith("_")]
        raise UserError(
            f"{format_value(given)} has no {format_value(name)}, expected {what}: {did_you_mean(name, names)}"
        ) from None
    return found


def find_code(given: str) -> CodeFile:
    """The file that options name: read from its path, or, in a run that is opened, as the user allowed it."""
    resolver = _resolver.get()
    return resolver(given) if resolver else read_code(given)


@contextlib.contextmanager
def resolve_code_with(resolver: Callable[[str], CodeFile]) -> Iterator[None]:
    """Let `resolver` say which file a path of the options means inside."""
    token = _resolver.set(resolver)
    try:
        yield
    finally:
        _resolver.reset(token)
