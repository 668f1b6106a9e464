"""The contract of the adversarial game: logits and probabilities give one value, all examples at once what each alone
gives."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quoin.errors import UserError
from quoin.losses import (
    adversarial_value,
    gradient_penalty,
    input_gradients,
    input_gradients_definition,
    interpolate_examples,
    minimax_value,
    minimax_value_definition,
    non_saturating_loss,
    non_saturating_loss_definition,
    optimal_discriminator,
    r1_penalty,
    saturating_loss,
)
from quoin.metrics import mode_coverage, nearest_modes
from quoin.models import mlp_gan
from quoin.prob import jensen_shannon_divergence
from seeds import seeded

few = settings(deadline=None, max_examples=25)
seeds = st.integers(0, 2**32)
dtypes = st.sampled_from([torch.float32, torch.float64])


def close(found: Tensor, expected: Tensor) -> None:
    tolerance = 1e-4 if found.dtype == torch.float32 else 1e-10
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@few
@given(st.integers(1, 6), st.integers(1, 6), dtypes, seeds)
def test_logits_and_probabilities_give_one_value(n, m, dtype, seed):
    generator = seeded(seed)
    real = torch.randn(n, generator=generator, dtype=dtype, requires_grad=True)
    fake = torch.randn(m, generator=generator, dtype=dtype, requires_grad=True)
    for fast, slow in (
        (minimax_value(real, fake), minimax_value_definition(real.sigmoid(), fake.sigmoid())),
        (
            non_saturating_loss(fake).mean() + 0 * real.sum(),
            non_saturating_loss_definition(fake.sigmoid()).mean() + 0 * real.sum(),
        ),
        (saturating_loss(fake).mean() + 0 * real.sum(), (1 - fake.sigmoid()).log().mean() + 0 * real.sum()),
    ):
        close(fast, slow)
        for mine, its in zip(torch.autograd.grad(fast, [real, fake]), torch.autograd.grad(slow, [real, fake])):
            close(mine, its)


@pytest.mark.parametrize("loss", [saturating_loss, non_saturating_loss, lambda a: minimax_value(a, a)])
def test_logits_of_any_size_stay_finite(loss):
    logits = torch.tensor([-1e4, -80.0, 80.0, 1e4], requires_grad=True)
    found = loss(logits).sum()
    assert found.isfinite()
    assert torch.autograd.grad(found, logits)[0].isfinite().all()


@few
@given(st.integers(1, 5), st.integers(1, 4), dtypes, seeds)
def test_all_examples_at_once_are_each_alone(n, d, dtype, seed):
    """Values, gradients in the examples, and the gradients of both penalties in the weights."""
    generator = seeded(seed)
    net = mlp_gan(d, latent_dim=1, hidden_dims=(7,), generator=generator).discriminator.to(dtype)
    x = torch.randn(n, d, generator=generator, dtype=dtype)
    fast, slow = input_gradients(net, x), input_gradients_definition(net, x)
    close(fast.output, slow.output)
    close(fast.gradients, slow.gradients)
    weights = list(net.parameters())
    for penalty in (r1_penalty, gradient_penalty):
        close(penalty(fast.gradients, 2.0), penalty(slow.gradients, 2.0))
        mine, its = (
            torch.autograd.grad(penalty(each.gradients, 2.0), weights, retain_graph=True, allow_unused=True)
            for each in (fast, slow)
        )
        assert any(each is not None for each in mine)
        for one, other in zip(mine, its):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                close(one, other)


def test_penalties_of_known_slopes():
    """Of f(x) = 3 x₀ + 4 x₁ the gradient is (3, 4), of length 5."""
    slopes = input_gradients(lambda x: x @ torch.tensor([3.0, 4.0]), torch.zeros(2, 2)).gradients
    assert slopes.tolist() == [[3.0, 4.0], [3.0, 4.0]]
    assert float(r1_penalty(slopes, 0.2)) == pytest.approx(0.2 / 2 * 25)
    assert float(gradient_penalty(slopes, 0.2)) == pytest.approx(0.2 * (5 - 1) ** 2)
    flat = torch.zeros(2, 3, requires_grad=True)
    assert torch.autograd.grad(gradient_penalty(flat, 1.0), flat)[0].isfinite().all()


def test_gradients_where_nobody_asked_for_any():
    with torch.no_grad():
        assert input_gradients(lambda x: x.square().sum(dim=1), torch.ones(1, 2)).gradients.tolist() == [[2.0, 2.0]]


def test_mixed_examples_lie_between():
    real, fake = torch.ones(500, 1, 2, 2), torch.zeros(500, 1, 2, 2)
    mixed = interpolate_examples(real, fake, generator=seeded(0))
    assert mixed.shape == real.shape
    assert (mixed == mixed[:, :, :1, :1]).all()  # one share a pair
    assert 0 <= float(mixed.min()) < 0.05 < 0.95 < float(mixed.max()) < 1
    assert (
        float(interpolate_examples(5 * real, real, generator=seeded(0)).max()) > 4.8
    )  # a share near 1 is near the real one


@few
@given(st.integers(2, 9), dtypes, seeds)
def test_the_best_discriminator_has_no_slope_left(n, dtype, seed):
    """Of V in D, by automatic differentiation; and V there is 2 JS - ln 4."""
    p, fake = torch.randn(2, n, generator=seeded(seed), dtype=dtype).softmax(dim=-1)
    best = optimal_discriminator(p, fake).requires_grad_()
    value = adversarial_value(p, fake, best)
    close(torch.autograd.grad(value, best)[0], torch.zeros_like(p))
    close(value.detach(), 2 * jensen_shannon_divergence(p, fake) - math.log(4))
    close(jensen_shannon_divergence(p, fake), jensen_shannon_divergence(fake, p))


def test_tables_with_nothing_in_places():
    p, fake = torch.tensor([0.5, 0.5, 0.0, 0.0]), torch.tensor([0.0, 0.5, 0.5, 0.0])
    best = optimal_discriminator(p, fake)
    assert best.tolist() == [1.0, 0.5, 0.0, 0.5]
    assert float(adversarial_value(p, fake, best)) == pytest.approx(-math.log(2))  # half of each mass is told for sure
    apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert float(jensen_shannon_divergence(*apart)) == pytest.approx(math.log(2))
    assert float(jensen_shannon_divergence(p, p)) == 0.0


def test_modes_are_counted():
    due = torch.tensor([0.5, 0.5])
    assert mode_coverage(torch.tensor([0, 1, 0, 1]), due) == (2, 1.0, 0.0, 0.0)
    assert mode_coverage(torch.tensor([1, 1, 1, 1]), due) == (1, 0.0, 0.5, 0.0)
    assert mode_coverage(torch.tensor([0, 1, 1, 1]), due) == (2, 0.5, 0.25, 0.0)
    assert mode_coverage(torch.tensor([-1, -1]), due) == (0, 0.0, 1.0, 1.0)
    assert (
        mode_coverage(torch.tensor([0, 0]), torch.tensor([1.0, 0.0])).min_ratio == 1.0
    )  # a mode that nothing is due to is not missed
    centers = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    points = torch.tensor([[0.0, 0.4], [3.1, 0.0], [1.4, 0.0], [0.0, -9.0]])
    assert nearest_modes(points, centers, 0.5).tolist() == [0, 1, -1, -1]


LAW = torch.tensor([0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: minimax_value(torch.zeros(0), torch.zeros(3)), "at least one example in real"),
        (lambda: minimax_value(torch.zeros(3), torch.zeros(())), "at least one example in fake"),
        (lambda: non_saturating_loss(torch.zeros(3, dtype=torch.int64)), "float dtype"),
        (lambda: minimax_value_definition(torch.tensor([1.5]), torch.tensor([0.5])), "probabilities D(x) from 0 to 1"),
        (lambda: non_saturating_loss_definition(torch.tensor([float("nan")])), "probabilities D(x) from 0 to 1"),
        (lambda: r1_penalty(torch.ones(2, 2), -1.0), "penalty of at least 0"),
        (lambda: gradient_penalty(torch.ones(2, 2), math.inf), "penalty of at least 0"),
        (lambda: input_gradients(lambda x: x, torch.ones(2, 3)), "one number for each example"),
        (lambda: input_gradients(lambda x: x.sum(1), torch.ones(0, 3)), "at least one example in x"),
        (
            lambda: interpolate_examples(torch.ones(2, 3), torch.ones(3, 3), generator=seeded(0)),
            "as many fakes as real",
        ),
        (lambda: optimal_discriminator(torch.tensor([-1.0]), torch.tensor([1.0])), "numbers from 0 up"),
        (lambda: optimal_discriminator(LAW, LAW.double()), "one dtype"),
        (lambda: adversarial_value(LAW, LAW, torch.tensor([0.5, 1.5])), "one probability D(x) for each"),
        (lambda: adversarial_value(LAW, 2 * LAW, LAW), "sum"),
        (lambda: mode_coverage(torch.tensor([2]), LAW), "modes from 0 to 1"),
        (lambda: mode_coverage(torch.tensor([], dtype=torch.int64), LAW), "at least one sample"),
        (lambda: nearest_modes(torch.zeros(1, 2), torch.zeros(1, 2), 0.0), "radius above 0"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(UserError, match="expected") as caught:
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
