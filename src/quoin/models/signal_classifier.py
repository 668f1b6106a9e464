"""Classifiers of signals, rows of numbers in order on one or several channels: an encoder gives a vector a position,
and their mean, the global average pooling, is classified.

The encoders differ in what a position knows of the others: its neighbourhood (a 1-D convolutional network), all that
comes before and after it in order (a recurrent network from both ends), or whatever it attends to (a Transformer's
encoder).
"""

import itertools
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers import (
    LearnedPositionalEmbedding,
    TransformerBlock,
    affine_definition,
    cross_correlate1d_definition,
    keeps_global_rng,
)
from quoin.layers.dropout import check_probability
from quoin.models.image_init import init_image_weights
from quoin.models.recurrent_parts import CellKind, make_cell, make_linear, read_sequences
from quoin.models.transformer import TransformerEncoder
from quoin.tensor import check_floating

__all__ = [
    "ConvSignalEncoder",
    "RecurrentSignalEncoder",
    "SignalClassifier",
    "SignalPatchEmbedding",
    "TransformerSignalEncoder",
    "conv_block1d_definition",
    "signal_classifier_definition",
    "signal_patch_embedding_definition",
]

SignalShape = tuple[int, int]  # (channels, length)


def signal_classifier_definition(
    encode: Callable[[Tensor], Tensor],
    signals: Float[Tensor, "batch channels length"],
    weight: Float[Tensor, "classes features"],
    bias: Float[Tensor, "classes"],
) -> Float[Tensor, "batch classes"]:
    """W · (1/m sum_t r_t) + b, with r_1, ..., r_m the vectors that the encoder gives to the positions of one signal."""
    means = [encode(signal[None])[0].mean(dim=0) for signal in signals]
    return affine_definition(torch.stack(means), weight, bias)


