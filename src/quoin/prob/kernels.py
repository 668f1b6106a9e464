"""Markov chains on any space: a start distribution and a stochastic kernel, which gives a distribution A(x, ·) of the
next state for each x.

A kernel is a distribution P(y | x) in the sense of `ConditionalModel`: it can be sampled from, and has a density.
Finitely many states are in markov.py.   d dimensions
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.conditional import ConditionalModel
from quoin.prob.markov import check_steps
from quoin.prob.normal import MultivariateNormal
from quoin.tensor import check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["GaussianTransition", "InitialDistribution", "KernelChain"]


@runtime_checkable
class InitialDistribution(Protocol):
    """A distribution to begin with, such as a `MultivariateNormal`."""

    def log_prob(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """ln P(x), or the log of the density at x, one value per example."""
        ...

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Shaped[Tensor, "..."]:
        """Independent samples along these leading axes."""
        ...


@shown
class KernelChain:
    """X_0 ~ ν and P[X_{t+1} in B | X_0, ..., X_t = x] = A(x, B), where A(x, ·) is a distribution for every x.

    Notes: D5.1-2, D5.1-8.
    """

    def __init__(self, initial: InitialDistribution, kernel: ConditionalModel):
        self.initial, self.kernel = initial, kernel

    def sample_paths(
        self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator
    ) -> Shaped[Tensor, "{num_paths} {num_steps}+1 ..."]:
        states = [self.initial.sample((num_paths,), generator=generator)]
        for _ in range(check_steps(num_steps)):
            states.append(self.kernel.sample(states[-1], generator=generator))
        return torch.stack(states, dim=1)

    def log_prob(self, path: Shaped[Tensor, "paths times ..."]) -> Float[Tensor, "paths"]:
        """The log of the density of whole paths, ln ν(x_0) + sum_t ln A(x_t, x_{t+1})."""
        if path.ndim < 2 or path.shape[1] == 0:
            raise UserError(
                f"expected paths along the second axis, got shape {tuple(path.shape)}; stack them as (paths, "
                "times, ...)"
            )
        total = self.initial.log_prob(path[:, 0])
        for before, after in zip(path[:, :-1].unbind(dim=1), path[:, 1:].unbind(dim=1)):
            total = total + self.kernel.log_prob(after, before)
        return total


@shown
class GaussianTransition:
    """A(x, ·) = N(x, Σ), with density (2π)^{-d/2} (det Σ)^{-1/2} exp(-½ (y - x)ᵀ Σ^{-1} (y - x)); for a singular Σ that
    on its support.

    Notes: D5.1-8, D5.1-9.
    """

    def __init__(self, covariance: Float[Tensor, "d d"] | ArrayLike):
        covariance = float_tensor(covariance, "covariance")
        check_shapes("d d", covariance=covariance)
        self.step = MultivariateNormal(torch.zeros_like(covariance[0]), covariance)

    def sample(self, x: Float[Tensor, "*batch d"], *, generator: torch.Generator) -> Float[Tensor, "*batch d"]:
        check_same_dtype(x, self.step.covariance)
        return x + self.step.sample(x.shape[:-1], generator=generator)

    def log_prob(self, y: Float[Tensor, "*batch d"], x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        check_shapes("... d, ... d", y=y, x=x)
        return self.step.log_prob(y - x)
