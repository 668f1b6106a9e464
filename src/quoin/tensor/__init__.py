"""Shapes, indices and masks: einsum, norms, softmax, one-hot, kernels, shape checks with good errors, operation counts and growth."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.tensor.cayley import hyperdeterminant
    from quoin.tensor.complexity import PowerLaw, fit_complexity, growth_constant
    from quoin.tensor.counted_algorithms import (
        Counted,
        LinkedList,
        array_access,
        binary_search,
        bubble_sort,
        linked_list_access,
        merge_sort,
    )
    from quoin.tensor.counting import PairwiseCost, einsum_multiplications, pairwise_multiplications
    from quoin.tensor.cp import CP, cp_decompose, cp_tensor, cp_tensor_definition
    from quoin.tensor.distances import Width, as_width, scaled_offsets, squared_distances, squared_distances_definition
    from quoin.tensor.eigen import (
        Discs,
        Dominant,
        Eigen,
        eigendecomposition,
        gershgorin,
        growth_rates,
        power_iteration,
        symmetric_eigendecomposition,
    )
    from quoin.tensor.einsum import einsum, einsum_definition
    from quoin.tensor.entries import as_floating, check_finite, check_floating, check_same_dtype
    from quoin.tensor.geometry import angle, cosine_similarity, cosine_similarity_definition, hyperplane_distance, hyperplane_side, project
    from quoin.tensor.gram import PairKernel, check_gamma, gram, squared_exponential
    from quoin.tensor.images import channels_first, channels_last, check_image_batch, flatten_images, unflatten_images
    from quoin.tensor.indices import index_set, zero_based
    from quoin.tensor.labels import check_labels, one_hot
    from quoin.tensor.masked import attention_mask, check_mask, masked_mean, masked_softmax, masked_softmax_definition, zero_unseen
    from quoin.tensor.masks import causal_mask, valid_mask
    from quoin.tensor.matrices import det, det_definition, inverse, matrix_rank
    from quoin.tensor.norms import NormTest, frobenius, is_norm, manhattan, norm, norm_definition
    from quoin.tensor.order import entry, order, unfolding
    from quoin.tensor.products import bmm, bmm_definition, dot, hadamard, pure, tensor_product, tensor_product_definition
    from quoin.tensor.rank import RankBounds, cp_rank, is_pure, unfolding_ranks
    from quoin.tensor.shapes import check_shapes
    from quoin.tensor.smoothing import BoxcarWindow, EpanechnikovWindow, GaussianWindow, SmoothingKernel, TriangularWindow, Weighed
    from quoin.tensor.softmax import log_sum_exp, softargmax, softmax

__all__ = [
    "CP",
    "BoxcarWindow",
    "Counted",
    "Discs",
    "Dominant",
    "Eigen",
    "EpanechnikovWindow",
    "GaussianWindow",
    "LinkedList",
    "NormTest",
    "PairKernel",
    "PairwiseCost",
    "PowerLaw",
    "RankBounds",
    "SmoothingKernel",
    "TriangularWindow",
    "Weighed",
    "Width",
    "angle",
    "array_access",
    "as_floating",
    "as_width",
    "attention_mask",
    "binary_search",
    "bmm",
    "bmm_definition",
    "bubble_sort",
    "causal_mask",
    "channels_first",
    "channels_last",
    "check_finite",
    "check_floating",
    "check_gamma",
    "check_image_batch",
    "check_labels",
    "check_mask",
    "check_same_dtype",
    "check_shapes",
    "cosine_similarity",
    "cosine_similarity_definition",
    "cp_decompose",
    "cp_rank",
    "cp_tensor",
    "cp_tensor_definition",
    "det",
    "det_definition",
    "dot",
    "eigendecomposition",
    "einsum",
    "einsum_definition",
    "einsum_multiplications",
    "entry",
    "fit_complexity",
    "flatten_images",
    "frobenius",
    "gershgorin",
    "gram",
    "growth_constant",
    "growth_rates",
    "hadamard",
    "hyperdeterminant",
    "hyperplane_distance",
    "hyperplane_side",
    "index_set",
    "inverse",
    "is_norm",
    "is_pure",
    "linked_list_access",
    "log_sum_exp",
    "manhattan",
    "masked_mean",
    "masked_softmax",
    "masked_softmax_definition",
    "matrix_rank",
    "merge_sort",
    "norm",
    "norm_definition",
    "one_hot",
    "order",
    "pairwise_multiplications",
    "power_iteration",
    "project",
    "pure",
    "scaled_offsets",
    "softargmax",
    "softmax",
    "squared_distances",
    "squared_distances_definition",
    "squared_exponential",
    "symmetric_eigendecomposition",
    "tensor_product",
    "tensor_product_definition",
    "unflatten_images",
    "unfolding",
    "unfolding_ranks",
    "valid_mask",
    "zero_based",
    "zero_unseen",
]

export_lazily(__name__)
