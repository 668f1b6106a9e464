"""Shape checks, softmax, log-sum-exp and one-hot: values from torch and mathematics, errors by their words."""

import math

import pytest
import torch

from quoin.errors import Mistake
from quoin.tensor import check_labels, check_shapes, log_sum_exp, one_hot, softmax


@pytest.mark.parametrize(
    ("legend", "shapes"),
    [
        ("... n d, ... m d", [(5, 3), (7, 3)]),
        ("... n d, ... m d", [(2, 4, 5, 3), (2, 4, 7, 3)]),
        ("n, n", [(0,), (0,)]),
        ("... d, d, ()", [(9, 2, 4), (4,), ()]),
        ("n 3, n 1", [(6, 3), (6, 1)]),
        ("..., ...", [(2, 3), (2, 3)]),
    ],
)
def test_right_shapes_pass(legend, shapes):
    check_shapes(legend, **{f"argument{i}": torch.zeros(shape) for i, shape in enumerate(shapes)})


@pytest.mark.parametrize(
    ("legend", "left", "right", "words"),
    [
        ("n d, m d", (5, 3), (7, 4), ["axis d of right", "3 as in left", "came 4", "(7, 4)"]),
        ("n, n", (5,), (5, 1), ["right with 1 axis (n)", "(5, 1)"]),
        ("... n d, ... m d", (5, 3), (3,), ["right with at least 2 axes (m d)", "(3,)"]),
        ("... d, ... d", (2, 3), (4, 3), ["leading axes (2,) of right", "came (4,)"]),
        ("..., ...", (4,), (4, 1), ["leading axes (4,) of right", "came (4, 1)"]),
        ("n, ()", (4,), (1,), ["right with 0 axes", "(1,)"]),
        ("n 3, n", (4, 2), (4,), ["left to have size 3", "(4, 2)"]),
        ("n n, n", (4, 5), (4,), ["axis n of left", "came 5"]),
    ],
)
def test_wrong_shapes_name_argument_axis_and_sizes(legend, left, right, words):
    with pytest.raises(Mistake) as caught:
        check_shapes(legend, left=torch.zeros(left), right=torch.zeros(right))
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_none_is_passed_over():
    check_shapes("n, m n, m", x=torch.zeros(3), weight=torch.zeros(2, 3), bias=None)
    with pytest.raises(Mistake, match="axis n of weight"):
        check_shapes("n, m, m n", x=torch.zeros(3), bias=None, weight=torch.zeros(2, 4))


def test_a_legend_of_another_length_is_our_fault():
    with pytest.raises(AssertionError, match="2 terms for 1"):
        check_shapes("n, n", x=torch.zeros(3))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_of_a_known_table(axis):
    # softmax(log k) = k / sum k, exactly what the definition says of integers.
    counts = torch.arange(1, 25, dtype=torch.float64).reshape(2, 3, 4)
    torch.testing.assert_close(softmax(counts.log(), axis), counts / counts.sum(axis, keepdim=True), rtol=1e-14, atol=0)
    torch.testing.assert_close(log_sum_exp(counts.log(), axis), counts.sum(axis).log(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes(dtype):
    far = torch.tensor([[1000.0, -1000.0], [-1000.0, -1000.0], [3e38, 0.0]], dtype=dtype)
    assert torch.equal(softmax(far), torch.tensor([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]], dtype=dtype))
    expected = torch.tensor([1000.0, -1000 + math.log(2), 3e38], dtype=dtype)
    torch.testing.assert_close(log_sum_exp(far), expected)


def test_log_sum_exp_at_infinity_agrees_with_torch():
    inf = math.inf
    x = torch.tensor([[-inf, -inf], [-inf, 0.0], [inf, 0.0], [inf, inf]])
    assert torch.equal(log_sum_exp(x), torch.tensor([-inf, 0.0, inf, inf]))
    assert torch.equal(log_sum_exp(x), torch.logsumexp(x, -1))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_one_hot_is_the_identity_matrix_looked_up(dtype):
    labels = torch.tensor([[0, 3], [2, 2], [1, 0]], dtype=dtype)
    assert torch.equal(one_hot(labels, 4), torch.eye(4)[labels.long()])
    assert one_hot(labels, 4, dtype=torch.float64).dtype == torch.float64
    assert one_hot(torch.empty(0, dtype=dtype), 4).shape == (0, 4)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 5], "from 0 to 4 for 5 classes, came 5"),
        ([-1, 0], "came -1"),
        ([0.0, 1.0], "integer labels, came torch.float32"),
        ([True], "integer labels, came torch.bool"),
    ],
)
def test_bad_labels(labels, words):
    for call in (check_labels, one_hot):
        with pytest.raises(Mistake, match=words):
            call(torch.tensor(labels), 5)
