"""--compile: what is compiled and what is not, tables built where they are read, a word while it lasts, and an end to
it when somebody asks."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from quoin.callbacks import Listener, listen_with
from quoin.layers import HalfSplitRotaryEmbedding, RotaryEmbedding, SinusoidalPositionalEncoding, build_position_tables
from quoin.train import DeviceContext, RunFolder, Trainer, compiled, interrupt
from quoin.train.compiled import CompiledStep
from quoin.train.device_context import compiler
from quoin.train.interrupt import Interrupt, StoppedInside, interrupted_at_once
from tasks import TwoWeights, difference, left_behind, new_folder

QUOIN = [sys.executable, "-m", "quoin.cli"]
POSITIONS = [lambda: RotaryEmbedding(8), lambda: HalfSplitRotaryEmbedding(8), lambda: SinusoidalPositionalEncoding(8)]


class Heard(Listener):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def compile_calls(monkeypatch):
    """torch.compile replaced by one that notes what it is called with, and compiles nothing."""
    calls: list[tuple] = []

    def compile_nothing(function, *, dynamic):
        def run(*arguments):
            calls.append((len(arguments[0]), dynamic))
            return function(*arguments)

        return run

    monkeypatch.setattr(torch, "compile", compile_nothing)
    return calls


def test_full_pieces_are_compiled_and_short_ones_are_not(compile_calls):
    context = DeviceContext(compile=True)
    step = context.compiled(lambda x: x.sum(), 4)
    assert [float(step(torch.ones(rows))) for rows in (4, 3, 4, 1)] == [4, 3, 4, 1]
    assert compile_calls == [(4, False), (4, False)]
    assert context.compile_seconds > 0
    assert not context.compiled_nothing


def test_pieces_of_changing_lengths_are_compiled_for_all(compile_calls):
    step = DeviceContext(compile=True).compiled(lambda x: x.sum(), 0)
    assert [float(step(torch.ones(rows))) for rows in (4, 3)] == [4, 3]
    assert compile_calls == [(4, True), (3, True)]


def test_without_compile_the_function_is_the_function(compile_calls):
    function = math.sqrt
    assert DeviceContext().compiled(function, 4) is function
    assert compile_calls == []


def test_a_compilation_that_lasts_is_told_and_a_quick_one_is_not(compile_calls, monkeypatch):
    heard = Heard()
    with listen_with(heard):
        CompiledStep(torch.sum, 1)(torch.ones(1))
        assert heard.lines == []
        monkeypatch.setattr(compiled, "PATIENCE", 0.01)
        CompiledStep(lambda x: time.sleep(0.2), 1)(torch.ones(1))
    assert heard.lines[0].startswith("compiling the step")
    assert heard.lines[1].startswith("compiled the step in")


def graphs(function, *arguments: Tensor) -> list[torch.fx.GraphModule]:
    """What torch.compile sees of `function`, in one piece."""
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(function, backend=backend, fullgraph=True, dynamic=False)(*arguments)
    return seen


def names_of(graph: torch.fx.GraphModule) -> set[str]:
    return {getattr(node.target, "__name__", str(node.target)) for node in graph.graph.nodes}


@pytest.mark.parametrize("make", POSITIONS)
def test_a_table_of_positions_built_first_is_no_part_of_the_graph(make):
    module, x = make(), torch.randn(2, 5, 8)
    (without,) = graphs(module, x)
    assert {"arange", "cos"} <= names_of(without)  # so that the next line can fail
    build_position_tables(nn.Sequential(module), 5, x.device)
    (graph,) = graphs(module, x)
    assert not {"arange", "cos", "sin"} & names_of(graph)


@pytest.mark.parametrize("make", POSITIONS)
def test_a_table_that_nobody_built_is_computed_on_the_inputs_device(make):
    """Otherwise a step on a GPU would get kernels for the CPU from a C++ compiler."""
    (graph,) = graphs(make(), torch.randn(2, 5, 8, device="meta"))
    made = [node for node in graph.graph.nodes if getattr(node.target, "__name__", "") == "arange"]
    assert made
    assert all(node.kwargs["device"] == torch.device("meta") for node in made)


def ask() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)  # a signal is delivered between two instructions of Python


def test_a_request_to_stop_waits_for_the_step_but_not_for_a_compilation():
    with Interrupt() as interrupt:
        ask()
        assert interrupt.asked
    with Interrupt(), pytest.raises(StoppedInside), interrupted_at_once():
        ask()
    with Interrupt():
        ask()  # just before it begins
        with pytest.raises(StoppedInside), interrupted_at_once():
            raise AssertionError
    with interrupted_at_once():  # nobody listens
        pass
    with Interrupt() as interrupt:
        with interrupted_at_once():
            pass
        ask()  # after it, it waits for the step again
        assert interrupt.asked


class AsksAtItsEnd:
    def __del__(self) -> None:
        ask()


def work_in_which_a_request_is_dropped() -> None:
    with interrupted_at_once():
        AsksAtItsEnd()
        assert Interrupt.current is not None
        assert Interrupt.current.asked  # and the program goes on
        time.sleep(30)


def test_a_request_that_python_drops_is_made_again(monkeypatch, capsys):
    """What is raised in a destructor is printed and forgotten, and a compilation would go on."""
    monkeypatch.setattr(interrupt, "REMIND_SECONDS", 0.05)
    before, began = signal.getsignal(signal.SIGALRM), time.perf_counter()
    with Interrupt(), pytest.raises(StoppedInside):
        work_in_which_a_request_is_dropped()
    assert time.perf_counter() - began < 20
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


class StoppedAtStep(TwoWeights):
    """Compiles in its seventh step, in which somebody asks to stop."""

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        if self.batches.epoch * 4 + self.batches.position == 7:
            with interrupted_at_once():
                ask()
        return super().step(rows)


def trained(task: TwoWeights, folder: RunFolder, *, resume: bool = False) -> Trainer:
    trainer = Trainer(task, folder, epochs=3, checkpoint_every=5)
    if resume:
        trainer.resume()
    trainer.run()
    return trainer


def test_a_run_stopped_inside_a_step_keeps_its_last_checkpoint_and_goes_on_to_the_same_bits(tmp_path):
    whole, stopped = new_folder(tmp_path), new_folder(tmp_path)
    trained(TwoWeights(), whole)
    output = trained(StoppedAtStep(), stopped)
    assert not output.at.finished
    assert [int(path.name) for path in sorted(stopped.checkpoints.glob("0*"))] == [5]
    trained(TwoWeights(), stopped, resume=True)
    assert difference(left_behind(whole), left_behind(stopped)) is None


@pytest.mark.deep
@pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_compilation_ends_the_process_and_the_folder_resumes(tmp_path, number):
    sizes = ["--embed-dim", "8", "--num-heads", "1", "--num-layers", "1", "--context-length", "8"]
    words = [
        *sizes,
        "--epochs",
        "1",
        "--max-steps",
        "4",
        "--num-threads",
        "1",
        "--device",
        "cpu",
        "--runs",
        str(tmp_path),
    ]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    with subprocess.Popen(
        [*QUOIN, "train", "transformer-lm", "--compile", *words], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "compiling the step" in line)
        began = time.perf_counter()
        process.send_signal(number)
        told = process.stderr.read()
        assert process.wait(60) == 130
    assert time.perf_counter() - began < 30
    assert f"quoin resume {tmp_path / 'transformer-lm-1'}" in told
    assert "Traceback" not in told
    resumed = subprocess.run(
        [*QUOIN, "resume", str(tmp_path / "transformer-lm-1")], capture_output=True, text=True, env=environment
    )
    assert resumed.returncode == 0, resumed.stderr
    assert RunFolder.open(Path(tmp_path / "transformer-lm-1")).result["steps"] == 4  # type: ignore[index]
