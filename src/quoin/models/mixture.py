"""The Gaussian mixture as a model: fitted to points by EM, kept as tensors that can be saved and moved, drawn from and judged.

The law is `quoin.prob.NormalMixture`, the fit is in mixture_em.py.   n points, k components, d coordinates
"""

import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.models.generative_model import check_sample_count
from quoin.models.mixture_em import em_from_starts
from quoin.prob import ComponentNormals, FullNormals, NormalMixture
from quoin.tensor.blocks import rows_per_block

__all__ = ["GaussianMixture", "MixtureCandidates"]

_NUMBERS_PER_BLOCK = 2**20  # numbers of points times components that are held at once


class GaussianMixture(nn.Module):
    """P[Z = i] = φ_i and X | Z = i ~ N(μ_i, Σ_i), its parameters as buffers: EM follows no gradient.

    >>> x = torch.tensor([[0.0], [0.2], [5.0], [5.2]])
    >>> model = GaussianMixture.fit(x, 2, generator=torch.Generator().manual_seed(0))
    >>> model.predict(x).unique().tolist(), model.law.components.means.sort(dim=0).values.flatten()
    ([0, 1], tensor([0.1000, 5.1000]))

    Notes: D6-9, D6-10.
    """

    weights: Tensor  # (k,)
    means: Tensor  # (k, d)
    spread: Tensor  # as the family has it

    def __init__(self, law: NormalMixture):
        super().__init__()
        self.family = type(law.components)
        for name, given in (("weights", law.weights), ("means", law.components.means), ("spread", law.components.spread)):
            self.register_buffer(name, given.detach().clone())

    @classmethod
    def fit(
        cls,
        x: Tensor,
        num_components: int,
        family: type[ComponentNormals] = FullNormals,
        *,
        generator: torch.Generator,
        starts: int = 5,
        num_steps: int = 500,
        tolerance: float = 1e-6,
        min_variance: float = 1e-6,
    ) -> Self:  # (n, d)
        """The likeliest mixture that EM reaches from `starts` random starts, no variance of it below `min_variance` of the points' own.

        Without that bound the likelihood has none: a component that collapses on one point makes it as large as one likes.

        Notes: D6-10.
        """
        found = em_from_starts(
            x,
            num_components,
            family,
            generator=generator,
            starts=starts,
            num_steps=num_steps,
            tolerance=tolerance,
            min_variance=min_variance,
        )
        return cls(found.output)

    @property
    def law(self) -> NormalMixture:
        return NormalMixture(self.weights, self.family(self.means, self.spread))

    def log_prob(self, x: Tensor) -> Tensor:  # (n, d) -> (n,)
        """ln p(x) = ln Σ_i φ_i N(x; μ_i, Σ_i), in pieces that fit into memory.

        Notes: D6-9.
        """
        law = self.law
        return torch.cat([law.log_prob(piece) for piece in self._pieces(x)])

    def responsibilities(self, x: Tensor) -> Tensor:  # (n, d) -> (n, k)
        """P[Z = i | x].

        Notes: D6-9, D6-10.
        """
        law = self.law
        return torch.cat([law.responsibilities(piece) for piece in self._pieces(x)])

    def predict(self, x: Tensor) -> Tensor:  # (n, d) -> (n,)
        """The component with the largest share in x."""
        return self.responsibilities(x).argmax(dim=-1)

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, d)
        """A component first, then a draw from it.

        Notes: D6-9.
        """
        check_sample_count(count)
        return self.law.sample((count,), generator=generator)

    def aic(self, x: Tensor) -> float:  # (n, d)
        """2 p - 2 Σ_n ln p(x_n) with p free numbers, lower is better: an estimate of what fitting them gains by chance."""
        return 2 * (self.law.num_parameters - float(self.log_prob(x).sum(dtype=torch.float64)))

    def bic(self, x: Tensor) -> float:  # (n, d)
        """p ln n - 2 Σ_n ln p(x_n), lower is better: the evidence of the model, but for what does not grow with n."""
        return self.law.num_parameters * math.log(len(x)) - 2 * float(self.log_prob(x).sum(dtype=torch.float64))

    def _pieces(self, x: Tensor) -> tuple[Tensor, ...]:
        if x.ndim != 2 or x.shape[1] != self.means.shape[1]:
            raise Mistake(f"expected points (n, {self.means.shape[1]}), came shape {tuple(x.shape)}; give a row for each point")
        if x.dtype != self.means.dtype:
            raise Mistake(f"expected points of dtype {self.means.dtype}, came {x.dtype}; convert one of them")
        return x.split(rows_per_block(self.means.numel(), _NUMBERS_PER_BLOCK))


class MixtureCandidates(nn.Module):
    """Mixtures that were fitted from several starts, and which of them is drawn from: the likeliest, once `choose` has seen points."""

    chosen: Tensor  # ()

    def __init__(self, candidates: Sequence[GaussianMixture]):
        super().__init__()
        if not candidates:
            raise Mistake("expected at least one mixture to choose from, came none; give one for each start")
        self.candidates = nn.ModuleList(candidates)
        self.register_buffer("chosen", torch.tensor(0))

    @property
    def best(self) -> GaussianMixture:
        """The one that was chosen."""
        return self.candidates[int(self.chosen)]  # pyright: ignore[reportReturnType]

    @torch.no_grad()
    def choose(self, x: Tensor) -> None:  # (n, d)
        """Take the one that makes the points likeliest."""
        found = [each.log_prob(x).sum(dtype=torch.float64) for each in self.candidates]  # pyright: ignore[reportCallIssue]
        self.chosen.copy_(torch.stack(found).argmax())

    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, d)
        """Draws of the best."""
        return self.best.sample(count, generator=generator)

    def log_prob(self, x: Tensor) -> Tensor:  # (n, d) -> (n,)
        """ln p(x) under the best."""
        return self.best.log_prob(x)
