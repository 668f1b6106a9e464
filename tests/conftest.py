"""Tests are imported by path, so the folder of the helpers they share (tasks.py, commands.py) is put where `import`
looks."""

import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Started as a background job or by nohup, the tests would hand on to every process they start that Ctrl-C is ignored.
with contextlib.suppress(ValueError):  # not the main thread
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


# What the tests put into the cache is theirs: no user's cache is read or filled. Workers and the processes they start
# share it.
if "QUOIN_CACHE" not in os.environ:
    os.environ["QUOIN_CACHE"] = tempfile.mkdtemp(prefix="quoin-cache-")


# A deadline would fail whoever shares the machine. The profile that hypothesis takes by itself where CI is set has none
# either.
if "CI" not in os.environ:
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")


@pytest.fixture(scope="session", autouse=True)
def no_lines_of_progress():
    """A run on a busy machine takes long enough to log how far it is; in a process of its own,
    `commands.without_progress` does this."""
    from quoin.train import progress

    seconds, progress.LOG_SECONDS = progress.LOG_SECONDS, float("inf")
    yield
    progress.LOG_SECONDS = seconds


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def every_panel_is_drawn():
    """A picture that cannot be drawn costs a user one line and no report; here it is a fault that must be seen, whoever
    draws it."""
    from quoin.train import report

    def fail(what, error):
        raise AssertionError(f"{what} could not be drawn") from error

    tell, report.describe_plot_error = report.describe_plot_error, fail
    yield tell
    report.describe_plot_error = tell


@pytest.fixture
def panels_may_fail(every_panel_is_drawn, monkeypatch):
    """As a user has it."""
    monkeypatch.setattr("quoin.train.report.describe_plot_error", every_panel_is_drawn)


@pytest.fixture(scope="module")
def one_thread():
    """One thread of torch's, for tests whose tensors are so small that a second costs more than it gives."""
    from quoin.tensor.single_thread import single_thread

    with single_thread():
        yield
