"""What a recipe of the user's own must have, in a file or in a package, checked before anything of it is used. Imports
no torch."""

import dataclasses
import inspect
import typing
from types import ModuleType, NoneType, UnionType
from typing import TYPE_CHECKING, Any

from quoin.errors import UserError, format_value
from quoin.options import ValidatedOptions, choices_of, flag_name, takes_own_part
from quoin.runs.run_config import RunConfig
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

if TYPE_CHECKING:
    from quoin.train import Task

__all__ = ["check_recipe_module", "check_task"]

_OPTIONAL = {"TARGET": Target, "MONITOR": Monitor}  # or None
_WORDS = {"NOTES": tuple, "KEYWORDS": tuple, "SUBJECT": str, "DATA": str, "GIVES_PROBABILITIES": bool}
_TYPES = "str, int, float, bool, OwnPart, a Literal of strings, tuple[T, ...] or T | None"


def check_recipe_module(module: ModuleType, shown: str) -> None:
    """Raise an error for what is missing or of another kind.

    Args:
        shown: What the recipe is called in the error.
    """
    for name, what in (("Options", "class Options"), ("build", "function build(options, device_context)")):
        if not callable(getattr(module, name, None)):
            raise UserError(
                f"{shown} has no {what}: a recipe is a Python file with a class Options and a function build; `quoin "
                "new FILE.py` writes one to start from"
            )
    for name, kind in _OPTIONAL.items():
        if not isinstance(value := getattr(module, name, None), (kind, NoneType)):
            raise UserError(f"{shown}: {name} is {format_value(value)}, expected a {kind.__name__}(...) or None")
    for name, kind in _WORDS.items():
        if hasattr(module, name) and not isinstance(value := getattr(module, name), kind):
            raise UserError(f"{shown}: {name} is {format_value(value)}, expected a {kind.__name__}; or leave it out")
    if not callable(getattr(module, "model", check_task)):
        raise UserError(f"{shown}: model is {format_value(module.model)}, expected a function of options and data info")
    _check_options(module.Options, shown)


def _check_options(kind: Any, shown: str) -> None:
    if not (isinstance(kind, type) and issubclass(kind, RunOptions)):
        raise UserError(
            f"{shown}: class Options lacks seed, patience and monitor, which the trainer needs: let it inherit from "
            "quoin.tasks.options.EpochOptions, or from SupervisedOptions there"
        )
    if "__dataclass_fields__" not in vars(kind) and inspect.get_annotations(kind):
        raise UserError(f"{shown}: class Options is no dataclass: write @dataclass(frozen=True) above it")
    ours = {each.name for each in dataclasses.fields(RunConfig)}
    try:
        types = typing.get_type_hints(kind)
    except (NameError, TypeError, SyntaxError) as error:
        raise UserError(f"{shown}: the type of an option cannot be read ({error}); mend it") from error
    for each in dataclasses.fields(kind):
        option = f"{shown}: the option {each.name}"
        if each.name in ours:
            raise UserError(f"{option} clashes with {flag_name(each.name)}, which every run has: choose another name")
        if each.default is dataclasses.MISSING:
            raise UserError(f'{option} has no default: write {each.name}: ... = option(DEFAULT, "help")')
        if not _is_option_type(types[each.name]):
            raise UserError(f"{option} is of type {format_value(types[each.name])}: expected {_TYPES}")
    try:
        epochs = kind().num_epochs
    except UserError as error:
        raise UserError(f"{shown}: a default of Options is refused: {error}") from None
    except NotImplementedError:
        epochs = None
    if not isinstance(epochs, int):
        raise UserError(
            f"{shown}: class Options has no num_epochs: let it inherit from quoin.tasks.options.EpochOptions, or give "
            "it a property num_epochs"
        )


def _is_option_type(kind: Any, *, inside: bool = False) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if takes_own_part(kind):
        return not inside and all(isinstance(each, str) for each in choices_of(kind))
    if origin is typing.Literal:
        return all(isinstance(each, str) for each in inner)
    if origin is tuple:
        return not inside and len(inner) == 2 and inner[1] is Ellipsis and _is_option_type(inner[0], inside=True)
    if origin in (typing.Union, UnionType):
        others = [each for each in inner if each is not NoneType]
        return not inside and len(others) == 1 and len(inner) == 2 and _is_option_type(others[0], inside=True)
    return kind in (str, int, float) or (kind is bool and not inside)


def check_task(task: Any, shown: str) -> "Task":
    """What `build` of a recipe gave, if it is a task."""
    from quoin.runs.kinds import MODULE, MULTIRUN, SWEEP
    from quoin.train import Task

    if not isinstance(task, Task):
        needed = ("kind", "batches", "data_info", "step", "evaluate", "state_dict", "load_state_dict", "panels")
        lacks = [] if task is None else [name for name in needed if not hasattr(task, name)]
        told = f"which has no {', '.join(lacks)}" if lacks else "and a run needs a task"
        raise UserError(
            f"{shown}: build gives {format_value(type(task).__name__)[1:-1]}, {told}: give back a task, such as "
            "tasks.Classification(...)"
        )
    if not isinstance(task.kind, str) or not 0 < len(task.kind) <= 80 or task.kind in (MODULE, MULTIRUN, SWEEP):
        raise UserError(f"{shown}: the task's kind is {format_value(task.kind)}, expected a word of at most 80 letters")
    return task


assert issubclass(RunOptions, ValidatedOptions), "so that what `_check_options` lets through checks its values"
