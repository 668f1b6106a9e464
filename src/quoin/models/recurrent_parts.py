"""What the recurrent models share: their cells with first weights, codes of tokens, scores, and torch's states.

h units, v tokens of the vocabulary
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin.errors import Mistake
from quoin.layers import keeps_global_rng

__all__ = [
    "CellKind",
    "RecurrentState",
    "as_state",
    "as_torch",
    "checked_silent",
    "make_cell",
    "make_codes",
    "make_linear",
    "over_all",
    "start_recurrent_weights",
]

CellKind = type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]


class RecurrentState(NamedTuple):
    """What the layers carry on: the hidden states, and an LSTM's cells."""

    tensors: tuple[Tensor, ...]  # each (layers, b, h)

    def select(self, rows: Tensor) -> "RecurrentState":
        """These sequences, in this order."""
        return RecurrentState(tuple(each.index_select(1, rows.to(each.device)) for each in self.tensors))

    def detach(self) -> "RecurrentState":
        """The same numbers without the way back: where a gradient through time is cut."""
        return RecurrentState(tuple(each.detach() for each in self.tensors))


@torch.no_grad()
def start_recurrent_weights(cell: nn.RNNBase, generator: torch.Generator | None = None) -> None:
    """Draw the weights of each gate by itself; biases start at 0, but for an LSTM's forget gate, which starts at 1."""
    hidden = cell.hidden_size
    for name, weight in cell.named_parameters():
        if name.startswith("bias"):
            weight.zero_()
            if isinstance(cell, nn.LSTM) and name.startswith("bias_ih"):
                weight[hidden : 2 * hidden] = 1.0
            continue
        for gate in weight.split(hidden):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate, generator=generator)
            else:
                nn.init.xavier_uniform_(gate, generator=generator)


def over_all(scores: Tensor, silent: int) -> Tensor:  # (..., v - silent) -> (..., v)
    """The scores behind those of the marks that are never said."""
    return functional.pad(scores, (silent, 0), value=-torch.inf) if silent else scores


def as_torch(cell: nn.RNNBase, state: RecurrentState) -> Tensor | tuple[Tensor, ...]:
    return state.tensors if isinstance(cell, nn.LSTM) else state.tensors[0]


def as_state(after: Tensor | tuple[Tensor, ...]) -> RecurrentState:
    return RecurrentState(after if isinstance(after, tuple) else (after,))


@keeps_global_rng
def make_cell(
    kind: CellKind, inputs: int, hidden: int, layers: int, dropout: float, bidirectional: bool, generator: torch.Generator | None
) -> nn.RNNBase:
    sizes = {"inputs": inputs, "hidden": hidden, "layers": layers}
    if bad := [name for name, size in sizes.items() if size < 1]:
        raise Mistake(f"expected {bad[0]} of 1 or more, got {sizes[bad[0]]}: raise it")
    if not 0 <= dropout < 1:
        raise Mistake(f"expected a dropout from 0 to below 1, got {dropout}: choose a share")
    cell = kind(inputs, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0, bidirectional=bidirectional)
    start_recurrent_weights(cell, generator)
    return cell


@keeps_global_rng
def make_codes(size: int, width: int, generator: torch.Generator | None) -> nn.Embedding:
    if size < 1 or width < 1:
        raise Mistake(f"expected a vocabulary and a width of 1 or more, got {size} and {width}: raise them")
    table = nn.Embedding(size, width)
    nn.init.normal_(table.weight, generator=generator)
    return table


@keeps_global_rng
def make_linear(inputs: int, outputs: int, generator: torch.Generator | None) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def checked_silent(silent: int, size: int) -> int:
    if not 0 <= silent < size:
        raise Mistake(f"expected from 0 to {size - 1} silent marks in a vocabulary of {size}, got {silent}: one token must be left to say")
    return silent
