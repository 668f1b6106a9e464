"""Everything that takes a mask or lengths over keys, as a case of test_padding.py: `SEEN` real positions, and padding
up to `ALL`.

A case is made with a generator: `make(generator)` gives what is learned or asked (leaves), the shapes of what is
padded, and a call. The call gets the padded tensors and `seen`, a mask (ALL,) that is True at the first SEEN positions,
or the same cut off and None.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.layers import (
    AdditiveAttention,
    Attention,
    ExactAttention,
    Features,
    LinearAttention,
    MultiHeadAttention,
    NadarayaWatson,
    PerformerAttention,
    SelfAttention,
    additive_attention_definition,
    argmax_weights,
    attention_layer_definition,
    attention_pooling,
    attention_pooling_definition,
    decoder_block,
    feature_attention_definition,
    gru_cell_definition,
    multi_head_attention_definition,
    nadaraya_watson,
    nadaraya_watson_definition,
    nadaraya_watson_weights,
    pool_values,
    pool_values_definition,
    recurrent_weights,
    scaled_dot_product_attention_definition,
    scaled_dot_score,
    softmax_weights,
    transformer_block,
    uniform_weights,
)
from quoin.layers.attention import FeatureMapAttention, ForwardOnlyAttention
from quoin.losses import sequence_cross_entropy, sequence_cross_entropy_definition
from quoin.metrics import perplexity
from quoin.models import NadarayaWatsonRegression, TransformerDecoder, TransformerEncoder, bahdanau_decoder_definition
from quoin.prob import hmm_log_prob, hmm_posterior
from quoin.tensor import (
    EpanechnikovKernel,
    GaussianKernel,
    masked_mean,
    masked_softmax,
    masked_softmax_definition,
    zero_masked,
)

SEEN, ALL, BATCH, HEADS, QUERIES, WIDTH = 3, 5, 2, 2, 4, 4


class Case(NamedTuple):
    """`call(*padded, seen)` gives what hangs on the seen positions alone; padded tensors have their positions on the
    last axis but one."""

    call: Callable[..., Tensor]
    padded: list[tuple[int, ...]]
    leaves: list[Tensor]
    gradients: bool = (
        True  # in self-attention under a mask alone, a hidden position is a query still, and passes its NaN back
    )


Make = Callable[[torch.Generator], Case]
CORE = (BATCH, HEADS, ALL, WIDTH)
ONE = (BATCH, ALL, WIDTH)


def leaf(*shape: int, g: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=g).requires_grad_()


def lengths(seen: Tensor | None) -> Tensor | None:
    return None if seen is None else torch.full((BATCH,), SEEN)


def each(seen: Tensor | None, *lead: int) -> Tensor | None:
    """The mask written out for every pair of a query and a key."""
    return None if seen is None else seen.expand(*lead, QUERIES, ALL)


def core(layer: nn.Module, form: Callable[[Tensor | None], Tensor | None], query_heads: int = HEADS) -> Make:
    def make(g: torch.Generator) -> Case:
        q = leaf(BATCH, query_heads, QUERIES, WIDTH, g=g)
        return Case(lambda k, v, seen: layer(q, k, v, mask=form(seen)), [CORE, CORE], [q, *layer.parameters()])

    return make


def weights_of(layer: nn.Module) -> Make:
    def make(g: torch.Generator) -> Case:
        q = leaf(BATCH, HEADS, QUERIES, WIDTH, g=g)
        return Case(lambda k, seen: layer.weights(q, k, mask=seen)[..., :SEEN], [CORE], [q, *layer.parameters()])

    return make


def defined(attend: Callable[..., tuple[Tensor, ...]], *shapes: tuple[int, ...]) -> Make:
    """A definition called with queries, keys, values, then weights of these shapes."""

    def make(g: torch.Generator) -> Case:
        q, shared = leaf(BATCH, QUERIES, WIDTH, g=g), [leaf(*shape, g=g) for shape in shapes]
        return Case(lambda k, v, seen: attend(q, k, v, *shared, mask=seen)[0], [ONE, ONE], [q, *shared])

    return make


def own(layer: nn.Module, call: Callable[..., Tensor], *, gradients: bool = True) -> Make:
    """A layer in which the positions look at one another."""
    return lambda g: Case(lambda x, seen: call(x, seen)[:, :SEEN], [ONE], list(layer.parameters()), gradients)


def decoded(steps: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return torch.no_grad()(steps)  # a cache keeps no graph


def cross(layer: nn.Module, call: Callable[..., Tensor]) -> Make:
    """A layer in which queries look at a padded memory."""

    def make(g: torch.Generator) -> Case:
        q = leaf(BATCH, QUERIES, WIDTH, g=g)
        return Case(lambda x, seen: call(q, x, seen), [ONE], [q, *layer.parameters()])

    return make


def kept_rows(layer: nn.Module, bandwidth: float | None = None) -> Make:
    """A regression that keeps keys and values, and is then asked."""

    def make(g: torch.Generator) -> Case:
        q = leaf(QUERIES, WIDTH, g=g)
        width = None if bandwidth is None else torch.tensor(bandwidth).requires_grad_()

        def call(k: Tensor, v: Tensor, seen: Tensor | None) -> Tensor:
            model = NadarayaWatsonRegression({"only": layer}, ALL, WIDTH)
            model.set_rows(k, v.squeeze(-1))
            return model.pooled(q, "only", width, mask=each(seen)).float()

        return Case(call, [(ALL, WIDTH), (ALL, 1)], [q, *layer.parameters(), *([] if width is None else [width])])

    return make


def g0() -> torch.Generator:
    return torch.Generator().manual_seed(0)


heads = MultiHeadAttention(WIDTH, HEADS, generator=g0())
single, alone = Attention(WIDTH, WIDTH, WIDTH, 3, WIDTH, generator=g0()), SelfAttention(WIDTH, 3, WIDTH, generator=g0())
additive = AdditiveAttention(WIDTH, WIDTH, 5, generator=g0())
performer = PerformerAttention(WIDTH, 8, generator=g0())
windows = [NadarayaWatson(GaussianKernel(), nn.Parameter(torch.tensor(0.7))), NadarayaWatson(EpanechnikovKernel(), 2.0)]
block, second = transformer_block(WIDTH, HEADS, generator=g0()), decoder_block(WIDTH, HEADS, generator=g0())
encoder = TransformerEncoder([transformer_block(WIDTH, HEADS, generator=g0()) for _ in range(2)])
decoder = TransformerDecoder([decoder_block(WIDTH, HEADS, generator=g0()) for _ in range(2)])
cell = nn.GRU(2 * WIDTH, WIDTH)
SCORES = (BATCH, ALL, 1)  # scores have their keys last: turned in the call


def of_scores(weigh: Callable[..., Tensor]) -> Make:
    return lambda g: Case(lambda s, seen: weigh(s.mT.expand(BATCH, QUERIES, -1), seen)[..., :SEEN], [SCORES], [])


def pooling(pool: Callable[..., Tensor]) -> Make:
    def make(g: torch.Generator) -> Case:
        w = torch.rand(BATCH, QUERIES, SEEN, generator=g).requires_grad_()
        return Case(
            lambda v, seen: pool(w if seen is None else nn.functional.pad(w, (0, ALL - SEEN)), v, seen), [ONE], [w]
        )

    return make


def features(g: torch.Generator) -> Case:
    q, log_scale = leaf(BATCH, QUERIES, WIDTH, g=g), (BATCH, ALL, 1)

    def call(k: Tensor, v: Tensor, scale: Tensor, seen: Tensor | None) -> Tensor:
        return feature_attention_definition(Features(q.exp()), Features(k + 3, scale), v, seen).output

    return Case(call, [ONE, ONE, log_scale], [q])


def bahdanau(g: torch.Generator) -> Case:
    codes, state = leaf(BATCH, QUERIES, WIDTH, g=g), leaf(BATCH, WIDTH, g=g)
    shared = [leaf(5, WIDTH, g=g), leaf(5, WIDTH, g=g), leaf(5, g=g)]

    def call(memory: Tensor, seen: Tensor | None) -> Tensor:
        mask = None if seen is None else seen.expand(BATCH, 1, ALL)
        (gates,) = recurrent_weights(cell)[0]
        return bahdanau_decoder_definition(codes, memory, (state,), *shared, gru_cell_definition, gates, mask).output

    return Case(call, [ONE], [codes, state, *shared, *cell.parameters()])


def hidden_chain(of: Callable[..., Tensor]) -> Make:
    def make(g: torch.Generator) -> Case:
        start, move = leaf(WIDTH, g=g), leaf(WIDTH, WIDTH, g=g)
        return Case(
            lambda said, seen: of(start.log_softmax(dim=-1), move.log_softmax(dim=-1), said, lengths(seen)),
            [ONE],
            [start, move],
        )

    return make


def entropy(loss: Callable[..., Tensor]) -> Make:
    target = torch.tensor([[0, 1, 2, 3, 1], [3, 2, 1, 0, 0]])

    def call(logits: Tensor, seen: Tensor | None) -> Tensor:
        if seen is None:
            return nn.functional.cross_entropy(logits.mT, target[:, :SEEN], reduction="none")
        return loss(logits, target, lengths(seen))[:, :SEEN]

    return lambda g: Case(call, [ONE], [])


CASES: dict[str, list[Make]] = {  # a public name, or one of its methods: everything is tried as it is used
    "ExactAttention.forward": [
        core(ExactAttention(), lambda seen: seen),
        core(ExactAttention(), lambda seen: each(seen, BATCH, HEADS)),
        core(ExactAttention(), lambda seen: each(seen, BATCH, 4), query_heads=4),
        core(ExactAttention(bias=lambda n, m, offset: torch.zeros(1, n, m)), lambda seen: seen),
    ],
    "ForwardOnlyAttention.forward": [core(ForwardOnlyAttention(ExactAttention()), lambda seen: seen)],
    "LinearAttention.forward": [
        core(LinearAttention(), lambda seen: seen),
        core(LinearAttention(), lambda seen: each(seen, BATCH, HEADS)),
    ],
    "PerformerAttention.forward": [
        core(performer, lambda seen: seen),
        core(performer, lambda seen: each(seen, BATCH, HEADS)),
    ],
    "FeatureMapAttention.forward": [core(FeatureMapAttention(performer.feature_map), lambda seen: seen)],
    "AdditiveAttention.forward": [
        core(additive, lambda seen: seen),
        core(additive, lambda seen: each(seen, BATCH, HEADS)),
    ],
    "NadarayaWatson.forward": [core(layer, form) for layer in windows for form in (lambda seen: seen, each)],
    "NadarayaWatsonRegression.pooled": [*map(kept_rows, windows), kept_rows(windows[0], 0.9)],
    "ExactAttention.weights": [weights_of(ExactAttention())],
    "ForwardOnlyAttention.weights": [weights_of(ForwardOnlyAttention(ExactAttention()))],
    "LinearAttention.weights": [weights_of(LinearAttention())],
    "PerformerAttention.weights": [weights_of(performer)],
    "FeatureMapAttention.weights": [weights_of(FeatureMapAttention(performer.feature_map))],
    "AdditiveAttention.weights": [weights_of(additive)],
    "NadarayaWatson.weights": [weights_of(layer) for layer in windows],
    "scaled_dot_product_attention_definition": [defined(scaled_dot_product_attention_definition)],
    "attention_layer_definition": [defined(attention_layer_definition, (WIDTH, 3), (WIDTH, 3), (WIDTH, WIDTH))],
    "additive_attention_definition": [defined(additive_attention_definition, (5, WIDTH), (5, WIDTH), (5,))],
    "nadaraya_watson_definition": [
        defined(lambda q, k, v, mask: nadaraya_watson_definition(q, k, v, GaussianKernel(), 0.7, mask=mask)),
        defined(lambda q, k, v, mask: nadaraya_watson_definition(q, k, v, EpanechnikovKernel(), 2.0, mask=mask)),
    ],
    "nadaraya_watson": [defined(lambda q, k, v, mask: (nadaraya_watson(q, k, v, GaussianKernel(), 0.7, mask=mask),))],
    "nadaraya_watson_weights": [
        defined(
            lambda q, k, v, mask: (
                nadaraya_watson_weights(q, k, GaussianKernel(), 0.7, mask=mask)[..., :SEEN] @ v[:, :SEEN],
            )
        )
    ],
    "attention_pooling": [
        defined(lambda q, k, v, mask, w=w: attention_pooling(q, k, v, scaled_dot_score, w, mask=mask))
        for w in (softmax_weights, argmax_weights, uniform_weights)
    ],
    "attention_pooling_definition": [
        defined(lambda q, k, v, mask, w=w: attention_pooling_definition(q, k, v, scaled_dot_score, w, mask=mask))
        for w in (softmax_weights, argmax_weights, uniform_weights)
    ],
    "feature_attention_definition": [features],
    "multi_head_attention_definition": [
        cross(
            heads,
            lambda q, x, seen: (
                multi_head_attention_definition(
                    q, x, x, heads.head_projections(), heads.out_proj.weight.mT, mask=seen
                ).output
            ),
        )
    ],
    "softmax_weights": [of_scores(softmax_weights)],
    "argmax_weights": [of_scores(argmax_weights)],
    "uniform_weights": [of_scores(uniform_weights)],
    "masked_softmax": [
        of_scores(masked_softmax),
        of_scores(lambda s, seen: masked_softmax(s, lengths=lengths(seen))),
    ],
    "masked_softmax_definition": [
        of_scores(lambda s, seen: s.softmax(dim=-1) if seen is None else masked_softmax_definition(s, seen)),
    ],
    "masked_mean": [
        lambda g: Case(
            lambda x, seen: x.mean(dim=1) if seen is None else masked_mean(x, seen[:, None], dim=1), [ONE], []
        ),
    ],
    "zero_masked": [lambda g: Case(lambda x, seen: (x if seen is None else zero_masked(x, seen))[:, :SEEN], [ONE], [])],
    "pool_values": [pooling(pool_values)],
    "pool_values_definition": [pooling(pool_values_definition)],
    "MultiHeadAttention.forward": [
        own(heads, lambda x, seen: heads(x, lengths=lengths(seen))),
        own(heads, lambda x, seen: heads(x, lengths=lengths(seen), causal=True)),
        own(
            heads,
            lambda x, seen: heads(x, mask=None if seen is None else seen.expand(BATCH, ALL, ALL)),
            gradients=False,
        ),
        cross(heads, lambda q, x, seen: heads(q, x, lengths=lengths(seen))),
        cross(heads, lambda q, x, seen: heads(q, x, x.clone(), mask=each(seen, BATCH, HEADS))),
    ],
    "MultiHeadAttention.attend_with_weights": [
        own(heads, lambda x, seen: heads.attend_with_weights(x, lengths=lengths(seen)).output),
        cross(heads, lambda q, x, seen: heads.attend_with_weights(q, x, lengths=lengths(seen)).weights[..., :SEEN]),
    ],
    "MultiHeadAttention.project_memory": [
        cross(heads, lambda q, x, seen: heads.attend_memory(heads.project_memory(x, lengths=lengths(seen)), q))
    ],
    "AdditiveAttention.project_memory": [
        cross(
            additive,
            lambda q, x, seen: additive.attend_memory(additive.project_memory(x, x, lengths=lengths(seen)), q).output,
        )
    ],
    "Attention.forward": [
        cross(single, lambda q, x, seen: single(q, x, x, lengths=lengths(seen))),
        cross(single, lambda q, x, seen: single(q, x, x, mask=seen)),
    ],
    "SelfAttention.forward": [
        own(alone, lambda x, seen: alone(x, lengths=lengths(seen))),
        own(alone, lambda x, seen: alone(x, mask=seen), gradients=False),
    ],
    "TransformerBlock.forward": [
        own(block, lambda x, seen: block(x, lengths=lengths(seen))),
        own(block, lambda x, seen: block(x, mask=seen), gradients=False),
    ],
    "TransformerEncoder.forward": [
        own(encoder, lambda x, seen: encoder(x, lengths=lengths(seen))),
        own(encoder, lambda x, seen: encoder(x, mask=seen), gradients=False),
    ],
    "DecoderBlock.forward": [
        cross(second, lambda q, x, seen: second(q, x, memory_lengths=lengths(seen))),
        own(second, lambda x, seen: second(x, torch.ones(BATCH, 2, WIDTH), lengths=lengths(seen))),
    ],
    "DecoderBlock.init_cache": [
        cross(
            second,
            decoded(lambda q, x, seen: second.decode_step(second.init_cache(x, 9, memory_lengths=lengths(seen)), q)[0]),
        )
    ],
    "TransformerDecoder.forward": [
        cross(decoder, lambda q, x, seen: decoder(q, x, memory_lengths=lengths(seen))),
        own(decoder, lambda x, seen: decoder(x, torch.ones(BATCH, 2, WIDTH), lengths=lengths(seen))),
    ],
    "TransformerDecoder.init_cache": [
        cross(
            decoder,
            decoded(
                lambda q, x, seen: decoder.decode_step(decoder.init_cache(x, 9, memory_lengths=lengths(seen)), q)[0]
            ),
        )
    ],
    "bahdanau_decoder_definition": [bahdanau],
    "hmm_log_prob": [hidden_chain(hmm_log_prob)],
    "hmm_posterior": [hidden_chain(torch.no_grad()(lambda *tables: hmm_posterior(*tables)[0][:, :SEEN]))],
    "perplexity": [
        lambda g: Case(lambda x, seen: perplexity(x.squeeze(-1), lengths=lengths(seen)), [SCORES], []),
        lambda g: Case(lambda x, seen: perplexity(x.squeeze(-1), mask=seen), [SCORES], []),
    ],
    "sequence_cross_entropy": [entropy(sequence_cross_entropy)],
    "sequence_cross_entropy_definition": [entropy(sequence_cross_entropy_definition)],
}
