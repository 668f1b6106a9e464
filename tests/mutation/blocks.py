"""Blocks of a module: runs of statements of a function that are executed together, the unit in which it is recorded
which test runs which line. Code outside functions runs when the module is imported, whoever asks first, and belongs to
no block."""

import ast
import itertools
from collections.abc import Iterator
from typing import Any

HITS = "__quoin_hits__"


def number_blocks(tree: ast.Module) -> dict[ast.stmt, int]:
    """The block of every statement inside a function, numbered in the order of the source."""
    found: dict[ast.stmt, int] = {}
    _number(tree.body, False, found, itertools.count())
    return found


def _number(body: list[Any], in_function: bool, found: dict[ast.stmt, int], fresh: Iterator[int]) -> None:
    begins, number = True, 0
    for statement in body:
        if in_function:
            number = next(fresh) if begins else number
            found[statement] = number
        nested = bodies_of(statement)
        inside = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) or (
            in_function and not isinstance(statement, ast.ClassDef)
        )
        for each in nested:
            _number(each, inside, found, fresh)
        begins = bool(nested)  # what follows a compound statement may not be reached: a return in it


def bodies_of(statement: Any) -> list[list[Any]]:
    """The lists of statements inside a statement."""
    found = [getattr(statement, field, None) for field in ("body", "orelse", "finalbody")]
    found += [each.body for field in ("handlers", "cases") for each in getattr(statement, field, ())]
    return [each for each in found if isinstance(each, list) and each and isinstance(each[0], ast.stmt)]


def instrument(tree: ast.Module, offset: int) -> ast.Module:
    """The module with a mark at the start of each block: the byte at `offset` plus its number is set."""
    numbers = number_blocks(tree)
    _mark(tree.body, numbers, offset)
    return ast.fix_missing_locations(tree)


def _mark(body: list[Any], numbers: dict[ast.stmt, int], offset: int) -> None:
    marked: list[Any] = []
    last = None
    for place, statement in enumerate(body):
        for each in bodies_of(statement):
            _mark(each, numbers, offset)
        number = numbers.get(statement)
        docstring = place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if number is not None and number != last and not docstring:
            mark = ast.parse(f"{HITS}[{offset + number}] = 1").body[0]
            for node in ast.walk(mark):
                if hasattr(node, "lineno"):
                    ast.copy_location(node, statement)
            marked.append(mark)
            last = number
        marked.append(statement)
    body[:] = marked
