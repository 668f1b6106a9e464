"""Attention with learned maps, one head and many: what it computes, what it costs, and why it is no dense layer."""

import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from quoin.layers import (
    Attention,
    ExactAttention,
    HeadProjections,
    MultiHeadAttention,
    SelfAttention,
    attention_layer_definition,
    from_torch_multihead,
    multi_head_attention_definition,
    scaled_dot_product_attention_definition,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import distance, gap, max, randint, roundings
from quoin.tensor import fit_complexity, softmax

Layer = TypeVar("Layer", bound=nn.Module)
ROUNDINGS = roundings(1000)  # sums of at most some dozen terms of size about one, a few in a row
SOURCE = "1000 float64 roundings"


def shaken(layer: Layer, generator: torch.Generator) -> Layer:
    """The layer in float64 with every weight and bias sampled anew: biases that start at zero would hide a mistake."""
    with torch.no_grad():
        for parameter in layer.double().parameters():
            parameter.copy_(normal(*parameter.shape, generator=generator) / math.sqrt(parameter.shape[-1]))
    return layer


@claim(
    "Z11.17",
    "for a batch of queries, softmax(QKᵀ/√d)V has as row i the values' mean by exp(q_i·k_j/√d), one query at a time",
)
def queries_attend_each_for_itself(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 20
    for _ in range(cases):
        n, m, d, v = (randint(1, 7, generator) for _ in range(4))
        query, key, value = (
            normal(n, d, generator=generator),
            normal(m, d, generator=generator),
            normal(m, v, generator=generator),
        )
        rows = []
        for q in query:
            terms = [math.exp(float(q @ k) / math.sqrt(d)) for k in key]
            rows.append(torch.stack([term / sum(terms) * x for term, x in zip(terms, value)]).sum(0))
        by_hand = torch.stack(rows)
        fast = ExactAttention()(query[None, None], key[None, None], value[None, None])[0, 0]
        worst = max(
            worst, gap(fast, by_hand), gap(scaled_dot_product_attention_definition(query, key, value).output, by_hand)
        )
    return Evidence("largest difference from one query at a time", worst, ROUNDINGS, SOURCE, 2 * cases)


@claim(
    "D2.2-4",
    "with scale 1 the layer is softmax((QW^Q)(KW^K)ᵀ) VW^V, (n, d_q), (m, d_k), (m, d_v) to (n, v), and scaled so "
    "with W^Q/√k",
)
def the_layer_is_the_printed_one_at_scale_one(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 20
    for _ in range(cases):
        n, m, d_q, d_k, d_v, k, v = (randint(1, 7, generator) for _ in range(7))
        Q, K, V = (
            normal(n, d_q, generator=generator),
            normal(m, d_k, generator=generator),
            normal(m, d_v, generator=generator),
        )
        plain, scaled = (
            shaken(Attention(d_q, d_k, d_v, k, v, scale=1.0), generator),
            Attention(d_q, d_k, d_v, k, v).double(),
        )
        W_Q, W_K, W_V = plain.q_proj.weight.T, plain.k_proj.weight.T, plain.v_proj.weight.T
        printed = softmax((Q @ W_Q) @ (K @ W_K).T) @ (V @ W_V)
        with torch.no_grad():
            for ours, its in zip(scaled.parameters(), plain.parameters(), strict=True):
                ours.copy_(its)
            scaled.q_proj.weight.mul_(math.sqrt(k))  # undoes the division by √k
        definition = attention_layer_definition(Q, K, V, W_Q, W_K, W_V, scale=1.0).output
        worst = max(worst, gap(plain(Q, K, V), printed), gap(scaled(Q, K, V), printed), gap(definition, printed))
    return Evidence("largest difference from the formula", worst, ROUNDINGS, SOURCE, 3 * cases)


@claim("D2.2-5", "with Q = K = V = X attention maps n rows of width d to n rows of width v, whatever n is")
def self_attention_is_attention_to_itself(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(10):
        d, k, v = (randint(1, 7, generator) for _ in range(3))
        layer = shaken(SelfAttention(d, k, v), generator)
        f = layer.attention
        for n in (1, randint(2, 9, generator)):
            X = normal(n, d, generator=generator)
            expected = attention_layer_definition(
                X, X, X, f.q_proj.weight.T, f.k_proj.weight.T, f.v_proj.weight.T
            ).output
            found = layer(X)
            worst = max(worst, gap(found, expected) if found.shape == (n, v) else math.inf)
            cases += 1
    return Evidence("largest difference from Attention(X, X, X)", worst, ROUNDINGS, SOURCE, cases)


@claim(
    "D2.2-6",
    "self-attention layers stack: n rows of width v go into a layer with d = v, and every row of the last depends "
    "on all of X",
)
def self_attention_stacks(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 8
    for _ in range(cases):
        n, widths = randint(2, 5, generator), [randint(2, 6, generator) for _ in range(4)]
        layers = [shaken(SelfAttention(d, 3, v), generator) for d, v in pairwise(widths)]
        X = normal(n, widths[0], generator=generator)
        by_hand = X
        for each in (layer.attention for layer in layers):
            W_Q, W_K, W_V = each.q_proj.weight.T, each.k_proj.weight.T, each.v_proj.weight.T
            by_hand = attention_layer_definition(by_hand, by_hand, by_hand, W_Q, W_K, W_V).output
        stack = nn.Sequential(*layers)
        whole = torch.autograd.functional.jacobian(stack, X)
        assert isinstance(whole, Tensor)
        reach = whole.abs().amax(dim=(1, 3))  # (n rows out, n rows in)
        fits = stack(X).shape == (n, widths[-1]) and bool((reach > 0).all())
        worst = max(worst, gap(stack(X), by_hand) if fits else math.inf)
    return Evidence("largest difference of a stack of three from one layer at a time", worst, ROUNDINGS, SOURCE, cases)


class MatrixProducts(TorchFunctionMode):
    """Counts the multiplications of the matrix products called under it; a mode at the kernels' level takes seconds to
    start."""

    def __init__(self):
        super().__init__()
        self.multiplications = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.matmul, Tensor.matmul, Tensor.__matmul__):
            left, right = args
            self.multiplications += left.numel() * right.shape[-1]
        return func(*args, **(kwargs or {}))


def kept_entries(work: Callable[[], object]) -> int:
    """How many numbers `work` keeps for the way back."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        held = work()  # held until counted, or memory is given away again and counted once for two
    del held
    return sum(kept.values())


@claim(
    "D2.2-7",
    "scores and pooling take n²(k + v) multiplications for n queries and n keys: time is of the order n² for fixed "
    "k and v",
)
def the_cost_is_quadratic(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(3):
        k, v = randint(1, 8, generator), randint(1, 8, generator)
        sizes, counts = [16, 32, 64, 128], []
        for n in sizes:
            query, key, value = (
                normal(n, k, generator=generator),
                normal(n, k, generator=generator),
                normal(n, v, generator=generator),
            )
            with MatrixProducts() as counter:
                scaled_dot_product_attention_definition(query, key, value)
            counts.append(counter.multiplications)
            worst = max(worst, abs(counts[-1] - n * n * (k + v)))
            cases += 1
        worst = max(worst, abs(fit_complexity(sizes, counts).exponent - 2))
    source = "counted exactly; 1e-9 for the rounding of the fitted exponent 2"
    return Evidence(
        "largest difference from n²(k + v) multiplications, and of their exponent from 2", worst, 1e-9, source, cases
    )


@claim(
    "D2.2-7",
    "memory is of the order n² only where the scores are stored: the fused kernel keeps n(2k + 2v + 1) numbers instead",
)
def the_scores_need_not_be_stored(generator: torch.Generator) -> Evidence:
    worst, cases, sizes = 0.0, 0, [16, 32, 64, 128, 256]
    for causal in (False, True):
        k = randint(2, 8, generator)
        stored, streamed = [], []
        for n in sizes:
            query, key, value = (normal(1, 1, n, k, generator=generator).requires_grad_() for _ in range(3))
            mask = torch.ones(n, n, dtype=torch.bool).tril() if causal else None
            stored.append(
                kept_entries(functools.partial(scaled_dot_product_attention_definition, query, key, value, mask))
            )
            streamed.append(kept_entries(functools.partial(ExactAttention(), query, key, value, causal=causal)))
            expected = scaled_dot_product_attention_definition(query, key, value, mask).output
            same = gap(ExactAttention()(query, key, value, causal=causal), expected)
            if stored[-1] < n * n or streamed[-1] > n * (4 * k + 1) or same > ROUNDINGS:
                worst = math.inf
            cases += 1
        worst = max(worst, fit_complexity(sizes, streamed).exponent)
    quantity = "exponent of n in what the kernel keeps for the way back (the definition keeps n² and more)"
    return Evidence(
        quantity, worst, 1 + 1e-9, "q, k, v, the output and one sum for each query: n(4k + 1), counted", cases
    )


@claim(
    "D2.2-8",
    "∂o_i/∂k_j = a_ij (v_j - o_i) q_iᵀ/√d: every key moves every row, how far depends on all keys: no entrywise σ "
    "does so",
)
def every_row_feels_every_key(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 20
    for _ in range(cases):
        n, m, d, v = (
            randint(low, 6, generator) for low in (1, 3, 1, 1)
        )  # of two keys only the difference counts, by a sigmoid
        query, key, value = (
            normal(n, d, generator=generator),
            normal(m, d, generator=generator),
            normal(m, v, generator=generator),
        )

        def output(key: Tensor, query: Tensor = query, value: Tensor = value) -> Tensor:
            return ExactAttention()(query[None, None], key[None, None], value[None, None])[0, 0]

        found = torch.autograd.functional.jacobian(output, key)
        assert isinstance(found, Tensor)  # (n, v, m, d)
        o, a, _ = scaled_dot_product_attention_definition(query, key, value)
        expected = torch.einsum("ij,ija,ib->iajb", a, value - o.unsqueeze(1), query) / math.sqrt(d)
        # Entrywise σ after an affine map: moving another key would change no ratio between the derivatives of one
        # entry.
        moved = key.clone()
        moved[0] += 1
        derivatives, others = found[0, 0, :, 0], torch.autograd.functional.jacobian(output, moved)[0, 0, :, 0]  # pyright: ignore[reportArgumentType]
        ratio_change = float(
            (derivatives[0] * others[1] - derivatives[1] * others[0]).abs()
            / (derivatives[:2].norm() * others[:2].norm())
        )
        mixes = bool((found.abs().amax(dim=(1, 3)) > 0).all()) and ratio_change > ROUNDINGS
        worst = max(worst, gap(found, expected) if mixes else math.inf)
    source = f"{SOURCE}; infinite where a row misses a key, or where derivatives keep their ratio as a key moves"
    return Evidence("largest difference of the Jacobian from the formula", worst, ROUNDINGS, source, cases)


@claim(
    "D2.2-9",
    "many heads are single heads side by side, then an affine map of their features, as in torch.nn.MultiheadAttention",
)
def heads_stand_side_by_side(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 12
    for _ in range(cases):
        heads, d, n, m = (
            randint(1, 4, generator),
            randint(1, 5, generator),
            randint(1, 6, generator),
            randint(1, 6, generator),
        )
        query, key = normal(2, n, heads * d, generator=generator), normal(2, m, heads * d, generator=generator)
        theirs = shaken(nn.MultiheadAttention(heads * d, heads, batch_first=True), generator)
        ours = from_torch_multihead(theirs)
        found = ours(query, key)
        worst = max(worst, gap(found, theirs(query, key, key, need_weights=False)[0]))
        shared = shaken(
            MultiHeadAttention(heads * d, heads, num_kv_heads=1), generator
        )  # one key head that all queries share
        for layer in (ours, shared):
            by_hand = multi_head_attention_definition(
                query, key, key, layer.head_projections(), layer.out_proj.weight.T, layer.out_proj.bias
            )
            worst = max(worst, gap(layer(query, key), by_hand.output))
    return Evidence("largest difference from heads one by one, and from torch's", worst, ROUNDINGS, SOURCE, 3 * cases)


def by_root_of_width(k: int) -> float:
    return 1 / math.sqrt(k)


def unscaled(k: int) -> float:
    return 1.0


@claim(
    "DE27",
    "scores of independent standard entries keep variance 1 when divided by √k",
    right=by_root_of_width,
    printed=unscaled,
)
def scores_keep_their_variance(form: Callable[[int], float], generator: torch.Generator) -> Evidence:
    pairs, worst, where = 10_000, 0.0, ""
    widths = (16, 64)
    for k in widths:
        query, key = normal(pairs, 1, k, generator=generator), normal(pairs, 1, k, generator=generator)
        scores = scaled_dot_product_attention_definition(query, key, key, scale=form(k)).scores
        variance = float(scores.square().mean())  # the mean is 0 by symmetry
        standard_error = math.sqrt((2 + 6 / k) / pairs)  # E[(q·k)⁴] = 3k² + 6k, so (q·k)²/k has variance 2 + 6/k
        if distance(variance, 1) / standard_error > worst:
            worst, where = distance(variance, 1) / standard_error, f"at k = {k} the scores have variance {variance:.3g}"
    default = gap(
        scaled_dot_product_attention_definition(query := normal(3, 9, generator=generator), query, query).output,
        scaled_dot_product_attention_definition(query, query, query, scale=by_root_of_width(9)).output,
    )
    worst = worst if default <= ROUNDINGS else math.inf  # what our layers do by default
    source = "7 standard deviations: by chance less than once in 10^10 runs"
    return Evidence(
        "|variance - 1| in standard deviations of its estimate",
        worst,
        7.0,
        source,
        len(widths) * pairs,
        counterexample=where,
    )


Sampler = Callable[..., Tensor]


def joined_along_features(
    query: Float[Tensor, "n d"], key: Float[Tensor, "m d"], maps: list[HeadProjections], sample: Sampler
) -> Float[Tensor, "n 5"]:
    wide = sum(head.v_proj(key).shape[-1] for head in maps)
    return multi_head_attention_definition(query, key, key, maps, sample(wide, 5), sample(5)).output


def stacked_and_multiplied_from_the_left(
    query: Float[Tensor, "n d"], key: Float[Tensor, "m d"], maps: list[HeadProjections], sample: Sampler
) -> Float[Tensor, "n v"]:
    heads = [
        scaled_dot_product_attention_definition(q_proj(query), k_proj(key), v_proj(key)).output
        for q_proj, k_proj, v_proj in maps
    ]
    stacked = torch.cat(heads, dim=-2)  # (h n, v)
    return sample(len(query), len(stacked)) @ stacked + sample(stacked.shape[-1])


@claim(
    "DE28",
    "joined along the features the heads stay apart by position: queries in another order give their outputs in "
    "that order",
    right=joined_along_features,
    printed=stacked_and_multiplied_from_the_left,
)
def the_last_map_keeps_positions_apart(
    form: Callable[[Tensor, Tensor, list[HeadProjections], Sampler], Tensor], generator: torch.Generator
) -> Evidence:
    worst, cases, where = 0.0, 10, ""
    pool = normal(40, 40, generator=generator)  # one matrix A and one b for all orders of the queries

    def sample(*shape: int) -> Tensor:
        return pool[tuple(slice(size) for size in shape)] if len(shape) == 2 else pool[-1, : shape[0]]

    for _ in range(cases):
        heads, d, n, m = (
            randint(1, 4, generator),
            randint(1, 5, generator),
            randint(2, 7, generator),
            randint(1, 6, generator),
        )
        layer = shaken(MultiHeadAttention(heads * d, heads), generator)
        query, key = normal(n, heads * d, generator=generator), normal(m, heads * d, generator=generator)
        order = torch.arange(n).roll(randint(1, n - 1, generator))  # never the order that was
        apart = gap(
            form(query[order], key, layer.head_projections(), sample),
            form(query, key, layer.head_projections(), sample)[order],
        )
        if apart > worst:
            worst, where = (
                apart,
                f"{n} queries through {heads} heads: an output differs by {apart:.2g} where only the order did",
            )
    quantity = "largest difference of f(Q in another order) from f(Q) in that order"
    return Evidence(quantity, worst, ROUNDINGS, SOURCE, cases, counterexample=where)
