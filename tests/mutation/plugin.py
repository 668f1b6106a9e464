"""The side of pytest: in one mode it records which blocks each test executes and how long it takes, in the other it
runs the tests that it is told, in that order, each within its limit of time."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mutation.importing import go_first

OUT_OF_TIME = 97


class ImportsFirst:
    def pytest_sessionstart(self) -> None:
        go_first()


class Recorder:
    """Appends one line for each test: what it executed, with what it started, in its fixtures and by itself."""

    def __init__(self, hits: Any, offsets: dict[str, int], out: Path) -> None:
        self.hits, self.out = hits, out
        self.starts = sorted((offset, name) for name, offset in offsets.items())
        self.seconds, self.outcomes = 0.0, []
        self.setup: dict[str, str] = {}

    def taken(self) -> dict[str, str]:
        """The blocks hit since the last look, for each file as the bits of a hexadecimal number."""
        seen, found = self.hits[:], {}
        self.hits[:] = bytes(len(seen))
        ends = [*(start for start, _ in self.starts[1:]), len(seen)]
        for (start, name), end in zip(self.starts, ends):
            part = seen[start:end]
            if any(part):
                found[name] = f"{sum(1 << place for place, byte in enumerate(part) if byte):x}"
        return found

    def pytest_runtest_logstart(self) -> None:
        self.seconds, self.outcomes = 0.0, []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        self.outcomes.append(report.outcome)
        if report.when == "setup":
            self.setup = self.taken()
        if report.when == "teardown":
            passed = self.outcomes == ["passed"] * 3
            line = {"test": report.nodeid, "seconds": round(self.seconds, 3), "passed": passed}
            with self.out.open("a") as file:
                file.write(json.dumps(line | {"setup": self.setup, "blocks": self.taken()}) + "\n")


class Chosen:
    """Runs only the tests that were chosen; a test that takes too long ends the process, as a failure does."""

    def __init__(self, limits: dict[str, float], out: Path) -> None:
        self.limits, self.out = limits, out
        self.timer: threading.Timer | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        order = {name: place for place, name in enumerate(self.limits)}
        items[:] = sorted((each for each in items if each.nodeid in order), key=lambda each: order[each.nodeid])

    def tell(self, test: str, what: str) -> None:
        with self.out.open("a") as file:
            file.write(json.dumps({"test": test, "what": what}) + "\n")

    def end(self, test: str) -> None:
        self.tell(test, "out of time")
        os._exit(OUT_OF_TIME)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.timer = threading.Timer(self.limits[nodeid], self.end, (nodeid,))
        self.timer.daemon = True
        self.timer.start()

    def pytest_runtest_logfinish(self) -> None:
        if self.timer:
            self.timer.cancel()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tell(report.nodeid, "failed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell(report.nodeid, "failed to import")


class Clock:
    """Ends a recording that takes too long between two tests."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def pytest_runtest_logfinish(self) -> None:
        if time.monotonic() > self.end:
            pytest.exit("enough was recorded", returncode=OUT_OF_TIME)
