"""The layers of `quoin.layers` that stand by themselves, for torch.export: attentions, positions, norms, blocks."""

import torch
from torch import Tensor, nn

from export_cases import Case
from export_networks import causal, generator, images, lengths, noise, of_lengths, ring, vectors
from quoin import layers as q
from quoin.tensor import EpanechnikovKernel, GaussianKernel


def heads(*dims: int, kv_heads: int = 2):
    """Queries, keys and values (batch, heads, seq, dim)."""

    def made(batch: int, seq: int) -> tuple[Tensor, ...]:
        counts = (2, kv_heads, kv_heads) if len(dims) == 3 else (2, kv_heads)
        return tuple(
            noise(batch, number, seq, dim) - 0.1 * i for i, (number, dim) in enumerate(zip(counts, dims, strict=True))
        )

    return made


def with_mask(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Queries, keys, values, and a mask that lets query i see the keys up to i + 1, and the second key always."""
    rows, columns = torch.arange(seq)[:, None], torch.arange(seq)
    return *heads(4, 4, 4)(batch, seq), ((columns <= rows + 1) | (columns == 1)).expand(batch, 1, seq, seq)


def causal_heads(model: nn.Module, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return model(query, key, value, causal=True)


def masked(model: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    return model(query, key, value, mask=mask)


def of_query(model: nn.Module, x: Tensor) -> Tensor:
    """The values of a feature map, at their own scale."""
    found = model(x, is_query=True)
    return found.values


def added_to(bias: nn.Module, x: Tensor) -> Tensor:
    return bias(x.shape[1], x.shape[1])


def norm_free(connection: nn.Module, x: Tensor) -> Tensor:
    return connection(x, torch.tanh)


def linear_attention(**options) -> nn.Module:
    return q.LinearAttention(**options)


def performer(**options) -> nn.Module:
    return q.PerformerAttention(4, 8, generator=generator(), **options)


def gated_pixels(model: nn.Module, vertical: Tensor, horizontal: Tensor) -> tuple[Tensor, Tensor]:
    found = model(q.PixelStacks(vertical, horizontal))
    return found.vertical, found.horizontal


RING = ring()


def mixed(model: nn.Module, x: Tensor) -> Tensor:
    return model(x, RING)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """An attention of one's own."""
    return nn.functional.scaled_dot_product_attention(query, key, value)


def block() -> nn.Module:
    return q.transformer_block(8, 2, generator=generator())


def two_vectors(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    return *vectors(8)(batch, seq), noise(batch, 6, 8)


def vectors_and_lengths(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    return *vectors(8)(batch, seq), lengths(batch, seq)


def multi_head(**options) -> nn.Module:
    return q.MultiHeadAttention(8, 2, generator=generator(), **options)


FEATURES = {
    "EluPlusOne": Case(q.EluPlusOne, vectors(4), of_query),
    "HyperbolicFeatures": Case(lambda: q.HyperbolicFeatures(4, 8, generator=generator()), vectors(4), of_query),
    "PerformerFeatures": Case(lambda: q.PerformerFeatures(4, 8, generator=generator()), vectors(4), of_query),
    "PositiveRandomFeatures": Case(
        lambda: q.PositiveRandomFeatures(4, 8, gamma=0.5, generator=generator()), vectors(4), of_query
    ),
    "RandomFourierFeatures": Case(
        lambda: q.RandomFourierFeatures(4, 8, gamma=0.5, generator=generator()), vectors(4), of_query
    ),
    "RandomProjection": Case(lambda: q.RandomProjection(8, 4, generator=generator()), vectors(4)),
}

ATTENTIONS = {
    "ExactAttention": Case(q.ExactAttention, heads(4, 4, 4), causal_heads),
    "ExactAttention/grouped": Case(q.ExactAttention, heads(4, 4, 4, kv_heads=1)),
    "ExactAttention/mask": Case(q.ExactAttention, with_mask, masked),
    "ExactAttention/ALiBi": Case(lambda: q.ExactAttention(bias=q.ALiBi(2)), heads(4, 4, 4), causal_heads, deep=True),
    "ExactAttention/relative": Case(
        lambda: q.ExactAttention(bias=q.RelativePositionBias(2, generator=generator())), heads(4, 4, 4)
    ),
    "LinearAttention": Case(lambda: linear_attention(chunk_size=4), heads(4, 4, 4)),
    "LinearAttention/causal": Case(lambda: linear_attention(chunk_size=4), heads(4, 4, 4), causal_heads),
    "LinearAttention/one chunk": Case(linear_attention, heads(4, 4, 4), causal_heads, deep=True),
    "LinearAttention/mask": Case(lambda: linear_attention(chunk_size=4), with_mask, masked, deep=True),
    "FeatureMapAttention": Case(
        lambda: q.FeatureMapAttention(q.EluPlusOne(), chunk_size=4), heads(4, 4, 4, kv_heads=1), causal_heads, deep=True
    ),
    "PerformerAttention": Case(lambda: performer(chunk_size=4), heads(4, 4, 4)),
    "PerformerAttention/causal": Case(lambda: performer(chunk_size=4), heads(4, 4, 4), causal_heads, deep=True),
    "AdditiveAttention": Case(lambda: q.AdditiveAttention(4, 3, 8, generator=generator()), heads(4, 3, 5)),
    "NadarayaWatson": Case(lambda: q.NadarayaWatson(GaussianKernel(), 0.5), heads(4, 4, 4)),
    "NadarayaWatson/Epanechnikov": Case(lambda: q.NadarayaWatson(EpanechnikovKernel(), 0.5), heads(4, 4, 4), deep=True),
    "ForwardOnlyAttention": Case(lambda: q.ForwardOnlyAttention(attend), heads(4, 4, 4)),
    "MultiHeadAttention": Case(multi_head, vectors(8), causal),
    "MultiHeadAttention/lengths": Case(multi_head, vectors_and_lengths, of_lengths),
    "MultiHeadAttention/cross": Case(multi_head, two_vectors, deep=True),
    "MultiHeadAttention/rotary": Case(lambda: multi_head(rotary=q.RotaryEmbedding(4)), vectors(8), causal),
    "MultiHeadAttention/linear": Case(
        lambda: multi_head(inner_attention=q.LinearAttention(chunk_size=4)), vectors_and_lengths, of_lengths, deep=True
    ),
    "from_torch_multihead": Case(
        lambda: q.from_torch_multihead(nn.MultiheadAttention(8, 2, batch_first=True)), vectors(8)
    ),
    "Attention": Case(
        lambda: q.Attention(8, 8, 8, 4, 6, generator=generator()),
        lambda batch, seq: (*vectors(8)(batch, seq), noise(batch, 6, 8), noise(batch, 6, 8)),
    ),
    "SelfAttention": Case(lambda: q.SelfAttention(8, 4, 6, generator=generator()), vectors_and_lengths, of_lengths),
    "AdditiveScore": Case(lambda: q.AdditiveScore(4, 3, 8, generator=generator()), heads(4, 3)),
    "BilinearScore": Case(lambda: q.BilinearScore(4, 3, generator=generator()), heads(4, 3)),
    "PackedProjections": Case(
        lambda: q.PackedProjections(8, (4, 5, 6), generator=generator()), lambda b, n: vectors(8)(b, n) * 3
    ),
    "SeparateProjections": Case(
        lambda: q.SeparateProjections((8, 8, 8), (4, 5, 6), generator=generator()), lambda b, n: vectors(8)(b, n) * 3
    ),
}

POSITIONS = {
    "ALiBi": Case(lambda: q.ALiBi(2), vectors(4), added_to),
    "RelativePositionBias": Case(lambda: q.RelativePositionBias(2, generator=generator()), vectors(4), added_to),
    "LearnedPositionalEmbedding": Case(lambda: q.LearnedPositionalEmbedding(16, 4), vectors(4), max_seq=16),
    "SinusoidalPositionalEncoding": Case(lambda: q.SinusoidalPositionalEncoding(4), vectors(4)),
    "RotaryEmbedding": Case(lambda: q.RotaryEmbedding(4), vectors(4)),
    "HalfSplitRotaryEmbedding": Case(lambda: q.HalfSplitRotaryEmbedding(4), vectors(4)),
}

BLOCKS = {
    "TransformerBlock": Case(block, vectors(8), causal),
    "transformer_block": Case(block, vectors_and_lengths, of_lengths),
    "DecoderBlock": Case(lambda: q.decoder_block(8, 2, generator=generator()), two_vectors),
    "decoder_block": Case(
        lambda: q.decoder_block(8, 2, generator=generator(), rotary=q.HalfSplitRotaryEmbedding(4)),
        two_vectors,
        deep=True,
    ),
    "AvgPool2d": Case(lambda: q.AvgPool2d(2), images((4, 5, 6))),
    "Linear": Case(lambda: q.Linear(8, 6), vectors(8)),
    "Tanh": Case(q.Tanh, vectors(8)),
    "FeedForward": Case(lambda: q.FeedForward(8, generator=generator()), vectors(8)),
    "GatedFeedForward": Case(lambda: q.GatedFeedForward(8, 12, generator=generator()), vectors(8)),
    "PreNorm": Case(lambda: q.PreNorm(nn.LayerNorm(8)), vectors(8), norm_free),
    "PreNorm/RMSNorm": Case(lambda: q.PreNorm(nn.RMSNorm(8)), vectors(8), norm_free),
    "PostNorm": Case(lambda: q.PostNorm(nn.LayerNorm(8)), vectors(8), norm_free),
    "BasicBlock": Case(lambda: q.BasicBlock(4, 6, stride=2), images((4, 6, 6))),
    "Bottleneck": Case(lambda: q.Bottleneck(4, 2, stride=2), images((4, 6, 6))),
    "ResNeXtBlock": Case(lambda: q.ResNeXtBlock(4, 8, groups=2, width_per_group=2), images((4, 6, 6))),
    "Residual": Case(lambda: q.Residual(nn.Linear(8, 8)), vectors(8)),
    "GCNConv": Case(lambda: q.GCNConv(4, 2, generator=generator()), lambda batch, seq: (noise(batch, 6, 4),), mixed),
    "MaskedConv2d": Case(lambda: q.MaskedConv2d(3, 4, q.mask_a(3), generator=generator()), images((3, 5, 5))),
    "GatedPixelLayer": Case(
        lambda: q.GatedPixelLayer(4, 3, generator=generator()),
        lambda batch, seq: (noise(batch, 4, 5, 5), noise(batch, 4, 5, 5) - 0.5),
        gated_pixels,
    ),
    "UpsampledConv2d": Case(lambda: q.UpsampledConv2d(4, 6), images((4, 5, 7))),
}

CASES = FEATURES | ATTENTIONS | POSITIONS | BLOCKS

EXCEPTIONS = {"SublayerConnection": "what PreNorm and PostNorm share; it has no forward of its own"}
