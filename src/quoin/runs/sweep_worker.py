"""One worker of a sweep with several jobs, started by sweep_workers.py as a process of its own."""

import json
import os
import signal
import sys
import threading

from quoin.errors import UserError
from quoin.runs.run import Run
from quoin.runs.run_code import CodeAccess
from quoin.runs.sweep import open_sweep, work
from quoin.train.interrupt import Interrupt

__all__ = ["main"]


def main(words: str) -> int:
    """Train trials of the sweep that the JSON names, until there is none to take up."""
    given = json.loads(words)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        access = CodeAccess(tuple(given["code"]), given["trust_code"])
        run = Run.open(given["folder"], data_now=given["data"], code=access)
        storage, space = open_sweep(run)
        with run.own_code(), Interrupt() as interrupt:
            work(run, storage, space, interrupt)
        return 130 if interrupt.asked else 0
    except UserError as error:
        print(f"quoin: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _end_with_parent() -> None:
    """Whoever started this process holds the other end of its standard input, and lets go when it ends."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
