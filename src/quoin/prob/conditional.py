"""Scores as distributions P(y | x): one class for each size of label set, all with log_prob(y, x) and sample(x).

A network gives the scores; these classes wrap one and hold its parameters, so that they can be fitted like any module.
Two labels need one score, k labels need k, and sequences, far too many to score one by one, are scored token by token.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Integer, Real, Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.prob.binary import binary_decision, binary_log_prob
from quoin.tensor import check_labels, check_shapes

__all__ = [
    "BinaryModel",
    "CategoricalModel",
    "ConditionalModel",
    "MulticlassModel",
    "SequenceModel",
    "UnconditionalModel",
]


@runtime_checkable
class ConditionalModel(Protocol):
    """A distribution of y for each x."""

    def log_prob(self, y: Shaped[Tensor, "..."], x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """ln P(y | x), one value per example."""
        ...

    def sample(self, x: Shaped[Tensor, "..."], *, generator: torch.Generator) -> Shaped[Tensor, "..."]:
        """One y for each example of x, sampled from P(y | x)."""
        ...


@runtime_checkable
class UnconditionalModel(Protocol):
    """A distribution of y alone; where y is continuous, `log_prob` is the log of its density."""

    def log_prob(self, y: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """ln P(y), one value per example."""
        ...


class BinaryModel(nn.Module):
    """y in {-1, 1} from one score s(x): P(y | x) = 1 / (1 + e^{-2 y s(x)}).

    Args:
        score: s, from a batch of x to one number for each.

    Notes: M2, M6, M8.
    """

    def __init__(self, score: Callable[[Tensor], Tensor]):
        super().__init__()
        self.score = score

    def forward(self, x: Shaped[Tensor, "..."]) -> Real[Tensor, "*batch"]:
        return self.score(x)

    def log_prob(self, y: Real[Tensor, "*batch"], x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        return binary_log_prob(self(x), y)

    def sample(self, x: Shaped[Tensor, "..."], *, generator: torch.Generator) -> Int[Tensor, "*batch"]:
        probability = torch.sigmoid(2 * self(x).detach())
        sampled = torch.rand(probability.shape, generator=generator, dtype=probability.dtype, device=probability.device)
        return torch.where(sampled < probability, 1, -1)

    def predict(self, x: Shaped[Tensor, "..."]) -> Int[Tensor, "*batch"]:
        """The more probable label: 1 if s(x) >= 0, else -1.

        Notes: M7.
        """
        return binary_decision(self(x))


class MulticlassModel(nn.Module):
    """y in {0, ..., k - 1} from one score each: P(y | x) = e^{s(y | x)} / Z(x), Z(x) = sum_y e^{s(y | x)}.

    Args:
        score: From a batch of x to k numbers for each, such as a network's logits.

    >>> model = MulticlassModel(nn.Linear(4, 3))
    >>> model.probabilities(torch.zeros(2, 4)).shape
    torch.Size([2, 3])

    Notes: M2, M5, M6, M12.
    """

    def __init__(self, score: Callable[[Tensor], Tensor]):
        super().__init__()
        self.score = score

    def forward(self, x: Shaped[Tensor, "..."]) -> Real[Tensor, "*batch k"]:
        return self.score(x)

    def log_prob(self, y: Integer[Tensor, "*batch"], x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        scores = self(x)
        check_shapes("... k, ...", scores=scores, y=y)
        return _chosen(scores.log_softmax(dim=-1), y)

    def probabilities(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch k"]:
        """A whole distribution for each example: k non-negative numbers that sum to one.

        Notes: D1.3-2.
        """
        return self(x).softmax(dim=-1)

    def predict(self, x: Shaped[Tensor, "..."]) -> Int[Tensor, "*batch"]:
        """The most probable label of each example, the first of equals.

        Notes: D1.3-1.
        """
        scores = self(x)
        if scores.isnan().any():
            raise UserError("expected scores to decide by, got NaN; find where the model lost its numbers")
        return scores.argmax(dim=-1)

    def sample(self, x: Shaped[Tensor, "..."], *, generator: torch.Generator) -> Int[Tensor, "*batch"]:
        return _sampled(self.probabilities(x), generator)


class SequenceModel(nn.Module):
    """y a sequence of at most T tokens out of v, each sampled given those before it: P(y | x) = prod_t P(y_t | x, y_1
    ... y_{t-1}).

    `score(x, y)` gives (n, T, v + 1) scores, those at position t computed from x and y_1 ... y_{t-1} alone: v tokens
    and, last, the EOS token v. A shorter y is padded with EOS. One distribution over some v^T sequences is thus T
    softmaxes over v + 1.

    Args:
        num_tokens: v.
        length: T.

    Notes: M2, M6.
    """

    def __init__(self, score: Callable[[Tensor, Tensor], Tensor], *, num_tokens: int, length: int):
        super().__init__()
        if num_tokens < 1 or length < 1:
            raise UserError(
                f"expected at least one token and one position, got {num_tokens} and {length}; give e.g. 26 and 10"
            )
        self.score, self.num_tokens, self.length = score, num_tokens, length

    def forward(
        self, x: Shaped[Tensor, "n ..."], y: Integer[Tensor, "n T"]
    ) -> Float[Tensor, "n T {self.num_tokens+1}"]:
        scores = self.score(x, y)
        check_shapes(f"n {self.length}, n {self.length} {self.num_tokens + 1}", y=y, scores=scores)
        return scores

    def log_prob(self, y: Integer[Tensor, "n T"], x: Shaped[Tensor, "n ..."]) -> Float[Tensor, "n"]:
        check_shapes(f"n {self.length}", y=y)
        ends = (y == self.num_tokens).long()
        over = ends.cumsum(dim=-1) > ends  # an EOS stands further left: what follows is certain
        if not torch.compiler.is_compiling() and (over & (ends == 0)).any():
            raise UserError(f"expected only EOS ({self.num_tokens}) after the first one, got a token; pad with EOS")
        steps = _chosen(self(x, y).log_softmax(dim=-1), y)
        return torch.where(over, 0, steps).sum(dim=-1)

    @torch.no_grad()
    def sample(self, x: Shaped[Tensor, "n ..."], *, generator: torch.Generator) -> Int[Tensor, "n {self.length}"]:
        y = torch.full((len(x), self.length), self.num_tokens, device=x.device)
        going = torch.ones(len(x), dtype=torch.bool, device=x.device)
        for position in range(self.length):
            sampled = _sampled(self(x, y)[:, position].softmax(dim=-1), generator)
            y[:, position] = torch.where(going, sampled, self.num_tokens)
            going &= sampled != self.num_tokens
        return y


class CategoricalModel(nn.Module):
    """A distribution of y in {0, ..., k - 1} without inputs, one score a label, starting uniform:
    P(y) = e^{s_y} / sum_j e^{s_j}.

    The most probable such distribution for a sample (the smallest mean of -ln P(y)) is the sample's own frequencies.

    Notes: M15.
    """

    def __init__(self, num_labels: int):
        super().__init__()
        if num_labels < 1:
            raise UserError(f"expected at least one label, got {num_labels}; give the number of labels")
        self.scores = nn.Parameter(torch.zeros(num_labels))

    def log_prob(self, y: Integer[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return _chosen(self.scores.log_softmax(dim=-1).expand(*y.shape, -1), y)

    def sample(self, num_samples: int, *, generator: torch.Generator) -> Int[Tensor, "{num_samples}"]:
        return _sampled(self.scores.softmax(dim=-1).expand(num_samples, -1), generator)


def _chosen(log_probabilities: Tensor, y: Tensor) -> Tensor:  # (..., k), (...) -> (...)
    if not torch.compiler.is_compiling():
        check_labels(y, log_probabilities.shape[-1])
    return log_probabilities.gather(-1, y.long().unsqueeze(-1)).squeeze(-1)


def _sampled(probabilities: Tensor, generator: torch.Generator) -> Tensor:  # (..., k) -> (...)
    rows = probabilities.detach().reshape(-1, probabilities.shape[-1])
    if len(rows) == 0:
        return torch.empty(probabilities.shape[:-1], dtype=torch.long, device=rows.device)
    return torch.multinomial(rows, 1, generator=generator).reshape(probabilities.shape[:-1])
