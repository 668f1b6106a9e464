"""The contract of update rules: each definition takes the path of torch.optim's in-place form, in value and in
gradient."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from near import assert_near
from quoin import optim
from quoin.autodiff import gradient
from quoin.errors import UserError
from quoin.optim import (
    Adadelta,
    AdaGrad,
    Adam,
    AdamW,
    DiagonalNewton,
    EMAMomentum,
    GradientDescent,
    Lion,
    LionOptimizer,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    bias_corrected,
    descend,
    double_well,
    momentum_convergence_rate,
    momentum_convergence_rate_definition,
    ravine,
    rosenbrock,
    saddle,
)

Optimizer = Callable[[list[Tensor]], torch.optim.Optimizer]

# The two forms round apart a little every step, and the errors add up as a walk does; they are counted from the largest
# entry.
TOLERANCE = {torch.float32: 3e-5, torch.float64: 5e-14}
dtypes = st.sampled_from([torch.float32, torch.float64])
shapes = st.lists(st.integers(1, 5), max_size=3).map(tuple)
seeds = st.integers(0, 2**32)
rates = st.floats(1e-4, 0.5)
shares = st.floats(0, 0.99)
few = settings(deadline=None, max_examples=15)


@st.composite
def pairs(draw) -> tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]]:
    """A rule with settings of its own, and torch's class and arguments for the same."""
    rate, share, other = draw(rates), draw(shares), draw(st.floats(0.5, 0.9999))
    eps, decay = draw(st.sampled_from([1e-8, 1e-3])), draw(st.floats(0, 0.5))
    both = {"lr": rate, "betas": (share, other), "eps": eps}
    return draw(
        st.sampled_from(
            [
                (GradientDescent(rate), torch.optim.SGD, {"lr": rate}),
                (Momentum(rate, share), torch.optim.SGD, {"lr": rate, "momentum": share}),
                (Momentum(rate, 1.0), torch.optim.SGD, {"lr": rate, "momentum": 1.0}),
                (EMAMomentum(rate, share), torch.optim.SGD, {"lr": rate * (1 - share), "momentum": share}),
                (
                    Nesterov(rate, max(share, 0.01)),
                    torch.optim.SGD,
                    {"lr": rate, "momentum": max(share, 0.01), "nesterov": True},
                ),
                (AdaGrad(rate, eps), torch.optim.Adagrad, {"lr": rate, "eps": eps}),
                (Adadelta(rate, other, eps), torch.optim.Adadelta, {"lr": rate, "rho": other, "eps": eps}),
                (RMSProp(rate, other, eps), torch.optim.RMSprop, {"lr": rate, "alpha": other, "eps": eps}),
                (Adam(rate, share, other, eps), torch.optim.Adam, both),
                (AdamW(rate, share, other, eps, decay), torch.optim.AdamW, {**both, "weight_decay": decay}),
            ]
        )
    )


@st.composite
def lions(draw) -> tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]]:
    """Torch has no Lion: the in-place form is ours. It has no derivative either, that of a sign being zero."""
    rate, betas, decay = draw(rates), (draw(shares), draw(shares)), draw(st.floats(0, 0.5))
    return Lion(rate, *betas, decay), LionOptimizer, {"lr": rate, "betas": betas, "weight_decay": decay}


def normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype)


