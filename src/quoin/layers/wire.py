"""How a part of a Transformer joins the stream that runs through it: added to what went in, with a norm before or after."""

from collections.abc import Callable

from torch import Tensor, nn

from quoin.layers.direct import direct, part
from quoin.layers.dropout import check_probability

__all__ = ["PostNorm", "PreNorm", "Wire", "post_norm_definition", "pre_norm_definition"]

Map = Callable[[Tensor], Tensor]


def pre_norm_definition(x: Tensor, part: Map, norm: Map) -> Tensor:
    """x + part(norm(x)): the stream is a sum that no norm ever touches, so a stack of such parts closes with one more norm.

    Notes: Z11.T.
    """
    return x + part(norm(x))


def post_norm_definition(x: Tensor, part: Map, norm: Map) -> Tensor:
    """norm(x + part(x)): the order of the first Transformer.

    Notes: Z11.T.
    """
    return norm(x + part(x))


class Wire(nn.Module):
    """A norm, and a dropout of what the part gives. What the part is given is `enter(x)`; the stream after it is `leave(x, given)`.

    In two halves, for a part may give more than its output: a decoding step gives a state as well.
    """

    norm: nn.Module = part()
    dropout: nn.Dropout = part()
    leaves_normalised: bool  # whether what comes out has just been through the norm

    def __init__(self, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        check_probability(dropout)
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def leave(self, x: Tensor, given: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, part: Map) -> Tensor:
        return self.leave(x, part(self.enter(x)))


class PreNorm(Wire):
    """`pre_norm_definition`: x + part(norm(x)).

    >>> import torch
    >>> PreNorm(nn.LayerNorm(2))(torch.tensor([3.0, 5.0]), torch.zeros_like)
    tensor([3., 5.])

    Notes: Z11.T.
    """

    leaves_normalised = False

    def enter(self, x: Tensor) -> Tensor:
        return direct(self.norm, x)

    def leave(self, x: Tensor, given: Tensor) -> Tensor:
        return x + direct(self.dropout, given)


class PostNorm(Wire):
    """`post_norm_definition`: norm(x + part(x)).

    Notes: Z11.T.
    """

    leaves_normalised = True

    def enter(self, x: Tensor) -> Tensor:
        return x

    def leave(self, x: Tensor, given: Tensor) -> Tensor:
        return direct(self.norm, x + direct(self.dropout, given))
