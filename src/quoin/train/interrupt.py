"""Ctrl-C and SIGTERM as a polite request: finish this step, save, say how to go on. A second Ctrl-C stops at once."""

import signal
import threading
from types import FrameType

__all__ = ["Interrupt"]


class Interrupt:
    """While entered, `asked` is whether somebody wants the run to stop; a step is never cut in half."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():  # Python lets only the main thread listen
            # What whoever started the process told it to ignore, as a shell does with the Ctrl-C of its background
            # jobs, stays ignored.
            heard = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._listen) for number in heard}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _listen(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
