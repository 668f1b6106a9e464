"""Random processes and samples of their paths: the simple random walk, the walk with Gaussian steps, and Brownian
motion on a grid of times.

A process in discrete time samples X_0, ..., X_n; one in continuous time is seen at times the caller chooses. Chains of
a matrix are in markov.py and are processes too.   n steps, d dimensions
"""

import math
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.kernels import GaussianTransition
from quoin.prob.markov import MarkovChain, check_steps
from quoin.prob.normal import MultivariateNormal
from quoin.tensor import check_finite, check_floating, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["BrownianMotion", "ContinuousProcess", "GaussianRandomWalk", "Process", "RandomWalk", "WalkDistribution"]


@runtime_checkable
class Process(Protocol):
    """A random sequence X_0, X_1, X_2, ...

    Notes: D5.1-1.
    """

    def sample_paths(
        self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator
    ) -> Real[Tensor, "paths times ..."]:
        """Independent paths X_0, ..., X_n, so n + 1 times."""
        ...


@runtime_checkable
class ContinuousProcess(Protocol):
    """A random function (X_t) of a time 0 <= t <= T.

    Notes: D5.1-1.
    """

    def sample_paths(
        self, times: Float[Tensor, "times"], num_paths: int = 1, *, generator: torch.Generator
    ) -> Float[Tensor, "paths times ..."]:
        """Independent paths at these rising times."""
        ...


@shown
class WalkDistribution(NamedTuple):
    """A distribution on finitely many positions."""

    output: Float[Tensor, "positions"]  # probabilities
    positions: Int[Tensor, "positions"]


@shown
class RandomWalk:
    """Y_n = X_0 + ... + X_n with independent steps of +1 (probability `up_probability`) and -1.

    >>> RandomWalk().distribution(1)
    WalkDistribution(output=tensor([0.2500, 0.5000, 0.2500], dtype=torch.float64), positions=tensor([-2,  0,  2]))

    Notes: D5.1-1, D5.1-4.
    """

    def __init__(self, up_probability: float = 0.5):
        if not 0 <= up_probability <= 1:
            raise UserError(
                f"expected the probability of a step up from 0 to 1, got {up_probability}; 0.5 is the fair walk"
            )
        self.up_probability = up_probability

    def sample_paths(
        self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator
    ) -> Int[Tensor, "{num_paths} {num_steps}+1"]:
        rises = (
            torch.rand(num_paths, check_steps(num_steps) + 1, generator=generator, dtype=torch.float64)
            < self.up_probability
        )
        return torch.where(rises, 1, -1).cumsum(dim=-1)

    def distribution(self, num_steps: int) -> WalkDistribution:
        """P[Y_n = 2r - (n + 1)] = C(n + 1, r) up^r (1 - up)^{n + 1 - r}, r of the n + 1 steps going up."""
        steps = check_steps(num_steps) + 1
        rises = torch.arange(steps + 1)
        binomial = torch.distributions.Binomial(steps, torch.tensor(self.up_probability, dtype=torch.float64))
        return WalkDistribution(binomial.log_prob(rises.double()).exp(), 2 * rises - steps)

    def chain(self, num_steps: int) -> MarkovChain:
        """The walk's first n steps as a chain: state s is the position s - (n + 1), and the outermost two keep
        what they get.
        """
        size = 2 * check_steps(num_steps) + 3
        transition = torch.zeros(size, size, dtype=torch.float64)
        inner = torch.arange(1, size - 1)
        transition[inner, inner + 1], transition[inner, inner - 1] = self.up_probability, 1 - self.up_probability
        transition[0, 0] = transition[-1, -1] = 1
        initial = torch.zeros(size, dtype=torch.float64)
        initial[num_steps], initial[num_steps + 2] = 1 - self.up_probability, self.up_probability
        return MarkovChain(initial, transition)


