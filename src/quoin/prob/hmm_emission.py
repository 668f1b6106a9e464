"""Emissions of a hidden Markov model: a distribution of one observation for each of k states, and their M-step.

`relative` is P(o | X = i) as scaled messages want it, `sufficient_statistics` and `m_step` are the two halves of a
likelihood fit in which an observation belongs to each state with a responsibility: sums that add up over pieces of the
data, and the best distribution for such sums. k states, m symbols, d numbers
"""

import math
from typing import Protocol, Self, runtime_checkable

import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.prob.covariance import check_covariance
from quoin.prob.hmm import log_table
from quoin.prob.hmm_fast import Relative, relative
from quoin.tensor import check_finite, check_labels, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["CategoricalEmission", "Emission", "GaussianEmission"]


@runtime_checkable
class Emission(Protocol):
    """A distribution of observations for each of k states; an observation has `event_ndim` axes of its own."""

    num_states: int

    @property
    def event_ndim(self) -> int: ...

    def check(self, observations: Shaped[Tensor, "..."]) -> None:
        """Raise an error for what no such distribution emits."""
        ...

    def log_prob(self, observations: Shaped[Tensor, "..."]) -> Float[Tensor, "*batch k"]:
        """ln P(o | X = i) for every state i."""
        ...

    def relative(self, observations: Shaped[Tensor, "..."]) -> Relative: ...

    def sample(self, states: Int[Tensor, "*batch"], *, generator: torch.Generator) -> Shaped[Tensor, "..."]:
        """An observation for each state."""
        ...

    def sufficient_statistics(
        self, observations: Shaped[Tensor, "..."], responsibilities: Float[Tensor, "*batch k"]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """Sums over observations, each weighted by its responsibilities."""
        ...

    def m_step(self, statistics: tuple[Float[Tensor, "..."], ...]) -> Self:
        """The most probable distribution of this kind for such sums; a state without responsibility stays as it is."""
        ...


@shown
class CategoricalEmission:
    """State i emits symbol j of 0, ..., m - 1 with probability B_ij.

    Notes: D5.1-10.
    """

    event_ndim = 0

    def __init__(self, probabilities: Float[Tensor, "k m"] | ArrayLike):
        probabilities = float_tensor(probabilities, "probabilities")
        check_shapes("k m", probabilities=probabilities)
        check_probs(probabilities, "probabilities")
        self.probabilities = probabilities
        self.num_states, self.num_symbols = probabilities.shape

    def check(self, observations: Integer[Tensor, "*batch"]) -> None:
        check_labels(observations, self.num_symbols)

    def log_prob(self, observations: Integer[Tensor, "*batch"]) -> Float[Tensor, "*batch k"]:
        """ln B_io for every state i."""
        return log_table(self.probabilities).mT[observations.long()]  # bytes as they are would be taken for a mask

    def relative(self, observations: Integer[Tensor, "*batch n"]) -> Relative:
        symbols = relative(log_table(self.probabilities).mT)  # a table of m rows: no exponential for each observation
        chosen = observations.long()
        *batch, last = chosen.shape
        # Gathered with the states before the last axis, which is how messages want them: they need not be moved again.
        table = symbols.weights.mT.contiguous().expand(*batch, -1, -1)
        weights = table.gather(-1, chosen.unsqueeze(-2).expand(*batch, self.num_states, last)).mT
        return Relative(weights, symbols.log_scale[chosen])

    def sample(self, states: Int[Tensor, "*batch"], *, generator: torch.Generator) -> Int[Tensor, "*batch"]:
        probs = self.probabilities.detach()[states.flatten()]
        return torch.multinomial(probs, 1, generator=generator).reshape(states.shape)

    def sufficient_statistics(
        self, observations: Integer[Tensor, "*batch"], responsibilities: Float[Tensor, "*batch k"]
    ) -> tuple[Float[Tensor, "m k"], ...]:
        """How often each state emitted each symbol."""
        counts = responsibilities.new_zeros(self.num_symbols, self.num_states)
        return (counts.index_add_(0, observations.flatten().long(), responsibilities.flatten(0, -2)),)

    def m_step(self, statistics: tuple[Float[Tensor, "m k"], ...]) -> Self:
        return type(self)(normalized(statistics[0].mT, self.probabilities))


@shown
class GaussianEmission:
    """State i emits x of R^d with density N(x; μ_i, Σ_i).

    Notes: D5.1-10.
    """

    event_ndim = 1

    def __init__(self, means: Float[Tensor, "k d"] | ArrayLike, covariances: Float[Tensor, "k d d"] | ArrayLike):
        means = float_tensor(means, "means", covariances)
        covariances = float_tensor(covariances, "covariances", means)
        check_shapes("k d, k d d", means=means, covariances=covariances)
        check_same_dtype(means, covariances)
        check_finite(means, "means")
        check_covariance(covariances, "covariances")
        self.means, self.covariances = means, covariances
        self.num_states, self.dim = means.shape
        factors, failed = torch.linalg.cholesky_ex(covariances)
        if bool(failed.any()):
            state = int(failed.nonzero()[0])
            raise UserError(
                f"expected positive definite covariances, got state {state}'s with none or a negative variance in "
                "some direction; "
                "take fewer states or more data, or add a little to its diagonal"
            )
        self.factors = factors

    def check(self, observations: Float[Tensor, "*batch d"]) -> None:
        check_shapes("... d, k d", observations=observations, means=self.means)
        check_same_dtype(self.means, observations)
        check_finite(observations, "observations")

    def log_prob(self, observations: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """-|L_i^-1 (x - μ_i)|^2 / 2 - ln det L_i - d/2 ln 2π for every state i, with L_i L_i^T = Σ_i."""
        away = self._away(observations)  # (k, d, n)
        squares = torch.linalg.solve_triangular(self.factors, away, upper=False).square().sum(dim=-2)
        log_volume = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1) + self.dim / 2 * math.log(2 * math.pi)
        return (-squares / 2 - log_volume.unsqueeze(-1)).mT.reshape(*observations.shape[:-1], self.num_states)

    def relative(self, observations: Float[Tensor, "*batch d"]) -> Relative:
        return relative(self.log_prob(observations))

    def sample(self, states: Int[Tensor, "*batch"], *, generator: torch.Generator) -> Float[Tensor, "*batch d"]:
        noise = torch.randn(*states.shape, self.dim, 1, generator=generator, dtype=self.means.dtype)
        return self.means.detach()[states] + (self.factors.detach()[states] @ noise).squeeze(-1)

    def sufficient_statistics(
        self, observations: Float[Tensor, "*batch d"], responsibilities: Float[Tensor, "*batch k"]
    ) -> tuple[Float[Tensor, "k ..."], ...]:
        """Shares (k,), and of x - μ_i, which is small where it counts, the sums (k, d) and those of its squares
        (k, d, d).
        """
        away = self._away(observations)
        shared = away * responsibilities.reshape(-1, self.num_states).mT.unsqueeze(-2)
        return responsibilities.reshape(-1, self.num_states).sum(dim=0), shared.sum(dim=-1), shared @ away.mT

    def m_step(self, statistics: tuple[Float[Tensor, "k ..."], ...]) -> Self:
        total, first, second = statistics
        some = (total > 0)[:, None, None]
        total = torch.where(total > 0, total, 1)
        moved = first / total.unsqueeze(-1)
        scatter = second / total[:, None, None] - moved.unsqueeze(-1) * moved.unsqueeze(-2)
        return type(self)(self.means + moved, torch.where(some, (scatter + scatter.mT) / 2, self.covariances))

    def _away(self, observations: Tensor) -> Tensor:  # (..., d) -> (k, d, n): one matrix for each state
        return observations.reshape(-1, self.dim).mT - self.means.unsqueeze(-1)


def normalized(counts: Float[Tensor, "*batch n"], fallback: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """Counts over their sum, and where there are none the distribution that was there before."""
    total = counts.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, counts / torch.where(total > 0, total, 1), fallback)
