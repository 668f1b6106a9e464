"""Validated options: frozen dataclasses whose fields carry their help and their range. Imports no torch."""

import dataclasses
import math
import operator
import typing
from dataclasses import dataclass, field
from typing import Any, NewType, TypeVar

from quoin.errors import UserError, did_you_mean, format_value
from quoin.own_code import is_code_reference

__all__ = [
    "CALLED_ELSEWHERE",
    "OwnPart",
    "ValidatedOptions",
    "check_option",
    "choices_of",
    "default",
    "flag_name",
    "option",
    "options_from_json",
    "takes_own_part",
]

# A part of the user's own, FILE.py:NAME; as in `Literal["exact", "linear"] | OwnPart`, where there are others by name.
OwnPart = NewType("OwnPart", str)

_LARGEST = {float: 3.4e38, int: 2**63 - 1}  # torch computes in float32 and counts in 64 bits
_FITS = {"at least": operator.ge, "at most": operator.le, "above": operator.gt, "below": operator.lt}

# Options under the names that other tools give them: spelling alone would lead to another option.
CALLED_ELSEWHERE = {
    "learning-rate": "--lr",
    "optim": "--optimizer",
    "opt": "--optimizer",
    "solver": "--optimizer",
    "warmup": "--warmup-ratio",
    "warmup-steps": "--warmup-ratio",
    "warmup-epochs": "--warmup-ratio",
    "lr-scheduler": "--schedule",
    "lr-scheduler-type": "--schedule",
    "scheduler": "--schedule",
    "clip": "--max-grad-norm",
    "clip-grad": "--max-grad-norm",
    "clip-grad-norm": "--max-grad-norm",
    "gradient-clip-val": "--max-grad-norm",
    "wd": "--weight-decay",
    "num-epochs": "--epochs",
    "num-train-epochs": "--epochs",
    "n-epochs": "--epochs",
    "bs": "--batch-size",
    "train-batch-size": "--batch-size",
    "per-device-train-batch-size": "--batch-size",
    "gpu": "--device",
    "gpus": "--device",
    "accelerator": "--device",
    "amp": "--precision",
    "bf16": "--precision",
    "fp16": "--precision",
    "mixed-precision": "--precision",
    "torch-compile": "--compile",
    "output-dir": "--runs",
    "logging-dir": "--runs",
    "run-name": "--name",
    "experiment-name": "--name",
    "notes": "--note",
    "tags": "--tag",
    "config-file": "--config",
    "cfg": "--config",
    "dataset": "--data",
    "data-path": "--data",
    "random-state": "--seed",
    "block-size": "--context-length",
    "hidden-size": "--hidden-dim",
    "n-layers": "--num-layers",
    "n-heads": "--num-heads",
    "threads": "--num-threads",
    "gradient-accumulation-steps": "--micro-batch-size",
    "accumulate-grad-batches": "--micro-batch-size",
    "grad-accum": "--micro-batch-size",
    "early-stopping": "--patience",
    "early-stopping-patience": "--patience",
    "resume": "quoin resume",
    "resume-from-checkpoint": "quoin resume",
    "load-checkpoint": "quoin resume",
}


