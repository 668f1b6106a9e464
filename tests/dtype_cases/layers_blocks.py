"""Cases for the modules, blocks, recurrences and positions of `quoin.layers`. Part of layers.py."""

import torch
from torch import nn

from dtypes import in_dtype, whole
from quoin import layers as q

WORDS = whole(1, 3, 4, most=9)
PICTURES = whole(2, 2, 4, 4, most=9)
PLACES = torch.tensor([0, 1, 200])
NORMS = (nn.functional.tanh, nn.functional.tanh, nn.functional.tanh)


def module(make, *shape, most=9):
    """A module that takes one tensor."""
    return lambda x: in_dtype(make, x)(x(whole(*shape, most=most)))


def generator():
    return torch.Generator().manual_seed(0)


def weights(x, gates=1):
    return q.RecurrentWeights(
        x(whole(gates * 2, 3, most=2)), x(whole(gates * 2, 2, most=2)), *(x(whole(gates * 2, most=3)) for _ in "ab")
    )


def conv_norm(x, out, inputs, size, groups=1):
    return q.ConvNorm(x(whole(out, inputs // groups, size, size, most=3)), x(whole(out, most=3)), x(whole(out, most=3)))


def seen(x, out, inputs, size):
    """With moments of training, the variances above 0."""
    mean, variance = x(whole(out, most=20)), x([4] * out)
    return conv_norm(x, out, inputs, size)._replace(mean=mean, variance=variance)


def pixels(x, make):
    layer = in_dtype(lambda: q.GatedPixelLayer(2, 3, generator=generator()), x)
    stacks = q.PixelStacks(x(PICTURES), x(whole(2, 2, 4, 4, most=5)))
    return make(layer, stacks)


def block(x, wire=q.PreNorm):
    return in_dtype(lambda: q.transformer_block(4, 2, connection=wire, generator=generator()), x)


def stepped(x):
    layer = block(x)
    return layer.decode_step(layer.init_cache(1, 4), x(WORDS)).output


def cross(x):
    return in_dtype(lambda: q.decoder_block(4, 2, generator=generator()), x)


def cross_stepped(x):
    layer = cross(x)
    return layer.decode_step(layer.init_cache(x(whole(1, 2, 4, most=5)), 4), x(WORDS))[0]


def twice(x):
    return 2 * x


def half(x):
    return x / 2


CASES = {
    "AvgPool2d": module(lambda: q.AvgPool2d(2), 1, 2, 4, 4),
    "Linear": module(lambda: q.Linear(4, 3), 2, 4),
    "Tanh": module(q.Tanh, 2, 4),
    "FeedForward": module(lambda: q.FeedForward(4, generator=generator()), 2, 4),
    "GatedFeedForward": module(lambda: q.GatedFeedForward(4, 5, generator=generator()), 2, 4),
    "MaskedConv2d": module(lambda: q.MaskedConv2d(2, 3, q.mask_b(3), generator=generator()), 1, 2, 4, 4),
    "UpsampledConv2d": module(lambda: q.UpsampledConv2d(2, 3), 1, 2, 2, 2),
    "BasicBlock": module(lambda: q.BasicBlock(2, 4, stride=2).eval(), 2, 2, 4, 4),
    "Bottleneck": module(lambda: q.Bottleneck(2, 2).eval(), 2, 2, 4, 4),
    "ResNeXtBlock": module(lambda: q.ResNeXtBlock(2, 4, groups=2, width_per_group=2).eval(), 2, 2, 4, 4),
    "Residual": module(lambda: q.Residual(nn.Linear(4, 4)), 2, 4),
    "Residual whole": lambda x: q.Residual(nn.Identity())(x([200, 3])),
    "add_batch_norm": module(lambda: q.add_batch_norm(nn.Sequential(nn.Conv2d(2, 3, 3))).eval(), 2, 2, 4, 4),
    "GCNConv": lambda x: in_dtype(lambda: q.GCNConv(2, 3, generator=generator()), x)(
        x(whole(3, 2)), q.normalized_edges(torch.tensor([[0, 1], [1, 0]]), 3, x([1, 1]))
    ),
    "GatedPixelLayer": lambda x: pixels(x, lambda layer, stacks: layer(stacks)),
    "GatedPixelLayer.vertical_stack": lambda x: pixels(x, lambda layer, stacks: layer.vertical_stack(stacks.vertical)),
    "GatedPixelLayer.horizontal_stack": lambda x: pixels(
        x, lambda layer, stacks: layer.horizontal_stack(stacks.horizontal, x(whole(2, 4, 4, 4)))
    ),
    "gated_pixel_layer_definition": lambda x: pixels(
        x, lambda layer, stacks: q.gated_pixel_layer_definition(stacks, layer.weights())
    ),
    # residual definitions
    "residual_definition": lambda x: q.residual_definition(x([200, 3]), twice),
    "ConvNorm": lambda x: seen(x, 3, 2, 3)(x(PICTURES)),
    "ConvNorm.normalize": lambda x: seen(x, 2, 2, 3).normalize(x(PICTURES)),
    "ConvNorm.split": lambda x: seen(x, 2, 2, 3).split(2),
    "basic_block_definition": lambda x: q.basic_block_definition(
        x(PICTURES), seen(x, 3, 2, 3), seen(x, 3, 3, 3), seen(x, 3, 2, 1)
    ),
    "bottleneck_definition": lambda x: q.bottleneck_definition(
        x(PICTURES), seen(x, 2, 2, 1), seen(x, 2, 2, 3), seen(x, 4, 2, 1), seen(x, 4, 2, 1)
    ),
    "resnext_definition": lambda x: q.resnext_definition(
        x(PICTURES), seen(x, 4, 2, 1), seen(x, 4, 2, 3), seen(x, 2, 4, 1), groups=2
    ),
    # recurrence
    "rnn_cell_definition": lambda x: q.rnn_cell_definition(x([[1, 0, 2]]), [x([[1, 0]])], weights(x)),
    "gru_cell_definition": lambda x: q.gru_cell_definition(x([[1, 0, 2]]), [x([[1, 0]])], weights(x, 3)),
    "lstm_cell_definition": lambda x: q.lstm_cell_definition(x([[1, 0, 2]]), [x([[1, 0]]), x([[2, 1]])], weights(x, 4)),
    "unroll": lambda x: q.unroll(q.gru_cell_definition, x(whole(1, 3, 3, most=3)), [x([[1, 0]])], weights(x, 3)),
    "recurrent_definition": lambda x: (
        q.recurrent_definition(
            q.gru_cell_definition, x(whole(1, 3, 3, most=3)), [x([[[1, 0]]])], [[weights(x, 3)]]
        ).output
    ),
    # positions
    "positional_qkv_definition": lambda x: q.positional_qkv_definition(
        x(whole(3, 4)), *(lambda t, n: t for _ in "qkv")
    ),
    "additive_position_definition": lambda x: q.additive_position_definition(
        x(whole(3, 4)), x(whole(2, 4, most=9)), x(whole(3, 4))
    ),
    "position_angles": lambda x: q.position_angles(x([0, 3, 100]), 4),
    "SinusoidalPositionalEncoding": lambda x: q.SinusoidalPositionalEncoding(4)(x(whole(1, 3, 4))),
    "LearnedPositionalEmbedding": module(lambda: q.LearnedPositionalEmbedding(5, 4, generator=generator()), 1, 3, 4),
    "LearnedPositionalEmbedding whole": lambda x: q.LearnedPositionalEmbedding(5, 4, generator=generator())(
        x(whole(1, 3, 4))
    ),
    "apply_rotary": lambda x: q.apply_rotary(x(whole(1, 3, 4)), PLACES),
    "apply_rotary positions": lambda x: q.apply_rotary(
        torch.tensor(whole(1, 3, 4), dtype=torch.float64), x([0, 1, 100])
    ),
    "apply_rotary_definition": lambda x: q.apply_rotary_definition(x(whole(1, 3, 4)), PLACES),
    "apply_half_split_rotary": lambda x: q.apply_half_split_rotary(x(whole(1, 3, 4)), PLACES),
    "apply_half_split_rotary_definition": lambda x: q.apply_half_split_rotary_definition(x(whole(1, 3, 4)), PLACES),
    "rotary_position_definition": lambda x: q.rotary_position_definition(
        x(whole(1, 3, 2)), x(whole(4, 2, most=9)), PLACES
    ),
    "RotaryEmbedding": lambda x: q.RotaryEmbedding(4)(x(whole(1, 3, 4))),
    "HalfSplitRotaryEmbedding": lambda x: q.HalfSplitRotaryEmbedding(4)(x(whole(1, 3, 4))),
    "to_half_split": lambda x: q.to_half_split(x(whole(8, 2)), 2),
    "to_interleaved": lambda x: q.to_interleaved(x(whole(8, 2)), 2),
    "relative_position_bias_definition": lambda x: q.relative_position_bias_definition(
        x(whole(8, 2)), q.CausalBuckets(8, 16), 3, 3
    ),
    # wires and transformer blocks
    "pre_norm_definition": lambda x: q.pre_norm_definition(x([200, 3]), twice, half),
    "post_norm_definition": lambda x: q.post_norm_definition(x([200, 3]), half, half),
    "PreNorm": lambda x: in_dtype(lambda: q.PreNorm(nn.LayerNorm(4)), x)(x(WORDS), half),
    "PostNorm": lambda x: in_dtype(lambda: q.PostNorm(nn.LayerNorm(4)), x)(x(WORDS), half),
    "transformer_block_definition": lambda x: q.transformer_block_definition(x(WORDS), half, half, NORMS[:2]),
    "decoder_block_definition": lambda x: q.decoder_block_definition(
        x(WORDS), x(whole(1, 2, 4)), half, lambda target, memory: target + half(memory.sum(dim=1)), half, NORMS
    ),
    "TransformerBlock": lambda x: block(x)(x(WORDS), causal=True),
    "TransformerBlock post": lambda x: block(x, q.PostNorm)(x(WORDS)),
    "TransformerBlock.decode_step": stepped,
    "DecoderBlock": lambda x: cross(x)(x(WORDS), x(whole(1, 2, 4, most=5))),
    "DecoderBlock.decode_step": cross_stepped,
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
SIZES = "takes sizes alone"
WEIGHTS = "weights held by name"
NO_NUMBERS = dict.fromkeys(["CellStep", "DistanceBuckets"], "a protocol")
NO_NUMBERS |= dict.fromkeys(
    ["RNNStep", "GRUStep", "LSTMStep", "Recurrent", "PixelStacks", "PositionalQKV", "ResidualForward"], RESULT
)
NO_NUMBERS |= dict.fromkeys(["DecoderBlockForward", "DecoderBlockCache", "TransformerBlockForward"], RESULT)
NO_NUMBERS |= dict.fromkeys(["GatedPixelWeights", "RecurrentWeights"], WEIGHTS)
NO_NUMBERS |= dict.fromkeys(
    ["ALiBi", "RelativePositionBias", "alibi_definition", "alibi_slopes", "relative_distances"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["sinusoidal_encoding", "sinusoidal_encoding_definition", "rotary_matrix", "transformer_block", "decoder_block"],
    SIZES,
)
NO_NUMBERS |= {
    "recurrent_weights": "takes a torch module",
    "SublayerConnection": "the abstract of PreNorm and PostNorm",
    "check_batch_norm": "runs a model on a batch and looks at shapes alone",
}
