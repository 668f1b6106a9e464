"""The contract of the dense family: each definition equals the torch.nn module it explains, in value and in every
gradient."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from quoin import layers
from quoin.errors import UserError
from quoin.layers import (
    affine_definition,
    collapse,
    convolution_as_dense,
    dense_definition,
    graph_as_dense,
    recurrence_as_dense,
    relu,
)

# name -> (definition of x, weight, bias; the module that follows nn.Linear in the fast form)
DENSE = {
    "affine": (affine_definition, nn.Identity()),
    "dense": (dense_definition, nn.ReLU()),
    "dense tanh": (lambda x, weight, bias: dense_definition(x, weight, bias, torch.tanh), nn.Tanh()),
}


def gradients(output: Tensor, inputs: Sequence[Tensor], seed: int) -> tuple[Tensor, ...]:
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed), dtype=output.dtype)
    return torch.autograd.grad(output, inputs, upstream)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DENSE)
def test_dense_agrees_with_torch(name, dtype, seed):
    definition, after = DENSE[name]
    generator = torch.Generator().manual_seed(seed)
    *batch, inputs, outputs = torch.randint(1, 7, (2 + seed % 4,), generator=generator).tolist()
    linear = nn.Linear(inputs, outputs, dtype=dtype)
    for parameter in linear.parameters():
        nn.init.normal_(parameter, generator=generator)
    x = torch.randn(*batch, inputs, generator=generator, dtype=dtype, requires_grad=True)
    ours, theirs = definition(x, linear.weight, linear.bias), after(linear(x))
    torch.testing.assert_close(ours, theirs)
    arguments = [x, linear.weight, linear.bias]
    torch.testing.assert_close(gradients(ours, arguments, seed), gradients(theirs, arguments, seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_relu_agrees_with_torch_even_where_it_is_awkward(dtype):
    values = torch.tensor([-torch.inf, -2.0, -0.0, 0.0, 1e-40, 2.0, torch.inf, torch.nan], dtype=dtype)
    ours, theirs = values.clone().requires_grad_(), values.clone().requires_grad_()
    torch.testing.assert_close(relu(ours), torch.relu(theirs), equal_nan=True, rtol=0, atol=0)
    relu(ours)[:-1].sum().backward()
    torch.relu(theirs)[:-1].sum().backward()
    assert ours.grad is not None
    assert torch.equal(ours.grad, torch.tensor([0, 0, 0, 0, 1, 1, 1, 0], dtype=dtype))
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=0)


# definition, its derivative, the fast form
ACTIVATIONS = {
    "relu": (layers.relu, layers.relu_derivative, torch.relu),
    "sigmoid": (layers.sigmoid, layers.sigmoid_derivative, torch.sigmoid),
    "tanh": (layers.tanh, layers.tanh_derivative, torch.tanh),
    "gelu": (layers.gelu, layers.gelu_derivative, nn.functional.gelu),
    "elu": (layers.elu, layers.elu_derivative, nn.functional.elu),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_and_its_derivative_agree_with_torch(name, dtype):
    definition, derivative, fast = ACTIVATIONS[name]
    special = [-1000.0, -400.0, -90.0, -45.0, -1e-9, -0.0, 0.0, 1e-9, 45.0, 90.0, 400.0, 1000.0]
    values = torch.cat([torch.tensor(special), 4 * torch.randn(500, generator=torch.Generator().manual_seed(0))]).to(
        dtype
    )
    ours, theirs = values.clone().requires_grad_(), values.clone().requires_grad_()
    for x, form in ((ours, definition), (theirs, fast)):
        form(x).sum().backward()
    torch.testing.assert_close(definition(ours), fast(theirs))
    assert definition(ours).dtype == derivative(ours).dtype == dtype
    assert ours.grad is not None
    assert ours.grad.isfinite().all()
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(derivative(values), theirs.grad)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu", "elu"])
def test_an_activation_keeps_its_digits_where_it_is_small(name):
    """Relative error, in float32 against float64: a difference of nearly equal numbers would lose all of them."""
    definition, _, fast = ACTIVATIONS[name]
    x = -torch.logspace(-6, 0.6, 50)  # to about -4
    ours, exact = definition(x).double(), fast(x.double())
    if name == "gelu":
        exact = x.double() * torch.special.ndtr(x.double())
    assert float((ours / exact - 1).abs().max()) < 20 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_passes_on_what_is_not_a_number(name):
    definition, derivative, _ = ACTIVATIONS[name]
    assert definition(torch.tensor([torch.nan])).isnan().all()
    assert derivative(torch.tensor([torch.nan])).isnan().all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_affine_maps_collapse_with_their_gradients(dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 6, (2 + seed % 3,), generator=generator).tolist()
    stack = nn.Sequential(*(nn.Linear(n, m, dtype=dtype) for n, m in pairwise(sizes)))
    x = torch.randn(4, sizes[0], generator=generator, dtype=dtype)
    one = collapse([layer.weight for layer in stack], [layer.bias for layer in stack])  # type: ignore[misc]
    ours, theirs = affine_definition(x, one.weight, one.bias), stack(x)
    torch.testing.assert_close(ours, theirs)
    arguments = list(stack.parameters())
    torch.testing.assert_close(gradients(ours, arguments, seed), gradients(theirs, arguments, seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_structured_matrices_agree_with_their_layers_in_every_gradient(dtype):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()

    kernel, x = normal(3), normal(2, 7)
    ours, theirs = (
        x @ convolution_as_dense(kernel, 7).T,
        torch.conv1d(x.unsqueeze(1), kernel.reshape(1, 1, -1)).squeeze(1),
    )
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(ours, [kernel, x], 1), gradients(theirs, [kernel, x], 1))

    cell, sequence = nn.RNN(2, 3, nonlinearity="relu", dtype=dtype), normal(4, 2)
    weight_ih, weight_hh, first_bias, second_bias = cell.parameters()
    h = torch.zeros(3, dtype=dtype)
    for matrix in recurrence_as_dense(weight_ih, weight_hh, 4):
        assert matrix.shape == (3, 4 * 2 + 3)
        h = dense_definition(torch.cat([sequence.flatten(), h]), matrix, first_bias + second_bias)
    last, inputs = cell(sequence)[1][0], [weight_ih, weight_hh, sequence]
    torch.testing.assert_close(h, last)
    torch.testing.assert_close(gradients(h, inputs, 2), gradients(last, inputs, 2))

    adjacency, weight, nodes = normal(5, 5), normal(3, 2), normal(5, 3)
    ours, theirs = graph_as_dense(adjacency, weight) @ nodes.flatten(), (adjacency @ nodes @ weight).flatten()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        gradients(ours, [adjacency, weight, nodes], 3), gradients(theirs, [adjacency, weight, nodes], 3)
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: collapse([], []), "at least one weight"),
        (
            lambda: collapse([torch.zeros(2, 3), torch.zeros(1, 4)], [torch.zeros(2), torch.zeros(1)]),
            "axis m of next_weight to be 2",
        ),
        (lambda: convolution_as_dense(torch.zeros(4), 3), "a kernel of 1 to 3 entries for inputs of length 3, got 4"),
        (lambda: convolution_as_dense(torch.zeros(0), 3), "got 0"),
        (lambda: recurrence_as_dense(torch.zeros(2, 3), torch.zeros(3, 3), 2), "axis m of weight_hh to be 2"),
        (lambda: recurrence_as_dense(torch.zeros(2, 3), torch.zeros(2, 2), 0), "at least one step"),
        (lambda: graph_as_dense(torch.zeros(2, 3), torch.zeros(2, 2)), "axis v of adjacency to be 2"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_dense_names_the_axis_that_does_not_fit():
    with pytest.raises(UserError, match="axis n of weight to be 3 as in x, got 4"):
        dense_definition(torch.zeros(5, 3), torch.zeros(2, 4), torch.zeros(2))
    with pytest.raises(UserError, match="axis m of bias to be 2 as in weight, got 1"):
        dense_definition(torch.zeros(5, 3), torch.zeros(2, 3), torch.zeros(1))
