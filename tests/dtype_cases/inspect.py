"""Cases for `quoin.inspect`: see tests/dtypes.py. A model without weights takes integers as they come."""

import torch
from torch import nn

from dtypes import in_dtype, whole
from quoin import inspect as q
from quoin.layers import MultiHeadAttention, RecurrentWeights, gru_cell_definition

IMAGES = whole(2, 1, 4, 4)
ROWS = whole(3, 4, most=9)
MAPS = [[[1, 0, 0], [0.5, 0, 0.5], [0.25, 0.25, 0.5]]]
COUNTS = [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[200, 0, 100], [3, 1, 0], [0, 90, 1]]]


def dense(x):
    return in_dtype(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), x)


def bent():
    """A model that any number goes through as it is."""
    return nn.Sequential(nn.Identity(), nn.ReLU())


def conv(x):
    return in_dtype(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)), x)


def heads(x):
    return in_dtype(lambda: MultiHeadAttention(4, 2, generator=torch.Generator().manual_seed(0)), x)


def learning(x):
    return dense(x).requires_grad_(True)


def patches(images):
    return q.top_activating_patches(nn.Sequential(nn.MaxPool2d(2, padding=1)), images, "0", count=2)


def numbers(found):
    """Of patches: channel, image and answer."""
    return [[patch[:3] for patch in row] for row in found]


def outputs(found):
    return [each.output for each in found]


def cut(x):
    whole_field = q.ReceptiveField(0, 2, 0, 2)
    at_border = q.ReceptiveField(0, 1, 0, 2)
    return q.crop_patches(x(IMAGES), [q.Patch(0, 0, 1.0, whole_field), q.Patch(0, 1, 1.0, at_border)], fill=0.25)


def through_time(x):
    weights = RecurrentWeights(x(whole(6, 3, most=2)), x(whole(6, 2, most=2)), x(whole(6, most=3)), x(whole(6, most=3)))
    return q.gradients_through_time(gru_cell_definition, x(whole(3, 3, most=2)), [x([1, 0])], weights)


CASES = {
    "activation_sparsity": lambda x: q.activation_sparsity(dense(x), x(ROWS)),
    "activation_sparsity whole": lambda x: q.activation_sparsity(bent(), x([[0, 3, 200]])),
    "dead_units": lambda x: q.dead_units(dense(x), x(ROWS)),
    "dead_units whole": lambda x: q.dead_units(bent(), x([[0, 3, 200], [0, 0, 1]])),
    "attention_maps": lambda x: [each.weights for each in q.attention_maps(heads(x), x(whole(1, 3, 4, most=3)))],
    "attention_entropy": lambda x: q.attention_entropy(x(MAPS)),
    "attention_entropy counts": lambda x: q.attention_entropy(x(COUNTS)),
    "attention_distance": lambda x: q.attention_distance(x(MAPS)),
    "attention_distance counts": lambda x: q.attention_distance(x(COUNTS)),
    "confidence_along_ray": lambda x: q.confidence_along_ray(dense(x), x([1, 0, 2, 1]), x([1, 2])),
    "confidence_along_ray whole": lambda x: q.confidence_along_ray(bent(), x([100, 103]), x([1, 3])),
    "confidence_along_ray scales": lambda x: q.confidence_along_ray(bent(), x([1, 3]), torch.tensor([0.25, 0.5])),
    "feature_maps": lambda x: [each.maps for each in q.feature_maps(conv(x), x(IMAGES[0]))],
    "intermediates": lambda x: outputs(q.intermediates(dense(x), x(ROWS))),
    "intermediates whole": lambda x: outputs(q.intermediates(bent(), x([[0, 3, 200]]))),
    "jacobian_rank": lambda x: q.jacobian_rank(dense(x), x(ROWS[0])),
    "top_activating_patches": lambda x: numbers(q.top_activating_patches(conv(x), x(IMAGES), "0", count=2)),
    "top_activating_patches whole": lambda x: numbers(patches(x(IMAGES))),
    "crop_patches": cut,
    "input_gradient": lambda x: q.input_gradient(dense(x), x(ROWS)),
    "input_x_gradient": lambda x: q.input_x_gradient(dense(x), x(ROWS)),
    "smoothgrad": lambda x: q.smoothgrad(dense(x), x(ROWS), noise=0.0, num_samples=2, generator=torch.Generator()),
    "saliency": lambda x: q.saliency(x([[[[-128, 3], [200, 0]], [[100, 7], [0, 0]]]])),
    "gradient_norms": lambda x: q.gradient_norms(learning(x), x(ROWS), lambda output: output.sum()),
    "stability_report": lambda x: [
        row[2:] for row in q.stability_report(learning(x), x(ROWS), lambda output: output.sum()).rows
    ],
    "layer_summary": lambda x: [(row.zeros, row.dead) for row in q.layer_summary(dense(x), x(ROWS))],
    "layer_summary whole": lambda x: [
        (row.zeros, row.dead) for row in q.layer_summary(bent(), x([[0, 3, 200], [0, 0, 1]]))
    ],
    "gradients_through_time": through_time,
    "contraction_bound": lambda x: q.contraction_bound(x([[3, 0], [0, 4]]), 3, 0.5),
    "num_connected_components": lambda x: q.num_connected_components(x([[0, 0], [3, 4], [200, 100], [201, 100]]), 5.0),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = dict.fromkeys(
    ["AttentionMaps", "DeadUnits", "FeatureMaps", "GradientThroughTime", "Intermediate", "Kernels"], RESULT
)
NO_NUMBERS |= dict.fromkeys(["LayerSummary", "Patch", "ReceptiveField", "ReceptiveFields", "Sparsity"], RESULT)
NO_NUMBERS |= dict.fromkeys(["StabilityReport", "StabilityRow"], RESULT)
NO_NUMBERS |= dict.fromkeys(
    ["kernels", "pixel_weights", "attentions_without_weights", "has_attention", "capture_attention"],
    "takes a model and no numbers beside it",
)
NO_NUMBERS |= dict.fromkeys(
    ["plot_attention_maps", "plot_feature_maps", "plot_gradients_through_time", "plot_kernels", "plot_patches"],
    "draws results of this package; what the pictures hold is tried in quoin.plot",
)
NO_NUMBERS |= {"receptive_fields": "takes a model and sizes"}

# Classes: whole numbers, held against int64.
MARKED = {
    "input_gradient classes": lambda x: q.input_gradient(dense(torch.tensor), torch.ones(3, 4), x([0, 1, 1])),
    "input_x_gradient classes": lambda x: q.input_x_gradient(dense(torch.tensor), torch.ones(3, 4), x([0, 1, 1])),
}
CASES |= MARKED
WHOLE = set(MARKED)
