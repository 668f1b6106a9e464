"""Models with a hidden variable: p(x, z) = p(x | z) p(z) is at hand, p(x) and p(z | x) in general are not.

Where they are, a model has `log_evidence` and is an oracle for everything that only approximates
it: a hidden variable with finitely many values here, exponential.py for one on the half line,
quoin.models.PPCA for a linear Gaussian one. Estimates of the evidence are in evidence.py, its
lower bounds in quoin.losses.   d numbers an example, n values of a finite z
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Integer, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.tensor import check_labels
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["Components", "FiniteLatentModel", "LatentModel", "TractableLatentModel"]


@shown
class LatentModel(ABC):
    """A hidden z, and x given z: all of it that is tractable.

    Leading axes of z beyond those of x are samples: with x (..., d) and z (m, ..., k), every result below is (m, ...).

    Notes: D6-8.
    """

    @abstractmethod
    def log_prior(self, z: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln p(z)."""

    @abstractmethod
    def log_likelihood(self, x: Real[Tensor, "..."], z: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln p(x | z)."""

    @abstractmethod
    def sample_prior(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Real[Tensor, "..."]:
        """Draws z ~ p(z), (*shape, ...)."""

    def log_joint(self, x: Real[Tensor, "..."], z: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln p(x, z) = ln p(x | z) + ln p(z).

        Notes: D6-8.
        """
        return self.log_likelihood(x, z) + self.log_prior(z)


class TractableLatentModel(LatentModel):
    """A model whose integral over z can be taken: the exception, and the oracle for all others."""

    @abstractmethod
    def log_evidence(self, x: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln p(x) = ln ∫ p(x | z) p(z) dz, the log-likelihood of the parameters."""

    def log_posterior(self, z: Real[Tensor, "..."], x: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln p(z | x) = ln p(x, z) - ln p(x).

        Notes: D6-8.
        """
        return self.log_joint(x, z) - self.log_evidence(x)


@runtime_checkable
class Components(Protocol):
    """A distribution of x for each of n values of z, such as `MultivariateNormal` with means (n, d)."""

    def log_prob(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n"]:
        """ln p(x | z) for all z at once."""
        ...


class FiniteLatentModel(TractableLatentModel):
    """z in {0, ..., n - 1} with P[z = i] = φ_i, and x | z from one distribution each: every sum over z can
    be written out.

    >>> from quoin.prob import MultivariateNormal
    >>> two = MultivariateNormal(torch.tensor([[-1.0], [1.0]]), torch.eye(1))
    >>> model = FiniteLatentModel(torch.tensor([0.5, 0.5]), two)
    >>> model.log_posterior(torch.tensor(1), torch.tensor([0.5])).exp()  # 1 / (1 + e^-1)
    tensor(0.7311)

    Notes: D6-7, D6-8.
    """

    def __init__(self, prior: Float[Tensor, "n"] | ArrayLike, components: Components):
        prior = float_tensor(prior, "prior")
        if prior.ndim != 1:
            raise UserError(f"expected one probability for each value of z, got shape {tuple(prior.shape)}; give (n,)")
        check_probs(prior, "prior")
        self.prior, self.components = prior, components

    def log_prior(self, z: Integer[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if not torch.compiler.is_compiling():
            check_labels(z, len(self.prior))
        return self.prior.log()[z.long()]  # as uint8 or bool it would be a mask

    def log_likelihoods(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch n"]:
        """ln p(x | z) for every z."""
        return self.components.log_prob(x.unsqueeze(-2).expand(*x.shape[:-1], len(self.prior), x.shape[-1]))

    def log_likelihood(self, x: Float[Tensor, "*#batch d"], z: Int[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
        every = self.log_likelihoods(x)
        shape = torch.broadcast_shapes(z.shape, every.shape[:-1])
        return every.expand(*shape, -1).gather(-1, z.expand(shape).unsqueeze(-1)).squeeze(-1)

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Int[Tensor, "*sample_shape"]:
        num_samples = max(1, torch.Size(sample_shape).numel())
        sampled = torch.multinomial(self.prior, num_samples, replacement=True, generator=generator)
        return sampled[: torch.Size(sample_shape).numel()].reshape(tuple(sample_shape))

    def log_evidence(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """ln p(x) = ln Σ_i φ_i p(x | i), in logs.

        Notes: D6-7.
        """
        return torch.logsumexp(self.log_likelihoods(x) + self.prior.log(), dim=-1)
