"""Cases for `quoin.layers`: see tests/dtypes.py. Blocks and positions are in layers_blocks.py, attention in
layers_attention.py."""

import torch

from dtype_cases import layers_attention, layers_blocks
from dtypes import whole
from quoin import layers as q

REAL = [-3, 0, 2, 100]  # -3 is 253 in uint8, and no derivative is large
IMAGES, KERNELS, BIAS = whole(2, 2, 4, 4), whole(3, 2, 2, 2, most=9), [200, 1, 2]
ROWS, WEIGHT = whole(4, 3), whole(2, 3, most=9)
SCALE, SHIFT = [1, 2, 3], [100, 0, 7]
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
LINKED = [[0, 1, 0], [1, 0, 200], [0, 200, 0]]
FUNCTIONS = [
    "relu",
    "sigmoid",
    "tanh",
    "gelu",
    "elu",
    "relu_derivative",
    "sigmoid_derivative",
    "tanh_derivative",
    "gelu_derivative",
]
FUNCTIONS += ["elu_derivative", "silu", "elu_plus_one", "elu_plus_one_definition", "upsample_nearest_definition"]


def entrywise(name):
    return lambda x: getattr(q, name)(x([REAL, REAL]))


def image(f, **options):
    return lambda x: f(x(IMAGES), x(KERNELS), x(BIAS), **options)


def sequence(f, **options):
    return lambda x: f(x(whole(2, 2, 5)), x(whole(3, 2, 2, most=9)), x(BIAS), **options)


def links(x):
    return q.normalized_edges(EDGES, 3, x([1, 1, 200, 200]))


