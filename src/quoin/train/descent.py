"""One update by gradients, whatever they are of: the rate by the schedule, gradients that add up over pieces, the clip, the step."""

from typing import Any

import torch
from torch import Tensor, nn

from quoin.optim import Schedule, constant
from quoin.train.place import Place
from quoin.train.weights import lay_out_like_parameters

__all__ = ["Descent"]


class Descent:
    """An optimiser with the course of its run: `begin`, `add` gradients once or more, `finish`.

    `clip` bounds the norm of the gradient; 0 leaves it.
    """

    def __init__(
        self, optimiser: torch.optim.Optimizer, *, total_steps: int, place: Place, schedule: Schedule = constant, clip: float = 0.0
    ) -> None:
        self.optimiser, self.total_steps, self.schedule, self.clip = optimiser, max(1, total_steps), schedule, clip
        self.step_count = 0
        self._rates = [group["lr"] for group in optimiser.param_groups]
        self._parameters = [each for group in optimiser.param_groups for each in group["params"]]
        # Half precision loses small gradients to underflow; scaling the loss keeps them, and is off (a no-op) elsewhere.
        self._scaler = torch.amp.GradScaler(place.device.type, enabled=place.autocast_dtype is torch.float16)  # pyright: ignore

    def begin(self) -> None:
        """Set the rate of this step and drop the gradients of the last."""
        rate = self.schedule(self.step_count / self.total_steps)
        for group, first in zip(self.optimiser.param_groups, self._rates):
            group["lr"] = first * rate
        for parameter in self._parameters:
            parameter.grad = None  # what zero_grad does, without its bookkeeping

    def add(self, losses: Tensor, weight: float) -> None:
        """Add the gradient of `weight` times the sum of `losses`."""
        # So said, the graph needs no nodes for sum and quotient.
        self._scaler.scale(losses).backward(torch.full_like(losses, weight))

    def finish(self) -> None:
        """Clip and move."""
        self._scaler.unscale_(self.optimiser)
        if self.clip:
            nn.utils.clip_grad_norm_(self._parameters, self.clip)
        self._scaler.step(self.optimiser)
        self._scaler.update()
        self.step_count += 1

    def state(self) -> dict[str, Any]:
        return {"optimiser": self.optimiser.state_dict(), "scaler": self._scaler.state_dict(), "step_count": self.step_count}

    def load(self, state: dict[str, Any]) -> None:
        self.optimiser.load_state_dict(state["optimiser"])
        lay_out_like_parameters(self.optimiser)
        self._scaler.load_state_dict(state["scaler"])
        self.step_count = state["step_count"]
