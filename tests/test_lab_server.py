"""The lab's guard and server: who is let in, what is passed on, what the command line makes of its words."""

import asyncio
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from quoin.cli import main
from quoin.errors import UserError
from quoin.lab.catalog import PAGES, page_path
from quoin.lab.frontend import ADDRESS
from quoin.lab.guard import LARGEST_BODY, Guard
from quoin.lab.index_page import index_html
from quoin.lab.server import _listening, build_app, find_address

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


def ask(path="/", *headers, host=HOST, method="GET", kind="http", query="", body=(b"",), app=None):
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
    asyncio.run((app or guard)(scope, receive, send))
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
        ("/attention/assets/index-a1.js", "GET", False),
        ("/attention/@file/12-x.js", "GET", True),
        ("/attention/public-files-sw.js", "GET", True),  # a worker that every page of marimo's asks for
        ("/attention/favicon.ico", "GET", True),
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


# ---- files and pages ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab():
    return build_app(token=TOKEN, hosts=[HOST])


def test_a_page_names_files_that_are_there_and_may_be_kept(lab):
    status, _, body = ask("/attention/", COOKIE, app=lab)
    assert status == 200
    named = set(re.findall(r'(?:src|href)="([^"#]+)"', body.decode()))
    files = {each for each in named if not each.startswith(("data:", "{{"))}
    assert len(files) > 50
    assert all(each.startswith(f"{ADDRESS}/") for each in files)
    for name in sorted(files):
        status, headers, content = ask(name, COOKIE, app=lab)
        assert (status, bool(content)) == (200, True), name
        assert (b"immutable" in headers.get(b"cache-control", b"")) == ("/assets/" in name)
        assert headers[b"content-type"].startswith(b"text/javascript") or not name.endswith(".js")


@pytest.mark.parametrize(
    "path", ["", "/", "/index.html", "/assets/", "/assets/none.js", "/assets/../index.html", "//etc/passwd", "/%2e%2e"]
)
def test_of_the_disk_only_the_files_of_the_front_end_are_served(path, lab):
    assert ask(f"{ADDRESS}{path}", COOKIE, app=lab)[0] == 404


def test_the_files_are_behind_the_guard_too(lab):
    assert ask(f"{ADDRESS}/favicon.ico", app=lab)[0] == 403
    assert ask(f"{ADDRESS}/favicon.ico", COOKIE, app=lab)[0] == 200


def test_a_page_that_is_not_there_is_told(lab):
    assert ask("/nosuchpage/", COOKIE, app=lab)[::2] == (404, b"there is nothing here; all pages are at /\n")


def test_small_answers_are_sent_at_once():
    """asyncio sees to it where a socket says that it is TCP; else an answer in two pieces takes 40 ms."""
    with _listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted = listening.accept()[0]
        getattr(asyncio.base_events, "_set_nodelay")(accepted)  # noqa: B009 (no stub names it)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        accepted.close()


def test_nothing_slow_is_imported_before_the_lab_is_there():
    body = (
        "import sys, quoin.lab.server as lab; lab.build_app(token='t', hosts=['h:1']); lab.find_address(['Z11.15']); "
        "print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", body], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert not {"torch", "marimo", "sklearn"} & set(found)


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
