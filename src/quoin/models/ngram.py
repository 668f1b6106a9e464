"""A model of text from its n-grams: the law of the next token after the longest known context, mixed with those of shorter ones.

    P(x | c) = a(c x) + b(c) P(x | c without its first token),   P(x | nothing shorter) = 1/m

What the shares a of n-grams and the weights b of contexts are is the smoothing's matter: laplace.py, kneser_ney.py. A context that never
occurred has b = 1.   b sequences, T tokens, m in the vocabulary, N order, v nodes of the tree of n-grams (ngram_counts.py)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.models.autoregressive import ModelState, NextToken
from quoin.models.ngram_counts import NgramCounts, check_tokens, find_children

__all__ = ["NgramModel", "NgramState"]

SUCCESSORS_PER_BLOCK = 2**22  # that are laid out at once, some 100 MB


@dataclass(frozen=True)
class NgramState:
    """The nodes of the last 0 .. N - 1 tokens of each sequence, -1 where they never occurred or fewer were read."""

    nodes: Tensor  # (b, N)

    def select(self, rows: Tensor) -> "NgramState":
        return NgramState(self.nodes[rows])


class NgramModel(nn.Module):
    """The next token after the last N - 1, by tables of n-grams up to N; before it is given any, every token is as likely as any other.

    The tables are buffers, 16 bytes for each n-gram that occurs in the text (24 in float64), and their sizes come with what is loaded.

    >>> from quoin.models import laplace_ngram, ngram_counts
    >>> model = laplace_ngram(ngram_counts(torch.tensor([0, 1, 0, 0, 1]), 2, 2), strengths=(0.0, 1.0))
    >>> model(torch.tensor([[0]])).exp()  # 0 came three times, with a 0 and two 1s after it: (1 + 0.6)/4 and (2 + 0.4)/4
    tensor([[[0.4000, 0.6000]]])
    """

    keys: Tensor  # (v,)
    shares: Tensor  # (v,): a
    weights: Tensor  # (v,): b

    def __init__(self, vocabulary_size: int, order: int) -> None:
        super().__init__()
        if vocabulary_size < 1 or order < 1:
            raise Mistake(f"expected a vocabulary and an order of 1 or more, got {vocabulary_size} and {order}: raise them")
        self.vocabulary_size, self.order = vocabulary_size, order
        self.register_buffer("keys", torch.tensor([-1]))
        self.register_buffer("shares", torch.zeros(1))
        self.register_buffer("weights", torch.ones(1))

    @classmethod
    def of(cls, counts: NgramCounts, shares: Tensor, weights: Tensor, *, dtype: torch.dtype = torch.float32) -> "NgramModel":
        """The model of these tables."""
        model = cls(counts.vocabulary_size, counts.order)
        model.keys, model.shares, model.weights = counts.keys, shares.to(dtype), weights.to(dtype)
        return model

    def make_room(self, shapes: Mapping[str, torch.Size]) -> None:
        """Tables of these shapes, for values that will be loaded: how many n-grams there are is known only from the text."""
        names = ("keys", "shares", "weights")
        if len(found := {shapes.get(name) for name in names}) == 1 and len(shape := found.pop() or ()) == 1:
            for name in names:
                setattr(self, name, getattr(self, name).new_zeros(shape))

    def forward(self, tokens: Tensor) -> Tensor:  # (b, T) -> (b, T, m)
        """ln P(next token) after each token."""
        return self.step(self.start(len(tokens)), tokens).logits

    def start(self, batch: int, capacity: int = 0) -> NgramState:
        """Nothing was read. The state never fills, so `capacity` is not needed."""
        nodes = self.keys.new_full((batch, self.order), -1)
        nodes[:, 0] = 0
        return NgramState(nodes)

    def step(self, state: ModelState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, m)
        assert isinstance(state, NgramState)
        check_tokens(tokens, self.vocabulary_size, 2)
        contexts = torch.stack(self._follow(state.nodes, tokens, self.order - 1), dim=-1)  # (b, new, N)
        laws = self._laws(contexts.flatten(0, 1)).unflatten(0, contexts.shape[:2])
        return NextToken(laws.log(), NgramState(contexts[:, -1] if tokens.shape[1] else state.nodes))

    def first_logits(self) -> Tensor:  # -> (m,)
        """ln P of the first token of all, before which there is none."""
        return self._laws(self.start(1).nodes)[0].log()

    def token_log_probs(self, tokens: Tensor) -> Tensor:  # (b, T) -> (b, T)
        """ln P(x_t | x_1 .. x_{t-1}) of every token, the first included, without the laws of all that did not come."""
        check_tokens(tokens, self.vocabulary_size, 2)
        before = self.start(len(tokens)).nodes
        grams = self._follow(before, tokens, self.order)
        chance = self.shares.new_full(tokens.shape, 1 / self.vocabulary_size)
        for length in range(1, self.order + 1):
            context = torch.cat([before[:, length - 1 : length], grams[length - 1][:, :-1]], dim=1)
            chance = chance * self._at(self.weights, context, 1.0) + self._at(self.shares, grams[length], 0.0)
        return chance.log()

    def _follow(self, before: Tensor, tokens: Tensor, longest: int) -> list[Tensor]:  # (b, N), (b, T) -> (longest + 1) times (b, T)
        """The nodes of the last 0 .. longest tokens up to each place: a longer n-gram is a shorter one at the place before, and a token."""
        grams = [torch.zeros_like(tokens, dtype=torch.int64)]
        for length in range(1, longest + 1):
            shorter = torch.cat([before[:, length - 1 : length], grams[-1][:, :-1]], dim=1)[:, : tokens.shape[1]]
            grams.append(find_children(self.keys, self.vocabulary_size, shorter, tokens))
        return grams

    def _laws(self, contexts: Tensor) -> Tensor:  # (r, N) -> (r, m)
        laws = self.shares.new_full((len(contexts), self.vocabulary_size), 1 / self.vocabulary_size)
        for length in range(self.order):
            context = contexts[:, length]
            laws *= self._at(self.weights, context, 1.0).unsqueeze(1)
            begins = torch.searchsorted(self.keys, context * self.vocabulary_size)
            sizes = torch.searchsorted(self.keys, (context + 1) * self.vocabulary_size) - begins
            sizes = torch.where(context >= 0, sizes, 0)
            begin = 0
            while begin < len(contexts):  # rows whose successors fit into memory; one row has m of them at most
                end = begin + max(1, int((sizes[begin:].cumsum(0) <= SUCCESSORS_PER_BLOCK).sum()))
                self._add_children(laws[begin:end], begins[begin:end], sizes[begin:end])
                begin = end
        return laws

    def _add_children(self, laws: Tensor, begins: Tensor, sizes: Tensor) -> None:
        """Add to each row of `laws` the shares of the `sizes` children that stand from `begins` on."""
        rows = torch.repeat_interleave(torch.arange(len(laws), device=sizes.device), sizes)
        places = torch.arange(len(rows), device=sizes.device) + (begins - (sizes.cumsum(0) - sizes))[rows]
        laws[rows, self.keys[places].remainder(self.vocabulary_size)] += self.shares[places]

    @staticmethod
    def _at(table: Tensor, nodes: Tensor, missing: float) -> Tensor:
        return torch.where(nodes >= 0, table[nodes.clamp(min=0)], missing)
