"""Runs of a recipe in one process or several, for tests that compare them: what each step's loss was."""

import math
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

from quoin.runs.catalog import find_recipe
from quoin.runs.fit import begin_task
from quoin.train import GradientUpdater, NonFiniteLossError, setup_device
from quoin.train.agreement import Agreement
from quoin.train.processes import fraction_of, num_processes, process_rank, sum_over_processes


def step_losses(
    recipe_name: str, options: dict[str, Any], num_steps: int, dtype: str = "float64", shard: bool = False
) -> list[float]:
    """The loss of each of the first steps of a recipe, over the global batch."""
    torch.set_default_dtype(getattr(torch, dtype))
    torch.set_num_threads(1)
    context, _ = setup_device("cpu", threads=1, shard=shard)
    recipe = find_recipe(recipe_name)
    chosen: Any = recipe.options(**{name: _as_tuple(value) for name, value in options.items()})
    task: Any = begin_task(recipe, chosen.resolved(), context)[0]
    in_dtype(task, getattr(torch, dtype))
    found: list[float] = []
    while True:
        for rows in task.batches:
            total = task.step(rows)["loss"].double().reshape(1)
            found.append(float(sum_over_processes(total)) / task.batches.num_rows_seen)
            if len(found) == num_steps:
                return found


def losses_of(cases: list[list[Any]]) -> list[list[float]]:
    """`step_losses` of each case: its arguments."""
    return [step_losses(*case) for case in cases]


def in_dtype(task: Any, dtype: torch.dtype) -> None:
    """Put the model and the training data into a dtype."""
    task.model.to(dtype)
    if task.updater.ema is not None:
        task.updater.ema.module.to(dtype)
    if hasattr(task, "points"):
        task.points = {name: each.to(dtype) for name, each in task.points.items()}
    train = getattr(getattr(task, "data", None), "train", None)
    if train is not None:
        for name in ("features", "targets"):
            if getattr(train, name).is_floating_point():
                object.__setattr__(train, name, getattr(train, name).to(dtype))


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


kept_alive: list[Any] = []


def exchanges_under_way() -> bool:
    """Exchanges that nobody waits for, in a group that something keeps alive: its threads hold tensors."""
    kept_alive.append(dist.group.WORLD)
    for _ in range(300):
        dist.all_reduce(torch.ones(3000), async_op=True)
    return True


class Halves(nn.Module):
    """A linear layer, one that only the rows of some processes reach, and one that none does."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.sometimes, self.unseen = (nn.Linear(3, 1, bias=False) for _ in range(3))
        for number, each in enumerate((self.seen, self.sometimes, self.unseen), 1):
            nn.init.constant_(each.weight, float(number))


def unused_parameters(rank_that_uses: int) -> list[Any]:
    """The weights after a step with weight decay, of which only some have a gradient, and only in some processes."""
    context, _ = setup_device("cpu", threads=1)
    model = Halves()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.1)
    updater = GradientUpdater(model, optimizer, total_steps=3, device_context=context)
    rows = torch.arange(12.0).reshape(4, 3)[fraction_of(4)]
    uses = num_processes() == 1 or process_rank() == rank_that_uses

    def losses(x: torch.Tensor) -> torch.Tensor:
        found = model.seen(x)
        return found + model.sometimes(x) if uses else found

    for _ in range(2):
        updater.update([(rows[:1],), (rows[1:],)], losses, weight=0.25)
    return [each.weight.flatten().tolist() for each in (model.seen, model.sometimes, model.unseen)]


def kept(shard: bool) -> int:
    """How many numbers of the weights this process keeps after a step."""
    context, _ = setup_device("cpu", threads=1, shard=shard)
    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    updater = GradientUpdater(model, optimizer, total_steps=1, device_context=context, max_grad_norm=1.0)
    updater.update([(torch.ones(2, 5),)], model, weight=0.25)
    parts = [each.to_local() if isinstance(each, DTensor) else each for each in model.parameters()]
    moments = [each["exp_avg"] for each in optimizer.state.values()]
    assert sum(each.to_local().numel() if isinstance(each, DTensor) else each.numel() for each in moments) == sum(
        each.numel() for each in parts
    )
    return sum(each.numel() for each in parts)


def diverging(bad_rank: int) -> str:
    """What each process says of a loss that is not finite in one of them."""
    context, _ = setup_device("cpu", threads=1)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    updater = GradientUpdater(model, torch.optim.SGD(model.parameters(), lr=0.1), total_steps=3, device_context=context)
    rows = torch.full((2, 2), math.inf if process_rank() == bad_rank else 1.0)
    try:
        updater.update([(rows,)], model, weight=0.25)
    except NonFiniteLossError as error:
        return str(error)
    return "nothing"


def agreed(asking_rank: int) -> list[int]:
    """The steps after which all knew that one process asks for something from its tenth step on."""
    steps: list[int] = []
    agreement = Agreement({"stop": lambda: process_rank() == asking_rank and step >= 10})
    for step in range(60):
        time.sleep(0.005 * (process_rank() + 1))
        agreement.after_step()
        if agreement.says("stop"):
            steps.append(step)
    return steps


def several_things() -> dict[str, Any]:
    """All of the above in one group, which takes long to start."""
    mlp = {"batch_size": 31, "dropout": 0.2}
    found = {
        "losses": [
            step_losses("mlp", mlp, 6, dtype, shard) for dtype in ("float64", "float32") for shard in (False, True)
        ],
    }
    torch.set_default_dtype(torch.float32)
    return found | {
        "unused": unused_parameters(1),
        "diverging": diverging(1),
        "agreed": agreed(1),
        "kept": [kept(False), kept(True)],
    }
