"""A lab that serves, and a browser that looks at it: the pages' tests use them."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from quoin.bench.lab_page import CHROMIUM, served

__all__ = ["CHROMIUM", "OVERLAPS", "UP", "Watch", "address", "begun", "living", "outlived", "served"]

# What marimo's own page says of its pictures and settings; everything else in the console is ours.
MARIMO_SAYS = re.compile(r"was preloaded using link preload|Project configuration overrides|\[Metric [A-Z]+\]")
UP = ".head"

OVERLAPS = (Path(__file__).parent / "lab_overlaps.js").read_text(encoding="utf-8")


def address(url: str, path: str) -> str:
    """The address of another page of the same lab."""
    root, token = re.fullmatch(r"(http://[^/]+/).*token=(.+)", url).groups()  # type: ignore[union-attr]
    return f"{root}{path}{'&' if '?' in path else '?'}token={token}"


def begun(cache: Path) -> tuple[subprocess.Popen, str]:
    """A lab at the head of a group of processes, for a test that ends it, and its address."""
    words = [sys.executable, "-m", "quoin", "lab", "--no-open"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "QUOIN_CACHE": str(cache)}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    return process, re.search(r"http://\S+", process.stdout.readline())[0]


def living(leader: int) -> list[str]:
    """The processes of a group that live, each with its command."""
    listed = subprocess.run(["ps", "-eo", "pgid,stat,args"], capture_output=True, text=True).stdout.splitlines()[1:]
    return [line for line in listed if line.split()[0] == str(leader) and "Z" not in line.split()[1]]


def outlived(leader: int, seconds: float = 30.0) -> list[str]:
    """The processes of a group that still live after this time. Python's own beside its workers end when they find
    their parent gone, and on a busy machine that is not at once."""
    end = time.monotonic() + seconds
    while living(leader) and time.monotonic() < end:
        time.sleep(0.05)
    return living(leader)


class Watch:
    """What a page asks for and says, kept to be looked at."""

    def __init__(self, page):
        self.said, self.outside = [], []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", self._request)

    def _console(self, message):
        if message.type in ("error", "warning", "log", "info") and not MARIMO_SAYS.search(message.text):
            self.said.append(f"{message.type}: {message.text}")

    def _request(self, request):
        if not re.match(r"(http|ws)://127\.0\.0\.1:\d+/|data:|blob:", request.url):
            self.outside.append(request.url)
