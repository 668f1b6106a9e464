"""Kill random processes of runs that several train together: `python tests/processes_torture.py 20`.

One process imports everything and forks the processes of each attempt, told in the environment who they are, as
torchrun tells them. Each runs the command line, `quoin train mlp` first and `quoin resume` from then on; one of them
gets SIGKILL at a random moment. The others must end within 30 seconds, and one line must say how to go on. When at last
a run gets through, its checkpoint, metrics and result must be those of a run that was never stopped: to the bit on the
same number of processes, within 1e-4 where the number changed on the way. Exits with 1 on the first difference.
"""

import argparse
import math
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from process_group import free_port, process_environment
from quoin.cli import main
from quoin.data import load
from quoin.errors import UserError
from quoin.train import RunFolder
from tasks import difference, left_behind

OPTIONS = ["--device", "cpu", "--num-threads", "1", "--hidden-dims", "16", "--batch-size", "128", "--dropout", "0.2"]
VARIANTS = [["--checkpoint-every", "3", "--epochs", "6"], ["--checkpoint-every", "5", "--max-steps", "60", "--shard"]]
ENDS_WITHIN = 30.0


def fork_together(words: list[str], world_size: int, log: Path) -> list[int]:
    """The process ids of `quoin` with these words in so many processes."""
    port, children = free_port(), []
    for rank in range(world_size):
        child = os.fork()
        if child:
            children.append(child)
            continue
        code = 70
        try:
            if world_size > 1:
                os.environ.update(process_environment(rank, world_size, port))
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            code = main(words)
            sys.stdout.flush()
        finally:
            os._exit(code)
    return children


def ended(children: list[int], seconds: float) -> list[int]:
    """The exit codes of all, less than 0 for a signal; one that is left after so long is killed, and counts as
    99."""
    codes: dict[int, int] = {}
    end = time.monotonic() + seconds
    while len(codes) < len(children) and time.monotonic() < end:
        for child in children:
            if child not in codes:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    codes[child] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    for child in children:
        if child not in codes:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return [codes.get(child, 99) for child in children]


def exited(child: int) -> bool:
    """Whether a process has ended; it can still be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def whole_run(words: list[str], world_size: int, folder: Path) -> dict[str, Any]:
    """What a run that nobody stops leaves behind."""
    log = folder / "log"
    codes = ended(fork_together(["train", "mlp", *words, "--runs", str(folder)], world_size, log), 300)
    assert codes == [0] * world_size, log.read_text()
    return left_behind(RunFolder.open(folder / "mlp-1"))


def near(one: Any, other: Any) -> bool:
    """Whether two results agree within 1e-4 of their size: of what a metric counts, nothing may change."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(near(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)
    return one == other


def torture(kills: int, seed: int) -> None:
    chance, done, runs, slowest = random.Random(seed), 0, 0, 0.0
    load("digits")  # into memory once, before the forks
    with tempfile.TemporaryDirectory() as place:
        references: dict[int, Any] = {}
        while done < kills:
            variant, changes = runs % len(VARIANTS), runs % 3 == 2
            words, folder = [*OPTIONS, *VARIANTS[variant]], Path(place) / f"run-{runs}"
            folder.mkdir()
            if variant not in references:
                began = time.monotonic()
                references[variant] = whole_run(words, 2, folder), time.monotonic() - began
                folder = Path(place) / f"killed-{runs}"
                folder.mkdir()
            reference, lasts = references[variant]
            run, log, world_size = folder / "mlp-1", folder / "log", 2
            command = ["train", "mlp", *words, "--runs", str(folder)]
            while True:
                children = fork_together(command, world_size, log)
                time.sleep(chance.uniform(0.1, 1.0) * lasts)
                victim = chance.choice(children)
                os.kill(victim, signal.SIGKILL)
                began = time.monotonic()
                time.sleep(1)
                for child in children:  # as torchrun does: one that has not met the others yet waits for them
                    if child != victim and not exited(child):
                        os.kill(child, signal.SIGTERM)
                codes = ended(children, ENDS_WITHIN)
                slowest = max(slowest, time.monotonic() - began)
                assert 99 not in codes, f"a process went on after another was killed: {codes}\n{log.read_text()}"
                done += 1
                try:
                    finished = RunFolder.open(run).result is not None and RunFolder.open(run).has("report.html")
                    command = ["resume", str(run)]
                except UserError:
                    finished = False  # killed before the run had begun: train again
                if finished or done >= kills:
                    break
                world_size = chance.choice((1, 2, 3)) if changes and command[0] == "resume" else 2
            codes = ended(fork_together(command, world_size, log), 300)
            assert codes == [0] * world_size, log.read_text()
            found = left_behind(RunFolder.open(run))
            if changes:
                same = near(found["metrics"], reference["metrics"]) and near(found["result"], reference["result"])
                assert same, f"{run} on other numbers of processes: {found['metrics']} and {reference['metrics']}"
            else:
                where = difference(found, reference)
                assert where is None, f"{run} differs at {where}"
            runs += 1
    print(f"{done} kills, {runs} runs, all as those never stopped; the slowest end took {slowest:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    torture(parsed.kills, parsed.seed)
