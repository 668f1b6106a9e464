"""What several processes must decide alike after the same step: to stop, to save.

A signal reaches one process, the clock is the main one's, a callback asks in one. To ask the others after every step
would take longer than many a step does, so they meet about five times a second.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from quoin.train.processes import is_main, num_processes

__all__ = ["Agreement"]

INTERVAL = 0.2  # seconds between two meetings, about
MOST_STEPS = 10_000  # between two meetings


class Agreement:
    """Questions that are answered with yes if any process says yes. In one process every answer is that of the moment;
    of several each has the answers of the last meeting, and all meet after the same steps.

    Args:
        questions: Each by its name.
    """

    def __init__(self, questions: dict[str, Callable[[], bool]]) -> None:
        self.questions = questions
        self._answers = dict.fromkeys(questions, False)
        self._steps_left = 1  # until the next meeting
        self._steps, self._met = 1, time.perf_counter()

    def says(self, question: str) -> bool:
        """The answer of all."""
        return self.questions[question]() if num_processes() == 1 else self._answers[question]

    def after_step(self) -> None:
        """Meet, if it is time to. Every process calls it after every step."""
        if num_processes() == 1:
            return
        self._steps_left -= 1
        if self._steps_left:
            self._answers = dict.fromkeys(self.questions, False)
        else:
            self.meet()

    def meet(self) -> None:
        """Answer the questions now. Every process calls it."""
        if num_processes() == 1:
            return
        now = time.perf_counter()
        seconds = (now - self._met) / self._steps
        self._met = now
        steps = max(1, min(MOST_STEPS, int(INTERVAL / max(seconds, 1e-9)))) if is_main() else 0
        told = torch.tensor([steps, *(int(question()) for question in self.questions.values())])
        dist.all_reduce(told, dist.ReduceOp.MAX)
        self._steps = self._steps_left = int(told[0])
        self._answers = dict(zip(self.questions, (bool(each) for each in told[1:])))
