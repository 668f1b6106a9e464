"""Descent kept whole, what it refuses, and its companions: argmin, minibatches, the range test, the one-cycle
schedule."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.autodiff import gradient, hessian
from quoin.errors import UserError
from quoin.optim import (
    Adam,
    GradientDescent,
    MinibatchGradient,
    Momentum,
    argmin,
    best_momentum,
    cubic,
    descend,
    double_well,
    lr_range_test,
    minibatch_gradient,
    momentum_convergence_rate,
    one_cycle,
    plateau,
    ravine,
    rippled,
    rosenbrock,
    saddle,
    wavy,
)

few = settings(deadline=None, max_examples=15)


def at(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


# ---- descend ----------------------------------------------------------------------------------------------------


@few
@given(
    st.lists(st.integers(1, 4), max_size=2).map(tuple),
    st.integers(0, 12),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_a_path_is_torchs_loop(shape, steps, dtype):
    generator = torch.Generator().manual_seed(steps)
    start = torch.randn(shape, generator=generator, dtype=dtype)

    def f(x):
        return (x**2).sum() + torch.sin(x).sum()

    path = descend(f, start, Momentum(0.05, 0.8), steps)
    assert path.points.shape == (steps + 1, *shape)
    x = start.clone().requires_grad_()
    peer = torch.optim.SGD([x], lr=0.05, momentum=0.8)
    for t in range(steps + 1):
        peer.zero_grad()
        value = f(x)
        value.backward()
        assert x.grad is not None
        torch.testing.assert_close(path.points[t], x.detach())
        torch.testing.assert_close(path.values[t], value.detach())
        torch.testing.assert_close(path.gradient_norms[t], x.grad.norm())
        peer.step()


def test_the_start_is_left_alone_and_may_carry_a_gradient():
    start = at(1.0, 2.0).requires_grad_()
    path = descend(saddle, start, GradientDescent(0.1), 3)
    assert start.tolist() == [1.0, 2.0]
    assert not path.points.requires_grad
    assert not path.values.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: descend(torch.log, at(-1.0)[0], GradientDescent(0.1), 3),
            r"finite value at the start, .* at -1.0; start where",
        ),
        (lambda: descend(torch.sqrt, at(0.0)[0], GradientDescent(0.1), 3), r"finite gradient at the start, .* at 0.0"),
        # 1, then 1 - 0.5 / 1, then 0.5 - 0.5 / 0.5.
        (
            lambda: descend(torch.log, at(1.0)[0], GradientDescent(0.5), 9),
            r"finite value after step 2, .* at -0.5; take a smaller",
        ),
        (
            lambda: descend(torch.log, at(1.0)[0], GradientDescent(0.5), 9, domain=lambda x: x > 0),
            r"step 2 to stay inside the domain, got -0.5",
        ),
        (
            lambda: descend(torch.log, at(-1.0)[0], GradientDescent(0.6), 9, domain=lambda x: x > 0),
            r"a start inside the domain, got -1.0",
        ),
        (lambda: descend(torch.exp, at(math.nan)[0], GradientDescent(0.6), 9), r"a start inside the domain, got nan"),
        (lambda: descend(torch.square, at(1.0)[0], GradientDescent(1e200), 9), r"finite value after step 1"),
        (
            lambda: descend(torch.square, at(1.0, 2.0), GradientDescent(0.1), 9),
            r"gives one number as a tensor, got shape \(2,\)",
        ),
        (
            lambda: descend(lambda x: 3.0, at(1.0), GradientDescent(0.1), 9),
            r"gives one number as a tensor, got "
            r"3.0",
        ),  # pyright: ignore
        (
            lambda: descend(torch.square, torch.tensor(1), GradientDescent(0.1), 9),
            r"a float tensor to start from, got torch.int64",
        ),
        (
            lambda: descend(torch.square, 1.0, GradientDescent(0.1), 9),
            r"a float tensor to start from, got "
            r"1.0",
        ),  # pyright: ignore
        (lambda: descend(torch.square, at(1.0), GradientDescent(0.1), -1), r"number of steps of 0 or more, got -1"),
        (
            lambda: descend(torch.square, at(1.0), GradientDescent(0.1), 2, gradient=lambda x: x[0]),
            r"a gradient of the shape .* \(1,\), got \(\)",
        ),
        (
            lambda: argmin(torch.square, torch.zeros(0, 2)),
            r"at least one point along the first axis, got shape \(0, 2\)",
        ),
        (lambda: argmin(torch.sqrt, at(1.0, -1.0)), r"can be compared, got NaN at point 1, -1.0"),
        (lambda: ravine(torch.zeros(2), condition_number=0.5), "condition number of 1 or more, got 0.5"),
        (lambda: saddle(torch.zeros(3)), "expected x to have size 2"),
        (lambda: best_momentum(2.0, 1.0), "expected curvatures 0 < min_curvature <= max_curvature, got 2.0 and 1.0"),
        (
            lambda: MinibatchGradient(lambda x, i: x[i], 3, batch_size=4, generator=torch.Generator()),
            "batch of 1 to 3 examples, got 4",
        ),
        (
            lambda: minibatch_gradient(lambda x, i: x[i], at(1.0), torch.tensor([], dtype=torch.long)),
            r"one example or more, got shape \(0,\)",
        ),
        (lambda: lr_range_test(lambda rate: 1.0, min_lr=1.0, max_lr=0.1), "rates 0 < min_lr < max_lr, got 1.0 and 0.1"),
        (lambda: lr_range_test(lambda rate: 1.0, num_steps=1), "2 steps or more"),
        (lambda: lr_range_test(lambda rate: math.nan), "finite loss at the smallest learning rate 1e-06, got nan"),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# ---- landscapes -------------------------------------------------------------------------------------------------


def test_landscapes_have_their_critical_points():
    for f, point, signs in (
        (saddle, at(0, 0), (-1, 1)),
        (ravine, at(0, 0), (1, 1)),
        (rosenbrock, at(1, 1), (1, 1)),
        (double_well, at(1, 0), (1, 1)),
        (double_well, at(-1, 0), (1, 1)),
        (double_well, at(0, 0), (-1, 1)),
    ):
        assert gradient(f, point).abs().max() == 0
        assert torch.linalg.eigvalsh(hessian(f, point)).sign().tolist() == list(signs)
    assert float(hessian(lambda x: ravine(x, condition_number=7.0), at(2, 3)).det()) == pytest.approx(7.0)


def test_landscapes_are_their_formulas_on_batches():
    points = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    line = points[..., 0]
    formulas = {
        saddle: lambda x, y: x * x - y * y,
        ravine: lambda x, y: x * x / 2 + 10 * y * y,
        rosenbrock: lambda x, y: (1 - x) * (1 - x) + 100 * (y - x * x) ** 2,
        double_well: lambda x, y: x**4 - 2 * x**2 + 1 + y**2,
    }
    for f, formula in formulas.items():
        torch.testing.assert_close(
            f(points), torch.tensor([[formula(*p) for p in row] for row in points.tolist()], dtype=torch.float64)
        )
    ripple = {f: [[g(x) for x in row] for row in line.tolist()] for f, g in {
        cubic: lambda x: x * x * x,
        plateau: math.tanh,
        wavy: lambda x: x * math.cos(math.pi * x),
        rippled: lambda x: x * math.cos(math.pi * x) + 0.2 * math.cos(5 * math.pi * x),
    }.items()}  # fmt: skip
    for f, expected in ripple.items():
        torch.testing.assert_close(f(line), torch.tensor(expected, dtype=torch.float64))


def test_argmin_is_a_set():
    side = torch.linspace(-2, 2, 9, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    assert sorted(argmin(double_well, grid).tolist()) == [[-1.0, 0.0], [1.0, 0.0]]
    assert torch.equal(argmin(lambda x: 0 * x.sum(), grid), grid)
    assert argmin(lambda x: x[0], grid).tolist() == [[-2.0, y] for y in side.tolist()]
    assert len(argmin(torch.square, at(0.0, 1e-9, 1.0), tol=1e-12)) == 2
    assert argmin(lambda x: -torch.log(x), at(0.0, 1.0, 2.0)).tolist() == [
        2.0
    ]  # an infinite value is only not the least


# ---- stochastic descent -----------------------------------------------------------------------------------------


def test_minibatch_descent_averages_to_descent_and_repeats_from_its_seed():
    """On a quadratic the mean of the paths is the path of the mean: x_t - mean(data) shrinks by 1 - η a step."""
    data = at(1.0, 2.0, 6.0, 7.0)

    def paths(seed: int, count: int) -> torch.Tensor:
        slope = MinibatchGradient(
            lambda x, i: (x - data[i]) ** 2 / 2, 4, batch_size=2, generator=torch.Generator().manual_seed(seed)
        )
        found = [
            descend(lambda x: (x - 4) ** 2 / 2, at(0.0)[0], GradientDescent(0.3), 4, gradient=slope).points
            for _ in range(count)
        ]
        return torch.stack(found)

    ends = paths(0, 300)
    # A batch of two has mean within 2.5 of 4, so the end lies within 2.5 of its own mean; Hoeffding at level 1e-7.
    error = 5 * math.sqrt(math.log(2 / 1e-7) / (2 * 300))
    assert abs(float(ends[:, -1].mean()) - 4 * (1 - 0.7**4)) < error
    assert float(ends[:, -1].std()) > 0.1
    assert torch.equal(paths(5, 2), paths(5, 2))


# ---- momentum's best --------------------------------------------------------------------------------------------


@few
@given(st.floats(0.01, 1), st.floats(1.01, 100))
def test_no_other_momentum_is_faster_than_the_best(least, ratio):
    best = best_momentum(least, least * ratio)
    curvatures = at(least, least * ratio)
    rates, momenta = (
        torch.linspace(0.01, 4, 60, dtype=torch.float64)[:, None, None],
        torch.linspace(0, 0.99, 50, dtype=torch.float64)[:, None],
    )
    all_rates = momentum_convergence_rate(rates / (least * ratio), momenta, curvatures).amax(-1)
    assert best.convergence_rate <= float(all_rates.min()) + 1e-9
    reached = momentum_convergence_rate(at(best.lr)[0], at(best.momentum)[0], curvatures).max()
    assert float(reached) == pytest.approx(best.convergence_rate, abs=1e-6)


# ---- the range test ---------------------------------------------------------------------------------------------


@few
@given(st.floats(0.05, 50))
def test_the_edge_of_a_quadratic_is_two_over_its_curvature(curvature):
    x = [1.0]

    def step(rate: float) -> float:
        loss = curvature * x[0] ** 2 / 2
        x[0] -= rate * curvature * x[0]
        return loss

    found = lr_range_test(step, min_lr=1e-4, max_lr=1e3, num_steps=160, smoothing=0.0)
    grid = 1e7 ** (1 / 159)
    assert 2 / curvature / grid <= found.max_stable_lr <= 2 / curvature * (1 + 1e-12)
    assert found.diverged
    assert found.steepest < found.max_stable_lr
    assert found.lrs == pytest.approx([1e-4 * grid**k for k in range(len(found.lrs))])
    assert found.losses == found.smoothed


def test_smoothing_is_adams_and_a_loss_that_is_not_finite_ends_the_test():
    losses = [4.0, 3.0, 5.0, 1.0, math.inf, 0.0]
    told = iter(losses)
    found = lr_range_test(lambda rate: next(told), num_steps=6, smoothing=0.5)
    assert found.diverged
    assert found.losses == (4.0, 3.0, 5.0, 1.0)
    # Weights 1/2, 1/4, ... from the last back, over their sum.
    assert found.smoothed == pytest.approx(
        [4, (4 + 2 * 3) / 3, (4 + 2 * 3 + 4 * 5) / 7, (4 + 2 * 3 + 4 * 5 + 8 * 1) / 15]
    )
    assert found.max_stable_lr == found.lrs[2]
    steady = lr_range_test(lambda rate: 1.0, num_steps=5, smoothing=0.0)
    assert not steady.diverged
    assert steady.max_stable_lr == steady.steepest == steady.lrs[0]
    assert steady.lrs[-1] == pytest.approx(10.0)


def test_the_range_test_takes_a_torch_step():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 3, generator=generator)
    weight = torch.zeros(3, requires_grad=True)
    peer = torch.optim.SGD([weight], lr=1.0)

    def step(rate: float) -> float:
        peer.param_groups[0]["lr"] = rate
        peer.zero_grad()
        loss = (inputs @ weight - inputs.sum(1)).square().mean()
        loss.backward()
        peer.step()
        return loss.item()

    found = lr_range_test(step, min_lr=1e-4, max_lr=100.0, num_steps=80, smoothing=0.0)
    largest = 2 * float(
        torch.linalg.eigvalsh(inputs.mT @ inputs / 64)[-1]
    )  # the largest curvature of the mean of squares
    assert found.diverged
    assert 0.2 * 2 / largest < found.max_stable_lr < 3 * 2 / largest


# ---- the one-cycle schedule -------------------------------------------------------------------------------------


def test_one_cycle_is_torchs():
    total = (
        41  # torch's peak falls between steps unless 0.3 of them is whole: its marks are 0.3 total - 1 and total - 1
    )
    weight = torch.zeros(1, requires_grad=True)
    peer = torch.optim.SGD([weight], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(peer, max_lr=1.0, total_steps=total, cycle_momentum=False)
    mark = 0.3 * total - 1
    for step in range(total):
        rate = peer.param_groups[0]["lr"]
        progress = 0.3 * step / mark if step <= mark else 0.3 + 0.7 * (step - mark) / (total - 1 - mark)
        assert one_cycle(progress) == pytest.approx(rate, abs=1e-12)
        peer.step()
        if step < total - 1:
            schedule.step()


def test_adam_crosses_the_plateau_that_descent_sleeps_on():
    """Adam's first step is η whatever the slope (less ε); plain descent moves by η times it."""
    far = at(8.0)[0]
    slope = 1 / math.cosh(8) ** 2
    adam = descend(plateau, far, Adam(0.1, eps=0.0), 1).points[-1]
    plain = descend(plateau, far, GradientDescent(0.1), 1).points[-1]
    assert float(far - adam) == pytest.approx(0.1)
    assert float(far - plain) == pytest.approx(0.1 * slope, rel=1e-6)
