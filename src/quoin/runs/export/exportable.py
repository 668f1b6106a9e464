"""What of a run leaves it: parts, each a module from raw, named inputs to named answers, and what stands beside them.

A part knows which axes of its inputs are free, how to draw inputs of any sizes, what the run itself answers to them,
and, where the run has its data, real rows. The forms (onnx_form.py, torch_form.py) write parts and know no kinds.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

__all__ = [
    "BATCH",
    "Axis",
    "ExportInput",
    "ExportPart",
    "Exportable",
    "LoopCheck",
    "Opener",
    "ScriptCheck",
    "draw_inputs",
    "draw_tokens",
]

Sizes = Mapping[str, int]  # of the free axes, by name
Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Axis:
    """An axis whose length is free: `traced` is its length when the graph is made, `tried` are two to compare at."""

    name: str
    traced: int
    tried: tuple[int, int]
    at_most: int | None = None  # the largest length that the model knows
    least: int = 1

    def up_to(self, at_most: int | None) -> "Axis":
        """The same axis, where the model knows no greater length: none greater is traced or tried."""
        if at_most is None:
            return self
        traced, *tried = (max(self.least, min(size, at_most)) for size in (self.traced, *self.tried))
        return Axis(self.name, traced, (tried[0], tried[1]), at_most, self.least)


BATCH = Axis("batch", traced=2, tried=(1, 5))


@dataclass(frozen=True)
class ExportInput:
    """One input: its axes are free ones or sizes, and `draw` samples one of a shape."""

    name: str
    axes: tuple[Axis | int, ...]
    draw: Callable[[tuple[int, ...], torch.Generator], Tensor]
    meaning: str = ""  # for quoin.json

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(axis if isinstance(axis, int) else sizes[axis.name] for axis in self.axes)


@dataclass(frozen=True)
class ExportPart:
    """A module that is exported by itself, in the file `name`.onnx or `name`.pt2.

    Args:
        ours: What the run answers by its own code; the module itself unless given.
        real: Inputs from the run's own test data; raises an error where they are not at hand.
    """

    name: str
    module: nn.Module
    inputs: tuple[ExportInput, ...]
    outputs: tuple[str, ...]
    ours: Callable[..., Tensors] | None = None
    real: Callable[[], Tensors] | None = None
    tolerance: float | None = None  # where that of float32 does not hold

    @property
    def free_axes(self) -> tuple[Axis, ...]:
        return free_axes(self.inputs)

    @torch.no_grad()
    def answers(self, inputs: Tensors) -> Tensors:
        """What the run answers."""
        found = (self.ours or self.module)(*inputs)
        return found if isinstance(found, tuple) else (found,)


Opener = Callable[[str], Callable[..., Tensors]]  # the part of this name, as the other runtime computes it


@dataclass(frozen=True)
class LoopCheck:
    """Parts that are called one after another, as a script does it, beside what the run answers to the whole at once.

    Args:
        loop: From the opener of the parts and the inputs to the answers.
        whole: What the run answers to the same inputs by its own code, which knows no parts.
        real: Inputs from the run's own test data; raises an error where they are not at hand.
    """

    name: str
    inputs: tuple[ExportInput, ...]
    loop: Callable[..., Tensors]
    whole: Callable[..., Tensors]
    real: Callable[[], Tensors] | None = None
    tolerance: float | None = None

    @property
    def free_axes(self) -> tuple[Axis, ...]:
        return free_axes(self.inputs)

    @torch.no_grad()
    def answers(self, inputs: Tensors) -> Tensors:
        """What the run answers."""
        return self.whole(*inputs)

    def opened(self, opener: Opener) -> Callable[..., Tensors]:
        """The loop over the parts that were written, each opened once."""
        kept = functools.cache(opener)
        return lambda *inputs: self.loop(kept, *inputs)


@dataclass(frozen=True)
class ScriptCheck:
    """A call of a script that was written, whose result is known.

    Args:
        words: After the script's name; {out} stands for a file that it writes.
        expected: The run's own result, as text for what is printed or as an array for the .npy file {out}.
        files: Arrays that are written beforehand, by the word that stands for them in `words`.
    """

    script: str
    words: tuple[str, ...]
    expected: Callable[[], str | Shaped[Tensor, "..."]]
    files: Mapping[str, Tensor] = field(default_factory=dict)
    tolerance: float | None = None


@dataclass(frozen=True)
class Exportable:
    """All that is written of one run.

    Args:
        info: What quoin.json tells beside the parts: names, units, vocabularies.
        scripts: Files to write beside the parts, each from a module of scripts/.
        loops: Comparisons of what the parts give together.
        notes: What the user should know.
    """

    parts: tuple[ExportPart, ...]
    info: dict[str, Any]
    scripts: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[ScriptCheck, ...] = ()
    loops: tuple[LoopCheck, ...] = ()
    notes: tuple[str, ...] = ()


def free_axes(inputs: tuple[ExportInput, ...]) -> tuple[Axis, ...]:
    """Each once, in the order of the inputs."""
    return tuple(dict.fromkeys(axis for each in inputs for axis in each.axes if isinstance(axis, Axis)))


def draw_inputs(part: ExportPart | LoopCheck, sizes: Sizes, seed: int = 0) -> Tensors:
    """Random inputs of these sizes."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(each.draw(each.shape(sizes), generator) for each in part.inputs)


def draw_tokens(vocab_size: int) -> Callable[[tuple[int, ...], torch.Generator], Tensor]:
    """Token numbers, each as probable as any other."""
    return lambda size, generator: torch.randint(vocab_size, size, generator=generator)
