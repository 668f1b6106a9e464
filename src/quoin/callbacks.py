"""Types of callbacks for long computations, shared by all packages. Imports no torch."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from quoin.display import NotebookBar, in_notebook

PATIENCE = 2.0  # seconds before a notebook gets a bar: what ends sooner needs none

__all__ = ["Listener", "ProgressCallback", "SilentListener", "current_listener", "listen_with"]

ProgressCallback = Callable[[int, int], None]  # so much is done, of so much


class Listener:
    """Whoever is told what long work below has to say; this one prints notes to standard error, and shows a bar in a
    notebook alone."""

    def say(self, text: str) -> None:
        """Something that the user should know."""
        print(f"note: {text}", file=sys.stderr)

    def progress(self, label: str) -> AbstractContextManager[ProgressCallback]:
        """A progress bar for a piece of work that counts things."""
        if in_notebook():
            return nullcontext(NotebookBar(label, patience=PATIENCE).update)
        return nullcontext(lambda done, total: None)


class SilentListener(Listener):
    """Says nothing: of several processes that train together, the main one does."""

    def say(self, text: str) -> None:
        pass

    def progress(self, label: str) -> AbstractContextManager[ProgressCallback]:
        return nullcontext(lambda done, total: None)


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def current_listener() -> Listener:
    return _listener.get() or Listener()


@contextmanager
def listen_with(listener: Listener) -> Iterator[None]:
    """Let `listener` be told by all that is called inside."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
