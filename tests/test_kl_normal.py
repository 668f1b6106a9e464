"""The divergence between normal distributions, singular ones too: on a common affine space it is that of the
distributions there, and else infinite."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from quoin.errors import UserError
from quoin.prob import kl_normal, kl_normal_definition

FORMS = [kl_normal, kl_normal_definition]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def spread(rank, seed=0):
    root = normal(rank, rank, seed=seed)
    return root @ root.mT + 0.3 * torch.eye(rank, dtype=torch.float64)


def laws_on_a_space(d, rank, seed=0):
    """Two distributions in coordinates of a space of `rank` dimensions, and the space: x = shift + basis @ y."""
    basis, shift = torch.linalg.qr(normal(d, d, seed=seed)).Q[:, :rank], normal(d, seed=seed + 1)
    means = normal(2, rank, seed=seed + 2)
    return means, [spread(rank, seed + 3), spread(rank, seed + 4)], basis, shift


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", range(5))
def test_it_is_zero_for_a_law_and_itself(form, rank):
    means, (covariance, _), basis, shift = laws_on_a_space(4, rank)
    mean, covariance = shift + basis @ means[0], basis @ covariance @ basis.mT
    assert float(form(mean, covariance, mean, covariance)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", range(1, 5))
@pytest.mark.parametrize("seed", [0, 10, 20])
def test_on_a_common_space_it_is_that_of_the_laws_there_with_its_gradients(form, rank, seed):
    means, covariances, basis, shift = laws_on_a_space(4, rank, seed)
    inner = [means[0], covariances[0], means[1], covariances[1]]
    expected_at = [each.clone().requires_grad_() for each in inner]
    expected = kl_divergence(
        *(MultivariateNormal(mean, (C + C.mT) / 2) for mean, C in (expected_at[:2], expected_at[2:]))
    )
    taken = [each.clone().requires_grad_() for each in inner]
    outer = [shift + basis @ each if each.ndim == 1 else basis @ ((each + each.mT) / 2) @ basis.mT for each in taken]
    found = form(*outer)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(torch.autograd.grad(found, taken), torch.autograd.grad(expected, expected_at)):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-7)


UNIT = torch.eye(3, dtype=torch.float64)
ZERO = torch.zeros(3, dtype=torch.float64)
NOT_CONTINUOUS = {  # where P gives probability one to what Q gives none: mean and covariance of P, of Q
    "P on a line, Q everywhere": (ZERO, torch.diag(UNIT[0]), ZERO, UNIT),
    "P everywhere, Q on a line": (ZERO, UNIT, ZERO, torch.diag(UNIT[0])),
    "P on a line, Q on a plane around it": (ZERO, torch.diag(UNIT[0]), ZERO, torch.diag(UNIT[0] + UNIT[1])),
    "two lines": (ZERO, torch.diag(UNIT[0]), ZERO, torch.diag(UNIT[1])),
    "two lines that nearly meet": (
        ZERO,
        torch.diag(UNIT[0]),
        ZERO,
        torch.outer(UNIT[0] + 1e-3 * UNIT[1], UNIT[0] + 1e-3 * UNIT[1]),
    ),
    "parallel lines": (UNIT[1], torch.diag(UNIT[0]), ZERO, torch.diag(UNIT[0])),
    "a point and a distribution everywhere": (ZERO, 0 * UNIT, ZERO, UNIT),
    "a distribution everywhere and a point": (ZERO, UNIT, ZERO, 0 * UNIT),
    "two points": (UNIT[0], 0 * UNIT, ZERO, 0 * UNIT),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", NOT_CONTINUOUS)
def test_it_is_infinite_where_p_is_not_absolutely_continuous(form, case):
    turned = torch.linalg.qr(normal(3, 3)).Q
    for basis in (UNIT, turned):
        mean_p, covariance_p, mean_q, covariance_q = NOT_CONTINUOUS[case]
        taken = [basis @ mean_p, basis @ covariance_p @ basis.mT, basis @ mean_q, basis @ covariance_q @ basis.mT]
        taken = [each.clone().requires_grad_() for each in taken]
        found = form(*taken)
        assert found == math.inf
        if found.requires_grad:
            assert all(
                bool(each.isfinite().all())
                for each in torch.autograd.grad(found, taken, allow_unused=True)
                if each is not None
            )


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_may_hold_laws_of_every_kind(form):
    line = torch.diag(UNIT[0])
    covariance_p = torch.stack([UNIT, line, line, 0 * UNIT, 2 * UNIT])
    covariance_q = torch.stack([2 * UNIT, 4 * line, UNIT, 0 * UNIT, line])
    of_line = (1 / 4 - 1 + math.log(4)) / 2
    of_space = 3 * (1 / 2 - 1 + math.log(2)) / 2
    expected = torch.tensor([of_space, of_line, math.inf, 0.0, math.inf], dtype=torch.float64)
    torch.testing.assert_close(form(ZERO.expand(5, 3), covariance_p, ZERO.expand(5, 3), covariance_q), expected)


def test_leading_axes_broadcast_for_singular_laws_too():
    line = torch.diag(UNIT[0])
    moved = kl_normal(torch.stack([UNIT[0], UNIT[1]]), line, ZERO, line)  # along the line, and off it
    torch.testing.assert_close(moved, torch.tensor([0.5, math.inf], dtype=torch.float64))
    found = kl_normal(ZERO, torch.stack([line, UNIT]), ZERO.expand(2, 1, 3), 4 * line)
    expected = torch.tensor([(1 / 4 - 1 + math.log(4)) / 2, math.inf], dtype=torch.float64)
    torch.testing.assert_close(found, expected.expand(2, 2))


def test_small_variances_are_no_missing_ones():
    tiny = torch.diag(torch.tensor([1.0, 1e-20], dtype=torch.float64))
    expected = (1 + 1e-20 - 2 - math.log(1e-20)) / 2
    for form in FORMS:
        found = form(torch.zeros(2).double(), tiny, torch.zeros(2).double(), torch.eye(2).double())
        assert float(found) == pytest.approx(expected)


def test_what_is_no_covariance_is_refused():
    for form in FORMS:
        with pytest.raises(UserError, match="positive semi-definite"):
            form(ZERO, torch.diag(torch.tensor([1.0, 1.0, -1.0]).double()), ZERO, UNIT)
