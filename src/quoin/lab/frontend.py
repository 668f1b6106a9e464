"""marimo's pages, and the files of its front end.

Before a page is a page its browser asks for some 290 small files. marimo serves them through its whole server, anew
under every page's address, and makes the servers of all pages before the first is asked for. Here a page is made when
it is asked for, and the files come from one address that all pages share, so that a browser has them once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from quoin.lab.catalog import page_path
from quoin.lab.guard import App, Receive, Scope, Send

__all__ = ["ADDRESS", "Pages", "serve_file"]

ADDRESS = "/frontend"  # where a page looks for the files
SESSION_SECONDS = 60  # a session whose page was closed ends after them, and frees what it holds
# By name, not by the machine's own table: where that calls JavaScript text, no page runs.
KINDS = {
    ".css": "text/css",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".wasm": "application/wasm",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}


class Pages:
    """The pages of these names, each made when it is first asked for: an ASGI app."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._made: dict[str, App] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].lstrip("/").partition("/")[0]
        if name not in self._names:
            raise HTTPException(404)
        await self._page(name)(scope, receive, send)

    def _page(self, name: str) -> App:
        if name not in self._made:
            import marimo

            builder = marimo.create_asgi_app(
                quiet=True, include_code=False, session_ttl=SESSION_SECONDS, asset_url=ADDRESS
            )
            self._made[name] = builder.with_app(path=f"/{name}", root=str(page_path(name))).build()
        return self._made[name]


async def serve_file(request: Request) -> Response:
    """A file of marimo's front end; nothing else that is on the disk has an address."""
    name = request.path_params["name"]
    path = _files().get(name)
    if path is None:
        raise HTTPException(404)
    headers = {"X-Content-Type-Options": "nosniff"}
    if name.startswith("assets/"):  # a hash of its content is in the name
        headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=headers)


@cache
def _files() -> dict[str, Path]:
    from marimo._utils.paths import marimo_package_path

    root = Path(marimo_package_path()) / "_static"
    found = (each for folder in (root, root / "assets") for each in folder.iterdir() if each.suffix in KINDS)
    return {each.relative_to(root).as_posix(): each for each in found}
