"""Attention: pooling by weights, scores, exact and multi-head attention, additive attention, and forms of linear
cost."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.layers.attention.additive import AdditiveAttention, AdditiveMemory, additive_attention_definition
    from quoin.layers.attention.cache import KeyValueCache
    from quoin.layers.attention.exact import AttentionOutput, ExactAttention, scaled_dot_product_attention_definition
    from quoin.layers.attention.feature_error import (
        fourier_variance,
        hyperbolic_variance,
        orthogonal_variance_reduction,
        performer_attention_variance,
        performer_variance,
    )
    from quoin.layers.attention.feature_map import FeatureMapAttention, LinearAttention, LinearAttentionCache
    from quoin.layers.attention.features import (
        EluPlusOne,
        FeatureMap,
        Features,
        Redrawn,
        elu_plus_one,
        elu_plus_one_definition,
    )
    from quoin.layers.attention.forward_only import ForwardOnlyAttention
    from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec, InnerAttention
    from quoin.layers.attention.kernel_features import (
        PositiveRandomFeatures,
        RandomFourierFeatures,
        fourier_features_definition,
        positive_features_definition,
    )
    from quoin.layers.attention.linear_forms import (
        KeyValueSums,
        batched_causal_feature_attention,
        causal_feature_attention,
        causal_feature_step,
        feature_attention,
        feature_attention_definition,
        init_sums,
        query_sums,
        update_sums,
    )
    from quoin.layers.attention.lookup import (
        linear_lookup,
        linear_lookup_definition,
        soft_lookup,
        soft_lookup_definition,
    )
    from quoin.layers.attention.multi_head import (
        HeadProjections,
        MultiHeadAttention,
        MultiHeadAttentionOutput,
        ProjectedMemory,
        from_torch_multihead,
        multi_head_attention_definition,
    )
    from quoin.layers.attention.nadaraya_watson import (
        FallbackRule,
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
        argmax_weights,
        attention_pooling,
        attention_pooling_definition,
        pool_values,
        pool_values_definition,
        softmax_weights,
        uniform_weights,
    )
    from quoin.layers.attention.projections import PackedProjections, SeparateProjections
    from quoin.layers.attention.random_features import (
        HyperbolicFeatures,
        PerformerFeatures,
        hyperbolic_features_definition,
        performer_features_definition,
    )
    from quoin.layers.attention.random_projection import (
        RandomMatrixSampler,
        RandomProjection,
        antithetic_random_matrix,
        gaussian_random_matrix,
        orthogonal_random_matrix,
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
    "Attention",
    "AttentionCache",
    "AttentionOutput",
    "AttentionStepOutput",
    "BilinearScore",
    "CacheSpec",
    "EluPlusOne",
    "ExactAttention",
    "FallbackRule",
    "FeatureMap",
    "FeatureMapAttention",
    "Features",
    "ForwardOnlyAttention",
    "HeadProjections",
    "HyperbolicFeatures",
    "InnerAttention",
    "KeyValueCache",
    "KeyValueSums",
    "LinearAttention",
    "LinearAttentionCache",
    "MultiHeadAttention",
    "MultiHeadAttentionOutput",
    "NadarayaWatson",
    "PackedProjections",
    "PerformerAttention",
    "PerformerFeatures",
    "Pooled",
    "PositiveRandomFeatures",
    "ProjectedMemory",
    "RandomFourierFeatures",
    "RandomMatrixSampler",
    "RandomProjection",
    "Redrawn",
    "SelfAttention",
    "SeparateProjections",
    "additive_attention_definition",
    "additive_score_definition",
    "antithetic_random_matrix",
    "argmax_weights",
    "attention_layer_definition",
    "attention_pooling",
    "attention_pooling_definition",
    "batched_causal_feature_attention",
    "bilinear_score_definition",
    "causal_feature_attention",
    "causal_feature_step",
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
    "gaussian_random_matrix",
    "gaussian_score",
    "gaussian_score_definition",
    "hyperbolic_features_definition",
    "hyperbolic_variance",
    "init_sums",
    "linear_lookup",
    "linear_lookup_definition",
    "multi_head_attention_definition",
    "nadaraya_watson",
    "nadaraya_watson_definition",
    "nadaraya_watson_weights",
    "nearest_key",
    "no_key",
    "orthogonal_random_matrix",
    "orthogonal_variance_reduction",
    "performer_attention_variance",
    "performer_features_definition",
    "performer_variance",
    "pool_values",
    "pool_values_definition",
    "positive_features_definition",
    "query_sums",
    "scaled_dot_product_attention_definition",
    "scaled_dot_score",
    "scaled_dot_score_definition",
    "soft_lookup",
    "soft_lookup_definition",
    "softmax_weights",
    "undefined",
    "uniform_weights",
    "update_sums",
]

export_lazily(__name__)
