"""A Transformer that reads images: cut into square patches, each a token; the mean of what the encoder makes of them decides.

n images, c channels, h x w pixels, p side of a patch, t = (h / p)(w / p) patches, d width, q classes
"""

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import LearnedPositions, affine_definition, keeps_global_rng, transformer_block
from quoin.layers.dropout import check_probability
from quoin.models.image_start import ImageShape, check_image_model
from quoin.models.transformer import TransformerEncoder
from quoin.tensor import check_image_batch

__all__ = ["PatchEmbedding", "ViT", "patch_embedding_definition"]


def patch_embedding_definition(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # (n, c, h, w), (d, c, p, p), (d,) -> (n, t, d)
    """W · (the pixels of a patch) + b for each patch, read row by row: patches do not overlap, and each becomes one token.

    Notes: Z11.T.
    """
    side = weight.shape[-1]
    rows, columns = (size // side for size in images.shape[-2:])
    patches = [images[:, :, side * i : side * (i + 1), side * j : side * (j + 1)].flatten(1) for i in range(rows) for j in range(columns)]
    return affine_definition(torch.stack(patches, dim=1), weight.flatten(1), bias)


class PatchEmbedding(nn.Module):
    """`patch_embedding_definition` as a convolution whose stride is its side.

    >>> PatchEmbedding((1, 8, 8), side=2, width=16)(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 16, 16])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(self, image_shape: ImageShape, side: int, width: int, *, generator: torch.Generator | None = None):
        super().__init__()
        channels, height, across = image_shape
        if side < 1 or height % side or across % side:
            raise Mistake(f"expected a patch whose side divides images of {height} x {across} pixels, came {side}; choose one")
        self.num_patches = (height // side) * (across // side)
        self.convolution = nn.Conv2d(channels, width, side, stride=side)
        nn.init.xavier_uniform_(self.convolution.weight.flatten(1), generator=generator)  # a view: as the matrix that it is
        nn.init.zeros_(self.convolution.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n, t, d)
        return self.convolution(images).flatten(2).mT


class ViT(nn.Module):
    """Vision Transformer: patches become tokens with learned positions, an encoder reads them, and their mean is judged.

    The outputs are logits. The norm comes first, and the perceptrons have GELU.

    >>> model = ViT((1, 8, 8), 10, side=2, width=16, heads=2, layers=2, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        num_classes: int,
        *,
        side: int,
        width: int = 64,
        heads: int = 4,
        layers: int = 4,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_image_model(image_shape, num_classes, smallest=1)
        check_probability(dropout)
        self.image_shape = image_shape
        self.patches = PatchEmbedding(image_shape, side, width, generator=generator)
        self.positions = LearnedPositions(self.patches.num_patches, width, generator=generator)
        self.dropout = nn.Dropout(dropout)
        self.encoder = TransformerEncoder(
            transformer_block(width, heads, activation=nn.functional.gelu, dropout=dropout, generator=generator) for _ in range(layers)
        )
        self.judge = nn.Linear(width, num_classes)
        nn.init.xavier_uniform_(self.judge.weight, generator=generator)
        nn.init.zeros_(self.judge.bias)

    def forward(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n, q)
        check_image_batch(images, self.image_shape)
        return self.judge(self.encoder(self.dropout(self.positions(self.patches(images)))).mean(dim=1))
