"""Transformers: what a stack of blocks computes, what it cannot see, and that decoding with a memory is the same as
reading again."""

from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from quoin.layers import (
    FeedForward,
    LinearAttention,
    MultiHeadAttention,
    PerformerAttention,
    PostNorm,
    PreNorm,
    SinusoidalPositionalEncoding,
    SublayerConnection,
    TransformerBlock,
    decoder_block,
    decoder_block_definition,
    feed_forward_definition,
    layer_norm_definition,
    multi_head_attention_definition,
    post_norm_definition,
    pre_norm_definition,
    sinusoidal_encoding_definition,
    transformer_block,
    transformer_block_definition,
)
from quoin.layers.transformer import ConnectionDefinition
from quoin.models import GPT, Transformer, TransformerEncoder, TransformerLanguageModel
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.tensor import causal_mask

Map = Callable[[Tensor], Tensor]
Model = TypeVar("Model", bound=nn.Module)
ROUNDINGS = roundings(10_000)  # some layers of sums of a dozen terms, divided by standard deviations that may be small
SOURCE = "10,000 float64 roundings"
CONNECTIONS = ((PreNorm, pre_norm_definition), (PostNorm, post_norm_definition))


def shaken(model: Model, generator: torch.Generator, size: float = 0.5) -> Model:
    """The model in float64 with every weight sampled anew: biases of zero and scales of one would hide a mistake."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.copy_(size * normal(*parameter.shape, generator=generator))
    return model


def norm_of(connection: SublayerConnection) -> Map:
    norm = connection.norm
    assert isinstance(norm, nn.LayerNorm)
    return lambda x: layer_norm_definition(x, norm.weight, norm.bias).output


def feed_of(layer: nn.Module) -> Map:
    assert isinstance(layer, FeedForward)
    weights = layer.up_proj.weight, layer.up_proj.bias, layer.down_proj.weight, layer.down_proj.bias
    return lambda x: feed_forward_definition(x, *weights)


def attention_of(
    layer: MultiHeadAttention,
    query: Float[Tensor, "b n d"],
    memory: Float[Tensor, "b m d"],
    mask: Bool[Tensor, "n m"] | None,
) -> Float[Tensor, "b n d"]:
    joined = layer.out_proj.weight.T, layer.out_proj.bias
    return multi_head_attention_definition(query, memory, memory, layer.head_projections(), *joined, mask=mask).output


def block_of(
    block: TransformerBlock,
    x: Float[Tensor, "b n d"],
    connection: ConnectionDefinition,
    mask: Bool[Tensor, "n n"] | None,
) -> Float[Tensor, "b n d"]:
    norms = norm_of(block.attention_connection), norm_of(block.feed_forward_connection)
    return transformer_block_definition(
        x, lambda x: attention_of(block.attention, x, x, mask), feed_of(block.feed_forward), norms, connection
    ).output  # fmt: skip


@claim(
    "Z11.T",
    "a Transformer is multi-head attention and a position-wise feed-forward network, each added to its input, with "
    "layer norms",
)
def the_transformer_is_its_parts(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for connection, definition in CONNECTIONS:
        for _ in range(4):
            n, t, layers = (randint(1, 5, generator) for _ in range(3))
            encoder = [transformer_block(6, 3, connection=connection) for _ in range(layers)]
            decoder = [decoder_block(6, 2, connection=connection) for _ in range(layers)]
            model = shaken(Transformer(5, 7, encoder, decoder), generator)
            source, target = (
                torch.randint(5, (2, n), generator=generator),
                torch.randint(7, (2, t), generator=generator),
            )
            x = model.source_embedding.weight[source] * 6**0.5 + sinusoidal_encoding_definition(n, 6)
            for block in encoder:
                x = block_of(block, x, definition, None)
            memory = model.encoder.norm(x)
            y = model.target_embedding.weight[target] * 6**0.5 + sinusoidal_encoding_definition(t, 6)
            for block in decoder:
                norms = (
                    norm_of(block.attention_connection),
                    norm_of(block.cross_attention_connection),
                    norm_of(block.feed_forward_connection),
                )
                y = decoder_block_definition(
                    y,
                    memory,
                    lambda x, block=block: attention_of(block.attention, x, x, causal_mask(x.shape[1])),
                    lambda x, memory, block=block: attention_of(block.cross_attention, x, memory, None),
                    feed_of(block.feed_forward),
                    norms,
                    definition,
                ).output
            by_hand = model.decoder.norm(y) @ model.target_embedding.weight.T
            worst, cases = max(worst, gap(model(source, target), by_hand)), cases + 1
    return Evidence("largest difference from the chain of definitions", worst, ROUNDINGS, SOURCE, cases)


@claim(
    "Z11.T",
    "a decoder's output at t is the same whatever tokens come after t, and only the outputs from t on depend on "
    "token t",
)
def what_comes_later_is_not_seen(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for make in _language_models(generator):
        model = shaken(make(), generator)
        for _ in range(4):
            n = randint(2, 9, generator)
            t = randint(1, n - 1, generator)
            tokens = torch.randint(11, (2, n), generator=generator)
            other = tokens.clone()
            other[:, t:] = (other[:, t:] + torch.randint(1, 11, (2, n - t), generator=generator)) % 11
            before, after = model(tokens), model(other)
            unmoved = gap(before[:, :t], after[:, :t])
            moved = float(
                (before[:, t:] - after[:, t:]).detach().abs().amax(dim=(0, 2)).min()
            )  # that the later tokens do matter
            worst, cases = max(worst, unmoved, 0.0 if moved > 1e-6 else 1.0), cases + 1
    return Evidence("largest change before the tokens that were changed", worst, ROUNDINGS, SOURCE, cases)


@claim(
    "Z11.T",
    "an encoder without positions sees a set: rows in another order give its outputs in that order; sinusoidal "
    "encodings end that",
)
def the_encoder_sees_no_order(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for connection, _ in CONNECTIONS:
        encoder = shaken(
            TransformerEncoder(transformer_block(6, 2, connection=connection) for _ in range(2)), generator
        )
        positions = SinusoidalPositionalEncoding(6)
        for _ in range(5):
            n = randint(2, 8, generator)
            order = torch.randperm(n, generator=generator)
            if torch.equal(order, torch.arange(n)):
                order = order.flip(0)
            x = normal(2, n, 6, generator=generator)
            unseen = gap(encoder(x[:, order]), encoder(x)[:, order])
            seen = gap(encoder(positions(x[:, order])), encoder(positions(x))[:, order])
            worst, cases = max(worst, unseen, 0.0 if seen > 1e-4 else 1.0), cases + 1
    return Evidence("largest difference between shuffling before and after", worst, ROUNDINGS, SOURCE, cases)


@claim("Z11.T", "decoding with a cache, exact, linear or Performer's, gives the tokens that a full forward pass gives")
def decoding_with_a_memory_is_reading_again(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for make in _language_models(generator):
        model = shaken(make(), generator)
        with torch.no_grad():
            tokens = torch.randint(11, (3, 2), generator=generator)
            logits, cache = model.decode_step(model.init_cache(3, 12), tokens)
            while tokens.shape[1] < 12:
                whole = model(tokens)[:, -1]
                worst, cases = max(worst, gap(logits[:, -1], whole)), cases + 1
                if not torch.equal(logits[:, -1].argmax(-1), whole.argmax(-1)):
                    worst = 1.0
                follow = whole.argmax(-1, keepdim=True)
                tokens = torch.cat([tokens, follow], dim=1)
                logits, cache = model.decode_step(cache, follow)
    return Evidence(
        "largest difference of the scores; 1 where another token is most probable", worst, ROUNDINGS, SOURCE, cases
    )


def _language_models(generator: torch.Generator) -> list[Callable[[], TransformerLanguageModel]]:
    """A GPT with each kind of attention."""
    cores = (None, LinearAttention, lambda: PerformerAttention(4, 8, generator=generator))
    return [
        lambda inner_attention=inner_attention: GPT(
            11, 8, 2, 2, 12, make_attention=inner_attention, generator=generator
        )
        for inner_attention in cores
    ]
