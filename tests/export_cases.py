"""One architecture under torch.export: what is exported, at which sizes, and how the program is held against the model.

A batch and a length are free if the program that was traced at one size computes what the model does at others. Which
axes of the inputs they are is read off the inputs themselves, made at two sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

BATCH, SEQ = 3, 5  # sizes that the program is traced at: no size of a layer, so that none is taken for another
OTHER_BATCHES, OTHER_LENGTHS = (1, 4), (7, 11)
TOLERANCE = 1e-6  # times the largest output, where that is above 1


@dataclass(frozen=True)
class Case:
    """A network, and its inputs for a batch size and a length.

    Args:
        call: What is exported, of the network and the inputs; its forward unless given.
        min_seq, max_seq: The lengths that the network can read at all.
        keeps_weights: Whether its parameters are left as they were made; else they are shaken, since many a network
            starts with zeros, which no difference would show through.
        deep: Whether it takes long.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int, int], tuple[Tensor, ...]]
    call: Callable[..., Any] | None = None
    min_seq: int = 0
    max_seq: int | None = None
    keeps_weights: bool = False
    deep: bool = False

    @property
    def free_length(self) -> bool:
        """Whether a length appears in the inputs at all."""
        return [each.shape for each in self.inputs(BATCH, SEQ)] != [each.shape for each in self.inputs(BATCH, SEQ + 1)]

    def module(self) -> nn.Module:
        """What is exported, at rest."""
        torch.manual_seed(0)  # for layers of torch that take no generator
        made = self.make().eval()
        if not self.keeps_weights:
            shake(made)
        return (made if self.call is None else Called(made, self.call)).eval()

    def shapes(self) -> Any:
        """`dynamic_shapes` for torch.export: strict ones, with which it fails where a size becomes a constant."""
        batch, seq = Dim("batch"), Dim("seq", min=self.min_seq, max=self.max_seq)
        inputs, larger, longer = (self.inputs(*size) for size in ((BATCH, SEQ), (BATCH + 1, SEQ), (BATCH, SEQ + 1)))
        shapes = []
        for at, b, n in zip(inputs, larger, longer, strict=True):
            axes = {i: batch for i, size in enumerate(at.shape) if b.shape[i] != size}
            axes |= {i: seq for i, size in enumerate(at.shape) if n.shape[i] != size}
            shapes.append(axes)
        return tuple(shapes) if self.call is None else (tuple(shapes),)


class Called(nn.Module):
    """A network called in another way than by its forward."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs: Tensor) -> Any:
        return self.call(self.model, *inputs)


@torch.no_grad()
def shake(model: nn.Module) -> None:
    """Add a little noise to all parameters and to the means of batch norms."""
    generator = torch.Generator().manual_seed(1)
    means = [buffer for name, buffer in model.named_buffers() if name.endswith("running_mean")]
    for each in (*model.parameters(), *means):
        if each.is_floating_point():
            each += 0.1 * torch.randn(each.shape, generator=generator).to(each)


def exported(case: Case, module: nn.Module) -> ExportedProgram:
    """The program of the module with a free batch, and a free length where there is one."""
    with torch.no_grad():
        return torch.export.export(module, case.inputs(BATCH, SEQ), dynamic_shapes=case.shapes(), strict=False)


def largest_difference(case: Case, module: nn.Module, program: nn.Module) -> float:
    """Between the program and the module, over sizes that it was not traced at, beside the size of the outputs."""
    lengths = OTHER_LENGTHS if case.free_length else (SEQ,)
    worst = 0.0
    for batch in OTHER_BATCHES:
        for length in lengths:
            inputs = case.inputs(batch, length)
            with torch.no_grad():
                expected, got = (pytree.tree_leaves(each(*inputs)) for each in (module, program))
            assert len(got) == len(expected) > 0
            for ours, theirs in zip(expected, got, strict=True):
                assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)
                assert ours.isfinite().any(), "the outputs must be numbers for a difference to show"
                assert not torch.equal(ours, ours.new_zeros(())), "the outputs must not all be zero"
                worst = max(worst, _difference(ours, theirs))
    return worst


def _difference(ours: Tensor, theirs: Tensor) -> float:
    finite = ours.isfinite()
    if not torch.equal(finite, theirs.isfinite()) or not torch.equal(ours[~finite], theirs[~finite]):
        return torch.inf
    ours, theirs = ours[finite].double(), theirs[finite].double()
    return float((ours - theirs).abs().max() / max(1.0, float(ours.abs().max())))


def bounds(program: ExportedProgram) -> list[tuple[int | float, int | float]]:
    """The least and the largest value of each size that is free."""
    return [(float(each.lower), float(each.upper)) for each in program.range_constraints.values()]
