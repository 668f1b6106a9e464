"""Token embeddings: the table made, and tokens looked up in it.   w embed_dim"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.layers.fast_call import fast_call

__all__ = ["embed", "make_embedding"]


@keeps_global_rng
def make_embedding(
    num_embeddings: int, embed_dim: int, *, std: float = 1.0, generator: torch.Generator | None = None
) -> nn.Embedding:
    """A learned embedding for each token, normal of standard deviation `std` at first.

    A Transformer takes `std` 1/√w: times √w an embedding is then as large as a positional encoding, and its transpose
    gives logits of size one.
    """
    if num_embeddings < 1 or embed_dim < 1:
        raise UserError(
            f"expected a vocab_size and an embed_dim of 1 or more, got {num_embeddings} and {embed_dim}; raise them"
        )
    table = nn.Embedding(num_embeddings, embed_dim)
    nn.init.normal_(table.weight, std=std, generator=generator)
    return table


def embed(table: nn.Embedding, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq embed"]:
    """The embeddings of tokens, which must be integers from 0 on that the table has."""
    if tokens.ndim != 2 or tokens.is_floating_point() or tokens.dtype == torch.bool:
        got = f"{tokens.dtype} of shape {tuple(tokens.shape)}"
        raise UserError(f"expected token ids (batch_size, positions), got {got}; encode the text first")
    if torch.compiler.is_compiling():
        return table(tokens)
    try:
        return fast_call(table, tokens)
    except IndexError:  # checked only once it has failed: a check of every batch would make a GPU wait
        raise UserError(
            f"expected tokens from 0 to {table.num_embeddings - 1}, got {int(tokens.min())} to {int(tokens.max())}; "
            "encode the text with the vocabulary that the model was made for"
        ) from None
