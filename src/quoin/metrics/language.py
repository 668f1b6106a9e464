"""What is reported of a language model: the perplexity of its tokens, bits for each character. The loss is in
quoin.losses."""

import math

import torch
from jaxtyping import Bool, Float, Integer, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_floating, check_mask, masked_mean, sequence_mask

__all__ = ["bits_per_character", "perplexity"]


def perplexity(
    nll: Float[Tensor, "*batch n"],
    *,
    mask: Bool[Tensor, "*#batch #n"] | None = None,
    lengths: Integer[Tensor, "*batch"] | None = None,
) -> Float[Tensor, "*batch"]:
    """exp((1/n) sum_t -ln P(x_t | x_1 .. x_{t-1})): the number of equally probable tokens with the same uncertainty.

    Where texts are padded, the mean is over the tokens that both `mask` and `lengths` count, and what was computed at
    the padding never matters.

    Args:
        nll: -ln P of each token in nats, as `cross_entropy(logits, tokens)` gives them.
        mask: True where a token counts.
        lengths: How many tokens of each text count, from its first.

    >>> perplexity(torch.tensor([8.0, 2.0, 4.0]).log())
    tensor(4.)
    >>> perplexity(torch.tensor([[8.0, 2.0, 4.0], [8.0, 2.0, torch.nan]]).log(), lengths=torch.tensor([3, 2]))
    tensor([4., 4.])

    Notes: Z9.8.
    """
    check_floating(nll, "nll")
    if nll.ndim == 0 or nll.shape[-1] == 0:
        raise UserError(
            f"expected the nats of one token or more, got shape {tuple(nll.shape)}; give them token by token, not "
            "their mean"
        )
    if mask is None and lengths is None:
        return torch.exp(nll.mean(dim=-1))
    if mask is not None:
        check_mask(mask, nll.shape)
    if lengths is not None:
        if lengths.shape != nll.shape[:-1]:
            raise UserError(
                f"expected lengths of shape {tuple(nll.shape[:-1])}, one a text, got {tuple(lengths.shape)}; give "
                "one a text"
            )
        counted = sequence_mask(lengths, nll.shape[-1])
        mask = counted if mask is None else mask & counted
    assert mask is not None
    if not bool(mask.any(dim=-1).all()):
        raise UserError("expected a token to count in every text, got a text with none; leave out the empty ones")
    return torch.exp(masked_mean(nll, mask, dim=-1))


def bits_per_character(nats: Real[Tensor, "*shape"], num_characters: int) -> Float[Tensor, "*shape"]:
    """-log2 P(text) / characters, from the nats of all its tokens together: it compares models whatever their tokens
    are.

    >>> bits_per_character(torch.tensor(4 * math.log(256)), 4)  # bytes that nothing is known of
    tensor(8.)
    """
    if num_characters < 1:
        raise UserError(f"expected a text of one character or more, got {num_characters}: give some text")
    return nats / (math.log(2) * num_characters)
