"""Put small faults into the code, one at a time, and see whether a test fails: `make mutants N=200 SEED=1`.

The faults are drawn uniformly over the lines of code (mutation/operators.py says which there are), and each is tried
with the tests that execute it, the nearest first, until one fails. Nothing is changed on the disk: a mutant exists in
the memory of the processes that test it, in a copy of the tree under build/. A run that was stopped goes on where it
was. tests/mutants_judged.toml holds the survivors that change nothing a user could notice, each with the reason.

Fewer tests can only let more survive: --files and --budget bound what one mutant may cost, and survivors that were not
tried with every test that executes them are said to be so. --again tries those that survived once more. --jobs tries
so many at a time.
"""

import argparse
import array
import contextlib
import fcntl
import itertools
import json
import os
import struct
import sys
import termios
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mutation.choice import Map, Nearness
from mutation.forks import PRELOADED, preload
from mutation.project import Mutant, Project, drawn
from mutation.trial import Trial

HERE = Path(__file__).parent
GOAL, PER_PACKAGE = 0.95, 1


def judged(path: Path) -> dict[tuple[str, ...], str]:
    """Why each judged survivor is harmless."""
    told = tomllib.loads(path.read_text()).get("harmless", []) if path.exists() else []
    return {tuple(each[name] for name in ("file", "function", "before", "after")): each["why"] for each in told}


def verdicts(path: Path) -> dict[str, dict[str, Any]]:
    """The last word on every mutant so far, by its name and the source it was made of."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = (json.loads(line) for line in lines if line.endswith("}"))  # a torn last line is tried anew
    return {_identity(each["mutant"]): each for each in found}


def _identity(mutant: dict[str, Any]) -> str:
    return f"{mutant['file']} {mutant['index']} {mutant['digest']}"


def package_of(file: str) -> str:
    return file.partition("/")[0] if "/" in file else "(top)"


def table(mutants: Iterable[Mutant], found: dict[str, dict[str, Any]], harmless: dict[Any, str]) -> tuple[Table, bool]:
    """The rows by package, and whether the goal is met."""
    tried, caught, fine, open_ = Counter(), Counter(), Counter(), Counter()
    for mutant in mutants:
        verdict = found.get(_identity(vars(mutant)))
        if verdict is None:
            continue
        for package in (package_of(mutant.file), "all"):
            tried[package] += 1
            if verdict["caught_by"] or verdict["how"]:
                caught[package] += 1
            elif mutant.key in harmless:
                fine[package] += 1
            else:
                open_[package] += 1
    shown = Table("package", "tried", "caught", "survived", "judged harmless", "caught of the others")
    for package in sorted(tried, key=lambda name: (name == "all", name)):
        serious = tried[package] - fine[package]
        rate = f"{caught[package] / serious:.1%}" if serious else "-"
        shown.add_row(package, *(str(each[package]) for each in (tried, caught, open_, fine)), rate)
    serious = tried["all"] - fine["all"]
    crowded = [name for name, count in open_.items() if count > PER_PACKAGE and name != "all"]
    return shown, bool(serious) and caught["all"] >= GOAL * serious and not crowded


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests for one mutant (default: 120)")
    parser.add_argument(
        "--files", type=int, default=0, help="files of tests for one mutant, the nearest (default: all)"
    )
    parser.add_argument("--recording", type=float, default=600.0, help="seconds to record one file (default: 600)")
    parser.add_argument("--again", action="store_true", help="try survivors again, with the tests as they are now")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried at a time (default: 1)")
    parser.add_argument("--only", default="", help="mutants of this package or file only")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="the project (default: this one)")
    parser.add_argument("--package", default="quoin")
    parser.add_argument("--preload", default=PRELOADED, help="modules that most tests import (default: ours)")
    asked = parser.parse_args(arguments)
    if asked.jobs < 1:
        parser.error(f"expected one mutant at a time or more, got --jobs {asked.jobs}")
    build = asked.root.resolve() / "build" / "mutants"
    build.mkdir(parents=True, exist_ok=True)
    project = Project(asked.root.resolve(), asked.package, build / "tree")
    project.make_copy()
    wanted = (each for each in drawn(project, asked.seed) if each.file.startswith(asked.only))
    mutants = list(itertools.islice(wanted, asked.number))
    log = build / f"seed-{asked.seed}.jsonl"
    preload(asked.preload, asked.package)
    harmless = judged(asked.root / "tests" / "mutants_judged.toml")
    done, near = verdicts(log), Nearness(project)
    waiting = [each for each in mutants if _is_wanted(each, done.get(_identity(vars(each))), harmless, asked.again)]

    def try_these(some: Iterable[Mutant], folder: Path, tell: Callable[[str], None]) -> None:
        """Each process has a folder of its own; what tests execute is recorded for all."""
        folder.mkdir(exist_ok=True)
        tests = Map(project, build / "map", asked.recording, folder)
        trial = Trial(project, tests, near, folder, asked.budget, asked.files)
        for mutant in some:
            verdict = trial.judge(mutant, tell)
            with log.open("a") as file:
                file.write(json.dumps(vars(verdict)) + "\n")

    try:
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("mutants", total=len(mutants), completed=len(mutants) - len(waiting))
            if asked.jobs == 1:
                try_these(bar.track(waiting, task_id=task), build, lambda text: bar.update(task, description=text))
            elif _in_processes(
                lambda some, k: try_these(some, build / f"job-{k}", _silent),
                waiting,
                asked.jobs,
                lambda ended: bar.update(task, completed=len(mutants) - len(waiting) + ended),
            ):
                return 1
            bar.update(task, completed=len(mutants))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    found = verdicts(log)
    shown, met = table(mutants, found, harmless)
    Console().print(shown)
    for mutant in mutants:
        verdict = found[_identity(vars(mutant))]
        if not verdict["how"] and mutant.key not in harmless:
            few = "" if verdict["complete"] else ", not all that execute it"
            print(f"survived {verdict['num_tests']} tests{few}: {mutant.name}")
    return 0 if met else 1


def _is_wanted(mutant: Mutant, before: dict[str, Any] | None, harmless: dict[Any, str], again: bool) -> bool:
    return before is None or (again and not before["how"] and mutant.key not in harmless)


def _silent(text: str) -> None:
    """Several processes would write over one another's line."""


