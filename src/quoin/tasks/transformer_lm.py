"""From options to a Transformer that models language: its sizes, how it attends, and how it knows where a token stands."""

from torch import nn

from quoin.data import TextFacts, keyed_generator
from quoin.errors import Mistake
from quoin.layers import (
    ALiBi,
    AttentionCore,
    ExactAttention,
    LearnedPositions,
    LinearAttention,
    PerformerAttention,
    Rotary,
    SinusoidalPositions,
    TransformerBlock,
    transformer_block,
)
from quoin.models import LanguageTransformer
from quoin.models.transformer import Positions

__all__ = ["language_transformer"]


def language_transformer(options, facts: TextFacts, sizes: tuple[int, int, int]) -> LanguageTransformer:
    """The model that the options of the recipe `transformer-lm` describe, of these sizes where the options name none."""
    width, heads, layers = (given or usual for given, usual in zip((options.width, options.heads, options.layers), sizes, strict=True))
    if width % heads:
        raise Mistake(f"--heads expects a divisor of the width {width}, got {heads}: give another --heads or --width")
    if options.positions == "alibi" and options.attention != "exact":
        raise Mistake(f"--positions alibi adds to scores, and {options.attention} attention has none: give --positions rotary")
    weights, directions = keyed_generator("weights", options.seed), keyed_generator("directions", options.seed)

    def core() -> AttentionCore:
        if options.attention == "linear":
            return LinearAttention()
        if options.attention == "performer":
            return PerformerAttention(width // heads, options.features, generator=directions)
        return ExactAttention(bias=ALiBi(heads) if options.positions == "alibi" else None)

    def block() -> TransformerBlock:
        turn = Rotary(width // heads) if options.positions == "rotary" else None
        return transformer_block(
            width, heads, activation=nn.functional.gelu, core=core(), turn=turn, dropout=options.dropout, generator=weights
        )  # fmt: skip

    def codes() -> Positions | None:
        if options.positions == "learned":
            return LearnedPositions(options.context, width, generator=weights)
        return SinusoidalPositions(width) if options.positions == "sinusoidal" else None

    return LanguageTransformer(
        facts.vocabulary_size,
        [block() for _ in range(layers)],
        positions=codes(),
        context=options.context if options.positions == "learned" else None,
        dropout=options.dropout,
        generator=weights,
    )
