"""A classifier that reads an image row by row: every row looks at all rows, and their mean decides.

n images, c channels, h rows, w pixels a row, q classes
"""

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.layers import LearnedPositions, MultiHeadAttention, keeps_global_rng
from quoin.models.image_start import ImageShape, check_image_model
from quoin.tensor import check_image_batch

__all__ = ["AttentionBlock", "AttentionClassifier"]


class AttentionBlock(nn.Module):
    """x + A(norm(x)): multi-head self-attention A with a shortcut, the norm first.

    >>> AttentionBlock(8, heads=2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, width: int, heads: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads, generator=generator)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:  # (n, h, width) -> (n, h, width)
        return x + self.attention(self.norm(x))


class AttentionClassifier(nn.Module):
    """Self-attention over the rows of an image: embed each row, add its position, attend `layers` times, average, and judge.

    Without the positions it could not tell an image from one with its rows shuffled. The outputs are logits.

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
        width: int = 64,
        heads: int = 4,
        layers: int = 2,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_image_model(image_shape, num_classes, smallest=1)
        if not isinstance(layers, int) or layers < 1:
            raise Mistake(f"expected at least one attention layer, came {shown(layers)}; give e.g. layers=2")
        if not 0 <= dropout < 1:
            raise Mistake(f"expected a dropout probability of at least 0 and below 1, came {dropout}; give e.g. 0.1")
        self.image_shape = image_shape
        channels, rows, columns = image_shape
        self.blocks = nn.Sequential(*(AttentionBlock(width, heads, generator=generator) for _ in range(layers)))  # checks sizes
        self.embed = nn.Linear(channels * columns, width)
        self.positions = LearnedPositions(rows, width, generator=generator)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)
        self.judge = nn.Linear(width, num_classes)
        for linear in (self.embed, self.judge):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n, q)
        check_image_batch(images, self.image_shape)
        rows = images.transpose(1, 2).flatten(2)  # (n, h, c w): all channels of a row are one token
        x = self.blocks(self.dropout(self.positions(self.embed(rows))))
        return self.judge(self.norm(self.dropout(x)).mean(dim=1))
