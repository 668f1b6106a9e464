"""How well a language model predicts a text, in nats for each token. Perplexity and bits per character are in
quoin.metrics.

n tokens
"""

from jaxtyping import Float, Integer
from torch import Tensor

from quoin.errors import UserError
from quoin.losses.cross_entropy import cross_entropy

__all__ = ["token_nll", "token_nll_definition"]


def token_nll_definition(probabilities: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """(1/n) sum_t -ln P(x_t | x_1 .. x_{t-1}), from the probabilities of the tokens of a text given those before.

    Notes: Z9.7.
    """
    return -probabilities.log().sum(dim=-1) / probabilities.shape[-1]


def token_nll(logits: Float[Tensor, "*batch n vocab"], tokens: Integer[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """`token_nll_definition` from logits: entry t of them is the distribution of `tokens[t]` given those before it.

    Of a model that gives the distribution of the next token at each position, take `token_nll(model(tokens)[:, :-1],
    tokens[:, 1:])`.

    >>> import torch
    >>> token_nll(torch.zeros(3, 8), torch.tensor([0, 5, 7]))  # ln 8 for each
    tensor(2.0794)

    Notes: Z9.7.
    """
    if tokens.ndim == 0 or tokens.shape[-1] == 0:
        raise UserError(f"expected a text of one token or more, got tokens of shape {tuple(tokens.shape)}: give some")
    return cross_entropy(logits, tokens).mean(dim=-1)
