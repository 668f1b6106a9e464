"""Two classes from one linear score: logistic regression and the linear support vector machine are this model under two
losses."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.linear import zero_init_linear

__all__ = ["LinearScore"]


class LinearScore(nn.Module):
    """s(x) = w^T x + b as the two logits (-s, s), from w = 0 and b = 0: their softmax is P(y | x) = 1 / (1 + e^{-2 y
    s}).

    So cross-entropy of the logits is the log loss of the margin 2 y s, and the logit of the right class less the
    other's is the margin itself, which `quoin.losses.hinge_loss` takes.

    >>> model = LinearScore(2)
    >>> model(torch.ones(3, 2)).shape
    torch.Size([3, 2])

    Notes: M6, M9.
    """

    def __init__(self, num_features: int):
        super().__init__()
        if num_features < 1:
            raise UserError(f"expected at least one feature, got {num_features}; give the number of columns")
        self.linear = zero_init_linear(num_features, 1)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch 2"]:
        if x.ndim < 2 or x.shape[1:].numel() != self.linear.in_features:
            raise UserError(
                f"expected a batch of examples of {self.linear.in_features} numbers each, got shape {tuple(x.shape)}; "
                "put the batch on the first axis or change num_features"
            )
        score = self.linear(x.flatten(1))
        return torch.cat([-score, score], dim=-1)
