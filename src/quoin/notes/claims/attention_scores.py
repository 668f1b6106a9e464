"""Scores and their softmax: the variance of inner products, masks before the softmax, padding that counts nothing,
additive scores."""

import math
from collections.abc import Callable
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from quoin.data import pad_sequences
from quoin.layers import (
    AdditiveScore,
    BilinearScore,
    additive_score_definition,
    bilinear_score_definition,
    dot_score,
    scaled_dot_score,
)
from quoin.losses import cross_entropy
from quoin.metrics import zero_one_loss
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.tensor import masked_mean, masked_softmax, masked_softmax_definition, sequence_mask

CASES = 40
ROUNDING, ROUNDING_SOURCE = roundings(256), "256 float64 roundings, for sums of at most 100 terms"
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def two_point_distribution(generator: torch.Generator) -> tuple[list[float], list[float]]:
    """Values and probabilities of a random distribution on two points with mean 0 and variance 1."""
    p = 0.1 + 0.8 * float(torch.rand((), generator=generator, dtype=torch.float64))
    return [math.sqrt((1 - p) / p), -math.sqrt(p / (1 - p))], [p, 1 - p]


@claim(
    ["Z11.15", "Z11.16"], "for independent standardised entries qᵀk has mean 0 and variance d, so qᵀk/√d has variance 1"
)
def variance_of_inner_products(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(10):  # exact: all outcomes of d entries of each, with their probabilities
        d = randint(1, 4, generator)
        values, probs = two_point_distribution(generator)
        outcomes = torch.tensor(list(product(values, repeat=d)), dtype=torch.float64)
        probability = torch.tensor([math.prod(each) for each in product(probs, repeat=d)], dtype=torch.float64)
        joint = probability.unsqueeze(-1) * probability
        for score, variance in ((dot_score, d), (scaled_dot_score, 1)):
            scores = score(outcomes, outcomes)
            worst = max(worst, abs(float((joint * scores).sum())) / ROUNDING)
            worst = max(worst, abs(float((joint * scores.square()).sum()) - variance) / (variance * ROUNDING))
    for d in (16, 256):  # and by sampling, where q and k are normal: E s⁴ = 3 d² + 6 d, which gives the standard errors
        rows = 20_000
        query, key = normal(rows, 1, d, generator=generator), normal(rows, 1, d, generator=generator)
        scores = scaled_dot_score(query, key).flatten()
        worst = max(worst, abs(float(scores.mean())) / (6 / math.sqrt(rows)))
        worst = max(worst, abs(float(scores.square().mean()) - 1) / (6 * math.sqrt((2 + 6 / d) / rows)))
    return Evidence(
        "largest error over its bound",
        worst,
        1.0,
        "rounding where all outcomes are summed, else six standard errors",
        24,
    )


def with_junk(
    scores: Float[Tensor, "n m"], seen: Bool[Tensor, "n m"], generator: torch.Generator
) -> Float[Tensor, "n m"]:
    """What may stand at padding: large numbers, infinities, NaN."""
    junk = torch.tensor([1e4, math.inf, -math.inf, math.nan]).to(scores.dtype)
    return torch.where(seen, scores, junk[torch.randint(4, scores.shape, generator=generator)])


@claim(
    "Z11.18c",
    "masked softmax is the softmax of the first l; the padding has weight 0 and gradient 0, and an empty row is "
    "all zeros",
)
def masked_is_softmax_of_the_prefix(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        dtype = DTYPES[case % len(DTYPES)]
        rows, m = randint(1, 6, generator), randint(1, 12, generator)
        lengths = torch.randint(m + 1, (rows,), generator=generator)
        seen = sequence_mask(lengths, m)
        scores = with_junk((3 * normal(rows, m, generator=generator)).to(dtype), seen, generator).requires_grad_()
        upstream = normal(rows, m, generator=generator).to(dtype)
        for weights in (masked_softmax(scores, lengths=lengths), masked_softmax_definition(scores, seen)):
            (gradient,) = torch.autograd.grad(weights, scores, upstream)
            if (weights[~seen] != 0).any() or (gradient[~seen] != 0).any():
                worst = math.inf
            for row, length in enumerate(lengths.tolist()):
                prefix = (
                    scores.detach()[row, :length].double().requires_grad_()
                )  # the same numbers, computed in float64
                expected = torch.softmax(prefix, dim=-1)
                (its_gradient,) = torch.autograd.grad(expected, prefix, upstream[row, :length].double())
                for found, right in ((weights[row, :length], expected), (gradient[row, :length], its_gradient)):
                    if length:
                        worst = max(worst, gap(found.double(), right) / torch.finfo(dtype).eps)
    return Evidence(
        "largest difference from the softmax of the first l, in roundings of the dtype",
        worst,
        16,
        "16 roundings",
        2 * CASES,
    )


def mask_the_scores(scores: Float[Tensor, "n m"], lengths: Int[Tensor, "n"]) -> Float[Tensor, "n m"]:
    return masked_softmax(scores, lengths=lengths)


def mask_the_weights(scores: Float[Tensor, "n m"], lengths: Int[Tensor, "n"]) -> Float[Tensor, "n m"]:
    return torch.softmax(scores, dim=-1).masked_fill(~sequence_mask(lengths, scores.shape[-1]), -1e6)


def cut_the_sum(scores: Float[Tensor, "n m"], lengths: Int[Tensor, "n"]) -> Float[Tensor, "n m"]:
    return torch.softmax(scores, dim=-1).masked_fill(~sequence_mask(lengths, scores.shape[-1]), 0)


def a_large_negative_score(scores: Float[Tensor, "n m"], lengths: Int[Tensor, "n"]) -> Float[Tensor, "n m"]:
    return torch.softmax(
        torch.where(sequence_mask(lengths, scores.shape[-1]), scores, torch.tensor(-1e6).to(scores.dtype)), dim=-1
    )


def worst_weights(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, message = 0.0, ""
    for _ in range(CASES):
        rows, m = randint(1, 6, generator), randint(2, 12, generator)
        lengths = torch.randint(1, m, (rows,), generator=generator)
        scores = normal(rows, m, generator=generator)
        expected = torch.zeros_like(scores)
        for row, length in enumerate(lengths.tolist()):
            expected[row, :length] = torch.softmax(scores[row, :length], dim=-1)
        weights = form(scores, lengths)
        error = float((weights - expected).abs().max())
        if not error <= worst:  # NaN is an error too
            row = int((weights - expected).abs().amax(dim=-1).argmax())
            worst = error if math.isfinite(error) else math.inf
            message = (
                f"error {error:.3g} where l = {int(lengths[row])} of {m}; its weights sum to "
                f"{float(weights[row].sum()):.3g}"
            )
    return Evidence(
        "largest |weights - softmax of the first l|", worst, ROUNDING, ROUNDING_SOURCE, CASES, counterexample=message
    )


@claim(
    "ZE25",
    "padding is masked in the scores, before the softmax, not in the weights",
    right=mask_the_scores,
    printed=mask_the_weights,
)
def mask_scores_not_weights(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    return worst_weights(form, generator)


@claim(
    "ZE25",
    "the weights of the first l are renormalized: cutting the sum alone leaves less than 1",
    right=mask_the_scores,
    printed=cut_the_sum,
)
def cutting_the_sum_is_not_enough(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    return worst_weights(form, generator)


@claim(
    ["ZE25", "Z11.18"],
    "a hidden score is minus infinity and a row with nothing to see is zero; with -10⁶ such a row is NaN in half "
    "precision, else uniform",
    right=mask_the_scores,
    printed=a_large_negative_score,
)
def nothing_to_see_is_zero(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    wrong, message = 0, ""
    for dtype in DTYPES:
        scores = normal(3, 4, generator=generator).to(dtype).requires_grad_()
        weights = form(scores, torch.tensor([0, 2, 0]))
        (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
        bad = ~(weights[[0, 2]] == 0).all() or ~gradient.isfinite().all() or ~(weights[1].sum() - 1).abs().lt(0.01)
        if bad:
            message = message or f"{dtype}: an empty row has weights {weights[0].tolist()}"
        wrong += int(bad)
    weights = form(torch.zeros(1, 2, dtype=torch.float16), torch.tensor([0]))
    wrong += int(not bool((weights == 0).all()))
    message += f"; torch.float16: {weights[0].tolist()}"
    return Evidence(
        "dtypes in which an empty row is not zero", wrong, 0, "exact", len(DTYPES) + 1, "==", counterexample=message
    )


class KernelCalls(TorchDispatchMode):
    """Counts what is sent to torch's kernels."""

    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def row_by_row(scores: Float[Tensor, "n m"], lengths: Int[Tensor, "n"]) -> Float[Tensor, "n m"]:
    weights = torch.zeros_like(scores)
    for row, length in enumerate(lengths.tolist()):
        weights[row, :length] = torch.softmax(scores[row, :length], dim=-1)
    return weights


@claim(
    "Z11.18g",
    "masking all scores gives what a loop over the lengths gives, in as many kernel calls for 64 rows as for 4",
)
def waste_is_cheaper_than_branches(generator: torch.Generator) -> Evidence:
    calls: dict[int, list[int]] = {}
    difference = 0.0
    for rows in (4, 64):
        scores, lengths = normal(rows, 20, generator=generator), torch.randint(1, 21, (rows,), generator=generator)
        found = []
        for form in (mask_the_scores, row_by_row):
            with KernelCalls() as counter:
                found.append(form(scores, lengths))
            calls.setdefault(rows, []).append(counter.calls)
        difference = max(difference, gap(*found))
    dense_grows, loop_grows = (after - before for before, after in zip(calls[4], calls[64]))
    agree = difference <= ROUNDING and loop_grows >= 60
    source = (
        f"exact: a count; dense {calls[64][0]} and loop {calls[64][1]} calls for 64 rows, equal within "
        f"{ROUNDING_SOURCE}"
    )
    return Evidence("kernel calls for 60 more rows, dense", dense_grows if agree else math.inf, 0, source, 2, "==")


@claim(
    "Z11.18p",
    "a loss and a metric over a padded batch are those over the sequences themselves, and padding has no gradient",
)
def padding_counts_nothing(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        sequences = [
            torch.randint(5, (randint(1, 9, generator),), generator=generator) for _ in range(randint(1, 6, generator))
        ]
        tokens, lengths = pad_sequences(sequences)
        seen = sequence_mask(lengths, tokens.shape[1])
        logits = normal(*tokens.shape, 5, generator=generator).requires_grad_()
        loss = masked_mean(cross_entropy(logits, tokens), seen)
        (gradient,) = torch.autograd.grad(loss, logits)
        real = (
            torch.cat([logits[row, : len(sequence)] for row, sequence in enumerate(sequences)])
            .detach()
            .requires_grad_()
        )
        expected = cross_entropy(real, torch.cat(sequences)).mean()
        (its_gradient,) = torch.autograd.grad(expected, real)
        errors = masked_mean(zero_one_loss(logits.argmax(dim=-1), tokens).double(), seen)
        worst = max(worst, gap(loss, expected), gap(gradient[seen], its_gradient), float(gradient[~seen].abs().sum()))
        worst = max(worst, gap(errors, zero_one_loss(real.argmax(dim=-1), torch.cat(sequences)).double().mean()))
    return Evidence("largest difference from the sequences alone", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def additive_case(
    generator: torch.Generator, n: int, m: int, widths: tuple[int, int, int]
) -> tuple[AdditiveScore, Float[Tensor, "{n} d"], Float[Tensor, "{m} e"], nn.Sequential]:
    """A score, queries and keys, and the network on concatenated pairs that has the same weights."""
    d, e, h = widths
    score = AdditiveScore(d, e, h, generator=generator).double()
    hidden, output = nn.Linear(d + e, h, bias=False).double(), nn.Linear(h, 1, bias=False).double()
    with torch.no_grad():
        hidden.weight.copy_(torch.cat([score.query_weight, score.key_weight], dim=1))  # [W_q W_k]
        output.weight.copy_(score.output_weight.unsqueeze(0))
    return (
        score,
        normal(n, d, generator=generator),
        normal(m, e, generator=generator),
        nn.Sequential(hidden, nn.Tanh(), output),
    )


def all_pairs(query: Float[Tensor, "n d"], key: Float[Tensor, "m e"]) -> Float[Tensor, "n m d+e"]:
    n, m = len(query), len(key)
    return torch.cat([query.unsqueeze(1).expand(n, m, -1), key.expand(n, m, -1)], dim=-1)


@claim("Z11.22", "the additive score is a network with one hidden tanh layer and no bias on the pair [q; k]")
def additive_score_is_a_network(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, m = randint(1, 6, generator), randint(1, 6, generator)
        widths = (randint(1, 6, generator), randint(1, 6, generator), randint(1, 8, generator))
        score, query, key, network = additive_case(generator, n, m, widths)
        expected = network(all_pairs(query, key)).squeeze(-1)
        definition = additive_score_definition(query, key, score.query_weight, score.key_weight, score.output_weight)
        worst = max(worst, gap(score(query, key), expected), gap(definition, expected))
    return Evidence("largest |additive score - network|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim(
    "Z11.21c",
    "projecting each query and key once takes h(n d_q + m d_k) multiplications, on concatenated pairs h n m (d_q + "
    "d_k)",
)
def projections_are_shared(generator: torch.Generator) -> Evidence:
    n, m, (d, e, h) = 200, 200, (20, 12, 32)
    score, query, key, network = additive_case(generator, n, m, (d, e, h))
    with torch.no_grad():
        with FlopCounterMode(display=False) as shared:
            projected = score.project_query(query), score.project_key(key)
        with FlopCounterMode(display=False) as pairwise:
            hidden = network[0](all_pairs(query, key))
        same = gap(score.score(*projected), network(all_pairs(query, key)).squeeze(-1)) <= ROUNDING
        same = same and gap(projected[0].unsqueeze(1) + projected[1], hidden) <= ROUNDING
    counted = (shared.get_total_flops() // 2, pairwise.get_total_flops() // 2)  # a multiplication and an addition each
    wrong = sum(found != expected for found, expected in zip(counted, (h * (n * d + m * e), h * n * m * (d + e))))
    source = f"exact: counts of {counted[0]:,} and {counted[1]:,}; the {n * m * h:,} tanh remain in both"
    return Evidence("counts that differ from the formulas", wrong if same else math.inf, 0, source, 2, "==")


@claim(
    "Z11.20",
    "qᵀMk = Σ_ij q_i M_ij k_j for queries and keys of different dimensions: linear in each, the dot product for M = I",
)
def bilinear_scores(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        d, e, m, n = (randint(1, 5, generator) for _ in range(4))
        query, key, matrix = (normal(*shape, generator=generator) for shape in ((m, d), (n, e), (d, e)))
        by_hand = torch.tensor(
            [
                [sum(q[i] * matrix[i, j] * k[j] for i in range(d) for j in range(e)) for k in key.tolist()]
                for q in query.tolist()
            ],
            dtype=torch.float64,
        )
        worst = max(worst, gap(bilinear_score_definition(query, key, matrix), by_hand))
        layer = BilinearScore(d, e, generator=generator).double()
        (weight,) = layer.parameters()
        with torch.no_grad():
            weight.copy_(matrix)
            worst = max(worst, gap(layer(query, key), by_hand))
            more = layer(2 * query + 1, key) - layer(torch.ones_like(query), key)
            worst = max(worst, gap(more, 2 * by_hand))
        square = normal(n, d, generator=generator)
        plain = bilinear_score_definition(query, square, torch.eye(d, dtype=torch.float64))
        worst = max(worst, gap(plain, query @ square.T))
    return Evidence("largest |score - sum by hand|", worst, ROUNDING, ROUNDING_SOURCE, 4 * CASES)
