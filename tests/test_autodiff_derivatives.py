"""Derivatives: definition and fast form agree in value, on functions whose derivatives are known, and refuse bad
input."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from quoin import autodiff
from quoin.autodiff import RELU, SIGMOID, TANH, backward_pass, forward_pass
from quoin.errors import UserError

DTYPES = [torch.float32, torch.float64]


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


SINGLE = {
    "log-sum-exp": lambda x: torch.logsumexp(3 * x.reshape(-1), 0),
    "product": lambda x: (x * x.flip(0)).tanh().sum() + x.reshape(-1)[0] ** 3,
    "linear": lambda x: (2 * x).sum(),
    "constant": lambda x: torch.ones((), dtype=x.dtype),
    "one entry": lambda x: x.reshape(-1)[-1:],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (2, 3), ()])
@pytest.mark.parametrize("name", SINGLE)
def test_gradient_and_hessian_agree_with_their_definitions(name, shape, dtype):
    if shape == () and name == "product":
        pytest.skip("flip needs an axis")
    f, x = SINGLE[name], normal(*shape, dtype=dtype)
    before = x.clone()
    slope, bend = autodiff.gradient(f, x), autodiff.hessian(f, x)
    assert (slope.shape, bend.shape, slope.dtype, bend.dtype) == (x.shape, x.shape + x.shape, dtype, dtype)
    torch.testing.assert_close(slope, autodiff.gradient_definition(f, x))
    torch.testing.assert_close(bend, autodiff.hessian_definition(f, x))
    direction = normal(*shape, dtype=dtype, seed=1)
    along = autodiff.directional_derivative(f, x, direction)
    torch.testing.assert_close(along, autodiff.directional_derivative_definition(f, x, direction))
    assert torch.equal(x, before)
    assert not x.requires_grad
    assert not slope.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3), (4, 4), (1, 2)])
def test_jacobian_and_its_products_agree(rows, columns, dtype):
    A, x = normal(rows, columns, dtype=dtype), normal(columns, dtype=dtype, seed=1)
    f = lambda x: torch.sin(A @ x)  # noqa: E731
    expected = torch.cos(A @ x).unsqueeze(1) * A
    found = autodiff.jacobian(f, x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(autodiff.jacobian_definition(f, x), expected)
    u, v = normal(rows, dtype=dtype, seed=2), normal(columns, dtype=dtype, seed=3)
    torch.testing.assert_close(autodiff.vjp(f, x, u).product, expected.T @ u)
    torch.testing.assert_close(autodiff.jvp(f, x, v).product, expected @ v)
    for found in (autodiff.vjp(f, x, u).output, autodiff.jvp(f, x, v).output):
        torch.testing.assert_close(found, f(x))


def test_a_jacobian_keeps_the_shapes_of_both_sides():
    x = normal(2, 3)
    found = autodiff.jacobian(lambda x: x.T * 2, x)
    assert found.shape == (3, 2, 2, 3)
    torch.testing.assert_close(found, autodiff.jacobian_definition(lambda x: x.T * 2, x))
    assert autodiff.jacobian_definition(lambda x: x[:0], x).shape == (0, 3, 2, 3)


def test_derivatives_work_under_no_grad():
    with torch.no_grad():
        torch.testing.assert_close(autodiff.gradient(lambda x: (x**2).sum(), normal(3)), 2 * normal(3))
        assert autodiff.hessian_definition(lambda x: (x**2).sum(), normal(2)).tolist() == [[2, 0], [0, 2]]
        assert autodiff.taylor(torch.exp, 0.0, 2).coefficients.tolist() == [1, 1, 0.5]


# ---- Taylor


def test_a_taylor_polynomial_of_a_polynomial_is_the_polynomial():
    f = lambda x: 2 * x**3 - x + 5  # noqa: E731
    about = autodiff.taylor(f, 1.5, 5)
    x = normal(20)
    torch.testing.assert_close(about(x), f(x))
    assert about.coefficients[4:].tolist() == [0, 0]
    assert autodiff.taylor(lambda x: torch.tensor(3.0, dtype=torch.float64), 1.0, 2).coefficients.tolist() == [3, 0, 0]
    assert autodiff.taylor(torch.sin, torch.tensor(0.0), 1).coefficients.dtype == torch.float32


def test_a_quadratic_model_of_a_quadratic_is_the_quadratic():
    A, b = normal(3, 3), normal(3, seed=1)
    f = lambda x: torch.einsum("...i,ij,...j->...", x, A, x) + x @ b + 2  # noqa: E731
    model = autodiff.quadratic_model(f, normal(3, seed=2))
    x = normal(7, 3, seed=3)
    torch.testing.assert_close(model(x), f(x))


# ---- differences


def test_differences_count_and_converge():
    theta = normal(2, 3)
    exact = torch.cos(theta)
    found = autodiff.finite_differences(lambda x: x.sin().sum(), theta)
    assert found.num_evaluations == 12
    torch.testing.assert_close(found.output, exact, rtol=0, atol=1e-9)
    found = autodiff.finite_differences(lambda x: x.sin().sum(), theta.float())
    torch.testing.assert_close(found.output, exact.float(), rtol=0, atol=3e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_check_gradient_tells_right_from_wrong(dtype):
    theta = normal(5, dtype=dtype)
    f = lambda x: (x.tanh() * x).sum()  # noqa: E731
    assert autodiff.check_gradient(f, theta).agrees
    wrong = autodiff.gradient(f, theta)
    wrong[2] *= 1.2
    told = autodiff.check_gradient(f, theta, wrong)
    assert not told.agrees
    assert told.max_error > told.tolerance
    assert not autodiff.check_gradient(f, theta, torch.full_like(theta, torch.nan)).agrees


# ---- back-propagation by hand


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("activation", "module"), [(RELU, nn.ReLU()), (TANH, nn.Tanh()), (SIGMOID, nn.Sigmoid())])
def test_backpropagation_by_hand_is_autograds(activation, module, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 7, (2 + seed % 4,), generator=generator).tolist()
    layers = [nn.Linear(a, b, dtype=dtype) for a, b in pairwise(sizes)]
    weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
    for parameter in (*weights, *biases):
        nn.init.normal_(parameter, generator=generator)
    x = torch.randn(4, sizes[0], generator=generator, dtype=dtype, requires_grad=True)
    y = torch.randn(4, sizes[-1], generator=generator, dtype=dtype)
    h, before, after = x, [], [x]
    for number, layer in enumerate(layers):
        before.append(layer(h))
        before[-1].retain_grad()
        h = module(before[-1]) if number < len(layers) - 1 else before[-1]
        after.append(h)
    loss = (h - y).square().sum() / 8 + 0.05 * sum(weight.square().sum() for weight in weights)
    loss.backward()
    with torch.no_grad():
        forward = forward_pass(x, weights, biases, activation)
        ours = backward_pass(forward, weights, (forward.output - y) / 4, activation, weight_decay=0.1)
        torch.testing.assert_close(forward.output, h)
        torch.testing.assert_close(list(forward.preactivations), before)
        torch.testing.assert_close(list(forward.activations), after[:-1])
        for found, expected in zip(
            (*ours.weights, *ours.biases, ours.x, *ours.deltas), (*weights, *biases, x, *before), strict=True
        ):
            torch.testing.assert_close(found, expected.grad)


# ---- mistakes


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: autodiff.gradient(torch.sin, normal(2)), r"one number, got shape \(2,\)"),
        (lambda: autodiff.gradient(torch.sum, torch.ones(2).int()), "float tensor"),
        (lambda: autodiff.gradient(lambda x: x.sum().item(), normal(2)), "item"),  # pyright: ignore[reportArgumentType]
        (lambda: autodiff.hessian(torch.sin, normal(2)), "one number"),
        (lambda: autodiff.vjp(torch.sin, normal(2)), "adjoint for an output of shape"),
        (lambda: autodiff.vjp(torch.sin, normal(2), normal(3)), r"\(2,\), got \(3,\)"),
        (lambda: autodiff.jvp(torch.sin, normal(2), normal(3)), r"\(2,\), got \(3,\)"),
        (lambda: autodiff.taylor(torch.sin, 0.0, -1), "0 or more"),
        (lambda: autodiff.taylor(torch.sin, normal(2), 1), "one float"),
        (lambda: autodiff.taylor(lambda x: x.expand(2), 0.0, 1), "one number"),
        (lambda: autodiff.quadratic_model(torch.sum, normal(2, 2)), "1 axis"),
        (lambda: autodiff.finite_differences(torch.sin, normal(2)), "one number"),
        (lambda: autodiff.finite_differences(torch.sum, normal(2), step=0.0), "positive step"),
        (lambda: autodiff.finite_differences(torch.sum, torch.ones(2).int()), "float tensor"),
        (lambda: autodiff.check_gradient(torch.sum, normal(2), normal(3)), r"\(2,\), got \(3,\)"),
        (lambda: forward_pass(normal(4, 3), [normal(2, 3)], []), "a bias for each"),
        (lambda: forward_pass(normal(4, 3), [normal(2, 4)], [normal(2)]), "axis d of weight to be 3"),
        (
            lambda: backward_pass(
                forward_pass(normal(4, 3), [normal(2, 3)], [normal(2)]), [normal(2, 3)], normal(4, 1)
            ),
            "axis q",
        ),
        (
            lambda: backward_pass(forward_pass(normal(4, 3), [normal(2, 3)], [normal(2)]), [], normal(4, 2)),
            "the 1 weights",
        ),
        (
            lambda: backward_pass(
                forward_pass(normal(4, 3), [normal(2, 3)], [normal(2)]),
                [normal(2, 3)],
                normal(4, 2),
                weight_decay=math.nan,
            ),
            "0 or more",
        ),
    ],
)
def test_a_mistake_is_one_line(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
