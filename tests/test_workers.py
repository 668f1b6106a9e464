"""Worker processes end with the process they work for, however that ends."""

import signal
import subprocess
import sys
import time

import pytest

from quoin.workers import worker_pool

PARENT = """
import os, time
from quoin.workers import worker_pool

if __name__ == "__main__":
    pool = worker_pool(1)
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_a_worker_works():
    with worker_pool(2) as pool:
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="asks by a signal whether a process lives")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_where_its_parent_was_killed(how, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert lives(worker)
    parent.send_signal(how)
    parent.wait(60)
    parent.stdout.close()
    end = time.monotonic() + 60
    while lives(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not lives(worker)


def lives(pid: int) -> bool:
    stat = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(stat.strip()) and not stat.startswith("Z")
