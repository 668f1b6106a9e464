"""How long the optimizer steps of a run take, measured without making a GPU wait in each of them.

On a GPU a step returns when it is queued, not when it is done: there the clock is the device's own, read when the run
waits for it anyway.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from quoin.train.device_context import DeviceContext

__all__ = ["StepClock"]


class StepClock:
    """Seconds and number of the steps so far; a step in which something was compiled counts in neither."""

    def __init__(self, device_context: DeviceContext) -> None:
        self._device_context = device_context
        self._seconds, self._num_steps = 0.0, 0
        self._began: Any = None  # events of the GPU: before the first step that is not counted yet, and after the last
        self._ended: Any = None
        self._waiting = 0  # steps between them

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one step."""
        compiled = self._device_context.compile_seconds
        on_gpu = self._device_context.device.type == "cuda"
        began = self._mark() if on_gpu else time.perf_counter()
        yield
        if self._device_context.compile_seconds != compiled:
            self.settle()
        elif on_gpu:
            self._began, self._ended, self._waiting = self._began or began, self._mark(), self._waiting + 1
        else:
            self._seconds, self._num_steps = self._seconds + time.perf_counter() - began, self._num_steps + 1

    def settle(self) -> None:
        """Wait for the steps that are under way, and count them: before work that is none, such as an evaluation."""
        if self._waiting:
            self._ended.synchronize()
            self._seconds += self._began.elapsed_time(self._ended) / 1000
            self._num_steps += self._waiting
        self._began, self._ended, self._waiting = None, None, 0

    def steps_per_second(self) -> float:
        """0 where none was measured."""
        self.settle()
        return self._num_steps / self._seconds if self._seconds else 0.0

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {"seconds": self._seconds, "num_steps": self._num_steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seconds, self._num_steps = float(state["seconds"]), int(state["num_steps"])
        self._began, self._ended, self._waiting = None, None, 0

    def _mark(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
