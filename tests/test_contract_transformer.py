"""The contract of Transformers' blocks: equal to their definitions, and to torch's layers on the same weights, in value
and gradient."""

from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from near import assert_near
from quoin.errors import UserError
from quoin.layers import (
    DecoderBlock,
    FeedForward,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    SublayerConnection,
    TransformerBlock,
    decoder_block,
    decoder_block_definition,
    feed_forward_definition,
    from_torch_multihead,
    gelu,
    layer_norm_definition,
    multi_head_attention_definition,
    post_norm_definition,
    pre_norm_definition,
    transformer_block,
    transformer_block_definition,
)
from quoin.models import TransformerDecoder, TransformerEncoder
from quoin.tensor import causal_mask, sequence_mask
from seeds import seeded

ROUNDING = {torch.float32: 5e-5, torch.float64: 1e-11}

dtypes = st.sampled_from([torch.float32, torch.float64])
sizes = st.integers(1, 6)
heads_and_widths = st.sampled_from([(1, 4), (2, 4), (2, 8), (3, 6)])
seeds = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=12)
every_order = pytest.mark.parametrize("order", ["pre", "post"])
WIRES = {"pre": PreNorm, "post": PostNorm}
DEFINITIONS = {"pre": pre_norm_definition, "post": post_norm_definition}


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def shaken(layer, dtype: torch.dtype, generator: torch.Generator):
    """Every parameter drawn anew, for biases that start at zero and scales that start at one would hide a mistake."""
    for parameter in layer.to(dtype).parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return layer


def assert_same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    assert_near(ours, theirs, ROUNDING)
    upstream = torch.randn(ours.shape, dtype=ours.dtype, generator=seeded(ours.numel()))
    for mine, its in zip(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream), strict=True
    ):
        assert_near(mine, its, ROUNDING)


def norm_of(wire: SublayerConnection):
    norm = wire.norm
    assert isinstance(norm, nn.LayerNorm)
    return lambda x: layer_norm_definition(x, norm.weight, norm.bias).output


def feed_of(layer: nn.Module, activation):
    assert isinstance(layer, FeedForward)
    first, second = layer.up_proj, layer.down_proj
    return lambda x: feed_forward_definition(x, first.weight, first.bias, second.weight, second.bias, activation)


def attention_of(layer: MultiHeadAttention, mask: Tensor | None):
    def attend(query: Tensor, memory: Tensor | None = None) -> Tensor:
        memory = query if memory is None else memory
        return multi_head_attention_definition(
            query, memory, memory, layer.head_projections(), layer.out_proj.weight.T, layer.out_proj.bias, mask=mask
        ).output  # fmt: skip

    return attend


@every_order
@few
@given(n=sizes, shape=heads_and_widths, hidden=sizes, causal=st.booleans(), dtype=dtypes, seed=seeds)
def test_the_block_is_its_definition(order, n, shape, hidden, causal, dtype, seed):
    (heads, width), generator = shape, seeded(seed)
    block = transformer_block(width, heads, hidden_dim=hidden, activation=nn.functional.gelu, connection=WIRES[order])
    shaken(block, dtype, generator)
    x = torch.randn(2, n, width, dtype=dtype, generator=generator).requires_grad_()
    found = transformer_block_definition(
        x,
        attention_of(block.attention, causal_mask(n) if causal else None),
        feed_of(block.feed_forward, gelu),
        (norm_of(block.attention_connection), norm_of(block.feed_forward_connection)),
        DEFINITIONS[order],
    )
    assert_same(block(x, causal=causal), found.output, [x, *block.parameters()])


@every_order
@few
@given(n=sizes, m=sizes, shape=heads_and_widths, dtype=dtypes, seed=seeds)
def test_the_decoder_block_is_its_definition(order, n, m, shape, dtype, seed):
    (heads, width), generator = shape, seeded(seed)
    block = shaken(decoder_block(width, heads, connection=WIRES[order]), dtype, generator)
    x = torch.randn(2, n, width, dtype=dtype, generator=generator).requires_grad_()
    memory = torch.randn(2, m, width, dtype=dtype, generator=generator).requires_grad_()
    lengths = torch.randint(1, m + 1, (2,), generator=generator)
    found = decoder_block_definition(
        x,
        memory,
        attention_of(block.attention, causal_mask(n)),
        attention_of(block.cross_attention, sequence_mask(lengths, m)[:, None]),
        feed_of(block.feed_forward, torch.relu),
        (
            norm_of(block.attention_connection),
            norm_of(block.cross_attention_connection),
            norm_of(block.feed_forward_connection),
        ),
        DEFINITIONS[order],
    )
    assert_same(block(x, memory, memory_lengths=lengths), found.output, [x, memory, *block.parameters()])


