"""What the recurrent models share: their cells with initial weights, logits, and torch's hidden states."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.layers.recurrent_scan import scan_recurrent

__all__ = [
    "CellKind",
    "RecurrentState",
    "as_state",
    "as_torch",
    "checked_num_suppressed",
    "init_recurrent_weights",
    "lengths_fit",
    "make_cell",
    "make_linear",
    "pad_suppressed",
    "read_sequences",
]

CellKind = type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]


@shown
class RecurrentState(NamedTuple):
    """The hidden states of the layers, and an LSTM's cell states."""

    tensors: tuple[Float[Tensor, "layers batch hidden"], ...]

    def select(self, indices: Int[Tensor, "selected"]) -> "RecurrentState":
        """The hidden states of these sequences, in this order."""
        return RecurrentState(tuple(each.index_select(1, indices.to(each.device)) for each in self.tensors))

    def detach(self) -> "RecurrentState":
        """The same numbers without their graph: where backpropagation through time is truncated."""
        return RecurrentState(tuple(each.detach() for each in self.tensors))


@torch.no_grad()
def init_recurrent_weights(cell: nn.RNNBase, generator: torch.Generator | None = None) -> None:
    """Sample the weights of each gate by itself; biases start at 0, but for an LSTM's forget gate, which starts at
    1.
    """
    hidden_dim = cell.hidden_size
    for name, weight in cell.named_parameters():
        if name.startswith("bias"):
            weight.zero_()
            if isinstance(cell, nn.LSTM) and name.startswith("bias_ih"):
                weight[hidden_dim : 2 * hidden_dim] = 1.0
            continue
        for gate in weight.split(hidden_dim):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate, generator=generator)
            else:
                nn.init.xavier_uniform_(gate, generator=generator)


def pad_suppressed(
    logits: Float[Tensor, "*batch predicted"], num_suppressed: int
) -> Float[Tensor, "*batch predicted+{num_suppressed}"]:
    """The logits with those of suppressed special tokens, -inf, before them."""
    return functional.pad(logits, (num_suppressed, 0), value=-torch.inf) if num_suppressed else logits


def as_torch(
    cell: nn.RNNBase, state: RecurrentState
) -> Float[Tensor, "layers batch hidden"] | tuple[Float[Tensor, "layers batch hidden"], ...]:
    return state.tensors if isinstance(cell, nn.LSTM) else state.tensors[0]


def as_state(
    after: Float[Tensor, "layers batch hidden"] | tuple[Float[Tensor, "layers batch hidden"], ...],
) -> RecurrentState:
    return RecurrentState(after if isinstance(after, tuple) else (after,))


def lengths_fit(lengths: Int[Tensor, "batch"], longest: int) -> bool:
    """Whether all lengths are from 1 to `longest`; in a program that is exported they are not known."""
    return torch.compiler.is_exporting() or 1 <= int(lengths.min()) <= int(lengths.max()) <= longest


def read_sequences(
    cell: nn.RNNBase,
    x: Float[Tensor, "batch seq in_features"],
    state: RecurrentState | None = None,
    lengths: Int[Tensor, "batch"] | None = None,
) -> tuple[Float[Tensor, "batch seq out_features"], RecurrentState]:
    """The outputs of all steps and the state after the last, from `state` or zeros.

    Args:
        lengths: How many steps of each sequence are real; the others are never read, and their outputs are zero.
    """
    if torch.compiler.is_exporting():
        outputs, after = scan_recurrent(cell, x, None if state is None else state.tensors, lengths)
        return outputs, RecurrentState(after)
    start = None if state is None else as_torch(cell, state)
    if lengths is None:
        outputs, after = cell(x, start)
        return outputs, as_state(after)
    # Packed, so that the backward direction starts at the last real step; torch wants the lengths on the CPU.
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, after = cell(packed, start)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], as_state(after)


@keeps_global_rng
def make_cell(
    kind: CellKind,
    in_features: int,
    hidden_dim: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    generator: torch.Generator | None,
) -> nn.RNNBase:
    sizes = {"in_features": in_features, "hidden_dim": hidden_dim, "num_layers": num_layers}
    if bad := [name for name, size in sizes.items() if size < 1]:
        raise UserError(f"expected {bad[0]} of 1 or more, got {sizes[bad[0]]}: raise it")
    if not 0 <= dropout < 1:
        raise UserError(f"expected a dropout probability from 0 to below 1, got {dropout}: lower it")
    cell = kind(
        in_features,
        hidden_dim,
        num_layers,
        batch_first=True,
        dropout=dropout if num_layers > 1 else 0.0,
        bidirectional=bidirectional,
    )
    init_recurrent_weights(cell, generator)
    return cell


@keeps_global_rng
def make_linear(in_features: int, out_features: int, generator: torch.Generator | None) -> nn.Linear:
    layer = nn.Linear(in_features, out_features)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def checked_num_suppressed(num_suppressed: int, vocab_size: int) -> int:
    if not 0 <= num_suppressed < vocab_size:
        raise UserError(
            f"expected num_suppressed from 0 to {vocab_size - 1} in a vocabulary of {vocab_size}, got "
            f"{num_suppressed}: leave one token to predict"
        )
    return num_suppressed
