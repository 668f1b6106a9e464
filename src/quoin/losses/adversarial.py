"""The game between a generator G and a discriminator D: its value, the loss G really learns from, and penalties on the
gradients of D.

The discriminator gives the probability that an example is real: D(x) in the definitions, and its logit in what is
trained. Where both distributions are known as tables or densities, so are the best discriminator and the value it
reaches.

    n real examples, m fake ones, s outcomes
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor
from torch.nn.functional import logsigmoid

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import check_probs_pair
from quoin.tensor import check_floating, check_same_dtype

__all__ = [
    "InputGradients",
    "adversarial_value",
    "gradient_penalty",
    "input_gradients",
    "input_gradients_definition",
    "interpolate_examples",
    "minimax_value",
    "minimax_value_definition",
    "non_saturating_loss",
    "non_saturating_loss_definition",
    "optimal_discriminator",
    "r1_penalty",
    "saturating_loss",
]


def minimax_value_definition(real: Float[Tensor, "n"], fake: Float[Tensor, "m"]) -> Float[Tensor, ""]:
    """V(D, G) = (1/n) Σ_i ln D(x_i) + (1/m) Σ_j ln(1 - D(G(z_j))) from probabilities; D wants it large, G small.

    Args:
        real: D(x_i) of the real examples.
        fake: D(G(z_j)) of the generated ones.

    >>> minimax_value_definition(torch.tensor([0.5]), torch.tensor([0.5]))  # a D that cannot classify: -ln 4
    tensor(-1.3863)

    Notes: D5.2-7.
    """
    _check_probs(real, "real")
    _check_probs(fake, "fake")
    return real.log().mean() + (1 - fake).log().mean()


def minimax_value(real: Float[Tensor, "n"], fake: Float[Tensor, "m"]) -> Float[Tensor, ""]:
    """`minimax_value_definition` from logits a = ln D/(1 - D): no logarithm of what rounds to 0.

    Args:
        real: Logits of the discriminator at real examples.
        fake: Its logits at generated ones.

    Notes: D5.2-7.
    """
    _check_some(real, "real")
    return logsigmoid(real).mean() + saturating_loss(fake).mean()


def saturating_loss(fake: Float[Tensor, "m"]) -> Float[Tensor, "m"]:
    """ln(1 - D(G(z))) of each fake from its logit a, the term of V that G can change; its derivative in a is -D.

    Notes: D5.2-7.
    """
    _check_some(fake, "fake")
    return logsigmoid(-fake)


def non_saturating_loss_definition(fake: Float[Tensor, "m"]) -> Float[Tensor, "m"]:
    """-ln D(G(z)) of each fake from probabilities, what G minimises in practice: the same fixed point as under V, by
    another gradient.

    Notes: D5.2-7.
    """
    _check_probs(fake, "fake")
    return -fake.log()


def non_saturating_loss(fake: Float[Tensor, "m"]) -> Float[Tensor, "m"]:
    """`non_saturating_loss_definition` from logits a; its derivative in a is D - 1.

    A generator whose fakes are all found out, D near 0, still learns by it, and hardly by `saturating_loss`.

    Notes: D5.2-7.
    """
    _check_some(fake, "fake")
    return -logsigmoid(fake)  # softplus(-a) is the same, but torch's is linear beyond 20


def optimal_discriminator(p: Real[Tensor, "*shape"], p_fake: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """D*(x) = p(x) / (p(x) + p_G(x)) from two densities, or two tables, at the same x; 1/2 where neither has any mass.

    >>> optimal_discriminator(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 0.5]))
    tensor([1.0000, 0.5000, 0.0000])

    Notes: D5.2-7.
    """
    check_same_dtype(p, p_fake)
    if p.shape != p_fake.shape or not ((p >= 0) & (p_fake >= 0)).all():  # NaN fails too
        raise UserError(
            f"expected two tables of numbers from 0 up, got shapes {tuple(p.shape)} and {tuple(p_fake.shape)}; "
            "give densities"
        )
    total = p + p_fake
    return torch.where(total == 0, 0.5, p / torch.where(total == 0, 1, total))


def adversarial_value(
    p: Float[Tensor, "*batch s"], p_fake: Float[Tensor, "*batch s"], discriminator: Float[Tensor, "*batch s"]
) -> Float[Tensor, "*batch"]:
    """V(D, G) = Σ_x p(x) ln D(x) + p_G(x) ln(1 - D(x)) of distributions that are tables, D(x) at the same outcomes.

    At `optimal_discriminator` it is 2 JS(p, p_G) - ln 4, which is least, -ln 4, where p_G = p.

    Notes: D5.2-7.
    """
    check_probs_pair(p, p_fake)
    if discriminator.shape != p.shape or not ((discriminator >= 0) & (discriminator <= 1)).all():
        got = f"shape {tuple(discriminator.shape)}, or values outside"
        raise UserError(
            f"expected one probability D(x) for each of {tuple(p.shape)} outcomes, got {got}; give numbers from 0 to 1"
        )
    return (torch.xlogy(p, discriminator) + torch.xlogy(p_fake, 1 - discriminator)).sum(dim=-1)


@shown
class InputGradients(NamedTuple):
    """What a function of examples gives, and how it changes with each of them."""

    output: Float[Tensor, "n"]
    gradients: Float[Tensor, "n ..."]  # of the shape of the examples


def input_gradients_definition(function: Callable[[Tensor], Tensor], x: Float[Tensor, "n ..."]) -> InputGradients:
    """∇f(x_i), one example at a time; it can be differentiated again, so that a penalty on it reaches the weights of
    f.

    Args:
        function: f, from a batch of examples to one number for each.
    """
    _check_some(x, "x")
    outputs, gradients = [], []
    for example in x:
        example = example.detach().unsqueeze(0).requires_grad_()
        with torch.enable_grad():
            output = function(example).sum()
            gradients.append(torch.autograd.grad(output, example, create_graph=True)[0])
        outputs.append(output)
    return InputGradients(torch.stack(outputs), torch.cat(gradients))


def input_gradients(function: Callable[[Tensor], Tensor], x: Float[Tensor, "n ..."]) -> InputGradients:
    """`input_gradients_definition` for all examples at once, as the gradient of Σ_i f(x_i).

    That holds if no example changes f at another, so that f must have no batch normalization in training mode.

    Args:
        function: f, from a batch of examples to one number for each.
    """
    _check_some(x, "x")
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        output = function(x)
        if output.shape != x.shape[:1]:
            got = f"{tuple(output.shape)} for {len(x)}"
            raise UserError(
                f"expected one number for each example, got shape {got}; let the discriminator give one logit"
            )
        return InputGradients(output, torch.autograd.grad(output.sum(), x, create_graph=True)[0])


def r1_penalty(gradients: Float[Tensor, "n ..."], weight: float) -> Float[Tensor, ""]:
    """(γ/2) (1/n) Σ_i |∇D(x_i)|² at real examples, D its logit (R1): a discriminator that is flat where the data are.

    The game of a point mass against a linear D shows what it is for: without it both run in circles, with it they come
    to rest.

    Args:
        gradients: ∇D(x_i), as `input_gradients` gives them.
        weight: γ, from 0 up.
    """
    _check_penalty_weight(weight)
    _check_some(gradients, "gradients")
    return weight / 2 * gradients.flatten(1).square().sum(dim=1).mean()


def gradient_penalty(gradients: Float[Tensor, "n ..."], weight: float) -> Float[Tensor, ""]:
    """λ (1/n) Σ_i (|∇D(x_i)| - 1)² at `interpolate_examples`, D a critic without sigmoid (WGAN-GP): gradients of norm 1
    between real and fake.

    Args:
        gradients: ∇D(x_i), as `input_gradients` gives them.
        weight: λ, from 0 up.
    """
    _check_penalty_weight(weight)
    _check_some(gradients, "gradients")
    norms = torch.linalg.vector_norm(gradients.flatten(1), dim=1)  # has a gradient, 0, at 0
    return weight * (norms - 1).square().mean()


def interpolate_examples(
    real: Float[Tensor, "n *shape"], fake: Float[Tensor, "n *shape"], *, generator: torch.Generator
) -> Float[Tensor, "n *shape"]:
    """u x + (1 - u) G(z) with a uniform u in [0, 1) for each pair: points on the way from fake to real."""
    if real.shape != fake.shape:
        raise UserError(
            f"expected as many fakes as real examples, of one shape, got {tuple(real.shape)} and {tuple(fake.shape)}; "
            "pair them"
        )
    _check_some(real, "real")
    u = torch.rand(len(real), generator=generator, dtype=real.dtype, device=real.device)
    return torch.lerp(fake, real, u.reshape(-1, *[1] * (real.ndim - 1)))


def _check_some(values: Tensor, name: str) -> None:
    check_floating(values, name)
    if values.ndim == 0 or len(values) == 0:
        raise UserError(
            f"expected at least one example in {name}, got shape {tuple(values.shape)}; give a batch with its "
            "examples first"
        )


def _check_probs(values: Tensor, name: str) -> None:
    _check_some(values, name)
    if not ((values >= 0) & (values <= 1)).all():  # NaN fails too
        raise UserError(
            f"expected probabilities D(x) from 0 to 1, got others in {name}; the functions without `_definition` "
            "take logits"
        )


def _check_penalty_weight(weight: float) -> None:
    if not 0 <= weight < math.inf:
        raise UserError(
            f"expected a penalty of at least 0 and finite, got {weight}; a negative one rewards steep discriminators"
        )
