"""Transformers: what a stack of blocks computes, what it cannot see, and that decoding with a memory is the same as reading again."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.layers import (
    FeedForward,
    LinearAttention,
    MultiHeadAttention,
    PerformerAttention,
    PostNorm,
    PreNorm,
    SinusoidalPositions,
    TransformerBlock,
    Wire,
    decoder_block,
    decoder_block_definition,
    feed_forward_definition,
    layer_norm_definition,
    multi_head_attention_definition,
    post_norm_definition,
    pre_norm_definition,
    sinusoidal_definition,
    transformer_block,
    transformer_block_definition,
)
from quoin.models import GPT, LanguageTransformer, Transformer, TransformerEncoder
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, randint, roundings
from quoin.tensor import causal_mask

Map = Callable[[Tensor], Tensor]
ROUNDINGS = roundings(10_000)  # some layers of sums of a dozen terms, divided by spreads that may be small
SOURCE = "10,000 float64 roundings"
WIRES = ((PreNorm, pre_norm_definition), (PostNorm, post_norm_definition))


def shaken(model, generator: torch.Generator, size: float = 0.5):
    """The model in float64 with every weight drawn anew: biases of zero and scales of one would hide a mistake."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.copy_(size * normal(*parameter.shape, generator=generator))
    return model


def norm_of(wire: Wire) -> Map:
    norm = wire.norm
    assert isinstance(norm, nn.LayerNorm)
    return lambda x: layer_norm_definition(x, norm.weight, norm.bias).output


def feed_of(layer: nn.Module) -> Map:
    assert isinstance(layer, FeedForward)
    weights = layer.first.weight, layer.first.bias, layer.second.weight, layer.second.bias
    return lambda x: feed_forward_definition(x, *weights)


def attention_of(layer: MultiHeadAttention, query: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
    joined = layer.f_o.weight.T, layer.f_o.bias
    return multi_head_attention_definition(query, memory, memory, layer.head_maps(), *joined, mask=mask).output


def block_of(block: TransformerBlock, x: Tensor, wire, mask: Tensor | None) -> Tensor:
    norms = norm_of(block.attention_wire), norm_of(block.feed_forward_wire)
    return transformer_block_definition(
        x, lambda x: attention_of(block.attention, x, x, mask), feed_of(block.feed_forward), norms, wire
    ).output  # fmt: skip


@claim("Z11.T", "a Transformer is multi-head attention and a perceptron at each position, each added to its input, with layer norms")
def the_transformer_is_its_parts(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for wire, definition in WIRES:
        for _ in range(4):
            n, t, layers = (randint(1, 5, generator) for _ in range(3))
            encoder = [transformer_block(6, 3, wire=wire) for _ in range(layers)]
            decoder = [decoder_block(6, 2, wire=wire) for _ in range(layers)]
            model = shaken(Transformer(5, 7, encoder, decoder), generator)
            source, target = torch.randint(5, (2, n), generator=generator), torch.randint(7, (2, t), generator=generator)
            x = model.source_codes.weight[source] * 6**0.5 + sinusoidal_definition(n, 6)
            for block in encoder:
                x = block_of(block, x, definition, None)
            memory = model.encoder.norm(x)
            y = model.target_codes.weight[target] * 6**0.5 + sinusoidal_definition(t, 6)
            for block in decoder:
                norms = norm_of(block.attention_wire), norm_of(block.cross_wire), norm_of(block.feed_forward_wire)
                y = decoder_block_definition(
                    y,
                    memory,
                    lambda x, block=block: attention_of(block.attention, x, x, causal_mask(x.shape[1])),
                    lambda x, memory, block=block: attention_of(block.cross, x, memory, None),
                    feed_of(block.feed_forward),
                    norms,
                    definition,
                ).output
            by_hand = model.decoder.norm(y) @ model.target_codes.weight.T
            worst, cases = max(worst, gap(model(source, target), by_hand)), cases + 1
    return Evidence("largest difference from the chain of definitions", worst, ROUNDINGS, SOURCE, cases)


@claim("Z11.T", "a decoder's output at t is the same whatever tokens come after t, and no other output but those from t on feels token t")
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
            moved = float((before[:, t:] - after[:, t:]).detach().abs().amax(dim=(0, 2)).min())  # that the later tokens do say something
            worst, cases = max(worst, unmoved, 0.0 if moved > 1e-6 else 1.0), cases + 1
    return Evidence("largest change before the tokens that were changed", worst, ROUNDINGS, SOURCE, cases)


@claim("Z11.T", "an encoder without positions sees a set: rows in another order give its outputs in that order; sinusoidal codes end that")
def the_encoder_sees_no_order(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for wire, _ in WIRES:
        encoder = shaken(TransformerEncoder(transformer_block(6, 2, wire=wire) for _ in range(2)), generator)
        positions = SinusoidalPositions(6)
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


@claim("Z11.T", "decoding with what attention remembers, exact, linear or Performer's, gives the tokens that reading all again gives")
def decoding_with_a_memory_is_reading_again(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for make in _language_models(generator):
        model = shaken(make(), generator)
        with torch.no_grad():
            tokens = torch.randint(11, (3, 2), generator=generator)
            logits, state = model.step(model.start(3, 12), tokens)
            while tokens.shape[1] < 12:
                whole = model(tokens)[:, -1]
                worst, cases = max(worst, gap(logits[:, -1], whole)), cases + 1
                if not torch.equal(logits[:, -1].argmax(-1), whole.argmax(-1)):
                    worst = 1.0
                follow = whole.argmax(-1, keepdim=True)
                tokens = torch.cat([tokens, follow], dim=1)
                logits, state = model.step(state, follow)
    return Evidence("largest difference of the scores; 1 where another token is likeliest", worst, ROUNDINGS, SOURCE, cases)


def _language_models(generator: torch.Generator) -> list[Callable[[], LanguageTransformer]]:
    """A GPT with each kind of attention."""
    cores = (None, LinearAttention, lambda: PerformerAttention(4, 8, generator=generator))
    return [lambda core=core: GPT(11, 8, 2, 2, 12, make_core=core, generator=generator) for core in cores]
