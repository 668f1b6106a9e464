"""Shapes, indices and masks: einsum, norms, softmax, one-hot, kernels, shape checks with good errors, operation counts
and complexity."""

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
    from quoin.tensor.distances import (
        Bandwidth,
        as_bandwidth,
        scaled_offsets,
        squared_distances,
        squared_distances_definition,
    )
    from quoin.tensor.eigen import (
        Discs,
        Dominant,
        Eigen,
        eigendecomposition,
        gershgorin_discs,
        growth_rates,
        power_iteration,
        symmetric_eigendecomposition,
    )
    from quoin.tensor.einsum import einsum, einsum_definition
    from quoin.tensor.entries import as_floating, check_finite, check_floating, check_same_dtype
    from quoin.tensor.geometry import (
        angle,
        cosine_similarity,
        cosine_similarity_definition,
        hyperplane_distance,
        hyperplane_side,
        project,
    )
    from quoin.tensor.gram import PairKernel, check_gamma, kernel_matrix, rbf_kernel
    from quoin.tensor.images import channels_first, channels_last, check_image_batch, flatten_images, unflatten_images
    from quoin.tensor.indices import index_set, zero_based
    from quoin.tensor.labels import check_labels, one_hot
    from quoin.tensor.masked import (
        attention_mask,
        check_mask,
        masked_mean,
        masked_softmax,
        masked_softmax_definition,
        zero_masked,
    )
    from quoin.tensor.masks import causal_mask, sequence_mask
    from quoin.tensor.matrices import det, det_definition, inverse, matrix_rank
    from quoin.tensor.norms import NormTest, frobenius_norm, is_norm, manhattan_distance, norm, norm_definition
    from quoin.tensor.order import entry, order, unfolding
    from quoin.tensor.products import (
        bmm,
        bmm_definition,
        dot,
        hadamard,
        pure_tensor,
        tensor_product,
        tensor_product_definition,
    )
    from quoin.tensor.rank import RankBounds, cp_rank, is_pure, unfolding_ranks
    from quoin.tensor.shapes import check_shapes
    from quoin.tensor.smoothing import (
        BoxcarKernel,
        EpanechnikovKernel,
        GaussianKernel,
        ScaledValues,
        SmoothingKernel,
        TriangularKernel,
    )
    from quoin.tensor.softmax import logsumexp, softargmax, softmax
    from quoin.tensor.token_ids import check_token_ids

__all__ = [
    "CP",
    "Bandwidth",
    "BoxcarKernel",
    "Counted",
    "Discs",
    "Dominant",
    "Eigen",
    "EpanechnikovKernel",
    "GaussianKernel",
    "LinkedList",
    "NormTest",
    "PairKernel",
    "PairwiseCost",
    "PowerLaw",
    "RankBounds",
    "ScaledValues",
    "SmoothingKernel",
    "TriangularKernel",
    "angle",
    "array_access",
    "as_bandwidth",
    "as_floating",
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
    "check_token_ids",
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
    "frobenius_norm",
    "gershgorin_discs",
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
    "kernel_matrix",
    "linked_list_access",
    "logsumexp",
    "manhattan_distance",
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
    "pure_tensor",
    "rbf_kernel",
    "scaled_offsets",
    "sequence_mask",
    "softargmax",
    "softmax",
    "squared_distances",
    "squared_distances_definition",
    "symmetric_eigendecomposition",
    "tensor_product",
    "tensor_product_definition",
    "unflatten_images",
    "unfolding",
    "unfolding_ranks",
    "zero_based",
    "zero_masked",
]

export_lazily(__name__)
