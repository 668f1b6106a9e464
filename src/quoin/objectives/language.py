"""How well a language model foretells a text: nats for each token, the perplexity, bits for each character.

    n tokens, m in the vocabulary
"""

import math

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.objectives.cross_entropy import cross_entropy
from quoin.tensor import check_floating, check_mask, masked_mean, valid_mask

__all__ = ["bits_per_character", "perplexity", "token_nll", "token_nll_definition"]


def token_nll_definition(probabilities: Tensor) -> Tensor:  # (..., n) -> (...)
    """(1/n) sum_t -ln P(x_t | x_1 .. x_{t-1}), from the probabilities that the tokens of a text had when they came.

    Notes: Z9.7.
    """
    return -probabilities.log().sum(dim=-1) / probabilities.shape[-1]


def token_nll(logits: Tensor, tokens: Tensor) -> Tensor:  # (..., n, m), (..., n) -> (...)
    """`token_nll_definition` from logits: entry t of them is the law of `tokens[t]` given those before it.

    Of a model that gives the law of the next token at each place, take `token_nll(model(tokens)[:, :-1], tokens[:, 1:])`.

    >>> token_nll(torch.zeros(3, 8), torch.tensor([0, 5, 7]))  # ln 8 for each
    tensor(2.0794)

    Notes: Z9.7.
    """
    if tokens.ndim == 0 or tokens.shape[-1] == 0:
        raise Mistake(f"expected a text of one token or more, got tokens of shape {tuple(tokens.shape)}: give some")
    return cross_entropy(logits, tokens).mean(dim=-1)


def perplexity(nll: Tensor, *, mask: Tensor | None = None, lengths: Tensor | None = None) -> Tensor:  # (..., n) -> (...)
    """exp((1/n) sum_t -ln P(x_t | x_1 .. x_{t-1})): among how many equally likely tokens the model is as unsure.

    `nll` are the nats -ln P of each token, as `cross_entropy(logits, tokens)` gives them. Where texts are padded, the mean is over the
    tokens that `mask`, (..., n), and `lengths`, (...), count, and what was computed at the padding never matters.

    >>> perplexity(torch.tensor([8.0, 2.0, 4.0]).log())
    tensor(4.)
    >>> perplexity(torch.tensor([[8.0, 2.0, 4.0], [8.0, 2.0, torch.nan]]).log(), lengths=torch.tensor([3, 2]))
    tensor([4., 4.])

    Notes: Z9.8.
    """
    check_floating(nll, "nll")
    if nll.ndim == 0 or nll.shape[-1] == 0:
        raise Mistake(f"expected the nats of one token or more, came shape {tuple(nll.shape)}; give them token by token, not their mean")
    if mask is None and lengths is None:
        return torch.exp(nll.mean(dim=-1))
    if mask is not None:
        check_mask(mask, nll.shape)
    if lengths is not None:
        if lengths.shape != nll.shape[:-1]:
            raise Mistake(f"expected lengths of shape {tuple(nll.shape[:-1])}, one a text, came {tuple(lengths.shape)}; give one a text")
        counted = valid_mask(lengths, nll.shape[-1])
        mask = counted if mask is None else mask & counted
    assert mask is not None
    if not bool(mask.any(dim=-1).all()):
        raise Mistake("expected a token to count in every text, came a text with none; leave out the empty ones")
    return torch.exp(masked_mean(nll, mask, axis=-1))


def bits_per_character(nats: Tensor, num_characters: int) -> Tensor:  # (...) -> (...)
    """-log2 P(text) / characters, from the nats of all its tokens together: it compares models whatever their tokens are.

    >>> bits_per_character(torch.tensor(4 * math.log(256)), 4)  # bytes that nothing is known of
    tensor(8.)
    """
    if num_characters < 1:
        raise Mistake(f"expected a text of one character or more, got {num_characters}: give some text")
    return nats / (math.log(2) * num_characters)
