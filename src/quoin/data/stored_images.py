"""Images that stay in a file of bytes: a tensor whose rows are read, and standardised, when they are asked for.

100,000 images of 3 x 224 x 224 are 15 GB of bytes and 60 GB of float32; a batch of them is 19 MB.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor
from torch.utils._pytree import tree_map

from quoin.data.image_cache import DecodedImages
from quoin.data.scaling import StandardScaler
from quoin.tensor.labels import as_indices

__all__ = ["StoredImages"]

CHUNK_NUMBERS = 2**17  # of images that are converted together
MAX_NUMBERS = 2**26  # of images that are read at once and kept: 256 MiB of float32


class StoredImages(Tensor):
    """Rows of decoded images as float32 in [0, 1], standardised by `scaler` if one is given.

    Taking rows, by `images[rows]`, `index_select(0, rows)` or `split(size)`, reads just these and gives an ordinary
    tensor on `device`. Any other operation reads all rows first.
    """

    def __new__(
        cls,
        decoded: DecodedImages,
        rows: Int[Tensor, "rows"],
        *,
        scaler: StandardScaler | None = None,
        device: torch.device | str = "cpu",
    ) -> "StoredImages":
        shape = (len(rows), *decoded.shape)
        return Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32, device=torch.device(device))

    def __init__(
        self,
        decoded: DecodedImages,
        rows: Int[Tensor, "rows"],
        *,
        scaler: StandardScaler | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.decoded, self.scaler = decoded, scaler
        self._rows: np.ndarray = rows.cpu().numpy()
        self._scale = None if scaler is None else tuple(each.to(device, torch.float32) for each in scaler)

    # Of any operation of torch that is not overridden below, this is told; shape, dtype and device need none.
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore[reportAssignmentType]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(lambda each: each[:] if isinstance(each, StoredImages) else each, (args, kwargs or {}))
        return func(*args, **kwargs)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"StoredImages(shape={tuple(self.shape)}, device={self.device})"

    def _read(self, rows: np.ndarray) -> Float32[Tensor, "rows channels height width"]:
        if self.device.type != "cpu":
            bytes_there = torch.from_numpy(np.asarray(self.decoded.pixels[rows])).to(self.device)
            return self._on_scale(bytes_there.to(torch.float32))
        images = np.empty((len(rows), *self.decoded.shape), np.float32)
        scale = [each.numpy() for each in self._scale or ()]
        # By NumPy, one after the other, from the file to the end while the processor's cache holds an image: what torch
        # shares out among threads in such small pieces waits for the slowest of them, for long on a busy machine.
        size = max(1, CHUNK_NUMBERS // max(1, int(np.prod(self.decoded.shape))))
        for start in range(0, len(rows), size):
            some, chosen = images[start : start + size], rows[start : start + size]
            some[...] = self.decoded.pixels[chosen[0]] if len(chosen) == 1 else self.decoded.pixels[chosen]
            some /= 255
            if scale:
                some -= scale[0]
                some /= scale[1]
        return torch.from_numpy(images)

    def _on_scale(self, images: Tensor) -> Tensor:
        """Bytes as float32, on the scale that is wanted, in place."""
        images.div_(255)
        return images if self._scale is None else images.sub_(self._scale[0]).div_(self._scale[1])

    def __getitem__(self, index: Any) -> Tensor:
        first, *others = index if isinstance(index, tuple) else (index,)
        if isinstance(first, Tensor):
            first = first.cpu().numpy()
        rows = self._rows[first]
        found = self._read(np.atleast_1d(rows))
        found = found if rows.ndim else found[0]
        return found[tuple([slice(None)] * rows.ndim + others)] if others else found

    def index_select(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, dim: int, index: Int[Tensor, "selected"]
    ) -> Float32[Tensor, "..."]:
        return self[as_indices(index)] if dim == 0 else self[:].index_select(dim, index)

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, split_size: int, dim: int = 0
    ) -> Iterator[Float32[Tensor, "..."]]:
        """Tensors of at most `split_size` rows, each read when its turn comes."""
        if dim:
            yield from self[:].split(split_size, dim)
            return
        for start in range(0, max(1, len(self)), split_size):  # no rows are one piece too, as of any tensor
            yield self[start : start + split_size]

    def to(self, device: torch.device | str) -> "StoredImages":  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same rows, read onto another device."""
        return StoredImages(self.decoded, torch.from_numpy(self._rows), scaler=self.scaler, device=device)

    def take(self, index: Int[Tensor, "taken"], scaler: StandardScaler | None = None) -> "StoredImages":
        """The rows at `index` without reading them, to be standardised by `scaler`."""
        rows = torch.from_numpy(self._rows)[as_indices(index).cpu()]
        return StoredImages(self.decoded, rows, scaler=scaler, device=self.device)

    def scaled(self, scaler: StandardScaler) -> "StoredImages":
        """The same rows, to be standardised by `scaler`."""
        return StoredImages(self.decoded, torch.from_numpy(self._rows), scaler=scaler, device=self.device)

    def loaded(self) -> Float[Tensor, "rows channels height width"]:
        """All rows in memory if they are at most MAX_NUMBERS numbers, else these same stored ones."""
        return self[:] if self.numel() <= MAX_NUMBERS else self

    def fit_scaler(self, index: Int[Tensor, "selected"]) -> StandardScaler:
        """Mean and standard deviation of each channel over the rows at `index`, exact, and without reading them."""
        chosen = self.decoded.statistics[self._rows[as_indices(index).cpu().numpy()]]
        if len(chosen) == 0:
            raise ValueError("cannot standardise by no rows")
        count = len(chosen) * int(np.prod(self.shape[2:]))
        means, stds = [], []
        for sums in chosen.transpose(1, 2, 0):  # of a channel: sums, sums of squares, least and largest, each by row
            total, squares = int(sums[0].sum()), int(sums[1].sum())
            constant = sums[2].min() == sums[3].max()
            means.append(total / count / 255)
            stds.append(1.0 if constant else (count * squares - total**2) ** 0.5 / count / 255)
        mean, std = (torch.tensor(each, dtype=torch.float64)[:, None, None] for each in (means, stds))
        return StandardScaler(mean, std)

    @property
    def levels(self) -> int:
        """2 if all is black or white, else 256: v² = 255 v for v = 0 and 255 alone."""
        sums = self.decoded.statistics[self._rows]
        return 2 if (sums[..., 1] == 255 * sums[..., 0]).all() else 256
