"""Building models from modules: parts inside parts, one layer used several times, a size that the first batch decides.

Saving such a model to a file and getting it back is quoin.train's work (`save_weights`, `load_weights`).
"""

from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError

__all__ = ["TiedMLP"]


class TiedMLP(nn.Module):
    """An MLP whose one hidden layer is applied `repeats` times: o = C s(B s(B ... s(A x))), with s = ReLU and biases.

    The layer is one module at several places, so its parameters are tied: they count once, are stored once, and their
    gradient is the sum over its uses. The number of inputs is not needed: A takes its shape from the first batch, and
    its values from torch's default generator; after that batch `quoin.layers.init_weights` samples all weights from one
    of yours.

    >>> import torch
    >>> model = TiedMLP(8, 3, repeats=4)
    >>> model(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    >>> [tuple(parameter.shape) for parameter in model.parameters()]
    [(8, 5), (8,), (8, 8), (8,), (3, 8), (3,)]

    Notes: Z6.
    """

    def __init__(self, hidden_dim: int, out_features: int, *, repeats: int):
        super().__init__()
        if min(hidden_dim, out_features, repeats) < 1:
            raise UserError(
                f"expected a positive hidden_dim, out_features and repeats, got {hidden_dim}, {out_features} and "
                f"{repeats}; raise the least"
            )
        shared = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU())
        self.entry = nn.Sequential(nn.Flatten(), nn.LazyLinear(hidden_dim), nn.ReLU())
        self.body = nn.Sequential(*[shared] * repeats)  # the same module each time, not a copy
        self.head = nn.Linear(hidden_dim, out_features)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch out_features"]:
        if x.ndim < 2:
            raise UserError(
                f"expected a batch of examples, got shape {tuple(x.shape)}; put the batch on the first axis"
            )
        return self.head(self.body(self.entry(x)))
