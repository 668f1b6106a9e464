"""The benchmark `lab`: from the start of `quoin lab` to a page that is up, and from a slider to its new picture, in a
real browser (playwright with the system's chromium).

A repeat is a fresh lab, opened in a fresh browser. The figures are of all its moves together: seconds until the first
picture stands, and milliseconds from a key on a slider until the picture that answers it was inserted.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from quoin.bench.worker import Repeats

__all__ = ["CHROMIUM", "page", "served"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGE, MOVES = "attention", 40
# The time of a key, and the time at which the stage says that a newer picture is shown: both on the browser's clock.
MOVE = """
(stage) => new Promise((resolve) => {
  const began = performance.now(), before = stage.dataset.shown;
  const seen = new MutationObserver(() => {
    if (stage.dataset.shown !== before) { seen.disconnect(); resolve(performance.now() - began); }
  });
  seen.observe(stage, { attributes: true });
  const slider = stage.closest('.exhibit').querySelector('input[type=range]');
  slider.value = Number(slider.value) + (Number(slider.value) >= Number(slider.max) ? -1 : 1);
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})
"""


@contextmanager
def served(*words: str, cache: str = "") -> Iterator[str]:
    """A lab in a process of its own; gives its address, token included."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if cache:
        environment["QUOIN_CACHE"] = cache
    process = subprocess.Popen(
        [sys.executable, "-m", "quoin", "lab", *words, "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            process.kill()
            raise RuntimeError(f"expected the lab's address, got {line!r}: {process.communicate()[1]}")
        yield found[0]
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def page(repeats: Repeats) -> dict[str, float]:
    """A page opened and its sliders moved, as often as there are repeats."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise ModuleNotFoundError("chromium, the browser, is not installed")
    ups: list[float] = []
    moves: list[float] = []

    def visit() -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1000, "height": 900})
            began = time.perf_counter()
            with served(PAGE) as url:
                tab.goto(url)
                stage = tab.locator(".exhibit:has(input[type=range]) .stage")
                stage.first.locator("svg.quoin").first.wait_for(timeout=120_000)
                ups.append(time.perf_counter() - began)
                for number in range(MOVES):
                    moves.append(stage.nth(number % stage.count()).evaluate(MOVE))
                browser.close()

    repeats.timed(visit)
    ordered = sorted(moves)
    return {
        "seconds until the page is up": statistics.median(ups),
        "ms from slider to picture, median": statistics.median(ordered),
        "ms from slider to picture, 95%": ordered[int(0.95 * (len(ordered) - 1))],
    }
