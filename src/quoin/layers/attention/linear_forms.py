"""Attention with scores φ(q)·φ(k), five times: as defined, by sums over all keys, chunk by chunk, all chunks side by
side, and position by position.

As the query stands outside the sum over keys, φ(q)·Σ_j φ(k_j) v_jᵀ, nothing as large as queries times keys is needed;
all five give the same numbers. Denominators are the same sums with a value of 1, which travels as one more column of
the values. The map φ, masks and heads are in feature_map.py.

    n queries, m keys, f features, v value width; leading axes broadcast
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.exact import AttentionOutput
from quoin.layers.attention.features import Features
from quoin.layers.attention.seen import each_query_alone, hidden_from_some
from quoin.tensor import causal_mask, zero_masked

__all__ = [
    "KeyValueSums",
    "batched_causal_feature_attention",
    "causal_feature_attention",
    "causal_feature_step",
    "feature_attention",
    "feature_attention_definition",
    "init_sums",
    "query_sums",
    "update_sums",
]

CHUNK = 128  # positions whose scores are written out at once: some 64 kB a head, beside features that stay in the cache


def feature_attention_definition(
    query: Features,
    key: Features,
    value: Float[Tensor, "... key value_dim"],
    mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
    *,
    causal: bool = False,
) -> AttentionOutput:
    """Σ_j w_ij v_j with w_ij = φ(q_i)·φ(k_j) / Σ_j φ(q_i)·φ(k_j), both sums over the keys j that query i may see.

    All n m scores are written out, each query's up to a factor of its own, which the ratio cancels. A query that sees
    nothing gets zeros.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: D4.1-3, DE32, DE33.
    """
    shape = (query.values.shape[-2], key.values.shape[-2])
    seen = torch.ones(shape, dtype=torch.bool, device=value.device) if mask is None else mask
    if causal:
        seen = seen & causal_mask(*shape, device=value.device)
    if hidden_from_some(seen, *key, value):
        store = (key.values, value) if key.log_scale is None else (key.values, value, key.log_scale)
        return AttentionOutput(*each_query_alone(_one_query, query.values, store, seen))
    hidden = ~(seen.any(dim=-2) if seen.ndim > 1 else seen).unsqueeze(-1)
    key, value = mask_keys(key, hidden), zero_masked(value, seen)
    scores = query.values @ key.values.mT
    if key.log_scale is not None:
        log_scale = key.log_scale.mT.masked_fill(~seen, _lowest(scores))
        scores = scores * (log_scale - log_scale.detach().amax(dim=-1, keepdim=True)).exp()
    counted = scores.masked_fill(~seen, 0)
    weights = counted / _not_zero(counted.sum(dim=-1, keepdim=True))
    return AttentionOutput(weights @ value, weights, scores)


def _one_query(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor) -> AttentionOutput:
    log_scale, seen = rest if len(rest) == 2 else (None, rest[0])
    return feature_attention_definition(Features(query), Features(key, log_scale), value, seen)


@shown
class KeyValueSums(NamedTuple):
    """All that queries need to know of any number of keys: Σ_j φ(k_j) [v_j, 1]ᵀ e^-log_scale, of constant size."""

    moments: Float[Tensor, "*batch features columns"]  # as many columns as values have entries, and one for the 1
    log_scale: Float[Tensor, "*batch 1 1"] | None  # the largest of the keys', where these have one

    @property
    def key_values(self) -> Float[Tensor, "*batch features value_dim"]:
        """S = Σ_j φ(k_j) v_jᵀ."""
        return self.moments[..., :-1]

    @property
    def keys(self) -> Float[Tensor, "*batch features"]:
        """z = Σ_j φ(k_j)."""
        return self.moments[..., -1]


def init_sums(key: Features, value: Float[Tensor, "... key value_dim"]) -> KeyValueSums:
    """The sums over none of these keys: zero."""
    moments = key.values.new_zeros(*key.values.shape[:-2], key.values.shape[-1], value.shape[-1] + 1)
    return KeyValueSums(
        moments, None if key.log_scale is None else moments.new_full((*moments.shape[:-2], 1, 1), _lowest(moments))
    )


def update_sums(sums: KeyValueSums, key: Features, value: Float[Tensor, "... key value_dim"]) -> KeyValueSums:
    """S ← S + Σ_j φ(k_j) v_jᵀ and z ← z + Σ_j φ(k_j): each key is read once, and before any query is known.

    Notes: D4.1-1, D4.1-11.
    """
    return _add(sums, key, _with_one(value))


def query_sums(sums: KeyValueSums, query: Features) -> Float[Tensor, "... query value_dim"]:
    """φ(q_i)ᵀ S / φ(q_i)ᵀ z for each query, whatever the number of keys; zeros where there are none.

    Notes: D4.1-1, D4.1-11.
    """
    return _ratio(query.values @ sums.moments)


def feature_attention(
    query: Features, key: Features, value: Float[Tensor, "... key value_dim"]
) -> Float[Tensor, "... query value_dim"]:
    """φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j): the sums once, then each query, (n + m) f (v + 1) multiplications.

    Notes: D4.1-1, D4.1-3.
    """
    return query_sums(update_sums(init_sums(key, value), key, value), query)


def causal_feature_step(
    sums: KeyValueSums, query: Features, key: Features, value: Float[Tensor, "... new value_dim"]
) -> tuple[Float[Tensor, "... new value_dim"], KeyValueSums]:
    """Attend from n further positions to themselves, causally, and to all keys before, which `sums` hold.

    With n = 1 it is the recurrence S_t = S_{t-1} + φ(k_t) v_tᵀ, z_t = z_{t-1} + φ(k_t), with output φ(q_t)ᵀ S_t /
    φ(q_t)ᵀ z_t.

    Notes: D4.1-4.
    """
    value = _with_one(value)
    scores = query.values @ key.values.mT
    before = query.values @ sums.moments
    if sums.log_scale is not None and key.log_scale is not None:
        # Each query takes the scales relative to the largest that it sees: a later, larger one would make all of them
        # zero.
        so_far = torch.cat([sums.log_scale, key.log_scale.detach()], dim=-2).cummax(dim=-2).values[..., 1:, :]
        scores = scores * (key.log_scale.mT - so_far).clamp(max=0).exp()  # only what no query may see is clamped
        before = before * (sums.log_scale - so_far).exp()
    return _ratio(scores.tril() @ value + before), _add(sums, key, value)


def causal_feature_attention(
    query: Features, key: Features, value: Float[Tensor, "... seq value_dim"], *, chunk_size: int = CHUNK
) -> Float[Tensor, "... seq value_dim"]:
    """φ(q_i)ᵀ Σ_{j≤i} φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_{j≤i} φ(k_j), in steps of `chunk_size` positions.

    n / chunk sums are kept for a gradient, where the sums after each position would be n of them.

    Notes: D4.1-4.
    """
    check_chunk_size(chunk_size)
    sums, outputs = init_sums(key, value), []
    for q, k, v in zip(split(query, chunk_size), split(key, chunk_size), value.split(chunk_size, dim=-2), strict=True):
        output, sums = causal_feature_step(sums, q, k, v)
        outputs.append(output)
    return torch.cat(outputs, dim=-2)


def batched_causal_feature_attention(
    query: Features, key: Features, value: Float[Tensor, "... seq value_dim"], *, chunk_size: int = CHUNK
) -> Float[Tensor, "... seq value_dim"]:
    """`causal_feature_attention` with all chunks side by side: the sums of each, then those before each, then outputs.

    A few large operations instead of a few small ones for each chunk: a GPU is idle while Python makes calls. It keeps
    what the chunks have to themselves, n chunk_size scores and n / chunk_size sums a head.

    Notes: D4.1-4.
    """
    check_chunk_size(chunk_size)
    num_positions = value.shape[-2]
    q, k, v = (_in_chunks(each, chunk_size) for each in (query.values, key.values, _with_one(value)))
    scores = q @ k.mT
    if key.log_scale is None:
        sums = (k.mT @ v).cumsum(dim=-3)
        before = q @ torch.nn.functional.pad(sums[..., :-1, :, :], (0, 0, 0, 0, 1, 0))
    else:
        log_scale = _in_chunks(key.log_scale, chunk_size, _lowest(scores))  # (..., chunks, chunk, 1)
        of_chunk = log_scale.detach().amax(dim=-2, keepdim=True)
        earlier = torch.cat(
            [torch.full_like(of_chunk[..., :1, :, :], _lowest(scores)), of_chunk[..., :-1, :, :]], dim=-3
        )
        largest = earlier.cummax(dim=-3).values  # before each chunk, (..., chunks, 1, 1)
        moments = (k * (log_scale - of_chunk).exp()).mT @ v
        shrink = (of_chunk.squeeze(-1).mT - largest.squeeze(-1)).clamp(max=0).exp().tril(-1)  # (..., chunks, chunks)
        sums = (shrink @ moments.flatten(-2)).unflatten(-1, moments.shape[-2:])
        so_far = log_scale.detach().cummax(dim=-2).values.maximum(largest)
        scores = scores * (log_scale.mT - so_far).clamp(max=0).exp()
        before = (q @ sums) * (largest - so_far).exp()
    return _ratio(scores.tril() @ v + before).flatten(-3, -2)[..., :num_positions, :]


def split(features: Features, chunk_size: int) -> list[Features]:
    """The features of each `chunk_size` positions."""
    values = features.values.split(chunk_size, dim=-2)
    scales = [None] * len(values) if features.log_scale is None else features.log_scale.split(chunk_size, dim=-2)
    return [Features(value, scale) for value, scale in zip(values, scales, strict=True)]


def mask_keys(key: Features, hidden: Bool[Tensor, "... #key 1"]) -> Features:
    """Keys masked where hidden: their features are zero, and the others' scale does not depend on them."""
    scale = key.log_scale
    return Features(
        key.values.masked_fill(hidden, 0), None if scale is None else scale.masked_fill(hidden, _lowest(scale))
    )


