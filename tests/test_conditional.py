"""Conditional distributions over two, several and unmanageably many labels: they normalise, sample as they say, fit,
and refuse."""

import math

import pytest
import torch
from torch import nn

from quoin.data import make_blobs, make_segment_digits, make_tiny_images
from quoin.errors import UserError
from quoin.losses import cross_entropy, density_nll, expected_nll, logistic_loss, mse
from quoin.metrics import accuracy, empirical_risk
from quoin.optim import minimize_lbfgs
from quoin.prob import (
    BinaryModel,
    CategoricalModel,
    MulticlassModel,
    SequenceModel,
    binary_decision,
    binary_log_prob,
    binary_log_prob_definition,
    margin,
)

DRAWS = 20_000
FIVE_SIGMA = 5.5 * math.sqrt(0.25 / DRAWS)  # twice the tail of a normal distribution beyond 5.5 is below 1e-7


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_two_labels():
    model = BinaryModel(lambda x: x[..., 0])
    x = torch.tensor([[-1.5], [0.0], [0.3]])
    up, down = (model.log_prob(torch.full((3,), sign), x).exp() for sign in (1, -1))
    torch.testing.assert_close(up + down, torch.ones(3))
    torch.testing.assert_close(up, torch.sigmoid(2 * x[:, 0]))
    assert model.predict(x).tolist() == [-1, 1, 1]
    drawn = model.sample(x[2:].expand(DRAWS, 1), generator=generator())
    assert set(drawn.tolist()) == {-1, 1}
    assert abs(float((drawn == 1).double().mean()) - float(up[2])) < FIVE_SIGMA


def test_several_labels():
    model = MulticlassModel(nn.Linear(4, 3)).double()
    x = torch.randn(5, 4, generator=generator(), dtype=torch.float64)
    each = torch.stack([model.log_prob(torch.full((5,), label), x).exp() for label in range(3)], dim=-1)
    torch.testing.assert_close(each, model.probabilities(x))
    torch.testing.assert_close(each.sum(-1), torch.ones(5, dtype=torch.float64))
    assert torch.equal(model.predict(x), each.argmax(-1))
    drawn = model.sample(x[:1].expand(DRAWS, 4), generator=generator())
    assert float((torch.bincount(drawn, minlength=3) / DRAWS - each[0]).abs().max().detach()) < FIVE_SIGMA
    assert model.sample(torch.zeros(0, 4, dtype=torch.float64), generator=generator()).shape == (0,)


def test_sequences_sample_as_they_are_scored():
    table = torch.randn(
        2, 3, 3, generator=generator()
    )  # place, token before (2 at the start), marks: two tokens and the end

    def score(x, y):
        before = torch.cat([torch.full((len(y), 1), 2), y[:, :-1]], dim=1)
        return table[torch.arange(2), before]

    model = SequenceModel(score, num_tokens=2, length=2)
    every = torch.tensor([[2, 2], [0, 2], [1, 2], [0, 0], [0, 1], [1, 0], [1, 1]])
    law = model.log_prob(every, torch.zeros(7, 1)).exp()
    assert float(law.sum()) == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(law[0], table[0, 2].softmax(-1)[2])  # nothing but the end
    torch.testing.assert_close(law[5], table[0, 2].softmax(-1)[1] * table[1, 1].softmax(-1)[0])
    drawn = model.sample(torch.zeros(DRAWS, 1), generator=generator(1))
    shares = torch.stack([(drawn == one).all(dim=-1).double().mean() for one in every])
    assert float((shares - law).abs().max()) < FIVE_SIGMA
    assert float(shares.sum()) == pytest.approx(1)


