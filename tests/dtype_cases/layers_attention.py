"""Cases for attention in `quoin.layers`. Part of layers.py.

Scores of 256 and 0 are told apart by floats and by no byte: 16 · 16 is 0 in uint8 and int8.
"""

import torch
from torch import nn

from dtypes import in_dtype, whole
from quoin import layers as q
from quoin.tensor import GaussianWindow

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
        room = q.Room(1, 1, key.shape[-1], value.shape[-1], 4, value.dtype, value.device)
        return layer.step(layer.start(room), query, key[..., :2, :], value[..., :2, :]).output

    return {
        "": lambda x: in_dtype(make, x)(*(x(each) for each in given)),
        ".weights": lambda x: in_dtype(make, x).weights(x(given[0]), x(given[1])),
        ".step": stepped,
    }


def named(name, cases):
    return {name + part: case for part, case in cases.items()}


def multi_head(x, use):
    return use(in_dtype(lambda: q.MultiHeadAttention(4, 2, generator=generator()), x))


def multi_head_step(layer, words):
    return layer.step(layer.start(1, 4), words).output


def additive(x, use):
    return use(in_dtype(lambda: q.AdditiveAttention(2, 2, 3, generator=generator()), x))


def features(x, which=0):
    """Positive features with a scale for each row."""
    return q.Features(x([[[1, 3], [2, 1]]]), x([[[0], [1]]]) if which else None)


def directions(x):
    return x([[1, 0, 1, 0], [0, 1, 0, 0]])


ADDITIVE = [[1, 0], [2, 1], [0, 3]], [[0, 1], [1, 1], [2, 0]], [1, 2, 3]
MAPS = q.HeadMaps(lambda t: t, lambda t: t, lambda t: t)
FEATURE_MAPS = {
    "PerformerFeatures": lambda: q.PerformerFeatures(4, 3, generator=generator()),
    "CoshFeatures": lambda: q.CoshFeatures(4, 4, generator=generator()),
    "RandomFourierFeatures": lambda: q.RandomFourierFeatures(4, 3, gamma=0.5, generator=generator()),
    "PositiveRandomFeatures": lambda: q.PositiveRandomFeatures(4, 3, gamma=0.5, generator=generator()),
    "EluPlusOne": q.EluPlusOne,
}

