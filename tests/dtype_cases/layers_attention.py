"""Cases for attention in `quoin.layers`. Part of layers.py.

Scores of 256 and 0 are told apart by floats and by no byte: 16 · 16 is 0 in uint8 and int8.
"""

import torch
from torch import nn

from dtypes import in_dtype, whole
from quoin import layers as q
from quoin.tensor import GaussianKernel

QUERY, KEY, VALUE = [[[16, 0], [1, 2]]], [[[16, 0], [0, 2], [3, 1]]], [[[100, 3], [7, 200], [0, 1]]]
NEAR = [[[0, 1], [2, 1]]], [[[1, 0], [0, 2], [3, 1]]]  # queries and keys whose differences go below 0
HEADS = [QUERY], [KEY], [VALUE]  # (b, h, n, d)
SMALL = [whole(1, 2, 4, most=3)], [whole(1, 3, 4, most=3)], [whole(1, 3, 2)]
SCORES = [[256, 0, 3], [1, 2, 130]]


def generator():
    return torch.Generator().manual_seed(0)


def three(f, *more):
    return lambda x: f(x(QUERY), x(KEY), x(VALUE), *more)


def two(f):
    return lambda x: f(x(QUERY), x(KEY))


def near(f):
    return lambda x: f(x(NEAR[0]), x(NEAR[1]))


def core(make, given=HEADS):
    """Cases of a core: forward, weights, and one step from an empty state."""

    def stepped(x):
        layer = in_dtype(make, x)
        query, key, value = (x(each) for each in given)
        room = q.CacheSpec(1, 1, key.shape[-1], value.shape[-1], 4, value.dtype, value.device)
        return layer.decode_step(layer.init_cache(room), query, key[..., :2, :], value[..., :2, :]).output

    return {
        "": lambda x: in_dtype(make, x)(*(x(each) for each in given)),
        ".weights": lambda x: in_dtype(make, x).weights(x(given[0]), x(given[1])),
        ".decode_step": stepped,
    }


def named(name, cases):
    return {name + part: case for part, case in cases.items()}


def multi_head(x, use):
    return use(in_dtype(lambda: q.MultiHeadAttention(4, 2, generator=generator()), x))


def multi_head_step(layer, words):
    return layer.decode_step(layer.init_cache(1, 4), words).output


def additive(x, use):
    return use(in_dtype(lambda: q.AdditiveAttention(2, 2, 3, generator=generator()), x))


def features(x, which=0):
    """Positive features with a scale for each row."""
    return q.Features(x([[[1, 3], [2, 1]]]), x([[[0], [1]]]) if which else None)


def directions(x):
    return x([[1, 0, 1, 0], [0, 1, 0, 0]])


ADDITIVE = [[1, 0], [2, 1], [0, 3]], [[0, 1], [1, 1], [2, 0]], [1, 2, 3]
MAPS = q.HeadProjections(lambda t: t, lambda t: t, lambda t: t)
FEATURE_MAPS = {
    "PerformerFeatures": lambda: q.PerformerFeatures(4, 3, generator=generator()),
    "HyperbolicFeatures": lambda: q.HyperbolicFeatures(4, 4, generator=generator()),
    "RandomFourierFeatures": lambda: q.RandomFourierFeatures(4, 3, gamma=0.5, generator=generator()),
    "PositiveRandomFeatures": lambda: q.PositiveRandomFeatures(4, 3, gamma=0.5, generator=generator()),
    "EluPlusOne": q.EluPlusOne,
}

