"""The user's own Python files: a recipe, an attention, a loss, an optimizer. They run because the user named them.

A run keeps a copy of each such file, of the modules beside it that it imports, and their hashes. Code from a run
folder, or at a path that a run folder names, never runs by itself: whoever opens the run names the files again
(`--code FILE`), or says that the copies may run (`--trust-code`). Of copies none runs but those whose hash was
compared: a file that somebody laid beside them is not even found. Imports no torch.
"""

import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value

__all__ = [
    "CodeFile",
    "find_beside",
    "find_code",
    "import_code",
    "imported_beside",
    "is_code_reference",
    "keep_running",
    "load_object",
    "read_code",
    "resolve_code_with",
]

_LONGEST = 10 * 2**20  # bytes of a file that somebody may have written


@shown
@dataclass(frozen=True)
class CodeFile:
    """A Python file as it was read: what runs is `content`, whatever becomes of the file meanwhile.

    Args:
        given: The path as the user wrote it, by which options name it.
        place: Where it lies.
        beside: The only modules that it may import from where it lies, by their paths from there; None for any.
    """

    given: str
    place: Path
    content: bytes = field(repr=False)
    beside: Mapping[str, bytes] | None = field(default=None, repr=False, hash=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


_resolver: ContextVar[Callable[[str], CodeFile] | None] = ContextVar("resolver", default=None)


def is_code_reference(text: str) -> bool:
    """Whether an option names something of a Python file, such as `my_file.py:MyAttention`.

    >>> is_code_reference("my_file.py:MyAttention"), is_code_reference("exact")
    (True, False)
    """
    return ".py:" in text


def read_code(given: str | Path) -> CodeFile:
    """The Python file at a path that the user gave."""
    shown = format_value(str(given))
    try:
        path = Path(given).expanduser()
        if path.is_dir():
            raise UserError(f"expected a Python file, got the folder {shown}: name the .py file in it")
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise UserError(f"expected a Python file of at most {_LONGEST:,} bytes, {shown} is larger: give another")
        return CodeFile(str(given), path.resolve(), content)
    except UserError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: of ~ for a user that there is not
        told = getattr(error, "strerror", None) or error
        raise UserError(f"{shown} cannot be read ({told}): give the path of a Python file") from None


# ---- running it -------------------------------------------------------------------------------------------------


class _Folder:
    """Where the modules are that a file of the user's imports from beside itself: on disk, or among its copies."""

    def __init__(self, path: Path, copies: Mapping[str, bytes] | None) -> None:
        self.path, self.copies = path, copies
        self.loaded: dict[str, tuple[ModuleType, CodeFile]] = {}

    def find(self, module: str) -> CodeFile | None:
        """The file of a module, whose `given` is its path from here; of a folder of modules, as if it had an empty
        __init__.py."""
        stem = module.replace(".", "/")
        package = f"{stem}/__init__.py"
        for path in (package, f"{stem}.py"):
            if (content := self._read(path)) is not None:
                return CodeFile(path, self.path / path, content, self.copies)
        return CodeFile(package, self.path / package, b"", self.copies) if self._has_modules(stem) else None

    def _read(self, path: str) -> bytes | None:
        if self.copies is not None:
            return self.copies.get(path)
        return read_code(self.path / path).content if (self.path / path).is_file() else None

    def _has_modules(self, folder: str) -> bool:
        if self.copies is not None:
            return any(path.startswith(f"{folder}/") for path in self.copies)
        return any((self.path / folder).glob("*.py"))

    def changed(self) -> bool:
        """Whether a module is another now than it was when it was imported."""
        for name, (_, file) in self.loaded.items():
            if (now := self.find(name)) is None or now.content != file.content:
                return True
        return False

    def show(self) -> None:
        """Let its modules be those that are meant by their names."""
        for name, (module, _) in self.loaded.items():
            sys.modules[name] = module

    def hide(self, names: list[str]) -> None:
        """Let these names be free for another's modules; who holds those of here keeps them."""
        for name in names:
            if sys.modules.get(name) is self.loaded[name][0]:
                del sys.modules[name]


class _Finder(MetaPathFinder):
    """Finds what a file of the user's imports from its folder, as in a script. It is asked last, and finds nothing for
    anybody else: what lies there hides no installed package, and stands in for none that a library does without."""

    def __init__(self) -> None:
        self.folders: list[_Folder] = []

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        folder, parent = _folder_of_importer(), fullname.rpartition(".")[0]
        if folder is None or (parent and parent not in folder.loaded) or (file := folder.find(fullname)) is None:
            return None
        # A package has no places of its own to search: its modules are looked for here too, and nowhere else.
        is_package = file.place.name == "__init__.py"
        return importlib.util.spec_from_loader(
            fullname, _FileLoader(folder, file), origin=str(file.place), is_package=is_package
        )

    def folder_of(self, file: CodeFile) -> _Folder:
        """The folder of a file that is about to be imported, with its modules as they are now."""
        where = file.place.parent
        found = next((each for each in self.folders if each.path == where and each.copies == file.beside), None)
        if found is not None and found.changed():
            found.hide([*found.loaded])
            self.folders.remove(found)
            found = None
        if found is None:
            self.folders.append(found := _Folder(where, file.beside))
        return found

    def enter(self, folder: _Folder) -> None:
        """Let `import` in a file of this folder mean its modules; those of others make way."""
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        for other in (each for each in self.folders if each is not folder):
            other.hide([name for name in other.loaded if folder.find(name) is not None])
        folder.show()


_FOLDER = "__quoin_folder__"  # where a module of the user's has its `_Folder`


def _folder_of_importer() -> _Folder | None:
    """That of the module which has the import statement, if it is the user's."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return frame.f_globals.get(_FOLDER) if frame else None


class _FileLoader(Loader):
    """Runs what was read, and leaves no compiled file beside it."""

    def __init__(self, folder: _Folder, file: CodeFile) -> None:
        self.folder, self.file = folder, file

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.file.place)
        self.folder.loaded[module.__name__] = (module, self.file)
        try:
            _execute(self.file, module, self.folder)
        except BaseException:
            self.folder.loaded.pop(module.__name__, None)
            raise


_finder = _Finder()
_imported: dict[tuple[str, str], tuple[ModuleType, _Folder]] = {}  # imported twice, its classes would be two


def import_code(file: CodeFile) -> ModuleType:
    """Run the file as a module, once for each content of it and of what it imports from beside itself."""
    key = (str(file.place), file.sha256)
    if key in _imported:
        module, folder = _imported[key]
        if folder in _finder.folders and folder.copies == file.beside and not folder.changed():
            return module
    folder = _finder.folder_of(file)
    _finder.enter(folder)
    # Two files of one name are two modules.
    name = f"{file.place.stem}_{hashlib.sha256(bytes(file.place) + file.content).hexdigest()[:12]}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(file.place))
    assert spec is not None, "a spec without a loader can always be made"
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(file.place)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is the command's: a table, or JSON
            _execute(file, module, folder)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, (Exception, SystemExit)):
            raise
        raise _explained(error, file) from error
    _imported[key] = module, folder
    return module


def _execute(file: CodeFile, module: ModuleType, folder: _Folder) -> None:
    setattr(module, _FOLDER, folder)
    exec(compile(file.content, str(file.place), "exec", dont_inherit=True), module.__dict__)


def _explained(error: BaseException, file: CodeFile) -> UserError:
    """Why a file does not import, in a line that names where."""
    shown, what = format_value(file.given), " ".join(str(error).split())
    if isinstance(error, SystemExit):
        return UserError(f"{shown} ends the program when it is imported (exit {error.code}): take that out")
    if isinstance(error, SyntaxError):
        is_other = error.filename not in (None, str(file.place))
        where = f"{shown} imports {Path(str(error.filename)).name}, which" if is_other else shown
        line = f", line {error.lineno}" if error.lineno else ""
        return UserError(f"{where} is no Python{line}: {error.msg[:160]}; mend it and try again")
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    where, line, at = file.place, "", error.__traceback__
    while at is not None:  # the innermost line of the user's own
        place = Path(at.tb_frame.f_code.co_filename)
        if place == file.place or _FOLDER in at.tb_frame.f_globals:
            where, line = place, f"line {at.tb_lineno}"
        at = at.tb_next
    line = f"{where.name}, {line}" if where != file.place else line
    return UserError(f"{shown} does not import ({line}): {kind}{what[:160]}; mend it and try again")


@contextlib.contextmanager
def keep_running(what: str, file: CodeFile | None = None) -> Iterator[None]:
    """Around a call of the user's code: if it ends the program, that is a mistake in it, not an end without a word.

    Args:
        file: Where that code is, if it is a file: what it imports now is meant from beside it.
    """
    if file is not None and (found := _imported.get((str(file.place), file.sha256))) is not None:
        _finder.enter(found[1])
    try:
        yield
    except SystemExit as error:
        raise UserError(f"{what} ends the program (exit {error.code}): take that out") from error


# ---- what it is made of -----------------------------------------------------------------------------------------


def imported_beside(file: CodeFile) -> list[CodeFile]:
    """The modules of its own folder that a file imported so far, itself or by another of them."""
    if (found := _imported.get((str(file.place), file.sha256))) is None:
        return []
    return [_seen_from(file, each) for _, each in found[1].loaded.values() if each.place != file.place]


def find_beside(file: CodeFile, path: str) -> CodeFile | None:
    """The module at `path` from the folder of the file, which the file would import; nothing runs."""
    module = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    found = _Folder(file.place.parent, file.beside).find(module)
    return found and _seen_from(file, found)


def _seen_from(file: CodeFile, beside: CodeFile) -> CodeFile:
    given = PurePosixPath(file.given).parent / beside.given
    return CodeFile(str(given), beside.place, beside.content, beside.beside)


def load_object(reference: str, what: str) -> Any:
    """What `FILE.py:NAME` names; in a run that is opened, of the file that the user names now.

    Args:
        what: What was expected, for the error, such as "an attention (a class of nn.Module)".
    """
    given, _, name = reference.rpartition(":")
    module = import_code(find_code(given))
    try:
        return getattr(module, name)
    except AttributeError:
        names = [each for each in vars(module) if not each.startswith("_")]
        raise UserError(
            f"{format_value(given)} has no {format_value(name)}, expected {what}: {did_you_mean(name, names)}"
        ) from None


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
