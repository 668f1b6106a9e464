"""Losses and metrics: hand-computed values, scikit-learn as a peer, sums over batches, and the words of each error."""

import math

import numpy as np
import pytest
import torch
from sklearn import calibration as calibration_peer
from sklearn import metrics as peer
from sklearn.utils.class_weight import compute_class_weight
from torch import nn

from quoin.errors import UserError
from quoin.losses import (
    balanced_class_weights,
    conditional_nll,
    cross_entropy,
    cross_entropy_definition,
    cross_entropy_from_probs,
    density_nll,
    expected_nll,
    gaussian_nll,
    hinge_loss,
    kernel_svm_objective,
    logistic_loss,
    mae,
    mean_power_error,
    mse,
    nll_loss,
    squared_loss,
    svm_objective,
)
from quoin.metrics import (
    accuracy,
    calibration_curve,
    confusion_matrix,
    empirical_risk,
    expected_calibration_error,
    held_out_loss,
    minimize_expected_cost,
    predictive_entropy,
    r2_score,
    roc_auc,
    roc_curve,
    root_mean_squared_error,
    zero_one_loss,
)
from quoin.prob import CategoricalModel, MulticlassModel


@pytest.fixture(params=range(4))
def labels(request):
    generator = torch.Generator().manual_seed(request.param)
    return torch.randint(5, (60,), generator=generator), torch.randint(5, (60,), generator=generator)


@pytest.fixture(params=range(4))
def numbers(request):
    generator = torch.Generator().manual_seed(request.param)
    target = torch.randn(50, generator=generator, dtype=torch.float64)
    return target + 0.3 * torch.randn(50, generator=generator, dtype=torch.float64), target


def test_labels_agree_with_scikit_learn(labels):
    predicted, true = labels
    assert accuracy(predicted, true) == pytest.approx(peer.accuracy_score(true, predicted), abs=1e-15)
    assert float(zero_one_loss(predicted, true).sum()) == peer.zero_one_loss(true, predicted, normalize=False)
    np.testing.assert_array_equal(
        confusion_matrix(predicted, true, 5), peer.confusion_matrix(true, predicted, labels=range(5))
    )


def test_numbers_agree_with_scikit_learn(numbers):
    prediction, target = numbers
    error = peer.root_mean_squared_error(target, prediction)
    assert root_mean_squared_error(prediction, target) == pytest.approx(error, rel=1e-13)
    assert r2_score(prediction, target) == pytest.approx(peer.r2_score(target, prediction), rel=1e-12)


def test_sums_over_uneven_batches_are_the_whole(labels):
    predicted, true = labels
    parts = list(zip(predicted.split(23), true.split(23)))
    counts = torch.stack([confusion_matrix(p, t, 5) for p, t in parts]).sum(dim=0)
    assert torch.equal(counts, confusion_matrix(predicted, true, 5))
    wrong = sum(float(zero_one_loss(p, t).sum()) for p, t in parts)
    assert 1 - wrong / len(true) == pytest.approx(accuracy(predicted, true), abs=1e-15)


def test_confusion_has_true_classes_in_rows():
    counts = confusion_matrix(torch.tensor([1, 1, 0]), torch.tensor([0, 0, 2]), 3)
    assert counts.tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]
    assert confusion_matrix(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long), 2).tolist() == [
        [0, 0],
        [0, 0],
    ]


def test_values_by_hand():
    assert squared_loss(torch.tensor([3.0, -1.0]), torch.tensor([1.0, 1.0])).tolist() == [2.0, 2.0]
    assert float(empirical_risk(squared_loss, torch.tensor([4.0, 1.0]), torch.tensor([0.0, 1.0]))) == 4.0
    assert r2_score(torch.tensor([2.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])) == 0.0  # the mean explains nothing
    assert root_mean_squared_error(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])) == pytest.approx(12.5**0.5)
    # Uniform logits: log q, whatever the target.
    for target in (torch.tensor([0, 3]), torch.full((2, 4), 0.25)):
        torch.testing.assert_close(cross_entropy(torch.ones(2, 4), target), torch.tensor([4.0, 4.0]).log())


def test_metrics_may_be_taken_of_a_model_in_training(numbers):
    prediction, target = numbers
    with_gradient = prediction.clone().requires_grad_()
    for metric in (root_mean_squared_error, r2_score):  # a warning of torch's would fail this test
        assert metric(with_gradient, target) == metric(prediction, target)


