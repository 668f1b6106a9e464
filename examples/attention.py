"""Self-attention is permutation equivariant without positional information: each way to add it, on the same tokens.

python examples/attention.py [plot.svg]
"""

import sys

import torch

from quoin.layers import (
    ALiBi,
    ExactAttention,
    MultiHeadAttention,
    RelativePositionBias,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
)
from quoin.plot import heatmap

EMBED_DIM, NUM_HEADS, NUM_TOKENS = 16, 2, 6
generator = torch.Generator().manual_seed(0)
weights = MultiHeadAttention(EMBED_DIM, NUM_HEADS, generator=generator).state_dict()


def attention(rotary=None, bias=None) -> MultiHeadAttention:
    """The same weights whatever the positional information."""
    layer = MultiHeadAttention(EMBED_DIM, NUM_HEADS, inner_attention=ExactAttention(bias=bias), rotary=rotary)
    layer.load_state_dict(weights, strict=False)  # a learned bias has a table of its own
    return layer


plain, encoding = attention(), SinusoidalPositionalEncoding(EMBED_DIM)
variants = {
    "none": plain,
    "sinusoidal": lambda x: plain(encoding(x)),
    "rotary": attention(rotary=RotaryEmbedding(EMBED_DIM // NUM_HEADS)),
    "ALiBi": attention(bias=ALiBi(NUM_HEADS)),
    "relative bias": attention(bias=RelativePositionBias(NUM_HEADS, generator=generator)),
    "causal mask": lambda x: plain(x, causal=True),
}

x = torch.randn(1, NUM_TOKENS, EMBED_DIM, generator=generator)
order = torch.tensor([2, 0, 1, 5, 3, 4])
print("positions          |SA(x in another order) - SA(x) in that order|")
with torch.no_grad():
    for name, layer in variants.items():
        print(f"{name:<18} {float((layer(x[:, order]) - layer(x)[:, order]).abs().max()):.1e}")

    if len(sys.argv) > 1:
        found = attention(bias=ALiBi(NUM_HEADS)).attend_with_weights(x).weights[0, 0]
        plot = heatmap(found, title="ALiBi, head 1: attention weights", x_label="key", y_label="query")
        print(f"plotted: {plot.save(sys.argv[1])}")