CASES = {
    name: lambda x, make=make: in_dtype(make, x)(x(whole(1, 3, 4, most=3)), is_query=True)
    for name, make in FEATURE_MAPS.items()
}
CASES |= named("ExactAttention", core(q.ExactAttention))
CASES |= named("ForwardOnlyAttention", core(lambda: q.ForwardOnlyAttention(q.ExactAttention())))
CASES |= named("LinearAttention", core(q.LinearAttention, SMALL))
CASES |= named("FeatureMapAttention", core(lambda: q.FeatureMapAttention(q.EluPlusOne()), SMALL))
CASES |= named("PerformerAttention", core(lambda: q.PerformerAttention(4, 3, generator=generator()), SMALL))
CASES |= named("NadarayaWatson", core(lambda: q.NadarayaWatson(GaussianKernel(), 2.0)))
CASES |= {
    # scores
    "gaussian_score": near(q.gaussian_score),
    "gaussian_score_definition": near(q.gaussian_score_definition),
    "gaussian_score_definition far": two(q.gaussian_score_definition),
    "gaussian_score far": two(q.gaussian_score),
    "dot_score": two(q.dot_score),
    "dot_score_definition": two(q.dot_score_definition),
    "scaled_dot_score": two(q.scaled_dot_score),
    "scaled_dot_score_definition": two(q.scaled_dot_score_definition),
    "bilinear_score_definition": lambda x: q.bilinear_score_definition(x(QUERY), x(KEY), x([[2, 0], [1, 3]])),
    "BilinearScore": lambda x: in_dtype(lambda: q.BilinearScore(2, 2, generator=generator()), x)(x(QUERY), x(KEY)),
    "additive_score_definition": lambda x: q.additive_score_definition(
        x(QUERY), x(KEY), *(x(each) for each in ADDITIVE)
    ),
    "AdditiveScore": lambda x: in_dtype(lambda: q.AdditiveScore(2, 2, 3, generator=generator()), x)(x(QUERY), x(KEY)),
    "AdditiveScore.score": lambda x: in_dtype(lambda: q.AdditiveScore(2, 2, 3, generator=generator()), x).score(
        x(whole(1, 2, 3, most=3)), x(whole(1, 3, 3, most=3))
    ),
    # weights and pooling
    "softmax_weights": lambda x: q.softmax_weights(x(SCORES)),
    "argmax_weights": lambda x: q.argmax_weights(x(SCORES)),
    "uniform_weights": lambda x: q.uniform_weights(x(SCORES)),
    "pool_values": lambda x: q.pool_values(x([[1, 2, 3]]), x([[100, 3], [7, 200], [0, 1]])),
    "pool_values masked": lambda x: q.pool_values(
        x([[1, 2, 0]]), x([[100, 3], [7, 200], [0, 1]]), torch.tensor([[True, True, False]])
    ),
    "pool_values_definition": lambda x: q.pool_values_definition(x([[1, 2, 3]]), x([[100, 3], [7, 200], [0, 1]])),
    "attention_pooling": three(q.attention_pooling, q.dot_score, q.softmax_weights),
    "attention_pooling_definition": three(q.attention_pooling_definition, q.dot_score_definition, q.softmax_weights),
    "linear_lookup": three(q.linear_lookup),
    "linear_lookup_definition": three(q.linear_lookup_definition),
    "soft_lookup": three(q.soft_lookup),
    "soft_lookup_definition": three(q.soft_lookup_definition),
    "scaled_dot_product_attention_definition": three(q.scaled_dot_product_attention_definition),
    "attention_layer_definition": lambda x: q.attention_layer_definition(
        x(QUERY), x(KEY), x(VALUE), *(x([[1, 0], [0, 1]]) for _ in "qkv")
    ),
    "Attention": lambda x: in_dtype(lambda: q.Attention(2, 2, 2, 3, 2, generator=generator()), x)(
        x(QUERY), x(KEY), x(VALUE)
    ),
    "SelfAttention": lambda x: in_dtype(lambda: q.SelfAttention(2, 3, 2, generator=generator()), x)(x(NEAR[1])),
    "additive_attention_definition": lambda x: q.additive_attention_definition(
        x(QUERY), x(KEY), x(VALUE), *(x(each) for each in ADDITIVE)
    ),
    "AdditiveAttention": lambda x: additive(x, lambda layer: layer(x(QUERY), x(KEY), x(VALUE))),
    "AdditiveAttention.weights": lambda x: additive(x, lambda layer: layer.weights(x(QUERY), x(KEY))),
    "AdditiveAttention.attend_memory": lambda x: additive(
        x, lambda layer: layer.attend_memory(layer.project_memory(x(KEY), x(VALUE)), x(QUERY))
    ),
    "AdditiveAttention.decode_step": core(lambda: q.AdditiveAttention(2, 2, 3, generator=generator()))[".decode_step"],
    # heads
    "multi_head_attention_definition": lambda x: q.multi_head_attention_definition(
        x(QUERY), x(KEY), x(VALUE), [MAPS, MAPS], x([[1, 0], [2, 1], [0, 3], [1, 1]]), x([200, 3])
    ),
    "MultiHeadAttention": lambda x: multi_head(x, lambda layer: layer(x(whole(1, 3, 4, most=3)), causal=True)),
    "MultiHeadAttention.attend_with_weights": lambda x: multi_head(
        x, lambda layer: layer.attend_with_weights(x(whole(1, 3, 4, most=3)))
    ),
    "MultiHeadAttention.decode_step": lambda x: multi_head(
        x, lambda layer: multi_head_step(layer, x(whole(1, 3, 4, most=3)))
    ),
    "MultiHeadAttention.attend_memory": lambda x: multi_head(
        x, lambda layer: layer.attend_memory(layer.project_memory(x(whole(1, 3, 4, most=3))), x(whole(1, 2, 4, most=3)))
    ),
    "PackedProjections": lambda x: in_dtype(lambda: q.PackedProjections(2, [3, 3, 2], generator=generator()), x)(
        x(KEY), x(KEY), x(VALUE)
    ),
    "SeparateProjections": lambda x: in_dtype(
        lambda: q.SeparateProjections([2, 2, 2], [3, 3, 2], generator=generator()), x
    )(x(KEY), x(KEY), x(VALUE)),
    # nearness of keys
    "nadaraya_watson": three(q.nadaraya_watson, GaussianKernel(), 2.0),
    "nadaraya_watson_definition": three(q.nadaraya_watson_definition, GaussianKernel(), 2.0),
    "nadaraya_watson_weights": lambda x: q.nadaraya_watson_weights(x(NEAR[0]), x(NEAR[1]), GaussianKernel(), 2.0),
    "nearest_key": lambda x: q.nearest_key(x([[3, 100, 2], [200, 1, 9]])),
    "every_key": lambda x: q.every_key(x([[3, 100, 2], [200, 1, 9]])),
    "no_key": lambda x: q.no_key(x([[3, 100, 2], [200, 1, 9]])),
    "undefined": lambda x: q.undefined(x([[3, 100, 2], [200, 1, 9]])),
    # features
    "RandomProjection": lambda x: in_dtype(lambda: q.RandomProjection(3, 4, generator=generator()), x)(
        x(whole(1, 3, 4, most=9))
    ),
    "performer_features_definition": lambda x: q.performer_features_definition(x(whole(3, 4, most=2)), directions(x)),
    "hyperbolic_features_definition": lambda x: q.hyperbolic_features_definition(x(whole(3, 4, most=2)), directions(x)),
    "fourier_features_definition": lambda x: q.fourier_features_definition(
        x(whole(3, 4, most=2)), directions(x), x([0, 1]), 0.5
    ),
    "positive_features_definition": lambda x: q.positive_features_definition(
        x(whole(3, 4, most=2)), directions(x), 0.5
    ),
    "performer_variance": lambda x: q.performer_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 3),
    "hyperbolic_variance": lambda x: q.hyperbolic_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 4),
    "fourier_variance": lambda x: q.fourier_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 3, 0.5),
    "orthogonal_variance_reduction": lambda x: q.orthogonal_variance_reduction(
        x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 2
    ),
    "performer_attention_variance": lambda x: q.performer_attention_variance(
        x([[1, 0]]), x([[0, 1], [1, 1]]), x([[100, 3], [7, 20]]), 3
    ),
    "feature_attention": lambda x: q.feature_attention(features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])),
    "feature_attention plain": lambda x: q.feature_attention(features(x), features(x), x([[[100, 3], [7, 200]]])),
    "feature_attention_definition": lambda x: q.feature_attention_definition(
        features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])
    ),
    "feature_attention_definition plain": lambda x: q.feature_attention_definition(
        features(x), features(x), x([[[100, 3], [7, 200]]])
    ),
    "causal_feature_attention": lambda x: q.causal_feature_attention(
        features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])
    ),
    "causal_feature_attention plain": lambda x: q.causal_feature_attention(
        features(x), features(x), x([[[100, 3], [7, 200]]])
    ),
    "batched_causal_feature_attention": lambda x: q.batched_causal_feature_attention(
        features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])
    ),
    "batched_causal_feature_attention plain": lambda x: q.batched_causal_feature_attention(
        features(x), features(x), x([[[100, 3], [7, 200]]])
    ),
    "init_sums": lambda x: q.init_sums(features(x, 1), x([[[100, 3], [7, 200]]])).moments,
    "update_sums": lambda x: sums(x),
    "query_sums": lambda x: q.query_sums(sums(x), features(x, 1)),
    "causal_feature_step": lambda x: q.causal_feature_step(
        sums(x), features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])
    ),
    # what is kept between steps
    "KeyValueCache.append": lambda x: kept(x).keys,
    "KeyValueCache.select": lambda x: kept(x).select(torch.tensor([0, 0])).values,
    "LinearAttentionCache.select": lambda x: q.LinearAttentionCache(sums(x), 2).select(torch.tensor([0, 0])).sums,
    "from_torch_multihead": lambda x: q.from_torch_multihead(
        in_dtype(lambda: nn.MultiheadAttention(4, 2, batch_first=True), x)
    )(x(whole(1, 3, 4, most=3))),
}