def test_labels_of_any_integer_type():
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.uint8, torch.int32):
        labels = torch.tensor([0, 3, 1])
        for loss in (cross_entropy, cross_entropy_definition):
            torch.testing.assert_close(loss(logits, labels.to(dtype)), loss(logits, labels))


def test_no_examples_give_no_losses():
    nothing = torch.empty(0, dtype=torch.long)
    for loss in (cross_entropy, cross_entropy_definition):
        assert loss(torch.empty(0, 3), nothing).shape == (0,)
        assert loss(torch.empty(0, 3), torch.empty(0, 3)).shape == (0,)
    with pytest.raises(UserError, match="at least one example"):
        empirical_risk(cross_entropy, torch.empty(0, 3), nothing)


@pytest.mark.parametrize("loss", [cross_entropy, cross_entropy_definition])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (torch.tensor([0, 3]), "from 0 to 2 for 3 classes, got 3"),
        (torch.tensor([0, -100]), "got -100"),  # torch would silently leave this one out
        (torch.tensor([0, 1, 2]), r"leading axes \(2,\) of target"),
        (torch.tensor([[0.5, 0.5, 0.5], [1.0, 0.0, 0.0]]), "sum to one"),
        (torch.tensor([[1.5, -0.5, 0.0], [1.0, 0.0, 0.0]]), "non-negative"),
        (torch.tensor([[torch.nan, 0.0, 0.0], [1.0, 0.0, 0.0]]), "non-negative"),
        (torch.tensor([0.0, 1.0]), "leading axes|axis q"),
    ],
)
def test_cross_entropy_refuses(loss, target, words):
    with pytest.raises(UserError, match=words) as caught:
        loss(torch.zeros(2, 3), target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: squared_loss(torch.zeros(4), torch.zeros(4, 1)), r"got \(4, 1\)"),  # would broadcast to 4 x 4
        (lambda: gaussian_nll(torch.zeros(2), torch.zeros(2), 0.0), "positive scale"),
        (lambda: gaussian_nll(torch.zeros(2), torch.zeros(2), float("nan")), "positive scale"),
        (lambda: accuracy(torch.zeros(4, 3), torch.zeros(4)), "leading axes"),
        (lambda: accuracy(torch.zeros(0), torch.zeros(0)), "at least one example"),
        (lambda: confusion_matrix(torch.tensor([3]), torch.tensor([0]), 3), "from 0 to 2"),
        (lambda: confusion_matrix(torch.tensor([0]), torch.tensor([-1]), 3), "got -1"),
        (lambda: r2_score(torch.zeros(3), torch.ones(3)), "targets that vary"),
        (lambda: root_mean_squared_error(torch.zeros(0), torch.zeros(0)), "at least one example"),
        (lambda: cross_entropy(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 1])), "logits as floats"),
        (lambda: cross_entropy(torch.zeros(2, 0), torch.zeros(2, dtype=torch.long)), "at least one class"),
        (
            lambda: cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), class_weights=torch.ones(2)),
            "axis q of class_weights to be 3",
        ),
        (lambda: cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), class_weights=-torch.ones(3)), "not negative"),
        (
            lambda: cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), class_weights=torch.ones(3).double()),
            "float64",
        ),
        (lambda: balanced_class_weights(torch.tensor([0, 2]), 3), "none of class 1"),
        (lambda: nll_loss(torch.ones(2, 3), torch.tensor([0, 1])), "none above 0"),
        (lambda: nll_loss(torch.zeros(2, 3), torch.tensor([0, 3])), "from 0 to 2"),
        (lambda: nll_loss(torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 1])), "as floats"),
        (
            lambda: cross_entropy_from_probs(torch.tensor([0.5, 0.6]), torch.tensor(0)),
            "probabilities to be .* sum to one",
        ),
        (lambda: cross_entropy_from_probs(torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.6])), "target to be"),
        (lambda: cross_entropy_from_probs(torch.tensor([0.5, 0.5]), torch.tensor(2)), "from 0 to 1"),
        (lambda: mean_power_error(torch.zeros(2), torch.zeros(2), 0.5), "at least 1"),
        (lambda: mean_power_error(torch.zeros(2), torch.zeros(2), math.inf), "finite"),
        (lambda: mean_power_error(torch.zeros(2), torch.zeros(2), math.nan), "at least 1"),
        (lambda: mse(torch.zeros(4, 1), torch.zeros(4)), "leading axes"),
        (lambda: mse(torch.zeros(4, 2), torch.zeros(4, 3)), "axis d of target to be 2 as in prediction, got 3"),
        (lambda: mae(torch.zeros(4, 0), torch.zeros(4, 0)), "at least one entry"),
        (lambda: mae(torch.zeros(4, 2, dtype=torch.long), torch.zeros(4, 2)), "floats"),
        (lambda: svm_objective(torch.zeros(0), torch.zeros(2), 1.0), "at least one example"),
        (lambda: svm_objective(torch.zeros(3), torch.zeros(2), -1.0), "at least 0"),
        (lambda: kernel_svm_objective(torch.zeros(3), torch.zeros(3, 2), torch.ones(3), 1.0), "axis n of gram to be 3"),
        (
            lambda: kernel_svm_objective(torch.zeros(2), torch.zeros(2, 2), torch.tensor([0, 1]), 1.0),
            "labels -1 and 1, got 0",
        ),
        (lambda: roc_auc(torch.zeros(3), torch.tensor([1, 1, 1])), "both labels, got 3 of 1 in 3"),
        (lambda: roc_curve(torch.tensor([0.0, math.nan]), torch.tensor([0, 1])), "NaN"),
        (lambda: roc_curve(torch.tensor([0.0, 1.0]), torch.tensor([0, 2])), "from 0 to 1"),
        (lambda: minimize_expected_cost(torch.tensor([0.5, 0.5]), torch.zeros(2, 3)), "axis q of cost to be 2"),
        (lambda: minimize_expected_cost(torch.tensor([0.5, 0.5]), torch.full((2, 2), math.nan)), "finite costs"),
        (lambda: calibration_curve(torch.tensor([1.5]), torch.tensor([1])), "from 0 to 1"),
        (lambda: calibration_curve(torch.tensor([math.nan]), torch.tensor([1])), "from 0 to 1"),
        (lambda: calibration_curve(torch.tensor([0.5]), torch.tensor([2])), "what happened"),
        (lambda: calibration_curve(torch.tensor([0.5]), torch.tensor([1]), num_bins=0), "at least one bin"),
        (lambda: expected_calibration_error(torch.tensor([[0.5, 0.5]]), torch.tensor([2])), "from 0 to 1"),
        (lambda: predictive_entropy(torch.tensor([0.5, 0.4])), "sum to one"),
        (lambda: held_out_loss(nn.Identity(), squared_loss, torch.zeros(3), torch.zeros(2)), "as many targets"),
        (lambda: held_out_loss(nn.Identity(), squared_loss, torch.zeros(0), torch.zeros(0)), "at least one"),
        (
            lambda: held_out_loss(nn.Identity(), lambda a, b: (a - b).mean(), torch.zeros(3), torch.zeros(3)),
            "not averaged",
        ),
        (lambda: density_nll(CategoricalModel(3), torch.empty(0, dtype=torch.long)), "at least one example"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(UserError, match=words):
        call()


@pytest.fixture(params=range(4))
def scored(request):
    """Scores with ties, labels 0 and 1."""
    generator = torch.Generator().manual_seed(request.param)
    labels = torch.randint(2, (80,), generator=generator)
    return (labels + torch.randn(80, generator=generator)).mul(4).round() / 4, labels


def test_ranking_agrees_with_scikit_learn(scored):
    scores, labels = scored
    curve = roc_curve(scores, labels)
    for ours, theirs in zip(curve, peer.roc_curve(labels, scores, drop_intermediate=False)):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert roc_auc(scores, labels) == pytest.approx(peer.roc_auc_score(labels, scores), abs=1e-12)
    assert roc_auc(-scores, labels) == pytest.approx(1 - roc_auc(scores, labels), abs=1e-12)


def test_calibration_agrees_with_scikit_learn(scored):
    scores, labels = scored
    probabilities = torch.sigmoid(2 * scores.double())
    curve = calibration_curve(probabilities, labels, num_bins=8)
    true, stated = calibration_peer.calibration_curve(labels, probabilities, n_bins=8)
    some = curve.counts > 0
    np.testing.assert_allclose(curve.frequency[some], true, atol=1e-12)
    np.testing.assert_allclose(curve.confidence[some], stated, atol=1e-12)
    assert int(curve.counts.sum()) == 80


def test_calibration_by_hand():
    # Stated 0.9 four times and right twice; stated 0.6 once and right: (4 * |0.5 - 0.9| + 1 * |1 - 0.6|) / 5.
    p = torch.tensor([[0.9, 0.1]] * 4 + [[0.4, 0.6]], dtype=torch.float64)
    assert expected_calibration_error(p, torch.tensor([0, 0, 1, 1, 1])) == pytest.approx(0.4)
    assert expected_calibration_error(torch.tensor([[1.0, 0.0]]), torch.tensor([0])) == 0.0
    curve = calibration_curve(torch.tensor([0.0, 0.25, 0.5, 1.0]), torch.tensor([0, 1, 1, 1]), num_bins=4)
    assert curve.counts.tolist() == [2, 1, 0, 1]  # an edge belongs to the bin on its left
    assert curve.frequency.tolist()[:2] == [0.5, 1.0]
    assert curve.frequency.isnan().tolist() == [False, False, True, False]


def test_class_weights_agree_with_scikit_learn(labels):
    _, true = labels
    expected = compute_class_weight("balanced", classes=np.arange(5), y=true.numpy())
    np.testing.assert_allclose(balanced_class_weights(true, 5), expected, rtol=1e-6)
    weights = balanced_class_weights(true, 5).double()
    assert float(weights[true].mean()) == pytest.approx(1.0, rel=1e-6)


def test_decisions_by_hand():
    # A missed illness costs 10, a needless treatment 1: treat from a probability of 1/11 on.
    cost = torch.tensor([[0.0, 10.0], [1.0, 0.0]])  # rows: leave, treat; columns: well, ill
    p = torch.tensor([[0.95, 0.05], [0.9, 0.1], [0.2, 0.8]])
    found = minimize_expected_cost(p, cost)
    assert found.output.tolist() == [0, 1, 1]
    torch.testing.assert_close(found.expected_cost[0], torch.tensor([0.5, 0.95]))
    assert torch.equal(minimize_expected_cost(p, 1 - torch.eye(2)).output, p.argmax(dim=-1))
    torch.testing.assert_close(
        predictive_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]])), torch.tensor([math.log(2), 0.0])
    )


