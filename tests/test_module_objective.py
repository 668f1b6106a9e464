"""Losses of modules of one's own by name: which classes have an output, and what -100 leaves out."""

import pytest
import torch

from quoin.errors import UserError
from quoin.tasks.module_objective import accuracy, check_classes, cross_entropy, mse

LOGITS = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))  # four examples of five positions, 3 classes


@pytest.mark.parametrize("left_out", [0, 1, 19, 20])
def test_positions_that_are_marked_need_no_class(left_out):
    targets = torch.arange(20) % 3
    targets[:left_out] = -100
    check_classes(LOGITS, targets.reshape(4, 5))


@pytest.mark.parametrize("wrong", [-1, -99, -101, 3, 100])
def test_a_class_without_an_output_is_told_with_the_way_out(wrong):
    targets = torch.zeros(4, 5, dtype=torch.long)
    targets[0, 0], targets[1] = -100, wrong
    with pytest.raises(UserError, match=f"^expected classes from 0 to 2, .* got {wrong} among the targets: number"):
        check_classes(LOGITS, targets)


def test_losses_are_one_number_for_each_example():
    targets = torch.arange(20).reshape(4, 5) % 3
    log_probs = LOGITS.double().log_softmax(1)
    by_hand = [sum(-float(log_probs[row, targets[row, place], place]) for place in range(5)) / 5 for row in range(4)]
    torch.testing.assert_close(cross_entropy(LOGITS.double(), targets), torch.tensor(by_hand, dtype=torch.float64))
    right = [sum(int(LOGITS[row, :, place].argmax()) == int(targets[row, place]) for place in range(5)) / 5
             for row in range(4)]  # fmt: skip
    assert accuracy(LOGITS, targets).tolist() == pytest.approx(right)
    assert mse(torch.tensor([[1.0], [4.0]]), torch.tensor([0.0, 2.0])).tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match=r"outputs of shape \(2, 3\) for targets of shape \(2,\)"):
        mse(torch.zeros(2, 3), torch.zeros(2))
