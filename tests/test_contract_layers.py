"""The contract of the dense family: each definition equals the torch.nn module it explains, in value and in every gradient."""

import pytest
import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import affine_definition, dense_definition, relu

# name -> (definition of x, weight, bias; the module that follows nn.Linear in the fast form)
DENSE = {
    "affine": (affine_definition, nn.Identity()),
    "dense": (dense_definition, nn.ReLU()),
    "dense tanh": (lambda x, weight, bias: dense_definition(x, weight, bias, torch.tanh), nn.Tanh()),
}


def gradients(output: Tensor, inputs: list[Tensor], seed: int) -> tuple[Tensor, ...]:
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


def test_dense_names_the_axis_that_does_not_fit():
    with pytest.raises(Mistake, match="axis n of weight to be 3 as in x, came 4"):
        dense_definition(torch.zeros(5, 3), torch.zeros(2, 4), torch.zeros(2))
    with pytest.raises(Mistake, match="axis m of bias to be 2 as in weight, came 1"):
        dense_definition(torch.zeros(5, 3), torch.zeros(2, 3), torch.zeros(1))