def test_margin_losses_by_hand():
    # The loss of w = 1, 10, 100 on x = y = ±1: ln(1 + e^-2w).
    losses = logistic_loss(2 * torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64))
    expected = [0.1269280110429725, 2.061153620314381e-09, math.exp(-200)]
    assert losses.tolist() == pytest.approx(expected, rel=1e-13)
    assert svm_objective(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 2.0]), 0.2).item() == pytest.approx(0.5 + 0.5)
    assert hinge_loss(torch.tensor(math.nan)).isnan()


def test_an_impossible_truth_costs_infinity():
    certain = torch.tensor([1.0, 0.0])
    assert cross_entropy_from_probs(certain, torch.tensor(1)).isinf()
    assert cross_entropy_from_probs(certain, torch.tensor(0)) == 0
    assert nll_loss(certain.log(), torch.tensor(1)).isinf()


def test_nll_of_a_model_is_its_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    model = MulticlassModel(nn.Linear(4, 3))
    x, y = torch.randn(20, 4, generator=generator), torch.randint(3, (20,), generator=generator)
    torch.testing.assert_close(conditional_nll(model, y, x), cross_entropy(model(x), y))
    torch.testing.assert_close(expected_nll(model, y, x), empirical_risk(cross_entropy, model(x), y))
    assert density_nll(CategoricalModel(5), y).item() == pytest.approx(math.log(5))


def test_held_out_loss_counts_every_example_once():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(10, 3, generator=generator), torch.randn(10, 2, generator=generator)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    model[0].eval()  # frozen on purpose, while the rest trains
    expected = float(mse(model(x), y).detach().mean())
    for batch_size in (1, 3, 10, 99):
        assert held_out_loss(model, mse, x, y, batch_size=batch_size) == pytest.approx(expected, rel=1e-6)
    assert model.training
    assert not model[0].training
    model.train()
    assert held_out_loss(model, mse, x, y) == pytest.approx(expected, rel=1e-6)  # no dropout while judging
    assert model[0].training