def option(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """A dataclass field with a default, the sentence `--help` prints, and the range its value must lie in.

    Args:
        at_least: The least value that is allowed.
        at_most: The largest that is.
        above: A bound that is itself not allowed.
        below: The same from the other side.
    """
    bounds = {"at least": at_least, "at most": at_most, "above": above, "below": below}
    return field(default=default, metadata={"help": help, "bounds": {k: v for k, v in bounds.items() if v is not None}})


def default(value: Any, help: str | None = None) -> Any:
    """An option of a base class with another default; its range stays, and its help unless another is given.

    >>> @dataclass(frozen=True)
    ... class Base(ValidatedOptions):
    ...     lr: float = option(0.1, "the learning rate", above=0.0)
    >>> @dataclass(frozen=True)
    ... class Slow(Base):
    ...     lr: float = default(0.01)
    >>> Slow(lr=-1.0)
    Traceback (most recent call last):
    quoin.errors.UserError: --lr must be above 0.0, got -1.0
    """
    return _Default(value, help)


class _Default(typing.NamedTuple):
    value: Any
    help: str | None


@dataclass(frozen=True)
class ValidatedOptions:
    """Base of every options class: a value out of its range or of the wrong type is refused at construction."""

    def __init_subclass__(cls) -> None:
        """Each `default` becomes a field: the base's own, but for what changes. It runs before `dataclass` looks at the
        class."""
        for name, changed in [each for each in vars(cls).items() if isinstance(each[1], _Default)]:
            base = next(
                (each for kind in cls.__mro__[1:] if (each := getattr(kind, "__dataclass_fields__", {}).get(name))),
                None,
            )
            if base is None:
                raise TypeError(f"{cls.__name__}.{name}: no base class has this option; declare it with option(...)")
            metadata = base.metadata | ({"help": changed.help} if changed.help else {})
            setattr(cls, name, field(default=changed.value, metadata=metadata))

    def __post_init__(self) -> None:
        kinds = typing.get_type_hints(type(self))
        for each in dataclasses.fields(self):
            _check_field(each, kinds[each.name], getattr(self, each.name))


Options = TypeVar("Options", bound=ValidatedOptions)


def check_option(kind: type[ValidatedOptions], name: str, value: Any) -> None:
    """Raise if `value` can be no value of the option `name`, whatever the others are."""
    _check_field(kind.__dataclass_fields__[name], typing.get_type_hints(kind)[name], value)


def flag_name(field_name: str) -> str:
    """The flag of a field: `batch_size` is `--batch-size`."""
    return "--" + field_name.replace("_", "-")


def options_from_json(kind: type[Options], values: dict[str, Any], where: str) -> Options:
    """Options read back from a file; a name that the class does not know is an error, not a surprise later.

    Args:
        kind: The class of the options.
        where: What the file is called in the error.
    """
    names = {each.name for each in dataclasses.fields(kind)}
    for name in values:
        if name not in names:
            raise UserError(
                f"{where} has an option {format_value(name)} that this Quoin does not know: restore the file or "
                "train again"
            )
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    except UserError as mistake:
        raise UserError(f"{where}: {mistake}") from None


def _check_field(field: dataclasses.Field[Any], kind: Any, value: Any) -> None:
    _check_kind(field.name, kind, value)
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            _check_range(field.name, number, field.metadata.get("bounds", {}))


def takes_own_part(kind: Any) -> bool:
    """Whether an option of this type takes FILE.py:NAME."""
    return kind is OwnPart or OwnPart in typing.get_args(kind)


def choices_of(kind: Any) -> tuple[str, ...]:
    """The names among which an option of this type chooses, beside FILE.py:NAME where it takes that; none for others.

    >>> choices_of(typing.Literal["exact", "linear"] | OwnPart), choices_of(int)
    (('exact', 'linear'), ())
    """
    kinds = (kind, *typing.get_args(kind)) if takes_own_part(kind) or _may_be_none(kind) else (kind,)
    return next((typing.get_args(each) for each in kinds if typing.get_origin(each) is typing.Literal), ())


def _may_be_none(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def _check_own_part(name: str, kind: Any, value: Any) -> None:
    choices = choices_of(kind)
    if value in choices or (kind is OwnPart and value == ""):
        return
    if not isinstance(value, str):
        raise UserError(f"{flag_name(name)} expects text, got {format_value(value)}")
    if not is_code_reference(value):
        shown, hint = format_value(value), "name your own as FILE.py:NAME"
        if value.endswith(".py"):
            hint = f"add the name of what it defines, as {value}:NAME"
        elif choices:
            hint = f"{did_you_mean(value, choices)}; or {hint}"
        raise UserError(f"{flag_name(name)} is {shown}: {hint}")


def _check_kind(name: str, kind: Any, value: Any) -> None:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if takes_own_part(kind):
        _check_own_part(name, kind, value)
        return
    if _may_be_none(kind) and choices_of(kind):
        if value is not None:
            _check_kind(name, next(each for each in inner if each is not type(None)), value)
        return
    if origin is typing.Literal:
        if value not in inner:
            raise UserError(f"{flag_name(name)} is {format_value(value)}: {did_you_mean(str(value), map(str, inner))}")
        return
    if origin is tuple and typing.get_origin(inner[0]) is typing.Literal and isinstance(value, tuple):
        for item in value:
            _check_kind(name, inner[0], item)
        return
    if origin is tuple:
        fits = isinstance(value, tuple) and all(_is(inner[0], item) for item in value)
    elif inner and type(None) in inner:
        fits = value is None or any(_is(each, value) for each in inner if each is not type(None))
    else:
        fits = _is(kind, value)
    if not fits:
        raise UserError(f"{flag_name(name)} expects {_spoken(kind)}, got {format_value(value)}")


def _is(kind: Any, value: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _spoken(kind: Any) -> str:
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return {int: "a list of whole numbers", float: "a list of numbers"}.get(inner[0], "a list of texts")
    if type(None) in inner:
        kind = next(each for each in inner if each is not type(None))
    return {int: "a whole number", float: "a number", str: "text", bool: "true or false"}.get(kind, str(kind))


def _check_range(name: str, value: float, bounds: dict[str, float]) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{flag_name(name)} must be a finite number, got {value}")
    if abs(value) > _LARGEST[type(value)]:
        raise UserError(
            f"{flag_name(name)} is {format_value(value)}: expected a number of at most {_LARGEST[type(value)]} in size"
        )
    for words, bound in bounds.items():
        if not _FITS[words](value, bound):
            raise UserError(f"{flag_name(name)} must be {words} {bound}, got {format_value(value)}")