def from_torch(layer, order: str, activation) -> Any:
    """Our block with the weights of torch's encoder or decoder layer."""
    width = layer.linear1.in_features
    feed = FeedForward(width, layer.linear1.out_features, activation=activation)
    feed.up_proj, feed.down_proj = (
        layer.linear1,
        layer.linear2,
    )  # the very same parameters, so gradients may be compared leaf by leaf
    parts, norms = [from_torch_multihead(layer.self_attn)], [layer.norm1, layer.norm2]
    if isinstance(layer, nn.TransformerDecoderLayer):
        parts, norms = [*parts, from_torch_multihead(layer.multihead_attn)], [*norms, layer.norm3]
        block = DecoderBlock(parts[0], parts[1], feed, connection=WIRES[order])
        wires = (block.attention_connection, block.cross_attention_connection, block.feed_forward_connection)
    else:
        block = TransformerBlock(parts[0], feed, connection=WIRES[order])
        wires = (block.attention_connection, block.feed_forward_connection)
    for wire, norm in zip(wires, norms, strict=True):
        wire.norm = norm
    return block


@every_order
@few
@given(n=sizes, shape=heads_and_widths, hidden=sizes, causal=st.booleans(), dtype=dtypes, seed=seeds)
def test_the_block_is_torchs_encoder_layer(order, n, shape, hidden, causal, dtype, seed):
    (heads, width), generator = shape, seeded(seed)
    theirs = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, "gelu", batch_first=True, norm_first=order == "pre")
    shaken(theirs, dtype, generator)
    ours = from_torch(theirs, order, nn.functional.gelu)
    x = torch.randn(2, n, width, dtype=dtype, generator=generator).requires_grad_()
    lengths = torch.randint(1, n + 1, (2,), generator=generator)
    hidden_keys = ~sequence_mask(lengths, n)
    hidden_pairs = ~causal_mask(n) if causal else None
    shared = [
        *theirs.linear1.parameters(),
        *theirs.linear2.parameters(),
        *theirs.norm1.parameters(),
        *theirs.norm2.parameters(),
    ]
    shown = x.masked_fill(hidden_keys.unsqueeze(-1), 0)  # to torch padding is a query still, to us it is nothing
    torch_gives = theirs(shown, src_mask=hidden_pairs, src_key_padding_mask=hidden_keys)
    assert_same(ours(x, lengths=lengths, causal=causal), torch_gives, [x, *shared])


@every_order
@few
@given(n=sizes, m=sizes, shape=heads_and_widths, dtype=dtypes, seed=seeds)
def test_the_decoder_block_is_torchs_decoder_layer(order, n, m, shape, dtype, seed):
    (heads, width), generator = shape, seeded(seed)
    theirs = nn.TransformerDecoderLayer(width, heads, 5, 0.0, batch_first=True, norm_first=order == "pre")
    shaken(theirs, dtype, generator)
    ours = from_torch(theirs, order, nn.functional.relu)
    x = torch.randn(2, n, width, dtype=dtype, generator=generator).requires_grad_()
    memory = torch.randn(2, m, width, dtype=dtype, generator=generator).requires_grad_()
    lengths = torch.randint(1, m + 1, (2,), generator=generator)
    torch_gives = theirs(x, memory, tgt_mask=~causal_mask(n), memory_key_padding_mask=~sequence_mask(lengths, m))
    shared = [*theirs.linear1.parameters(), *theirs.linear2.parameters(), *theirs.norm3.parameters()]
    assert_same(ours(x, memory, memory_lengths=lengths), torch_gives, [x, memory, *shared])


