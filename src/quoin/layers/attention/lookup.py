"""A differentiable lookup table: queried by a vector instead of a row number, it gives a mixture of its values.

With unit vectors as keys, the query e_i gives row i. Learned keys and queries are the attention of exact.py and
single.py.

n queries, m keys
"""

from jaxtyping import Float
from torch import Tensor

from quoin.layers.attention.pooling import Pooled, attention_pooling_definition, pool_values, softmax_weights
from quoin.layers.attention.scores import dot_score
from quoin.tensor import check_same_dtype, check_shapes

__all__ = ["linear_lookup", "linear_lookup_definition", "soft_lookup", "soft_lookup_definition"]


def linear_lookup_definition(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
) -> Pooled:
    """lookup(q) = sum_i <q, e_i> v_i, linear in the query; the coefficients may be any real numbers.

    Notes: D2.2-1.
    """
    return attention_pooling_definition(query, key, value, dot_score, lambda scores, mask: scores)


def linear_lookup(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
) -> Float[Tensor, "*batch query value_dim"]:
    """`linear_lookup_definition(...).output` as (Q K^T) V or Q (K^T V), whichever multiplies less.

    Nothing stands between the two products, so they may be taken in either order: the second never forms an (n, m)
    matrix.

    Notes: D2.2-1.
    """
    _check(query, key, value)
    (n, d), (m, v) = query.shape[-2:], value.shape[-2:]
    if n * m * (d + v) < d * v * (n + m):
        return (query @ key.mT) @ value
    return query @ (key.mT @ value)


def soft_lookup_definition(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
) -> Pooled:
    """lookup(q) = sum_i softmax((<q, e_j>)_j)_i v_i: coefficients in [0, 1] that sum to one.

    The query lambda e_i gives v_i as lambda grows, with unit vectors as keys.

    Notes: D2.2-3.
    """
    return attention_pooling_definition(query, key, value, dot_score, softmax_weights)


def soft_lookup(
    query: Float[Tensor, "*batch query dim"],
    key: Float[Tensor, "*batch key dim"],
    value: Float[Tensor, "*batch key value_dim"],
) -> Float[Tensor, "*batch query value_dim"]:
    """`soft_lookup_definition(...).output` in two matrix products.

    Notes: D2.2-3.
    """
    _check(query, key, value)
    return pool_values(softmax_weights(dot_score(query, key)), value)


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    check_shapes("... n d, ... m d, ... m v", query=query, key=key, value=value)
    check_same_dtype(query, key, value)
