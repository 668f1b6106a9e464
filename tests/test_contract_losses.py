"""The contract of the losses: definition equals torch's kernel, per example, in value and gradient."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from quoin.losses import (
    cross_entropy,
    cross_entropy_definition,
    cross_entropy_from_probs,
    gaussian_nll,
    hinge_loss,
    logistic_loss,
    logistic_loss_definition,
    mae,
    mean_power_error,
    mse,
    nll_loss,
    squared_loss,
)
from quoin.metrics import roc_auc, roc_auc_definition
from quoin.prob import binary_log_prob, binary_log_prob_definition

DTYPES = [torch.float32, torch.float64]


def random_logits(seed: int, dtype: torch.dtype) -> tuple[Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    *batch, num_classes = torch.randint(1, 7, (1 + seed % 4,), generator=generator).tolist()
    return (4 * torch.randn(*batch, num_classes + 1, generator=generator, dtype=dtype)).requires_grad_(), generator


def assert_agree(ours: Tensor, theirs: Tensor, x: Tensor, generator: torch.Generator) -> None:
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=generator, dtype=ours.dtype)
    ours, theirs = (torch.autograd.grad(each, x, upstream, retain_graph=True) for each in (ours, theirs))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_labels(dtype, seed):
    logits, generator = random_logits(seed, dtype)
    labels = torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)
    ours = cross_entropy_definition(logits, labels)
    assert_agree(ours, cross_entropy(logits, labels), logits, generator)
    # The fused kernel wants the classes second; logits of several batch axes go through that way as a check on our
    # reshaping.
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


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_with_class_weights(dtype, seed):
    logits, generator = random_logits(seed, dtype)
    weights = torch.rand(logits.shape[-1], generator=generator, dtype=dtype)
    labels = torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)
    soft = torch.rand(logits.shape, generator=generator, dtype=dtype)
    soft = soft / soft.sum(dim=-1, keepdim=True)
    for target in (labels, soft):
        ours = cross_entropy_definition(logits, target, class_weights=weights)
        assert_agree(ours, cross_entropy(logits, target, class_weights=weights), logits, generator)
        ones = torch.ones_like(weights)
        torch.testing.assert_close(cross_entropy(logits, target, class_weights=ones), cross_entropy(logits, target))
    torch.testing.assert_close(
        cross_entropy(logits, labels, class_weights=weights), weights[labels] * cross_entropy(logits, labels)
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES)
def test_likelihoods_agree_with_torch(dtype, seed):
    logits, generator = random_logits(seed, dtype)
    labels = torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)
    peer = -torch.distributions.Categorical(logits=logits).log_prob(labels)
    assert_agree(nll_loss(logits.log_softmax(-1), labels), peer, logits, generator)
    assert_agree(cross_entropy_from_probs(logits.softmax(-1), labels), peer, logits, generator)
    soft = torch.rand(logits.shape, generator=generator, dtype=dtype)
    soft = soft / soft.sum(dim=-1, keepdim=True)
    assert_agree(cross_entropy_from_probs(logits.softmax(-1), soft), cross_entropy(logits, soft), logits, generator)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_of_a_margin(dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    margins = (3 * torch.randn(20, generator=generator, dtype=dtype)).requires_grad_()
    assert_agree(logistic_loss_definition(margins), logistic_loss(margins), margins, generator)
    peer = functional.soft_margin_loss(margins, torch.ones_like(margins), reduction="none")
    assert_agree(logistic_loss(margins), peer, margins, generator)
    # torch's hinge embedding loss of label -1 is max(0, 1 - x).
    peer = functional.hinge_embedding_loss(margins, -torch.ones_like(margins), reduction="none")
    assert_agree(hinge_loss(margins), peer, margins, generator)
    y = torch.where(torch.rand(20, generator=generator) < 0.5, 1, -1)
    ours = binary_log_prob_definition(margins, y)
    assert_agree(ours, binary_log_prob(margins, y), margins, generator)
    peer = -functional.binary_cross_entropy_with_logits(2 * margins, (y == 1).to(dtype), reduction="none")
    assert_agree(ours, peer, margins, generator)


@pytest.mark.parametrize("form", [logistic_loss, logistic_loss_definition])
@pytest.mark.parametrize("dtype", DTYPES)
def test_log_loss_is_stable(form, dtype):
    margins = torch.tensor([-1000.0, -25.0, 0.0, 25.0, 1000.0], dtype=dtype, requires_grad=True)
    losses = form(margins)
    # -25 is where torch's softplus would be off by e^-25, 1e-11 of a float64's digits.
    expected = torch.tensor([1000.0, 25.000000000013888, 0.6931471805599453, 1.3887943864771144e-11, 0.0], dtype=dtype)
    torch.testing.assert_close(losses, expected, rtol=2 * torch.finfo(dtype).eps, atol=2 * torch.finfo(dtype).eps)
    (slopes,) = torch.autograd.grad(losses.sum(), margins)
    torch.testing.assert_close(slopes, torch.tensor([-1.0, -1.0, -0.5, 0.0, 0.0], dtype=dtype), rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_an_error(dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = torch.randint(1, 6, (1 + seed % 3,), generator=generator).tolist()
    prediction = torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
    target = torch.randn(shape, generator=generator, dtype=dtype)
    assert_agree(mean_power_error(prediction, target, 1), mae(prediction, target), prediction, generator)
    assert_agree(mean_power_error(prediction, target, 2), mse(prediction, target), prediction, generator)
    norm = torch.linalg.vector_norm(prediction - target, 2.5, dim=-1) ** 2.5 / shape[-1]
    assert_agree(mean_power_error(prediction, target, 2.5), norm, prediction, generator)


@pytest.mark.parametrize("seed", range(10))
def test_area_under_the_roc_curve(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(60, generator=generator).mul(3).round() / 3  # ties
    labels = (torch.rand(60, generator=generator) < 0.3).long()
    assert roc_auc(scores, labels) == pytest.approx(roc_auc_definition(scores, labels), abs=1e-14)