def sums(x):
    value = x([[[100, 3], [7, 200]]])
    return q.update_sums(q.init_sums(features(x, 1), value), features(x, 1), value)


def kept(x):
    keys = x([KEY])
    return q.KeyValueCache.empty(q.CacheSpec(1, 1, 2, 2, 4, keys.dtype, keys.device)).append(keys, x([VALUE]))


def of_lengths(x):
    layer = in_dtype(lambda: q.MultiHeadAttention(4, 2, generator=generator()), torch.tensor)
    return layer(torch.tensor(whole(2, 3, 4, most=3), dtype=torch.float32), lengths=x([1, 2]))


def chosen_rows(x):
    room = q.CacheSpec(2, 1, 2, 2, 4, torch.float32, torch.device("cpu"))
    cache = q.KeyValueCache.empty(room).append(torch.arange(4.0).reshape(2, 1, 1, 2), torch.ones(2, 1, 1, 2))
    return cache.select(x([1, 0])).keys


# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = dict.fromkeys(
    ["InnerAttention", "AttentionCache", "RandomMatrixSampler", "FeatureMap", "Redrawn"], "a protocol"
)
NO_NUMBERS |= dict.fromkeys(
    [
        "AttentionOutput",
        "MultiHeadAttentionOutput",
        "Pooled",
        "ProjectedMemory",
        "AttentionStepOutput",
        "AdditiveMemory",
    ],
    RESULT,
)
NO_NUMBERS |= dict.fromkeys(["Features", "KeyValueSums"], "tensors held by name; what computes with them is tried")
NO_NUMBERS |= dict.fromkeys(
    ["gaussian_random_matrix", "antithetic_random_matrix", "orthogonal_random_matrix", "CacheSpec"], "takes sizes alone"
)
NO_NUMBERS |= {"HeadProjections": "functions held by name"}