def conv_block1d_definition(
    x: Float[Tensor, "batch channels length"],
    weight: Float[Tensor, "out_channels channels kernel"],
    mean: Float[Tensor, "out_channels"],
    variance: Float[Tensor, "out_channels"],
    eps: float = 1e-5,
) -> Float[Tensor, "batch out_channels out_length"]:
    """Convolution of odd kernel size, padded to the same length; (y − mean) / sqrt(variance + eps) channel by channel;
    ReLU; the larger of each two neighbours, and a last one without a neighbour as it is.

    This is the block as it predicts, with the scale 1 and shift 0 of a batch norm that has not learned.

    Notes: D1.1-22, Z8.7.
    """
    y = cross_correlate1d_definition(x, weight, padding=weight.shape[-1] // 2)
    y = ((y - mean[:, None]) / (variance[:, None] + eps).sqrt()).clamp(min=0)
    return torch.stack([y[..., t : t + 2].amax(dim=-1) for t in range(0, y.shape[-1], 2)], dim=-1)


def signal_patch_embedding_definition(
    signals: Float[Tensor, "batch channels length"],
    weight: Float[Tensor, "embed channels patch"],
    bias: Float[Tensor, "embed"],
) -> Float[Tensor, "batch patches embed"]:
    """W · (the steps of a patch, of all channels) + b for each patch in turn: patches do not overlap, and zeros fill
    the last one.

    Notes: Z11.T.
    """
    patch_size = weight.shape[-1]
    patches = []
    for start in range(0, signals.shape[-1], patch_size):
        patch = signals.new_zeros(*signals.shape[:2], patch_size)
        steps = signals[..., start : start + patch_size]
        patch[..., : steps.shape[-1]] = steps
        patches.append(patch.flatten(1))
    return affine_definition(torch.stack(patches, dim=1), weight.flatten(1), bias)


class SignalPatchEmbedding(nn.Module):
    """`signal_patch_embedding_definition` as a convolution whose stride is its kernel size.

    Args:
        patch_size: Steps of a patch; it need not divide the length.

    >>> SignalPatchEmbedding((2, 10), patch_size=4, embed_dim=16)(torch.zeros(5, 2, 10)).shape
    torch.Size([5, 3, 16])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self, signal_shape: SignalShape, patch_size: int, embed_dim: int, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        channels, length = _checked_shape(signal_shape)
        _check_sizes(embed_dim=embed_dim)
        if not 1 <= patch_size <= length:
            raise UserError(
                f"expected a patch of 1 to {length} steps, all that a signal has, got {patch_size}; change it"
            )
        self.num_patches = -(-length // patch_size)
        self.pad = nn.ConstantPad1d((0, self.num_patches * patch_size - length), 0.0)
        self.convolution = nn.Conv1d(channels, embed_dim, patch_size, stride=patch_size)
        nn.init.xavier_uniform_(
            self.convolution.weight.flatten(1), generator=generator
        )  # a view: as the matrix that it is
        nn.init.zeros_(self.convolution.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, signals: Float[Tensor, "batch channels length"]) -> Float[Tensor, "batch patches embed"]:
        return self.convolution(self.pad(signals)).mT


class ConvSignalEncoder(nn.Module):
    """Blocks of a 1-D convolution, batch norm, ReLU and max pooling by two: `conv_block1d_definition`, one after
    another.

    Args:
        hidden_dim: Channels of each block.
        kernel_size: Odd, so that a position is the middle of what it sees.
        dropout: Between the blocks.

    >>> ConvSignalEncoder(2, 16, num_layers=3)(torch.zeros(5, 2, 128)).shape
    torch.Size([5, 16, 16])

    Notes: D1.1-22, Z8.7.
    """

    @keeps_global_rng
    def __init__(
        self,
        in_channels: int,
        hidden_dim: int,
        *,
        num_layers: int = 3,
        kernel_size: int = 7,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        _check_sizes(in_channels=in_channels, hidden_dim=hidden_dim, num_layers=num_layers)
        check_probability(dropout)
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise UserError(f"expected an odd kernel size, got {kernel_size}; give e.g. 7")
        widths = [in_channels] + [hidden_dim] * num_layers
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(
                    # No bias: the norm behind it would take it away again.
                    nn.Conv1d(before, after, kernel_size, padding=kernel_size // 2, bias=False),
                    nn.BatchNorm1d(after),
                    nn.ReLU(),
                    nn.MaxPool1d(2, ceil_mode=True),  # the last of an odd number stays: no length is too short
                    nn.Dropout(dropout),
                )
                for before, after in itertools.pairwise(widths)
            )
        )
        self.output_dim = hidden_dim
        init_image_weights(self, generator)

    def forward(self, signals: Float[Tensor, "batch channels length"]) -> Float[Tensor, "batch positions features"]:
        check_floating(signals)
        return self.blocks(signals).mT


class RecurrentSignalEncoder(nn.Module):
    """Layers of a recurrent cell from both ends over patches of the signal; a patch of one step is the step itself.

    Args:
        patch_size: Steps that the cell reads at once, through an embedding that is learned; 1 for none.
        dropout: Between the layers.

    >>> RecurrentSignalEncoder(nn.GRU, (2, 128), 16, patch_size=4)(torch.zeros(5, 2, 128)).shape
    torch.Size([5, 32, 32])

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        signal_shape: SignalShape,
        hidden_dim: int,
        *,
        patch_size: int = 1,
        num_layers: int = 1,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        channels, _ = _checked_shape(signal_shape)
        self.patches = (
            None if patch_size == 1 else SignalPatchEmbedding(signal_shape, patch_size, hidden_dim, generator=generator)
        )
        in_features = channels if self.patches is None else hidden_dim
        self.cell = make_cell(cell, in_features, hidden_dim, num_layers, dropout, True, generator)
        self.output_dim = 2 * hidden_dim

    def forward(self, signals: Float[Tensor, "batch channels length"]) -> Float[Tensor, "batch positions features"]:
        check_floating(signals)
        return read_sequences(self.cell, signals.mT if self.patches is None else self.patches(signals))[0]


class TransformerSignalEncoder(nn.Module):
    """Embeddings of patches, with the learned position of each added to it, and blocks in which every patch attends to
    all.

    >>> from quoin.layers import transformer_block
    >>> encoder = TransformerSignalEncoder((2, 128), [transformer_block(8, num_heads=2)], patch_size=8)
    >>> encoder(torch.zeros(5, 2, 128)).shape
    torch.Size([5, 16, 8])

    Notes: Z11.T.
    """

    def __init__(
        self,
        signal_shape: SignalShape,
        blocks: Iterable[TransformerBlock],
        *,
        patch_size: int = 8,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.encoder = TransformerEncoder(blocks)
        self.output_dim = self.encoder.embed_dim
        self.patches = SignalPatchEmbedding(signal_shape, patch_size, self.output_dim, generator=generator)
        self.position_embedding = LearnedPositionalEmbedding(
            self.patches.num_patches, self.output_dim, generator=generator
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, signals: Float[Tensor, "batch channels length"]) -> Float[Tensor, "batch positions features"]:
        check_floating(signals)
        return self.encoder(self.dropout(self.position_embedding(self.patches(signals))))


class SignalClassifier(nn.Module):
    """`signal_classifier_definition` for signals of one shape; the outputs are logits.

    >>> model = SignalClassifier(ConvSignalEncoder(2, 16), (2, 128), num_classes=3)
    >>> model(torch.zeros(5, 2, 128)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        encoder: ConvSignalEncoder | RecurrentSignalEncoder | TransformerSignalEncoder,
        signal_shape: SignalShape,
        num_classes: int,
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.signal_shape = _checked_shape(signal_shape)
        if num_classes < 1:
            raise UserError(f"expected at least one class, got {num_classes}; give the number of different ones")
        self.encoder = encoder
        self.head = make_linear(encoder.output_dim, num_classes, generator)

    def forward(self, signals: Float[Tensor, "batch channels length"]) -> Float[Tensor, "batch classes"]:
        if signals.ndim != 3 or tuple(signals.shape[1:]) != self.signal_shape:
            channels, length = self.signal_shape
            raise UserError(
                f"expected signals (n, {channels}, {length}), got shape {tuple(signals.shape)}; give what the model "
                "was built for"
            )
        return self.head(self.encoder(signals).mean(dim=1))


def _checked_shape(signal_shape: SignalShape) -> SignalShape:
    sizes = tuple(signal_shape)
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise UserError(
            f"expected signal_shape as (channels, length), got {format_value(signal_shape)}; give e.g. (1, 128)"
        )
    return sizes


def _check_sizes(*, in_channels: int = 1, hidden_dim: int = 1, num_layers: int = 1, embed_dim: int = 1) -> None:
    sizes = {"in_channels": in_channels, "hidden_dim": hidden_dim, "num_layers": num_layers, "embed_dim": embed_dim}
    if bad := [name for name, size in sizes.items() if size < 1]:
        raise UserError(f"expected {bad[0]} of 1 or more, got {sizes[bad[0]]}: raise it")
