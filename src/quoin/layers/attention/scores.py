"""How well a key matches a query, a(q, k): distance, inner product, bilinear form, small network.

Each score gives a number for every pair, (..., n, d) and (..., m, e) to (..., n, m); what is done with the numbers is
in pooling.py.

n queries of dimension d, m keys of dimension e (d where they must agree), h hidden units
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.layers.attention.checks import check_sizes
from quoin.tensor import as_floating, check_floating, check_shapes

__all__ = [
    "AdditiveScore",
    "BilinearScore",
    "additive_score_definition",
    "bilinear_score_definition",
    "dot_score",
    "dot_score_definition",
    "gaussian_score",
    "gaussian_score_definition",
    "scaled_dot_score",
    "scaled_dot_score_definition",
]


def gaussian_score_definition(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """a(q, k) = -‖q - k‖^2 / 2, the logarithm of the Gaussian kernel."""
    query, key = _floats(query, key)
    return -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(dim=-1) / 2


def gaussian_score(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """`gaussian_score_definition` as q^T k - ‖k‖^2 / 2 - ‖q‖^2 / 2: one matrix product and two norms.

    Both are first measured from the keys' mean, which moves no distance: the three terms would cancel badly far from
    the origin.
    """
    query, key = _floats(query, key)
    center = key.detach().mean(dim=-2, keepdim=True)
    query, key = query - center, key - center
    return query @ key.mT - key.square().sum(dim=-1).unsqueeze(-2) / 2 - query.square().sum(dim=-1, keepdim=True) / 2


def dot_score_definition(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """a(q, k) = q^T k = sum_l q_l k_l."""
    query, key = _floats(query, key)
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1)


def dot_score(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """`dot_score_definition` as the matrix product Q K^T."""
    query, key = _floats(query, key)
    return query @ key.mT


def scaled_dot_score_definition(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """a(q, k) = q^T k / sqrt(d), which has variance one where the entries are independent with mean 0 and variance 1.

    Notes: Z11.16.
    """
    return dot_score_definition(query, key) / math.sqrt(query.shape[-1])


def scaled_dot_score(
    query: Real[Tensor, "*batch query dim"], key: Real[Tensor, "*batch key dim"]
) -> Float[Tensor, "*batch query key"]:
    """`scaled_dot_score_definition` as a matrix product; the queries are scaled, which are fewer than the scores.

    Notes: Z11.16.
    """
    return dot_score(query / math.sqrt(query.shape[-1]), key)


def bilinear_score_definition(
    query: Real[Tensor, "*batch query query_dim"],
    key: Real[Tensor, "*batch key key_dim"],
    matrix: Real[Tensor, "query_dim key_dim"],
) -> Float[Tensor, "*batch query key"]:
    """a(q, k) = q^T M k = sum_{i,j} q_i M_ij k_j, for queries and keys of different dimensions.

    Notes: Z11.20.
    """
    check_shapes("... n d, ... m e, d e", query=query, key=key, matrix=matrix)
    query, key, matrix = (as_floating(each, query, key, matrix) for each in (query, key, matrix))
    return (query[..., :, None, :, None] * matrix * key[..., None, :, None, :]).sum(dim=(-2, -1))


class BilinearScore(nn.Module):
    """`bilinear_score_definition` with a matrix M to learn: (Q M) K^T.

    M starts with variance 1/(d e), so that standardised queries and keys score with variance one; `generator` samples
    it.

    >>> BilinearScore(4, 6)(torch.ones(2, 4), torch.ones(3, 6)).shape
    torch.Size([2, 3])

    Notes: Z11.20.
    """

    def __init__(self, query_dim: int, key_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        check_sizes({"query_dim": query_dim, "key_dim": key_dim})
        start = torch.randn(query_dim, key_dim, generator=generator)
        self.matrix = nn.Parameter(start / math.sqrt(query_dim * key_dim))

    def forward(
        self, query: Float[Tensor, "*batch query query_dim"], key: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        check_shapes("d e, ... n d, ... m e", matrix=self.matrix, query=query, key=key)
        return (query @ self.matrix) @ key.mT


def additive_score_definition(
    query: Float[Tensor, "*batch query query_dim"],
    key: Float[Tensor, "*batch key key_dim"],
    query_weight: Float[Tensor, "hidden query_dim"],
    key_weight: Float[Tensor, "hidden key_dim"],
    output_weight: Float[Tensor, "hidden"],
) -> Float[Tensor, "*batch query key"]:
    """a(q, k) = w_v^T tanh(W_q q + W_k k), for queries and keys of different dimensions.

    Args:
        output_weight: w_v.

    Notes: Z11.21.
    """
    check_shapes(
        "... n d, ... m e, h d, h e, h",
        query=query,
        key=key,
        query_weight=query_weight,
        key_weight=key_weight,
        output_weight=output_weight,
    )
    rows = []
    for q in query.unbind(dim=-2):
        scores = [torch.tanh(q @ query_weight.mT + k @ key_weight.mT) @ output_weight for k in key.unbind(dim=-2)]
        rows.append(torch.stack(scores, dim=-1))
    return torch.stack(rows, dim=-2)


class AdditiveScore(nn.Module):
    """`additive_score_definition` with weights to learn: every query and every key is projected once, not once a pair.

    Projected keys may be kept and used again: `score(project_query(query), project_key(key))` is `forward(query, key)`.
    All matrices start uniform on ±sqrt(6 / (fan_in + fan_out)) (Glorot), for tanh; `generator` samples them.

    >>> AdditiveScore(4, 6, 8)(torch.ones(2, 4), torch.ones(3, 6)).shape
    torch.Size([2, 3])

    Notes: Z11.21.
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        check_sizes({"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": hidden_dim})

        def start(fan_out: int, fan_in: int) -> nn.Parameter:
            return nn.Parameter(nn.init.xavier_uniform_(torch.empty(fan_out, fan_in), generator=generator))

        self.query_weight, self.key_weight = start(hidden_dim, query_dim), start(hidden_dim, key_dim)
        self.output_weight = nn.Parameter(start(1, hidden_dim).detach()[0])

    def project_query(self, query: Float[Tensor, "*batch query query_dim"]) -> Float[Tensor, "*batch query hidden"]:
        """W_q q of each query."""
        check_shapes("h d, ... n d", query_weight=self.query_weight, query=query)
        return query @ self.query_weight.mT

    def project_key(self, key: Float[Tensor, "*batch key key_dim"]) -> Float[Tensor, "*batch key hidden"]:
        """W_k k of each key."""
        check_shapes("h e, ... m e", key_weight=self.key_weight, key=key)
        return key @ self.key_weight.mT

    def score(
        self, projected_query: Float[Tensor, "*batch query hidden"], projected_key: Float[Tensor, "*batch key hidden"]
    ) -> Float[Tensor, "*batch query key"]:
        """w_v^T tanh of the sum of each pair of projections; n m h numbers at once."""
        check_shapes("... n h, ... m h", projected_query=projected_query, projected_key=projected_key)
        check_floating(projected_query, "projected_query")
        check_floating(projected_key, "projected_key")
        return torch.tanh(projected_query.unsqueeze(-2) + projected_key.unsqueeze(-3)) @ self.output_weight

    def forward(
        self, query: Float[Tensor, "*batch query query_dim"], key: Float[Tensor, "*batch key key_dim"]
    ) -> Float[Tensor, "*batch query key"]:
        return self.score(self.project_query(query), self.project_key(key))


def _floats(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    check_shapes("... n d, ... m d", query=query, key=key)
    return as_floating(query, key), as_floating(key, query)