@every_order
def test_the_stacks_are_torchs(order):
    """Pre-norm stacks close with a norm of their own, post-norm stacks with none."""
    generator = seeded(0)
    closing = nn.LayerNorm(8) if order == "pre" else None
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=order == "pre")
    theirs = shaken(nn.TransformerEncoder(layer, 3, norm=closing, enable_nested_tensor=False), torch.float64, generator)
    ours = TransformerEncoder(from_torch(each, order, nn.functional.relu) for each in theirs.layers)
    assert isinstance(ours.norm, nn.LayerNorm if order == "pre" else nn.Identity)
    if closing is not None:
        ours.norm = cast(nn.Module, theirs.norm)
    x = torch.randn(2, 5, 8, dtype=torch.float64, generator=generator)
    assert_near(ours(x), theirs(x), ROUNDING)
    layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=order == "pre")
    theirs = shaken(nn.TransformerDecoder(layer, 3, norm=closing), torch.float64, generator)
    decoder = TransformerDecoder(from_torch(each, order, nn.functional.relu) for each in theirs.layers)
    if closing is not None:
        decoder.norm = cast(nn.Module, theirs.norm)
    memory = torch.randn(2, 3, 8, dtype=torch.float64, generator=generator)
    assert_near(decoder(x, memory), theirs(x, memory, tgt_mask=~causal_mask(5)), ROUNDING)


@every_order
@few
@given(pieces=st.lists(st.integers(1, 3), min_size=1, max_size=4), m=sizes, dtype=dtypes, seed=seeds)
def test_decoding_step_by_step_is_all_at_once(order, pieces, m, dtype, seed):
    generator, n = seeded(seed), sum(pieces)
    decoder = shaken(
        TransformerDecoder(decoder_block(8, 2, connection=WIRES[order]) for _ in range(2)), dtype, generator
    )
    x = torch.randn(3, n, 8, dtype=dtype, generator=generator)
    memory = torch.randn(3, m, 8, dtype=dtype, generator=generator)
    lengths = torch.randint(1, m + 1, (3,), generator=generator)
    rows = torch.tensor([2, 0, 0])
    with torch.no_grad():
        whole = decoder(x, memory, memory_lengths=lengths)
        state, found = decoder.init_cache(memory, n, memory_lengths=lengths), []
        for piece in x[:, : n - pieces[-1]].split(pieces[:-1], dim=1) if len(pieces) > 1 else ():
            output, state = decoder.decode_step(state, piece)
            found.append(output)
        output, after = decoder.decode_step(state.select(rows), x[rows, n - pieces[-1] :])
        assert_near(output, whole[rows, n - pieces[-1] :], ROUNDING)  # sequences reordered, one of them twice
        if found:
            assert_near(torch.cat(found, dim=1), whole[:, : n - pieces[-1]], ROUNDING)
        assert (state.seq_len, after.seq_len) == (n - pieces[-1], n)


def test_dropout_is_of_what_a_part_adds():
    for wire in (PreNorm, PostNorm):
        block = wire(nn.Identity(), 0.5)
        torch.manual_seed(0)
        x = torch.ones(100, 4)
        given = block(x, lambda x: 3 * x)
        assert set(given.flatten().tolist()) == {1.0, 7.0}  # x + 0 or x + 3x / (1 - p)
        assert (block.eval()(x, lambda x: 3 * x) == 4).all()


def test_mistakes_are_told():
    with pytest.raises(UserError, match="hidden_dim of 1 or more, got 4 and 0"):
        FeedForward(4, 0)
    with pytest.raises(UserError, match="num_heads that divide embed_dim 8, got 3"):
        transformer_block(8, 3)
    with pytest.raises(UserError, match="dropout probability"):
        transformer_block(8, 2, dropout=1.0)
    with pytest.raises(UserError, match="at least one block"):
        TransformerEncoder([])
    with pytest.raises(UserError, match="all of one embed_dim"):
        TransformerEncoder([transformer_block(8, 2), transformer_block(4, 2)])
    state = decoder_block(8, 2).init_cache(torch.zeros(3, 5, 8), 4)
    with pytest.raises(UserError, match="sequences from 0 to 2, got"):
        state.select(torch.tensor([3]))
    with pytest.raises(UserError, match=r"integers \(r,\)"):
        state.select(torch.tensor([True, False, True]))
