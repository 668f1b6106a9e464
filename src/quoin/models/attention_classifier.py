"""A classifier of images by self-attention over their rows, whose mean decides."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers import LearnedPositionalEmbedding, MultiHeadAttention, keeps_global_rng
from quoin.models.image_init import ImageShape, check_image_model
from quoin.tensor import check_image_batch

__all__ = ["AttentionBlock", "AttentionClassifier"]


class AttentionBlock(nn.Module):
    """x + A(norm(x)): multi-head self-attention A with a shortcut, the norm first.

    >>> AttentionBlock(8, num_heads=2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, embed_dim: int, num_heads: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.attention = MultiHeadAttention(embed_dim, num_heads, generator=generator)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: Float[Tensor, "batch rows embed"]) -> Float[Tensor, "batch rows embed"]:
        return x + self.attention(self.norm(x))


class AttentionClassifier(nn.Module):
    """Self-attention over the rows of an image: embed each row, add its position, attend `num_layers` times, average,
    and classify.

    Without the positions it could not distinguish an image from one with its rows shuffled. The outputs are logits.

    >>> model = AttentionClassifier((1, 8, 8), 10, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])

    Notes: D2.2-5, D2.2-6.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        num_classes: int,
        *,
        embed_dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 2,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_image_model(image_shape, num_classes, smallest=1)
        if not isinstance(num_layers, int) or num_layers < 1:
            raise UserError(
                f"expected at least one attention layer, got {format_value(num_layers)}; give e.g. num_layers=2"
            )
        if not 0 <= dropout < 1:
            raise UserError(f"expected a dropout probability of at least 0 and below 1, got {dropout}; give e.g. 0.1")
        self.image_shape = image_shape
        channels, rows, columns = image_shape
        self.blocks = nn.Sequential(
            *(AttentionBlock(embed_dim, num_heads, generator=generator) for _ in range(num_layers))
        )  # checks sizes
        self.embed = nn.Linear(channels * columns, embed_dim)
        self.position_embedding = LearnedPositionalEmbedding(rows, embed_dim, generator=generator)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)
        for linear in (self.embed, self.head):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        check_image_batch(images, self.image_shape)
        rows = images.transpose(1, 2).flatten(2)  # (batch, rows, channels * width): all channels of a row are one token
        x = self.blocks(self.dropout(self.position_embedding(self.embed(rows))))
        return self.head(self.norm(self.dropout(x)).mean(dim=1))