def _in_processes(
    work: Callable[[Iterable[Mutant], int], None], mutants: list[Mutant], jobs: int, look: Callable[[int], None]
) -> int:
    """Forked, so that what is preloaded is shared; a pipe hands each the next mutant, and `look` is told how many are
    handed out and done. How many processes failed."""
    reading, writing = os.pipe()
    children, parent = [], os.getpid()
    for k in range(jobs):
        child = os.fork()
        if not child:
            os.close(writing)
            code = 1
            try:
                work(_handed(mutants, reading, parent), k)
                code = 0
            except KeyboardInterrupt:
                code = 0  # the first process says so
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    with contextlib.suppress(BrokenPipeError):
        for number in range(len(mutants)):
            os.write(writing, struct.pack("i", number))
    os.close(writing)
    failed = 0
    while children:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if not ended:
            time.sleep(1.0)
            look(max(0, len(mutants) - _waiting(reading) - len(children)))
            continue
        children.remove(ended)
        failed += status != 0
    os.close(reading)
    return failed


def _waiting(reading: int) -> int:
    """Numbers of four bytes that nobody has taken from the pipe yet."""
    told = array.array("i", [0])
    fcntl.ioctl(reading, termios.FIONREAD, told)
    return told[0] // 4


def _handed(mutants: list[Mutant], reading: int, parent: int) -> Iterator[Mutant]:
    """A read of four bytes from a pipe is whole and one process's alone. Ends with the process that asked."""
    while os.getppid() == parent and (number := os.read(reading, 4)):
        yield mutants[struct.unpack("i", number)[0]]


if __name__ == "__main__":
    sys.exit(main())
