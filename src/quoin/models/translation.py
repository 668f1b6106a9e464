"""The law of a translation, for every model that scores targets given sources, be it recurrent or a Transformer.

b pairs, n source tokens, t target tokens, v target tokens in all
"""

from typing import Protocol

import torch
from torch import Tensor

from quoin.tensor import check_shapes, valid_mask

__all__ = ["TranslationModel", "step_log_probs", "translation_log_prob"]


class TranslationModel(Protocol):
    """Scores of each next token of a target, given its source and the target so far."""

    def __call__(
        self, source: Tensor, target: Tensor, *, source_lengths: Tensor | None = None, target_lengths: Tensor | None = None
    ) -> Tensor:  # (b, n), (b, t) -> (b, t, v)
        ...


def step_log_probs(
    model: TranslationModel, source: Tensor, target: Tensor, *, source_lengths: Tensor | None = None
) -> Tensor:  # (b, n), (b, t) -> (b, t, v)
    """ln P(y_{t+1} | x, y_1 .. y_t) for every next token, one of V_y ∪ {EOS}: the log-softmax of the model's scores.

    `target` begins with the mark of a beginning, so that its entry t = 0 gives the law of the first token.

    Notes: M13.
    """
    return model(source, target, source_lengths=source_lengths).log_softmax(dim=-1)


def translation_log_prob(
    model: TranslationModel,
    source: Tensor,
    target: Tensor,
    *,
    begin: int,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
) -> Tensor:  # (b, n), (b, t) -> (b,)
    """ln P(y | x) = sum_{t=0}^{|y|} ln P(y_{t+1} | x, y_1 .. y_t), where y_{|y|+1} is the mark of the end.

    Each target ends with that mark, without which the chances of all targets would sum to more than one; `target_lengths` counts it,
    and what comes after it is padding. `begin` is the mark that the model reads before the first token.

    Notes: M14.
    """
    check_shapes("b n, b t", source=source, target=target)
    read = torch.cat([torch.full_like(target[:, :1], begin), target[:, :-1]], dim=1)
    said = step_log_probs(model, source, read, source_lengths=source_lengths).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if target_lengths is not None:
        said = said.masked_fill(~valid_mask(target_lengths, target.shape[1]), 0)
    return said.sum(dim=-1)
