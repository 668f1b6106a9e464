"""Looking inside a model: what is reported is what is there, and the model is left as it was."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from quoin.errors import UserError
from quoin.inspect import (
    activation_sparsity,
    confidence_along_ray,
    dead_units,
    gradient_norms,
    intermediates,
    jacobian_rank,
    num_connected_components,
    stability_report,
)
from quoin.models import MLP, TiedMLP
from seeds import seeded


def silent_third() -> nn.Sequential:
    """ReLU of (x, -x, -1): on positive data the first unit works and the others are dead."""
    linear = nn.Linear(1, 3)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]))
        linear.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
    return nn.Sequential(linear, nn.ReLU())


# ---- intermediates


def test_intermediates_come_in_calling_order_and_twice_for_a_module_used_twice():
    model = TiedMLP(4, 2, repeats=3)
    x = torch.randn(5, 6, generator=seeded(0))
    steps = intermediates(model, x)
    assert [step.layer for step in steps] == ["entry.0", "entry.1", "entry.2", *["body.0.0", "body.0.1"] * 3, "head"]
    assert torch.equal(steps[-1].output, model(x))
    for before, after in pairwise(steps):
        assert torch.equal(after.module(before.output), after.output)


def test_intermediates_leave_no_hook_behind_even_when_the_model_fails():
    model = MLP([3, 4, 2], generator=seeded(0))
    with pytest.raises(UserError):
        intermediates(model, torch.zeros(2, 5))
    intermediates(model, torch.zeros(2, 3))
    assert not any(module._forward_hooks for module in model.modules())


def test_intermediates_refuse_what_was_written_over():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))
    with pytest.raises(UserError, match="wrote over the output of '0'"):
        intermediates(model, torch.ones(1, 2))


# ---- activity


def test_sparsity_and_dead_units_by_hand():
    x = torch.tensor([[1.0], [2.0], [-1.0], [3.0]])
    (layer,) = activation_sparsity(silent_third(), x)
    assert layer == ("1", (1 + 3 + 4) / 12)
    (found,) = dead_units(silent_third(), x)
    assert found.dead.tolist() == [False, False, True]
    assert dead_units(silent_third(), x[:2])[0].dead.tolist() == [False, True, True]


@pytest.mark.parametrize("look", [activation_sparsity, dead_units])
def test_activity_refuses(look):
    with pytest.raises(UserError, match="at least one example"):
        look(silent_third(), torch.zeros(0, 1))
    with pytest.raises(UserError, match=r"torch\.nn\.ReLU modules"):
        look(nn.Sequential(nn.Linear(1, 1), nn.Tanh()), torch.zeros(2, 1))
    with pytest.raises(UserError, match="NaN"):
        look(silent_third(), torch.full((2, 1), math.nan))


# ---- confidence


def test_confidence_along_a_ray_by_hand():
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(2))
    scales = torch.tensor([0.0, 1.0, 2.0, 1000.0])
    confidence = confidence_along_ray(model, torch.tensor([1.0, 0.0]), scales)
    torch.testing.assert_close(confidence, torch.sigmoid(scales))  # softmax of (a, 0)


def test_confidence_takes_images_and_refuses_other_things():
    images = MLP([12, 5, 3], generator=seeded(0))
    assert confidence_along_ray(images, torch.ones(3, 2, 2), torch.arange(4.0)).shape == (4,)
    with pytest.raises(UserError, match="at least one scale"):
        confidence_along_ray(images, torch.ones(12), torch.zeros(0))
    with pytest.raises(UserError, match="q >= 2 classes"):
        confidence_along_ray(MLP([12, 1]), torch.ones(12), torch.ones(2))
    with pytest.raises(UserError, match="finite logits"):
        confidence_along_ray(images, torch.ones(12), torch.tensor([torch.inf]))


# ---- Jacobians


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_the_rank_of_a_linear_map_is_its_matrix_rank(rank):
    linear = nn.Linear(6, 5, dtype=torch.float64)
    left, right = (torch.randn(*shape, generator=seeded(rank), dtype=torch.float64) for shape in ((5, rank), (rank, 6)))
    with torch.no_grad():
        linear.weight.copy_(left @ right)
    assert jacobian_rank(linear, torch.randn(6, generator=seeded(1), dtype=torch.float64)) == rank


def test_jacobian_rank_refuses():
    with pytest.raises(UserError, match="float type"):
        jacobian_rank(nn.Linear(2, 2), torch.ones(2, dtype=torch.int64))
    with pytest.raises(UserError, match="finite"):
        jacobian_rank(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.full((2,), math.nan))


# ---- stability


def test_the_report_by_hand():
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with torch.no_grad():
        for layer, (weight, bias) in zip(model, ((3.0, 0.0), (-2.0, 1.0))):
            assert isinstance(layer, nn.Linear)
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    report = stability_report(model, torch.tensor([[4.0]]), lambda output: 5 * output.sum())
    first, second = report.rows  # h = 12, o = -23, J = 5 o
    assert first[:4] == ("0", "Linear", 12.0, 10.0)
    assert second[:4] == ("1", "Linear", 23.0, 5.0)
    assert first.weight_gradient_norm == pytest.approx(math.hypot(10 * 4, 10))
    assert second.weight_gradient_norm == pytest.approx(math.hypot(5 * 12, 5))
    assert report.forward_factor == pytest.approx(23 / 12)
    assert report.backward_factor == pytest.approx(2)
    assert gradient_norms(model, torch.tensor([[4.0]]), lambda output: 5 * output.sum()) == [10.0, 5.0]
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_report_of_a_shared_layer_shows_each_call():
    model = TiedMLP(4, 2, repeats=3)
    model(torch.zeros(1, 3))
    rows = stability_report(model, torch.ones(2, 3), torch.sum).rows
    assert [row.layer for row in rows].count("body.0.0") == 3


def test_the_report_prints_and_draws():
    model = MLP([4, 8, 8, 1], activation=nn.Sigmoid, generator=seeded(0))
    report = stability_report(model, torch.randn(3, 4, generator=seeded(1)), torch.sum)
    lines = str(report).splitlines()
    assert len(lines) == 1 + len(report.rows) + 1
    assert "features.0 Linear" in lines[1]
    assert f"backward {report.backward_factor:.3g}" in lines[-1]
    axes = report.plot().figure.axes[0]
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["output rms", "gradient norm", "weight gradient norm"]


def test_a_vanished_gradient_is_zero_and_not_a_traceback():
    model = MLP([2, 3, 1], generator=seeded(0))
    with torch.no_grad():
        model.head.weight.zero_()
    report = stability_report(model, torch.ones(1, 2), torch.sum)
    assert report.rows[0].gradient_norm == 0
    assert report.backward_factor == 0
    assert "backward 0" in str(report)


def test_the_report_works_where_gradients_are_off():
    with torch.no_grad():
        assert stability_report(nn.Linear(2, 1), torch.ones(1, 2), torch.sum).rows[0].gradient_norm == 1


def test_stability_refuses():
    model = MLP([2, 3, 1], generator=seeded(0))
    with pytest.raises(UserError, match="one number from loss_fn"):
        stability_report(model, torch.ones(4, 2), lambda output: output)
    with pytest.raises(UserError, match="at least one example"):
        stability_report(model, torch.ones(0, 2), torch.sum)
    with pytest.raises(UserError, match="parameters to train"):
        stability_report(nn.ReLU(), torch.ones(2, 2), torch.sum)


# ---- topology


def test_components_by_hand():
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [10.0, 0.0], [10.0, 1.0]])
    assert [num_connected_components(points, reach) for reach in (0.5, 1.0, 7.9, 8.0)] == [5, 2, 2, 1]
    assert num_connected_components(points[[0, 0, 3]] + 1e8, 0.0) == 2
    assert num_connected_components(torch.zeros(0, 2), 1.0) == 0


def test_components_refuse():
    with pytest.raises(UserError, match="n d"):
        num_connected_components(torch.zeros(3), 1.0)
    for points, reach in ((torch.full((2, 2), math.nan), 1.0), (torch.zeros(2, 2), -1.0)):
        with pytest.raises(UserError, match="radius of at least 0"):
            num_connected_components(points, reach)
