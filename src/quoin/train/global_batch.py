"""One batch, whoever computes it: shared out over processes and cut into micro-batches, it gives one result.

Noise, dropout's too, belongs to the rows of the global batch (`quoin.data.RowNoise`), and batch normalisation takes its
mean and variance over the rows that all processes have in their hands. While a step is made, and only then, the model's
dropout and batch normalisation are computed so; at all other times it is the module that it was.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import BatchSampler, RowNoise
from quoin.data.row_noise import keep_draws_out_of_graphs
from quoin.data.seeds import keyed_seed
from quoin.train.device_context import DeviceContext
from quoin.train.global_batch_norm import global_batch_norm_forward
from quoin.train.gradient_updater import GradientUpdater
from quoin.train.row_dropout import RowDropout, row_forward

__all__ = ["BatchPiece", "GlobalBatch", "cut_batch"]


class BatchPiece(NamedTuple):
    """Rows that go through a model together: their numbers among the examples, and their places in the global batch."""

    rows: Int[Tensor, "piece"]
    start: int
    num_rows: int  # of the global batch
    is_live: bool = True  # else a row that counts for nothing: other processes have one more, and this one must keep up

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)

    def noise(self, *key: str | int, device: torch.device | str = "cpu") -> RowNoise:
        """The noise of these rows, a function of `key`."""
        return RowNoise(*key, num_rows=self.num_rows, start=self.start, stop=self.stop, device=device)


def cut_batch(
    rows: Int[Tensor, "batch"], micro_batch_size: int, batches: BatchSampler, world_size: int
) -> list[BatchPiece]:
    """The rows that `batches` gave this process, in pieces of at most `micro_batch_size`: as many in every process.

    Fractions of a batch differ by a row at most; where that makes a piece more, or a process has no row at all, the
    first training example stands in and counts for nothing.
    """
    if world_size == 1:
        first, num_rows = 0, len(rows)
        if num_rows <= micro_batch_size:
            return [BatchPiece(rows, 0, num_rows)]
    else:
        first, num_rows = batches.first_row, batches.num_rows_seen
    pieces = []
    for start in range(0, -(-num_rows // world_size), micro_batch_size):
        some = rows[start : start + micro_batch_size]
        if len(some):
            pieces.append(BatchPiece(some, first + start, num_rows))
        else:
            pieces.append(BatchPiece(rows.new_zeros(1), 0, num_rows, is_live=False))
    return pieces


class GlobalBatch:
    """Makes the optimizer steps of one model on global batches.

    Dropout is drawn for the rows, from the seed and the step: that of `torch.nn`'s dropout layers, between the layers
    of its recurrent ones, and of our exact attention on the CPU. What a module draws by itself (torch.randn, functional
    dropout, a fused attention kernel on a GPU) comes from torch's own generator; so does all dropout that is compiled.
    The same layer must come in the same order in every piece.
    """

    def __init__(self, model: nn.Module, seed: int, device_context: DeviceContext) -> None:
        self.model, self.seed, self.device_context = model, seed, device_context
        self.dropout = RowDropout(device_context.device)
        self.is_live = True
        if device_context.compile:
            keep_draws_out_of_graphs()
        self._forwards: list[tuple[dict[str, Any], Callable]] | None = None

    def update(
        self,
        updater: GradientUpdater,
        pieces: Iterable[tuple[BatchPiece, tuple]],
        losses: Callable[..., Tensor],
        *,
        weight: float,
        name: str = "",
    ) -> Float[Tensor, ""]:
        """`updater.update` with the `losses` of pieces, each with the arguments of `losses`.

        Args:
            name: Of the loss, where a model follows several.
        """
        seed = keyed_seed("dropout", name, self.seed, updater.step_count)

        def piece_losses(piece: BatchPiece, *arguments: Any) -> Tensor:
            self.is_live = piece.is_live
            self.dropout.begin(seed, piece.start, piece.stop, piece.num_rows)
            found = losses(*arguments)
            return found if piece.is_live else found * 0

        with self._in_step():
            return updater.update(((piece, *arguments) for piece, arguments in pieces), piece_losses, weight=weight)

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """Have the model's layers computed for the global batch meanwhile."""
        if self._forwards is None:  # not before: until its first step a model may still be wrapped and filled
            self._forwards = [(module.__dict__, forward) for module, forward in self._found()]
        for attributes, forward in self._forwards:
            attributes["forward"] = forward
        try:
            yield
        finally:
            for attributes, _ in self._forwards:
                attributes.pop("forward", None)
            self.dropout.end()

    def _found(self) -> Iterator[tuple[nn.Module, Callable]]:
        """The modules that are computed in another way during a step, each with that way."""
        for number, module in enumerate(self.model.modules()):
            if "forward" in module.__dict__:  # somebody else's already
                continue
            forward = None if self.device_context.compile else row_forward(module, number, self.dropout)
            if forward is None and self.device_context.world_size > 1:
                forward = global_batch_norm_forward(module, lambda: self.is_live)
            if forward is not None:
                yield module, forward
