"""The task of a plan: built as for a run, but weights that are large have shapes and no memory.

The data are loaded by the recipe's own path. What the model makes from a million numbers on is a fake tensor, so that a
model of any size is built in seconds; smaller tensors are real, for a model may look at them while it is made.
"""

import dataclasses
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from quoin.data import TextInfo
from quoin.errors import UserError
from quoin.layers.linear_cross_entropy import counted_as_on
from quoin.runs.catalog import Recipe
from quoin.runs.fit import build_task
from quoin.runs.plan_count import Operation, StepCounter, total_bytes
from quoin.tasks.options import GradientOptions
from quoin.train import DeviceContext, GradientTask, GradientUpdater, Task

__all__ = ["CountedStep", "StepOfPlan", "find_updaters", "gathered_blocks"]

LARGE = 1_000_000  # numbers of a tensor that gets no memory
_MAKING = {"empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "arange", "eye", "randint"}


@dataclasses.dataclass(frozen=True)
class CountedStep:
    """One optimizer step of one process.

    Memory is in bytes. `peak` is the most that lives at once; the kinds need not all live then: most activations are
    gone when the last gradient is there.
    """

    num_parameters: int
    weights: int
    gradients: int
    optimizer_state: int
    buffers: int  # and the moving average of the weights, where there is one
    activations: int  # kept for the backward pass of a micro-batch
    copies: int  # of the weights in half precision
    peak: int
    made: int  # of the peak, what the step makes: activations, copies, gradients so far, temporary tensors
    made_forward: int  # what is made and lives when the activations are all there
    is_before_gradients: bool  # whether the peak is early in the backward pass, when there are no gradients
    blocks: tuple[int, int]  # weights of the largest block, and of those in none (`gathered_blocks`)
    piece_operations: Counter[Operation]  # of the forward and backward pass of one micro-batch, how often each
    update_operations: Counter[Operation]  # of the optimizer
    num_pieces: int  # micro-batches
    is_fake: bool  # whether no step was really made

    def operations(self, *, update_fraction: float = 1.0) -> dict[Operation, float]:
        """How often each is called in a step; of the optimizer's, a fraction where each process updates its own."""
        adding = Operation("add_", 0, 3 * self.gradients)  # the gradients of a micro-batch to those before
        found: dict[Operation, float] = {each: n * self.num_pieces for each, n in self.piece_operations.items()}
        found[adding] = self.num_pieces - 1
        for each, count in self.update_operations.items():
            found[each] = found.get(each, 0) + count * update_fraction
        return {each: count for each, count in found.items() if count}

    def in_pieces(self, num_pieces: int) -> "CountedStep":
        """A step of so many micro-batches like this one: the second holds the gradients of the first."""
        if num_pieces == 1:
            return self
        early = self.made if self.is_before_gradients else self.made_forward
        made = max(self.made, early + self.gradients)
        peak = self.peak - self.made + made
        return dataclasses.replace(self, made=made, peak=peak, is_before_gradients=False, num_pieces=num_pieces)

    @property
    def flops(self) -> float:
        return sum(each.flops * count for each, count in self.operations().items())


class _WithoutMemory(TorchDispatchMode):
    """Inside, a large tensor that is made has a shape and no memory."""

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()
        self.fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        name = func._schema.name.partition("::")[2]
        if name in _MAKING and _numel(args) >= LARGE:
            with self.fake:
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _numel(args: tuple) -> int:
    sizes = args[0] if args and isinstance(args[0], (list, tuple)) else args[:1]
    count = 1
    for size in sizes:
        count *= size if isinstance(size, int) else 1
    return count


@dataclasses.dataclass(frozen=True)
class _TextInfoOfVocabSize(TextInfo):
    """A text as if it had this many tokens in its vocabulary."""

    pretended: int = 0

    @property
    def vocab_size(self) -> int:
        return self.pretended


@dataclasses.dataclass(frozen=True)
class _ModelWithoutMemory:
    """A recipe's function `model`, whose large weights get no memory."""

    make: Any
    fake: FakeTensorMode
    vocab_size: int

    def __call__(self, options: Any, data_info: Any) -> nn.Module:
        if self.vocab_size:
            data_info = self._pretend(data_info)
        with _WithoutMemory(self.fake):
            return self.make(options, data_info)

    def _pretend(self, data_info: Any) -> TextInfo:
        if not isinstance(data_info, TextInfo):
            raise UserError("--vocab is for a language model, whose vocabulary its text decides: leave it out")
        known = {each.name: getattr(data_info, each.name) for each in dataclasses.fields(data_info)}
        return _TextInfoOfVocabSize(**known, pretended=self.vocab_size)


@contextmanager
def _without_memory(recipe: Recipe, fake: FakeTensorMode, vocab_size: int) -> Iterator[None]:
    """Inside, `build` of the recipe makes its model without memory for large weights."""
    make, apply = getattr(recipe.module, "model", None), nn.Module._apply
    if vocab_size and make is None:
        raise UserError(f"--vocab is for a recipe with a function model, which {recipe.name} has not: leave it out")

    def apply_to_real(module: nn.Module, function: Any, recurse: bool = True) -> nn.Module:
        # A fake tensor cannot be moved in place, and need not be: it lies nowhere.
        is_fake = any(isinstance(each, FakeTensor) for each in module.parameters())
        return module if is_fake else apply(module, function, recurse)

    recipe.module.model = _ModelWithoutMemory(make, fake, vocab_size)  # type: ignore[attr-defined]
    nn.Module._apply = apply_to_real  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = apply  # type: ignore[method-assign]
        if make is None:
            del vars(recipe.module)["model"]
        else:
            recipe.module.model = make  # type: ignore[attr-defined]


class StepOfPlan:
    """The task of a recipe, built to be counted and never trained.

    Args:
        num_rows: Rows of one process in a step.
        vocab_size: Tokens of a vocabulary other than that of the text; 0 for its own.
        as_on: "cpu" or "cuda", whose step is counted: on a GPU the logits of a language model come in larger pieces.
    """

    def __init__(
        self,
        recipe: Recipe,
        options: Any,
        device_context: DeviceContext,
        num_rows: int,
        vocab_size: int = 0,
        *,
        as_on: str = "cpu",
    ) -> None:
        self.recipe, self.num_rows, self.vocab_size, self.as_on = recipe, num_rows, vocab_size, as_on
        if not issubclass(recipe.options, GradientOptions):
            raise UserError(_no_plan(recipe))
        self.options = dataclasses.replace(options, batch_size=num_rows) if hasattr(options, "batch_size") else options
        self.device_context = device_context
        self.task = self._build()
        self.rows_of_data = self.task.batches.num_rows

    def _build(self) -> Any:
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        with _without_memory(self.recipe, self.fake, self.vocab_size):
            task: Any = build_task(self.recipe, self.options, self.device_context)
        self.updaters = list(find_updaters(task))
        if not self.updaters:
            raise UserError(_no_plan(self.recipe))
        return task

    @property
    def micro_batch_size(self) -> int:
        """Rows of one forward pass."""
        return min(getattr(self.options, "micro_batch_size", 0) or self.num_rows, self.num_rows)

    def count(self) -> CountedStep:
        """Count a step with fake weights; where the step looks at what they give, make one with real ones."""
        is_large = any(isinstance(each, FakeTensor) for each in self._parameters())
        try:
            self._take_weights_away()
            return self._count(is_fake=True)
        except Exception as error:  # of any kind: values that are not there lead anywhere
            if is_large:
                raise UserError(
                    f"recipe {self.recipe.name} reads values in its forward pass ({type(error).__name__}), so that it "
                    "can be planned only at sizes that this machine can train: choose smaller ones"
                ) from error
        self.task = self._build()
        return self._count(is_fake=False)

    def _take_weights_away(self) -> None:
        """Put a tensor without memory in the place of every weight, and give the optimizers their state."""
        models = [model for each in self.updaters for model in (each.model, each.eval_model)]
        replaced: dict[int, nn.Parameter] = {}
        for module in {id(each): each for model in models for each in model.modules()}.values():
            for name, weight in module._parameters.items():
                if weight is not None:
                    if id(weight) not in replaced:
                        replaced[id(weight)] = _fake_parameter(self.fake, weight)
                    module._parameters[name] = replaced[id(weight)]
        for each in self.updaters:
            for group in each.optimizer.param_groups:
                group["params"] = [replaced.get(id(weight), weight) for weight in group["params"]]
            each._parameters = [weight for group in each.optimizer.param_groups for weight in group["params"]]
            for weight in each._parameters:
                weight.grad = torch.empty_like(weight)
            with StepCounter(reads_floats=True):
                each.optimizer.step()
            each.zero_grad()

    def _count(self, *, is_fake: bool) -> CountedStep:
        pieces = -(-self.num_rows // self.micro_batch_size)
        if not is_fake:
            self._step(self.micro_batch_size, is_fake=is_fake)  # makes the optimizer's state
        counter = self._step(self.micro_batch_size, is_fake=is_fake)
        parameters = self._parameters()
        gradients = total_bytes(each.grad for each in parameters if each.grad is not None)
        step = CountedStep(
            num_parameters=sum(each.numel() for each in parameters),
            weights=total_bytes(parameters),
            gradients=gradients,
            optimizer_state=total_bytes(self._states()),
            buffers=total_bytes(self._buffers()),
            activations=counter.peak_saved,
            copies=counter.copies,
            peak=total_bytes([*parameters, *self._states(), *self._buffers()]) + counter.peak,
            made=counter.peak,
            made_forward=counter.live_at_peak_saved,
            is_before_gradients=2 * counter.saved_at_peak > counter.peak_saved,
            blocks=gathered_blocks([each.model for each in self.updaters]),
            piece_operations=counter.operations,
            update_operations=counter.update_operations,
            num_pieces=1,
            is_fake=is_fake,
        )
        return step.in_pieces(pieces)

    def _step(self, num_rows: int, *, is_fake: bool) -> StepCounter:
        held = [*self._parameters(), *self._states(), *self._buffers()]
        counter, rows = StepCounter(held, reads_floats=is_fake), self._rows(num_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, on fake tensors that it knows no pointer of
            with counter, counter.counting_saved(), self._updates_told_to(counter), counted_as_on(self.as_on):
                self.task.step(rows)
        return counter

    @contextmanager
    def _updates_told_to(self, counter: StepCounter) -> Iterator[None]:
        """Inside, the counter knows when an optimizer moves the weights."""
        for each in self.updaters:
            each.step = functools.partial(_update, each.step, counter)  # type: ignore[method-assign]
        try:
            yield
        finally:
            for each in self.updaters:
                del each.step

    def _rows(self, num_rows: int) -> Tensor:
        """Row numbers of a batch; where the data have fewer, some again: what they hold makes no difference."""
        batches = self.task.batches
        batches.epoch = batches.position = 0
        rows = next(iter(batches))
        return rows.repeat(-(-num_rows // len(rows)))[:num_rows]

    def _parameters(self) -> list[Tensor]:
        models = [each.model for each in self.updaters]
        found = {id(each): each for model in models for each in model.parameters()}
        return list(found.values())

    def _states(self) -> list[Tensor]:
        return [
            value
            for each in self.updaters
            for state in each.optimizer.state.values()
            for value in state.values()
            if isinstance(value, Tensor)
        ]

    def _buffers(self) -> list[Tensor]:
        averages = [each.ema.module for each in self.updaters if each.ema is not None]
        models = [each.model for each in self.updaters]
        return [*(each for model in models for each in model.buffers())] + [
            each for model in averages for each in (*model.parameters(), *model.buffers())
        ]


def _update(step: Callable[[], None], counter: StepCounter) -> None:
    counter.is_updating = True
    try:
        step()
    finally:
        counter.is_updating = False


def _fake_parameter(fake: FakeTensorMode, weight: nn.Parameter) -> nn.Parameter:
    if isinstance(weight, FakeTensor):
        return weight
    return nn.Parameter(fake.from_tensor(weight.detach()), requires_grad=weight.requires_grad)


def gathered_blocks(models: Iterable[nn.Module]) -> tuple[int, int]:
    """Bytes of the largest block of a list or sequence of blocks, which FSDP gathers one after another, and of the
    weights that are in none, which it gathers first."""
    models = list(models)
    containers = [
        each for model in models for each in model.modules() if isinstance(each, (nn.ModuleList, nn.Sequential))
    ]
    sizes = {id(child): total_bytes(child.parameters()) for each in containers for child in each.children()}
    inside = {id(p) for each in containers for child in each.children() for p in child.parameters()}
    rest = [each for model in models for each in model.parameters() if id(each) not in inside]
    return max(sizes.values(), default=0), total_bytes(rest)


def find_updaters(thing: Any) -> Iterator[GradientUpdater]:
    """Every optimizer of a task, and of the tasks that are trained beside it."""
    if isinstance(thing, GradientUpdater):
        yield thing
    elif isinstance(thing, dict):
        for each in thing.values():
            yield from find_updaters(each)
    elif isinstance(thing, (list, tuple)):
        for each in thing:
            yield from find_updaters(each)
    elif isinstance(thing, (GradientTask, Task)):
        yield from find_updaters(vars(thing))


def _no_plan(recipe: Recipe) -> str:
    return f"recipe {recipe.name} follows no gradient of a loss in steps of its own optimizer, so it has no such plan"
