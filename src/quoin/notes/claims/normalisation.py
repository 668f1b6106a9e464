"""Batch and layer normalization: what they fix, what they leave open, and how little a small batch knows of the
whole."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers import (
    batch_norm_definition,
    batch_norm_eval_definition,
    dense_batch_norm_definition,
    layer_norm_definition,
    moments,
    position_batch_norm_definition,
    update_running_stats,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings

EPS = 1e-5
CASES = 30
ROUNDING, ROUNDING_SOURCE = roundings(512), "512 float64 roundings, for sums of at most 64 terms"


def plain(*shape: int) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """γ = 1 and β = 0."""
    return torch.ones(shape, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64)


def batch_of_features(generator: torch.Generator) -> Float[Tensor, "b c"]:
    """Features whose standard deviations go from 1/1000, where ε is ten times the variance, to 10."""
    b, c = randint(2, 64, generator), randint(1, 8, generator)
    std = 10 ** (4 * torch.rand(c, generator=generator, dtype=torch.float64) - 3)
    return std * (normal(b, c, generator=generator) + normal(c, generator=generator))


def short_of_one(variance: Float[Tensor, "c"], eps: float) -> Float[Tensor, "c"]:
    return variance / (variance + eps)


def exactly_one(variance: Float[Tensor, "c"], eps: float) -> Float[Tensor, "c"]:
    return torch.ones_like(variance)


def variance_evidence(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    worst, message = 0.0, ""
    for _ in range(CASES):
        x = batch_of_features(generator)
        found = batch_norm_definition(x, *plain(x.shape[1]), eps=EPS)
        left = moments(found.output, (0,))
        expected = form(found.variance, EPS)
        worst = max(worst, gap(left.mean, torch.zeros_like(left.mean)), gap(left.variance, expected))
        least = int(found.variance.argmin())
        message = (
            f"a feature of standard deviation {float(found.variance[least].sqrt()):.3g} is left a variance "
            f"of {left.variance[least]:.3g}"
        )
    quantity = "largest |mean| and |variance - expected| of a normalized batch"
    return Evidence(quantity, worst, ROUNDING, ROUNDING_SOURCE, CASES, counterexample=message)


@claim("Z8.3", "a normalized batch has mean 0 and variance var/(var + ε)")
def normalised_moments(generator: torch.Generator) -> Evidence:
    return variance_evidence(short_of_one, generator)


@claim(
    "ZE18",
    "the variance of a normalized batch falls short of one, for ε is in the divisor",
    right=short_of_one,
    printed=exactly_one,
)
def variance_is_not_one(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    return variance_evidence(form, generator)


@claim("Z8.4", "γ = σ̂ and β = μ̂ undo the normalization")
def parameters_undo_it(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = batch_of_features(generator)
        mean, variance = moments(x, (0,))
        worst = max(worst, gap(batch_norm_definition(x, (variance + EPS).sqrt(), mean, eps=EPS).output, x))
    return Evidence("largest |BN(x) - x|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "Z8.5",
    "over all batches the variance of the batch mean is exactly σ²/|B|, and (N-|B|)/(N-1) of that if no row comes "
    "twice",
)
def batch_means_fluctuate(generator: torch.Generator) -> Evidence:
    worst, cases, rows = 0.0, 0, 6
    for _ in range(5):
        population = normal(rows, generator=generator)
        variance = moments(population).variance
        for size in range(1, rows):
            with_replacement = torch.cartesian_prod(*[torch.arange(rows)] * size).reshape(-1, size)
            chosen = torch.combinations(torch.arange(rows), size)
            for batches, factor in ((with_replacement, 1.0), (chosen, (rows - size) / (rows - 1))):
                values = population[batches].T  # (|B|, number of batches): each batch is a feature
                means = batch_norm_definition(values, *plain(len(batches)), eps=EPS).mean
                worst, cases = max(worst, gap(moments(means).variance, factor * variance / size)), cases + 1
    source = "4096 float64 roundings, for means over at most 7776 batches"
    return Evidence("largest |variance of the batch means - formula|", worst, roundings(4096), source, cases)


@claim("Z8.5", "so for normal activations the standard deviation of a batch mean falls like 1/√|B|, from 2 rows to 128")
def batch_means_settle(generator: torch.Generator) -> Evidence:
    features, worst, sizes = 4000, 0.0, (2, 8, 32, 128)
    for size in sizes:
        x = normal(size, features, generator=generator)
        means = batch_norm_definition(x, *plain(features), eps=EPS).mean
        # |B| times the mean square of the means is a chi-squared of `features` degrees, over that number: variance 2 /
        # features.
        worst = max(worst, abs(float(size * means.square().mean()) - 1) / math.sqrt(2 / features))
    source = "7 standard deviations: a chi-squared of 4000 degrees goes there less than once in ten million"
    return Evidence("largest ||B| mean square - σ²| in standard deviations", worst, 7.0, source, features * len(sizes))


@claim(
    "Z8.5c",
    "batch norm of one example is β whatever the input; of two it is β ± γ, the sign of their difference, as ε → 0",
)
def tiny_batches_say_little(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        c = randint(1, 8, generator)
        gamma, beta = normal(c, generator=generator), normal(c, generator=generator)
        one = batch_norm_definition(10 * normal(1, c, generator=generator), gamma, beta, eps=EPS).output
        pair = normal(2, c, generator=generator)
        two = batch_norm_definition(pair, gamma, beta, eps=1e-40).output
        side = (pair[0] - pair[1]).sign()
        worst = max(worst, gap(one[0], beta), gap(two, torch.stack([beta + gamma * side, beta - gamma * side])))
    return Evidence("largest |BN - β| of one and |BN - (β ± γ)| of two", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


def one_each_channel(x: Float[Tensor, "b c ..."]) -> tuple[int, ...]:
    return (x.shape[1],)


def shaped_like_x(x: Float[Tensor, "b c ..."]) -> tuple[int, ...]:
    return tuple(x.shape[1:])


@claim(
    "ZE19",
    "γ and β have one entry a channel and are shared by its positions",
    right=one_each_channel,
    printed=shaped_like_x,
)
def parameters_are_shared(form: Callable[[Tensor], tuple[int, ...]], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        b, c, h, w = (randint(2, 4, generator) for _ in range(4))
        x = normal(b, c, h, w, generator=generator)
        gamma, beta = normal(*form(x), generator=generator), normal(*form(x), generator=generator)
        fast = nn.BatchNorm2d(c, eps=EPS).double()
        fast.load_state_dict({"weight": gamma, "bias": beta}, strict=False)
        worst = max(worst, gap(batch_norm_definition(x, gamma, beta, eps=EPS).output, fast(x)))
    return Evidence("largest |definition - BatchNorm2d| with these γ and β", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    ("Z8.6", "ZE19"), "a bias before batch norm changes nothing: φ(BN(Wx + b)) = φ(BN(Wx)), and its gradient is zero"
)
def bias_cancels(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        b, d, c = randint(3, 20, generator), randint(1, 8, generator), randint(1, 8, generator)
        x, W = normal(b, d, generator=generator), normal(c, d, generator=generator)
        gamma, beta, bias = (normal(c, generator=generator) for _ in range(3))
        bias.requires_grad_()
        # The variance is well above ε: at standard deviations near √ε the gradients, and with them rounding,
        # would be hundreds of times larger.
        found = dense_batch_norm_definition(x, W, bias, gamma, beta, torch.tanh, eps=0.1)
        (gradient,) = torch.autograd.grad(found, bias, normal(b, c, generator=generator))
        without = dense_batch_norm_definition(x, W, torch.zeros_like(bias), gamma, beta, torch.tanh, eps=0.1)
        worst = max(worst, gap(found, without), gap(gradient, torch.zeros_like(gradient)))
    source = "2048 float64 roundings, for sums of at most 20 terms and gradients of at most a few"
    return Evidence("largest |with b - without b| and |gradient in b|", worst, roundings(2048), source, CASES)


def pooled_over_positions(
    x: Float[Tensor, "b n c"], gamma: Float[Tensor, "c"], beta: Float[Tensor, "c"]
) -> Float[Tensor, "b n c"]:
    return batch_norm_definition(x, gamma, beta, channel_dim=-1, eps=EPS).output


def each_position_alone(
    x: Float[Tensor, "b n c"], gamma: Float[Tensor, "c"], beta: Float[Tensor, "c"]
) -> Float[Tensor, "b n c"]:
    return position_batch_norm_definition(x, gamma.expand(x.shape[1:]), beta.expand(x.shape[1:]), eps=EPS).output


@claim(
    "DE24",
    "batch norm pools examples and positions of a channel",
    right=pooled_over_positions,
    printed=each_position_alone,
)
def positions_are_pooled(form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, message = 0.0, ""
    for _ in range(CASES):
        b, n, c = (randint(2, 6, generator) for _ in range(3))
        x = normal(b, n, c, generator=generator)
        fast = nn.BatchNorm1d(c, eps=EPS).double()
        nn.init.normal_(fast.weight, generator=generator)
        nn.init.normal_(fast.bias, generator=generator)
        off = gap(form(x, fast.weight, fast.bias), fast(x.mT).mT)
        if off > worst:
            worst, message = off, f"off by {off:.3g} from torch.nn.BatchNorm1d on a {b} x {n} x {c} tensor"
    return Evidence(
        "largest |form - torch.nn.BatchNorm1d|", worst, ROUNDING, ROUNDING_SOURCE, CASES, counterexample=message
    )


def inside_the_root(
    x: Float[Tensor, "*batch c"], gamma: Float[Tensor, "c"], beta: Float[Tensor, "c"]
) -> Float[Tensor, "*batch c"]:
    return layer_norm_definition(x, gamma, beta, eps=EPS).output


def outside_the_root(
    x: Float[Tensor, "*batch c"], gamma: Float[Tensor, "c"], beta: Float[Tensor, "c"]
) -> Float[Tensor, "*batch c"]:
    mean, variance = moments(x, (-1,), keepdim=True)
    return gamma * (x - mean) / (variance.sqrt() + EPS) + beta


@claim("DE25", "ε is added to the variance, under the root", right=inside_the_root, printed=outside_the_root)
def eps_is_under_the_root(form: Callable[[Tensor, Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, message = 0.0, ""
    for _ in range(CASES):
        c, std = randint(2, 16, generator), 10.0 ** -randint(0, 4, generator)
        x = std * normal(5, c, generator=generator)
        gamma, beta = normal(c, generator=generator), normal(c, generator=generator)
        off = gap(form(x, gamma, beta), nn.functional.layer_norm(x, (c,), gamma, beta, EPS))
        if off > worst:
            worst, message = off, f"off by {off:.3g} from torch's layer norm at a standard deviation of {std:g}"
    return Evidence(
        "largest |form - torch.nn.functional.layer_norm|",
        worst,
        ROUNDING,
        ROUNDING_SOURCE,
        CASES,
        counterexample=message,
    )


@claim("D1.6-14", "layer norm of an example is the same in any company, in training and at test; batch norm's is not")
def layer_norm_ignores_the_batch(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        b, n, c = randint(2, 8, generator), randint(1, 6, generator), randint(2, 8, generator)
        x = normal(b, n, c, generator=generator)
        for shape in ((c,), (n, c)):
            gamma, beta = normal(*shape, generator=generator), normal(*shape, generator=generator)
            together = layer_norm_definition(x, gamma, beta, eps=EPS).output
            alone = torch.cat([layer_norm_definition(each, gamma, beta, eps=EPS).output for each in x.split(1)])
            fast = nn.LayerNorm(list(shape), eps=EPS).double()
            fast.load_state_dict({"weight": gamma, "bias": beta})
            worst = max(worst, gap(together, alone), gap(together, fast.train()(x)), gap(together, fast.eval()(x)))
        rows, batched = x.flatten(1), nn.BatchNorm1d(n * c, eps=EPS).double()
        # the contrast, without which the sentence would be idle
        if gap(batched.train()(rows), batched.eval()(rows)) < 0.01:
            worst = math.inf
    return Evidence("largest |in a batch - alone|, if batch norm differs", worst, ROUNDING, ROUNDING_SOURCE, 6 * CASES)


@claim("Z11.14", "layer norm with γ = 1 and β = 0 gives keys with ‖k‖² = d var/(var + ε)")
def key_norms_are_given(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        m, d = randint(1, 20, generator), randint(2, 64, generator)
        keys = 10.0 ** -randint(0, 4, generator) * normal(m, d, generator=generator)
        found = layer_norm_definition(keys, *plain(d), eps=EPS)
        worst = max(worst, gap(found.output.square().sum(dim=-1) / d, found.variance / (found.variance + EPS)))
    return Evidence("largest |‖k‖²/d - var/(var + ε)|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def within_each_key(keys: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    return layer_norm_definition(keys, *plain(keys.shape[1]), eps=EPS).output


def across_the_batch(keys: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    return batch_norm_definition(keys, *plain(keys.shape[1]), eps=EPS).output


@claim(
    "ZE41",
    "layer norm makes the norms of keys nearly constant, batch norm does not",
    right=within_each_key,
    printed=across_the_batch,
)
def key_norms_are_constant(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, message, m, d = 0.0, "", 64, 16
    for _ in range(CASES):
        # Student's t of two degrees of freedom: heavy tails, so that one key may hold most of a batch's variance.
        keys = (
            normal(m, d, generator=generator)
            / normal(m, 2, generator=generator).square().mean(dim=1, keepdim=True).sqrt()
        )
        norms = form(keys).norm(dim=-1) / math.sqrt(d)
        # ‖k‖/√d = √(var/(var + ε)) lies between 1 - ε/var and 1; the least variance of a key therefore bounds them all.
        slack = EPS / float(moments(keys, (-1,)).variance.min()) + ROUNDING
        off = excess((norms - 1).abs(), torch.zeros_like(norms)) / slack
        if off > worst:
            worst, message = (
                off,
                f"norms from {float(norms.min()) * math.sqrt(d):.3g} to {float(norms.max()) * math.sqrt(d):.3g}",
            )
    quantity = "largest |‖k‖/√d - 1| over ε/var"
    return Evidence(quantity, worst, 1.0, "1 - √(1/(1 + t)) <= t/2 < t with t = ε/var", CASES, counterexample=message)


@claim(
    "D1.6-12",
    "running averages: after n batches with momentum m the mean is (1 - m)^n μ_0 + m Σ (1 - m)^(n - i) μ̂_i, the "
    "variance likewise of unbiased ones; at test they make one affine map, as torch's layer has it",
)
def running_averages(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        c, count = randint(1, 5, generator), randint(1, 6, generator)
        m = 0.05 + 0.9 * float(torch.rand((), generator=generator))
        layer = nn.BatchNorm1d(c, momentum=m).double()
        running = moments(torch.tensor([[-1.0], [1.0]], dtype=torch.float64).expand(2, c), (0,))  # mean 0, variance 1
        mean, variance = torch.zeros(c).double(), torch.ones(c).double()
        batches = [normal(randint(2, 9, generator), c, generator=generator) * 3 + 1 for _ in range(count)]
        for i, x in enumerate(batches):
            running = update_running_stats(running, moments(x, (0,)), len(x), momentum=m)
            layer(x)
            # By hand, batch by batch from its rows: weight m (1 - m)^(batches after it).
            weight = m * (1 - m) ** (count - 1 - i)
            mean = mean + weight * x.sum(dim=0) / len(x)
            away = x - x.sum(dim=0) / len(x)
            variance = variance + weight * away.square().sum(dim=0) / (len(x) - 1)
        variance = variance - 1 + (1 - m) ** count  # what is left of the first variance
        worst = max(worst, gap(running.mean, mean), gap(running.variance, variance))
        state = layer.state_dict()
        worst = max(worst, gap(running.mean, state["running_mean"]), gap(running.variance, state["running_var"]))
        x = normal(4, c, generator=generator)
        gamma, beta = normal(c, generator=generator), normal(c, generator=generator)
        stated = gamma * (x - mean) / (variance + EPS).sqrt() + beta
        worst = max(worst, gap(batch_norm_eval_definition(x, running, gamma, beta, eps=EPS), stated))
    return Evidence("largest |running - by hand|", worst, ROUNDING, ROUNDING_SOURCE, 3 * CASES)
