"""Transformers that say what comes next: one sequence of tokens, read by causal blocks, all at once or token by token.

`GPT` is the usual one, by its sizes; `LanguageTransformer` takes any blocks and positions. Both decode with whatever their attention
remembers: keys and values for exact attention, sums of constant size for the linear forms.   b sequences, n positions, w width, v tokens
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import (
    AttentionCore,
    AttentionState,
    ExactAttention,
    LearnedPositions,
    TransformerBlock,
    keeps_global_rng,
    transformer_block,
)
from quoin.layers.direct import direct, part
from quoin.layers.dropout import check_probability
from quoin.models.autoregressive import ModelState, NextToken
from quoin.models.transformer import Positions, TransformerEncoder, codes, look_up

__all__ = ["GPT", "LanguageState", "LanguageTransformer", "start_language_weights"]


@dataclass(frozen=True, eq=False)
class LanguageState:
    """What each block remembers of the tokens read."""

    blocks: tuple[AttentionState, ...]

    @property
    def seen(self) -> int:
        return self.blocks[0].seen

    def select(self, rows: Tensor) -> "LanguageState":
        """The state of these sequences, in this order."""
        return LanguageState(tuple(block.select(rows) for block in self.blocks))


class LanguageTransformer(nn.Module):
    """Scores of each next token from those up to it: logits = W_e N(blocks(W_e[tokens] + positions)), with one table W_e if tied.

    `positions` adds where a token stands; without it the blocks must know by themselves, by turns or biases. `context` is the most
    tokens that can be read at all, if there is such a bound. Weights start by `start_language_weights`.

    >>> from quoin.layers import SinusoidalPositions
    >>> model = LanguageTransformer(5, [transformer_block(8, heads=2)], positions=SinusoidalPositions(8))
    >>> model(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])

    Notes: Z11.T.
    """

    stack: TransformerEncoder = part()
    codes: nn.Embedding = part()
    positions: Positions | None = part()
    dropout: nn.Dropout = part()
    scores: nn.Linear | None = part()

    @keeps_global_rng
    def __init__(
        self,
        vocabulary_size: int,
        blocks: Iterable[TransformerBlock],
        *,
        positions: Positions | None = None,
        context: int | None = None,
        tied: bool = True,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.stack = TransformerEncoder(blocks)
        self.vocabulary_size, self.width, self.context = vocabulary_size, self.stack.width, context
        self.codes = codes(vocabulary_size, self.width, generator)
        self.positions = positions
        self.dropout = nn.Dropout(dropout)
        self.scores = None if tied else nn.Linear(self.width, vocabulary_size, bias=False)
        start_language_weights(self, generator)

    def forward(self, tokens: Tensor) -> Tensor:  # (b, n) -> (b, n, v)
        return self._scored(self.stack(self._placed(tokens, 0), causal=True))

    def start(self, batch: int, capacity: int) -> LanguageState:
        """A state that has read nothing, for at most `capacity` tokens."""
        if self.context is not None and capacity > self.context:
            raise Mistake(f"expected at most {self.context} tokens, all that the model has positions for, came {capacity}; ask for fewer")
        return LanguageState(tuple(block.start(batch, capacity) for block in self.stack.blocks))

    def step(self, state: ModelState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, v)
        """Read one or more new tokens; equal to `forward` on all tokens read so far, at the new positions."""
        if not isinstance(state, LanguageState):
            raise Mistake(f"expected the state that start gave, came {type(state).__name__}; each model keeps its own kind")
        x, after = self._placed(tokens, state.seen), []
        for block, before in zip(self.stack.blocks, state.blocks, strict=True):
            x, its = block.step(before, x)
            after.append(its)
        return NextToken(self._scored(direct(self.stack.norm, x)), LanguageState(tuple(after)))

    def _placed(self, tokens: Tensor, offset: int) -> Tensor:
        x = look_up(self.codes, tokens)
        return direct(self.dropout, x if self.positions is None else self.positions(x, offset))

    def _scored(self, x: Tensor) -> Tensor:  # (b, n, w) -> (b, n, v)
        return nn.functional.linear(x, self.codes.weight) if self.scores is None else self.scores(x)


class GPT(LanguageTransformer):
    """The Transformer of GPT-2: learned positions, the norm first, GELU, the scores' table tied to the codes'.

    `make_core()` gives each block another attention than exact; `dropout` is of the codes, of the weights of exact attention, and
    of what each part adds.

    >>> model = GPT(65, width=16, heads=2, layers=2, context=32, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(3, 7, dtype=torch.long)).shape
    torch.Size([3, 7, 65])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        heads: int,
        layers: int,
        context: int,
        *,
        dropout: float = 0.0,
        make_core: Callable[[], AttentionCore] | None = None,
        generator: torch.Generator | None = None,
    ):
        def block() -> TransformerBlock:
            core = ExactAttention(dropout=dropout) if make_core is None else make_core()
            return transformer_block(width, heads, activation=tanh_gelu, core=core, dropout=dropout)

        super().__init__(
            vocabulary_size,
            [block() for _ in range(layers)],
            positions=LearnedPositions(context, width, generator=generator),
            context=context,
            dropout=dropout,
            generator=generator,
        )


def tanh_gelu(x: Tensor) -> Tensor:
    """GELU by the formula with tanh that GPT-2 was trained with; within a thousandth of the exact one."""
    return nn.functional.gelu(x, approximate="tanh")


@torch.no_grad()
def start_language_weights(model: LanguageTransformer, generator: torch.Generator | None = None) -> None:
    """New weights as GPT-2's: normal of deviation 0.02, biases zero, and what is added to the stream by 1/√(parts) smaller.

    With l blocks 2 l parts add to the stream, so that its variance at the end does not grow with l.
    """
    model.codes.weight.normal_(0, 0.02, generator=generator)
    if model.scores is not None:
        model.scores.weight.normal_(0, 0.02, generator=generator)
    adding = 0.02 / math.sqrt(2 * len(model.stack.blocks))
    for block in model.stack.blocks:
        for name, parameter in block.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim > 1:
                last = name in ("attention.f_o.weight", "feed_forward.second.weight")
                parameter.normal_(0, adding if last else 0.02, generator=generator)
