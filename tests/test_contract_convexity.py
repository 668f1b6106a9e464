"""The contract of convexity and its constants: two ways to each number agree, in value and in gradient, in both
precisions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from near import assert_near
from quoin.autodiff import hessian
from quoin.optim import (
    Constants,
    GradientDescent,
    chord_gap,
    convex_bound,
    convex_combination,
    descend,
    distance_bound,
    hessian_test,
    jensen_gap,
    jensen_steps,
    least_squares_constants,
    logistic_constants,
    observed_constants,
    quadratic_constants,
    rate_proof,
    second_difference,
    strongly_convex_bound,
)

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=20)


def drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@few
@given(st.integers(1, 7), st.sampled_from([(), (3,), (2, 2)]), dtypes, seeds)
def test_jensens_gap_is_the_sum_of_its_steps(n, shape, dtype, seed):
    points, logits = (drawn(n, *each, seed=seed + len(each), dtype=dtype).requires_grad_() for each in (shape, ()))
    weights = logits.softmax(0)  # slopes are compared in the logits, which keep the sum

    def f(x: Tensor) -> Tensor:
        return torch.logsumexp(torch.cat([x.reshape(-1), 2 * x.reshape(-1)]), 0)

    whole, steps = jensen_gap(f, points, weights), jensen_steps(f, points, weights)
    assert steps.shape == (n - 1,)
    assert bool((steps >= -TOLERANCE[dtype]).all())
    assert_near(steps.sum(), whole, TOLERANCE)
    if n > 1:
        for mine, its in zip(
            *(torch.autograd.grad(each, [points, logits], retain_graph=True) for each in (steps.sum(), whole))
        ):
            assert_near(mine, its, TOLERANCE, times=10)


@few
@given(st.integers(2, 6), seeds)
def test_weights_of_zero_change_nothing(n, seed):
    points, weights = drawn(n, 2, seed=seed), drawn(n, seed=seed + 1).softmax(0)
    more = torch.cat([drawn(2, 2, seed=seed + 2), points, drawn(1, 2, seed=seed + 3)])
    padded = torch.cat([torch.zeros(2, dtype=torch.float64), weights, torch.zeros(1, dtype=torch.float64)])
    for gap in (jensen_gap, lambda *given: jensen_steps(*given).sum()):
        assert_near(
            gap(lambda x: x.cosh().sum(), more, padded), gap(lambda x: x.cosh().sum(), points, weights), TOLERANCE
        )


@few
@given(dtypes, seeds, st.floats(0, 1))
def test_a_chord_gap_is_jensens_gap_of_two_points(dtype, seed, share):
    pair = drawn(2, 3, seed=seed, dtype=dtype)
    weights = torch.tensor([share, 1 - share], dtype=dtype)
    f = lambda x: x.exp().sum()  # noqa: E731
    assert_near(chord_gap(f, pair[0], pair[1], share), jensen_gap(f, pair, weights), TOLERANCE, times=10)
    assert_near(convex_combination(pair[0], pair[1], share), weights @ pair, TOLERANCE)


@few
@given(st.sampled_from([1, 3, 20]), seeds)
def test_curvature_by_eigenvalues_and_by_differences(dim, seed):
    A, x = drawn(4, dim, seed=seed), drawn(dim, seed=seed + 1)
    f = lambda x: torch.logsumexp(A @ x, 0) - (x**3).sum() / 9  # noqa: E731
    found = hessian_test(f, x.unsqueeze(0))
    values = np.linalg.eigvalsh(hessian(f, x).numpy())
    assert_near(found.least, torch.tensor(values[:1]), TOLERANCE)
    assert_near(found.largest, torch.tensor(values[-1:]), TOLERANCE)
    if found.direction is not None:
        # A central second difference has an error of h² f''''/12 and of 4ε|f|/h².
        down = second_difference(f, x, found.direction, 1e-3)
        assert abs(float(down) - values[0]) < 1e-4 * max(1, np.abs(values).max())


@few
@given(st.integers(1, 6), dtypes, seeds)
def test_constants_of_a_quadratic(dim, dtype, seed):
    Q = drawn(dim, dim, seed=seed, dtype=dtype)
    Q = (Q + Q.mT) / 2
    constants = quadratic_constants(Q)
    values = np.linalg.eigvalsh(Q.double().numpy())
    assert constants.smoothness == pytest.approx(np.abs(values).max(), rel=1e-4 if dtype is torch.float32 else 1e-11)
    assert constants.strong_convexity == pytest.approx(
        values[0], abs=(1e-4 if dtype is torch.float32 else 1e-11) * np.abs(values).max()
    )
    a, b = drawn(2, 8, dim, seed=seed + 1).unbind()
    seen = observed_constants(lambda x: x @ Q.double() @ x / 2, a, b)
    assert seen.smoothness <= constants.smoothness * 1.001
    assert seen.strong_convexity >= constants.strong_convexity - 1e-3


@few
@given(st.integers(1, 8), st.integers(1, 5), st.sampled_from([0.0, 0.3]), dtypes, seeds)
def test_constants_of_least_squares_are_those_of_its_hessian(n, d, l2, dtype, seed):
    X, y = drawn(n, d, seed=seed, dtype=dtype), drawn(n, seed=seed + 1, dtype=dtype)
    found = least_squares_constants(X, l2=l2)
    H = hessian(
        lambda w: (X.double() @ w - y.double()).square().mean() / 2 + l2 / 2 * w.square().sum(), torch.zeros(d).double()
    )
    values = np.linalg.eigvalsh(H.numpy())
    assert found == pytest.approx((values[-1], values[0]), rel=1e-9, abs=1e-9 * values[-1])
    if n < d:
        assert found.strong_convexity == l2


@few
@given(st.integers(1, 8), st.integers(1, 4), seeds)
def test_constants_of_logistic_regression_hold_everywhere_and_are_reached(n, d, seed):
    X, y = drawn(n, d, seed=seed), drawn(n, seed=seed + 1).sign()
    f = lambda w: functional.softplus(-y * (X @ w)).mean() + 0.05 * w.square().sum()  # noqa: E731
    found, inside = logistic_constants(X, l2=0.1), logistic_constants(X, l2=0.1, radius=2.0)
    assert found.strong_convexity == 0.1
    assert inside.smoothness == found.smoothness
    assert inside.strong_convexity >= 0.1
    at_zero = torch.linalg.eigvalsh(hessian(f, torch.zeros(d).double()))
    assert float(at_zero[-1]) == pytest.approx(found.smoothness, rel=1e-9)
    for w in drawn(4, d, seed=seed + 2):
        values = torch.linalg.eigvalsh(hessian(f, 2 * w / w.norm()))
        assert float(values[-1]) <= found.smoothness * (1 + 1e-9)
        assert float(values[0]) >= inside.strong_convexity * (1 - 1e-9)


@few
@given(st.floats(0.05, 1), st.floats(0.2, 2), seeds)
def test_bounds_of_a_parabola_by_hand(strong, share, seed):
    """θ_t = (1 - ημ)^t θ_0 on ½μ|θ|², whose L is μ."""
    start, zero = drawn(3, seed=seed), torch.zeros(3, dtype=torch.float64)
    constants = Constants(1.0, strong)
    rate = share / (1 + strong)
    path = descend(lambda x: strong / 2 * x.square().sum(), start, GradientDescent(rate), 12)
    within = distance_bound(start, zero, 12, lr=rate, constants=constants)
    assert_near(path.points.norm(dim=1), within, TOLERANCE)
    above = strongly_convex_bound(start, zero, 12, lr=rate, constants=constants)
    assert_near(path.values, strong * above, TOLERANCE)
    if rate <= 1:
        promised = convex_bound(start, zero, 12, lr=rate, smoothness=1.0)
        assert promised[0] == torch.inf
        assert_near(promised[1:], torch.stack([start.square().sum() / (2 * rate * t) for t in range(1, 13)]), TOLERANCE)
        assert bool((path.values <= promised).all())


@few
@given(dtypes, seeds)
def test_the_proof_adds_up(dtype, seed):
    """Steps that follow from others by algebra alone: one_step from decrease and tangent, telescoped from one_step,
    bound from the end."""
    A = drawn(5, 3, seed=seed, dtype=dtype)
    f = lambda w: functional.softplus(A @ w).mean() + w.square().sum() / 2  # noqa: E731
    rate, star = 0.1, drawn(3, seed=seed + 2, dtype=dtype)  # any point will do in place of θ*
    path = descend(f, drawn(3, seed=seed + 1, dtype=dtype), GradientDescent(rate), 10)
    proof = rate_proof(f, path.points, star, lr=rate, smoothness=1 / rate)
    assert_near(proof.descent_lemma, proof.decrease, TOLERANCE, times=10)  # the same for η = 1/L
    assert_near(proof.one_step, proof.decrease + proof.tangent, TOLERANCE, times=100)
    assert_near(proof.telescoped, proof.one_step.cumsum(0), TOLERANCE, times=100)
    t = torch.arange(1, 11, dtype=dtype)
    away = (path.points[1:] - star).square().sum(dim=1)
    assert_near(t * proof.bound, proof.telescoped + proof.last_is_least + away / (2 * rate), TOLERANCE, times=100)
