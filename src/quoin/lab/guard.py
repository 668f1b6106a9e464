"""Who may talk to the lab, and about what: a wall around marimo's server, on every request and every websocket.

marimo's own server for several notebooks allows any origin and asks for no token. Here a request must name this host,
come from this page or from none, and carry the token that the command printed (once in the address, afterwards as a
cookie that no script can read). Of marimo's endpoints only those are passed on that a page in run mode uses: none that
runs code, reads files or edits notebooks.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

__all__ = ["Guard"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 12_000_000  # bytes of a request: a file of 5 MB in base64 and more
# What stands after a page's name in the addresses that its browser asks for.
_READS = re.compile(
    r"(?:|health|@file/[\w.-]+|(?:public-files-sw\.js|favicon\.ico|logo\.png|manifest\.json|apple-touch-icon\.png))"
)
_WRITES = re.compile(r"api/kernel/(?:set_model_value|set_ui_element_value|instantiate)")
_SOCKET = re.compile(r"ws")


class Guard:
    """The wall: an ASGI app around another.

    Args:
        hosts: What the Host header may say, with the port.
        pages: The names whose addresses are marimo's.
    """

    def __init__(self, app: App, *, token: str, hosts: Iterable[str], pages: Iterable[str]) -> None:
        self._app, self._token = app, token
        self._hosts = {host.lower() for host in hosts}
        self._pages = set(pages)
        port = next(iter(self._hosts)).rpartition(":")[2]
        self._cookie = f"quoin-lab-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        if problem := self._stranger(headers):
            await _refuse(scope, send, 403, problem)
        elif not self._has_cookie(headers):
            await self._let_in(scope, send)
        elif not self._asks_for_a_page(scope):
            await _refuse(scope, send, 404, "there is nothing here; all pages are at /")
        elif int(headers.get("content-length") or 0) > LARGEST_BODY:
            await _refuse(scope, send, 413, f"expected at most {LARGEST_BODY:,} bytes; send less")
        else:
            await self._app(scope, _bounded(receive), send)

    def _stranger(self, headers: dict[str, str]) -> str:
        if headers.get("host", "").lower() not in self._hosts:
            return "this address is not the lab's own; use the one that quoin lab printed"
        origin = headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self._hosts:
            return "requests from other pages are refused"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests from other pages are refused"
        return ""

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._token.encode())

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """A first visit: the token in the address becomes a cookie, and leaves the address."""
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        given = query.pop("token", "")
        allowed = scope["type"] == "http" and scope["method"] == "GET"
        if not (allowed and hmac.compare_digest(given.encode(), self._token.encode())):
            await _refuse(scope, send, 403, "the token is missing; open the address that quoin lab printed")
            return
        where = scope["path"] + (f"?{urlencode(query)}" if query else "")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 303, b"", [(b"location", _local(where)), (b"set-cookie", cookie.encode())])

    def _asks_for_a_page(self, scope: Scope) -> bool:
        name, slash, rest = scope["path"].lstrip("/").partition("/")
        if ".." in scope["path"]:
            return False
        if name not in self._pages:
            return scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if scope["type"] == "websocket":
            return bool(_SOCKET.fullmatch(rest))
        if scope["method"] in ("GET", "HEAD"):
            return not slash or bool(_READS.fullmatch(rest))
        return scope["method"] == "POST" and bool(_WRITES.fullmatch(rest))


def _local(path: str) -> bytes:
    # two slashes at its beginning would be another host's address
    return ("/" + path.lstrip("/\\")).encode("ascii", "ignore")


def _bounded(receive: Receive) -> Receive:
    """The same messages, until they are too many bytes together; then it is as if the sender had left."""
    got = 0

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b"")) if message["type"] == "http.request" else 0
        return {"type": "http.disconnect"} if got > LARGEST_BODY else message

    return bounded


async def _refuse(scope: Scope, send: Send, status: int, line: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": line})
        return
    await _answer(send, status, f"{line}\n".encode(), [(b"content-type", b"text/plain; charset=utf-8")])


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
