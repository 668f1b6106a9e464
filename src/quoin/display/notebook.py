"""A progress bar in a notebook: one output that is written anew, by the kernel's own messages and without widgets."""

import html
import sys
import time
from typing import Any

__all__ = ["NotebookBar", "in_notebook", "tell"]


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: only then has IPython been imported, with a kernel in it."""
    module: Any = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return getattr(shell, "kernel", None) is not None


def tell(line: str) -> None:
    """A remark on what is being done: on stderr, which a notebook would show as an error; there under its cell."""
    if not in_notebook():
        print(line, file=sys.stderr)
        return
    from IPython.display import display

    display({"text/plain": line, "text/html": f"<small>{html.escape(line)}</small>"}, raw=True)


class NotebookBar:
    """A bar under the cell that runs; drawn for the first time after `patience` seconds, for what ends sooner needs
    none."""

    def __init__(self, label: str, *, patience: float = 0.0) -> None:
        self.label = label
        self._handle: Any = None
        self._began, self._patience = time.perf_counter(), patience
        self._last: tuple[float, float, str] | None = None

    def update(self, done: float, total: float, text: str = "") -> None:
        """So much is done, of so much; `text` stands behind the bar."""
        shown = (done, total, text)
        if shown == self._last or (self._handle is None and time.perf_counter() - self._began < self._patience):
            return
        from IPython.display import HTML, display

        self._last = shown
        page = HTML(self._html(*shown))
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def _html(self, done: float, total: float, text: str) -> str:
        seconds = time.perf_counter() - self._began
        counted = f"{done:g}/{total:g}  {seconds:.0f} s  {text}".rstrip()
        bar = f'<progress value="{done:g}" max="{max(total, 1):g}"></progress>'
        return f"<div><span>{html.escape(self.label)}</span> {bar} <small>{html.escape(counted)}</small></div>"
