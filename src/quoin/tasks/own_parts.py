"""Parts of the user's own, by FILE.py:NAME: loaded, called, and every mistake in them told in one line."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

import quoin
from quoin.errors import UserError
from quoin.own_code import load_object

__all__ = ["OwnCallable", "check_output", "load_callable", "make_with", "own_seed", "parameters_of"]

_FOREIGN = tuple(str(Path(each.__file__ or "").parent) for each in (quoin, torch))  # whose lines tell the user nothing


class OwnCallable(NamedTuple):
    """A function or class of the user's, and what it should be."""

    call: Callable[..., Any]
    reference: str  # FILE.py:NAME, as the option has it
    expected: str  # such as "a loss, my_loss(outputs, targets)"

    def wrong(self, got: str) -> UserError:
        """What to raise where it is not what was expected."""
        return UserError(f"{self.reference}: expected {self.expected}; got {got}")

    def refused(self, does: str) -> UserError:
        """What to raise where it is of the right kind and does what it should not; `does` says what to do."""
        return UserError(f"{self.reference} {does}")

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Inside, an error of the user's code is one line."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise self.wrong(f"{what[:100]}{_line(error.__traceback__)}") from error

    def binds(self, *given: object) -> bool:
        """Whether it can be called so; what has no signature, such as a builtin, is called to see."""
        try:
            inspect.signature(self.call).bind(*given)
        except TypeError:
            return False
        except ValueError:
            return True
        return True

    def takes(self, name: str) -> bool:
        """Whether it takes an argument of this name."""
        parameters = parameters_of(self.call)
        return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def load_callable(reference: str, expected: str) -> OwnCallable:
    """What `FILE.py:NAME` names, if it can be called."""
    found = load_object(reference, expected)
    own = OwnCallable(found, reference, expected)
    if not callable(found):
        raise own.wrong(f"{type(found).__name__}, which cannot be called")
    return own


def parameters_of(call: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Its parameters by name; none of a builtin without a signature."""
    try:
        return inspect.signature(call).parameters
    except ValueError:
        return {}


def make_with(own: OwnCallable, offered: dict[str, Any]) -> nn.Module:
    """An object of the user's class, which is made with those of the offered arguments that it names."""
    if not isinstance(own.call, type) or not issubclass(own.call, nn.Module):
        raise own.wrong(f"{getattr(own.call, '__name__', type(own.call).__name__)}, which is no class of nn.Module")
    named = {name: value for name, value in offered.items() if name in parameters_of(own.call)}
    missing = [
        name
        for name, each in parameters_of(own.call).items()
        if name not in named and each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if missing:
        may = f"may take {', '.join(offered)}" if offered else "gets no arguments"
        raise own.refused(f"is made with {missing[0]}, but {may}: give {missing[0]} a default")
    with own.told():
        return own.call(**named)


def check_output(own: OwnCallable, output: object, shape: tuple[int, ...], called_with: str) -> Shaped[Tensor, "..."]:
    """A tensor of finite floating-point numbers of this shape, through which gradients flow."""
    if not isinstance(output, Tensor):
        raise own.wrong(f"{type(output).__name__} for {called_with}, which is no tensor")
    if tuple(output.shape) != shape:
        raise own.wrong(f"shape {tuple(output.shape)} for {called_with}, expected {shape}")
    if not output.is_floating_point():
        raise own.wrong(f"{output.dtype} for {called_with}, expected floating-point numbers")
    if not output.isfinite().all():
        raise own.refused(f"gives numbers that are not finite for {called_with}: mend it")
    if not output.requires_grad:
        raise own.refused("gives no gradient, its output is detached: compute it with torch from its arguments")
    return output


@contextlib.contextmanager
def own_seed(seed: int) -> Iterator[None]:
    """Inside, torch's own generator starts from `seed`; it goes on outside as if nothing had been sampled."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        yield


def _line(at: TracebackType | None) -> str:
    """The last line of the user's on the way to an error."""
    found = ""
    while at is not None:
        path = at.tb_frame.f_code.co_filename
        if not path.startswith(_FOREIGN):
            found = f" ({Path(path).name}, line {at.tb_lineno})"
        at = at.tb_next
    return found
