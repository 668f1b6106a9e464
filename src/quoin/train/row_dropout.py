"""Dropout whose mask belongs to the rows of the global batch: each process, and each micro-batch, drops what one
process with the whole batch would.

A mask is a function of the seed, the step, the layer, how often the layer was called before within this forward pass,
and the row. When activations are computed again in the backward pass (torch.utils.checkpoint), it is the same again.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from quoin.data import RowNoise
from quoin.data.row_noise import bernoulli_filler, rounded_probability

__all__ = ["RowDropout", "row_forward"]

CHANNEL_DIMS = {nn.Dropout1d.forward: 3, nn.Dropout2d.forward: 4, nn.Dropout3d.forward: 5}  # with that of the batch
RECURRENT = {nn.RNN.forward: nn.RNN, nn.GRU.forward: nn.GRU, nn.LSTM.forward: nn.LSTM}
TIMES = 16  # of which a packed sequence's mask is drawn together
ALPHA = -1.7580993408473766  # of AlphaDropout: where SELU ends on the left


saved_tensors_hooks = torch._C._autograd._top_saved_tensors_default_hooks  # pyright: ignore[reportAttributeAccessIssue]


class RowDropout:
    """The rows that go through a model now, and masks for them."""

    def __init__(self, device: torch.device) -> None:
        self.noise: RowNoise | None = None  # outside a step nothing is known of the rows
        self._noise = RowNoise(num_rows=0, device=device)
        self._calls: dict[int, int] = {}  # of each layer
        self._call_of_draw: dict[tuple[int, int], int] = {}

    def begin(self, seed: int, start: int, stop: int, num_rows: int) -> None:
        """From now on these rows go through the model."""
        self.noise = noise = self._noise
        noise.seed, noise.num_rows, noise.start, noise.stop = seed, num_rows, start, stop
        self._calls.clear()
        self._call_of_draw.clear()

    def end(self) -> None:
        self.noise = None

    def mask(
        self, layer: int, p: float, shape: torch.Size, num_dims: int, dtype: torch.dtype
    ) -> Shaped[Tensor, "rows *dims"] | None:
        """1 where a number stays and 0 where it goes, over the first `num_dims` dimensions of `shape`; None where the
        first of them is not one of rows."""
        noise = self.noise
        if noise is None or torch.compiler.is_compiling() or not shape or not len(noise) or shape[0] % len(noise):
            return None
        # (b n, d), of sequences that were put one after another, are b rows of (n, d)
        row_shape = shape[1:num_dims] if shape[0] == len(noise) else (shape[0] // len(noise), *shape[1:num_dims])
        key = (layer, self._number_of_call(layer))
        kept = noise.draw(row_shape, bernoulli_filler(rounded_probability(1 - p)), dtype, key)
        if shape[0] == len(noise) and len(shape) == num_dims:
            return kept
        return kept.reshape(*shape[:num_dims], *[1] * (len(shape) - num_dims))

    def _number_of_call(self, layer: int) -> int:
        """How often the layer was called before in this forward pass.

        A call in the backward pass repeats one of them. `torch.utils.checkpoint` puts torch's own generator back to
        where it stood then, and by what it draws that call is known again.
        """
        if torch._C._current_graph_task_id() != -1:  # within a backward pass
            return self._call_of_draw.get((layer, int(torch.randint(2**62, ()))), 0)
        number = self._calls.get(layer, 0)
        self._calls[layer] = number + 1
        if not torch.is_grad_enabled() or saved_tensors_hooks(True) is not None:  # as inside a checkpoint
            self._call_of_draw[layer, int(torch.randint(2**62, ()))] = number
        return number


def row_forward(module: Any, layer: int, rows: RowDropout) -> Callable | None:
    """How `module` is to be computed in a step, where it is a dropout of torch's or has one inside."""
    kind = type(module).forward
    if kind is nn.Dropout.forward:
        return functools.partial(_dropout, module, layer, rows) if module.p else None
    if kind in CHANNEL_DIMS:
        return functools.partial(_channel_dropout, module, layer, rows)
    if kind is nn.AlphaDropout.forward:
        return functools.partial(_alpha_dropout, module, layer, rows)
    if isinstance(module, nn.RNNBase) and kind in RECURRENT and module.dropout and module.num_layers > 1:
        return RecurrentLayers(module, layer, rows)
    return None


