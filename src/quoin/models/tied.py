"""Building models from modules: parts inside parts, one layer at several places, a width that the first batch decides.

Saving such a model to a file and getting it back is quoin.train's work (`save_weights`, `load_weights`).
"""

from torch import Tensor, nn

from quoin.errors import Mistake

__all__ = ["TiedMLP"]


class TiedMLP(nn.Module):
    """A perceptron whose one hidden layer is applied `repeats` times: o = C s(B s(B ... s(A x))), with s = ReLU and biases.

    The layer is one module at several places, so its parameters are tied: they count once, are stored once, and their
    gradient is the sum over the places. The number of inputs is not asked for: A takes its shape from the first batch, and its
    values from torch's default generator; after that batch `quoin.layers.initialise` draws all weights from one of yours.

    >>> import torch
    >>> model = TiedMLP(8, 3, repeats=4)
    >>> model(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    >>> [tuple(parameter.shape) for parameter in model.parameters()]
    [(8, 5), (8,), (8, 8), (8,), (3, 8), (3,)]

    Notes: Z6.
    """

    def __init__(self, width: int, outputs: int, *, repeats: int):
        super().__init__()
        if min(width, outputs, repeats) < 1:
            raise Mistake(f"expected a positive width, outputs and repeats, came {width}, {outputs} and {repeats}; raise the least")
        shared = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.entry = nn.Sequential(nn.Flatten(), nn.LazyLinear(width), nn.ReLU())
        self.body = nn.Sequential(*[shared] * repeats)  # the same module each time, not a copy
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:  # (n, ...) -> (n, outputs)
        if x.ndim < 2:
            raise Mistake(f"expected a batch of examples, came shape {tuple(x.shape)}; put the batch on the first axis")
        return self.head(self.body(self.entry(x)))
