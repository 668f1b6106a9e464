"""Two variables in a table: the joint distribution P[X = i, Y = j] on the last two axes, marginals, conditionals.

A kernel has one distribution of X in each row, a row for each y: it is laid out for sampling and for
`joint_from_conditional`, its inverse. Densities are conditioned in density.py, Gaussians in conditioning.py.   n values
of X, m values of Y
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.checks import check_joint_probs, check_probs
from quoin.prob.divergence import total_variation_distance
from quoin.tensor import check_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "bayes_rule",
    "bayes_rule_definition",
    "bayes_rule_from_log",
    "condition_discrete",
    "conditional_table",
    "independence_gap",
    "joint_from_conditional",
]


def condition_discrete(joint: Float[Tensor, "*batch n m"] | ArrayLike, y: int) -> Float[Tensor, "*batch n"]:
    """P[X = x | Y = y] = P[X = x, Y = y] / P[Y = y]; a y of probability zero raises an error.

    Args:
        joint: P[X = x, Y = y], a row for each x and a column for each y.
        y: The number of its column.

    >>> condition_discrete(torch.tensor([[0.125, 0.5], [0.375, 0.0]]), 0)
    tensor([0.2500, 0.7500])

    Notes: D5-11.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    if not -joint.shape[-1] <= y < joint.shape[-1]:
        raise UserError(
            f"expected a value of Y from 0 to {joint.shape[-1] - 1}, got {y}; it numbers the columns of the table"
        )
    column = joint[..., y]
    total = column.sum(dim=-1, keepdim=True)
    if not bool((total > 0).all()):
        raise UserError(
            f"expected a y of positive probability to condition on, got Y = {y} of probability 0; see "
            "`conditional_table` for all y"
        )
    return column / total


def conditional_table(
    joint: Float[Tensor, "*batch n m"] | ArrayLike, *, fallback: Float[Tensor, "*#batch n"] | ArrayLike | None = None
) -> Float[Tensor, "*batch m n"]:
    """The kernel of X given Y, `condition_discrete` for every y: P[X in A, Y in B] = sum_{y in B} P_{X|Y=y}[A]
    P[Y = y].

    Args:
        joint: P[X = x, Y = y], a row for each x and a column for each y.
        fallback: The row where P[Y = y] = 0, any distribution of X, for every row must be a distribution; P_X itself
            unless given.

    >>> conditional_table(torch.tensor([[0.125, 0.5, 0.0], [0.375, 0.0, 0.0]]))
    tensor([[0.2500, 0.7500],
            [1.0000, 0.0000],
            [0.6250, 0.3750]])

    Notes: D5-9, D5-11.
    """
    joint = float_tensor(joint, "joint", fallback)
    fallback = None if fallback is None else float_tensor(fallback, "fallback", joint)
    check_joint_probs(joint)
    if fallback is None:
        fallback = joint.sum(dim=-1)
    check_probs(fallback, "fallback")
    if fallback.shape[-1] != joint.shape[-2]:
        raise UserError(
            f"expected `fallback` on the {joint.shape[-2]} values of X, got {fallback.shape[-1]}; give a "
            "probability for each"
        )
    total = joint.sum(dim=-2).unsqueeze(-1)
    never = total == 0
    return torch.where(never, fallback.unsqueeze(-2), joint.mT / torch.where(never, 1, total))


def joint_from_conditional(
    kernel: Float[Tensor, "*batch m n"] | ArrayLike, probs: Float[Tensor, "*batch m"] | ArrayLike
) -> Float[Tensor, "*batch n m"]:
    """P[X = x, Y = y] = P_{X|Y=y}(x) P[Y = y], which puts together what `conditional_table` took apart.

    Args:
        kernel: P_{X|Y=y}, a row for each y.
        probs: P[Y = y].

    Notes: D5-9.
    """
    kernel = float_tensor(kernel, "kernel", probs)
    probs = float_tensor(probs, "probs", kernel)
    check_probs(kernel, "the kernel's rows")
    check_probs(probs, "the distribution of Y")
    check_shapes("... m n, ... m", kernel=kernel, probs=probs)
    return (kernel * probs.unsqueeze(-1)).mT


