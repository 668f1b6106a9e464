"""Attention does not see the order of its tokens, and what each positional encoding keeps and breaks."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.layers import (
    ALiBi,
    ClippedBuckets,
    HalfSplitRotaryEmbedding,
    LearnedPositionalEmbedding,
    RelativePositionBias,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    additive_position_definition,
    apply_half_split_rotary,
    apply_rotary,
    positional_qkv_definition,
    rotary_matrix,
    rotary_position_definition,
    sinusoidal_encoding,
    to_half_split,
)
from quoin.layers.attention import Attention, ExactAttention, MultiHeadAttention, attention_layer_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings

PositionMap = Callable[[Tensor, int], Tensor]
CASES = 30
ROUNDING, ROUNDING_SOURCE = roundings(4096), "4096 float64 roundings, for scores and sums of at most 24 terms"
FAR = 2000  # positions up to here; an angle of that size is rounded by as many units of one
ROTATED, ROTATED_SOURCE = roundings(64 * FAR), f"64 float64 roundings of an angle of up to {FAR} radians"
BROKEN, BROKEN_SOURCE = 1e-6, "a thousand million float64 roundings: what is no rounding error"


def shuffled(count: int, generator: torch.Generator) -> Int[Tensor, "n"]:
    """An order that is neither that of 0 ... count-1 nor, from three on, its reverse, in which all distances are the
    same."""
    forward = torch.arange(count)
    while True:
        order = torch.randperm(count, generator=generator)
        if not (torch.equal(order, forward) or (count > 2 and torch.equal(order, forward.flip(0)))):
            return order


# ---- without positions ------------------------------------------------------------------------------------------


def attentions(
    generator: torch.Generator,
) -> tuple[list[Callable[[Tensor, Tensor, Tensor], Tensor]], tuple[int, int, int]]:
    """The notes' layer from its definition and at full speed, and several heads of it; and the widths of what they
    attend to."""
    d_q, d_k, d_v = (4 * randint(1, 3, generator) for _ in range(3))
    matrices = [normal(width, 5, generator=generator) for width in (d_q, d_k, d_v)]
    layer = Attention(d_q, d_k, d_v, 5, 3, generator=generator).double()
    heads = MultiHeadAttention(d_q, 4, num_kv_heads=2, key_dim=d_k, value_dim=d_v, generator=generator).double()
    return [lambda q, k, v: attention_layer_definition(q, k, v, *matrices).output, layer, heads], (d_q, d_k, d_v)


def order_evidence(quantity: str, generator: torch.Generator, measure: Callable[..., float]) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        attends, widths = attentions(generator)
        queries, keys = randint(1, 8, generator), randint(2, 24, generator)
        q, k, v = (normal(1, n, d, generator=generator) for n, d in zip((queries, keys, keys), widths))
        worst = max(worst, *(measure(attend, q, k, v) for attend in attends))
    return Evidence(quantity, worst, ROUNDING, ROUNDING_SOURCE, 3 * CASES)


@claim("D3-1", "keys and values in another order, the same for both, give the same output")
def key_order_is_not_seen(generator: torch.Generator) -> Evidence:
    def measure(attend, q, k, v):
        order = shuffled(k.shape[1], generator)
        return gap(attend(q, k[:, order], v[:, order]), attend(q, k, v))

    return order_evidence("largest |Att(Q, K_τ, V_τ) - Att(Q, K, V)|", generator, measure)


@claim("D3-2", "queries in another order give their outputs in that order; their number need not be that of the keys")
def query_order_goes_through(generator: torch.Generator) -> Evidence:
    def measure(attend, q, k, v):
        order = torch.randperm(q.shape[1], generator=generator)
        return gap(attend(q[:, order], k, v), attend(q, k, v)[:, order])

    return order_evidence("largest |Att(Q_τ, K, V) - Att(Q, K, V)_τ|", generator, measure)


def self_attention_moves(
    layer: Callable[[Tensor], Tensor], num_tokens: int, width: int, generator: torch.Generator
) -> float:
    """|SA(X_τ) - SA(X)_τ| for random tokens X in a random order τ."""
    x, order = normal(1, num_tokens, width, generator=generator), shuffled(num_tokens, generator)
    return gap(layer(x[:, order]), layer(x)[:, order])


@claim("D3-3", "self-attention commutes with every order of its tokens, of one head or of many")
def self_attention_is_equivariant(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        width, tokens = 4 * randint(1, 3, generator), randint(2, 24, generator)
        matrices = [normal(width, 5, generator=generator) for _ in range(3)]
        heads = MultiHeadAttention(width, 4, generator=generator).double()
        for layer in (lambda x: attention_layer_definition(x, x, x, *matrices).output, heads):  # noqa: B023 - used at once
            worst = max(worst, self_attention_moves(layer, tokens, width, generator))
    return Evidence("largest |SA(X_τ) - SA(X)_τ|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


def with_positions(width: int, heads: int, generator: torch.Generator) -> dict[str, Callable[[Tensor], Tensor]]:
    """Self-attention with every kind of positional information."""

    def attention(inner_attention=None, rotary=None) -> MultiHeadAttention:
        return MultiHeadAttention(
            width, heads, inner_attention=inner_attention, rotary=rotary, generator=generator
        ).double()

    one = attention()
    learned = LearnedPositionalEmbedding(64, width, generator=generator).double()
    relative = RelativePositionBias(heads, ClippedBuckets(2), generator=generator).double()
    return {
        "sinusoidal": lambda x: one(SinusoidalPositionalEncoding(width)(x)),
        "learned": lambda x: one(learned(x)),
        "rotary": attention(rotary=RotaryEmbedding(width // heads)),
        "half-split rotary": attention(rotary=HalfSplitRotaryEmbedding(width // heads)),
        "ALiBi": attention(inner_attention=ExactAttention(bias=ALiBi(heads).double())),
        "relative bias": attention(inner_attention=ExactAttention(bias=relative)),
        "a causal mask": lambda x: one(x, causal=True),
    }


@claim("D3-3", "with positions in any form, added, rotary, as a bias or by a causal mask, it does so no more")
def positions_break_it(generator: torch.Generator) -> Evidence:
    least, kind = math.inf, ""
    for _ in range(CASES // 3):
        width, tokens = 8 * randint(1, 2, generator), randint(3, 24, generator)
        for name, layer in with_positions(width, 2, generator).items():
            moved = self_attention_moves(layer, tokens, width, generator)
            if moved < least:
                least, kind = moved, name
    quantity = f"smallest |SA(X_τ) - SA(X)_τ| (of {kind})"
    return Evidence(quantity, least, BROKEN, BROKEN_SOURCE, 7 * (CASES // 3), comparison=">=")


def value_of_the_token(query_map: PositionMap, key_map: PositionMap, value_map: PositionMap) -> PositionMap:
    return value_map


def value_by_the_key_map(query_map: PositionMap, key_map: PositionMap, value_map: PositionMap) -> PositionMap:
    return key_map


@claim(
    "DE29",
    "q_m = f_q(x_m), k_m = f_k(x_m) and v_m = f_v(x_m), not f_k, are what attention attends to, also with positions",
    right=value_of_the_token,
    printed=value_by_the_key_map,
)
def values_have_their_own_map(
    form: Callable[[PositionMap, PositionMap, PositionMap], PositionMap], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, d, k = randint(1, 8, generator), 2 * randint(1, 4, generator), 2 * randint(1, 4, generator)
        x, encoding = normal(n, d, generator=generator), sinusoidal_encoding(n, d)
        layer = Attention(d, d, d, k, k, generator=generator).double()
        weights = [f.weight.detach() for f in (layer.q_proj, layer.k_proj, layer.v_proj)]
        plain = [lambda token, m, W=W: W @ token for W in weights]
        added = [lambda token, m, W=W, encoding=encoding: W @ (token + encoding[m]) for W in weights]
        rotated = [lambda token, m, W=W, k=k: rotary_matrix(m, k) @ W @ token for W in weights[:2]] + plain[2:]
        expected = [
            [x @ W.T for W in weights],
            [additive_position_definition(x, W, encoding) for W in weights],
            [rotary_position_definition(x, W, torch.arange(n)) for W in weights[:2]] + [x @ weights[2].T],
        ]
        for maps, (query, key, value) in zip((plain, added, rotated), expected):
            found = positional_qkv_definition(x, maps[0], maps[1], form(*maps))
            attended = ExactAttention()(*(each[None, None] for each in found))
            worst = max(worst, gap(attended, ExactAttention()(*(each[None, None] for each in (query, key, value)))))
        unplaced = positional_qkv_definition(x, plain[0], plain[1], form(*plain))
        worst = max(worst, gap(ExactAttention()(*(each[None, None] for each in unplaced))[0, 0], layer(x, x, x)))
    return Evidence("largest |attention of the maps - the layer|", worst, ROUNDING, ROUNDING_SOURCE, 4 * CASES)


# ---- sinusoidal encodings ---------------------------------------------------------------------------------------


@claim(
    "D3-7c",
    "a shift by k rotates every sinusoidal encoding alike, pe_{m+k} = R_k pe_m, in the sense in which the notes "
    "print R",
)
def a_shift_is_a_rotation(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, shift, count = 2 * randint(1, 16, generator), randint(0, FAR // 2, generator), randint(1, 40, generator)
        start = randint(0, FAR // 2 - 40, generator)
        encoding, later = sinusoidal_encoding(count, d, start=start), sinusoidal_encoding(count, d, start=start + shift)
        worst = max(worst, gap(apply_rotary(encoding, torch.full((count,), shift), clockwise=True), later))
        worst = max(worst, gap(encoding @ rotary_matrix(shift, d, clockwise=True).T, later))
    return Evidence("largest |pe_{m+k} - R_k pe_m|", worst, ROTATED, ROTATED_SOURCE, 2 * CASES)


def diagonals(table: Float[Tensor, "n n"]) -> tuple[float, Float[Tensor, "n"]]:
    """How much the entries of a square table differ along a diagonal, and its first row."""
    n = len(table)
    return gap(table[1:, 1:], table[: n - 1, : n - 1]) if n > 1 else 0.0, table[0]


@claim("D3-7c", "so the inner product of two encodings is Σ_i cos((m - n) θ_i), by their distance alone")
def encodings_meet_by_distance(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, n, start = 2 * randint(1, 16, generator), randint(2, 60, generator), randint(0, FAR - 60, generator)
        encoding = sinusoidal_encoding(n, d, start=start)
        uneven, row = diagonals(encoding @ encoding.T)
        speeds = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        worst = max(worst, uneven, gap(row, (torch.arange(n).unsqueeze(-1) * speeds).cos().sum(dim=-1)))
    return Evidence("largest |⟨pe_m, pe_n⟩ - Σ cos((m - n) θ_i)|", worst, ROTATED, ROTATED_SOURCE, CASES)


def over_the_sequence(num_tokens: int, dim: int) -> Float[Tensor, "{num_tokens} {dim}"]:
    return sinusoidal_encoding(num_tokens, dim)


def over_the_features(num_tokens: int, dim: int) -> Float[Tensor, "{dim} {dim}"]:
    return sinusoidal_encoding(dim, dim, start=1)


@claim(
    "DE30",
    "positions run over the sequence, 0 ... n-1: every token has an encoding, and no two tokens the same",
    right=over_the_sequence,
    printed=over_the_features,
)
def every_token_has_an_encoding(form: Callable[[int, int], Tensor], generator: torch.Generator) -> Evidence:
    lacking, message = 0, ""
    for _ in range(CASES):
        dim = 2 * randint(2, 16, generator)
        tokens = randint(dim + 1, 200, generator)
        encoding = form(tokens, dim)[:tokens]
        apart = torch.cdist(encoding, encoding, compute_mode="donot_use_mm_for_euclid_dist") + 9 * torch.eye(
            len(encoding)
        )
        found = int((apart.min(dim=1).values > 1e-3).sum())  # neighbours differ by |e^i - 1| > 0.9 in their first pair
        if tokens - found > lacking:
            lacking, message = tokens - found, f"{tokens} tokens of {dim} features have {found} encodings between them"
    quantity = "most tokens of a sequence without an encoding of their own"
    return Evidence(quantity, lacking, 0.0, "a count", CASES, comparison="==", counterexample=message)


# ---- rotary -----------------------------------------------------------------------------------------------------

WAYS = [(rotary, clockwise) for rotary in (apply_rotary, apply_half_split_rotary) for clockwise in (False, True)]


@claim(
    "D3-8c",
    "R_mᵀ R_n = R_{n-m}: rotary scores see only the offset, in both senses and with both pairings of the features",
)
def scores_see_the_offset(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, m, n, shift = 2 * randint(1, 16, generator), *(randint(0, FAR // 2, generator) for _ in range(3))
        q, k = normal(1, d, generator=generator), normal(1, d, generator=generator)
        for rotary, clockwise in WAYS:

            def score(m: int, n: int, q=q, k=k, rotary=rotary, clockwise=clockwise) -> Tensor:
                return (
                    rotary(q, torch.tensor([m]), clockwise=clockwise)
                    * rotary(k, torch.tensor([n]), clockwise=clockwise)
                ).sum()

            near = score(m, n)
            worst = max(worst, gap(near, score(m + shift, n + shift)))
            worst = max(worst, gap(near, (q * rotary(k, torch.tensor([n - m]), clockwise=clockwise)).sum()))
            product = rotary_matrix(m, d, clockwise=clockwise).T @ rotary_matrix(n, d, clockwise=clockwise)
            worst = max(worst, gap(product, rotary_matrix(n - m, d, clockwise=clockwise)))
    return Evidence("largest change of a score under a shift", worst, ROTATED, ROTATED_SOURCE, CASES * len(WAYS))


@claim("D3-8c", "a rotation keeps lengths")
def rotations_keep_lengths(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = normal(randint(1, 20, generator), 2 * randint(1, 16, generator), generator=generator)
        positions = torch.randint(0, FAR, (len(x),), generator=generator)
        for rotary, clockwise in WAYS:
            worst = max(worst, gap(rotary(x, positions, clockwise=clockwise).norm(dim=-1), x.norm(dim=-1)))
    return Evidence("largest |‖R_m x‖ - ‖x‖|", worst, ROUNDING, ROUNDING_SOURCE, CASES * len(WAYS))


@claim(
    "D3-8c",
    "the two pairings differ by the order of the features alone: with the rows of W reordered, scores are the same",
)
def pairings_are_an_order(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        heads, d, n = randint(1, 4, generator), 2 * randint(1, 4, generator), randint(1, 12, generator)
        x = normal(n, 6, generator=generator)
        scores = []
        weights = [normal(heads * d, 6, generator=generator) for _ in range(2)]
        for rotary, each in (
            (apply_rotary, weights),
            (apply_half_split_rotary, [to_half_split(W, heads) for W in weights]),
        ):
            query, key = ((x @ W.T).unflatten(-1, (heads, d)).transpose(0, 1) for W in each)
            scores.append(rotary(query, torch.arange(n)) @ rotary(key, torch.arange(n)).mT)
        worst = max(worst, gap(*scores))
    return Evidence("largest difference of two scores", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def roformer(x: Float[Tensor, "n d"], positions: Int[Tensor, "n"]) -> Float[Tensor, "n d"]:
    return apply_rotary(x, positions)


def as_printed(x: Float[Tensor, "n d"], positions: Int[Tensor, "n"]) -> Float[Tensor, "n d"]:
    return apply_rotary(x, positions, clockwise=True)


@claim(
    "DE31",
    "with pairs as complex numbers, RoFormer multiplies by e^{imθ}; the printed blocks by e^{-imθ}",
    right=roformer,
    printed=as_printed,
)
def a_rotation_is_a_complex_product(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, m = 2 * randint(1, 16, generator), randint(1, FAR, generator)
        x = normal(1, d, generator=generator)
        rotations = torch.polar(
            torch.ones(d // 2).double(), m * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        )
        expected = torch.view_as_real(torch.view_as_complex(x.reshape(1, -1, 2)) * rotations).flatten(-2)
        worst = max(worst, gap(form(x, torch.tensor([m])), expected))
    return Evidence("largest |R_m x - e^{imθ} x|", worst, ROTATED, ROTATED_SOURCE, CASES)


@claim(
    "DE31",
    "both senses are relative, and mirror each other: the printed score of positions m and n is RoFormer's of n and m",
)
def the_senses_mirror(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, m, n = 2 * randint(1, 16, generator), *(randint(0, FAR, generator) for _ in range(2))
        q, k = normal(1, d, generator=generator), normal(1, d, generator=generator)

        def score(m: int, n: int, form, q=q, k=k) -> Tensor:
            return (form(q, torch.tensor([m])) * form(k, torch.tensor([n]))).sum()

        worst = max(worst, gap(score(m, n, as_printed), score(n, m, roformer)))
    return Evidence("largest |printed(m, n) - RoFormer(n, m)|", worst, ROTATED, ROTATED_SOURCE, CASES)