CASES = {name: lambda x, make=make: in_dtype(make, x)(x(whole(1, 3, 4, most=3)), is_query=True) for name, make in FEATURE_MAPS.items()}
CASES |= named("ExactAttention", core(q.ExactAttention))
CASES |= named("LinearAttention", core(q.LinearAttention, SMALL))
CASES |= named("FeatureMapAttention", core(lambda: q.FeatureMapAttention(q.EluPlusOne()), SMALL))
CASES |= named("PerformerAttention", core(lambda: q.PerformerAttention(4, 3, generator=generator()), SMALL))
CASES |= named("NadarayaWatson", core(lambda: q.NadarayaWatson(GaussianWindow(), 2.0)))
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
    "additive_score_definition": lambda x: q.additive_score_definition(x(QUERY), x(KEY), *(x(each) for each in ADDITIVE)),
    "AdditiveScore": lambda x: in_dtype(lambda: q.AdditiveScore(2, 2, 3, generator=generator()), x)(x(QUERY), x(KEY)),
    "AdditiveScore.score": lambda x: in_dtype(lambda: q.AdditiveScore(2, 2, 3, generator=generator()), x).score(
        x(whole(1, 2, 3, most=3)), x(whole(1, 3, 3, most=3))
    ),
    # weights and pooling
    "attention_weights": lambda x: q.attention_weights(x(SCORES)),
    "hard_weights": lambda x: q.hard_weights(x(SCORES)),
    "average_weights": lambda x: q.average_weights(x(SCORES)),
    "pool_values": lambda x: q.pool_values(x([[1, 2, 3]]), x([[100, 3], [7, 200], [0, 1]])),
    "pool_values masked": lambda x: q.pool_values(x([[1, 2, 0]]), x([[100, 3], [7, 200], [0, 1]]), torch.tensor([[True, True, False]])),
    "pool_values_definition": lambda x: q.pool_values_definition(x([[1, 2, 3]]), x([[100, 3], [7, 200], [0, 1]])),
    "attention_pooling": three(q.attention_pooling, q.dot_score, q.attention_weights),
    "attention_pooling_definition": three(q.attention_pooling_definition, q.dot_score_definition, q.attention_weights),
    "linear_lookup": three(q.linear_lookup),
    "linear_lookup_definition": three(q.linear_lookup_definition),
    "soft_lookup": three(q.soft_lookup),
    "soft_lookup_definition": three(q.soft_lookup_definition),
    "scaled_dot_product_attention_definition": three(q.scaled_dot_product_attention_definition),
    "attention_layer_definition": lambda x: q.attention_layer_definition(x(QUERY), x(KEY), x(VALUE), *(x([[1, 0], [0, 1]]) for _ in "qkv")),
    "Attention": lambda x: in_dtype(lambda: q.Attention(2, 2, 2, 3, 2, generator=generator()), x)(x(QUERY), x(KEY), x(VALUE)),
    "SelfAttention": lambda x: in_dtype(lambda: q.SelfAttention(2, 3, 2, generator=generator()), x)(x(NEAR[1])),
    "additive_attention_definition": lambda x: q.additive_attention_definition(x(QUERY), x(KEY), x(VALUE), *(x(each) for each in ADDITIVE)),
    "AdditiveAttention": lambda x: additive(x, lambda layer: layer(x(QUERY), x(KEY), x(VALUE))),
    "AdditiveAttention.weights": lambda x: additive(x, lambda layer: layer.weights(x(QUERY), x(KEY))),
    "AdditiveAttention.recall": lambda x: additive(x, lambda layer: layer.recall(layer.remember(x(KEY), x(VALUE)), x(QUERY))),
    "AdditiveAttention.step": core(lambda: q.AdditiveAttention(2, 2, 3, generator=generator()))[".step"],
    # heads
    "multi_head_attention_definition": lambda x: q.multi_head_attention_definition(
        x(QUERY), x(KEY), x(VALUE), [MAPS, MAPS], x([[1, 0], [2, 1], [0, 3], [1, 1]]), x([200, 3])
    ),
    "MultiHeadAttention": lambda x: multi_head(x, lambda layer: layer(x(whole(1, 3, 4, most=3)), causal=True)),
    "MultiHeadAttention.attend_with_weights": lambda x: multi_head(x, lambda layer: layer.attend_with_weights(x(whole(1, 3, 4, most=3)))),
    "MultiHeadAttention.step": lambda x: multi_head(x, lambda layer: multi_head_step(layer, x(whole(1, 3, 4, most=3)))),
    "MultiHeadAttention.recall": lambda x: multi_head(
        x, lambda layer: layer.recall(layer.remember(x(whole(1, 3, 4, most=3))), x(whole(1, 2, 4, most=3)))
    ),
    "JointProjections": lambda x: in_dtype(lambda: q.JointProjections(2, [3, 3, 2], generator=generator()), x)(x(KEY), x(KEY), x(VALUE)),
    "SeparateProjections": lambda x: in_dtype(lambda: q.SeparateProjections([2, 2, 2], [3, 3, 2], generator=generator()), x)(
        x(KEY), x(KEY), x(VALUE)
    ),
    # nearness of keys
    "nadaraya_watson": three(q.nadaraya_watson, GaussianWindow(), 2.0),
    "nadaraya_watson_definition": three(q.nadaraya_watson_definition, GaussianWindow(), 2.0),
    "nadaraya_watson_weights": lambda x: q.nadaraya_watson_weights(x(NEAR[0]), x(NEAR[1]), GaussianWindow(), 2.0),
    "nearest_key": lambda x: q.nearest_key(x([[3, 100, 2], [200, 1, 9]])),
    "every_key": lambda x: q.every_key(x([[3, 100, 2], [200, 1, 9]])),
    "no_key": lambda x: q.no_key(x([[3, 100, 2], [200, 1, 9]])),
    "undefined": lambda x: q.undefined(x([[3, 100, 2], [200, 1, 9]])),
    # features
    "DrawnDirections": lambda x: in_dtype(lambda: q.DrawnDirections(3, 4, generator=generator()), x)(x(whole(1, 3, 4, most=9))),
    "performer_features_definition": lambda x: q.performer_features_definition(x(whole(3, 4, most=2)), directions(x)),
    "cosh_features_definition": lambda x: q.cosh_features_definition(x(whole(3, 4, most=2)), directions(x)),
    "fourier_features_definition": lambda x: q.fourier_features_definition(x(whole(3, 4, most=2)), directions(x), x([0, 1]), 0.5),
    "positive_features_definition": lambda x: q.positive_features_definition(x(whole(3, 4, most=2)), directions(x), 0.5),
    "performer_variance": lambda x: q.performer_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 3),
    "cosh_variance": lambda x: q.cosh_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 4),
    "fourier_variance": lambda x: q.fourier_variance(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 3, 0.5),
    "orthogonal_saving": lambda x: q.orthogonal_saving(x([[1, 0], [0, 1]]), x([[0, 1], [1, 1]]), 2),
    "performer_attention_variance": lambda x: q.performer_attention_variance(x([[1, 0]]), x([[0, 1], [1, 1]]), x([[100, 3], [7, 20]]), 3),
    "feature_attention": lambda x: q.feature_attention(features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])),
    "feature_attention plain": lambda x: q.feature_attention(features(x), features(x), x([[[100, 3], [7, 200]]])),
    "feature_attention_definition": lambda x: q.feature_attention_definition(features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])),
    "feature_attention_definition plain": lambda x: q.feature_attention_definition(features(x), features(x), x([[[100, 3], [7, 200]]])),
    "causal_feature_attention": lambda x: q.causal_feature_attention(features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])),
    "causal_feature_attention plain": lambda x: q.causal_feature_attention(features(x), features(x), x([[[100, 3], [7, 200]]])),
    "no_keys": lambda x: q.no_keys(features(x, 1), x([[[100, 3], [7, 200]]])).moments,
    "add_keys": lambda x: sums(x),
    "read_sums": lambda x: q.read_sums(sums(x), features(x, 1)),
    "causal_feature_step": lambda x: q.causal_feature_step(sums(x), features(x, 1), features(x, 1), x([[[100, 3], [7, 200]]])),
    # what is kept between steps
    "KeyValueCache.append": lambda x: kept(x).keys,
    "KeyValueCache.select": lambda x: kept(x).select(torch.tensor([0, 0])).values,
    "LinearState.select": lambda x: q.LinearState(sums(x), 2).select(torch.tensor([0, 0])).sums,
    "from_torch_multihead": lambda x: q.from_torch_multihead(in_dtype(lambda: nn.MultiheadAttention(4, 2, batch_first=True), x))(
        x(whole(1, 3, 4, most=3))
    ),
}


