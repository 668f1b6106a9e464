"""The lab's guard and server: who is let in, what is passed on, what the command line makes of its words."""

import asyncio
from pathlib import Path

import pytest

from quoin.cli import main
from quoin.errors import UserError
from quoin.lab.catalog import PAGES, page_path
from quoin.lab.guard import LARGEST_BODY, Guard
from quoin.lab.index_page import index_html
from quoin.lab.server import find_address

TOKEN = "right-token"
HOST = "127.0.0.1:2718"
COOKIE = ("cookie", f"quoin-lab-2718={TOKEN}")


async def inner(scope, receive, send):
    """Stands for marimo: says which path reached it, and how many bytes."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    got, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the sender left")
        got, more = got + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{scope['path']} {got}".encode()})


def ask(path="/", *headers, host=HOST, method="GET", kind="http", query="", body=(b"",)):
    """The status (or what became of a websocket), the headers and the body of an answer."""
    sent, pieces = [], list(body)

    async def receive():
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode()) for key, value in (("host", host), *headers)],
        "method": method,
    }
    guard = Guard(inner, token=TOKEN, hosts=[HOST, "localhost:2718"], pages=["attention"])
    asyncio.run(guard(scope, receive, send))
    first = sent[0]
    if kind == "websocket":
        return first["type"], {}, b""
    return first["status"], dict(first["headers"]), sent[-1].get("body", b"")


def test_the_token_opens_the_door_once_and_leaves_the_address():
    status, headers, _ = ask("/attention/", query=f"token={TOKEN}&at=ask")
    assert (status, headers[b"location"]) == (303, b"/attention/?at=ask")
    assert TOKEN.encode() in headers[b"set-cookie"]
    assert b"HttpOnly" in headers[b"set-cookie"]
    assert b"SameSite=Strict" in headers[b"set-cookie"]
    assert ask("/attention/", COOKIE)[0] == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/"])
def test_the_way_in_leads_nowhere_else(path):
    status, headers, _ = ask(path, query=f"token={TOKEN}")
    assert status == 303
    assert headers[b"location"].startswith(b"/e")


@pytest.mark.parametrize(
    ("path", "headers", "given"),
    [
        ("/", (), {}),
        ("/", (), {"query": "token=wrong"}),
        ("/", (("cookie", "quoin-lab-2718=wrong"),), {}),
        ("/", (("cookie", "quoin-lab-2718=é"),), {}),
        ("/", (COOKIE,), {"host": "evil.example"}),
        ("/", (COOKIE,), {"host": "127.0.0.1:80"}),
        ("/", (COOKIE, ("origin", "http://evil.example")), {}),
        ("/", (COOKIE, ("origin", "https://127.0.0.1:2718")), {}),
        ("/", (COOKIE, ("origin", "null")), {}),
        ("/", (COOKIE, ("sec-fetch-site", "cross-site")), {}),
        ("/attention/api/kernel/set_model_value", (), {"method": "POST", "query": f"token={TOKEN}"}),
    ],
)
def test_strangers_are_refused(path, headers, given):
    status, _, body = ask(path, *headers, **given)
    assert status == 403
    assert body.count(b"\n") == 1


def test_our_own_pages_are_no_strangers():
    assert ask("/", COOKIE, ("origin", "http://localhost:2718"), ("sec-fetch-site", "same-origin"))[0] == 200


@pytest.mark.parametrize(
    ("path", "method", "passed"),
    [
        ("/attention/", "GET", True),
        ("/attention/assets/index-a1.js", "GET", True),
        ("/attention/@file/12-x.js", "GET", True),
        ("/attention/api/kernel/set_model_value", "POST", True),
        ("/attention/api/kernel/run", "POST", False),
        ("/attention/api/kernel/save", "POST", False),
        ("/attention/api/files/list_files", "POST", False),
        ("/attention/api/terminal/ws", "GET", False),
        ("/attention/public/secret.txt", "GET", False),
        ("/attention/assets/../../secret", "GET", False),
        ("/attention/", "DELETE", False),
        ("/", "POST", False),
    ],
)
def test_only_what_a_page_needs_reaches_marimo(path, method, passed):
    assert ask(path, COOKIE, method=method)[0] == (200 if passed else 404)


def test_websockets_are_guarded_too():
    assert ask("/attention/ws", COOKIE, kind="websocket")[0] == "websocket.accept"
    assert ask("/attention/ws", kind="websocket")[0] == "websocket.close"
    assert ask("/attention/ws", COOKIE, ("origin", "http://evil.example"), kind="websocket")[0] == "websocket.close"
    assert ask("/attention/terminal/ws", COOKIE, kind="websocket")[0] == "websocket.close"


def test_uploads_are_bounded_whatever_they_say_of_themselves():
    path = "/attention/api/kernel/set_model_value"
    told = ("content-length", str(LARGEST_BODY + 1))
    assert ask(path, COOKIE, told, method="POST")[0] == 413
    half = b"x" * (LARGEST_BODY // 2 + 1)
    with pytest.raises(ConnectionError):
        ask(path, COOKIE, method="POST", body=[half, half])
    assert ask(path, COOKIE, method="POST", body=[half])[0] == 200


# ---- words of the command ----------------------------------------------------------------------------------------


def test_words_lead_to_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mlp-1").mkdir(parents=True)
    assert find_address([]) == ("", [])
    assert find_address(["attention"]) == ("attention/", [])
    assert find_address(["errata"]) == ("errata/", [])
    assert find_address(["11"]) == ("attention/", [])
    assert find_address(["Z11.15"]) == ("attention/?at=why-the-root", [])
    assert find_address(["weight", "decay"]) == ("?q=weight%20decay", [])
    assert find_address(["runs/mlp-1"]) == ("runs/", [Path("runs/mlp-1")])
    for words in (["nosuchthing"], ["runs/none"], ["runs/mlp-1", "attention"]):
        with pytest.raises(UserError) as error:
            find_address(words)
        assert "\n" not in str(error.value)


def test_a_page_is_copied_and_never_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "--copy", "attention"]) == 0
    assert (tmp_path / "attention.py").read_bytes() == page_path("attention").read_bytes()
    (tmp_path / "attention.py").write_text("mine")
    assert main(["lab", "--copy", "attention"]) == 2
    assert (tmp_path / "attention.py").read_text() == "mine"
    assert main(["lab", "--copy", "atention"]) == 2
    assert "attention" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--port", "99999"], ["--host", "no such host"], ["--copy", "mlp", "attention"]])
def test_what_cannot_be_served_is_one_line(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["lab", *words, "--no-open"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_index_has_every_page_and_item_and_escapes_what_it_is_asked():
    page = index_html("<script>alert(1)</script>")
    assert "<script>" not in page
    assert all(f'href="{name}/"' in page for name in PAGES)
    assert index_html().count("<li>") > 641
    assert "huffman_code" in index_html("huffman")
    assert 'href="attention/?item=Z11.7"' in index_html("z11.7")
