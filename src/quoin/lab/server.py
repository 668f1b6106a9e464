"""The lab's server: the pages behind their guard, on loopback unless the user says otherwise."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from quoin import notes
from quoin.errors import UserError, did_you_mean, format_value
from quoin.lab import cards
from quoin.lab.cards import card
from quoin.lab.catalog import EXTRA_PAGES, PAGES, page_path
from quoin.lab.exhibit_index import listed_exhibits
from quoin.lab.guard import App, Guard
from quoin.lab.index_page import index_html, page_of_area

__all__ = ["build_app", "find_address", "serve"]

DEFAULT_PORT = 2718
LOOPBACK = "127.0.0.1"


def build_app(*, token: str, hosts: Sequence[str], runs: Sequence[Path] = ()) -> App:
    """The pages, the index and the guard as one ASGI app.

    Args:
        hosts: What the Host header may say, with the port.
        runs: The run folders that the page of runs may read, and no others.
    """
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Mount, Route

    from quoin.lab import frontend
    from quoin.lab.parts.open_runs import set_runs

    names = set_runs(runs)
    served = [name for name in (*PAGES, *EXTRA_PAGES) if page_path(name).exists()]

    async def index(request: Request) -> Response:
        query = request.query_params.get("q", "")[:100]
        return HTMLResponse(index_html(query, "search" in request.query_params, names))

    async def picture(request: Request) -> Response:
        found = await card(request.path_params["name"])
        if found is None:
            return PlainTextResponse("there is no such picture\n", 404)
        return Response(found, media_type="image/svg+xml")

    async def nothing(request: Request, error: Exception) -> Response:
        return PlainTextResponse("there is nothing here; all pages are at /\n", 404)

    routes = [
        Route("/", index),
        Route("/cards/{name}.svg", picture),
        Route(f"{frontend.ADDRESS}/{{name:path}}", frontend.serve_file),
        Mount("/", frontend.Pages(served)),
    ]
    app = Starlette(routes=routes, exception_handlers={404: nothing})
    return Guard(app, token=token, hosts=hosts, pages=served)


def find_address(words: Sequence[str]) -> tuple[str, list[Path]]:
    """What the words of the command name: the address of a page below the root, and the runs to open.

    A page by its name, an id of the notes, run folders, or any other words: those are searched for.
    """
    runs = [Path(word) for word in words if _is_folder(word)]
    if runs:
        if strange := [word for word in words if not _is_folder(word)]:
            raise UserError(f"expected run folders, got {format_value(strange[0])}; name folders only, or no folder")
        return "runs/", runs
    word = " ".join(words)
    if not word:
        return "", []
    if word in PAGES or word in EXTRA_PAGES:
        return f"{word}/", []
    if any(mark in word for mark in "/\\"):
        raise UserError(f"expected a page, an id or a run folder, got {format_value(word)}, which is no folder here")
    entries = {entry.id.lower(): entry for entry in notes.entries()}
    if entry := entries.get(word.lower()):
        return _item_address(entry), []
    if word.isdecimal() and (page := page_of_area(int(word))):
        return f"{page.name}/", []
    if not notes.search(word):
        raise UserError(
            f"expected a page, an id, a word or a run folder, got {format_value(word)}; {did_you_mean(word, PAGES)}"
        )
    return f"?q={quote(word)}", []


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _item_address(entry: notes.Entry) -> str:
    """Where an item is: at the exhibit that names it, else among the rest of its area."""
    page = page_of_area(entry.area)
    if page is None:
        return f"?q={quote(entry.id)}"
    for exhibit in listed_exhibits():
        if exhibit.page == page.name and entry.id in exhibit.ids:
            return f"{page.name}/?at={exhibit.slug}"
    return f"{page.name}/?item={quote(entry.id)}"


def serve(
    address: str, runs: Sequence[Path], *, host: str = LOOPBACK, port: int = 0, open_browser: bool = True
) -> None:
    """Serve until Ctrl-C; say where, and open it. Ends the process."""
    import uvicorn

    with _listening(host, port) as sock:
        port = sock.getsockname()[1]
        token = secrets.token_urlsafe(24)
        names = [host, *(("localhost", LOOPBACK) if host in (LOOPBACK, "localhost", "0.0.0.0") else ())]
        app = build_app(token=token, hosts=[f"{name}:{port}" for name in names], runs=runs)
        shown = LOOPBACK if host == "0.0.0.0" else host
        url = f"http://{shown}:{port}/{address}"
        url += f"{'&' if '?' in address else '?'}token={token}"
        print(f"The lab is at {url}\nCtrl-C ends it.", flush=True)
        threading.Thread(target=_import_torch, daemon=True).start()
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [url]).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
        # uvicorn raises the signal that ended it once more: by itself it would end us before our own processes.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                server.run(sockets=[sock])
        finally:
            _end_workers()
    # The kernels of pages that are open are threads of marimo's that Python would wait for, for ever; they hold nothing
    # that is to be saved.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _import_torch() -> None:
    """The pages' first need, and most of the time until the first one is up."""
    import quoin.lab.parts.page
    import quoin.layers  # noqa: F401


def _end_workers() -> None:
    from quoin.lab.parts import proofs, trained

    cards.stop()
    proofs.shutdown()
    trained.stop_all()


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens on the port; on the usual one, or where that is taken on any, if none is given."""
    for choice in [port] if port else [DEFAULT_PORT, 0]:
        # Named as TCP, for only then asyncio sends small answers at once; else each waits 40 ms for the browser's word.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, choice))
            sock.listen(128)  # a browser that is quicker than the server waits instead of being refused
        except (OSError, UnicodeError) as error:
            sock.close()
            if port or choice == 0:
                reason = getattr(error, "strerror", None) or str(error)
                raise UserError(
                    f"expected a free port on {format_value(host)}, got {port}: {reason}; choose another"
                ) from None
            continue
        with sock:
            yield sock
        return
