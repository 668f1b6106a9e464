"""A model of text from its n-grams: the distribution of the next token after the longest known context, mixed with
those of shorter ones.

    P(x | c) = a(c x) + b(c) P(x | c without its first token),   P(x | nothing shorter) = 1/m

What the probabilities a of n-grams and the weights b of contexts are is the smoothing's matter: laplace.py,
kneser_ney.py. A context that never occurred has b = 1.   b sequences, T tokens, m in the vocabulary, N order, v nodes
of the tree of n-grams (ngram_counts.py)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.models.language_model import DecodingCache, NextTokenOutput
from quoin.models.ngram_counts import NgramCounts, find_children
from quoin.tensor import check_token_ids

__all__ = ["NgramCache", "NgramModel"]

SUCCESSORS_PER_BLOCK = 2**22  # that are laid out at once, some 100 MB


@shown
@dataclass(frozen=True)
class NgramCache:
    """The nodes of the last 0 .. N - 1 tokens of each sequence, -1 where they never occurred or fewer were read."""

    nodes: Int[Tensor, "batch order"]

    def select(self, indices: Int[Tensor, "selected"]) -> "NgramCache":
        return NgramCache(self.nodes[indices])


class NgramModel(nn.Module):
    """The next token after the last N - 1, by tables of n-grams up to N; before it is given any, every token is as
    probable as any other.

    The tables are buffers, 16 bytes for each n-gram that occurs in the text (24 in float64), and their sizes come with
    what is loaded.

    Args:
        order: N, the tokens of the longest n-grams.

    >>> from quoin.models import laplace_ngram, ngram_counts
    >>> model = laplace_ngram(ngram_counts(torch.tensor([0, 1, 0, 0, 1]), 2, 2), pseudo_counts=(0.0, 1.0))
    >>> # 0 occurs three times, with a 0 and two 1s after it: (1 + 0.6)/4 and (2 + 0.4)/4
    >>> model(torch.tensor([[0]])).exp()
    tensor([[[0.4000, 0.6000]]])
    """

    keys: Int[Tensor, "nodes"]
    probs: Float[Tensor, "nodes"]  # a
    weights: Float[Tensor, "nodes"]  # b

    def __init__(self, vocab_size: int, order: int) -> None:
        super().__init__()
        if vocab_size < 1 or order < 1:
            raise UserError(
                f"expected a vocabulary and an order of 1 or more, got {vocab_size} and {order}: raise them"
            )
        self.vocab_size, self.order = vocab_size, order
        self.register_buffer("keys", torch.tensor([-1]))
        self.register_buffer("probs", torch.zeros(1))
        self.register_buffer("weights", torch.ones(1))

    @classmethod
    def from_counts(
        cls,
        counts: NgramCounts,
        probs: Float[Tensor, "nodes"],
        weights: Float[Tensor, "nodes"],
        *,
        dtype: torch.dtype = torch.float32,
    ) -> "NgramModel":
        """The model of these tables."""
        model = cls(counts.vocab_size, counts.order)
        model.keys, model.probs, model.weights = counts.keys, probs.to(dtype), weights.to(dtype)
        return model

    def resize_buffers(self, shapes: Mapping[str, torch.Size]) -> None:
        """Tables of these shapes, for values that will be loaded: how many n-grams there are is known only from the
        text."""
        names = ("keys", "probs", "weights")
        if len(found := {shapes.get(name) for name in names}) == 1 and len(shape := found.pop() or ()) == 1:
            for name in names:
                setattr(self, name, getattr(self, name).new_zeros(shape))

    def forward(self, tokens: Integer[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        """ln P(next token) after each token."""
        return self.decode_step(self.init_cache(tokens.shape[0]), tokens).logits

    def init_cache(self, batch_size: int, max_seq_len: int = 0) -> NgramCache:
        """An empty cache. It never fills, so `max_seq_len` is not needed."""
        nodes = self.keys.new_full((batch_size, self.order), -1)
        nodes[:, 0] = 0
        return NgramCache(nodes)

    def decode_step(self, cache: DecodingCache, tokens: Integer[Tensor, "batch new"]) -> NextTokenOutput:
        assert isinstance(cache, NgramCache)
        check_token_ids(tokens, self.vocab_size, ndim=2)
        contexts = torch.stack(self._follow(cache.nodes, tokens, self.order - 1), dim=-1)  # (b, new, N)
        probs = self._probs(contexts.flatten(0, 1)).unflatten(0, contexts.shape[:2])
        return NextTokenOutput(probs.log(), NgramCache(contexts[:, -1] if tokens.shape[1] else cache.nodes))

    def first_logits(self) -> Float[Tensor, "vocab"]:
        """ln P of the first token of all, before which there is none."""
        return self._probs(self.init_cache(1).nodes)[0].log()

    def token_log_probs(self, tokens: Integer[Tensor, "batch seq"]) -> Float[Tensor, "batch seq"]:
        """ln P(x_t | x_1 .. x_{t-1}) of every token, the first included, without the distributions of all that did not
        come."""
        check_token_ids(tokens, self.vocab_size, ndim=2)
        before = self.init_cache(tokens.shape[0]).nodes
        grams = self._follow(before, tokens, self.order)
        prob = self.probs.new_full(tokens.shape, 1 / self.vocab_size)
        for length in range(1, self.order + 1):
            context = torch.cat([before[:, length - 1 : length], grams[length - 1][:, :-1]], dim=1)
            prob = prob * self._at(self.weights, context, 1.0) + self._at(self.probs, grams[length], 0.0)
        return prob.log()

    def _follow(
        self, before: Tensor, tokens: Tensor, longest: int
    ) -> list[Tensor]:  # (b, N), (b, T) -> (longest + 1) times (b, T)
        """The nodes of the last 0 .. longest tokens up to each position: a longer n-gram is a shorter one at the
        position before, and a token.
        """
        grams = [torch.zeros_like(tokens, dtype=torch.int64)]
        for length in range(1, longest + 1):
            shorter = torch.cat([before[:, length - 1 : length], grams[-1]], dim=1)[:, : tokens.shape[1]]
            grams.append(find_children(self.keys, self.vocab_size, shorter, tokens))
        return grams

    def _probs(self, contexts: Tensor) -> Tensor:  # (r, N) -> (r, m)
        if torch.compiler.is_exporting():
            return self._probs_of_all(contexts)
        probs = self.probs.new_full((contexts.shape[0], self.vocab_size), 1 / self.vocab_size)
        for length in range(self.order):
            context = contexts[:, length]
            probs *= self._at(self.weights, context, 1.0).unsqueeze(1)
            begins = torch.searchsorted(self.keys, context * self.vocab_size)
            sizes = torch.searchsorted(self.keys, (context + 1) * self.vocab_size) - begins
            sizes = torch.where(context >= 0, sizes, 0)
            begin = 0
            while begin < contexts.shape[0]:  # rows whose successors fit into memory; one row has m of them at most
                end = begin + max(1, int((sizes[begin:].cumsum(0) <= SUCCESSORS_PER_BLOCK).sum()))
                self._add_children(probs[begin:end], begins[begin:end], sizes[begin:end])
                begin = end
        return probs

    def _probs_of_all(self, contexts: Tensor) -> Tensor:  # (r, N) -> (r, m)
        """The same by a search for every token of the vocabulary: how many of them occur after a context is no number
        that an exported program could lay out by."""
        tokens = torch.arange(self.vocab_size, device=contexts.device)
        probs = self.probs.new_full((contexts.shape[0], self.vocab_size), 1 / self.vocab_size)
        for length in range(self.order):
            context = contexts[:, length : length + 1]
            children = find_children(self.keys, self.vocab_size, context, tokens)
            probs = probs * self._at(self.weights, context, 1.0) + self._at(self.probs, children, 0.0)
        return probs

    def _add_children(self, probs: Tensor, begins: Tensor, sizes: Tensor) -> None:
        """Add to each row of `probs` the fractions of the `sizes` children that stand from `begins` on."""
        rows = torch.repeat_interleave(torch.arange(probs.shape[0], device=sizes.device), sizes)
        indices = torch.arange(len(rows), device=sizes.device) + (begins - (sizes.cumsum(0) - sizes))[rows]
        probs[rows, self.keys[indices].remainder(self.vocab_size)] += self.probs[indices]

    @staticmethod
    def _at(table: Tensor, nodes: Tensor, missing: float) -> Tensor:
        return torch.where(nodes >= 0, table[nodes.clamp(min=0)], missing)
