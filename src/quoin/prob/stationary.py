"""Long-run behaviour of a finite Markov chain: closed classes, stationary distributions, hitting, absorption.

What is possible at all is decided from which entries are positive, without tolerance; only then is a linear
system solved, one that is known to have one solution. Everything has gradients in the positive entries.   k
states, m closed classes
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.markov import check_stochastic
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "Absorption",
    "absorption",
    "closed_classes",
    "hitting_probability",
    "hitting_time",
    "reachable",
    "stationary_distribution",
    "stationary_distributions",
]


def reachable(transition: Real[Tensor, "*batch k k"] | ArrayLike) -> Bool[Tensor, "*batch k k"]:
    """Whether the chain can come from i to j in some number of steps, zero included."""
    transition = number_tensor(transition, "transition")
    k = transition.shape[-1]
    reachability = (transition.detach() > 0) | torch.eye(k, dtype=torch.bool, device=transition.device)
    for _ in range(max(k - 1, 1).bit_length()):
        reachability = (reachability.double() @ reachability.double()) > 0  # ways of twice the length
    return reachability


def closed_classes(transition: Float[Tensor, "k k"] | ArrayLike) -> list[Int[Tensor, "_states"]]:
    """The sets of states that lead to each other and nowhere else: once in, the chain stays, and sees all of the set.

    >>> closed_classes(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]))
    [tensor([0]), tensor([2])]
    """
    transition = float_tensor(transition, "transition")
    check_shapes("k k", transition=transition)
    check_stochastic(transition, "transition")
    reachability = reachable(transition)
    returning = _recurrent(reachability)
    return [
        row.nonzero().squeeze(-1) for i, row in enumerate(reachability) if returning[i] and int(row.nonzero()[0]) == i
    ]


def stationary_distribution(transition: Float[Tensor, "*batch k k"] | ArrayLike) -> Float[Tensor, "*batch k"]:
    """The distribution π = π A that no step changes, where there is only one; π (I - A + 1 1ᵀ) = 1ᵀ gives it.

    >>> stationary_distribution(torch.tensor([[0.9, 0.1], [0.5, 0.5]]))
    tensor([0.8333, 0.1667])
    """
    transition = float_tensor(transition, "transition")
    check_stochastic(transition, "transition")
    reachability = reachable(transition)
    if not bool(reachability.all(dim=-2).any(dim=-1).all()):  # one closed class: some state is reached from everywhere
        single = transition.reshape(-1, *transition.shape[-2:])
        several = next(classes for matrix in single if len(classes := closed_classes(matrix)) > 1)
        named = " and ".join(str(states.tolist()) for states in several[:2])
        raise UserError(
            f"expected a chain with one closed class, got {len(several)}, such as {named}; "
            "use stationary_distributions, which gives one distribution for each"
        )
    k = transition.shape[-1]
    system = torch.eye(k, dtype=transition.dtype, device=transition.device) - transition + 1
    probs = torch.linalg.solve(system.mT, torch.ones_like(transition[..., 0]))
    return torch.where(_recurrent(reachability), probs, 0).clamp(
        min=0
    )  # rounding may put a tiny probability below zero


def stationary_distributions(transition: Float[Tensor, "k k"] | ArrayLike) -> Float[Tensor, "m k"]:
    """One stationary distribution for each closed class; the stationary distributions of the chain are their mixtures,
    and no others.
    """
    transition = float_tensor(transition, "transition")
    distributions = []
    for states in closed_classes(transition):
        inside = stationary_distribution(transition[states][:, states])
        distributions.append(torch.zeros_like(transition[0]).index_put((states,), inside))
    return torch.stack(distributions)


def hitting_probability(
    transition: Float[Tensor, "k k"] | ArrayLike, target: Bool[Tensor, "k"] | ArrayLike
) -> Float[Tensor, "k"]:
    """h_i = P[the chain ever is in the target | X_0 = i]: the least h >= 0 with h = 1 on the target and
    h = A h elsewhere.
    """
    transition = float_tensor(transition, "transition", target)
    target = number_tensor(target, "target", transition)
    target = _checked(transition, target)
    able = (reachable(transition) & target).any(dim=-1) & ~target
    inner = transition * able * able.unsqueeze(-1)
    right = torch.where(able, transition @ target.to(transition.dtype), 0)
    return torch.where(target, 1, torch.linalg.solve(torch.eye(len(target)).to(inner) - inner, right))


def hitting_time(
    transition: Float[Tensor, "k k"] | ArrayLike, target: Bool[Tensor, "k"] | ArrayLike
) -> Float[Tensor, "k"]:
    """t_i = E[first time in the target | X_0 = i]: 0 on the target, 1 + A t elsewhere, infinite where the chain may
    stay away for ever.
    """
    transition = float_tensor(transition, "transition", target)
    target = number_tensor(target, "target", transition)
    target = _checked(transition, target)
    stopped = torch.where(target.unsqueeze(-1), torch.eye(len(target)).to(transition), transition)
    reachability = reachable(stopped)
    able = (reachability & target).any(dim=-1)
    certain = ~(reachability & ~able).any(dim=-1)  # no way leads to where the target is out of reach
    before = certain & ~target
    inner = transition * before * before.unsqueeze(-1)
    times = torch.linalg.solve(torch.eye(len(target)).to(inner) - inner, before.to(inner.dtype))
    return torch.where(certain, times, torch.inf)


@shown
class Absorption(NamedTuple):
    """With what probability a chain ends in which closed class, and after how many steps on average it is in one."""

    output: Float[Tensor, "k m"]  # from state i into class c
    classes: list[Int[Tensor, "_states"]]
    time: Float[Tensor, "k"]


def absorption(transition: Float[Tensor, "k k"] | ArrayLike) -> Absorption:
    """P[end in class c | X_0 = i] and the mean time until then, the fundamental matrix (I - Q)^{-1} applied to one step
    out and to 1.
    """
    transition = float_tensor(transition, "transition")
    classes = closed_classes(transition)
    masks = [
        torch.zeros(len(transition), dtype=torch.bool, device=transition.device).index_fill(0, states, True)
        for states in classes
    ]
    into = torch.stack([hitting_probability(transition, mask) for mask in masks], dim=-1)
    return Absorption(into, classes, hitting_time(transition, torch.stack(masks).any(dim=0)))


def _recurrent(reachability: Tensor) -> Tensor:  # (..., k, k) -> (..., k)
    """States to which every way leads back."""
    return (~reachability | reachability.mT).all(dim=-1)


def _checked(transition: Tensor, target: Tensor) -> Tensor:
    check_shapes("k k, k", transition=transition, target=target)
    check_stochastic(transition, "transition")
    if target.dtype != torch.bool or not bool(target.any()):
        got = f"{str(target.dtype).removeprefix('torch.')} with {int(target.count_nonzero())} states marked"
        raise UserError(
            f"expected a target as truth values with at least one true, got {got}; set the states to hit to true"
        )
    return target
