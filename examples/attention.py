"""Self-attention does not see the order of its tokens until it is told: each way of telling it, on the same tokens.

    python examples/attention.py [picture.svg]
"""

import sys

import torch

from quoin.plot import heat_map
from quoin.layers import ALiBi, ExactAttention, MultiHeadAttention, RelativeBias, Rotary, SinusoidalPositions

WIDTH, HEADS, TOKENS = 16, 2, 6
generator = torch.Generator().manual_seed(0)
weights = MultiHeadAttention(WIDTH, HEADS, generator=generator).state_dict()


def attention(turn=None, bias=None) -> MultiHeadAttention:
    """The same weights whatever it is told."""
    layer = MultiHeadAttention(WIDTH, HEADS, core=ExactAttention(bias=bias), turn=turn)
    layer.load_state_dict(weights, strict=False)  # a learned bias has a table of its own
    return layer


plain, codes = attention(), SinusoidalPositions(WIDTH)
ways = {
    "nothing": plain,
    "sinusoidal codes": lambda x: plain(codes(x)),
    "rotary turns": attention(turn=Rotary(WIDTH // HEADS)),
    "ALiBi": attention(bias=ALiBi(HEADS)),
    "relative bias": attention(bias=RelativeBias(HEADS, generator=generator)),
    "a causal mask": lambda x: plain(x, causal=True),
}

x = torch.randn(1, TOKENS, WIDTH, generator=generator)
order = torch.tensor([2, 0, 1, 5, 3, 4])
print("told by            |SA(x in another order) - SA(x) in that order|")
with torch.no_grad():
    for name, layer in ways.items():
        print(f"{name:<18} {float((layer(x[:, order]) - layer(x)[:, order]).abs().max()):.1e}")

    if len(sys.argv) > 1:
        seen = attention(bias=ALiBi(HEADS)).attend_with_weights(x).weights[0, 0]
        print(f"drawn: {heat_map(seen, title='ALiBi, head 1: who looks at whom', x_label='key', y_label='query').save(sys.argv[1])}")
