"""Which form of linear attention a GPU computes: a kernel with the features inside, a kernel that is given features, or
none, and then `FeatureMapAttention` goes on as on a CPU."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from quoin.layers.attention.features import EluPlusOne
from quoin.layers.attention.random_features import PerformerFeatures
from quoin.layers.kernels import has_kernels

__all__ = ["attend_on_gpu"]


def attend_on_gpu(
    feature_map: nn.Module,
    query: Float[Tensor, "batch heads query head_dim"],
    key: Float[Tensor, "batch kv_heads key head_dim"],
    value: Float[Tensor, "batch kv_heads key value_dim"],
    mask: Bool[Tensor, "... #key"] | None,
    causal: bool,
) -> Float[Tensor, "batch heads query value_dim"] | None:
    """Linear attention by a kernel; None for what no kernel covers: other devices, float64, wide heads, no position, a
    mask that is not the same for all queries and heads."""
    if not has_kernels(query):
        return None
    if mask is not None and any(size > 1 for size in mask.shape[-3:-1]):
        return None
    from quoin.layers.kernels import linear_attention as kernels

    if 0 in (query.numel(), key.numel()) or max(query.shape[-1], value.shape[-1]) > kernels.MAX_WIDTH:
        return None
    seen = None if mask is None else _by_key(mask, key)
    if type(feature_map) is EluPlusOne:
        return kernels.attend_elu_plus_one(query, key, value, seen, causal=causal)
    if isinstance(feature_map, PerformerFeatures) and type(feature_map).forward is PerformerFeatures.forward:
        if feature_map.num_features > kernels.MAX_FEATURES:
            return None
        directions = feature_map.projection.matrix
        return kernels.attend_exponential(query, key, value, seen, directions, scale=feature_map.scale, causal=causal)
    keys = key if seen is None else key.masked_fill(~seen.unsqueeze(-1), 0)  # what is hidden may be NaN
    queries, keys = feature_map(query.float(), is_query=True), feature_map(keys.float(), is_query=False)
    scale = keys.log_scale
    if queries.values.shape[-1] > kernels.MAX_FEATURES or (scale is not None and scale.requires_grad):
        return None
    scale = None if scale is None else scale.squeeze(-1)
    found = kernels.attend_by_features(queries.values, keys.values, value.float(), seen, scale, causal=causal)
    return found.to(query.dtype)


def _by_key(mask: Tensor, key: Tensor) -> Tensor:  # broadcasts to (b, 1, 1, m) -> (b, g, m)
    batch_size, groups, num_keys, _ = key.shape
    return mask[(None,) * (4 - mask.ndim)][:, 0].expand(batch_size, groups, num_keys)
