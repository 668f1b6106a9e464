"""Nadaraya-Watson regression as a model that keeps its training rows: the kernels of layers.NadarayaWatson, one of
which predicts."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import NadarayaWatson, nadaraya_watson

__all__ = ["NadarayaWatsonRegression"]


class NadarayaWatsonRegression(nn.Module):
    """Σ_i K((x - x_i)/h) y_i / Σ_i K((x - x_i)/h) over the rows that `set_rows` was given, by the kernel `chosen`.

    Args:
        pools: The kernels by name, each with its bandwidth h.
        max_rows: Room for so many rows; fewer may be set.

    Notes: Z11.7.
    """

    keys: Float[Tensor, "max_rows features"]
    values: Float[Tensor, "max_rows"]
    num_rows: Int[Tensor, ""]
    chosen: Int[Tensor, ""]

    def __init__(self, pools: Mapping[str, NadarayaWatson], max_rows: int, num_features: int):
        super().__init__()
        if min(len(pools), max_rows, num_features) < 1:
            raise UserError(
                f"expected a kernel, a row and a feature or more, got {len(pools)}, {max_rows} and {num_features}"
            )
        self.pools = nn.ModuleDict(pools)
        self.register_buffer("keys", torch.zeros(max_rows, num_features, dtype=torch.float64))
        self.register_buffer("values", torch.zeros(max_rows, dtype=torch.float64))
        self.register_buffer("num_rows", torch.tensor(0))
        self.register_buffer("chosen", torch.tensor(0))

    def set_rows(self, x: Float[Tensor, "rows features"], y: Float[Tensor, "rows"]) -> None:
        """Predict from these rows, in place of those before."""
        if not 1 <= len(x) <= len(self.keys):
            raise UserError(f"expected from 1 to {len(self.keys)} rows, got {len(x)}; build the model with more room")
        self.keys[: len(x)], self.values[: len(y)] = x, y
        self.num_rows.fill_(len(x))

    def pooled(
        self,
        x: Float[Tensor, "batch features"],
        name: str,
        bandwidth: Float[Tensor, ""] | None = None,
        mask: Bool[Tensor, "batch rows"] | None = None,
    ) -> Float[Tensor, "batch"]:
        """What the kernel of this name predicts, with its own bandwidth or another; in float64.

        Args:
            mask: True where a prediction may look at a row.
        """
        n = int(self.num_rows)
        return self._pool(x, name, self.keys[:n], self.values[:n], bandwidth, mask)

    def _pool(
        self, x: Tensor, name: str, keys: Tensor, values: Tensor, bandwidth: Tensor | None, mask: Tensor | None
    ) -> Tensor:
        pool = self.pools[name]
        bandwidth = pool.bandwidth if bandwidth is None else bandwidth  # pyright: ignore[reportAssignmentType]
        return nadaraya_watson(x.double(), keys, values[:, None], pool.kernel, bandwidth, mask=mask).squeeze(-1)  # pyright: ignore

    def _by_all(self, x: Tensor) -> Tensor:
        """The same of all kernels, from all rows there is room for, of which a mask shows those that were set: how many
        these are, and which kernel was chosen, is no number that an exported program could branch on."""
        mask = torch.arange(len(self.keys), device=x.device) < self.num_rows
        found = [self._pool(x, name, self.keys, self.values, None, mask) for name in self.pools]
        return torch.stack(found).index_select(0, self.chosen[None]).squeeze(0)

    @property
    def best(self) -> str:
        """The name of the kernel that predicts."""
        return list(self.pools)[int(self.chosen)]

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        if torch.compiler.is_exporting():
            return self._by_all(x.flatten(1)).to(x.dtype)
        return self.pooled(x.flatten(1), self.best).to(x.dtype)
