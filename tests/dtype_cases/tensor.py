"""Cases for `quoin.tensor`: see tests/dtypes.py."""

import math

import torch

from quoin.tensor import (
    BoxcarKernel,
    EpanechnikovKernel,
    GaussianKernel,
    LinkedList,
    PowerLaw,
    TriangularKernel,
    angle,
    array_access,
    as_bandwidth,
    as_floating,
    attention_mask,
    binary_search,
    bmm,
    bmm_definition,
    bubble_sort,
    channels_first,
    channels_last,
    check_finite,
    check_floating,
    check_gamma,
    check_image_batch,
    check_labels,
    check_mask,
    check_same_dtype,
    check_token_ids,
    cosine_similarity,
    cosine_similarity_definition,
    cp_decompose,
    cp_rank,
    cp_tensor,
    cp_tensor_definition,
    det,
    det_definition,
    dot,
    eigendecomposition,
    einsum,
    einsum_definition,
    entry,
    fit_complexity,
    flatten_images,
    frobenius_norm,
    gershgorin_discs,
    growth_constant,
    growth_rates,
    hadamard,
    hyperdeterminant,
    hyperplane_distance,
    hyperplane_side,
    inverse,
    is_pure,
    kernel_matrix,
    linked_list_access,
    logsumexp,
    manhattan_distance,
    masked_mean,
    masked_softmax,
    masked_softmax_definition,
    matrix_rank,
    merge_sort,
    norm,
    norm_definition,
    one_hot,
    order,
    power_iteration,
    project,
    pure_tensor,
    rbf_kernel,
    scaled_offsets,
    sequence_mask,
    softargmax,
    softmax,
    squared_distances,
    squared_distances_definition,
    symmetric_eigendecomposition,
    tensor_product,
    tensor_product_definition,
    unflatten_images,
    unfolding,
    unfolding_ranks,
    zero_masked,
)
from seeds import seeded

MASK = torch.tensor([[True, True, False], [True, False, True]])
ROWS = [[0, 255, 250], [3, 1, 2]]
MATRIX = [[100, 3, 0], [2, 90, 7], [0, 30, 80]]
SYMMETRIC = [[100, 3, 0], [3, 90, 7], [0, 7, 20]]
POINTS, OTHERS = [[0, 255], [3, 100]], [[200, 1], [2, 90], [120, 7]]
IMAGES = [[[[0, 255], [3, 200]]]]
VECTORS = [0, 255, 3], [200, 1, 2]
FACTORS = [[0, 200], [3, 100]], [[255, 2], [1, 30]], [[2, 1], [100, 3]]


def ranks(bounds):
    return bounds.lower, bounds.upper


def _window(kernel):
    """What a window gives, of offsets inside it and beyond."""
    return {
        f"{kernel.__name__}.__call__": lambda x: kernel()(x([[0, 200], [1, 0], [0.25, 0.5]])),
        f"{kernel.__name__}.density": lambda x: kernel().density(x([[0, 200], [1, 0], [0.25, 0.5]])),
        f"{kernel.__name__}.from_squared_distance": lambda x: kernel().from_squared_distance(x([0, 1, 200, 0.25])),
        f"{kernel.__name__}.scaled_values": lambda x: kernel().scaled_values(x([[0, 1, 200, 0.25], [100, 255, 3, 2]])),
    }


