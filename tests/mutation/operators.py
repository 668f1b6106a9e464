"""The small faults that are put into a module: every one that its syntax tree allows, in a fixed order.

Left alone: text (strings, f-strings, docstrings), annotations, imports, `assert` (a program without faults of its own
never meets one), what only type checkers or `python -m` read. An assignment to a local name is not left out, nor is a
path or a text joined by another operator: the line, or the next, would not run, which no test has to find.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.pattern)
UNUSED_NAMES = {"TYPE_CHECKING", "__name__"}
TEXT_NAMES = {"__all__"}


@dataclass(frozen=True)
class Change:
    """One fault, not yet made; `make` puts it into the tree it was found in."""

    line: int
    kind: str
    function: str  # the qualified name of what it stands in, or "" for the module itself
    statement: ast.stmt
    make: Callable[[], None]


def changes(tree: ast.Module) -> list[Change]:
    """All that can be made in `tree`, in the order of the source."""
    return list(_Finder().statements(tree.body, ""))


class _Finder:
    def __init__(self) -> None:
        self.statement: Any = None
        self.function = ""

    def change(self, node: Any, kind: str, make: Callable[[], None]) -> Change:
        return Change(node.lineno, kind, self.function, self.statement, make)

    def statements(self, body: list[Any], function: str) -> Iterator[Change]:
        for place, statement in enumerate(body):
            self.statement, self.function = statement, function
            if isinstance(statement, LEFT_ALONE) or _is_text(statement) or _is_unused(statement):
                continue
            yield from self.removals(body, place, statement)
            name = getattr(statement, "name", "")
            scope = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            inner = f"{function}.{name}".lstrip(".") if scope else function
            self.function = inner
            yield from self.inside(statement)
            for nested in _bodies(statement):
                yield from self.statements(nested, inner)

    def removals(self, body: list[Any], place: int, statement: ast.stmt) -> Iterator[Change]:
        """The statement left out; a value not returned."""

        def leave_out() -> None:
            body[place] = ast.copy_location(ast.Pass(), statement)

        places = (ast.Attribute, ast.Subscript)
        stored = isinstance(statement, ast.Assign) and all(isinstance(each, places) for each in statement.targets)
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))
        if stored or called or isinstance(statement, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)):
            yield self.change(statement, "statement left out", leave_out)
        if isinstance(statement, ast.Return) and not (statement.value is None or _is_none(statement.value)):
            yield self.change(statement, "returns None", _setter(statement, "value", ast.Constant(None)))

    def inside(self, node: Any) -> Iterator[Change]:
        """Changes of the expressions of a node, without those of the statements in its bodies."""
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_params"):
                continue
            for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST) or isinstance(child, (ast.stmt, *LEFT_ALONE)):
                    continue
                if isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    continue  # bodies: their statements have their own turn
                replace = _setter(node, field, place=place)
                yield from self.expression(child, replace)
                if field == "test" and not isinstance(child, (ast.UnaryOp, ast.Compare)):
                    negated: Any = ast.UnaryOp(ast.Not(), child)  # type: ignore[arg-type]
                    yield self.change(child, "condition negated", _with(replace, negated, child))
                yield from self.inside(child)
        text = isinstance(node, ast.BinOp) and (_is_text_value(node.left) or _is_text_value(node.right))
        if isinstance(node, (ast.AugAssign, ast.BinOp)) and not text and (other := ARITHMETIC.get(type(node.op))):
            yield self.change(node, "another operator", _setter(node, "op", other()))

    def expression(self, node: Any, replace: Callable[[Any], None]) -> Iterator[Change]:
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                if other := COMPARISONS.get(type(operator)):
                    yield self.change(node, "another comparison", _setter(node, "ops", other(), place))
        elif isinstance(node, ast.BoolOp):
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield self.change(node, "and, or", _setter(node, "op", other))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            yield self.change(node, "sign left out", _with(replace, node.operand, node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield self.change(node, "true, false", _setter(node, "value", not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            for step in (1, -1):
                yield self.change(node, "off by one", _with(replace, ast.Constant(node.value + step), node))
        elif isinstance(node, ast.IfExp):
            yield self.change(node, "branches swapped", _swap(node, "body", node, "orelse"))
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield self.change(keyword, "argument left out", lambda k=keyword: node.keywords.remove(k))
            yield from self.swaps(node, node.args)
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
            yield from self.swaps(node, node.elts)

    def swaps(self, node: Any, values: list[Any]) -> Iterator[Change]:
        for first in range(len(values) - 1):
            pair = values[first : first + 2]
            if not any(isinstance(each, ast.Starred) or _is_text_value(each) for each in pair):

                def swap(first: int = first) -> None:
                    values[first], values[first + 1] = values[first + 1], values[first]

                yield self.change(pair[0], "neighbours swapped", swap)


def _setter(node: Any, field: str, new: Any = None, place: int | None = None) -> Callable[..., None]:
    def put(new: Any = new) -> None:
        if place is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[place] = new

    return put


def _with(replace: Callable[[Any], None], new: Any, old: Any) -> Callable[[], None]:
    return lambda: replace(ast.fix_missing_locations(ast.copy_location(new, old)))


def _swap(one: Any, field: str, other: Any, other_field: str) -> Callable[[], None]:
    def swap() -> None:
        first, second = getattr(one, field), getattr(other, other_field)
        setattr(one, field, second)
        setattr(other, other_field, first)

    return swap


def _bodies(statement: Any) -> Iterator[list[Any]]:
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for_it = getattr(statement, field, [])
        if field in ("handlers", "cases"):
            yield from (each.body for each in for_it)
        elif isinstance(for_it, list) and for_it:
            yield for_it


def _is_string(node: Any) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_text_value(node: Any) -> bool:
    return _is_string(node) or isinstance(node, ast.JoinedStr)


def _is_none(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(statement: Any) -> bool:
    """A docstring, or names that `import *` reads."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    names = {each.id for each in getattr(statement, "targets", ()) if isinstance(each, ast.Name)}
    return bool(names & TEXT_NAMES)


def _is_unused(statement: Any) -> bool:
    if not isinstance(statement, ast.If):
        return False
    return any(isinstance(each, ast.Name) and each.id in UNUSED_NAMES for each in ast.walk(statement.test))
