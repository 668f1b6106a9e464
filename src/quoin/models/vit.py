"""The Vision Transformer: an image is cut into square patches, each a token; the mean of the encoder's outputs is
classified, or its output for one more token. Trained weights are in vit_weights.py.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import (
    FeedForward,
    InnerAttention,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    TransformerBlock,
    affine_definition,
    keeps_global_rng,
)
from quoin.layers.dropout import check_probability
from quoin.models.image_init import ImageShape, check_image_model
from quoin.models.transformer import TransformerEncoder
from quoin.tensor import check_image_batch

__all__ = ["PatchEmbedding", "ViT", "patch_embedding_definition"]


def patch_embedding_definition(
    images: Float[Tensor, "batch channels height width"],
    weight: Float[Tensor, "embed channels patch patch"],
    bias: Float[Tensor, "embed"],
) -> Float[Tensor, "batch patches embed"]:
    """W · (the pixels of a patch) + b for each patch, read row by row: patches do not overlap, and each becomes one
    token, h w / p² of them for patches of side p.

    Notes: Z11.T.
    """
    patch_size = weight.shape[-1]
    rows, columns = (size // patch_size for size in images.shape[-2:])
    patches = [
        images[:, :, patch_size * i : patch_size * (i + 1), patch_size * j : patch_size * (j + 1)].flatten(1)
        for i in range(rows)
        for j in range(columns)
    ]
    return affine_definition(torch.stack(patches, dim=1), weight.flatten(1), bias)


class PatchEmbedding(nn.Module):
    """`patch_embedding_definition` as a convolution whose stride is its side.

    Args:
        patch_size: Side of a patch in pixels; divides height and width.

    >>> PatchEmbedding((1, 8, 8), patch_size=2, embed_dim=16)(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 16, 16])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self, image_shape: ImageShape, patch_size: int, embed_dim: int, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        channels, height, across = image_shape
        if patch_size < 1 or height % patch_size or across % patch_size:
            raise UserError(
                f"expected a patch whose side divides images of {height} x {across} pixels, got {patch_size}; "
                "choose one"
            )
        self.num_patches = (height // patch_size) * (across // patch_size)
        self.convolution = nn.Conv2d(channels, embed_dim, patch_size, stride=patch_size)
        nn.init.xavier_uniform_(
            self.convolution.weight.flatten(1), generator=generator
        )  # a view: as the matrix that it is
        nn.init.zeros_(self.convolution.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch patches embed"]:
        return self.convolution(images).flatten(2).mT


class ViT(nn.Module):
    """Vision Transformer: patches become tokens with learned positions, an encoder reads them, their mean is
    classified; or, as in the paper, the output of a class token that stands before them.

    The outputs are logits. Pre-norm, and GELU in the feed-forward networks.

    Args:
        patch_size: Side of a patch in pixels; divides height and width.
        dropout: Of the embeddings and of the output of each sublayer.
        class_token: Whether a learned token, zero at first, goes before the patches and is classified in their stead.
        norm_eps: ε of the layer norms.
        make_attention: Called once for each block, gives it another attention than exact.

    >>> rng = torch.Generator().manual_seed(0)
    >>> model = ViT((1, 8, 8), 10, patch_size=2, embed_dim=16, num_heads=2, num_layers=2, generator=rng)
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
        patch_size: int,
        embed_dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 4,
        dropout: float = 0.0,
        class_token: bool = False,
        norm_eps: float = 1e-5,
        make_attention: Callable[[], InnerAttention] | None = None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_image_model(image_shape, num_classes, smallest=1)
        check_probability(dropout)
        self.image_shape = image_shape
        self.patches = PatchEmbedding(image_shape, patch_size, embed_dim, generator=generator)
        self.grid = (image_shape[1] // patch_size, image_shape[2] // patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if class_token else None
        self.position_embedding = LearnedPositionalEmbedding(
            self.patches.num_patches + class_token, embed_dim, generator=generator
        )
        self.dropout = nn.Dropout(dropout)
        self.encoder = TransformerEncoder(
            TransformerBlock(
                MultiHeadAttention(
                    embed_dim,
                    num_heads,
                    inner_attention=None if make_attention is None else make_attention(),
                    generator=generator,
                ),
                FeedForward(embed_dim, activation=nn.functional.gelu, generator=generator),
                norm=partial(nn.LayerNorm, eps=norm_eps),
                dropout=dropout,
            )
            for _ in range(num_layers)
        )
        self.head = nn.Linear(embed_dim, num_classes)
        nn.init.xavier_uniform_(self.head.weight, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        check_image_batch(images, self.image_shape)
        tokens = self.patches(images)
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(tokens.shape[0], -1, -1), tokens], dim=1)
        encoded = self.encoder(self.dropout(self.position_embedding(tokens)))
        return self.head(encoded.mean(dim=1) if self.class_token is None else encoded[:, 0])