@shown
class GaussianRandomWalk:
    """X_{t+1} = X_t + N(0, Σ) from a fixed x_0, the chain of `GaussianTransition`; X_n has the distribution N(x_0, nΣ).

    Notes: D5.1-1, D5.1-9.
    """

    def __init__(self, initial: Float[Tensor, "d"] | ArrayLike, covariance: Float[Tensor, "d d"] | ArrayLike):
        initial = float_tensor(initial, "initial", covariance)
        covariance = float_tensor(covariance, "covariance", initial)
        check_shapes("d, d d", initial=initial, covariance=covariance)
        check_same_dtype(initial, covariance)
        self.initial, self.kernel = initial, GaussianTransition(covariance)

    def sample_paths(
        self, num_steps: int, num_paths: int = 1, *, generator: torch.Generator
    ) -> Float[Tensor, "{num_paths} {num_steps}+1 d"]:
        steps = self.kernel.step.sample((num_paths, check_steps(num_steps)), generator=generator)
        return torch.cat([self.initial.expand(num_paths, 1, -1), self.initial + steps.cumsum(dim=1)], dim=1)

    def distribution(self, num_steps: int) -> MultivariateNormal:
        """N(x_0, nΣ), the distribution of X_n."""
        return MultivariateNormal(self.initial, check_steps(num_steps) * self.kernel.step.covariance)

    def log_prob(self, path: Float[Tensor, "*batch times d"]) -> Float[Tensor, "*batch"]:
        """The log of the density of whole paths: of X_1, ..., X_n where X_0 = x_0, and minus infinity where it is
        not."""
        if path.ndim < 2 or path.shape[-2] == 0 or path.shape[-1] != len(self.initial):
            dim = len(self.initial)
            raise UserError(
                f"expected paths (..., n + 1, {dim}) from X_0 on, got shape {tuple(path.shape)}; put the start "
                "before the steps"
            )
        steps = self.kernel.log_prob(path[..., 1:, :], path[..., :-1, :]).sum(dim=-1)
        return torch.where((path[..., 0, :] == self.initial).all(dim=-1), steps, -math.inf)


@shown
class BrownianMotion:
    """B_0 = 0, independent increments B_t - B_s ~ N(0, (t - s) I) and continuous paths, seen at given times.

    >>> times = torch.linspace(0, 1, 5)
    >>> BrownianMotion(dim=2).sample_paths(times, 3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 5, 2])

    Notes: D5.1-1.
    """

    def __init__(self, dim: int = 1):
        if dim < 1:
            raise UserError(f"expected at least one dimension, got {dim}; give dim=1 for a curve over time")
        self.dim = dim

    def sample_paths(
        self, times: Float[Tensor, "times"], num_paths: int = 1, *, generator: torch.Generator
    ) -> Float[Tensor, "{num_paths} times d"]:
        """Exact at the times asked for, however coarse the grid."""
        gaps = _increments(times)
        noise = torch.randn(num_paths, len(times), self.dim, generator=generator, dtype=times.dtype)
        return (gaps.sqrt().unsqueeze(-1) * noise).cumsum(dim=1)

    def log_prob(self, path: Float[Tensor, "*batch times d"], times: Float[Tensor, "times"]) -> Float[Tensor, "*batch"]:
        """The log of the density of B_{t_1}, ..., B_{t_m}, by independent increments; minus infinity where time stands
        and B moves.

        At time 0, and at a time given twice, the increment is 0 for certain and adds nothing.

        >>> float(BrownianMotion().log_prob(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0])))  # -½ ln 2π - ½
        -1.418938...
        """
        gaps = _increments(times).unsqueeze(-1)  # (m, 1)
        if path.ndim < 2 or path.shape[-2:] != (len(times), self.dim):
            got = f"shape {tuple(path.shape)}"
            raise UserError(
                f"expected paths (..., {len(times)}, {self.dim}), one position for each time, got {got}; reshape them"
            )
        moves = torch.cat([path[..., :1, :], path.diff(dim=-2)], dim=-2)
        stands = gaps == 0
        gaps = torch.where(stands, 1, gaps)
        terms = torch.where(stands, 0, -moves.square() / (2 * gaps) - torch.log(2 * math.pi * gaps) / 2).sum(
            dim=(-2, -1)
        )
        return torch.where((stands & (moves != 0)).any(dim=-1).any(dim=-1), -math.inf, terms)

    def covariance(self, times: Float[Tensor, "times"]) -> Float[Tensor, "times times"]:
        """Cov(B_s, B_t) = min(s, t), in each coordinate."""
        _increments(times)
        return torch.minimum(times.unsqueeze(-1), times)


def _increments(times: Tensor) -> Tensor:  # (m,) -> (m,)
    check_shapes("m", times=times)
    check_floating(times, "times")
    check_finite(times, "times")
    gaps = times.diff(prepend=times.new_zeros(1))
    if bool((gaps < 0).any()):
        index = int((gaps < 0).nonzero()[0])
        before = float(times[index - 1]) if index else 0.0
        raise UserError(
            f"expected times that rise from 0 on, got {float(times[index]):.4g} after {before:.4g}; sort them"
        )
    return gaps
