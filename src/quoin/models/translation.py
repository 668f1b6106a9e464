"""The distribution of a translation, for every model of targets given sources, be it recurrent or a Transformer."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.tensor import check_shapes, sequence_mask

__all__ = ["TranslationModel", "next_token_log_probs", "translation_log_prob"]


@runtime_checkable
class TranslationModel(Protocol):
    """Scores of each next token of a target, given its source and the target so far."""

    def __call__(
        self,
        source: Int[Tensor, "batch source_seq"],
        target: Int[Tensor, "batch target_seq"],
        *,
        source_lengths: Int[Tensor, "batch"] | None = None,
        target_lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch target_seq vocab"]: ...


def next_token_log_probs(
    model: TranslationModel,
    source: Int[Tensor, "batch source_seq"],
    target: Int[Tensor, "batch target_seq"],
    *,
    source_lengths: Int[Tensor, "batch"] | None = None,
) -> Float[Tensor, "batch target_seq vocab"]:
    """ln P(y_{t+1} | x, y_1 .. y_t) for every next token, one of V_y ∪ {EOS}: the log-softmax of the model's logits.

    `target` begins with BOS, so that its entry t = 0 gives the distribution of the first token.

    Args:
        source_lengths: How many tokens of each source are not padding; all unless given.

    Notes: M13.
    """
    return model(source, target, source_lengths=source_lengths).log_softmax(dim=-1)


def translation_log_prob(
    model: TranslationModel,
    source: Int[Tensor, "batch source_seq"],
    target: Int[Tensor, "batch target_seq"],
    *,
    bos_token_id: int,
    source_lengths: Int[Tensor, "batch"] | None = None,
    target_lengths: Int[Tensor, "batch"] | None = None,
) -> Float[Tensor, "batch"]:
    """ln P(y | x) = sum_{t=0}^{|y|} ln P(y_{t+1} | x, y_1 .. y_t), where y_{|y|+1} is EOS.

    Each target ends with EOS, without which the probabilities of all targets would sum to more than one.

    Args:
        bos_token_id: What the model reads before the first token.
        source_lengths: How many tokens of each source are not padding; all unless given.
        target_lengths: How many tokens each target has, EOS among them; what comes after is padding.

    Notes: M14.
    """
    check_shapes("b n, b t", source=source, target=target)
    read = torch.cat([torch.full_like(target[:, :1], bos_token_id), target[:, :-1]], dim=1)
    token_log_probs = (
        next_token_log_probs(model, source, read, source_lengths=source_lengths)
        .gather(-1, target.unsqueeze(-1))
        .squeeze(-1)
    )
    if target_lengths is not None:
        token_log_probs = token_log_probs.masked_fill(~sequence_mask(target_lengths, target.shape[1]), 0)
    return token_log_probs.sum(dim=-1)
