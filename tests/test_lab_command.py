"""`quoin lab` as a process: the port, the host and the editor that it was asked for, each behind its token; the
pictures of its index."""

import asyncio
import contextlib
import http.cookiejar
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from lab_browser import begun, living, outlived, served
from quoin.lab import cards
from quoin.lab.catalog import page_path
from quoin.lab.index_page import index_html
from quoin.plot.palette import DARK, LIGHT


def free_port(host):
    with socket.socket() as sock:
        sock.bind((host, 0))
        return sock.getsockname()[1]


def fetch(url, *, jar=None, timeout=60, **headers):
    """Status, address and text of what stands there, redirections followed; `jar` keeps its cookies."""
    handlers = [urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar() if jar is None else jar)]
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout) as answer:
            return answer.status, answer.url, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.url, error.read().decode()


def _wait_for(url):
    parts = urllib.parse.urlsplit(url)
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection((parts.hostname, parts.port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("nobody listens")


@contextlib.contextmanager
def editor(folder, *words):
    """`quoin lab --edit attention` in a folder; gives the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quoin", "lab", "--edit", "attention", "--no-open", *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    try:
        lines = iter(process.stdout.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        _wait_for(url)  # it says where it will be a moment before it is there
        yield url
    finally:
        os.killpg(process.pid, 2)  # as Ctrl-C does: to the command and to the editor
        process.wait(60)
        process.stdout.close()
        assert process.returncode == 0


# ---- where it serves ---------------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("host", "at"), [("127.0.0.2", "127.0.0.2"), ("0.0.0.0", "127.0.0.1"), ("localhost", "localhost")]
)
def test_it_serves_where_it_was_told_and_only_with_the_token(host, at):
    port = free_port(host)
    with served("--host", host, "--port", str(port)) as url:
        assert url.startswith(f"http://{at}:{port}/?token=")
        root = url.partition("?")[0]
        assert fetch(root)[0] == 403
        assert fetch(f"{root}?token=guessed")[0] == 403
        jar = http.cookiejar.CookieJar()
        status, address, text = fetch(url, jar=jar)
        assert (status, address) == (200, root)
        assert "<h1>The lab</h1>" in text
        assert fetch(root, jar=jar)[0] == 200
        assert fetch(root, jar=jar, Host="evil.example")[0] == 403
        assert fetch(root, jar=jar, Origin="http://evil.example")[0] == 403


@pytest.mark.deep
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_no_process_behind(how, tmp_path):
    process, url = begun(tmp_path)
    with contextlib.suppress(TimeoutError):  # it begins to draw all pictures of the index
        fetch(url.replace("/?", "/cards/gallery.svg?"), timeout=5)
    assert len(living(process.pid)) >= 2
    process.send_signal(how)
    assert process.wait(60) == 0
    process.stdout.close()
    assert outlived(process.pid) == []


@pytest.mark.deep
def test_a_port_that_is_taken_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = [sys.executable, "-m", "quoin", "lab", "--no-open", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "in use" in done.stderr


@pytest.mark.deep
def test_the_editor_opens_the_copy_behind_its_token(tmp_path):
    installed = page_path("attention").read_bytes()
    port = free_port("127.0.0.1")
    with editor(tmp_path, "--port", str(port)) as url:
        assert f":{port}" in url
        root, token = re.fullmatch(r"(http://[^?]+)\?access_token=(\S{16,})", url).groups()
        assert "/auth/login" in fetch(root)[1]
        assert "/auth/login" in fetch(f"{root}?access_token=guessed")[1]
        status, address, text = fetch(f"{root}?access_token={token}")
        assert status == 200
        assert "/auth/login" not in address
        assert "attention.py" in text
    assert (tmp_path / "attention.py").read_bytes() == installed == page_path("attention").read_bytes()
    # what was changed is opened as it is
    (tmp_path / "attention.py").write_text(installed.decode().replace("Attention ·", "Mine ·"))
    with editor(tmp_path, "--host", "0.0.0.0", "--port", str(port)) as url:
        elsewhere = f"http://127.0.0.3:{port}"  # of this machine, but not the address that it serves on by itself
        assert "/auth/login" in fetch(elsewhere)[1]
        assert "<title>Mine ·" in fetch(f"{elsewhere}?{urllib.parse.urlsplit(url).query}")[2]
    assert page_path("attention").read_bytes() == installed


# ---- the pictures of the index -----------------------------------------------------------------------------------


def colors(svg):
    return LIGHT.model in svg, DARK.model in svg


@pytest.mark.parametrize("name", ["attention", "errata"])
def test_a_card_is_a_document_of_its_own_in_light_and_dark(name):
    svg = cards.card_svg(name)
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert colors(svg) == (True, True)
    assert ("as printed" in svg or "var(--printed)" in svg) == (name == "errata")
    assert not re.search(r'(?:href|src)="(?!data:)', svg)


def test_every_card_has_its_picture():
    shown = re.findall(r'<img src="cards/([\w-]+)\.svg"', index_html())
    assert shown == list(cards.CARDS)


def test_only_cards_are_drawn():
    assert asyncio.run(cards.card("../../secret")) is None
    assert cards._plotting is None


@pytest.mark.deep
def test_cards_are_drawn_once_and_kept_for_this_version_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path))
    (tmp_path / "stills" / "older").mkdir(parents=True)
    first = asyncio.run(cards.card("autodiff"))
    assert first is not None
    assert first.decode() == cards.card_svg("autodiff")
    cards._plotting.wait(300)
    kept = sorted(path.name for path in cards.card_folder().iterdir())
    assert kept == sorted(f"{name}.svg" for name in cards.CARDS)
    assert [path.name for path in (tmp_path / "stills").iterdir()] == [cards.card_folder().name]
    for path in cards.card_folder().iterdir():
        ElementTree.parse(path)
    before = {path: path.stat().st_mtime_ns for path in cards.card_folder().iterdir()}
    cards.draw(cards.card_folder())
    assert {path: path.stat().st_mtime_ns for path in Path(cards.card_folder()).iterdir()} == before
