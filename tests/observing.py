"""What a recipe does under given options, seen from outside and to the bit: to tell whether an option does anything.

A `Seen` is looked at stage by stage, the cheapest first, and only as far as it takes to tell it from another one.
Nothing that merely stores an option counts: compared are tensors, the rows that were drawn, the rates that optimizers
really stepped with, the shapes that modules were given, sums, metrics and pictures.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import typing
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from quoin.options import choices_of
from quoin.runs import Recipe
from quoin.train import DeviceContext, NonFiniteLossError

__all__ = ["Seen", "difference", "other_values", "rates_of_all_differ", "stepped_rates"]

FIRST_STEPS = 2

Entries = dict[str, Any]


class Seen:
    """A task built from `options`, and what was seen of it so far; building raises the `UserError` of options that do
    not go together."""

    def __init__(self, recipe: Recipe, options: Any, place: DeviceContext | None = None) -> None:
        self.entries: list[Entries] = []
        self.rates: dict[int, list[list[float]]] = {}  # of each optimizer in the order of their first steps
        self._chance = torch.Generator().manual_seed(options.seed).get_state()
        with self._own_chance():
            self.task = recipe.build(options, place or DeviceContext())
        self._stages = self._looks()

    def stage(self, index: int) -> Entries | None:
        """What the stage showed, by kind; None after the last one."""
        while len(self.entries) <= index:
            with self._own_chance():
                found = next(self._stages, None)
            if found is None:
                return None
            self.entries.append(found)
        return self.entries[index]

    def _looks(self) -> Iterator[Entries]:
        task = self.task
        yield {"number of batches": task.batches.num_batches, "tensors": digest(_tensors(task.state_dict()))}
        rows = iter(task.batches)
        try:
            yield self._steps(itertools.islice(rows, FIRST_STEPS))
            yield {"validation": digest(task.evaluate("validation"))}
            yield self._steps(rows)
            yield {
                "validation at the end": digest(task.evaluate("validation")),
                "train": digest(task.evaluate("train")),
            }
            yield {"test": digest(task.evaluate("test"))}
        except NonFiniteLossError as error:
            yield {"diverged": str(error)}
            return
        yield {f"panel {index}": digest(each.plot.svg()) for index, each in enumerate(task.panels())}

    def _steps(self, batches: Iterator[Any]) -> Entries:
        rows, sums = [], []
        with stepped_rates(self.rates), _shapes() as shapes:
            for each in batches:
                rows.append(digest(each))
                sums.append(digest(self.task.step(each)))
        told = {"rates": [list(each) for each in self.rates.values()], "shapes": digest(shapes)}
        return told | {"rows": rows, "sums": sums, "tensors": digest(_tensors(self.task.state_dict()))}

    @contextlib.contextmanager
    def _own_chance(self) -> Iterator[None]:
        """Two are looked at in turns, and each is to draw as if it were alone."""
        with torch.random.fork_rng([]):
            torch.set_rng_state(self._chance)
            yield
            self._chance = torch.get_rng_state()


def difference(one: Seen, other: Seen, *, noise: Seen | None = None, only: str = "") -> str:
    """The first kind of thing in which two differ, or "": `noise`, built like `one`, shows what differs by itself, such
    as seconds.

    With `only` no other kind counts.
    """
    for index in itertools.count():
        here, there = one.stage(index), other.stage(index)
        if here is None or there is None:
            return "" if here is there else "number of stages"
        if not only and here.keys() != there.keys():
            return ", ".join(sorted(here.keys() ^ there.keys()))
        again = noise.stage(index) if noise is not None and here != there else None
        for kind in here.keys() & ({only} if only else here.keys()):
            if here[kind] != there.get(kind) and (again is None or again.get(kind) == here[kind]):
                return kind
    raise AssertionError


def rates_of_all_differ(one: Seen, other: Seen) -> bool:
    """Whether every optimizer stepped with other rates, over as many stages as that takes; also where there is none."""
    for index in itertools.count():
        here, there = one.stage(index), other.stage(index)
        if here is None or there is None:
            return False
        mine, yours = here.get("rates"), there.get("rates")
        if (
            mine is not None
            and yours is not None
            and (len(mine) != len(yours) or all(a != b for a, b in zip(mine, yours)))
        ):
            return True
    raise AssertionError


@contextlib.contextmanager
def stepped_rates(rates: dict[int, list[list[float]]]) -> Iterator[None]:
    """Meanwhile, `rates` gathers the rates of the groups at every step of every optimizer."""

    def note(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        rates.setdefault(id(optimizer), []).append([float(group["lr"]) for group in optimizer.param_groups])

    handle = register_optimizer_step_pre_hook(note)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _shapes() -> Iterator[list[Any]]:
    shapes: list[Any] = []

    def note(module: nn.Module, given: tuple[Any, ...]) -> None:
        shapes.append([tuple(each.shape) for each in given if isinstance(each, Tensor)])

    handle = register_module_forward_pre_hook(note)
    try:
        yield shapes
    finally:
        handle.remove()


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors of a state in order: its numbers and strings may be options that are only stored."""
    if isinstance(tree, Tensor):
        return [tree]
    values = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [tensor for value in values for tensor in _tensors(value)]


def digest(value: Any) -> str:
    """A hash of the bits of everything in a tree."""
    made = hashlib.sha256()

    def add(node: Any) -> None:
        if isinstance(node, Tensor):
            made.update(f"{node.dtype}{tuple(node.shape)}".encode())
            made.update(node.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        elif isinstance(node, nn.Module):
            add([each.detach() for each in (*node.parameters(), *node.buffers())])
        elif isinstance(node, numpy.ndarray):
            add(torch.from_numpy(node))
        elif dataclasses.is_dataclass(node):
            add([getattr(node, each.name) for each in dataclasses.fields(node)])
        elif isinstance(node, dict):
            add(list(node.items()))
        elif isinstance(node, list | tuple):
            made.update(f"[{len(node)}".encode())
            for each in node:
                add(each)
        else:
            made.update(repr(node).encode())

    add(value)
    return made.hexdigest()


def other_values(kind: Any, value: Any) -> list[Any]:
    """Values of this type that are not `value`, likely ones first; some may be out of the option's range."""
    inner = typing.get_args(kind)
    if choices := choices_of(kind):
        return [choice for choice in choices if choice != value]
    if kind is bool:
        return [not value]
    if typing.get_origin(kind) is tuple:
        shorter = [value[:-1], value[1:]] if len(value) > 1 else []
        scaled = (
            [tuple(_scaled(inner[0], each)[index] for each in value) for index in range(4)]
            if value and inner[0] is not str
            else []
        )
        return [*shorter, *scaled]
    if type(None) in inner:  # left to the recipe until it is given
        kind = next(each for each in inner if each is not type(None))
        return other_values(kind, kind()) if value is None else other_values(kind, value)
    if kind in (int, float):
        return _scaled(kind, value)
    return []


def _scaled(kind: Any, value: Any) -> list[Any]:
    if kind is int:
        return [value // 2, value * 2, value - 1, value + 1, value - 2, value + 2] if value else [1, 2, 3]
    return [value / 2, value * 2, 0.9 * value, 1.1 * value] if value else [0.3, 0.01, 1.0]
