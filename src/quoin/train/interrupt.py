"""Ctrl-C and SIGTERM as a polite request: finish this step, save, say how to go on. A second Ctrl-C stops at once.

Work inside a step that may take minutes, such as compiling it, is stopped at once (`interrupted_at_once`): the step is
then not made, and the run goes on from its last checkpoint.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["Interrupt", "StoppedInside", "interrupted_at_once"]


REMIND_SECONDS = 1.0  # after which a request that was not heard is made again


class StoppedInside(KeyboardInterrupt):
    """Somebody asked to stop, and the step that was being made is lost."""


class Interrupt:
    """While entered, `asked` is whether somebody wants the run to stop; a step is never cut in half."""

    current: "Interrupt | None" = None  # the one that listens

    def __init__(self) -> None:
        self.asked = False
        self.at_once = False  # whether a request raises `StoppedInside` where the program is
        self._before: dict[int, object] = {}
        self._outer: Interrupt | None = None
        self._alarm: tuple[Any] | None = None  # what SIGALRM did before, while there are reminders

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():  # Python lets only the main thread listen
            # What whoever started the process told it to ignore, as a shell does with the Ctrl-C of its background
            # jobs, stays ignored.
            heard = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._listen) for number in heard}
            outer = [getattr(handler, "__self__", None) for handler in self._before.values()]
            self.asked = any(isinstance(each, Interrupt) and each.asked for each in outer)
            self._outer, Interrupt.current = Interrupt.current, self
        return self

    def __exit__(self, *error: object) -> None:
        self.heard()
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]
        if Interrupt.current is self:
            Interrupt.current = self._outer

    def stay(self) -> None:
        """Go on listening after the end: the process ends by itself, and says why before it does."""
        self._before = {}

    def _listen(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
        if self.at_once:
            self._remind_until_heard()
            raise StoppedInside

    def _remind_until_heard(self) -> None:
        """Ask again and again from now on: where the program is inside a destructor, or in what is called for an object
        that is gone, Python drops whatever is raised."""
        if hasattr(signal, "setitimer") and self._alarm is None:
            self._alarm = (signal.signal(signal.SIGALRM, self._remind),)
            signal.setitimer(signal.ITIMER_REAL, REMIND_SECONDS, REMIND_SECONDS)

    def _remind(self, number: int, frame: FrameType | None) -> None:
        if self.at_once:
            raise StoppedInside

    def heard(self) -> None:
        """Nothing is to be stopped at once any more."""
        self.at_once = False
        if self._alarm is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._alarm[0])
            self._alarm = None


@contextlib.contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Inside, a request to stop raises `StoppedInside` at the next moment that Python can; so does one that came just
    before. Nothing changes where nobody listens, or in another thread than the main one."""
    listening = Interrupt.current
    if listening is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    listening.at_once = True
    try:
        with _unseen_where_dropped():
            if listening.asked:
                raise StoppedInside
            yield
    finally:
        listening.heard()


@contextlib.contextmanager
def _unseen_where_dropped() -> Iterator[None]:
    """Inside, Python does not print a `StoppedInside` that it drops: it is raised again."""
    before = sys.unraisablehook

    def show(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, StoppedInside):
            before(unraisable)

    sys.unraisablehook = show
    try:
        yield
    finally:
        sys.unraisablehook = before