CASES = layers_blocks.CASES | layers_attention.CASES | {name: entrywise(name) for name in FUNCTIONS}
CASES |= {
    "affine_definition": lambda x: q.affine_definition(x(ROWS), x(WEIGHT), x([200, 3])),
    "dense_definition": lambda x: q.dense_definition(x(ROWS), x(WEIGHT), x([200, 3])),
    "dense_definition gelu": lambda x: q.dense_definition(x(ROWS), x(WEIGHT), x([200, 3]), q.gelu),
    "collapse": lambda x: q.collapse([x(whole(2, 3)), x(whole(1, 2, most=9))], [x([200, 3]), x([9])]),
    "feed_forward_definition": lambda x: q.feed_forward_definition(
        x(whole(2, 2, most=20)), x(whole(3, 2, most=9)), x(SHIFT), x(whole(2, 3, most=9)), x([1, 2])
    ),
    "gated_feed_forward_definition": lambda x: q.gated_feed_forward_definition(
        x(whole(2, 2, most=5)), x(whole(3, 2, most=5)), x(whole(3, 2, most=5)), x(whole(2, 3, most=5))
    ),
    "dropout_definition": lambda x: q.dropout_definition(x(REAL), torch.tensor([True, False, True, True]), 0.75),
    "linear_cross_entropy_definition": lambda x: q.linear_cross_entropy_definition(
        x(whole(4, 3, most=9)), x(WEIGHT), torch.tensor([0, 1, 1, 0]), bias=x([200, 3])
    ),
    "linear_cross_entropy": lambda x: q.linear_cross_entropy(
        x(whole(4, 3, most=9)), x(WEIGHT), torch.tensor([0, 1, 1, 0]), bias=x([200, 3]), reduction="none", chunk_size=3
    ),
    # convolution
    "cross_correlate1d": sequence(q.cross_correlate1d, padding=1),
    "cross_correlate1d_definition": sequence(q.cross_correlate1d_definition, padding=1),
    "cross_correlate2d": image(q.cross_correlate2d, stride=2),
    "cross_correlate2d_definition": image(q.cross_correlate2d_definition, stride=2),
    "convolutional_layer_definition": image(q.convolutional_layer_definition),
    "slide_kernel": lambda x: q.slide_kernel(x(whole(2, 5)), x([9, 7])),
    "convolve1d": lambda x: q.convolve1d(x([100, 7, 30]), x([9, 200])),
    "convolve1d_definition": lambda x: q.convolve1d_definition(x([100, 7, 30]), x([9, 200])),
    "convolve2d": lambda x: q.convolve2d(x(whole(3, 3)), x(whole(2, 2, most=9))),
    "convolve2d_definition": lambda x: q.convolve2d_definition(x(whole(3, 3)), x(whole(2, 2, most=9))),
    "convolution_integral": lambda x: q.convolution_integral(
        lambda t: (t.abs().sum(dim=-1) < 1).double(), lambda t: t.sum(dim=-1).cos(), x([[0], [1], [2]]), [(-1.0, 1.0)]
    ),
    "convolution_matrix": lambda x: q.convolution_matrix(x(KERNELS), (2, 3, 3)),
    "convolution_as_dense": lambda x: q.convolution_as_dense(x([100, 200, 3]), 5),
    "masked_conv2d_definition": lambda x: q.masked_conv2d_definition(
        x(whole(1, 2, 3, 3)), x(whole(2, 2, 3, 3, most=9)), q.mask_a(3), x([200, 3])
    ),
    "upsample_conv2d": lambda x: q.upsample_conv2d(x(whole(1, 2, 2, 2)), x(whole(2, 2, 3, 3, most=9)), x([200, 3])),
    "upsample_conv2d_definition": lambda x: q.upsample_conv2d_definition(
        x(whole(1, 2, 2, 2)), x(whole(2, 2, 3, 3, most=9)), x([200, 3])
    ),
    "image_dense_definition": lambda x: q.image_dense_definition(
        x(whole(2, 3, 3)), x(whole(2, 2, 3, 3, most=9)), x(whole(2, 2))
    ),
    "weights_by_offset": lambda x: q.weights_by_offset(x(whole(2, 2, 2, 2))),
    "offset_dense_definition": lambda x: q.offset_dense_definition(
        x(whole(2, 2, 2)), x(whole(2, 2, 3, 3, most=9)), x(whole(2, 2))
    ),
    "shared_dense_definition": lambda x: q.shared_dense_definition(x(whole(2, 3, 3)), x(whole(3, 3, most=9)), x(200)),
    "cut_offsets": lambda x: q.cut_offsets(x(whole(5, 5)), 1),
    # pooling and moments
    "pool2d_definition": lambda x: q.pool2d_definition(x(IMAGES), 2, lambda window: window.amax(dim=-1), padding=1),
    "pool2d_definition sum": lambda x: q.pool2d_definition(x(IMAGES), 2, lambda window: window.mean(dim=-1)),
    "max_pool2d_definition": lambda x: q.max_pool2d_definition(x(IMAGES), 2, padding=1),
    "avg_pool2d_definition": lambda x: q.avg_pool2d_definition(x(IMAGES), 2),
    "moments": lambda x: q.moments(x(ROWS), [0]),
    "batch_norm_definition": lambda x: q.batch_norm_definition(x(ROWS), x(SCALE), x(SHIFT)),
    "position_batch_norm_definition": lambda x: q.position_batch_norm_definition(x(ROWS), x(SCALE), x(SHIFT)),
    "batch_norm_eval_definition": lambda x: q.batch_norm_eval_definition(
        x(ROWS), q.Moments(x([100, 3, 20]), x([4, 9, 100])), x(SCALE), x(SHIFT)
    ),
    "update_running_stats": lambda x: q.update_running_stats(
        q.Moments(x([100, 3]), x([200, 1])), q.Moments(x([1, 200]), x([100, 3])), 4, momentum=0.5
    ),
    "dense_batch_norm_definition": lambda x: q.dense_batch_norm_definition(
        x(ROWS), x(WEIGHT), x([200, 3]), x([1, 2]), x([100, 7]), torch.tanh
    ),
    "layer_norm_definition": lambda x: q.layer_norm_definition(x(ROWS), x(SCALE), x(SHIFT)),
    "group_norm_definition": lambda x: q.group_norm_definition(
        x(whole(2, 4)), x([1, 2, 3, 4]), x([0, 7, 100, 3]), num_groups=2
    ),
    "rms_norm_definition": lambda x: q.rms_norm_definition(x(ROWS), x(SCALE)),
    # graphs and structured layers
    "adjacency_matrix": lambda x: q.adjacency_matrix(EDGES, 3, x([1, 1, 200, 200])),
    "normalized_adjacency": lambda x: q.normalized_adjacency(x(LINKED)),
    "graph_convolution_definition": lambda x: q.graph_convolution_definition(
        x(whole(3, 2)), x(LINKED), x(whole(2, 3, most=9)), x([1, 2, 3])
    ),
    "normalized_edges": lambda x: links(x)[1],
    "propagate": lambda x: q.propagate(x(whole(3, 2)), links(x)),
    "propagate whole": lambda x: q.propagate(x(whole(3, 2)), q.normalized_edges(EDGES, 3)),
    "propagate plain": lambda x: q.propagate(x(whole(3, 2)), q.EdgeList(EDGES, x([1, 2, 3, 4]), 3)),
    "graph_as_dense": lambda x: q.graph_as_dense(x(LINKED), x(whole(2, 3, most=9))),
    "recurrence_as_dense": lambda x: q.recurrence_as_dense(x(whole(2, 3)), x([[9, 2], [3, 5]]), 3),
}