def independence_gap(joint: Float[Tensor, "*batch n m"] | ArrayLike) -> Float[Tensor, "*batch"]:
    """The largest |P[(X, Y) in C] - (P_X x P_Y)[C]| over all events C of pairs: zero exactly if X and
    Y are independent.

    Args:
        joint: P[X = x, Y = y], a row for each x and a column for each y.

    Notes: D5-4.
    """
    joint = float_tensor(joint, "joint")
    check_joint_probs(joint)
    product = joint.sum(dim=-1, keepdim=True) * joint.sum(dim=-2, keepdim=True)
    return total_variation_distance(joint.flatten(-2), product.flatten(-2))


def bayes_rule_definition(
    prior: Float[Tensor, "classes"] | ArrayLike, likelihood: Real[Tensor, "*batch classes"] | ArrayLike
) -> Float[Tensor, "*batch classes"]:
    """P(c | x) = p(x | c) P(c) / p(x), where p(x) = sum_c p(x | c) P(c) is the sum of the joint distribution
    over the classes.

    Notes: D5.2-1, D5.2-2.
    """
    prior = float_tensor(prior, "prior", likelihood)
    likelihood = number_tensor(likelihood, "likelihood", prior)
    check_shapes("q, ... q", prior=prior, likelihood=likelihood)
    check_probs(prior, "the prior")
    if not (likelihood >= 0).all():  # NaN fails too
        raise UserError("expected likelihoods of at least 0, got negative ones or NaN; give densities, not their logs")
    joint = likelihood * prior
    total = joint.sum(dim=-1, keepdim=True)
    if not (total > 0).all():
        raise UserError(
            "expected examples that some class can produce, got one that none can; compute with logs where "
            "densities underflow"
        )
    return joint / total


def bayes_rule(
    prior: Float[Tensor, "*batch n"] | ArrayLike, likelihood: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch n"]:
    """P(A_i | B) = P(B | A_i) P(A_i) / P(B), P(B) = sum_j P(B | A_j) P(A_j); P(B) = 0 raises an error.

    A test finds 99 of 100 who are ill, 5 of 100 who are not; one in a hundred is ill. Of those found, one in six is:

    >>> bayes_rule(torch.tensor([0.01, 0.99]), torch.tensor([0.99, 0.05]))
    tensor([0.1667, 0.8333])

    Notes: Z2.8.
    """
    prior = float_tensor(prior, "prior", likelihood)
    likelihood = float_tensor(likelihood, "likelihood", prior)
    check_shapes("... n, ... n", prior=prior, likelihood=likelihood)
    _check_evidence(prior, likelihood, "likelihood")
    if bool((likelihood < 0).any()):
        raise UserError(
            f"expected likelihoods P(B | A) >= 0, got {float(likelihood.min()):.3g}; give logarithms to "
            "bayes_rule_from_log"
        )
    both = likelihood * prior
    total = both.sum(dim=-1, keepdim=True)
    if not bool((total > 0).all()):
        raise UserError(
            "expected an event B that can happen, got P(B) = 0; no A with a prior above zero has a likelihood "
            "above zero"
        )
    return both / total


def bayes_rule_from_log(
    prior: Float[Tensor, "*batch n"] | ArrayLike, log_likelihood: Float[Tensor, "*batch n"] | ArrayLike
) -> Float[Tensor, "*batch n"]:
    """`bayes_rule` for likelihoods given by their logarithms, which may lie far below the least float: softmax(log
    P(A) + log P(B | A)).

    Notes: Z2.8.
    """
    prior = float_tensor(prior, "prior", log_likelihood)
    log_likelihood = float_tensor(log_likelihood, "log_likelihood", prior)
    check_shapes("... n, ... n", prior=prior, log_likelihood=log_likelihood)
    _check_evidence(prior, log_likelihood, "log_likelihood")
    never = (prior == 0) | (log_likelihood == -torch.inf)
    if bool(never.all(dim=-1).any()):
        raise UserError(
            "expected an event B that can happen, got P(B) = 0; no A with a prior above zero has a likelihood "
            "above zero"
        )
    scores = torch.where(prior == 0, 1, prior).log() + torch.where(never, 0, log_likelihood)
    return torch.where(never, -torch.inf, scores).softmax(dim=-1)


def _check_evidence(prior: Tensor, evidence: Tensor, name: str) -> None:
    check_probs(prior, "the prior")
    check_floating(evidence, name)
    if bool((evidence.isnan() | (evidence == torch.inf)).any()):
        raise UserError(f"expected a {name} of numbers below infinity, got NaN or infinity; check what gave it")