def sums(x):
    value = x([[[100, 3], [7, 200]]])
    return q.add_keys(q.no_keys(features(x, 1), value), features(x, 1), value)


def kept(x):
    keys = x([KEY])
    return q.KeyValueCache.empty(q.Room(1, 1, 2, 2, 4, keys.dtype, keys.device)).append(keys, x([VALUE]))


def of_lengths(x):
    layer = in_dtype(lambda: q.MultiHeadAttention(4, 2, generator=generator()), torch.tensor)
    return layer(torch.tensor(whole(2, 3, 4, most=3), dtype=torch.float32), lengths=x([1, 2]))


def chosen_rows(x):
    room = q.Room(2, 1, 2, 2, 4, torch.float32, torch.device("cpu"))
    cache = q.KeyValueCache.empty(room).append(torch.arange(4.0).reshape(2, 1, 1, 2), torch.ones(2, 1, 1, 2))
    return cache.select(x([1, 0])).keys


# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = dict.fromkeys(["AttentionCore", "AttentionState", "DirectionLaw", "FeatureMap", "Redrawn"], "a protocol")
NO_NUMBERS |= dict.fromkeys(["Attended", "MultiHeadAttended", "Pooled", "Remembered", "Stepped", "AdditiveMemory"], RESULT)
NO_NUMBERS |= dict.fromkeys(["Features", "KeySums"], "tensors held by name; what computes with them is tried")
NO_NUMBERS |= dict.fromkeys(["gaussian_directions", "opposite_directions", "orthogonal_directions", "Room"], "takes sizes alone")
NO_NUMBERS |= {"HeadMaps": "functions held by name"}