CASES = {
    "hyperdeterminant": lambda x: hyperdeterminant(x([[[1, 2], [3, 100]], [[5, 60], [7, 8]]])),
    "softmax": lambda x: softmax(x(ROWS)),
    "softargmax": lambda x: softargmax(x(ROWS)),
    "logsumexp": lambda x: logsumexp(x(ROWS)),
    "masked_softmax": lambda x: [
        masked_softmax(x(ROWS), MASK),
        masked_softmax(x(ROWS)),
        masked_softmax(x([0, 255, 250]), MASK[0]),
    ],
    "masked_softmax lengths": lambda x: masked_softmax(torch.zeros(2, 3), lengths=x([3, 1])),
    "masked_softmax_definition": lambda x: masked_softmax_definition(x(ROWS), MASK),
    "masked_mean": lambda x: [masked_mean(x(ROWS), MASK), masked_mean(x(ROWS), MASK, dim=-1)],
    "attention_mask": lambda x: attention_mask((2, 3), lengths=x([1, 3])),
    "sequence_mask": lambda x: sequence_mask(x([1, 3, 200]), 255),
    "zero_masked": lambda x: zero_masked(x([[0, 255], [3, 100], [7, 1]]), MASK),
    **_window(GaussianKernel),
    **_window(BoxcarKernel),
    **_window(TriangularKernel),
    **_window(EpanechnikovKernel),
    "scaled_offsets": lambda x: [
        scaled_offsets(x(POINTS), x(OTHERS), 2.0),
        scaled_offsets(x(POINTS), x(OTHERS), x([2, 3])),
    ],
    "squared_distances": lambda x: [
        squared_distances(x(POINTS), x(OTHERS)),
        squared_distances(x(POINTS), x(OTHERS), x([2, 3])),
    ],
    "squared_distances_definition": lambda x: squared_distances_definition(x(POINTS), x(OTHERS)),
    "as_bandwidth": lambda x: [
        as_bandwidth(0.5, x(POINTS)),
        as_bandwidth(x([2, 3]), x(POINTS)),
        as_bandwidth(x([2, 3]), torch.ones(2, 2)),
    ],
    "kernel_matrix": lambda x: kernel_matrix(lambda a, b: (a * b).sum(-1), x(POINTS), x(OTHERS)),
    "rbf_kernel": lambda x: rbf_kernel(x(VECTORS[0]), x([20, 200, 2]), 0.001),
    "angle": lambda x: angle(x(VECTORS[0]), x(VECTORS[1])),
    "cosine_similarity": lambda x: cosine_similarity(x(VECTORS[0]), x(VECTORS[1])),
    "cosine_similarity_definition": lambda x: cosine_similarity_definition(x(VECTORS[0]), x(VECTORS[1])),
    "project": lambda x: [project(x(VECTORS[0]), x(VECTORS[1])), project(x(VECTORS[0]), x(MATRIX)[:, :2])],
    "hyperplane_distance": lambda x: [
        hyperplane_distance(x(ROWS), x(VECTORS[1])),
        hyperplane_distance(x(ROWS), x([1, 2, 3]), x(200)),
    ],
    "hyperplane_side": lambda x: hyperplane_side(x([[0, 100, 1], [100, 0, 1]]), x([1, 2, 3]), -200.0),
    "norm": lambda x: [norm(x(ROWS)), norm(x(ROWS), 1), norm(x(ROWS), 3), norm(x(ROWS), math.inf)],
    # Smaller numbers: by its docstring the definition overflows where squares do, in every dtype.
    "norm_definition": lambda x: [
        norm_definition(x([100, 90, 3])),
        norm_definition(x(ROWS), 1),
        norm_definition(x(ROWS), math.inf),
    ],
    "manhattan_distance": lambda x: manhattan_distance(x(VECTORS[0]), x(VECTORS[1])),
    "frobenius_norm": lambda x: frobenius_norm(x(ROWS)),
    "det": lambda x: det(x(MATRIX)),
    "det_definition": lambda x: det_definition(x([[10, 3, 0], [2, 9, 7], [0, 3, 8]])),
    "det_definition 2x2": lambda x: det_definition(x([[0, 3], [100, 9]])),
    "inverse": lambda x: inverse(x(MATRIX)),
    "matrix_rank": lambda x: matrix_rank(x(MATRIX)),
    "eigendecomposition": lambda x: eigendecomposition(x(SYMMETRIC)).values.real.sort().values,
    "symmetric_eigendecomposition": lambda x: symmetric_eigendecomposition(x(SYMMETRIC)).values,
    "gershgorin_discs": lambda x: gershgorin_discs(x(MATRIX)),
    "power_iteration": lambda x: power_iteration(x([[100, 3], [3, 10]]), generator=seeded()).value,
    "growth_rates": lambda x: growth_rates(x(MATRIX), x([100, 2, 3]), 4),
    "dot": lambda x: dot(x(VECTORS[0]), x(VECTORS[1])),
    "hadamard": lambda x: hadamard(x(VECTORS[0]), x([3, 2, 100])),
    "tensor_product": lambda x: tensor_product(x(VECTORS[0]), x(VECTORS[1])),
    "tensor_product_definition": lambda x: tensor_product_definition(x(VECTORS[0]), x(VECTORS[1])),
    "pure_tensor": lambda x: pure_tensor(x(VECTORS[0]), x(VECTORS[1])),
    "bmm": lambda x: bmm(x([POINTS]), x([POINTS])),
    "bmm_definition": lambda x: bmm_definition(x([POINTS]), x([POINTS])),
    "einsum": lambda x: [einsum("ij,j->i", x(MATRIX), x(VECTORS[0])), einsum("ij->i", x(ROWS))],
    "einsum_definition": lambda x: [
        einsum_definition("ij,j->i", x(MATRIX), x(VECTORS[0])),
        einsum_definition("ij->i", x(ROWS)),
    ],
    "cp_tensor": lambda x: cp_tensor(*map(x, FACTORS[:2])),
    "cp_tensor_definition": lambda x: cp_tensor_definition(*map(x, FACTORS[:2])),
    "CP.tensor": lambda x: cp_decompose(x(POINTS), 2, num_init=1, max_iter=5, generator=seeded()).tensor(),
    "cp_decompose": lambda x: cp_decompose(x(POINTS), 2, num_init=1, max_iter=5, generator=seeded()).rank,
    "cp_rank": lambda x: ranks(cp_rank(x([[0, 100], [90, 3]]), generator=seeded())),
    "is_pure": lambda x: [is_pure(x([[1, 2], [100, 200]])), is_pure(x([[1, 90], [100, 3]]))],
    "unfolding_ranks": lambda x: unfolding_ranks(x([[1, 90], [100, 3]])),
    "unfolding": lambda x: unfolding(x([ROWS]), 1),
    "entry": lambda x: entry(x(ROWS), 0, 1),
    "order": lambda x: order(x(ROWS)),
    "as_floating": lambda x: as_floating(x(ROWS)),
    "check_finite": lambda x: check_finite(x(ROWS)),
    "check_floating": lambda x: check_floating(x(ROWS)),
    "check_gamma": lambda x: check_gamma(x(3)),
    "check_same_dtype": lambda x: check_same_dtype(x(ROWS), x(ROWS)),
    "check_image_batch": lambda x: check_image_batch(x(IMAGES), (1, 2, 2)),
    "check_labels": lambda x: check_labels(x([0, 2]), 3),
    "check_token_ids": lambda x: check_token_ids(x([0, 2]), 3, ndim=1),
    "check_mask": lambda x: check_mask(x([[1, 0, 1]]) != 0, (2, 3)),
    "one_hot": lambda x: one_hot(x([0, 2, 1]), 3),
    "channels_first": lambda x: channels_first(x(IMAGES)),
    "channels_last": lambda x: channels_last(x(IMAGES)),
    "flatten_images": lambda x: flatten_images(x(IMAGES)),
    "unflatten_images": lambda x: unflatten_images(x([[0, 255, 3, 200]]), (1, 2, 2)),
    "fit_complexity": lambda x: (fit_complexity(x([1, 2, 10, 100]), x([2, 9, 190, 255])).exponent,),
    "growth_constant": lambda x: growth_constant(x([1, 10, 100]).tolist(), x([23, 50, 200]).tolist(), lambda n: n),
    "PowerLaw": lambda x: PowerLaw(2.0, (2.0,), (0.0,))(x(100)),
    "array_access": lambda x: array_access(x([0, 255, 3]), 1),
    "binary_search": lambda x: binary_search(x([0, 3, 100]), x(100)),
    "linked_list_access": lambda x: linked_list_access(LinkedList.from_values([x(0), x(255)]), 1),
    "merge_sort": lambda x: merge_sort(x([200, 0, 255, 3])),
    "bubble_sort": lambda x: bubble_sort(x([200, 0, 255, 3])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
SIZES = "takes sizes and indices, which are Python's whole numbers"

# Cases of labels and lengths, for which the int64 answer is the right one.
WHOLE = {"masked_softmax lengths", "attention_mask", "sequence_mask", "check_labels", "check_token_ids", "one_hot"}

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "Counted": RESULT,
    "Discs": RESULT,
    "Dominant": RESULT,
    "Eigen": RESULT,
    "NormTest": RESULT,
    "PairwiseCost": RESULT,
    "RankBounds": RESULT,
    "ScaledValues": RESULT,
    "LinkedList": "holds any value; linked_list_access reads it",
    "SmoothingKernel": "abstract: each window has its cases",
    "is_norm": "takes a function and makes its own float64 vectors",
    "causal_mask": SIZES,
    "index_set": SIZES,
    "zero_based": SIZES,
    "einsum_multiplications": SIZES,
    "pairwise_multiplications": SIZES,
    "check_shapes": "looks at shapes, whatever the entries",
}