def _dropout(module: nn.Dropout, layer: int, rows: RowDropout, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    if not module.training or module.p == 0:
        return x
    # a GPU has one kernel for all of it, which keeps a byte a number
    kept = rows.mask(layer, module.p, x.shape, x.ndim, x.dtype if x.is_cpu else torch.bool)
    if kept is None:
        return functional.dropout(x, module.p, True, module.inplace)
    if not x.is_cpu:
        return torch.ops.aten.native_dropout_backward(x, kept, _scale(module.p))
    return x * kept.mul_(_scale(module.p))


def _scale(p: float) -> float:
    """By which what stays is multiplied, so that the mean is kept."""
    stays = rounded_probability(1 - p)
    return 1 / stays if stays else 0.0


def _channel_dropout(module: Any, layer: int, rows: RowDropout, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    if not module.training or module.p == 0:
        return x
    batched = x.ndim == CHANNEL_DIMS[type(module).forward]
    kept = rows.mask(layer, module.p, x.shape, 2, x.dtype) if batched else None
    return type(module).forward(module, x) if kept is None else x * kept.mul_(_scale(module.p))


def _alpha_dropout(
    module: nn.AlphaDropout, layer: int, rows: RowDropout, x: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    if not module.training or module.p == 0:
        return x
    kept = rows.mask(layer, module.p, x.shape, x.ndim, torch.bool) if module.p < 1 else None
    if kept is None:
        return type(module).forward(module, x)
    p = 1 - rounded_probability(1 - module.p)
    scale = ((1 - p) * (1 + p * ALPHA**2)) ** -0.5  # keeps the variance, and the shift the mean
    return scale * (torch.where(kept, x, ALPHA) - p * ALPHA)


class RecurrentLayers:
    """torch's recurrent module, its layers one by one, with our dropout between: torch draws its own inside."""

    def __init__(self, module: nn.RNNBase, layer: int, rows: RowDropout) -> None:
        self.module, self.layer, self.rows = module, layer, rows
        self.directions = 2 if module.bidirectional else 1
        size = (module.proj_size or module.hidden_size) * self.directions
        inputs = [module.input_size, *[size] * (module.num_layers - 1)]
        self.layers = [self._single(each) for each in inputs]

    def _single(self, input_size: int) -> nn.RNNBase:
        """A module of one layer; the weights come with each call."""
        module = self.module
        how: dict[str, Any] = {
            "bias": module.bias,
            "batch_first": module.batch_first,
            "bidirectional": module.bidirectional,
        }
        if isinstance(module, nn.LSTM):
            how["proj_size"] = module.proj_size
        if isinstance(module, nn.RNN):
            how["nonlinearity"] = module.nonlinearity
        return RECURRENT[type(module).forward](input_size, module.hidden_size, device="meta", **how)

    def __call__(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        module = self.module
        rows_first = isinstance(x, PackedSequence) or (x.ndim == 3 and module.batch_first)
        if not module.training or self.rows.noise is None or torch.compiler.is_compiling() or not rows_first:
            return type(module).forward(module, x, hx)
        states, after = hx if isinstance(hx, tuple) else (hx,), []
        for number, single in enumerate(self.layers):
            for name in single._flat_weights_names:
                weight = getattr(module, name.replace("_l0", f"_l{number}"))
                single._parameters[name] = weight
            single._flat_weights = [single._parameters[name] for name in single._flat_weights_names]
            here = slice(self.directions * number, self.directions * (number + 1))
            state = None if hx is None else tuple(each[here] for each in states)
            x, found = single.forward(x, state if state is None or isinstance(hx, tuple) else state[0])
            after.append(found if isinstance(found, tuple) else (found,))
            if number + 1 < len(self.layers):
                x = self._dropped_packed(x) if isinstance(x, PackedSequence) else self._dropped(x)
        final = tuple(torch.cat(parts) for parts in zip(*after))
        return x, final if isinstance(module, nn.LSTM) else final[0]

    def _dropped(self, x: Tensor) -> Tensor:
        p = self.module.dropout
        kept = self.rows.mask(self.layer, p, x.shape, x.ndim, x.dtype)
        return functional.dropout(x, p) if kept is None else x * kept.mul_(_scale(p))

    def _dropped_packed(self, x: PackedSequence) -> PackedSequence:
        """Of a packed sequence, whose rows have as many times as the longest of a piece, not of the batch: drawn for a
        few times together, so that a row's mask does not depend on how many come after."""
        batch, times, p = int(x.batch_sizes[0]), len(x.batch_sizes), self.module.dropout
        shape = torch.Size((batch, TIMES, *x.data.shape[1:]))
        found = [self.rows.mask(self.layer, p, shape, len(shape), x.data.dtype) for _ in range(0, times, TIMES)]
        masks = [mask for mask in found if mask is not None]
        if not masks:
            return x._replace(data=functional.dropout(x.data, p))
        time = torch.repeat_interleave(torch.arange(times), x.batch_sizes)
        row = torch.arange(len(time)) - (x.batch_sizes.cumsum(0) - x.batch_sizes)[time]
        row, time = row.to(x.data.device), time.to(x.data.device)
        if x.sorted_indices is not None:
            row = x.sorted_indices[row]
        return x._replace(data=x.data * torch.cat(masks, dim=1)[row, time].mul_(_scale(p)))
