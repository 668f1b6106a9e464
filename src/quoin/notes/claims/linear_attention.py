"""Attention of linear cost: what features separate, what that saves, and what it cannot give."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from quoin.layers import (
    CacheSpec,
    ExactAttention,
    Features,
    LinearAttention,
    LinearAttentionCache,
    PerformerFeatures,
    batched_causal_feature_attention,
    causal_feature_attention,
    elu_plus_one,
    elu_plus_one_definition,
    feature_attention,
    feature_attention_definition,
    init_sums,
    performer_features_definition,
    query_sums,
    update_sums,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.tensor import matrix_rank

CASES = 20


def random_qkv(
    generator: torch.Generator, *, same_length: bool = False
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"], Float[Tensor, "m v"]]:
    """Queries, keys and values of one head, of random sizes."""
    n, d = randint(2, 40, generator), randint(1, 12, generator)
    m = n if same_length else randint(2, 40, generator)
    return (
        normal(n, d, generator=generator),
        normal(m, d, generator=generator),
        normal(m, randint(1, 6, generator), generator=generator),
    )


@claim("D4.1-1", "Σ_j φ(q_i)·φ(k_j) = Σ_m φ_m(q_i) E_m with E_m = Σ_j φ_m(k_j): sums over keys that no query changes")
def queries_stand_outside_the_sum(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        q, k, v = random_qkv(generator)
        directions = normal(randint(1, 20, generator), q.shape[-1], generator=generator)
        for features in (elu_plus_one_definition, lambda x: performer_features_definition(x, directions)):  # noqa: B023, used at once
            query, key = Features(features(q)), Features(features(k))
            sums = update_sums(init_sums(key, v), key, v)
            scores = query.values @ key.values.mT
            totals = scores.sum(dim=-1)
            relative = ((query.values @ sums.keys - totals) / totals).abs().max()
            worst = max(worst, float(relative), gap(query_sums(sums, query), scores / totals.unsqueeze(-1) @ v))
    return Evidence(
        "largest difference between the sums and all pairs", worst, roundings(500), "500 float64 roundings", 2 * CASES
    )


def operations(attend: Callable[[Tensor, Tensor, Tensor], Tensor], n: int) -> int:
    """Multiplications of one call on n positions, as torch counts them when each product of matrices is made."""
    counter = FlopCounterMode(display=False)
    query, key, value = torch.zeros(3, 1, 2, n, 16)
    with counter, torch.no_grad():
        attend(query, key, value)
    return counter.get_total_flops() // 2


@claim(
    "D4.1-2",
    "with M features fixed, doubling the length doubles the multiplications, causal or not; exact attention takes "
    "four times",
)
def cost_is_linear(generator: torch.Generator) -> Evidence:
    chunk, length, d = 32, 256, 16
    linear, exact = LinearAttention(chunk_size=chunk).eval(), ExactAttention()
    worst = 0.0
    for causal in (False, True):

        def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return linear(query, key, value, causal=causal)  # noqa: B023, used at once

        counts = [operations(attend, n) for n in (length, 2 * length, 4 * length)]
        # Each position: its key into the sums, its query out of them, and where causal the scores and values of its
        # chunk.
        each = 2 * d * (d + 1) + causal * chunk * (d + d + 1)
        worst = max(
            worst, *(abs(count / (2 * n * each) - 1) for count, n in zip(counts, (length, 2 * length, 4 * length)))
        )
    pairs = [operations(lambda q, k, v: exact.weights(q, k) @ v, n) for n in (length, 2 * length)]
    worst = max(worst, abs(pairs[1] / pairs[0] - 4))
    return Evidence(
        "largest deviation from the count per position, and from 4 for exact", worst, 0.0, "counts are exact", 8, "=="
    )


@claim(
    "D4.1-3",
    "linear attention by sums over keys equals the quadratic form with weights φ(q_i)·φ(k_j) / Σ_j φ(q_i)·φ(k_j)",
)
def linear_is_quadratic(generator: torch.Generator) -> Evidence:
    worst, attend = 0.0, LinearAttention(chunk_size=7)
    for _ in range(CASES):
        q, k, v = (each.requires_grad_() for each in random_qkv(generator))
        kernel = (torch.nn.functional.elu(q) + 1) @ (torch.nn.functional.elu(k) + 1).mT
        quadratic, linear = (
            kernel / kernel.sum(dim=-1, keepdim=True) @ v,
            attend(*(each[None, None] for each in (q, k, v)))[0, 0],
        )
        upstream = normal(*linear.shape, generator=generator)
        gradients = [torch.autograd.grad(output, (q, k, v), upstream) for output in (linear, quadratic)]
        worst = max(worst, gap(linear, quadratic), *(gap(*pair) for pair in zip(*gradients)))
    return Evidence("largest difference in value or gradient", worst, roundings(2000), "2000 float64 roundings", CASES)


@claim(
    "D4.1-4",
    "S_t = S_{t-1} + φ(k_t) v_tᵀ and z_t = z_{t-1} + φ(k_t) give masked attention, from a state that never grows",
)
def recurrence_is_masked_attention(generator: torch.Generator) -> Evidence:
    worst, attend = 0.0, LinearAttention(chunk_size=5)
    for _ in range(CASES):
        q, k, v = (each[None, None] for each in random_qkv(generator, same_length=True))
        spec = CacheSpec(1, 1, k.shape[-1], v.shape[-1], q.shape[-2], torch.float64, q.device)
        cache, outputs = attend.init_cache(spec), []
        size = cache.sums.moments.shape
        for position in zip(*(each.split(1, dim=-2) for each in (q, k, v))):
            output, cache = attend.decode_step(cache, *position)
            outputs.append(output)
            grown = not isinstance(cache, LinearAttentionCache) or cache.sums.moments.shape != size
            worst = float("inf") if grown else worst
        kernel = (elu_plus_one_definition(q) @ elu_plus_one_definition(k).mT).tril()
        masked = kernel / kernel.sum(dim=-1, keepdim=True) @ v
        chunked = causal_feature_attention(Features(elu_plus_one(q)), Features(elu_plus_one(k)), v, chunk_size=3)
        batched = batched_causal_feature_attention(
            Features(elu_plus_one(q)), Features(elu_plus_one(k)), v, chunk_size=3
        )
        worst = max(worst, *(gap(each, masked) for each in (torch.cat(outputs, dim=-2), chunked, batched)))
    return Evidence(
        "largest difference between recurrence, chunks and mask",
        worst,
        roundings(500),
        "500 float64 roundings",
        3 * CASES,
    )


@claim(
    "D4.1-5",
    "elu(x) + 1 is positive as a float too: at x = -40 weights are those of e^x, where a rounded elu plus 1 leaves "
    "0 / 0",
)
def features_stay_positive(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for dtype in (torch.float32, torch.float64):
        for _ in range(CASES):
            shifts = torch.rand(6, generator=generator, dtype=dtype)
            query, key = (
                torch.full((1, 1, 1, 3), -40, dtype=dtype),
                (shifts - 40).reshape(1, 1, 6, 1).expand(1, 1, 6, 3),
            )
            weights = LinearAttention().weights(query, key)[0, 0, 0]
            expected = (key[0, 0, :, 0] + 40).softmax(0)  # a sum that is exact, unlike the difference before it
            worst = max(worst, float((weights - expected).abs().max()) / torch.finfo(dtype).eps)
            if (torch.nn.functional.elu(key) + 1).any():
                return Evidence("a rounded elu + 1 that is not 0", 1, 0, "e^-39 is less than half a rounding of 1", 1)
    return Evidence(
        "largest error of a weight, in roundings of 1", worst, 20, "20 roundings of e^x, products and sums", 2 * CASES
    )


@claim(
    "D4.1-5",
    "elu + 1 need not approximate softmax: with one long key among short ones their weights differ by more than 0.7",
)
def linear_is_not_softmax(generator: torch.Generator) -> Evidence:
    smallest = float("inf")
    for _ in range(CASES):
        d = randint(1, 16, generator)
        length = (4 + 4 * float(torch.rand((), generator=generator))) * d**0.25
        others = math.ceil(3 * (1 + length))
        query, key = torch.zeros(1, 1, 1, d, dtype=torch.float64), torch.zeros(1, 1, 1 + others, d, dtype=torch.float64)
        query[..., 0], key[:, :, 0, 0] = length, length
        softmax, linear = (core.weights(query, key)[0, 0, 0, 0] for core in (ExactAttention(), LinearAttention()))
        smallest = min(smallest, float(softmax - linear))
    source = "its score is at most 1 + |q| times another's: at most 1/4; softmax's is e^16 times another's"
    return Evidence("least difference of the two weights of the long key", smallest, 0.7, source, CASES, ">=")


def over_keys(query: Features, key: Features, value: Float[Tensor, "m v"]) -> Float[Tensor, "n v"]:
    return feature_attention(query, key, value)


def at_one_key(query: Features, key: Features, value: Float[Tensor, "m v"]) -> Float[Tensor, "n v"]:
    """As printed: the key's index is the query's, so φ(q_i)·φ(k_i) stands above and below, and cancels."""
    own = (query.values * key.values).sum(dim=-1, keepdim=True).unsqueeze(-1)  # (n, 1, 1)
    return (own * value).sum(dim=-2) / (own * torch.ones_like(value)).sum(dim=-2)


@claim("DE32", "both sums run over the keys j; with the query's own key throughout, features cancel and only the "
               "mean of V is left",
       right=over_keys, printed=at_one_key)  # fmt: skip
def sums_run_over_the_keys(
    form: Callable[[Features, Features, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst, where = 0.0, ""
    for _ in range(CASES):
        q, k, v = random_qkv(generator, same_length=True)
        query, key = Features(elu_plus_one_definition(q)), Features(elu_plus_one_definition(k))
        output = form(query, key, v)
        error = gap(output, feature_attention_definition(query, key, v).output)
        if error > worst:
            from_mean = gap(output, v.mean(dim=-2).expand_as(output))
            worst, where = error, f"off by {error:.2g} at {len(q)} positions, and {from_mean:.1g} from mean(V)"
    return Evidence(
        "largest difference from the quadratic form",
        worst,
        roundings(500),
        "500 float64 roundings",
        CASES,
        counterexample=where,
    )


def total_of_each_query(scores: Float[Tensor, "n m"]) -> Float[Tensor, "n 1"]:
    return scores.sum(dim=-1, keepdim=True)


def one_total(scores: Float[Tensor, "n m"]) -> Float[Tensor, "1 1"]:
    return scores.sum(dim=-1).mean().reshape(1, 1)


@claim("DE33", "the normalizer is Z_i = Σ_j exp⟨q_i, k_j⟩, one for each query, and features give each its own",
       right=total_of_each_query, printed=one_total)  # fmt: skip
def each_query_has_its_total(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, where = 0.0, ""
    for _ in range(CASES):
        q, k, v = random_qkv(generator)
        exact = (q @ k.mT).exp()
        softmax = ExactAttention(scale=1.0)(*(each[None, None] for each in (q, k, v)))[0, 0]
        features = PerformerFeatures(q.shape[-1], 8, generator=generator, scale=1.0).double()
        query, key = features(q, is_query=True), features(k, is_query=False)
        directions = features.projection.matrix
        kernel = performer_features_definition(q, directions) @ performer_features_definition(k, directions).mT
        errors = (
            gap(exact / form(exact) @ v, softmax),
            gap(kernel / form(kernel) @ v, feature_attention(query, key, v)),
        )
        if max(errors) > worst:
            totals = total_of_each_query(exact)
            worst, where = (
                max(errors),
                f"row sums from {float(totals.min()):.2g} to {float(totals.max()):.2g} under one Z",
            )
    bound, source = roundings(5000), "5000 float64 roundings"
    return Evidence(
        "largest difference from attention with this Z", worst, bound, source, 2 * CASES, counterexample=where
    )


@claim(
    "D4.1-16",
    "M features make a matrix of scores of rank at most M, where exp(QKᵀ) of n well-separated queries has rank n",
)
def features_are_of_low_rank(generator: torch.Generator) -> Evidence:
    n, m = 60, 8
    worst, cases = 0, 5
    for _ in range(cases):
        x = normal(n, 64, generator=generator)
        q = k = 4 * x / x.norm(dim=-1, keepdim=True)  # exp⟨q_i,k_j⟩ is e^16 on the diagonal
        features = PerformerFeatures(64, m, generator=generator, scale=1.0).double()
        scores = [feature_attention_definition(features(q, is_query=True), features(k, is_query=False), k).scores]
        scores.append(elu_plus_one_definition(q[:, :m]) @ elu_plus_one_definition(k[:, :m]).mT)
        full = matrix_rank((q @ k.mT).exp())
        worst = max(worst, abs(int(full) - n), *(int(matrix_rank(each)) - m for each in scores))
    quantity = f"excess of rank over M = {m}, or distance of exp(QKᵀ) from rank {n}"
    return Evidence(quantity, worst, 0, "a product of n x M and M x n", 3 * cases)
