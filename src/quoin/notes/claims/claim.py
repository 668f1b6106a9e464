"""What a claim is: a sentence of the notes as a function that returns evidence, and can therefore fail.

A claim of an erratum runs on two formulas and holds only if the right one passes *and* the printed one fails. Running
many claims is in runner.py; the claims themselves stand in this package's other files, one file per area.
"""

import hashlib
import importlib
import inspect
import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import torch

from quoin import notes
from quoin.display import fields_table, shown, shown_fields
from quoin.tensor.single_thread import single_thread

__all__ = ["Claim", "Evidence", "Outcome", "claim"]

_COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}
# What a wrong formula may raise by itself, such as shapes that do not fit. A misspelt name is our slip, not the
# printer's.
_ILL_DEFINED = (ValueError, RuntimeError, ArithmeticError, IndexError)


@shown
@dataclass(frozen=True)
class Evidence:
    """What a claim measured: `value comparison bound` over `cases` cases, with the source of the bound.

    >>> Evidence("largest |softmax - exp/sum|", 2e-16, 1e-15, "8 float64 roundings", cases=50).holds
    True
    """

    quantity: str
    value: float
    bound: float
    source: str
    cases: int
    comparison: Literal["<=", ">=", "=="] = "<="
    counterexample: str = ""

    def __post_init__(self):
        if self.comparison not in _COMPARE:
            raise ValueError(f"expected a comparison among {', '.join(_COMPARE)}, got {self.comparison!r}")
        # A measured value is often a tensor of one entry; evidence travels between processes and into JSON as a float.
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "bound", float(self.bound))
        object.__setattr__(self, "cases", int(self.cases))

    @property
    def holds(self) -> bool:
        """Whether the value keeps its bound; one that is not finite never does, nor does evidence from no case."""
        # An infinite bound could not be broken, and what is infinitely far from all others would keep any ">=".
        measured = self.cases >= 1 and math.isfinite(self.bound) and math.isfinite(self.value)
        return measured and _COMPARE[self.comparison](self.value, self.bound)  # and every comparison with NaN is false

    def __bool__(self) -> bool:
        return self.holds

    def _repr_html_(self) -> str:
        return fields_table(f"Evidence: {'holds' if self.holds else 'fails'}", shown_fields(self))

    def __str__(self) -> str:
        relation = self.comparison if self.holds else f"is not {self.comparison}"
        cases = "1 case" if self.cases == 1 else f"{self.cases} cases"
        return f"{self.quantity}: {self.value:.3g} {relation} {self.bound:.3g} ({self.source}; {cases})"

    def as_json(self) -> dict[str, object]:
        """The fields; a number that is not finite is written as a string, for JSON has none."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}


@shown
@dataclass(frozen=True)
class Outcome:
    """What became of one claim; `printed` is the evidence of an erratum's printed form, which must not hold."""

    ids: tuple[str, ...]
    statement: str
    verdict: Literal["holds", "fails"]
    evidence: Evidence
    seconds: float
    printed: Evidence | None = None
    not_shown: str = ""

    @property
    def id(self) -> str:
        return self.ids[0]

    def as_json(self) -> dict[str, object]:
        """The object that `quoin check --json` prints, one for each claim."""
        printed = None if self.printed is None else self.printed.as_json()
        return {
            "ids": list(self.ids),
            "statement": self.statement,
            "not_shown": self.not_shown,
            "verdict": self.verdict,
            "evidence": {**self.evidence.as_json(), "printed": printed},
            "seconds": self.seconds,
        }


@shown
@dataclass(frozen=True)
class Claim:
    """A checkable sentence: its ids, its statement and the function that measures it, for an erratum on two formulas.

    `not_shown` says which part of the theorem the numbers leave open, where it quantifies over more than can be tried.
    """

    ids: tuple[str, ...]
    statement: str
    function: Callable[..., Evidence]
    right: Callable | None = None
    printed: Callable | None = None
    not_shown: str = ""

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def __reduce__(self):
        # A claim stands where its function stood, so it travels to another process by name, as functions do.
        return _imported, (self.function.__module__, self.function.__qualname__)

    def run(self, seed: int = 0) -> Outcome:
        """Measure, on one thread and from `seed` and this claim's name alone, so that company changes no number."""
        start = time.perf_counter()
        with single_thread(), torch.random.fork_rng(devices=[]):
            evidence, printed = self._measure(seed)
        holds = evidence.holds and not (printed is not None and printed.holds)
        return Outcome(
            self.ids,
            self.statement,
            "holds" if holds else "fails",
            evidence,
            time.perf_counter() - start,
            printed,
            self.not_shown,
        )

    def _measure(self, seed: int) -> tuple[Evidence, Evidence | None]:
        try:
            if self.right is None or self.printed is None:
                return self._evidence(seed), None
            right = self._evidence(seed, self.right)
            try:
                printed = self._evidence(seed, self.printed)
            except _ILL_DEFINED as error:
                printed = raised(error)
        except (Exception, SystemExit) as error:  # a broken claim is a claim that fails, not the end of the run
            return raised(error), None
        if not right.holds:
            return right, printed
        message = f"the printed form {'passes too' if printed.holds else 'fails'}: {printed.counterexample or printed}"
        return replace(right, counterexample=message), printed

    def _evidence(self, seed: int, *form: Callable) -> Evidence:
        number = int.from_bytes(hashlib.sha256(f"{seed} {self.ids} {self.name}".encode()).digest()[:8]) >> 1
        torch.manual_seed(number)  # layers initialise from the global generator; it is forked in `run`
        evidence = self.function(*form, torch.Generator().manual_seed(number))
        if not isinstance(evidence, Evidence):
            raise TypeError(f"expected Evidence from {self.name}, got {type(evidence).__name__}; return Evidence(...)")
        return evidence


def claim(
    ids: str | Sequence[str],
    statement: str,
    *,
    right: Callable | None = None,
    printed: Callable | None = None,
    not_shown: str = "",
) -> Callable[[Callable[..., Evidence]], Claim]:
    """Mark `f(generator) -> Evidence` as a claim; with `right` and `printed`, `f(form, generator)` as that of an
    erratum."""
    ids = notes.known(ids)
    if (right is None) != (printed is None):
        raise ValueError(f"claim {ids[0]} gives one of right and printed; an erratum needs both, another claim neither")
    if not statement.strip():
        raise ValueError(f"claim {ids[0]} has no statement; say in a sentence what is checked")
    expected = ["generator"] if right is None else ["form", "generator"]

    def declare(function: Callable[..., Evidence]) -> Claim:
        got = list(inspect.signature(function).parameters)
        if got != expected:
            raise ValueError(
                f"claim {ids[0]}: expected {function.__name__}({', '.join(expected)}), got ({', '.join(got)})"
            )
        return Claim(ids, statement, function, right, printed, not_shown)

    return declare


def raised(error: BaseException) -> Evidence:
    """An exception as evidence: nothing was measured, so it never holds."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Evidence("an exception", math.nan, 0.0, "nothing was measured", 0, counterexample=words)


def _imported(module: str, name: str) -> Claim:
    return getattr(importlib.import_module(module), name)
