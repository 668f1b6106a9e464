"""Text as a Markov chain, and the chain rule by which any model of the next token gives a whole text its probability.

    P(x_1 .. x_T) = P(x_1) Π P(x_t | x_1 .. x_{t-1}),   which in a chain of order k looks back no farther than x_{t-k}

Chains on any states, their long run and their paths are in quoin.prob.   T tokens, m in the vocabulary
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.models.language_model import CausalLM, DecodingCache, NextTokenOutput
from quoin.tensor import check_token_ids
from quoin.tensor.labels import as_indices

__all__ = [
    "MarkovCache",
    "MarkovModel",
    "chain_rule_log_prob",
    "chain_rule_log_prob_definition",
    "markov_log_prob_definition",
]

_SLACK = 1e-4  # a distribution that float32 rounded must pass


def chain_rule_log_prob_definition(
    model: CausalLM, tokens: Integer[Tensor, "batch seq"], first_logits: Float[Tensor, "vocab"]
) -> Float[Tensor, "batch"]:
    """ln P(x_1) + sum_t ln P(x_t | x_1 .. x_{t-1}), the model reading one token after the other.

    Args:
        first_logits: Those of the first token, before which the model has read none.

    Notes: Z9.1.
    """
    tokens = _sequences(tokens)
    log_prob = first_logits.log_softmax(dim=-1)[tokens[:, 0]]
    cache = model.init_cache(len(tokens), tokens.shape[1])
    for now, following in zip(tokens[:, :-1].T, tokens[:, 1:].T):
        logits, cache = model.decode_step(cache, now.unsqueeze(1))
        log_prob = log_prob + logits[:, 0].log_softmax(dim=-1).gather(1, following.unsqueeze(1)).squeeze(1)
    return log_prob


def chain_rule_log_prob(
    model: CausalLM, tokens: Integer[Tensor, "batch seq"], first_logits: Float[Tensor, "vocab"]
) -> Float[Tensor, "batch"]:
    """`chain_rule_log_prob_definition` with all positions at once.

    Args:
        first_logits: Those of the first token, before which the model has read none.

    Notes: Z9.1.
    """
    tokens = _sequences(tokens)
    first = first_logits.log_softmax(dim=-1)[tokens[:, 0]]
    if tokens.shape[1] == 1:
        return first
    log_probs = model(tokens[:, :-1]).log_softmax(dim=-1)
    return first + log_probs.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1).sum(dim=-1)


def _sequences(tokens: Tensor) -> Tensor:
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise UserError(
            f"expected sequences of one token or more (sequences, tokens), got shape {tuple(tokens.shape)}: "
            "reshape them"
        )
    return as_indices(tokens, "tokens")


def markov_log_prob_definition(
    transition: Sequence[Float[Tensor, "..."]], tokens: Integer[Tensor, "seq"]
) -> Float[Tensor, ""]:
    """ln P(x_1) + ln P(x_2 | x_1) + ... + sum_{t > k} ln P(x_t | x_{t-k} .. x_{t-1}), each read off its table.

    The tables have 1, 2, ..., k + 1 axes, each of the whole vocabulary.

    Notes: Z9.2.
    """
    tokens = as_indices(tokens, "tokens")
    log_prob = transition[0].new_zeros(())
    for index, token in enumerate(tokens.tolist()):
        context = tokens[max(0, index - len(transition) + 1) : index].tolist()
        log_prob = log_prob + transition[len(context)][(*context, token)].log()
    return log_prob


@shown
@dataclass(frozen=True)
class MarkovCache:
    """The last k tokens of each sequence, or as many as were read."""

    recent: Int[Tensor, "batch recent"]

    def select(self, indices: Int[Tensor, "selected"]) -> "MarkovCache":
        return MarkovCache(self.recent[indices])


class MarkovModel(nn.Module):
    """The next token depends on the last k alone: P(x_t | x_{t-k} .. x_{t-1}) is an entry of a table of m^(k + 1).

    `transition` are the tables for 0, 1, ..., k tokens read so far, of shapes (m,), (m, m), ...: the last serves from
    then on.

    >>> weather = MarkovModel([torch.tensor([1.0, 0.0]), torch.tensor([[0.9, 0.1], [0.5, 0.5]])])
    >>> chain_rule_log_prob(weather, torch.tensor([[0, 0, 1]]), weather.first_logits()).detach().exp()
    tensor([0.0900])

    Notes: Z9.2.
    """

    def __init__(self, transition: Sequence[Float[Tensor, "..."]]) -> None:
        super().__init__()
        m = transition[0].shape[-1] if len(transition) and transition[0].ndim else 0
        if m < 1 or [tuple(table.shape) for table in transition] != [
            (m,) * (read + 1) for read in range(len(transition))
        ]:
            raise UserError(
                f"expected tables of shapes (m,), (m, m), ..., got {[tuple(each.shape) for each in transition]}: "
                "give one a length"
            )
        for table in transition:
            rows = table.detach()
            if not (
                table.is_floating_point()
                and bool((rows >= 0).all())
                and bool(((rows.sum(dim=-1) - 1).abs() <= _SLACK).all())
            ):
                raise UserError(
                    f"expected every row of the table of shape {tuple(table.shape)} to be a distribution: divide "
                    "each by its sum"
                )
        self.transition = nn.ParameterList([nn.Parameter(table) for table in transition])
        self.vocab_size, self.order = m, len(transition) - 1

    def first_logits(self) -> Float[Tensor, "vocab"]:
        """ln P of the first token of all."""
        return self.transition[0].log()

    def forward(self, tokens: Integer[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        return self.decode_step(self.init_cache(tokens.shape[0]), tokens).logits

    def init_cache(self, batch_size: int, max_seq_len: int = 0) -> MarkovCache:
        """An empty cache."""
        return MarkovCache(torch.zeros(batch_size, 0, dtype=torch.int64, device=self.transition[0].device))

    def decode_step(self, cache: DecodingCache, tokens: Integer[Tensor, "batch new"]) -> NextTokenOutput:
        assert isinstance(cache, MarkovCache)
        check_token_ids(tokens, self.vocab_size, ndim=2)
        read, k = torch.cat([cache.recent, tokens.long()], dim=1), self.order
        found = []
        before = cache.recent.shape[1]
        for end in range(before + 1, min(read.shape[1], k - 1) + 1):  # places with fewer than k tokens read
            found.append(self.transition[end][read[:, :end].unbind(1)].unsqueeze(1))
        settled = max(before + 1, k)  # tokens read at the first of the other places
        if settled <= read.shape[1]:
            indices = torch.arange(settled, read.shape[1] + 1, device=read.device)
            contexts = tuple(read[:, indices - back] for back in range(k, 0, -1))  # k times (batch, indices)
            found.append(
                self.transition[k][contexts] if k else self.transition[0].expand(*read.shape[:1], *indices.shape, -1)
            )
        probs = torch.cat(found, dim=1) if found else self.transition[0].new_zeros(tokens.shape[0], 0, self.vocab_size)
        return NextTokenOutput(probs.log(), MarkovCache(read[:, max(0, read.shape[1] - k) :]))
