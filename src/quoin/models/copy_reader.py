"""A small causal reader of symbols: codes and positions, blocks of attention and a perceptron, a score for every next symbol.

How it attends is given from outside, one core a block, so that attentions can be compared in one and the same network.

    b sequences, n positions, c symbols, w width
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import AttentionCore, AttentionState, ExactAttention, MultiHeadAttention, SinusoidalPositions, keeps_global_rng

__all__ = ["CopyReader", "ReaderBlock"]


class ReaderBlock(nn.Module):
    """x + Attention(norm(x)), then x + W₂ relu(W₁ norm(x)): each part adds to what it was given, and looks only back.

    >>> ReaderBlock(8, heads=2, core=ExactAttention())(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    @keeps_global_rng
    def __init__(self, width: int, heads: int, *, core: AttentionCore, generator: torch.Generator | None = None):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = MultiHeadAttention(width, heads, core=core, generator=generator)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        _draw(self.perceptron, generator)

    def forward(self, x: Tensor) -> Tensor:  # (b, n, w) -> (b, n, w)
        x = x + self.attention(self.norms[0](x), causal=True)
        return x + self.perceptron(self.norms[1](x))

    def step(self, state: AttentionState, x: Tensor) -> tuple[Tensor, AttentionState]:  # (b, new, w) -> (b, new, w)
        """The same for new positions, of which the state has seen all before."""
        attended, state = self.attention.step(state, self.norms[0](x))
        x = x + attended
        return x + self.perceptron(self.norms[1](x)), state


class CopyReader(nn.Module):
    """Scores of the symbol that comes next, at every position, from those up to it; `make_core()` gives each block its attention.

    >>> reader = CopyReader(5, 8, heads=2, depth=2)
    >>> reader(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])
    """

    @keeps_global_rng
    def __init__(
        self,
        num_symbols: int,
        width: int,
        *,
        heads: int,
        depth: int,
        make_core: Callable[[], AttentionCore] = ExactAttention,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(num_symbols, depth) < 1:
            raise Mistake(f"expected at least one symbol and one block, came {num_symbols} and {depth}; raise the least")
        self.codes = nn.Embedding(num_symbols, width)
        self.positions = SinusoidalPositions(width)
        self.blocks = nn.ModuleList(ReaderBlock(width, heads, core=make_core(), generator=generator) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, num_symbols)
        nn.init.normal_(self.codes.weight, generator=generator)
        _draw(self.scores, generator)

    def forward(self, symbols: Tensor) -> Tensor:  # (b, n) -> (b, n, c)
        x = self.positions(self.codes(symbols))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))

    def start(self, batch: int, capacity: int) -> list[AttentionState]:
        """What is remembered before the first of at most `capacity` positions, a block each."""
        return [block.attention.start(batch, capacity) for block in self._blocks()]

    def step(self, states: Sequence[AttentionState], symbols: Tensor) -> tuple[Tensor, list[AttentionState]]:  # (b, new) -> (b, new, c)
        """Read the next symbols: what `forward` gives there, and what is remembered after them."""
        x = self.positions(self.codes(symbols), offset=states[0].seen)
        after = []
        for block, state in zip(self._blocks(), states, strict=True):
            x, state = block.step(state, x)
            after.append(state)
        return self.scores(self.norm(x)), after

    def _blocks(self) -> list[ReaderBlock]:
        return [block for block in self.blocks if isinstance(block, ReaderBlock)]


def _draw(part: nn.Module, generator: torch.Generator | None) -> None:
    """Weights of a variance that keeps activations' size, biases zero."""
    for layer in part.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
