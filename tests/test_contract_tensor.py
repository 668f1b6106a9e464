"""The contract of the tensor family: each definition equals torch's kernel, in value and gradient, on random shapes."""

import pytest
import torch

from quoin.tensor import log_sum_exp, softmax

PAIRS = {
    "softmax": (softmax, torch.softmax),
    "log_sum_exp": (log_sum_exp, torch.logsumexp),
}


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_definition_agrees_with_torch(name, dtype, seed):
    definition, fast = PAIRS[name]
    generator = torch.Generator().manual_seed(seed)
    shape = torch.randint(1, 6, (1 + seed % 4,), generator=generator).tolist()
    axis = seed % len(shape) - (seed % 2) * len(shape)  # from the front and from the back
    x = (5 * torch.randn(shape, generator=generator, dtype=dtype)).requires_grad_()
    with torch.no_grad():
        x.flatten()[0] = x.flatten()[-1]  # a tie for the maximum now and then
    ours, theirs = definition(x, axis), fast(x, axis)
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
    torch.testing.assert_close(torch.autograd.grad(ours, x, upstream), torch.autograd.grad(theirs, x, upstream))


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_agree_with_finite_differences(name):
    x = torch.tensor([[0.3, -1.2, 2.0], [1.0, 1.0, -4.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: PAIRS[name][0](value, 1), x)
