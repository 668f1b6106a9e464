"""Linear classifiers: a score for each class, fitted by likelihood (softmax regression) or as if it were regression."""

from jaxtyping import Float, Integer, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.closed_form import LinearFit, least_squares
from quoin.models.linear import zero_init_linear
from quoin.tensor import check_labels, check_shapes, one_hot

__all__ = ["SoftmaxRegression", "one_hot_regression", "softmax_regression_definition"]


def softmax_regression_definition(
    x: Real[Tensor, "*batch features"], weight: Float[Tensor, "classes features"], bias: Float[Tensor, "classes"]
) -> Float[Tensor, "*batch classes"]:
    """The logits o_i = sum_j w_ij x_j + b_i, one for each class.

    Notes: Z4.1.
    """
    check_shapes("... d, q d, q", x=x, weight=weight, bias=bias)
    return (x.unsqueeze(-2) * weight).sum(dim=-1) + bias


class SoftmaxRegression(nn.Module):
    """`softmax_regression_definition` on whole batches, starting from W = 0 and b = 0, with equally probable classes.

    Each example is flattened first: 2 x 2 images of a cat, a chicken or a dog go into `SoftmaxRegression(4, 3)` as they
    are. The outputs are logits, which `quoin.losses.cross_entropy` takes; `quoin.prob.MulticlassModel` makes a
    distribution of them.

    Notes: Z4.1.
    """

    def __init__(self, num_features: int, num_classes: int):
        super().__init__()
        if num_features < 1 or num_classes < 2:
            raise UserError(
                f"expected at least one feature and two classes, got {num_features} and {num_classes}; give e.g. 4 "
                "and 3"
            )
        self.linear = zero_init_linear(num_features, num_classes)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch classes"]:
        if x.ndim < 2 or x.shape[1:].numel() != self.linear.in_features:
            raise UserError(
                f"expected a batch of examples of {self.linear.in_features} numbers each, got shape {tuple(x.shape)}; "
                "put the batch on the first axis or change num_features"
            )
        return self.linear(x.flatten(1))


def one_hot_regression(
    X: Float[Tensor, "examples features"], labels: Integer[Tensor, "examples"], num_classes: int
) -> LinearFit:
    """Classification as regression: least squares on the one-hot labels; `predict(x).argmax(-1)` decides.

    Its outputs sum to one, because the targets do and the bias alone fits that sum; they are no probabilities, for they
    leave [0, 1] far out. A class that lies between two others may never come out largest: it is masked.
    """
    check_shapes("n d, n", X=X, labels=labels)
    check_labels(labels, num_classes)
    if not X.is_floating_point():
        raise UserError(f"expected features as floats, got {X.dtype}; convert them, e.g. with .double()")
    return least_squares(X, one_hot(labels, num_classes, dtype=X.dtype))
