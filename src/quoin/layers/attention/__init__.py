"""Attention: pooling by weights, scores, exact and multi-head attention, additive attention, and forms of linear cost."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.layers.attention.additive import AdditiveAttention, AdditiveMemory, additive_attention_definition
    from quoin.layers.attention.cache import KeyValueCache
    from quoin.layers.attention.directions import (
        DirectionLaw,
        DrawnDirections,
        gaussian_directions,
        opposite_directions,
        orthogonal_directions,
    )
    from quoin.layers.attention.exact import Attended, ExactAttention, scaled_dot_product_attention_definition
    from quoin.layers.attention.feature_error import (
        cosh_variance,
        fourier_variance,
        orthogonal_saving,
        performer_attention_variance,
        performer_variance,
    )
    from quoin.layers.attention.feature_map import FeatureMapAttention, LinearAttention, LinearState
    from quoin.layers.attention.features import EluPlusOne, FeatureMap, Features, Redrawn, elu_plus_one, elu_plus_one_definition
    from quoin.layers.attention.heads import (
        HeadMaps,
        MultiHeadAttended,
        MultiHeadAttention,
        Remembered,
        from_torch_multihead,
        multi_head_attention_definition,
    )
    from quoin.layers.attention.interface import AttentionCore, AttentionState, Room, Stepped
    from quoin.layers.attention.kernel_features import (
        PositiveRandomFeatures,
        RandomFourierFeatures,
        fourier_features_definition,
        positive_features_definition,
    )
    from quoin.layers.attention.linear_forms import (
        KeySums,
        add_keys,
        causal_feature_attention,
        causal_feature_step,
        feature_attention,
        feature_attention_definition,
        no_keys,
        read_sums,
    )
    from quoin.layers.attention.lookup import linear_lookup, linear_lookup_definition, soft_lookup, soft_lookup_definition
    from quoin.layers.attention.nadaraya_watson import (
        EmptyRule,
        NadarayaWatson,
        every_key,
        nadaraya_watson,
        nadaraya_watson_definition,
        nadaraya_watson_weights,
        nearest_key,
        no_key,
        undefined,
    )
    from quoin.layers.attention.performer import PerformerAttention
    from quoin.layers.attention.pooling import (
        Pooled,
        attention_pooling,
        attention_pooling_definition,
        attention_weights,
        average_weights,
        hard_weights,
        pool_values,
        pool_values_definition,
    )
    from quoin.layers.attention.projections import JointProjections, SeparateProjections
    from quoin.layers.attention.random_features import (
        CoshFeatures,
        PerformerFeatures,
        cosh_features_definition,
        performer_features_definition,
    )
    from quoin.layers.attention.scores import (
        AdditiveScore,
        BilinearScore,
        additive_score_definition,
        bilinear_score_definition,
        dot_score,
        dot_score_definition,
        gaussian_score,
        gaussian_score_definition,
        scaled_dot_score,
        scaled_dot_score_definition,
    )
    from quoin.layers.attention.single import Attention, SelfAttention, attention_layer_definition

__all__ = [
    "AdditiveAttention",
    "AdditiveMemory",
    "AdditiveScore",
    "Attended",
    "Attention",
    "AttentionCore",
    "AttentionState",
    "BilinearScore",
    "CoshFeatures",
    "DirectionLaw",
    "DrawnDirections",
    "EluPlusOne",
    "EmptyRule",
    "ExactAttention",
    "FeatureMap",
    "FeatureMapAttention",
    "Features",
    "HeadMaps",
    "JointProjections",
    "KeySums",
    "KeyValueCache",
    "LinearAttention",
    "LinearState",
    "MultiHeadAttended",
    "MultiHeadAttention",
    "NadarayaWatson",
    "PerformerAttention",
    "PerformerFeatures",
    "Pooled",
    "PositiveRandomFeatures",
    "RandomFourierFeatures",
    "Redrawn",
    "Remembered",
    "Room",
    "SelfAttention",
    "SeparateProjections",
    "Stepped",
    "add_keys",
    "additive_attention_definition",
    "additive_score_definition",
    "attention_layer_definition",
    "attention_pooling",
    "attention_pooling_definition",
    "attention_weights",
    "average_weights",
    "bilinear_score_definition",
    "causal_feature_attention",
    "causal_feature_step",
    "cosh_features_definition",
    "cosh_variance",
    "dot_score",
    "dot_score_definition",
    "elu_plus_one",
    "elu_plus_one_definition",
    "every_key",
    "feature_attention",
    "feature_attention_definition",
    "fourier_features_definition",
    "fourier_variance",
    "from_torch_multihead",
    "gaussian_directions",
    "gaussian_score",
    "gaussian_score_definition",
    "hard_weights",
    "linear_lookup",
    "linear_lookup_definition",
    "multi_head_attention_definition",
    "nadaraya_watson",
    "nadaraya_watson_definition",
    "nadaraya_watson_weights",
    "nearest_key",
    "no_key",
    "no_keys",
    "opposite_directions",
    "orthogonal_directions",
    "orthogonal_saving",
    "performer_attention_variance",
    "performer_features_definition",
    "performer_variance",
    "pool_values",
    "pool_values_definition",
    "positive_features_definition",
    "read_sums",
    "scaled_dot_product_attention_definition",
    "scaled_dot_score",
    "scaled_dot_score_definition",
    "soft_lookup",
    "soft_lookup_definition",
    "undefined",
]

export_lazily(__name__)
