"""Text as a Markov chain, and the chain rule by which any model that tells the next token gives a whole text its probability.

    P(x_1 .. x_T) = P(x_1) Π P(x_t | x_1 .. x_{t-1}),   which in a chain of order k looks back no farther than x_{t-k}

Chains on any states, their long run and their paths are in quoin.prob.   b sequences, T tokens, m in the vocabulary
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.models.autoregressive import AutoregressiveModel, ModelState, NextToken
from quoin.models.ngram_counts import check_tokens
from quoin.tensor.labels import as_indices

__all__ = ["MarkovModel", "MarkovState", "chain_rule_log_prob", "chain_rule_log_prob_definition", "markov_log_prob_definition"]

_SLACK = 1e-4  # a law that float32 rounded must pass


def chain_rule_log_prob_definition(model: AutoregressiveModel, tokens: Tensor, first_logits: Tensor) -> Tensor:  # (b, T), (m,) -> (b,)
    """ln P(x_1) + sum_t ln P(x_t | x_1 .. x_{t-1}), the model reading one token after the other.

    Notes: Z9.1.
    """
    tokens = _sequences(tokens)
    log_prob = first_logits.log_softmax(dim=-1)[tokens[:, 0]]
    state = model.start(len(tokens), tokens.shape[1])
    for now, following in zip(tokens[:, :-1].T, tokens[:, 1:].T):
        logits, state = model.step(state, now.unsqueeze(1))
        log_prob = log_prob + logits[:, 0].log_softmax(dim=-1).gather(1, following.unsqueeze(1)).squeeze(1)
    return log_prob


def chain_rule_log_prob(model: AutoregressiveModel, tokens: Tensor, first_logits: Tensor) -> Tensor:  # (b, T), (m,) -> (b,)
    """`chain_rule_log_prob_definition` with all places at once.

    Notes: Z9.1.
    """
    tokens = _sequences(tokens)
    first = first_logits.log_softmax(dim=-1)[tokens[:, 0]]
    if tokens.shape[1] == 1:
        return first
    laws = model(tokens[:, :-1]).log_softmax(dim=-1)
    return first + laws.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1).sum(dim=-1)


def _sequences(tokens: Tensor) -> Tensor:
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise Mistake(f"expected sequences of one token or more (sequences, tokens), got shape {tuple(tokens.shape)}: reshape them")
    return as_indices(tokens, "tokens")


def markov_log_prob_definition(laws: Sequence[Tensor], tokens: Tensor) -> Tensor:  # (m,) * j for j = 1 .. k + 1; (T,) -> ()
    """ln P(x_1) + ln P(x_2 | x_1) + ... + sum_{t > k} ln P(x_t | x_{t-k} .. x_{t-1}), each read off its table.

    Notes: Z9.2.
    """
    tokens = as_indices(tokens, "tokens")
    log_prob = laws[0].new_zeros(())
    for place, token in enumerate(tokens.tolist()):
        context = tokens[max(0, place - len(laws) + 1) : place].tolist()
        log_prob = log_prob + laws[len(context)][(*context, token)].log()
    return log_prob


@dataclass(frozen=True)
class MarkovState:
    """The last k tokens of each sequence, or as many as were read."""

    recent: Tensor  # (b, up to k)

    def select(self, rows: Tensor) -> "MarkovState":
        return MarkovState(self.recent[rows])


class MarkovModel(nn.Module):
    """The next token depends on the last k alone: P(x_t | x_{t-k} .. x_{t-1}) is an entry of a table of m^(k + 1).

    `laws` are the tables for 0, 1, ..., k tokens read so far, of shapes (m,), (m, m), ...: the last serves from then on.

    >>> weather = MarkovModel([torch.tensor([1.0, 0.0]), torch.tensor([[0.9, 0.1], [0.5, 0.5]])])
    >>> chain_rule_log_prob(weather, torch.tensor([[0, 0, 1]]), weather.first_logits()).detach().exp()
    tensor([0.0900])

    Notes: Z9.2.
    """

    def __init__(self, laws: Sequence[Tensor]) -> None:
        super().__init__()
        m = laws[0].shape[-1] if len(laws) and laws[0].ndim else 0
        if m < 1 or [tuple(law.shape) for law in laws] != [(m,) * (read + 1) for read in range(len(laws))]:
            raise Mistake(f"expected tables of shapes (m,), (m, m), ..., got {[tuple(each.shape) for each in laws]}: give one a length")
        for law in laws:
            rows = law.detach()
            if not (law.is_floating_point() and bool((rows >= 0).all()) and bool(((rows.sum(dim=-1) - 1).abs() <= _SLACK).all())):
                raise Mistake(f"expected every row of the table of shape {tuple(law.shape)} to be a law: divide each by its sum")
        self.laws = nn.ParameterList([nn.Parameter(law) for law in laws])
        self.vocabulary_size, self.order = m, len(laws) - 1

    def first_logits(self) -> Tensor:  # -> (m,)
        """ln P of the first token of all."""
        return self.laws[0].log()

    def forward(self, tokens: Tensor) -> Tensor:  # (b, T) -> (b, T, m)
        return self.step(self.start(len(tokens)), tokens).logits

    def start(self, batch: int, capacity: int = 0) -> MarkovState:
        """Nothing was read."""
        return MarkovState(torch.zeros(batch, 0, dtype=torch.int64, device=self.laws[0].device))

    def step(self, state: ModelState, tokens: Tensor) -> NextToken:  # (b, new) -> (b, new, m)
        assert isinstance(state, MarkovState)
        check_tokens(tokens, self.vocabulary_size, 2)
        read, k = torch.cat([state.recent, tokens.long()], dim=1), self.order
        found = []
        before = state.recent.shape[1]
        for end in range(before + 1, min(read.shape[1], k - 1) + 1):  # places with fewer than k tokens read
            found.append(self.laws[end][read[:, :end].unbind(1)].unsqueeze(1))
        settled = max(before + 1, k)  # tokens read at the first of the other places
        if settled <= read.shape[1]:
            places = torch.arange(settled, read.shape[1] + 1, device=read.device)
            contexts = tuple(read[:, places - back] for back in range(k, 0, -1))  # k times (b, places)
            found.append(self.laws[k][contexts] if k else self.laws[0].expand(len(read), len(places), -1))
        laws = torch.cat(found, dim=1) if found else self.laws[0].new_zeros(len(tokens), 0, self.vocabulary_size)
        return NextToken(laws.log(), MarkovState(read[:, max(0, read.shape[1] - k) :]))
