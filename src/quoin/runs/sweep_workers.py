"""Processes that train the trials of one sweep side by side; each finds all it needs in the sweep's folder.

python -m quoin.runs.sweep_worker '{"folder": "runs/sweep-mlp-1", "data": null}'
"""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from quoin.callbacks import current_listener
from quoin.errors import UserError
from quoin.runs.jobs import start_worker
from quoin.train.interrupt import Interrupt

if TYPE_CHECKING:
    from quoin.runs.run import Run
    from quoin.runs.sweep_storage import TrialStorage

__all__ = ["run_workers"]

POLL_SECONDS = 0.2


def run_workers(
    run: "Run", storage: "TrialStorage", num_jobs: int, interrupt: Interrupt, told: Callable[[], None]
) -> None:
    """Start the workers and wait until each has found nothing more to do.

    A request to stop is handed on, and each worker saves before it ends. They end as well when this process does,
    however it ends: their standard input is then at its end.
    """
    words = json.dumps(
        {"folder": str(run.path), "data": run.data_now, "code": run.code.files, "trust_code": run.code.trust_copies}
    )
    printed = [tempfile.TemporaryFile() for _ in range(num_jobs)]  # noqa: SIM115 (each is closed with its worker)
    started = [
        start_worker("quoin.runs.sweep_worker", words, stdout=subprocess.DEVNULL, stderr=each) for each in printed
    ]
    asked = False
    try:
        while any(each.poll() is None for each in started):
            if interrupt.asked and not asked:
                asked = True
                for each in started:
                    with contextlib.suppress(ProcessLookupError):
                        each.send_signal(signal.SIGTERM)
            told()
            time.sleep(POLL_SECONDS)
    except BaseException:
        for each in started:
            each.kill()
        raise
    finally:
        errors = [_last_line(process, file) for process, file in zip(started, printed)]
    told()
    wrong = [(each.returncode, text) for each, text in zip(started, errors) if each.returncode not in (0, 130)]
    if wrong and not interrupt.asked:
        code, text = wrong[0]
        reason = text or (f"it was ended by signal {-code}" if code < 0 else f"it ended with {code}")
        if len(wrong) == num_jobs or any(not each.state.is_finished() for each in storage.trials()):
            raise UserError(f"{reason} (a worker of the sweep); then `quoin resume {run.path}` goes on")
        current_listener().say(f"a worker of the sweep ended early, and others did its work: {reason}")


def _last_line(process: subprocess.Popen, printed: IO[bytes]) -> str:
    """What a process that ends said last."""
    with printed:
        process.communicate()
        printed.seek(0)
        lines = printed.read().decode(errors="backslashreplace").strip().splitlines()
    return lines[-1].removeprefix("quoin: ") if lines else ""
