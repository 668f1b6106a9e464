"""The contract of the objectives: definition equals torch's kernel, per example, in value and gradient."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from quoin.objectives import cross_entropy, cross_entropy_definition, gaussian_nll, squared_loss

DTYPES = [torch.float32, torch.float64]


def random_logits(seed: int, dtype: torch.dtype) -> tuple[Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    *batch, num_classes = torch.randint(1, 7, (1 + seed % 4,), generator=generator).tolist()
    return (4 * torch.randn(*batch, num_classes + 1, generator=generator, dtype=dtype)).requires_grad_(), generator


def assert_agree(ours: Tensor, theirs: Tensor, x: Tensor, generator: torch.Generator) -> None:
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    torch.testing.assert_close(torch.autograd.grad(ours, x, upstream), torch.autograd.grad(theirs, x, upstream))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_labels(dtype, seed):
    logits, generator = random_logits(seed, dtype)
    labels = torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)
    ours = cross_entropy_definition(logits, labels)
    assert_agree(ours, cross_entropy(logits, labels), logits, generator)
    # The fused kernel wants the classes second; logits of several batch axes go through that way as a check on our reshaping.
    if logits.ndim > 1:
        peer = functional.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
        torch.testing.assert_close(cross_entropy(logits, labels), peer)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_distributions(dtype, seed):
    logits, generator = random_logits(seed, dtype)
    target = torch.rand(logits.shape, generator=generator, dtype=dtype)
    target = target / target.sum(dim=-1, keepdim=True)
    assert_agree(cross_entropy_definition(logits, target), cross_entropy(logits, target), logits, generator)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
def test_squared_loss(dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = torch.randint(0, 6, (seed % 4,), generator=generator).tolist()
    prediction = torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
    target = torch.randn(shape, generator=generator, dtype=dtype)
    theirs = functional.mse_loss(prediction, target, reduction="none") / 2
    assert_agree(squared_loss(prediction, target), theirs, prediction, generator)


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gaussian_nll(dtype, scale):
    generator = torch.Generator().manual_seed(0)
    prediction = torch.randn(20, generator=generator, dtype=dtype, requires_grad=True)
    target = torch.randn(20, generator=generator, dtype=dtype)
    theirs = -torch.distributions.Normal(prediction, scale).log_prob(target)
    assert_agree(gaussian_nll(prediction, target, scale), theirs, prediction, generator)


@pytest.mark.parametrize("loss", [cross_entropy_definition, cross_entropy])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_is_stable(loss, dtype):
    logits = torch.tensor([[1000, -1000], [-1000, 1000], [1000, 1000], [1000, 990]], dtype=dtype, requires_grad=True)
    losses = loss(logits, torch.tensor([0, 0, 1, 0]))
    # log(1 + e^-2000), 2000 + log(1 + e^-2000), log 2, log(1 + e^-10)
    expected = torch.tensor([0.0, 2000.0, 0.6931471805599453, 4.5398899216870535e-05], dtype=dtype)
    # Four roundings of one, not of the thousand that the logits share.
    torch.testing.assert_close(losses, expected, rtol=0, atol=4 * torch.finfo(dtype).eps)
    losses.sum().backward()
    assert logits.grad is not None
    p = 4.5397868702434395e-05  # e^-10 / (1 + e^-10)
    slopes = torch.tensor([[0.0, 0.0], [-1.0, 1.0], [0.5, -0.5], [-p, p]], dtype=dtype)
    torch.testing.assert_close(logits.grad, slopes, rtol=0, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("loss", [cross_entropy_definition, cross_entropy])
def test_an_impossible_class_that_nobody_asked_for_does_not_count(loss):
    logits = torch.tensor([[0.0, 0.0, -torch.inf]])
    torch.testing.assert_close(loss(logits, torch.tensor([1])), torch.tensor([2.0]).log())
