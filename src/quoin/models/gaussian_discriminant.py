"""Classify by the distribution of the data: how common each class is, what its examples look like, and Bayes' rule to
invert that.

n examples, q classes, d numbers an example
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import check_probs
from quoin.tensor import check_labels, check_shapes
from quoin.tensor.labels import as_indices

__all__ = ["GaussianDiscriminant", "LabeledSample"]


@shown
class LabeledSample(NamedTuple):
    """Examples with their classes."""

    x: Float[Tensor, "batch ..."]
    y: Int[Tensor, "batch"]


class GaussianDiscriminant(nn.Module):
    """A joint distribution of a class c and numbers x: P(c) from `priors`, and x | c ~ N(means[c], covariances[c]), one
    covariance or one each.

    It predicts by Bayes' rule, argmax_c P(c | x), which no other rule beats if the distribution is the true one. The
    numbers of an example may have any shape, such as 28 × 28 pixels, behind any axes of a batch: `means` is (q,
    *shape), and covariances are of the d numbers in a row.

    >>> model = GaussianDiscriminant(torch.tensor([0.5, 0.5]), torch.tensor([[-1.0], [1.0]]), torch.eye(1))
    >>> model.posterior(torch.tensor([[0.0], [0.5]]))
    tensor([[0.5000, 0.5000],
            [0.2689, 0.7311]])

    Notes: D5.2-1, D5.2-2.
    """

    means: Float[Tensor, "classes numbers"]
    factors: Float[Tensor, "_classes_or_one numbers numbers"]  # lower triangular: covariance = factor factor^T
    log_priors: Float[Tensor, "classes"]

    def __init__(
        self,
        priors: Float[Tensor, "classes"],
        means: Float[Tensor, "classes ..."],
        covariances: Float[Tensor, "... numbers numbers"],
    ):
        super().__init__()
        check_probs(priors, "priors")
        if means.ndim < 2 or len(means) != len(priors) or means[0].numel() == 0:
            raise UserError(
                f"expected one mean for each of {len(priors)} classes, got shape {tuple(means.shape)}; give "
                "(classes, numbers)"
            )
        self.shape = means.shape[1:]
        rows = means.reshape(len(means), -1)
        each = covariances if covariances.ndim == 3 else covariances.unsqueeze(0)
        check_shapes(f"{len(each) if len(each) == 1 else len(means)} {rows.shape[1]} {rows.shape[1]}", covariances=each)
        factors, failed = torch.linalg.cholesky_ex(each)
        if failed.any() or not factors.isfinite().all():
            raise UserError(
                "expected covariances with no direction of variance 0, got a singular one; "
                "give more examples a class, share one covariance, or add a ridge"
            )
        self.register_buffer("log_priors", priors.log())
        self.register_buffer("means", rows)
        self.register_buffer("factors", factors.contiguous())  # by rows; torch.export.save warns of LAPACK's columns

    @classmethod
    def from_prototypes(
        cls, prototypes: Float[Tensor, "classes ..."], std: float, *, priors: Float[Tensor, "classes"] | None = None
    ) -> "GaussianDiscriminant":
        """Pictures known to the last digit: the prototype of the class plus N(0, std^2) on each pixel; classes equally
        common.

        Notes: D5.2-1.
        """
        if prototypes.ndim < 2 or not 0 < std < math.inf:
            raise UserError(
                f"expected prototypes (classes, numbers) and a noise above 0, got {tuple(prototypes.shape)} and {std}"
            )
        q, d = len(prototypes), prototypes[0].numel()
        uniform = torch.full((q,), 1 / q, dtype=prototypes.dtype, device=prototypes.device)
        covariance = std**2 * torch.eye(d, dtype=prototypes.dtype, device=prototypes.device)
        return cls(uniform if priors is None else priors, prototypes, covariance)

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "examples ..."],
        y: Integer[Tensor, "examples"],
        num_classes: int,
        *,
        shared_covariance: bool = False,
        reg_covar: float = 0.0,
    ) -> "GaussianDiscriminant":
        """The most probable distribution for examples x with labels y: frequencies, means and covariances, each over
        its own number.

        `shared_covariance` takes one covariance for all classes, about each one's mean: boundaries are then planes.
        `reg_covar` is added to every variance, as a fraction of the mean variance of the numbers.
        """
        check_labels(y, num_classes)
        y = as_indices(y, "y")
        if len(x) != len(y) or x.ndim < 2 or not x.is_floating_point():
            got = f"{x.dtype} {tuple(x.shape)} and {tuple(y.shape)}"
            raise UserError(f"expected float examples (n, ...) and n labels, got {got}; give a label for each row")
        if not x.isfinite().all() or not reg_covar >= 0:
            raise UserError(
                f"expected finite examples and a reg_covar of at least 0, got NaN or infinity, or {reg_covar}; "
                "drop or fill those rows"
            )
        counts = torch.bincount(y, minlength=num_classes)
        if (counts == 0).any():
            missing = int((counts == 0).nonzero()[0])
            raise UserError(
                f"expected examples of each of {num_classes} classes, got none of class {missing}; number those "
                "that occur"
            )
        rows = x.reshape(len(x), -1)
        means = torch.stack([rows[y == c].mean(dim=0) for c in range(num_classes)])
        away = rows - means[y]
        floor = (
            reg_covar * rows.var(dim=0, correction=0).mean() * torch.eye(rows.shape[1], dtype=x.dtype, device=x.device)
        )
        if shared_covariance:
            covariances = away.mT @ away / len(y) + floor
        else:
            covariances = torch.stack([away[y == c].mT @ away[y == c] / counts[c] for c in range(num_classes)]) + floor
        return cls(counts.to(x.dtype) / len(y), means.reshape(num_classes, *x.shape[1:]), covariances)

    def log_joint(self, x: Float[Tensor, "..."]) -> Float[Tensor, "*batch classes"]:
        """ln p(c, x) = ln P(c) + ln p(x | c) for every class, by triangular solves: far from all means nothing
        underflows.

        Notes: D5.2-1.
        """
        if x.shape[x.ndim - len(self.shape) :] != self.shape:
            raise UserError(
                f"expected examples of shape (..., {', '.join(map(str, self.shape))}), got {tuple(x.shape)}; "
                "reshape them"
            )
        before = x.shape[: x.ndim - len(self.shape)]
        rows = x.reshape(-1, self.means.shape[1])
        away = (rows.unsqueeze(0) - self.means.unsqueeze(1)).mT  # (q, d, n)
        squares = torch.linalg.solve_triangular(self.factors, away, upper=False).square().sum(dim=1)  # (q, n)
        volume = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1, keepdim=True) + rows.shape[1] / 2 * math.log(
            2 * math.pi
        )
        return (self.log_priors.unsqueeze(-1) - squares / 2 - volume).mT.reshape(*before, -1)

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "*batch classes"]:
        """The log joint, whose softmax over the classes is the posterior: scores for any loss of scores."""
        return self.log_joint(x)

    def posterior(self, x: Float[Tensor, "..."]) -> Float[Tensor, "*batch classes"]:
        """P(c | x) = p(c, x) / p(x), in logs.

        Notes: D5.2-2.
        """
        return self.log_joint(x).softmax(dim=-1)

    def log_prob(self, y: Integer[Tensor, "*batch"], x: Float[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """ln P(y | x)."""
        logs = self.log_joint(x).log_softmax(dim=-1)
        check_shapes("..., ... q", y=y, logs=logs)
        check_labels(y, logs.shape[-1])
        return logs.gather(-1, y.long().unsqueeze(-1)).squeeze(-1)

    def log_density(self, x: Float[Tensor, "..."]) -> Float[Tensor, "*batch"]:
        """ln p(x) = ln sum_c p(c, x)."""
        return self.log_joint(x).logsumexp(dim=-1)

    def predict(self, x: Float[Tensor, "..."]) -> Int[Tensor, "*batch"]:
        """argmax_c P(c | x), the first of equals.

        Notes: D5.2-2.
        """
        scores = self.log_joint(x)
        if scores.isnan().any():
            raise UserError("expected examples to decide by, got NaN; drop or fill those rows")
        return scores.argmax(dim=-1)

    def sample(self, num_samples: int, *, generator: torch.Generator) -> LabeledSample:
        """Pairs from the joint distribution: the class first, then x given the class."""
        y = torch.multinomial(self.log_priors.exp(), num_samples, replacement=True, generator=generator)
        noise = torch.randn(
            num_samples, self.means.shape[1], generator=generator, dtype=self.means.dtype, device=self.means.device
        )
        x = torch.empty_like(noise)
        for c in range(len(self.means)):  # a class at a time: a factor for each example would not fit in memory
            mine = y == c
            x[mine] = self.means[c] + noise[mine] @ self.factors[c if len(self.factors) > 1 else 0].mT
        return LabeledSample(x.reshape(num_samples, *self.shape), y)
