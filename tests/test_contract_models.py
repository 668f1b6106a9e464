"""The contract of the first models: module equals definition in value and gradient; the closed-form fit equals its
peers'."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression as Peer
from torch import nn

from quoin.errors import UserError
from quoin.models import MLP, LinearRegression, least_squares, linear_regression_definition, mlp_definition
from seeds import seeded

DTYPES = [torch.float32, torch.float64]


def linears(model: nn.Module) -> list[nn.Linear]:
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_regression_agrees_with_its_definition(dtype, seed):
    generator = seeded(seed)
    *batch, num_features = torch.randint(1, 7, (1 + seed % 3,), generator=generator).tolist()
    model = LinearRegression(num_features).to(dtype)
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=generator)
    x = torch.randn(*batch, num_features, generator=generator, dtype=dtype, requires_grad=True)
    ours, theirs = linear_regression_definition(x, model.linear.weight[0], model.linear.bias[0]), model(x)
    assert theirs.shape == tuple(batch)
    torch.testing.assert_close(ours, theirs)
    arguments = [x, *model.parameters()]
    upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
    torch.testing.assert_close(
        torch.autograd.grad(ours, arguments, upstream), torch.autograd.grad(theirs, arguments, upstream)
    )


def test_linear_regression_starts_at_zero_and_names_a_wrong_width():
    model = LinearRegression(3)
    assert torch.equal(model(torch.ones(4, 3)), torch.zeros(4))
    with pytest.raises(UserError, match="examples of 3 features"):
        model(torch.ones(4, 2))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", DTYPES)
def test_mlp_agrees_with_its_definition(dtype, seed):
    generator = seeded(seed)
    sizes = torch.randint(1, 9, (2 + seed % 4,), generator=generator).tolist()
    model = MLP(sizes, generator=generator).to(dtype)
    for layer in linears(model):
        nn.init.normal_(layer.bias, generator=generator)
    x = torch.randn(6, sizes[0], generator=generator, dtype=dtype, requires_grad=True)
    weights, biases = [layer.weight for layer in linears(model)], [layer.bias for layer in linears(model)]
    ours, theirs = mlp_definition(x, weights, biases), model(x)
    torch.testing.assert_close(ours.output, theirs)
    assert [h.shape[-1] for h in ours.hidden] == sizes[1:-1]
    torch.testing.assert_close(ours.hidden[-1] if ours.hidden else x, model.features(x))
    torch.testing.assert_close(model.head(model.features(x)), theirs, rtol=0, atol=0)
    arguments = [x, *model.parameters()]
    upstream = torch.randn(theirs.shape, generator=generator, dtype=dtype)
    torch.testing.assert_close(
        torch.autograd.grad(ours.output, arguments, upstream), torch.autograd.grad(theirs, arguments, upstream)
    )


def test_mlp_takes_another_activation():
    model = MLP([3, 4, 2], activation=nn.Tanh, generator=seeded(0))
    weights, biases = [layer.weight for layer in linears(model)], [layer.bias for layer in linears(model)]
    x = torch.randn(5, 3, generator=seeded(1))
    torch.testing.assert_close(mlp_definition(x, weights, biases, torch.tanh).output, model(x))


def test_mlp_counts_and_flattens():
    model = MLP([64, 32, 16, 10], generator=seeded(0))
    assert (model.depth, model.width) == (2, 32)
    assert MLP([64, 10], generator=seeded(0)).depth == 0
    images = torch.randn(7, 1, 8, 8, generator=seeded(1))
    assert torch.equal(model(images), model(images.reshape(7, 64)))
    assert model(images).shape == (7, 10)


def test_mlp_starts_as_he_from_its_generator_alone():
    first, again = MLP([400, 300, 200], generator=seeded(3)), MLP([400, 300, 200], generator=seeded(3))
    other = MLP([400, 300, 200], generator=seeded(4))
    for layer, same, different in zip(linears(first), linears(again), linears(other)):
        assert torch.equal(layer.weight, same.weight)
        assert not torch.equal(layer.weight, different.weight)
        assert not layer.bias.any()
        n = layer.weight.numel()
        # The variance of n normal draws has relative deviation sqrt(2/n): six of them.
        assert abs(float(layer.weight.detach().double().var()) * layer.in_features / 2 - 1) < 6 * (2 / n) ** 0.5


@pytest.mark.parametrize("sizes", [[], [3], [3, 0], [3, -1, 2], [3, 2.5]])
def test_mlp_refuses_sizes(sizes):
    with pytest.raises(UserError, match="at least two positive layer sizes"):
        MLP(sizes)


@pytest.mark.parametrize("shape", [(4, 7), (8,), (4, 2, 3)])
def test_mlp_names_a_wrong_input(shape):
    with pytest.raises(UserError, match="examples of 8 numbers each"):
        MLP([8, 2])(torch.zeros(shape))


def test_mlp_definition_refuses_unpaired_layers():
    with pytest.raises(UserError, match="one bias for each"):
        mlp_definition(torch.zeros(3), [torch.zeros(2, 3)], [])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_agrees_with_scikit_learn(dtype, seed):
    generator = seeded(seed)
    X = torch.randn(30, 1 + seed % 5, generator=generator, dtype=dtype)
    y = torch.randn(30, generator=generator, dtype=dtype)
    fit, peer = least_squares(X, y), Peer().fit(X.double().numpy(), y.double().numpy())
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(fit.weight.numpy(), peer.coef_, atol=tolerance)
    np.testing.assert_allclose(float(fit.bias), peer.intercept_, atol=tolerance)
    assert fit.weight.dtype == dtype
    assert fit.bias.shape == ()


def test_least_squares_is_the_shortest_when_columns_repeat():
    generator = seeded(0)
    column = torch.randn(20, generator=generator, dtype=torch.float64)
    X = torch.stack([column, column, column, torch.ones(20, dtype=torch.float64)], dim=1)
    fit = least_squares(X, 3 * column + 4)
    # The slope is shared by three equal columns and the constant by two (a feature of ones and the bias).
    expected = torch.tensor([1, 1, 1, 2], dtype=torch.float64)
    torch.testing.assert_close(fit.weight, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(fit.bias, torch.tensor(2, dtype=torch.float64), rtol=1e-10, atol=1e-10)


def test_least_squares_is_the_shortest_when_features_outnumber_examples():
    generator = seeded(1)
    X, y = (
        torch.randn(4, 9, generator=generator, dtype=torch.float64),
        torch.randn(4, generator=generator, dtype=torch.float64),
    )
    fit = least_squares(X, y)
    expected = np.linalg.pinv(np.hstack([X.numpy(), np.ones((4, 1))])) @ y.numpy()
    np.testing.assert_allclose(torch.cat([fit.weight, fit.bias.unsqueeze(0)]).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (torch.zeros(3, 2), torch.zeros(4), "axis n of y to be 3"),
        (torch.zeros(3, 2), torch.zeros(3, 1, 1), "y with 1 axis"),
        (torch.zeros(0, 2), torch.zeros(0), "at least one example"),
        (torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3), "one float type"),
        (torch.zeros(3, 2), torch.zeros(3, dtype=torch.float64), "one float type"),
        (torch.full((3, 2), torch.nan), torch.zeros(3), "finite"),
    ],
)
def test_least_squares_refuses(X, y, words):
    with pytest.raises(UserError, match=words):
        least_squares(X, y)