def both_paths(pair, steps: int, shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> tuple[Tensor, Tensor]:
    """The points of the rule and of torch under the same random gradients, some of whose entries are large and some
    zero."""
    rule, optimizer, arguments = pair
    generator = torch.Generator().manual_seed(seed)
    x = normal(shape, dtype, generator)
    theirs = x.clone().requires_grad_()
    peer = optimizer([theirs], **arguments, **({} if optimizer is LionOptimizer else {"foreach": False}))
    state, ours, found = rule.init(x), [x], [x]
    for _ in range(steps):
        size = 10 ** (2 * torch.rand((), generator=generator, dtype=dtype) - 1)
        slope = size * normal(shape, dtype, generator)
        slope = torch.where(torch.rand(shape, generator=generator) < 0.1, 0, slope)
        x, state = rule.step(x, slope, state)
        theirs.grad = slope.clone()
        peer.step()
        ours.append(x)
        found.append(theirs.detach().clone())
    return torch.stack(ours), torch.stack(found)


@few
@given(pairs() | lions(), shapes, dtypes, seeds)
def test_rules_take_the_path_of_their_in_place_form(pair, shape, dtype, seed):
    ours, theirs = both_paths(pair, 8, shape, dtype, seed)
    assert_near(ours, theirs, TOLERANCE[dtype])


LONG = [
    (GradientDescent(0.01), torch.optim.SGD, {"lr": 0.01}),
    (Momentum(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    (EMAMomentum(0.1, 0.9), torch.optim.SGD, {"lr": 0.1 * (1 - 0.9), "momentum": 0.9}),
    (Nesterov(0.01, 0.9), torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    (AdaGrad(0.01), torch.optim.Adagrad, {"lr": 0.01}),
    (Adadelta(), torch.optim.Adadelta, {}),
    (RMSProp(0.01), torch.optim.RMSprop, {"lr": 0.01}),
    (Adam(0.01), torch.optim.Adam, {"lr": 0.01}),
    (AdamW(0.01), torch.optim.AdamW, {"lr": 0.01}),
]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("pair", LONG, ids=lambda pair: type(pair[0]).__name__)
def test_a_thousand_steps_are_torchs_with_torchs_defaults(pair, dtype):
    ours, theirs = both_paths(pair, 1000, (7,), dtype, seed=0)
    assert_near(ours, theirs, TOLERANCE[dtype])


@few
@given(pairs(), shapes, dtypes, seeds)
def test_rules_have_torchs_derivatives(pair, shape, dtype, seed):
    """Of the point after three steps, in the start and in the gradients from there.

    torch can differentiate through its steps on demand, but cuts the first velocity off, so the first gradient is a
    constant; and it corrects Adam's bias, 1 - β^t, in float32 then, whence the tolerance.
    """
    rule, optimizer, arguments = pair
    rounded = 2**-24 / (1 - max(arguments.get("betas", (0.0,))))
    generator = torch.Generator().manual_seed(seed)
    first, *leaves = (normal(shape, dtype, generator) for _ in range(4))
    x, *slopes = (leaf.requires_grad_() for leaf in leaves)
    theirs, state = x.clone(), rule.init(x)
    peer = optimizer([theirs], **arguments, foreach=False, differentiable=True)
    for slope in (first, *slopes):
        x, state = rule.step(x, slope, state)
        theirs.grad = slope.clone()
        peer.step()
    upstream = normal(shape, dtype, generator)
    for mine, its in zip(
        torch.autograd.grad(x, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream), strict=True
    ):
        assert_near(mine, its, max(1e-6, rounded) if dtype is torch.float64 else 2e-3)


@few
@given(pairs() | lions(), shapes, dtypes, seeds)
def test_rules_change_nothing_in_place(pair, shape, dtype, seed):
    rule, generator = pair[0], torch.Generator().manual_seed(seed)
    x, slope = normal(shape, dtype, generator), normal(shape, dtype, generator)
    state = rule.step(x, slope, rule.init(x))[1]
    kept = [each.clone() for each in (x, slope, *tensors(state))]
    first, second = rule.step(x, slope, state), rule.step(x, slope, state)
    assert all(torch.equal(now, before) for now, before in zip((x, slope, *tensors(state)), kept, strict=True))
    assert torch.equal(first[0], second[0])


def tensors(state: Any) -> list[Tensor]:
    parts = state if isinstance(state, tuple) else [state]
    return [each for each in parts if isinstance(each, Tensor)]


def test_nesterov_is_his_own_sequence_seen_from_the_point_looked_ahead_to():
    """θ and v by the textbook: the gradient at θ + m v; the rule's x is that point."""
    rate, m = 0.02, 0.9
    theta, v = torch.tensor([-1.5, 2.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    path = descend(ravine, theta, Nesterov(rate, m), 50)
    for t in range(51):
        ahead = theta + m * v
        torch.testing.assert_close(path.points[t], ahead, rtol=0, atol=1e-14)
        v = m * v - rate * gradient(ravine, ahead)
        theta = theta + v


@few
@given(st.integers(1, 5), dtypes, seeds)
def test_newton_solves_a_quadratic_in_one_step_and_halves_its_error_at_half_the_rate(dim, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    root = normal((dim, dim), dtype, generator)
    matrix, best, x = (
        root @ root.mT + torch.eye(dim, dtype=dtype),
        normal((dim,), dtype, generator),
        normal((dim,), dtype, generator),
    )

    def bowl(x: Tensor) -> Tensor:
        return (x - best) @ matrix @ (x - best) / 2

    slope = gradient(bowl, x)
    tolerance = 1e4 * torch.finfo(dtype).eps
    assert_near(Newton(bowl).step(x, slope, None)[0], best, tolerance)
    assert_near(Newton(bowl, 0.5).step(x, slope, None)[0], (x + best) / 2, tolerance)
    # The diagonal is enough where the axes are those of the bowl.
    stretch = matrix.diagonal()
    scaled = DiagonalNewton(lambda x: (stretch * (x - best) ** 2).sum() / 2)
    assert_near(scaled.step(x, stretch * (x - best), None)[0], best, tolerance)
    keep = DiagonalNewton(
        lambda x: -(stretch * (x - best) ** 2).sum() / 2
    )  # curving down: away from the top, not towards it
    assert_near(keep.step(x, -stretch * (x - best), None)[0], 2 * x - best, tolerance)


def test_newtons_digits_double_and_it_is_drawn_to_a_saddle():
    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    path = descend(rosenbrock, start, Newton(rosenbrock), 7)
    assert float((path.points[-1] - 1).norm()) < 1e-12
    assert descend(saddle, start, Newton(saddle), 1).points[-1].tolist() == [0.0, 0.0]
    with pytest.raises(UserError, match=r"expected a Hessian with an inverse, .*\[1.0, 0.0\]"):
        descend(lambda x: x[0] ** 2, torch.tensor([1.0, 0.0]), Newton(lambda x: x[0] ** 2), 1)
    with pytest.raises(UserError, match="expected curvature in every coordinate"):
        descend(lambda x: x[0] ** 2, torch.tensor([1.0, 0.0]), DiagonalNewton(lambda x: x[0] ** 2), 1)
    wells = descend(double_well, torch.tensor([0.9, 0.3], dtype=torch.float64), DiagonalNewton(double_well), 8)
    torch.testing.assert_close(wells.points[-1], torch.tensor([1.0, 0.0], dtype=torch.float64))


@few
@given(st.floats(0.01, 5), st.floats(0, 1), st.floats(0.01, 5), dtypes)
def test_the_rate_of_momentum_is_the_spectral_radius(rate, momentum, curvature, dtype):
    leaves = [torch.tensor(value, dtype=dtype, requires_grad=True) for value in (rate, momentum, curvature)]
    spread = ((1 + momentum - rate * curvature) / 2) ** 2 - momentum
    # Where the two roots meet, they move as a square root: rounding shows as its root there, and there is no slope.
    near = 20 * math.sqrt(torch.finfo(dtype).eps)
    ours, definition = momentum_convergence_rate(*leaves), momentum_convergence_rate_definition(*leaves)
    assert_near(ours.detach(), definition.detach(), near if abs(spread) < 1e-3 else 50 * torch.finfo(dtype).eps)
    if abs(spread) > 1e-2 and momentum > 0.01:
        for mine, its in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(definition, leaves), strict=True):
            assert_near(mine, its, 2000 * torch.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GradientDescent(0.0), "positive, finite learning rate, got 0.0"),
        (lambda: Adam(math.inf), "positive, finite learning rate, got inf"),
        (lambda: Newton(saddle, -1.0), "positive, finite learning rate, got -1.0"),
        (lambda: DiagonalNewton(saddle, math.nan), "positive, finite learning rate, got nan"),
        (lambda: Momentum(0.1, 1.0001), r"momentum in \[0, 1\], got 1.0001"),
        (lambda: Momentum(0.1, -0.1), r"momentum in \[0, 1\], got -0.1"),
        (lambda: Momentum(0.1, math.nan), r"momentum in \[0, 1\], got nan"),
        (lambda: Nesterov(0.1, 1.0), r"momentum in \[0, 1\), got 1.0"),
        (lambda: Nesterov(0.1, -0.1), r"momentum in \[0, 1\), got -0.1"),
        (lambda: EMAMomentum(0.1, 1.5), r"beta in \[0, 1\), got 1.5"),
        (lambda: AdaGrad(0.1, eps=-1.0), "finite eps of 0 or more, got -1.0"),
        (lambda: Adadelta(rho=1.0), r"rho in \[0, 1\), got 1.0"),
        (lambda: Lion(0.1, beta2=1.0), r"beta2 in \[0, 1\), got 1.0"),
        (lambda: Lion(0.1, weight_decay=-1.0), "finite weight_decay of 0 or more, got -1.0"),
        (lambda: LionOptimizer([torch.zeros(2)], lr=0.0), "positive, finite learning rate, got 0.0"),
        (lambda: RMSProp(0.1, alpha=1.0), r"alpha in \[0, 1\), got 1.0"),
        (lambda: RMSProp(0.1, eps=-1.0), "finite eps of 0 or more, got -1.0"),
        (lambda: Adam(0.1, beta2=1.0), r"beta2 in \[0, 1\), got 1.0"),
        (lambda: AdamW(0.1, weight_decay=math.nan), "finite weight_decay of 0 or more, got nan"),
        (lambda: AdamW(0.1, beta1=1.0), r"beta1 in \[0, 1\), got 1.0"),
        (lambda: bias_corrected(torch.zeros(2), 0.9, 0), "count of 0"),
    ],
)
def test_mistakes_are_one_line(make, message):
    with pytest.raises(UserError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


RULES = [
    each for name in optim.__all__ if dataclasses.is_dataclass(each := getattr(optim, name)) and hasattr(each, "step")
]
NO_NUMBERS = {
    "lr": (0.0, -1.0, math.inf, math.nan),
    **dict.fromkeys(("eps", "weight_decay"), (-1.0, math.inf, math.nan)),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_number_of_every_rule_is_looked_at(rule):
    fields = [each.name for each in dataclasses.fields(rule)]
    whole = {name: saddle if name == "f" else 0.1 for name in fields}
    assert rule(**whole)
    for name in fields:
        for value in NO_NUMBERS.get(name, (-0.1, 1.0001, math.nan)) if name != "f" else ():
            with pytest.raises(UserError, match=f"got {value}"):
                rule(**whole | {name: value})


def test_rules_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Momentum(0.1, 0.9).momentum = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def test_momentum_of_one_is_the_notes_edge_and_never_damps():
    """On θ²/2 from (θ_0, v_0 = 0), m = 1: z² - (2 - γ) z + 1 = 0 has roots on the circle, cos φ = 1 - γ/2, so that
    θ_t = cos(φ(t + 1/2)) / cos(φ/2): solved by hand, for θ_{-1} = θ_0.
    """
    for rate in (0.05, 0.5, 1.9):
        rule, x = Momentum(rate, 1.0), torch.tensor([1.0], dtype=torch.float64)
        state, turn = rule.init(x), math.acos(1 - rate / 2)
        for t in range(1, 400):
            x, state = rule.step(x, x, state)
            assert float(x) == pytest.approx(math.cos(turn * (t + 0.5)) / math.cos(turn / 2), abs=1e-9)
