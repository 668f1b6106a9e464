"""Put features on one scale, with statistics of the training rows only."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["StandardScaler"]

_CHUNK = 8192  # rows lifted to float64 at once


class StandardScaler(NamedTuple):
    """(x - mean) / std, feature by feature; std is the population's, and 1 where a feature never changes.

    The statistics are float64 and the difference is taken there: in float32 a mean near 10⁶ is off by up to 0.03, and
    seconds since 1970 differ by two minutes only. What comes out is float32, which a model computes in; what goes back
    is float64 again. Apply it before the data move to a device, which may have no float64.

    Notes: D1.6-4.
    """

    mean: Tensor  # (d,) or (c, h, w)
    std: Tensor

    @classmethod
    def fit(cls, features: Tensor) -> "StandardScaler":
        """Mean and standard deviation over the rows, in two passes."""
        if len(features) == 0:
            raise ValueError("cannot standardise by no rows")
        num_rows = len(features)
        mean = torch.stack([chunk.double().sum(0) for chunk in features.split(_CHUNK)]).sum(0) / num_rows
        variance = (
            torch.stack([(chunk.double() - mean).square().sum(0) for chunk in features.split(_CHUNK)]).sum(0) / num_rows
        )
        # Asked of the values themselves: rounding of the mean leaves a constant feature a tiny variance, not zero.
        constant = features.amax(0) == features.amin(0)
        return cls(mean, torch.where(constant, 1.0, variance.sqrt()))

    def transform(self, features: Tensor) -> Tensor:
        """`features` on the common scale, float32."""
        return torch.cat([((chunk.double() - self.mean) / self.std).float() for chunk in features.split(_CHUNK)])

    def inverse_transform(self, scaled: Tensor) -> Tensor:
        """What `transform` was given, float64."""
        return torch.cat([chunk.double() * self.std + self.mean for chunk in scaled.split(_CHUNK)])
