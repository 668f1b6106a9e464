"""A process that trains runs of a multirun, one after another: `python -m quoin.runs.worker`, started by jobs.py.

It reads a JSON line for each run from standard input and answers with JSON lines: how far the run is, and how it ended.
When standard input ends it ends too, at once and wherever it stands: whoever started it is gone, perhaps killed, and
what it wrote is whole, as after any kill. SIGTERM asks it to save and stop.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from quoin.callbacks import Listener, listen_with
from quoin.errors import UserError
from quoin.options import options_from_json
from quoin.runs.fit import RunResult, fit_member, resume_run
from quoin.runs.run import Run
from quoin.runs.run_code import CodeAccess
from quoin.runs.run_config import RunConfig
from quoin.train import RunEvent, RunFolder, torch_as_it_was

__all__ = ["main"]

TELL_SECONDS = 0.2  # between two lines on how far a run is


class _Answers(Listener):
    """The way back to whoever started the process."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def send(self, answer: dict[str, Any]) -> None:
        with suppress(OSError):  # nobody reads it any more: the process ends by the end of its input
            print(json.dumps(answer), file=self._stream, flush=True)

    def say(self, text: str) -> None:
        self.send({"said": text})


class _Reporter:
    """A callback that tells how far a run is."""

    def __init__(self, answers: _Answers, epochs: int) -> None:
        self._answers, self._epochs, self._last = answers, epochs, 0.0

    def __call__(self, event: RunEvent) -> None:
        now = time.perf_counter()
        if now - self._last >= TELL_SECONDS:
            self._last = now
            self._answers.send({"epoch": event.epoch, "epochs": self._epochs})


def main() -> int:
    # A library may print; the answers go where it cannot.
    answers = _Answers(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, requests), daemon=True).start()
    with listen_with(answers):
        while True:
            answers.send(_answer(json.loads(requests.get()), answers))


def _listen(stream: TextIO, requests: "queue.Queue[str]") -> None:
    for line in stream:
        requests.put(line)
    os._exit(0)


def _answer(request: dict[str, Any], answers: _Answers) -> dict[str, Any]:
    """Train what was asked for; how it ended, in JSON."""
    try:
        ended = _train(request, answers)
    except UserError as error:
        return {"ended": "failed", "why": " ".join(str(error).split()), "exit_code": error.exit_code}
    except Exception as error:  # a fault of ours or of somebody's recipe: the other runs have their turn
        why = " ".join(str(error).split())
        return {"ended": "failed", "why": f"{type(error).__name__}: {why}"[:280], "exit_code": 1}
    for remark in ended.remarks:
        answers.send({"remark": remark})
    if ended.result is None:
        return {"ended": "interrupted"}
    return {"ended": "finished", "seconds": ended.result["seconds"]}


def _train(request: dict[str, Any], answers: _Answers) -> RunResult:
    multirun, name = RunFolder.open(Path(request["multirun"])), request["member"]
    access = CodeAccess(tuple(request["code"]), request["trust_code"])
    whole = Run(multirun, data_now=request["data_now"], code=access)
    with whole.own_code():
        options: Any = options_from_json(whole.recipe.options, request["options"], name)
        told = [_Reporter(answers, options.num_epochs)]
        if (member := multirun.member(name)) is None:
            config = options_from_json(RunConfig, request["settings"], name)
            return fit_member(multirun, name, whole.recipe, options, config, callbacks=told, show_progress=False)
    run = Run(member, data_now=request["data_now"], code=access, recipe=whole.recipe)
    with torch_as_it_was():
        return resume_run(run, callbacks=told, show_progress=False)


if __name__ == "__main__":
    sys.exit(main())
