"""Classification: margins and their losses, how labels are coded and counted, and what a posterior is good for."""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data import make_blobs
from quoin.losses import cross_entropy, kernel_svm_objective, logistic_loss, logistic_loss_definition, svm_objective
from quoin.metrics import (
    accuracy,
    calibration_curve,
    empirical_risk,
    expected_calibration_error,
    minimize_expected_cost,
    predictive_entropy,
    zero_one_loss,
)
from quoin.models import least_squares
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import SequenceModel, binary_log_prob, binary_log_prob_definition, margin
from quoin.tensor import one_hot, softmax

CASES = 30


def random_signs(count: int, generator: torch.Generator) -> Int[Tensor, "n"]:
    return 2 * torch.randint(2, (count,), generator=generator) - 1


@claim("M8c", "with scores s and -s for the labels 1 and -1, softmax gives label y the probability σ(2ys)")
def two_label_softmax_is_a_sigmoid(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for scale in (1.0, 10.0, 100.0):
        scores = scale * torch.randn(300, generator=generator, dtype=torch.float64).clamp(-3.4, 3.4)
        y = random_signs(300, generator)
        expected = torch.tensor(
            [1 / (1 + math.exp(-2 * a * s)) for a, s in zip(y.tolist(), scores.tolist())], dtype=torch.float64
        )
        both = softmax(torch.stack([scores, -scores], dim=-1))
        worst = max(worst, gap(torch.where(y == 1, both[:, 0], both[:, 1]), expected))
        for form in (binary_log_prob_definition, binary_log_prob):
            worst = max(worst, gap(form(scores, y).exp(), expected))
    return Evidence("largest |softmax(±s) - σ(2ys)|", worst, roundings(16), "16 float64 roundings", 900)


@claim(
    "M10", "the log loss lies within e^(-m) of 0 at a margin m, and within e^(-m) of m at a margin -m, up to a thousand"
)
def log_loss_far_from_zero(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for low, high in ((0.0, 1.0), (1.0, 30.0), (30.0, 1000.0)):
        m = low + (high - low) * torch.rand(300, generator=generator, dtype=torch.float64)
        for form in (logistic_loss_definition, logistic_loss):
            right, wrong = form(m), form(-m) - m
            near = torch.stack([right - (-m).exp(), wrong - (-m).exp(), -right, -wrong]) / m.clamp(min=1)
            worst = max(worst, float(near.max()) if near.isfinite().all() else math.inf)
        small = m < 700  # where e^-m is a float64
        tail = (
            logistic_loss(m)[small] * m[small].exp()
        )  # 1 - e^-m/2 + ..., so that the loss itself, and not only 0, is right
        worst = max(worst, float((tail - 1).max()), float((1 - (-m[small]).exp() / 2 - tail).max()))
    return Evidence("largest excess over e^-m, relative to m", worst, roundings(8), "8 float64 roundings", 900)


def falls_for_ever(losses: Float[Tensor, "n"]) -> int:
    """Contradictions to: a longer weight always has a smaller loss, so that nothing is least."""
    return int((losses[1:] >= losses[:-1]).sum())


def is_least_somewhere(losses: Float[Tensor, "n"]) -> int:
    """Contradictions to: some weight has the least loss; those to the best candidate but the last, for the ray goes
    on."""
    return min(int((losses[index + 1 :] < losses[index]).sum()) for index in range(len(losses) - 1))


@claim(
    ("ME8", "M9"),
    "on separable data logistic regression has no minimiser: along a separating weight the loss falls for ever, "
    "towards 0",
    right=falls_for_ever,
    printed=is_least_somewhere,
)
def no_minimiser_on_separable_data(form: Callable[[Tensor], int], generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        X = torch.randn(randint(10, 60, generator), randint(1, 5, generator), generator=generator, dtype=torch.float64)
        weight = torch.randn(X.shape[1], generator=generator, dtype=torch.float64)
        scores = X @ (weight / weight.norm())
        scores = torch.where(scores >= 0, scores + 0.1, scores - 0.1)  # a gap of 0.2 between the classes
        y = torch.where(scores > 0, 1, -1)
        losses = torch.stack([logistic_loss(margin(2.0**power * scores, y)).mean() for power in range(8)])
        wrong += form(losses) + int(losses[-1] > math.exp(-2 * 0.1 * 2.0**7))
    return Evidence("contradictions along a ray of weights 1, 2, 4, ..., 128", wrong, 0, "exact: a count", CASES, "==")


@claim("D5.2-4", "with the linear kernel K = XXᵀ and w = Xᵀa, the kernel machine's objective is that of the linear one")
def linear_kernel_is_linear(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, d = randint(2, 20, generator), randint(1, 6, generator)
        X, a = (
            torch.randn(n, d, generator=generator, dtype=torch.float64),
            torch.randn(n, generator=generator, dtype=torch.float64),
        )
        y, bias = random_signs(n, generator), torch.randn((), generator=generator, dtype=torch.float64)
        weight = X.mT @ a
        linear = svm_objective(margin(X @ weight + bias, y), weight, 0.3)
        worst = max(worst, gap(kernel_svm_objective(a, X @ X.mT, y, 0.3, bias=bias), linear))
    return Evidence(
        "largest relative difference of the objectives", worst, roundings(256), "256 roundings of sums of 20", CASES
    )


@claim("Z4.4c", "relabelling the classes only permutes a one-hot fit; a fit to integer labels gives other predictions")
def one_hot_fits_do_not_depend_on_the_numbering(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(5):
        data = make_blobs(150, [(0.0, 0.0), (3.0, 0.0), (1.5, 2.5)], noise=1.0, generator=generator)
        X = data.features.double()
        classes_of_one_hot, accuracies_of_integers = set(), set()
        for order in itertools.permutations(range(3)):
            numbering = torch.tensor(order)
            y = numbering[data.targets]
            columns = [least_squares(X, column) for column in one_hot(y, 3, dtype=torch.float64).mT]
            outputs = torch.stack([X @ column.weight + column.bias for column in columns], dim=-1)
            # Back to the first numbering: column `order[c]` speaks of class c.
            classes_of_one_hot.add(tuple(outputs[:, numbering].argmax(dim=-1).tolist()))
            integer_fit = least_squares(X, y.double())
            nearest = (X @ integer_fit.weight + integer_fit.bias).round().clamp(0, 2).long()
            accuracies_of_integers.add(accuracy(nearest, y))
        wrong += (len(classes_of_one_hot) != 1) + (len(accuracies_of_integers) == 1)
    return Evidence(
        "data sets on which one-hot changes or integer labels do not",
        wrong,
        0,
        "exact: a count over 6 numberings",
        5,
        "==",
    )


@claim(
    "D1.3-11",
    "on any line the 0-1 loss of a linear classifier is flat but for n(q - 1) jumps; the cross-entropy has a "
    "gradient all along",
)
def hard_labels_have_no_gradient(generator: torch.Generator) -> Evidence:
    n, d, q, step, points = 30, 4, 3, 1e-6, 2000
    fraction = 0.0
    for _ in range(3):
        X = torch.randn(n, d, generator=generator, dtype=torch.float64)
        y = torch.randint(q, (n,), generator=generator)
        start, way = torch.randn(2, q, d, generator=generator, dtype=torch.float64)
        t = (6 * torch.arange(points, dtype=torch.float64) / points - 3).requires_grad_()

        def logits(t, X=X, start=start, way=way):
            return (start + t[:, None, None] * way) @ X.mT  # (points, q, n)

        def soft(t, y=y, logits=logits):
            return cross_entropy(logits(t).mT, y.expand(len(t), n)).mean(dim=-1)

        def hard(t, y=y, logits=logits):
            return zero_one_loss(logits(t).argmax(dim=1), y.expand(len(t), n)).mean(dim=-1)

        fraction = max(fraction, float((hard(t + step) != hard(t)).double().mean()))
        (gradient,) = torch.autograd.grad(soft(t).sum(), t)
        with torch.no_grad():
            quotient = (soft(t + step) - soft(t)) / step
            speeds = (
                way @ X.mT
            )  # each logit's speed; the curvature is a variance of them, at most a quarter of their range squared
            curvature = float(((speeds.amax(dim=0) - speeds.amin(dim=0)) ** 2 / 4).mean())
        near = float((quotient - gradient).abs().max()) <= step * curvature / 2 + roundings(1024) / step
        moving = (
            float((gradient.abs() > step).double().mean()) > 0.99
        )  # a convex function is flat near its minimum only
        fraction = fraction if near and moving and hard(t).unique().numel() > 1 else math.inf
    source = f"each of {n * (q - 1)} jumps falls between two of {points} points once at most"
    return Evidence(
        "fraction of points where a small step changes the 0-1 loss", fraction, n * (q - 1) / points, source, 3 * points
    )


class PrefixTable:
    """Scores looked up by position and prefix: the most general causal score, and it counts what it is asked for."""

    def __init__(self, num_tokens: int, length: int, generator: torch.Generator):
        self.vocab_size = num_tokens + 1
        self.table = torch.randn(
            length, self.vocab_size**length, self.vocab_size, generator=generator, dtype=torch.float64
        )
        self.scores_given = 0

    def __call__(self, x: Float[Tensor, "n d"], y: Int[Tensor, "n length"]) -> Float[Tensor, "n length vocab"]:
        positions = torch.arange(y.shape[1])
        powers = self.vocab_size**positions
        before = (y * powers).cumsum(dim=-1) - y * powers  # the prefix as a number in base v + 1
        self.scores_given += y.numel() * self.vocab_size
        return self.table[positions, before]


@claim(
    "M6c",
    "T softmaxes over |V| tokens and EOS give a distribution over all sequences of up to T tokens, of which |V|^T "
    "have length T",
)
def sequences_are_scored_token_by_token(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for num_tokens, length in itertools.product((1, 2, 3), (1, 2, 3, 4)):
        sequences = [
            [*tokens, *[num_tokens] * (length - size)]
            for size in range(length + 1)
            for tokens in itertools.product(range(num_tokens), repeat=size)
        ]
        y, score = torch.tensor(sequences), PrefixTable(num_tokens, length, generator)
        total = (
            SequenceModel(score, num_tokens=num_tokens, length=length).log_prob(y, torch.zeros(len(y), 1)).exp().sum()
        )
        full = int((y != num_tokens).all(dim=-1).sum())
        counted = full == num_tokens**length and score.scores_given == len(y) * length * (num_tokens + 1)
        worst = max(worst, gap(total, torch.ones(())) if counted else math.inf)
        cases += len(y)
    # 20 tokens out of 10,000: 10^80 sequences, as many as there are atoms, against 200,020 scores.
    worst = worst if 10_000**20 == 10**80 and 20 * 10_001 == 200_020 else math.inf
    return Evidence("largest |Σ_y P(y|x) - 1| over every sequence", worst, roundings(64), "64 float64 roundings", cases)


@claim(
    "D5.2-10",
    "the true posterior is calibrated: what it gives probability p happens in a fraction p; a sharpened one is "
    "overconfident",
)
def true_posterior_is_calibrated(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        counts = torch.randint(1, 20, (8, 3), generator=generator)  # how often input x occurs with class c
        posterior = counts.double() / counts.sum(dim=-1, keepdim=True)
        x = torch.arange(8).repeat_interleave(counts.sum(dim=-1))
        c = torch.arange(3).repeat(8).repeat_interleave(counts.reshape(-1))
        for label in range(3):
            curve = calibration_curve(posterior[x, label], c == label, num_bins=randint(1, 50, generator))
            some = curve.counts > 0
            worst = max(worst, gap(curve.confidence[some], curve.frequency[some]))
        worst = max(worst, expected_calibration_error(posterior[x], c))
        sharp = posterior**2 / (posterior**2).sum(dim=-1, keepdim=True)
        away = float(sharp.max(dim=-1).values[x].mean()) - accuracy(sharp[x].argmax(dim=-1), c)
        # All that is stated is overstated, so that bins cannot hide it: the error is the whole of it.
        worst = max(worst, abs(expected_calibration_error(sharp[x], c) - away) if away > 1e-3 else math.inf)
    return Evidence(
        "largest |frequency - stated probability|", worst, roundings(512), "512 roundings of sums of 400", CASES
    )


@claim(
    "D5.2-10",
    "acting by least expected cost is the best rule there is, and the entropy of a posterior runs from 0 to ln q",
)
def least_expected_cost_is_best(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        joint = torch.rand(4, 3, generator=generator, dtype=torch.float64)
        joint = joint / joint.sum()
        cost = torch.rand(3, 3, generator=generator, dtype=torch.float64)  # of action a when the class is c
        posterior = joint / joint.sum(dim=-1, keepdim=True)

        def price(actions, joint=joint, cost=cost) -> float:
            return float((joint * cost[actions]).sum())

        best = min(price(list(rule)) for rule in itertools.product(range(3), repeat=4))
        worst = max(worst, abs(price(minimize_expected_cost(posterior, cost).output) - best))
        certain = one_hot(torch.tensor([0, 2]), 3, dtype=torch.float64)
        even = torch.full((2, 3), 1 / 3, dtype=torch.float64)
        entropies = predictive_entropy(posterior)
        worst = max(worst, float(-entropies.min()), float(entropies.max()) - math.log(3))
        ends = torch.cat([predictive_entropy(certain), predictive_entropy(even)])
        worst = max(worst, gap(ends, torch.tensor([0, 0, math.log(3), math.log(3)], dtype=torch.float64)))
    return Evidence("largest cost above the best of all 81 rules", worst, roundings(16), "16 float64 roundings", CASES)


@claim("D1.3-3", "the loss on the training data is the plain mean of the examples' losses")
def training_loss_is_a_mean(generator: torch.Generator) -> Evidence:
    logits = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(4, (50,), generator=generator)
    by_hand = (
        math.fsum(
            math.log(math.fsum(map(math.exp, row))) - row[label] for row, label in zip(logits.tolist(), y.tolist())
        )
        / 50
    )
    worst = gap(empirical_risk(cross_entropy, logits, y), torch.tensor(by_hand, dtype=torch.float64))
    return Evidence("|risk - mean by hand|", worst, roundings(64), "64 float64 roundings", 50)
