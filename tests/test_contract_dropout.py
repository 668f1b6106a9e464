"""The contract of dropout and its kin: definition and fast form agree in value and gradient, mask for mask."""

import pytest
import torch
from torch import nn

from quoin.errors import UserError
from quoin.layers import dropout_definition, dropout_mask
from quoin.losses import input_dropout_penalty, l1_penalty, l2_penalty, l2_regularized_loss
from quoin.models import MLP, mlp_definition


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("probability", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout_agrees_with_torch_mask_for_mask(dtype, probability, seed):
    shape = tuple(torch.randint(1, 9, (1 + seed % 3,), generator=torch.Generator().manual_seed(seed)).tolist())
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed + 100), dtype=dtype)
    ours, theirs = values.clone().requires_grad_(), values.clone().requires_grad_()
    mask = dropout_mask(shape, probability, generator=torch.Generator().manual_seed(seed))
    output = dropout_definition(ours, mask, probability)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        expected = nn.Dropout(probability)(theirs)
    torch.testing.assert_close(output, expected)
    upstream = torch.randn(shape, generator=torch.Generator().manual_seed(seed + 200), dtype=dtype)
    (our_slope,), (their_slope,) = (
        torch.autograd.grad(output, ours, upstream),
        torch.autograd.grad(expected, theirs, upstream),
    )
    torch.testing.assert_close(our_slope, their_slope)
    assert output.dtype == dtype
    assert torch.equal(our_slope[~mask], torch.zeros_like(our_slope[~mask]))
    torch.testing.assert_close(
        nn.Dropout(probability).eval()(theirs), dropout_definition(values, torch.ones_like(mask), 0.0)
    )


def test_masks_are_independent_entries_not_a_fixed_share():
    """Of ten units with p = 1/2 the number silenced has variance 10/4; a fixed share would have none."""
    mask = dropout_mask((20_000, 10), 0.5, generator=torch.Generator().manual_seed(0))
    silent = (~mask).sum(dim=1).double()
    assert float(silent.var()) == pytest.approx(
        2.5, rel=0.06
    )  # six times the standard error of a variance of 20,000 counts
    assert float(silent.mean()) == pytest.approx(5.0, abs=6 * (2.5 / 20_000) ** 0.5)
    assert torch.equal(mask, dropout_mask((20_000, 10), 0.5, generator=torch.Generator().manual_seed(0)))


def test_a_perceptron_with_dropout_is_the_definition_with_masks():
    model = MLP([3, 8, 2], dropout=0.4, generator=torch.Generator().manual_seed(0)).double()
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    first, second = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    mask = dropout_mask((5, 8), 0.4, generator=torch.Generator().manual_seed(2))

    def drop_after_relu(z):
        return dropout_definition(z.relu(), mask, 0.4)

    weights, biases = [first.weight, second.weight], [first.bias, second.bias]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        torch.testing.assert_close(model(x), mlp_definition(x, weights, biases, drop_after_relu).output)
    torch.testing.assert_close(model.eval()(x), mlp_definition(x, weights, biases).output)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_penalties_agree_with_an_optimiser_and_their_formulas(dtype):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in ((4, 3), (3,))]
    flat = torch.cat([each.detach().flatten() for each in weights])
    torch.testing.assert_close(l2_penalty(weights, 0.3), 0.15 * torch.linalg.vector_norm(flat) ** 2)
    torch.testing.assert_close(l1_penalty(weights, 0.3), 0.3 * torch.linalg.vector_norm(flat, 1))
    slopes = {
        l2_penalty: [0.3 * each.detach() for each in weights],
        l1_penalty: [0.3 * each.detach().sign() for each in weights],
    }
    for penalty, expected in slopes.items():
        torch.testing.assert_close(torch.autograd.grad(penalty(weights, 0.3), weights), tuple(expected))

    steps = []  # plain descent on the penalised loss is descent with weight decay on the loss
    for penalty, decay in ((0.3, 0.0), (0.0, 0.3)):
        weight = weights[0].detach().clone().requires_grad_()
        sgd = torch.optim.SGD([weight], lr=0.1, weight_decay=decay)
        l2_regularized_loss(weight.sin().sum(), weight, penalty).backward()
        sgd.step()
        steps.append(weight.detach())
    torch.testing.assert_close(steps[0], steps[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_penalty_of_input_dropout_is_the_variance_of_the_masked_predictions(dtype):
    """E (y - Σ_j M_j x_j w_j)² = (y - x·w)² + Var: for independent M_j of mean 1, Var = Σ_j w_j² x_j² Var M_j with Var
    M_j = p/(1-p)."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(7, 3, generator=generator, dtype=dtype)
    w = torch.randn(3, generator=generator, dtype=dtype).requires_grad_()
    p = 0.3
    outcomes, chances = torch.tensor([0.0, 1 / (1 - p)], dtype=dtype), torch.tensor([p, 1 - p], dtype=dtype)
    variance = (chances * outcomes.square()).sum() - (chances * outcomes).sum().square()
    expected = torch.stack([variance * (w[j] * X[i, j]) ** 2 for i in range(7) for j in range(3)]).sum()
    torch.testing.assert_close(input_dropout_penalty(X, w, p), expected)
    torch.testing.assert_close(torch.autograd.grad(input_dropout_penalty(X, w, p), w), torch.autograd.grad(expected, w))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: dropout_mask((3,), 1.0), "at least 0 and below 1, got 1.0"),
        (lambda: dropout_mask((3,), float("nan")), "got nan"),
        (lambda: dropout_definition(torch.ones(3), torch.ones(3, dtype=torch.bool), -0.1), "got -0.1"),
        (
            lambda: dropout_definition(torch.ones(3), torch.ones(2, dtype=torch.bool), 0.5),
            r"axes \(3,\) of mask as in x, got \(2,\)",
        ),
        (lambda: dropout_definition(torch.ones(3), torch.ones(3), 0.5), "true and false, got torch.float32"),
        (
            lambda: dropout_definition(torch.ones(3).long(), torch.ones(3, dtype=torch.bool), 0.5),
            "float dtype, got torch.int64",
        ),
        (lambda: l2_penalty([], 0.1), "at least one weight"),
        (lambda: l2_penalty(torch.ones(2), -1.0), "at least 0 and finite, got -1.0"),
        (lambda: l1_penalty(torch.ones(2).long(), 1.0), "float dtype"),
        (lambda: l2_regularized_loss(torch.ones(2), torch.ones(2), 1.0), r"got shape \(2,\)"),
        (
            lambda: input_dropout_penalty(torch.ones(2, 3), torch.ones(2), 0.5),
            "axis d of weight to be 3 as in X, got 2",
        ),
        (lambda: input_dropout_penalty(torch.ones(2, 3), torch.ones(3), 1.5), "got 1.5"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_a_missing_number_is_not_hidden_by_a_mask():
    hidden = dropout_definition(torch.tensor([torch.nan, 1.0]), torch.tensor([False, True]), 0.5)
    assert hidden[0].isnan()
