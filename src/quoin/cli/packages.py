"""The packages and their duties, printed from their docstrings; the map in docs/design.md is this text."""

import ast
from pathlib import Path

import quoin

__all__ = ["package_duties", "packages_table"]

_PACKAGES = Path(quoin.__file__).parent


def package_duties() -> dict[str, str]:
    """Each package's name and the first paragraph of its docstring, read without importing it."""
    duties = {}
    for path in sorted(_PACKAGES.iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if path.name.startswith("_") or file.suffix != ".py" or not file.exists():
            continue
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        duties[path.name + ("/" if path.is_dir() else "")] = " ".join(docstring.split("\n\n")[0].split())
    return duties


def packages_table() -> str:
    """The duties as a Markdown table."""
    rows = [f"| `{name}` | {duty.replace('|', chr(92) + '|')} |" for name, duty in package_duties().items()]
    return "\n".join(["| package | contents |", "|---|---|", *rows])
