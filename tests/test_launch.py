"""Processes that `--processes` starts: whoever waits for them hands signals on, ends the others of one that failed, and
names the cause. Processes here are pretended; real ones are in test_several_processes.py."""

import json
import os
import signal
import tempfile

import pytest

from quoin.runs import launch
from quoin.runs.launch import _last_lines, _Process, _read, _say_how_it_ended, _wait

FOREVER, TOO_LONG = 10**9, 200_000  # looks


class Pretended:
    """Ends with `code` after so many looks; by a signal it ends at once, unless it `ignores` that one."""

    def __init__(self, looks: int, code: int, ignores: tuple[int, ...] = ()):
        self.looks, self.code, self.ignores = looks, code, ignores
        self.returncode: int | None = None
        self.got: list[int] = []

    def poll(self):
        if self.returncode is None:
            self.looks -= 1
            assert self.looks > FOREVER - TOO_LONG or self.looks < TOO_LONG, "nobody ended it"
            self.returncode = self.code if self.looks < 0 else None
        return self.returncode

    def send_signal(self, number):
        self.got.append(number)
        if number not in self.ignores and self.returncode is None:
            self.returncode = -number

    def kill(self):
        self.send_signal(signal.SIGKILL)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(launch, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(launch, "ENDS_WITHIN", 0.05)


def started(*processes):
    return [_Process(rank, each, None) for rank, each in enumerate(processes)]


def test_all_that_end_well_have_no_cause():
    assert _wait(started(Pretended(3, 0), Pretended(7, 0), Pretended(1, 130)), []) is None


def test_the_first_signal_stops_and_the_second_kills_whoever_still_runs():
    gone, slow = Pretended(0, 0), Pretended(FOREVER, 0, ignores=(signal.SIGTERM,))
    signals = [signal.SIGINT]
    gone.poll()
    slow.send_signal_before = slow.send_signal

    def sends(number):
        slow.send_signal_before(number)
        if len(signals) == 1:
            signals.append(signal.SIGINT)

    slow.send_signal = sends
    failed = _wait(started(gone, slow), signals)
    assert gone.got == []  # it had ended
    assert slow.got == [signal.SIGTERM, signal.SIGKILL]
    assert failed is not None
    assert failed.rank == 1


def test_where_one_fails_the_others_have_a_while_and_are_ended():
    quick, hangs = Pretended(20, 0), Pretended(FOREVER, 0)
    failed = _wait(started(quick, Pretended(5, 3), hangs), [])
    assert failed is not None
    assert (failed.rank, failed.process.returncode) == (1, 3)
    assert quick.got == []
    assert hangs.got == [signal.SIGKILL]


def test_one_that_was_killed_from_outside_is_the_cause_whoever_was_seen_first():
    failed = _wait(started(Pretended(0, 1), Pretended(3, -signal.SIGKILL)), [])
    assert failed is not None
    assert failed.rank == 1


def ended(*codes):
    found = started(*(Pretended(0, code) for code in codes))
    for each in found:
        each.process.poll()
    return found


@pytest.mark.parametrize(
    ("codes", "interrupted", "code", "said"),
    [
        ((0, 0), False, 0, ""),
        ((130, 130), True, 130, ""),
        ((-signal.SIGKILL, -signal.SIGTERM), True, 130, "quoin: stopped"),
        ((1, 2), False, 2, ""),  # a user's mistake, whatever became of the others
        ((0, 5), False, 5, ""),
        ((4, 5), False, 4, ""),
        (
            (1, -signal.SIGKILL),
            False,
            1,
            "process 1 of 2 was killed by SIGKILL (the memory may be full), and the others were ended; go on with: "
            "quoin resume runs/mlp-1 --processes 2",
        ),
        ((1, -signal.SIGSEGV), False, 1, "was killed by SIGSEGV, and the others"),
    ],
)
def test_how_it_ended_is_said_with_the_way_on(codes, interrupted, code, said, capsys):
    processes = ended(*codes)
    failed = next((each for each in reversed(processes) if each.process.returncode not in (0, 130)), None)
    assert _say_how_it_ended(processes, failed, "runs/mlp-1", interrupted=interrupted) == code
    told = capsys.readouterr().err
    assert said in told
    assert bool(told) == bool(said)


def test_where_no_run_had_begun_it_says_so(capsys):
    processes = ended(0, -signal.SIGTERM)
    assert _say_how_it_ended(processes, processes[1], "", interrupted=False) == 1
    assert "no run had begun: start again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("printed", "code", "said"),
    [
        ("a\nquoin: first\nquoin: the last of its own lines\nb\n", 1, ["quoin: the last of its own lines"]),
        ("Traceback\nValueError: no\n", 1, ["[process 0] Traceback", "[process 0] ValueError: no"]),
        ("".join(f"{number}\n" for number in range(40)), 1, [f"[process 0] {number}" for number in range(10, 40)]),
        ("quoin: nobody asked\n", 0, []),
        ("quoin: nobody asked\n", 130, []),
        ("quoin: nobody asked\n", -signal.SIGKILL, []),
    ],
)
def test_what_a_process_had_to_say(printed, code, said):
    (found,) = ended(code)
    with tempfile.TemporaryFile() as file:
        file.write(printed.encode())
        found.printed = file
        assert _last_lines(found) == said


def test_one_whose_output_is_the_terminals_said_all_there():
    assert _last_lines(ended(1)[0]) == []


def test_the_run_is_the_last_that_was_told():
    heard, told = os.pipe()
    try:
        os.set_blocking(heard, False)
        assert _read(heard) == ""  # nothing yet
        os.write(told, b"".join(json.dumps(each).encode() + b"\n" for each in ("runs/a-1", "runs/b \u00e9")))
        assert _read(heard) == "runs/b \u00e9"
        os.close(told)
        assert _read(heard) == ""  # and nothing any more
    finally:
        os.close(heard)
