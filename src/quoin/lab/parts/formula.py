"""Formulas that a reader types: a small grammar of our own, with a limit. Nothing is evaluated as code.

formula = parse_formula("exp(x * w) + sin(x * w)")
formula.names, formula.of({"x": torch.tensor(0.5), "w": torch.tensor(2.0)})

sum     = product { ("+" | "-") product }
product = signed { ("*" | "/") signed }
signed  = "-" signed | power
power   = atom [ "^" signed ]
atom    = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value

__all__ = ["FUNCTIONS", "Formula", "function_of", "last_use_apart", "parse_formula"]

LONGEST, MOST_NODES, DEEPEST = 200, 60, 30
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "max": torch.maximum,
    "min": torch.minimum,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+)|([A-Za-z_]\w*)|([-+*/^(),]))")
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": torch.add,
    "-": torch.sub,
    "*": torch.mul,
    "/": torch.div,
    "^": torch.pow,
}


@dataclass(frozen=True)
class _Node:
    kind: str  # number, name, call
    value: float = 0.0
    name: str = ""
    inputs: tuple[_Node, ...] = ()

    def compute(self, given: Mapping[str, Tensor], like: Tensor) -> Tensor:
        if self.kind == "number":
            return torch.full((), self.value, dtype=like.dtype)
        if self.kind == "name":
            return given[self.name]
        inputs = [each.compute(given, like) for each in self.inputs]
        return torch.neg(inputs[0]) if self.name == "neg" else (_BINARY | FUNCTIONS)[self.name](*inputs)


@dataclass(frozen=True)
class Formula:
    """A parsed formula: a function of its names, in tensors."""

    text: str
    names: tuple[str, ...]  # in the order in which they first stand in it
    root: _Node

    def of(self, values: Mapping[str, Float[Tensor, "*#shape"]]) -> Float[Tensor, "*shape"]:
        """Its value where each name has the value given; broadcast as torch does."""
        if missing := [name for name in self.names if name not in values]:
            raise UserError(f"expected only {', '.join(sorted(values))}, got {missing[0]!r}; use those names")
        like = next(iter(values.values()), torch.zeros(()))
        return self.root.compute(values, like)


def parse_formula(text: str) -> Formula:
    """The formula that `text` writes: + - * / ^, brackets, numbers, names, pi, e, and the functions of FUNCTIONS.

    >>> parse_formula("2 * x^2 - y").of({"x": torch.tensor(3.0), "y": torch.tensor(1.0)})
    tensor(17.)
    >>> parse_formula("2 *")
    Traceback (most recent call last):
    quoin.errors.UserError: expected a number, a name or a bracket at the end of the formula, got nothing; complete it
    """
    if len(text) > LONGEST:
        raise UserError(f"expected a formula of at most {LONGEST} characters, got {len(text)}; shorten it")
    parser = _Parser(text)
    root = parser.sum(0)
    if parser.token:
        raise UserError(f"expected the end of the formula, got {format_value(parser.token)}; check the brackets")
    return Formula(text, tuple(parser.names), root)


def function_of(text: str, *names: str) -> Callable[..., Tensor]:
    """The function of these names, in this order, that a formula writes; it may leave some of them out.

    >>> function_of("x^2 + 1", "x", "y")(torch.tensor(3.0), torch.tensor(0.0))
    tensor(10.)
    """
    formula = parse_formula(text)
    if strange := [name for name in formula.names if name not in names]:
        raise UserError(f"expected a formula of {' and '.join(names)} alone, got {strange[0]!r}; use those names")

    def function(*values: Tensor) -> Tensor:
        # a constant takes the shape of the values as well, and a way back to them
        return formula.of(dict(zip(names, values, strict=True))) + 0 * sum(
            values, torch.zeros((), dtype=values[0].dtype)
        )

    return function


def last_use_apart(text: str, name: str) -> str:
    """The formula with the last use of `name` under a name of its own.

    >>> last_use_apart("x*y + sin(x)", "x")
    'x*y + sin(x_hidden)'
    """
    *_, last = re.finditer(rf"(?<![\w.]){name}\b(?!\s*\()", text)
    return f"{text[: last.start()]}{name}_hidden{text[last.end() :]}"


class _Parser:
    def __init__(self, text: str):
        self.text, self.at, self.token = text, 0, ""
        self.names: dict[str, None] = {}
        self.nodes = 0
        self.advance()

    def advance(self) -> None:
        if not self.text[self.at :].strip():
            self.token = ""
            return
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            strange = self.text[self.at :].strip()[0]
            raise UserError(f"expected a formula such as x*y + sin(x), got {format_value(strange)}; leave it out")
        self.at, self.token = found.end(), found[0].strip()

    def make(self, kind: str, value: float = 0.0, name: str = "", inputs: tuple[_Node, ...] = ()) -> _Node:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise UserError(f"expected a formula of at most {MOST_NODES} operations and numbers; shorten it")
        return _Node(kind, value, name, inputs)

    def take(self, token: str) -> None:
        if self.token != token:
            got = format_value(self.token) if self.token else "the end of the formula"
            raise UserError(f"expected {token!r}, got {got}; check the brackets")
        self.advance()

    def sum(self, depth: int) -> _Node:
        return self._chain(("+", "-"), self.product, depth)

    def product(self, depth: int) -> _Node:
        return self._chain(("*", "/"), self.signed, depth)

    def _chain(self, operators: tuple[str, ...], part: Callable[[int], _Node], depth: int) -> _Node:
        if depth > DEEPEST:
            raise UserError(f"expected brackets at most {DEEPEST} deep; simplify the formula")
        left = part(depth)
        while self.token in operators:
            operator = self.token
            self.advance()
            left = self.make("call", name=operator, inputs=(left, part(depth)))
        return left

    def signed(self, depth: int) -> _Node:
        if depth > DEEPEST:
            raise UserError(f"expected signs and powers at most {DEEPEST} deep; simplify the formula")
        if self.token == "-":
            self.advance()
            return self.make("call", name="neg", inputs=(self.signed(depth + 1),))
        base = self.atom(depth)
        if self.token == "^":
            self.advance()
            return self.make("call", name="^", inputs=(base, self.signed(depth + 1)))
        return base

    def atom(self, depth: int) -> _Node:
        token = self.token
        if token and (token[0].isdigit() or token[0] == "."):
            self.advance()
            return self.make("number", float(token))
        if token and (token[0].isalpha() or token[0] == "_"):
            self.advance()
            return self.named(token, depth)
        if token == "(":
            self.advance()
            inside = self.sum(depth + 1)
            self.take(")")
            return inside
        got = format_value(token) if token else "nothing"
        where = "here" if token else "at the end of the formula"
        raise UserError(f"expected a number, a name or a bracket {where}, got {got}; complete it")

    def named(self, name: str, depth: int) -> _Node:
        if self.token == "(":
            if name not in FUNCTIONS:
                raise UserError(f"expected one of {', '.join(FUNCTIONS)}, got {format_value(name)}; use one of these")
            self.advance()
            inputs = [self.sum(depth + 1)]
            while self.token == ",":
                self.advance()
                inputs.append(self.sum(depth + 1))
            self.take(")")
            wanted = 2 if name in ("max", "min") else 1
            if len(inputs) != wanted:
                raise UserError(f"expected {wanted} input{'s' if wanted > 1 else ''} of {name}, got {len(inputs)}")
            return self.make("call", name=name, inputs=tuple(inputs))
        if name in _CONSTANTS:
            return self.make("number", _CONSTANTS[name])
        if name in FUNCTIONS:
            raise UserError(f"expected {name}(...), got {name} alone; give it its input in brackets")
        self.names[name] = None
        return self.make("name", name=name)
