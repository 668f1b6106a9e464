"""Softmax, log-sum-exp and cross-entropy."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.losses import cross_entropy, cross_entropy_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.tensor import logsumexp, one_hot, softargmax, softmax

CASES = 50


def random_logits(generator: torch.Generator, scale: float = 3.0) -> Float[Tensor, "n classes"]:
    shape = randint(1, 20, generator), randint(2, 12, generator)
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def random_labels(logits: Float[Tensor, "*batch classes"], generator: torch.Generator) -> Int[Tensor, "*batch"]:
    return torch.randint(logits.shape[-1], logits.shape[:-1], generator=generator)


@claim(
    "Z4.9", "the gradient of the cross-entropy in the logits is softmax minus target, for labels and for distributions"
)
def gradient_is_softmax_minus_target(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        logits = random_logits(generator).requires_grad_()
        labels = random_labels(logits, generator)
        soft = torch.rand(logits.shape, generator=generator, dtype=torch.float64)
        soft = soft / soft.sum(dim=-1, keepdim=True)
        probabilities = logits.detach().exp() / logits.detach().exp().sum(dim=-1, keepdim=True)
        for loss in (cross_entropy_definition, cross_entropy):
            for target, y in ((labels, one_hot(labels, logits.shape[-1], dtype=torch.float64)), (soft, soft)):
                (gradient,) = torch.autograd.grad(loss(logits, target).sum(), logits)
                worst = max(worst, gap(gradient, probabilities - y))
    return Evidence("largest |gradient - (softmax - y)|", worst, roundings(64), "64 float64 roundings", 4 * CASES)


@claim("D2.1-1", "softmax gives positive entries of at most one that sum to one")
def softmax_is_a_distribution(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        weights = softmax(random_logits(generator, scale=50.0).clamp(-300, 300))
        inside = bool(((weights > 0) & (weights <= 1)).all())
        worst = max(worst, gap(weights.sum(dim=-1), torch.ones(len(weights))) if inside else math.inf)
    return Evidence(
        "largest |sum - 1|, all entries in (0, 1]", worst, roundings(16), "16 roundings, up to 12 classes", CASES
    )


@claim("D2.1-2", "adding one number to every entry leaves the softmax as it was")
def softmax_is_shift_invariant(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        # Multiples of 1/1024 below 2^21 add without rounding, so equality may be asked to the last bit.
        logits = (random_logits(generator) * 1024).round() / 1024
        shift = randint(-1_000_000, 1_000_000, generator)
        worst = max(worst, gap(softmax(logits + shift), softmax(logits)))
    return Evidence("largest |softmax(x + c) - softmax(x)|", worst, 0.0, "exact: the sums do not round", CASES)


@claim("D1.4-15", "the cross-entropy of a one-hot target is minus the log of the probability at the hot index")
def one_hot_cross_entropy(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        probabilities = torch.rand(randint(2, 12, generator), generator=generator, dtype=torch.float64) + 0.01
        probabilities = probabilities / probabilities.sum()
        for hot in range(len(probabilities)):
            target = one_hot(torch.tensor(hot), len(probabilities), dtype=torch.float64)
            for loss in (cross_entropy_definition, cross_entropy):
                worst = max(worst, gap(loss(probabilities.log(), target), -probabilities[hot].log()))
    return Evidence("largest |CE(e_i, q) + log q_i|", worst, roundings(64), "64 float64 roundings", CASES)


@claim("Z4.8n", "log-sum-exp with the maximum taken off neither overflows nor vanishes at logits around ±1000")
def log_sum_exp_is_stable(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        logits = (random_logits(generator) * 1024).round() / 1024  # so that the shift by 1000 is exact
        plain = [math.log(math.fsum(math.exp(value) for value in row)) for row in logits.tolist()]
        for shift in (-1000, 1000):
            expected = torch.tensor(plain, dtype=torch.float64) + shift
            worst = max(worst, gap(logsumexp(logits + shift), expected))
    source = "16 float64 roundings, relative; exp(1000) is no float64"
    return Evidence("largest |LSE(o ± 1000) - (LSE(o) ± 1000)|, relative", worst, roundings(16), source, 2 * CASES)


def cumulative_softmax(x: Float[Tensor, "*shape"], axis: int) -> Float[Tensor, "*shape"]:
    return x.exp() / x.exp().cumsum(dim=axis)


@claim(
    "DE26", "softmax along an axis divides by the sum over the whole axis", right=softmax, printed=cumulative_softmax
)
def softmax_along_an_axis_sums_to_one(form: Callable[[Tensor, int], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        shape = [randint(2, 5, generator) for _ in range(3)]
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        axis = randint(0, 2, generator)
        weights = form(x, axis)
        lines, results = (tensor.movedim(axis, -1).reshape(-1, shape[axis]) for tensor in (x, weights))
        totals = torch.tensor([math.fsum(map(math.exp, line)) for line in lines.tolist()], dtype=torch.float64)
        worst = max(
            worst, gap(results, lines.exp() / totals.unsqueeze(-1)), gap(results.sum(dim=-1), torch.ones(len(lines)))
        )
    return Evidence(
        "largest |form - exp/sum| and |sum - 1|, relative", worst, roundings(16), "16 float64 roundings", CASES
    )


def random_scores(generator: torch.Generator) -> Float[Tensor, "n"]:
    """Scores without a near tie for the largest, so that λ · gap can be chosen."""
    x = (3072 * torch.randn(randint(2, 12, generator), generator=generator, dtype=torch.float64)).round() / 1024
    x[x.argmax()] += 0.125  # multiples of 1/1024, which add without rounding
    return x


@claim(
    "D2.1-3",
    "softmax(λx) is within (n - k)/k · e^(-λ·gap) of the uniform distribution on the k entries of the maximum, "
    "twice (n - k) that in l1",
)
def low_temperature_limit(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(CASES):
        x = random_scores(generator)
        ties = randint(0, 2, generator)
        x = torch.cat([x, x.max().repeat(ties)])[torch.randperm(len(x) + ties, generator=generator)]
        largest = x == x.max()
        k, others = int(largest.sum()), x[~largest]
        gap_below = float(x.max() - others.max())
        limit = largest.double() / k
        for sharpness in (1.0, 5.0, 20.0, 40.0, 1000.0):
            away = (softmax(sharpness / gap_below * x) - limit).abs()
            bound = len(others) / k * math.exp(-sharpness)
            worst = max(worst, float(away.max()) - bound, float(away.sum()) - 2 * bound)
            cases += 1
    source = "8 float64 roundings beyond the bound"
    return Evidence("largest |softmax(λx) - limit| - bound", worst, roundings(8), source, cases)


@claim(
    "D2.1-4",
    "softargmax points to the index of the maximum, whatever its size; the smooth maximum is LSE(λx)/λ, up to "
    "log(n)/λ above",
)
def softmax_softens_argmax(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = random_scores(generator)
        n, top = len(x), x.max()
        scale = 40 / float(top - x[x != top].max())
        indices = torch.arange(n, dtype=torch.float64)
        for moved in (x, x + 1024):  # the maximum has moved by 1024, its index has not
            pointer = softargmax(scale * moved)
            worst = max(worst, gap(pointer, one_hot(x.argmax(), n, dtype=torch.float64)))
            worst = max(worst, gap(pointer @ indices / n, indices[x.argmax()] / n))
        above = float(logsumexp(scale * x) / scale - top)
        worst = max(worst, -above, above - math.log(n) / scale)
    bound = 12 * math.exp(-40) + roundings(64)  # 11 losers of the twelve, and sums of twelve indices
    return Evidence(
        "largest distance from the argmax, LSE/λ outside its bounds", worst, bound, "11 e^-40 and rounding", CASES
    )


def below_the_largest(x: Float[Tensor, "n"], largest: Float[Tensor, ""], scale: float) -> Float[Tensor, "n"]:
    return (scale * (x - largest)).exp()


def below_itself(x: Float[Tensor, "n"], largest: Float[Tensor, ""], scale: float) -> Float[Tensor, "n"]:
    return (scale * (x - x)).exp()


@claim(
    "DE26",
    "every entry of softmax(λx) off the maximum is at most exp(λ(x_i - max x)), which tends to zero",
    right=below_the_largest,
    printed=below_itself,
)
def entries_off_the_maximum_vanish(
    form: Callable[[Tensor, Tensor, float], Tensor], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = random_scores(generator)
        others = x < x.max()
        scale = 40 / float(x.max() - x[others].max())
        bounds, entries = form(x[others], x.max(), scale), softmax(scale * x)[others]
        holds = bool((entries <= bounds * (1 + 1e-9)).all())
        worst = max(worst, float(bounds.max()) if holds else math.inf)
    bound = math.exp(-40) * (1 + 1e-9)
    return Evidence(
        "largest bound on such an entry at λ·gap = 40",
        worst,
        bound,
        "e^-40, to rounding of exponents up to 5000",
        CASES,
    )
