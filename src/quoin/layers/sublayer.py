"""How a sublayer of a Transformer joins the residual stream: its output is added, with a norm before or after."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers.dropout import check_probability
from quoin.layers.fast_call import fast_call

__all__ = ["PostNorm", "PreNorm", "SublayerConnection", "post_norm_definition", "pre_norm_definition"]

Map = Callable[[Tensor], Tensor]


def pre_norm_definition(x: Float[Tensor, "*batch embed"], sublayer: Map, norm: Map) -> Float[Tensor, "*batch embed"]:
    """x + sublayer(norm(x)): the residual stream is a sum that no norm ever touches, so a stack
    of such sublayers closes with one more norm.

    Notes: Z11.T.
    """
    return x + sublayer(norm(x))


def post_norm_definition(x: Float[Tensor, "*batch embed"], sublayer: Map, norm: Map) -> Float[Tensor, "*batch embed"]:
    """norm(x + sublayer(x)): the order of the first Transformer.

    Notes: Z11.T.
    """
    return norm(x + sublayer(x))


class SublayerConnection(nn.Module):
    """A norm around a sublayer, and dropout of the sublayer's output.

    For decoding in two halves, since a decode step gives a cache beside its output: the sublayer's input is
    `sublayer_input(x)`, and the residual stream after it `add_output(x, output)`.
    """

    normalizes_output: bool  # whether what comes out has just been through the norm

    def __init__(self, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        check_probability(dropout)
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def sublayer_input(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch embed"]:
        raise NotImplementedError

    def add_output(
        self, x: Float[Tensor, "*batch embed"], output: Float[Tensor, "*batch embed"]
    ) -> Float[Tensor, "*batch embed"]:
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "*batch embed"], sublayer: Map) -> Float[Tensor, "*batch embed"]:
        return self.add_output(x, sublayer(self.sublayer_input(x)))


class PreNorm(SublayerConnection):
    """`pre_norm_definition`: x + sublayer(norm(x)).

    >>> import torch
    >>> PreNorm(nn.LayerNorm(2))(torch.tensor([3.0, 5.0]), torch.zeros_like)
    tensor([3., 5.])

    Notes: Z11.T.
    """

    normalizes_output = False

    def forward(self, x: Float[Tensor, "*batch embed"], sublayer: Map) -> Float[Tensor, "*batch embed"]:
        return x + self.dropout(sublayer(self.norm(x)))

    def sublayer_input(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch embed"]:
        return fast_call(self._modules["norm"], x)

    def add_output(
        self, x: Float[Tensor, "*batch embed"], output: Float[Tensor, "*batch embed"]
    ) -> Float[Tensor, "*batch embed"]:
        return x + fast_call(self._modules["dropout"], output)


class PostNorm(SublayerConnection):
    """`post_norm_definition`: norm(x + sublayer(x)).

    Notes: Z11.T.
    """

    normalizes_output = True

    def forward(self, x: Float[Tensor, "*batch embed"], sublayer: Map) -> Float[Tensor, "*batch embed"]:
        return self.norm(x + self.dropout(sublayer(x)))

    def sublayer_input(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch embed"]:
        return x

    def add_output(
        self, x: Float[Tensor, "*batch embed"], output: Float[Tensor, "*batch embed"]
    ) -> Float[Tensor, "*batch embed"]:
        return fast_call(self._modules["norm"], x + fast_call(self._modules["dropout"], output))