def check_chunk_size(chunk_size: int) -> None:
    if not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1:
        raise UserError(f"expected a chunk of at least one position, got {chunk_size!r}; give e.g. {CHUNK}")


def _add(sums: KeyValueSums, key: Features, value: Tensor) -> KeyValueSums:
    if sums.log_scale is None or key.log_scale is None:
        return KeyValueSums(sums.moments + key.values.mT @ value, None)
    largest = torch.cat([sums.log_scale, key.log_scale.detach()], dim=-2).amax(dim=-2, keepdim=True)
    relative = key.values * (key.log_scale - largest).exp()
    return KeyValueSums(sums.moments * (sums.log_scale - largest).exp() + relative.mT @ value, largest)


def _in_chunks(x: Tensor, size: int, fill: float = 0.0) -> Tensor:  # (..., n, w) -> (..., chunks, size, w)
    missing = -x.shape[-2] % size
    return torch.nn.functional.pad(x, (0, 0, 0, missing), value=fill).unflatten(-2, (-1, size))


def _with_one(value: Tensor) -> Tensor:  # (..., m, v) -> (..., m, v + 1)
    return torch.nn.functional.pad(value, (0, 1), value=1.0)


def _ratio(gathered: Tensor) -> Tensor:  # (..., n, v + 1) -> (..., n, v)
    return gathered[..., :-1] / _not_zero(gathered[..., -1:])


def _not_zero(total: Tensor) -> Tensor:
    """Where a query sees nothing its numerators are zero as well; one beneath them makes output and gradient zero.

    A query counts as seeing nothing, too, where its total is below e^-58 (in float32) of what its largest feature and
    the largest of a key could give: digits are lost there, and a gradient divided by it may overflow.
    """
    return total.where(total.abs() >= torch.finfo(total.dtype).tiny ** (2 / 3), 1)


def _lowest(like: Tensor) -> float:
    """A scale below all others, yet finite: the difference of two must be a number."""
    return torch.finfo(like.dtype).min / 4
