"""Probabilistic PCA: the linear Gaussian latent-variable model, whose evidence, posterior and best fit all have closed
forms.

It is the oracle of variational inference: whatever a bound or an estimate claims about a deep model can be held against
the truth here.   n examples, d numbers each, k latent coordinates
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.prob import TractableLatentModel, TriangularNormal, check_regular, kl_normal
from quoin.tensor import check_finite, check_floating, check_shapes

__all__ = ["PPCA", "ppca_log_evidence_definition", "ppca_posterior_definition"]


def ppca_log_evidence_definition(
    x: Float[Tensor, "*batch features"],
    weight: Float[Tensor, "features latent"],
    bias: Float[Tensor, "features"],
    noise: Float[Tensor, ""],
) -> Float[Tensor, "*batch"]:
    """ln p(x) of X = WZ + b + sε: the density of N(b, W W^T + s² I), by inverse and determinant.

    Args:
        noise: s, a standard deviation.

    Notes: D6-7.
    """
    check_shapes("... d, d k, d, ()", x=x, weight=weight, bias=bias, noise=noise)
    covariance = weight @ weight.mT + noise**2 * torch.eye(len(weight), dtype=x.dtype, device=x.device)
    away = x - bias
    check_regular(covariance)
    squares = ((away @ torch.linalg.inv(covariance)) * away).sum(dim=-1)
    return -squares / 2 - torch.log(torch.linalg.det(2 * math.pi * covariance)) / 2


def ppca_posterior_definition(
    x: Float[Tensor, "*batch features"],
    weight: Float[Tensor, "features latent"],
    bias: Float[Tensor, "features"],
    noise: Float[Tensor, ""],
) -> tuple[Float[Tensor, "*batch latent"], Float[Tensor, "latent latent"]]:
    """Mean and covariance of Z | X = x, the coordinates of (Z, X) ~ N((0, b), [[I, W^T], [W, W W^T + s² I]])
    conditioned on the last d.

    Args:
        noise: s, a standard deviation.

    Notes: D6-8.
    """
    check_shapes("... d, d k, d, ()", x=x, weight=weight, bias=bias, noise=noise)
    own = torch.eye(weight.shape[1], dtype=x.dtype, device=x.device)
    covariance = weight @ weight.mT + noise**2 * torch.eye(len(weight), dtype=x.dtype, device=x.device)
    check_regular(covariance)
    gain = weight.mT @ torch.linalg.inv(covariance)  # (k, d)
    return (x - bias) @ gain.mT, own - gain @ weight


class PPCA(nn.Module, TractableLatentModel):
    """Z ~ N(0, I_k) and X | Z ~ N(WZ + b, s² I_d): `ppca_log_evidence_definition` with factorisations of k × k, never d
    × d.

    Its parameters can be trained like any other; `PPCA.fit` has the best ones at once.

    Args:
        noise: s, a standard deviation above 0; what is trained is its logarithm.

    >>> model = PPCA.fit(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]]), 1)
    >>> model.weight.detach().abs()  # variances ½ and ⅛: the second is all noise, and √(½ - ⅛) is left
    tensor([[0.6124],
            [0.0000]])

    Notes: D6-7, D6-8, D6-11.
    """

    def __init__(self, weight: Float[Tensor, "features latent"], bias: Float[Tensor, "features"], noise: float):
        super().__init__()
        check_shapes("d k, d", weight=weight, bias=bias)
        check_floating(weight, "weight")
        if weight.numel() == 0:
            raise UserError(
                f"expected at least one latent coordinate and one number, got a weight {tuple(weight.shape)}; give "
                "(d, k)"
            )
        if not (noise > 0 and math.isfinite(noise)):
            raise UserError(
                f"expected a noise (standard deviation) above 0, got {noise}; without noise x has no density"
            )
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        self.log_noise = nn.Parameter(torch.tensor(math.log(noise), dtype=weight.dtype, device=weight.device))

    @classmethod
    def fit(cls, x: Float[Tensor, "examples features"], latent_dim: int) -> "PPCA":
        """The most probable parameters: b the mean, s² the mean of the d - k least eigenvalues of the covariance, W = U
        (Λ - s² I)^(1/2).

        Notes: D6-11.
        """
        check_shapes("n d", x=x)
        check_floating(x, "x")
        check_finite(x, "x")
        n, d = x.shape
        if not 1 <= latent_dim < d:
            raise UserError(
                f"expected from 1 to {d - 1} latent coordinates for {d} numbers an example, got {latent_dim}; "
                "leave some to noise"
            )
        if n <= latent_dim + 1:
            raise UserError(
                f"expected more than {latent_dim + 1} examples to fit {latent_dim} directions and noise, got {n}; "
                "give more"
            )
        bias = x.mean(dim=0)
        values, vectors = torch.linalg.eigh((x - bias).mT @ (x - bias) / n)  # ascending
        variance = values[: d - latent_dim].mean()
        if not float(variance) > torch.finfo(x.dtype).eps * d * float(values[-1]):
            raise UserError(
                f"expected variance beyond {latent_dim} directions, got none; take fewer latent coordinates or "
                "other examples"
            )
        scales = (values[d - latent_dim :] - variance).clamp(min=0).sqrt()
        weight = (vectors[:, d - latent_dim :] * scales).flip(-1)  # the widest direction first
        return cls(weight, bias, float(variance.sqrt()))

    @property
    def latent_dim(self) -> int:
        return self.weight.shape[1]

    @property
    def noise(self) -> Float[Tensor, ""]:
        """s, the standard deviation of what the latent coordinates do not explain."""
        return self.log_noise.exp()

    def forward(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch features"]:
        """E[X | z] = Wz + b."""
        return z @ self.weight.mT + self.bias

    def log_prior(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch"]:
        return -z.square().sum(dim=-1) / 2 - self.latent_dim * math.log(2 * math.pi) / 2

    def log_likelihood(
        self, x: Float[Tensor, "*#batch features"], z: Float[Tensor, "*#batch latent"]
    ) -> Float[Tensor, "*#batch"]:
        self._check(x)
        square = ((x - self(z)) / self.noise).square().sum(dim=-1)
        return -square / 2 - x.shape[-1] * (self.log_noise + math.log(2 * math.pi) / 2)

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*sample latent"]:
        size = (*sample_shape, self.latent_dim)
        return torch.randn(size, generator=generator, dtype=self.weight.dtype, device=self.weight.device)

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} features"]:
        """New examples: z from the prior, and noise on top of Wz + b."""
        mean = self(self.sample_prior((num_samples,), generator=generator))
        return mean + self.noise * torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)

    def posterior(self, x: Float[Tensor, "*batch features"]) -> TriangularNormal:
        """Z | x ~ N(A^-1 W^T (x - b), s² A^-1) with A = W^T W + s² I: one covariance for every x.

        Notes: D6-8.
        """
        self._check(x)
        factor = self._factor()
        mean = torch.cholesky_solve(((x - self.bias) @ self.weight).unsqueeze(-1), factor).squeeze(-1)
        own = torch.eye(self.latent_dim, dtype=x.dtype, device=x.device)
        return TriangularNormal(mean, torch.linalg.cholesky(self.noise**2 * torch.cholesky_solve(own, factor)))

    def log_evidence(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        """ln N(x; b, W W^T + s² I), by Woodbury's identity: |x - b|² less what the k directions explain, over s².

        Notes: D6-7.
        """
        self._check(x)
        d, k = self.weight.shape
        factor, away = self._factor(), x - self.bias
        explained = torch.linalg.solve_triangular(factor, (away @ self.weight).unsqueeze(-1), upper=False).squeeze(-1)
        square = (away.square().sum(dim=-1) - explained.square().sum(dim=-1)) / self.noise**2
        volume = factor.diagonal().log().sum() + (d - k) * self.log_noise  # half of ln det (W W^T + s² I)
        return -square / 2 - volume - d * math.log(2 * math.pi) / 2

    def elbo(
        self,
        x: Float[Tensor, "*#batch features"],
        mean: Float[Tensor, "*#batch latent"],
        covariance: Float[Tensor, "*#batch latent latent"],
    ) -> Float[Tensor, "*#batch"]:
        """The lower bound for q = N(mean, covariance), exactly: ln p(x) - D(q‖p(z | x)).

        Notes: D6-17.
        """
        truth = self.posterior(x)
        return self.log_evidence(x) - kl_normal(mean, covariance, truth.mean, truth.covariance)

    def _factor(self) -> Tensor:  # (k, k): that of A
        own = torch.eye(self.latent_dim, dtype=self.weight.dtype, device=self.weight.device)
        return torch.linalg.cholesky(self.weight.mT @ self.weight + self.noise**2 * own)

    def _check(self, x: Tensor) -> None:
        if x.ndim == 0 or x.shape[-1] != len(self.weight):
            raise UserError(
                f"expected examples of {len(self.weight)} numbers on the last axis, got shape {tuple(x.shape)}; "
                "reshape them"
            )
