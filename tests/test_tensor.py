"""Shape checks, softmax, log-sum-exp and one-hot: values from torch and mathematics, errors by their words."""

import math

import pytest
import torch

from quoin.errors import UserError
from quoin.tensor import check_labels, check_shapes, check_token_ids, logsumexp, one_hot, softmax


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
        ("n d, m d", (5, 3), (7, 4), ["axis d of right", "3 as in left", "got 4", "(7, 4)"]),
        ("n, n", (5,), (5, 1), ["right with 1 axis (n)", "(5, 1)"]),
        ("... n d, ... m d", (5, 3), (3,), ["right with at least 2 axes (m d)", "(3,)"]),
        ("... d, ... d", (2, 3), (4, 3), ["leading axes (2,) of right", "got (4,)"]),
        ("..., ...", (4,), (4, 1), ["leading axes (4,) of right", "got (4, 1)"]),
        ("n, ()", (4,), (1,), ["right with 0 axes", "(1,)"]),
        ("n 3, n", (4, 2), (4,), ["left to have size 3", "(4, 2)"]),
        ("n n, n", (4, 5), (4,), ["axis n of left", "got 5"]),
    ],
)
def test_wrong_shapes_name_argument_axis_and_sizes(legend, left, right, words):
    with pytest.raises(UserError) as caught:
        check_shapes(legend, left=torch.zeros(left), right=torch.zeros(right))
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_none_is_passed_over():
    check_shapes("n, m n, m", x=torch.zeros(3), weight=torch.zeros(2, 3), bias=None)
    with pytest.raises(UserError, match="axis n of weight"):
        check_shapes("n, m, m n", x=torch.zeros(3), bias=None, weight=torch.zeros(2, 4))


def test_a_legend_of_another_length_is_our_fault():
    with pytest.raises(AssertionError, match="2 terms for 1"):
        check_shapes("n, n", x=torch.zeros(3))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_of_a_known_table(axis):
    # softmax(log k) = k / sum k, exactly what the definition says of integers.
    counts = torch.arange(1, 25, dtype=torch.float64).reshape(2, 3, 4)
    torch.testing.assert_close(softmax(counts.log(), axis), counts / counts.sum(axis, keepdim=True), rtol=1e-14, atol=0)
    torch.testing.assert_close(logsumexp(counts.log(), axis), counts.sum(axis).log(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes(dtype):
    far = torch.tensor([[1000.0, -1000.0], [-1000.0, -1000.0], [3e38, 0.0]], dtype=dtype)
    assert torch.equal(softmax(far), torch.tensor([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]], dtype=dtype))
    expected = torch.tensor([1000.0, -1000 + math.log(2), 3e38], dtype=dtype)
    torch.testing.assert_close(logsumexp(far), expected)


def test_log_sum_exp_at_infinity_agrees_with_torch():
    inf = math.inf
    x = torch.tensor([[-inf, -inf], [-inf, 0.0], [inf, 0.0], [inf, inf]])
    assert torch.equal(logsumexp(x), torch.tensor([-inf, 0.0, inf, inf]))
    assert torch.equal(logsumexp(x), torch.logsumexp(x, -1))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_one_hot_is_the_identity_matrix_looked_up(dtype):
    labels = torch.tensor([[0, 3], [2, 2], [1, 0]], dtype=dtype)
    assert torch.equal(one_hot(labels, 4), torch.eye(4)[labels.long()])
    assert one_hot(labels, 4, dtype=torch.float64).dtype == torch.float64
    assert one_hot(torch.empty(0, dtype=dtype), 4).shape == (0, 4)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 5], "from 0 to 4 for 5 classes, got 5"),
        ([-1, 0], "got -1"),
        ([0.0, 1.0], "integer labels, got torch.float32"),
        ([True], "integer labels, got torch.bool"),
    ],
)
def test_bad_labels(labels, words):
    for call in (check_labels, one_hot):
        with pytest.raises(UserError, match=words):
            call(torch.tensor(labels), 5)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([0, 5, 7], "token ids from 0 to 4, got 5 at position 1; use the vocabulary"),
        ([-1, 0], "got -1 at position 0"),
        ([[0, 1], [2, 9]], "ndim 1, got int64 of shape"),
        ([0.0], "integers of ndim 1, got float32"),
        ([True], "integers of ndim 1, got bool"),
    ],
)
def test_bad_token_ids(tokens, words):
    with pytest.raises(UserError, match=words):
        check_token_ids(torch.tensor(tokens), 5, ndim=1)


def test_token_ids_of_sequences_and_of_short_integers():
    check_token_ids(torch.zeros(2, 3, dtype=torch.uint16), 1, ndim=2)
    check_token_ids(torch.zeros(0, dtype=torch.long), 1, ndim=1)
    with pytest.raises(UserError, match="got 9 at position 1 of sequence 1"):
        check_token_ids(torch.tensor([[0, 1], [2, 9]]), 5, ndim=2)
