"""Shapes stand in the signatures: every public function that takes or gives tensors says which axes they have.

`make shapes` checks that they are true (shape_checks.py); here is checked that they are there, and that it bites.
"""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest

from quoin.layers import MultiHeadAttention

SOURCE = Path(__file__).parents[1] / "src" / "quoin"
SHAPED = {name for name in dir(jaxtyping) if name[0].isupper()}
COMMENT = re.compile(r":\s+# *(->|\((?:\.\.\.|[\w +*/-]+,|[\w +*/-]*\)))")


def signatures(tree: ast.Module, file: str) -> Iterator[tuple[str, list[ast.expr], ast.FunctionDef]]:
    """Public functions and methods whose annotations name a tensor, with these annotations."""

    def visit(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, list[ast.expr], ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                if node.name.startswith("_") and node.name not in ("__init__", "__call__"):
                    continue
                every = node.args
                arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
                hints = [each.annotation for each in arguments if each is not None and each.annotation is not None]
                hints += [node.returns] if node.returns else []
                with_tensors = [hint for hint in hints if re.search(r"\bTensor\b", ast.unparse(hint))]
                if with_tensors:
                    yield f"{prefix}{node.name}", with_tensors, node

    yield from visit(tree.body, f"{file}:")


def bare(node: ast.AST) -> bool:
    """Whether a tensor in the annotation has no shape; what a callable takes and gives may go without."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bare(ast.parse(node.value, mode="eval"))
    if isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Name) and node.value.id == "Callable":
            return False
        if isinstance(node.slice, ast.Tuple) and node.value.id in SHAPED and len(node.slice.elts) == 2:
            return False
    return (isinstance(node, ast.Name) and node.id == "Tensor") or any(map(bare, ast.iter_child_nodes(node)))


def unshaped(files: dict[str, str]) -> list[str]:
    return [
        name
        for file, text in files.items()
        for name, hints, _ in signatures(ast.parse(text), file)
        if any(map(bare, hints))
    ]


def commented(files: dict[str, str]) -> list[str]:
    """Signatures with shapes in a comment beside those that are checked."""
    found = []
    for file, text in files.items():
        lines = text.splitlines()
        for name, _, node in signatures(ast.parse(text), file):
            if any(COMMENT.search(line) for line in lines[node.lineno - 1 : node.body[0].lineno - 1]):
                found.append(name)
    return found


def files() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}


def test_every_public_function_says_the_shapes_of_its_tensors():
    assert not unshaped(files())
    assert sum(1 for file, text in files().items() for _ in signatures(ast.parse(text), file)) > 1_500


def test_no_shape_stands_in_a_comment_beside_them():
    assert not commented(files())


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Tensor) -> None: ...",
        "def f() -> Tensor: ...",
        'class A:\n    def forward(self, x: Float[Tensor, "n"], y: Tensor | None) -> None: ...',
        "def f(*xs: Tensor) -> None: ...",
        "def f(xs: Sequence[Tensor]) -> None: ...",
        "def f(xs: tuple[Tensor, int]) -> None: ...",
        "def f(x: 'Tensor | None') -> None: ...",
    ],
)
def test_a_tensor_without_a_shape_is_seen(text):
    assert len(unshaped({"a.py": text})) == 1


def test_a_shape_in_a_comment_is_seen():
    assert commented({"a.py": 'def f(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:  # (n,) -> (n,)\n    return x\n'})


def test_the_signature_shows_them():
    assert "batch query embed" in str(inspect.signature(MultiHeadAttention.forward))


def test_nothing_is_checked_at_run_time():
    assert not hasattr(MultiHeadAttention.forward, "__wrapped__")


PLANTED = """
from dataclasses import dataclass
from typing import NamedTuple
from jaxtyping import Float, Int
from torch import Tensor

def result(x: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
    return x.sum(0)

def arguments(x: Float[Tensor, "n"], y: Float[Tensor, "n"]) -> None: ...

def dtype(x: Int[Tensor, "n"]) -> None: ...

class NamedFields(NamedTuple):
    x: Float[Tensor, "n"]
    y: Float[Tensor, "n"]

@dataclass
class DataFields:
    x: Float[Tensor, "n"]
    y: Float[Tensor, "n"]
"""
CALLS = """
import pytest
from torch import zeros
from quoin import planted

@pytest.mark.parametrize(("name", "arguments"), [
    ("result", (zeros(3, 3),)),
    ("arguments", (zeros(2), zeros(2))),
    ("dtype", (zeros(2).long(),)),
    ("NamedFields", (zeros(2), zeros(2))),
    ("DataFields", (zeros(2), zeros(2))),
])
def test_right(name, arguments):
    getattr(planted, name)(*arguments)

@pytest.mark.parametrize(("name", "arguments"), [
    ("result", (zeros(2, 3),)),
    ("arguments", (zeros(2), zeros(3))),
    ("dtype", (zeros(2),)),
    ("NamedFields", (zeros(2), zeros(3))),
    ("DataFields", (zeros(2), zeros(3))),
])
def test_wrong(name, arguments):
    getattr(planted, name)(*arguments)
"""


@pytest.mark.deep
def test_the_check_bites(tmp_path):
    package = tmp_path / "src" / "quoin"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "planted.py").write_text(PLANTED)
    (tmp_path / "test_planted.py").write_text(CALLS)
    command = [sys.executable, "-m", "pytest", "-p", "shape_checks", "-q", "-p", "no:cacheprovider", "test_planted.py"]
    paths = f"{package.parent}:{Path(__file__).parent}"
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": paths}, capture_output=True, text=True)
    assert "5 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("FAILED test_planted.py::test_wrong") == 5
