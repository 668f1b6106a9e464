"""Put features on one scale, with statistics of the training rows only."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Float32, Float64, Int, Real
from torch import Tensor

from quoin.display import shown

__all__ = ["StandardScaler"]

_ROWS, _NUMBERS = 8192, 1 << 20  # lifted to float64 at once, whichever is fewer


@shown
class StandardScaler(NamedTuple):
    """(x - mean) / std, feature by feature; std is the population's, and 1 where a feature never changes.

    The statistics are float64 and the difference is taken there: in float32 a mean near 10⁶ is off by up to 0.03, and
    seconds since 1970 differ by two minutes only. What comes out is float32, which a model computes in; what goes back
    is float64 again. Apply it before the data move to a device, which may have no float64.

    Notes: D1.6-4.
    """

    # Of a row's shape, or one that broadcasts against it: (channels, 1, 1) for images, (channels, 1) for signals.
    mean: Float[Tensor, "*shape"]
    std: Float[Tensor, "*shape"]

    @classmethod
    def fit(
        cls,
        features: Real[Tensor, "samples *shape"],
        rows: Int[Tensor, "selected"] | None = None,
        *,
        per_channel: bool = False,
    ) -> "StandardScaler":
        """Mean and standard deviation over the rows, in two passes.

        Args:
            rows: Which of them count; all unless given. They are never copied out as a whole.
            per_channel: One mean for each channel of (samples, channels, height, width) or (samples, channels, length).
        """
        if len(features if rows is None else rows) == 0:
            raise ValueError("cannot standardise by no rows")
        pixels = features[0, 0].numel() if per_channel else 1

        def chunks() -> Iterator[Tensor]:
            for chunk in _chunks(features, rows, max(1, _ROWS // pixels)):
                yield chunk.movedim(1, -1).flatten(0, -2) if per_channel else chunk

        count = len(features if rows is None else rows) * pixels
        mean = torch.stack([chunk.double().sum(0) for chunk in chunks()]).sum(0) / count
        variance = torch.stack([(chunk.double() - mean).square_().sum(0) for chunk in chunks()]).sum(0) / count
        # Asked of the values themselves: rounding of the mean leaves a constant feature a tiny variance, not zero.
        first = next(chunks())[0]
        constant = torch.stack([(chunk == first).all(0) for chunk in chunks()]).all(0)
        std = torch.where(constant, 1.0, variance.sqrt())
        if per_channel:
            mean, std = (each.reshape(-1, *(1 for _ in features.shape[2:])) for each in (mean, std))
        return cls(mean, std)

    def transform(
        self, features: Real[Tensor, "samples *shape"], rows: Int[Tensor, "selected"] | None = None
    ) -> Float32[Tensor, "scaled *shape"]:
        """`features`, or those at `rows`, on the common scale, float32."""
        count = len(features if rows is None else rows)
        scaled = torch.empty((count, *features.shape[1:]), dtype=torch.float32)
        for chunk, place in zip(_chunks(features, rows), _chunks(scaled), strict=True):
            place.copy_((chunk.double() - self.mean).div_(self.std))
        return scaled

    def inverse_transform(self, scaled: Real[Tensor, "samples *shape"]) -> Float64[Tensor, "samples *shape"]:
        """What `transform` was given, float64."""
        return scaled.double() * self.std + self.mean


def _chunks(features: Tensor, rows: Tensor | None = None, most: int = _ROWS) -> Iterator[Tensor]:
    size = max(1, min(most, _NUMBERS // max(1, features[:1].numel())))
    if rows is None:
        yield from features.split(size)
    else:
        yield from (features[each] for each in rows.split(size))
