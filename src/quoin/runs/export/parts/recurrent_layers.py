"""A recurrent encoder from both ends as parts: embeddings, and one step of both directions of each layer.

torch.export would write out as many steps as its example has: the loop over positions is a script's.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.runs.export.exportable import BATCH, Axis, ExportInput, ExportPart, Opener, draw_tokens

__all__ = ["LENGTH", "LayerStep", "TokenEmbedding", "describe_layers", "encoder_parts", "read_both_ways"]

LENGTH = Axis("length", traced=6, tried=(3, 11))


class TokenEmbedding(nn.Module):
    """Tokens to the vectors that the first layer reads."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length embed"]:
        return self.table(tokens)


class LayerStep(nn.Module):
    """One position of one layer from the front, and one from the back: (batch, 1, in) each, and their states."""

    def __init__(self, cell: nn.RNNBase, layer: int) -> None:
        super().__init__()
        width = cell.input_size if layer == 0 else 2 * cell.hidden_size
        self.ahead, self.back = (_direction(cell, layer, width, suffix) for suffix in ("", "_reverse"))
        self.is_lstm, self.width = isinstance(cell, nn.LSTM), width

    def forward(
        self,
        first: Float[Tensor, "batch 1 in"],
        last: Float[Tensor, "batch 1 in"],
        *state: Float[Tensor, "1 batch hidden"],
    ) -> tuple[Float[Tensor, "..."], ...]:
        half = len(state) // 2
        ahead, ahead_state = self.ahead(first, state[:half] if self.is_lstm else state[0])
        back, back_state = self.back(last, state[half:] if self.is_lstm else state[1])
        after = (*ahead_state, *back_state) if self.is_lstm else (ahead_state, back_state)
        return ahead, back, *after


def by_its_own_cell(cell: nn.RNNBase, layer: int) -> Callable[..., tuple[Tensor, ...]]:
    """A position of one layer by torch's function of all layers, with the weights of the run's own cell."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

    def read(x: Tensor, state: tuple[Tensor, ...], suffix: str) -> tuple[Tensor, ...]:
        weights = [getattr(cell, f"{name}_l{layer}{suffix}") for name in names]
        rest = (weights, True, 1, 0.0, False, False, True)  # biases, layers, dropout, train, bidirectional, batch first
        if isinstance(cell, nn.LSTM):
            return torch.lstm(x, state, *rest)
        name = "gru" if isinstance(cell, nn.GRU) else f"rnn_{cell.nonlinearity}"
        return getattr(torch, name)(x, state[0], *rest)

    def call(first: Tensor, last: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        half = len(state) // 2
        (ahead, *ahead_state), (back, *back_state) = read(first, state[:half], ""), read(last, state[half:], "_reverse")
        return ahead, back, *ahead_state, *back_state

    return call


def _direction(cell: nn.RNNBase, layer: int, width: int, suffix: str) -> nn.RNNBase:
    made = type(cell)(width, cell.hidden_size, batch_first=True)  # type: ignore[call-arg]
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    made.load_state_dict({f"{name}_l0": getattr(cell, f"{name}_l{layer}{suffix}").detach() for name in names})
    return made.eval()


def encoder_parts(embedding: nn.Embedding, cell: nn.RNNBase) -> list[ExportPart]:
    """The embedding and each layer."""
    tokens = ExportInput("tokens", (BATCH, LENGTH), draw_tokens(embedding.num_embeddings), "token numbers")
    parts = [ExportPart("embed", TokenEmbedding(embedding), (tokens,), ("embedded",))]
    kinds = ("hidden", "cell") if isinstance(cell, nn.LSTM) else ("hidden",)
    states = [f"{kind}_{side}" for side in ("ahead", "back") for kind in kinds]
    for layer in range(cell.num_layers):
        step = LayerStep(cell, layer)
        inputs = [ExportInput(name, (BATCH, 1, step.width), _normal) for name in ("first", "last")]
        inputs += [ExportInput(name, (1, BATCH, cell.hidden_size), _normal) for name in states]
        outputs = ("ahead", "back", *(f"next_{name}" for name in states))
        parts.append(ExportPart(f"layer_{layer}", step, tuple(inputs), outputs, by_its_own_cell(cell, layer)))
    return parts


def read_both_ways(
    opener: Opener, cell: nn.RNNBase, tokens: Int[Tensor, "batch length"]
) -> tuple[Float[Tensor, "batch length both"], list[list[Float[Tensor, "_ batch hidden"]]]]:
    """The loop of scripts/recurrent.py over sequences of one length: the last layer's outputs, and each one's last
    states."""
    (x,), last = opener("embed")(tokens), []
    batch_size, count = tokens.shape
    for layer in range(cell.num_layers):
        step = opener(f"layer_{layer}")
        state = [torch.zeros(1, batch_size, cell.hidden_size) for _ in range(describe_layers(cell)["num_states"])]
        ahead, back = [], []
        for at in range(count):
            ends = x[:, at : at + 1].contiguous(), x[:, count - 1 - at : count - at].contiguous()
            one, other, *state = step(*ends, *state)
            ahead.append(one)
            back.append(other)
        x = torch.cat([torch.cat(ahead, dim=1), torch.cat(back[::-1], dim=1)], dim=2)
        last.append(state)
    return x, last


def describe_layers(cell: nn.RNNBase) -> dict[str, Any]:
    """What a script needs for the loop."""
    kinds = 2 if isinstance(cell, nn.LSTM) else 1
    return {"num_layers": cell.num_layers, "hidden_dim": cell.hidden_size, "num_states": 2 * kinds}


def _normal(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(size, generator=generator)
