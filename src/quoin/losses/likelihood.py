"""Maximum likelihood as a loss: -ln of the probability a model gives to what happened, one value per example.

From log-probabilities already at hand, or from a model with `log_prob` (see quoin.prob). From logits, use
`cross_entropy`, and from probabilities `cross_entropy_from_probs`.
"""

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor

from quoin.errors import UserError
from quoin.prob import ConditionalModel, UnconditionalModel, check_probs, distribution_cross_entropy
from quoin.tensor import check_labels, check_shapes, one_hot

__all__ = ["conditional_nll", "cross_entropy_from_probs", "density_nll", "expected_nll", "nll_loss"]


def nll_loss(
    log_probabilities: Float[Tensor, "*batch classes"], labels: Integer[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """-ln P(y_i | x_i) for each example; the sum over examples is -ln P(Y | X) = -ln prod_i P(y_i | x_i).

    Notes: Z4.6.
    """
    check_shapes("... q, ...", log_probabilities=log_probabilities, labels=labels)
    if not log_probabilities.is_floating_point():
        raise UserError(
            f"expected log-probabilities as floats, got {log_probabilities.dtype}; take log_softmax of the scores"
        )
    if not torch.compiler.is_compiling():  # reading values would break the graph: a compiled step trusts its data
        check_labels(labels, log_probabilities.shape[-1])
        high = float(log_probabilities.detach().amax()) if log_probabilities.numel() else 0.0
        if high > 1e-3:
            raise UserError(f"expected log-probabilities, none above 0, got {high:.3g}; take log_softmax of the scores")
    return -log_probabilities.gather(-1, labels.long().unsqueeze(-1)).squeeze(-1)


def cross_entropy_from_probs(
    probabilities: Float[Tensor, "*batch classes"], target: Integer[Tensor, "*batch"] | Float[Tensor, "*batch classes"]
) -> Float[Tensor, "*batch"]:
    """-sum_j y_j ln p_j for predicted probabilities p and a target distribution y, or a label standing for its one-hot
    distribution.

    A class the target gives no weight costs nothing; one it gives weight and the prediction none costs infinity. Where
    the logits are at hand, `cross_entropy` is the accurate way.

    Notes: Z4.7.
    """
    check_probs(probabilities, "probabilities")
    if not target.is_floating_point():
        check_shapes("... q, ...", probabilities=probabilities, target=target)
        target = one_hot(target, probabilities.shape[-1], dtype=probabilities.dtype)
    check_shapes("... q, ... q", probabilities=probabilities, target=target)
    check_probs(target, "target")
    return distribution_cross_entropy(target, probabilities)


def conditional_nll(
    model: ConditionalModel, y: Shaped[Tensor, "..."], x: Shaped[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """L(x, y) = -ln P(y | x), the cross-entropy loss of each labelled pair: one value for each.

    Notes: M4.
    """
    return -model.log_prob(y, x)


def expected_nll(model: ConditionalModel, y: Shaped[Tensor, "..."], x: Shaped[Tensor, "..."]) -> Float[Tensor, ""]:
    """E[-ln P(y | x)] over a sample of pairs; the model that makes it least is the one sought (see `quoin.optim.fit`).

    Notes: M3, M12.
    """
    return _mean(conditional_nll(model, y, x))


def density_nll(model: UnconditionalModel, y: Shaped[Tensor, "..."]) -> Float[Tensor, ""]:
    """E[-ln P(y)] over a sample without inputs.

    Notes: M15.
    """
    return _mean(-model.log_prob(y))


def _mean(losses: Tensor) -> Tensor:
    if losses.numel() == 0:
        raise UserError("expected at least one example to average over, got none; leave out empty batches")
    return losses.mean()