def test_fitting_recovers_frequencies_without_inputs():
    y = torch.tensor([0, 0, 0, 1, 1, 3, 3, 3, 3, 2])
    model = CategoricalModel(4).double()
    done = minimize_lbfgs(model.parameters(), lambda: density_nll(model, y), tol=1e-7)
    assert done.converged
    shares = torch.tensor([0.3, 0.2, 0.1, 0.4], dtype=torch.float64)
    torch.testing.assert_close(
        model.scores.detach().softmax(-1), shares, rtol=0, atol=2e-7
    )  # the gradient is the difference itself
    assert done.loss == pytest.approx(float(-(shares * shares.log()).sum()), abs=1e-12)  # the entropy
    drawn = model.sample(DRAWS, generator=generator())
    assert float((torch.bincount(drawn, minlength=4) / DRAWS - shares).abs().max()) < FIVE_SIGMA


def test_fitting_a_classifier_and_a_regression():
    data = make_tiny_images(300, generator=generator())
    x, y = data.features.flatten(1).double(), data.targets
    model = MulticlassModel(nn.Linear(4, 3)).double()
    done = minimize_lbfgs(
        model.parameters(), lambda: expected_nll(model, y, x) + 0.001 * model.score.weight.square().sum()
    )
    assert done.converged
    assert accuracy(model.predict(x), y) > 0.99  # the means lie 0.85 apart, eight times the noise
    # Vectors: least squares has the closed form that torch's own solver gives.
    X, Y = torch.randn(50, 5, generator=generator(), dtype=torch.float64).split([3, 2], dim=1)
    line = nn.Linear(3, 2, bias=False).double()
    assert minimize_lbfgs(line.parameters(), lambda: empirical_risk(mse, line(X), Y), tol=1e-7).converged
    torch.testing.assert_close(line.weight.detach().mT, torch.linalg.lstsq(X, Y).solution, rtol=0, atol=1e-6)


def test_a_fit_cut_short_says_so():
    weight = torch.tensor([3.0, -4.0], dtype=torch.float64, requires_grad=True)
    stretch = torch.tensor([1.0, 100.0], dtype=torch.float64)
    short = minimize_lbfgs([weight], lambda: (stretch * weight).square().sum(), max_iter=1)
    assert (short.converged, short.num_steps) == (False, 1)
    assert short.gradient > 1e-6
    assert weight.grad is None or not weight.grad.any()  # nothing is left behind for the next step


def test_logistic_regression_has_a_minimiser_only_where_classes_overlap():
    x = torch.tensor([-2.0, -1.0, 1.0, 2.0], dtype=torch.float64)
    for y, attained in (([-1, 1, -1, 1], True), ([-1, -1, 1, 1], False)):
        weight, signs = torch.zeros((), dtype=torch.float64, requires_grad=True), torch.tensor(y)

        def risk(scale, weight=weight, signs=signs):
            return logistic_loss(margin(scale * weight * x, signs)).mean()

        minimize_lbfgs([weight], lambda risk=risk: risk(1.0), max_iter=50)
        assert (float(risk(2.0).detach()) < float(risk(1.0).detach())) is not attained


@pytest.mark.parametrize("form", [binary_log_prob, binary_log_prob_definition])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_binary_log_prob_is_stable(form, dtype):
    score = torch.tensor([1000.0, -1000.0, 0.0], dtype=dtype, requires_grad=True)
    found = form(score, torch.tensor([1, 1, 1]))
    torch.testing.assert_close(found, torch.tensor([0.0, -2000.0, -math.log(2)], dtype=dtype))
    torch.testing.assert_close(torch.autograd.grad(found.sum(), score)[0], torch.tensor([0.0, 2.0, 1.0], dtype=dtype))


