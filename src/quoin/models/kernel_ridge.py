"""Ridge regression with a kernel, by way of the kernel matrix alone, and on random features that stand in for the
kernel.

n examples
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import fourier_features_definition
from quoin.models.closed_form import ridge
from quoin.tensor import PairKernel, check_gamma, check_shapes, kernel_matrix

__all__ = ["FourierRegression", "KernelFit", "kernel_ridge"]


@shown
class KernelFit(NamedTuple):
    """x ↦ Σ_i a_i k(x_i, x) + b: what `kernel_ridge` finds."""

    kernel: PairKernel
    points: Float[Tensor, "examples in_features"]
    weights: Float[Tensor, "examples"]  # which sum to zero
    bias: Float[Tensor, ""]

    def predict(self, x: Float[Tensor, "batch in_features"]) -> Float[Tensor, "batch"]:
        return kernel_matrix(self.kernel, x, self.points) @ self.weights + self.bias


def kernel_ridge(
    kernel: PairKernel, X: Float[Tensor, "examples in_features"], y: Float[Tensor, "examples"], l2: float
) -> KernelFit:
    """What `ridge` gives on features ψ with ψ(x)·ψ(y) = k(x, y), without them: a = (H K H + n l2 I)^-1 H y.

    H = I - 11ᵀ/n centres, for the bias is not penalised. The weights on ψ are Σ_i a_i ψ(x_i).

    Args:
        kernel: k, from two tensors (..., d) to (...), such as `partial(rbf_kernel, gamma=0.5)`.
        l2: Weight of the penalty, above 0, as in `ridge`.

    Notes: D4.1-14.
    """
    check_shapes("n d, n", X=X, y=y)
    if len(y) == 0:
        raise UserError("expected at least one example to fit, got none; give X and y with rows")
    if not (l2 > 0 and math.isfinite(l2)):
        raise UserError(f"expected a positive, finite l2, got {l2}; a kernel has as many features as examples, or more")
    K = kernel_matrix(kernel, X)
    centered = K - K.mean(dim=0) - K.mean(dim=1, keepdim=True) + K.mean()
    factor, failed = torch.linalg.cholesky_ex(
        centered + len(y) * l2 * torch.eye(len(y), dtype=X.dtype, device=X.device)
    )
    if int(failed):
        raise UserError(
            f"expected a kernel and a l2 that {X.dtype} can solve with, got l2 {l2}; enlarge it or use float64"
        )
    weights = torch.cholesky_solve((y - y.mean()).unsqueeze(-1), factor).squeeze(-1)
    return KernelFit(kernel, X, weights, y.mean() - (K @ weights).mean())


class FourierRegression(nn.Module):
    """x ↦ w·ψ(x) + b on random Fourier features of the Gaussian kernel, fitted in closed form: memory for so many
    features, not all in use.

    Args:
        num_features: The most features that `fit` may use.
        gamma: γ of the kernel e^{-γ‖x-y‖²}.

    Notes: D4.1-14.
    """

    projection: Float[Tensor, "features in_features"]
    phases: Float[Tensor, "features"]
    weight: Float[Tensor, "features"]
    bias: Float[Tensor, ""]
    in_use: Int[Tensor, ""]

    def __init__(self, in_features: int, num_features: int, gamma: float):
        super().__init__()
        check_gamma(gamma)
        self.gamma = gamma
        self.register_buffer("projection", torch.zeros(num_features, in_features))
        self.register_buffer("phases", torch.zeros(num_features))
        self.register_buffer("weight", torch.zeros(num_features))
        self.register_buffer("bias", torch.zeros(()))
        self.register_buffer("in_use", torch.ones((), dtype=torch.int64))

    @torch.no_grad()
    def fit(
        self,
        X: Float[Tensor, "examples in_features"],
        y: Float[Tensor, "examples"],
        l2: float,
        *,
        projection: Float[Tensor, "features in_features"],
        phases: Float[Tensor, "features"],
    ) -> None:
        """Ridge on the features along these directions, at most as many as there is memory for, in their type."""
        count = len(projection)
        if not 0 < count <= len(self.weight):
            raise UserError(f"expected from 1 to {len(self.weight)} directions, got {count}; make the model with more")
        found = ridge(fourier_features_definition(X, projection, phases, self.gamma), y, l2)
        self.in_use.fill_(count)
        for buffer, values in ((self.projection, projection), (self.phases, phases), (self.weight, found.weight)):
            buffer.zero_()[:count] = values.to(buffer)
        self.bias.copy_(found.bias)

    def forward(self, x: Float[Tensor, "*batch in_features"]) -> Float[Tensor, "*batch"]:
        if torch.compiler.is_exporting():  # a program takes all features: the weights of those not in use are 0
            features = fourier_features_definition(x, self.projection, self.phases, self.gamma)
            return features @ (self.weight * (self.weight.shape[0] / self.in_use).sqrt()) + self.bias
        used = slice(int(self.in_use))
        return (
            fourier_features_definition(x, self.projection[used], self.phases[used], self.gamma) @ self.weight[used]
            + self.bias
        )
