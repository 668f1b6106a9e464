"""One optimizer step, written once: schedule, micro-batches, autocast, scaling, finite checks, clipping, moving
average, its state.

It is the only place that calls `backward` to train. What the losses are of is the task's affair. Of several processes
each calls it with pieces of its own rows, as many pieces as the others, and all make the same step.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.optim import EMAModel, Schedule, constant
from quoin.train.device_context import DeviceContext
from quoin.train.processes import gather_lists
from quoin.train.task import CHECK_EVERY, NonFiniteLossError
from quoin.train.weights import load_state_dict_strict, own_optimizer_state

if TYPE_CHECKING:
    from quoin.train.data_parallel import ReplicatedModel, ShardedModel

__all__ = ["GradientUpdater", "first_nonfinite_tensor"]

T = TypeVar("T")
LOSS_ITSELF = "the loss itself"


@shown
class GradientUpdater:
    """A model, its optimizer and its learning-rate schedule: `update` makes one step.

    Args:
        total_steps: The length of the run, by which the schedule goes.
        device_context: As `setup_device` gives it.
        schedule: The factor of the learning rate by the fraction of the run that is done, from 0 to 1.
        max_grad_norm: Bound on the norm of the gradient; 0 leaves it.
        ema_decay: How much of its last value a moving average of the weights keeps at a step; 0 keeps none, and the
            model itself is what is evaluated.
        name: What the loss is called where it is not finite, if there are several.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        total_steps: int,
        device_context: DeviceContext,
        schedule: Schedule = constant,
        max_grad_norm: float = 0.0,
        ema_decay: float = 0.0,
        name: str = "the loss",
    ) -> None:
        self.model, self.optimizer, self.device_context, self.schedule, self.name = (
            model,
            optimizer,
            device_context,
            schedule,
            name,
        )
        self.total_steps, self.max_grad_norm, self.step_count = max(1, total_steps), max_grad_norm, 0
        self.ema = EMAModel(model, decay=ema_decay) if ema_decay else None
        self._lrs = [group["lr"] for group in optimizer.param_groups]
        self._parameters = parameters_of(optimizer)
        # Half precision loses small gradients to underflow; scaling the loss keeps them, and is off (a no-op)
        # elsewhere.
        self._scaler = torch.amp.GradScaler(
            device_context.device.type, enabled=device_context.autocast_dtype is torch.float16
        )  # pyright: ignore

    @property
    def eval_model(self) -> Any:
        """What is evaluated, saved as the run's model and sampled from: the moving average where there is one."""
        return self.model if self.ema is None else self.ema.module

    @property
    def progress(self) -> float:
        """The fraction of the run that is done, from 0 to 1."""
        return self.step_count / self.total_steps

    @functools.cached_property
    def parallel(self) -> "ReplicatedModel | ShardedModel | None":
        """The model as several processes train it; made when it is first needed, for until then weights may be read
        into the model, or laid out otherwise. None in one process."""
        if self.device_context.world_size == 1:
            return None
        from quoin.train.data_parallel import parallel_model  # torch takes half a second to import what it needs

        average = None if self.ema is None else self.ema.module
        made = parallel_model(self.model, average, self.optimizer, self.device_context)
        self._parameters = parameters_of(self.optimizer)
        return made

    def whole_weights(self) -> AbstractContextManager[None]:
        """Inside, `eval_model` holds its whole weights in every process, which may then call it as it likes."""
        return nullcontext() if self.parallel is None else self.parallel.whole_weights()

    def update(self, pieces: Iterable[tuple], losses: Callable[..., Tensor], *, weight: float) -> Float[Tensor, ""]:
        """One step along the gradient of `weight` times the sum of `losses(*piece)` over all pieces of all processes;
        the sum over those of this process, before the step."""

        def computed(*piece: Any) -> Tensor:
            with self.device_context.autocast():
                return losses(*piece)

        if self.parallel is not None:
            total = self._backward_with_others(pieces, computed, weight)
        else:
            self.zero_grad()
            totals = [self.backward(computed(*piece), weight, again=lambda p=piece: computed(*p)) for piece in pieces]
            total = totals[0] if len(totals) == 1 else torch.stack(totals).sum()
        self.step()
        return total

    def _backward_with_others(
        self, pieces: Iterable[tuple], losses: Callable[..., Tensor], weight: float
    ) -> Float[Tensor, ""]:
        """The gradients of all processes, added up; gives the sum of the losses of this one."""
        parallel = self.parallel
        assert parallel is not None
        self.zero_grad()
        weight *= self.device_context.world_size  # for torch takes the mean over the processes
        total, checked, waiting, bad = None, None, None, ()
        for piece, is_last in _marking_last(pieces):
            found, around_backward = parallel.losses(losses, piece, is_last=is_last)
            part = found.detach().sum()
            total = part if total is None else total + part
            if found.device.type == "cpu" and not bad and not math.isfinite(part.item()):
                bad = piece
            if is_last:
                bad = bad or piece
                if found.device.type == "cpu" or self.step_count % CHECK_EVERY == 0:
                    checked = total.to(torch.float64, copy=True)  # summed in place
                    waiting = dist.all_reduce(checked, async_op=True)  # goes on while the gradients are computed
            with around_backward:
                self._add_gradient(found, weight)
        assert total is not None
        if checked is not None and waiting is not None:
            waiting.wait()
            if not math.isfinite(checked.item()):  # the same number in all, so that all end here
                raise self.diverged(lambda: parallel.losses(losses, bad, is_last=True))
        return total

    def zero_grad(self) -> None:
        """Set the learning rate of this step and drop the gradients of the last."""
        factor = self.schedule(self.progress)
        for group, lr in zip(self.optimizer.param_groups, self._lrs):
            group["lr"] = lr * factor
        for parameter in self._parameters:
            parameter.grad = None  # what the optimizer's own does, without its bookkeeping

    def backward(
        self, losses: Float[Tensor, "*examples"], weight: float, again: Callable[[], object] | None = None
    ) -> Float[Tensor, ""]:
        """Add the gradient of `weight` times the sum of `losses`; gives the sum. `again` computes them anew, to find
        what is not finite."""
        total = losses.detach().sum()
        # Reading one number is free on the CPU; on a GPU it stalls the queue, so there only now and then.
        if (total.device.type == "cpu" or self.step_count % CHECK_EVERY == 0) and not math.isfinite(total.item()):
            raise self.diverged(again)
        self._add_gradient(losses, weight)
        return total

    def _add_gradient(self, losses: Tensor, weight: float) -> None:
        # So written, the graph needs no nodes for sum and quotient.
        self._scaler.scale(losses).backward(torch.full_like(losses, weight))

    def step(self) -> None:
        """Clip, move the weights, and let their average follow."""
        self._scaler.unscale_(self.optimizer)
        if self.max_grad_norm:
            nn.utils.clip_grad_norm_(self._parameters, self.max_grad_norm)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.step_count += 1
        if self.ema is not None:
            self.ema.update(self.model)

    def diverged(self, again: Callable[[], object] | None = None) -> NonFiniteLossError:
        """The error of a loss that is not finite, with the first tensor on the way to it that is not."""
        where = ""
        if again is not None:
            found = first_nonfinite_tensor(self.model, again)
            if self.device_context.world_size > 1:  # each has looked at its own rows
                found = next((each for each in gather_lists([found]) if each != LOSS_ITSELF), found)
            where = f"; first bad tensor: {found}"
        # On a GPU the loss is read only now and then, so there the step is the one by which it was seen.
        when = "at" if self.device_context.device.type == "cpu" else "by"
        return NonFiniteLossError(
            f"{self.name} is not finite {when} step {self.step_count + 1}{where}; try a smaller --lr, or "
            "--max-grad-norm 1"
        )

    def check_parameters(self) -> None:
        """Raise where a weight is not finite: a run falls back on its state, and a finite loss can be followed by a
        step that overflows."""
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise NonFiniteLossError(
                    f"parameter {name} is not finite after step {self.step_count}; try a smaller --lr, or "
                    "--max-grad-norm 1"
                )

    def state_dict(self) -> dict[str, Any]:
        """All but the weights that are evaluated, which stand with the run's model."""
        _ = self.parallel  # what it shards is part of the state
        state = {
            "optimizer": self.optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "step_count": self.step_count,
        }
        return (
            state if self.ema is None else state | {"weights": self.model.state_dict(), "ema_updates": self.ema.updates}
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        _ = self.parallel  # a state that was read is sharded after the model was
        if self.ema is not None:
            load_state_dict_strict(self.model, state["weights"])
            self.ema.updates = state["ema_updates"]
        self.optimizer.load_state_dict(state["optimizer"])
        own_optimizer_state(self.optimizer)
        self._scaler.load_state_dict(state["scaler"])
        self.step_count = state["step_count"]


def parameters_of(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """All that it moves."""
    return [each for group in optimizer.param_groups for each in group["params"]]


def first_nonfinite_tensor(model: nn.Module, forward: Callable[[], object]) -> str:
    """The first tensor that is not finite while `forward` runs `model`: where to look first."""
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            return f"parameter {name}"
    found: list[str] = []

    def check(value: Any, name: str) -> None:
        if isinstance(value, Tensor) and value.is_floating_point() and not found and not value.isfinite().all():
            found.append(name)

    def look_at_all(inputs: tuple) -> None:
        for each in inputs:
            check(each, "the batch's features")

    def add_hooks(name: str, module: nn.Module) -> list[Any]:
        described = f"the output of {name or 'the model'} ({type(module).__name__})"
        hooks: list[Any] = [module.register_forward_hook(lambda module, inputs, output: check(output, described))]
        if not name:
            hooks.append(module.register_forward_pre_hook(lambda module, inputs: look_at_all(inputs)))
        return hooks

    handles = [handle for name, module in model.named_modules() for handle in add_hooks(name, module)]
    try:
        with torch.no_grad():
            forward()
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else LOSS_ITSELF


def _marking_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Each item, and whether it is the last."""
    remaining = iter(items)
    for item in remaining:
        for following in remaining:
            yield item, False
            item = following
        yield item, True