def test_pictures():
    tiny, digits = make_tiny_images(3000, generator=generator()), make_segment_digits(200, generator=generator())
    assert tiny.features.shape == (3000, 1, 2, 2)
    assert tiny.class_names == ("cat", "chicken", "dog")
    assert digits.features.shape == (200, 1, 28, 28)
    assert digits.targets.unique().tolist() == list(range(10))
    calm = make_tiny_images(30, noise=0.0, generator=generator())
    white = {"cat": [[1, 0], [1, 0]], "chicken": [[1, 1], [0, 0]], "dog": [[0, 1], [1, 0]]}  # of 0.2 and 0.8
    for number, name in enumerate(calm.class_names or ()):
        expected = 0.2 + 0.6 * torch.tensor(white[name]).expand(int((calm.targets == number).sum()), 1, 2, 2)
        torch.testing.assert_close(calm.features[calm.targets == number], expected)
    for data in (tiny, digits):
        assert 0 <= float(data.features.min()) <= float(data.features.max()) <= 1
    assert torch.equal(digits.features, make_segment_digits(200, generator=generator()).features)
    assert int(torch.bincount(tiny.targets).min()) > 1000 - 5.5 * math.sqrt(3000 * 2 / 9)
    clean = make_segment_digits(2000, noise=0.0, generator=generator())
    for side in (
        clean.features[..., 0, :],
        clean.features[..., -1, :],
        clean.features[..., 0],
        clean.features[..., -1],
    ):
        assert float(side.max()) == 0  # nothing is pushed over the border
    ink = clean.features.sum(dim=(1, 2, 3))
    for digit in range(10):  # moved about, never cut off: one count of pixels a digit
        assert ink[clean.targets == digit].unique().numel() == 1
    eight, one = (float(ink[clean.targets == digit][0]) for digit in (8, 1))
    assert eight > 2 * one > 0


THREE_PLACES = SequenceModel(lambda x, y: x, num_tokens=2, length=3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: margin(torch.zeros(2), torch.tensor([0, 1])), "labels -1 and 1, got 0"),
        (lambda: margin(torch.zeros(2), torch.ones(3)), r"leading axes \(2,\) of y"),
        (lambda: binary_decision(torch.tensor([math.nan])), "NaN"),
        (lambda: MulticlassModel(lambda x: x).log_prob(torch.tensor([3]), torch.zeros(1, 3)), "from 0 to 2"),
        (lambda: MulticlassModel(lambda x: x).log_prob(torch.tensor([1, 1]), torch.zeros(1, 3)), "leading axes"),
        (lambda: MulticlassModel(lambda x: x).predict(torch.full((1, 3), math.nan)), "NaN"),
        (lambda: SequenceModel(lambda x, y: x, num_tokens=0, length=3), "at least one token"),
        (lambda: THREE_PLACES.log_prob(torch.tensor([[2, 0, 2]]), torch.zeros(1)), "after the first"),
        (lambda: THREE_PLACES.log_prob(torch.tensor([[0, 2]]), torch.zeros(1)), "size 3"),
        (lambda: THREE_PLACES.log_prob(torch.tensor([[0, 1, 2]]), torch.zeros(1, 3, 2)), "scores to have size 3"),
        (lambda: CategoricalModel(0), "at least one label"),
        (lambda: CategoricalModel(2).log_prob(torch.tensor([2])), "from 0 to 1"),
        (lambda: minimize_lbfgs([], lambda: torch.zeros(())), "at least one parameter"),
        (lambda: minimize_lbfgs([torch.zeros(2)], lambda: torch.zeros(())), "takes a gradient"),
        (
            lambda: minimize_lbfgs([torch.zeros(2, requires_grad=True)], lambda: torch.tensor(math.nan)),
            "finite number, got nan",
        ),
        (lambda: minimize_lbfgs([torch.zeros(2, requires_grad=True)], lambda: torch.zeros(3)), r"got shape \(3,\)"),
        (
            lambda: minimize_lbfgs([torch.zeros(2, requires_grad=True)], lambda: torch.zeros(()), tol=0.0),
            "positive tolerance",
        ),
        (lambda: make_tiny_images(0, generator=generator()), "at least one image"),
        (lambda: make_segment_digits(5, noise=-1.0, generator=generator()), "at least 0"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_compiled_step_is_not_broken_by_checks():
    data = make_blobs(30, [(0.0, 0.0), (3.0, 0.0)], noise=1.0, generator=generator())
    model = MulticlassModel(nn.Linear(2, 2))
    traced = torch.compile(
        lambda x, y: cross_entropy(model(x), y).mean() + expected_nll(model, y, x), backend="eager", fullgraph=True
    )
    torch.testing.assert_close(
        traced(data.features, data.targets), 2 * cross_entropy(model(data.features), data.targets).mean()
    )
