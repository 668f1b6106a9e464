"""Shapes, indices and masks: einsum, norms, softmax, one-hot, shape checks with good errors, operation counts."""

from quoin.tensor.labels import check_labels, one_hot
from quoin.tensor.shapes import check_shapes
from quoin.tensor.softmax import log_sum_exp, softmax

__all__ = ["check_labels", "check_shapes", "log_sum_exp", "one_hot", "softmax"]