ROUNDINGS = layers_blocks.ROUNDINGS | layers_attention.ROUNDINGS

SIZES = "takes sizes and Python floats alone"
MASKS = "takes sizes alone and gives a mask"
RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = layers_blocks.NO_NUMBERS | layers_attention.NO_NUMBERS
NO_NUMBERS |= dict.fromkeys(["small_normal", "torch_default", "xavier_normal", "kaiming_normal", "dropout_mask"], SIZES)
NO_NUMBERS |= dict.fromkeys(["conv_output_size", "split_padding", "receptive_field", "WindowSpec"], SIZES)
NO_NUMBERS |= {"keeps_global_rng": "wraps a function that makes a module"}
NO_NUMBERS |= dict.fromkeys(["mask_a", "mask_b", "mask_rows_above", "mask_rows_through"], MASKS)
NO_NUMBERS |= dict.fromkeys(["Affine", "Moments", "NormOutput", "EdgeList"], RESULT)
NO_NUMBERS |= {"init_weights": "takes a model and a rule", "build_position_tables": "takes a model and sizes"}

# Edges, rows, lengths and distances: whole numbers, held against int64.
MARKED = {
    "adjacency_matrix edges": lambda x: q.adjacency_matrix(x([[0, 1], [1, 2]]), 3),
    "normalized_edges edges": lambda x: q.normalized_edges(x([[0, 1], [1, 2]]), 3)[1],
    "propagate edges": lambda x: q.propagate(torch.eye(3), q.EdgeList(x([[0, 1], [1, 2]]), torch.ones(2), 3)),
    "apply_rotary places": lambda x: q.apply_rotary(torch.ones(3, 4), x([0, 1, 100])),
    "apply_rotary_definition places": lambda x: q.apply_rotary_definition(torch.ones(3, 4), x([0, 1, 100])),
    "apply_half_split_rotary places": lambda x: q.apply_half_split_rotary(torch.ones(3, 4), x([0, 1, 100])),
    "position_angles places": lambda x: q.position_angles(x([0, 1, 200]), 4),
    "CausalBuckets": lambda x: q.CausalBuckets(8, 16)(x([0, -1, -9, -100, 3])),
    "BidirectionalBuckets": lambda x: q.BidirectionalBuckets(8, 16)(x([0, -1, -9, -100, 3])),
    "ClippedBuckets": lambda x: q.ClippedBuckets(3)(x([0, -1, -9, -100, 3])),
    "MultiHeadAttention lengths": layers_attention.of_lengths,
    "KeyValueCache.select rows": layers_attention.chosen_rows,
}
CASES |= MARKED
WHOLE = set(MARKED)
