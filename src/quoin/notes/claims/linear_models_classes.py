"""Linear classifiers: what is wrong with classification as regression, and what a linear function cannot represent."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import make_blobs, make_tiny_images
from quoin.layers import sigmoid
from quoin.losses import cross_entropy
from quoin.metrics import accuracy
from quoin.models import LinearRegression, SoftmaxRegression, least_squares, one_hot_regression, ridge
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.optim import minimize_lbfgs
from quoin.prob import MulticlassModel
from quoin.tensor import one_hot

CASES = 50


def fitted(
    x: Float[Tensor, "n d"],
    target: Int[Tensor, "n"] | Float[Tensor, "n classes"],
    num_classes: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> SoftmaxRegression:
    """Softmax regression at its least cross-entropy, or after `max_iter` where there is none."""
    model = SoftmaxRegression(x.shape[1], num_classes).double()
    minimize_lbfgs(model.parameters(), lambda: cross_entropy(model(x), target).mean(), tol=tol, max_iter=max_iter)
    return model


def random_classes(generator: torch.Generator) -> tuple[Float[Tensor, "n d"], Int[Tensor, "n"], int]:
    """Features, labels of which every class has some, and the number of classes."""
    num_features, num_classes = randint(1, 5, generator), randint(2, 5, generator)
    labels = torch.randint(num_classes, (60,), generator=generator)
    labels[:num_classes] = torch.arange(num_classes)
    return torch.randn(60, num_features, generator=generator, dtype=torch.float64), labels, num_classes


@claim(
    "Z4.1",
    "each of the three scores of a 2 × 2 image is a weighted sum of its four pixels plus a bias: 15 numbers in all",
)
def scores_of_tiny_pictures(generator: torch.Generator) -> Evidence:
    pictures = make_tiny_images(30, generator=generator).features.double()
    model = SoftmaxRegression(4, 3).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=generator)
    W, b = model.linear.weight.detach(), model.linear.bias.detach()
    scores = [[float(sum(W[i, j] * x.flatten()[j] for j in range(4)) + b[i]) for i in range(3)] for x in pictures]
    by_hand = torch.tensor(scores, dtype=torch.float64)
    worst = gap(model(pictures), by_hand) if sum(p.numel() for p in model.parameters()) == 15 else math.inf
    return Evidence(
        "largest |score - Σ_j w_ij x_j - b_i|", worst, roundings(32), "32 float64 roundings, for sums of 5 terms", 30
    )


@claim(
    "Z4.2",
    "raw linear outputs are no probabilities: a least-squares fit of one-hot labels goes below 0 and above 1 far out",
)
def outputs_leave_the_unit_interval(generator: torch.Generator) -> Evidence:
    left = 0
    for _ in range(CASES):
        X, labels, num_classes = random_classes(generator)
        found = one_hot_regression(X, labels, num_classes)
        direction = torch.randn(1, X.shape[1], generator=generator, dtype=torch.float64)
        gradients = found.weight @ direction[0]
        # On the ray t · direction output i is b_i + slope_i t, so it passes 0 and 1 at some t of either sign.
        far = 1e3 / gradients.abs().max() * torch.cat([direction, -direction])
        outputs = found.predict(far)
        left += int(float(outputs.min()) < 0 and float(outputs.max()) > 1)
    source = "exact: a slope other than 0 passes every bound"
    return Evidence("fits whose outputs leave [0, 1] on both sides", left, CASES, source, CASES, "==")


@claim(
    "Z4.2",
    "and they need not sum to 1: not for arbitrary weights, not without a bias, not with a bias that is penalised",
)
def outputs_need_not_sum_to_one(generator: torch.Generator) -> Evidence:
    least = math.inf
    for _ in range(CASES):
        X, labels, num_classes = random_classes(generator)
        X = X + 1
        Y, with_ones = (
            one_hot(labels, num_classes, dtype=torch.float64),
            torch.cat([X, torch.ones(60, 1, dtype=torch.float64)], dim=1),
        )
        model = SoftmaxRegression(X.shape[1], num_classes).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter, generator=generator)
        without_bias = X @ torch.linalg.lstsq(X, Y).solution
        penalized = with_ones @ torch.linalg.solve(
            with_ones.mT @ with_ones + 6 * torch.eye(with_ones.shape[1]), with_ones.mT @ Y
        )
        for outputs in (model(X).detach(), without_bias, penalized):
            least = min(least, float((outputs.sum(dim=1) - 1).abs().max()))
    return Evidence(
        "least of the largest |Σ outputs - 1|", least, 1e-3, "a billion times the rounding of such a sum", CASES, ">="
    )


def with_bias(
    X: Float[Tensor, "n d"], labels: Int[Tensor, "n"], num_classes: int, far: Float[Tensor, "m d"]
) -> Float[Tensor, "m classes"]:
    return one_hot_regression(X, labels, num_classes).predict(far)


def without_bias(
    X: Float[Tensor, "n d"], labels: Int[Tensor, "n"], num_classes: int, far: Float[Tensor, "m d"]
) -> Float[Tensor, "m classes"]:
    return far @ torch.linalg.lstsq(X, one_hot(labels, num_classes, dtype=X.dtype)).solution


@claim(
    "ZE39",
    "least squares on one-hot labels guarantees that outputs sum to 1, given a bias",
    right=with_bias,
    printed=without_bias,
)
def least_squares_outputs_sum_to_one(
    form: Callable[[Tensor, Tensor, int, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        X, labels, num_classes = random_classes(generator)
        far = 100 * torch.randn(20, X.shape[1], generator=generator, dtype=torch.float64)
        total = form(X, labels, num_classes, far).sum(dim=1)
        worst = max(worst, gap(total, torch.ones_like(total)))
    source = "256 roundings of weights, times 256 for the distance"
    return Evidence("largest |Σ outputs - 1| far out", worst, roundings(2**16), source, CASES)


@claim("ZE39", "ridge that leaves the bias alone keeps the sum of 1")
def ridge_outputs_sum_to_one(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        X, labels, num_classes = random_classes(generator)
        total = ridge(X, one_hot(labels, num_classes, dtype=X.dtype), 0.1).predict(10 * X).sum(dim=1)
        worst = max(worst, gap(total, torch.ones_like(total)))
    return Evidence(
        "largest |Σ outputs - 1|", worst, roundings(2**14), "256 roundings of weights, times 64 for the distance", CASES
    )


@claim(
    "Z4.2c",
    "one-hot least squares and argmax classify three blobs at the corners of a triangle as well as softmax regression",
)
def regression_classifies_blobs(generator: torch.Generator) -> Evidence:
    corners = [(0.0, 0.0), (3.0, 0.0), (1.5, 1.5 * math.sqrt(3))]
    data = make_blobs(21_000, corners, noise=1.0, generator=generator)
    X, labels = data.features.double(), data.targets
    rows = torch.randperm(len(labels), generator=generator)
    train, test = rows[:1000], rows[1000:]
    model = fitted(X[train], labels[train], 3, tol=1e-4, max_iter=50)
    with torch.no_grad():
        softmax = accuracy(model(X[test]).argmax(-1), labels[test])
    regression = accuracy(one_hot_regression(X[train], labels[train], 3).predict(X[test]).argmax(-1), labels[test])
    # By symmetry both rules tend to the same one. Hoeffding: a mean of n differences in [-1, 1] is off by t with
    # probability exp(-n t²/2).
    bound = math.sqrt(2 * math.log(1e8) / len(test))
    worst = (
        abs(softmax - regression) if softmax > 0.8 else math.inf
    )  # and both must have learned something; chance is 1/3
    return Evidence(
        "difference of the two accuracies", worst, bound, "Hoeffding's inequality at a probability of 1e-8", len(test)
    )


@claim(
    "Z4.2c",
    "of three balanced classes in a row the middle one is masked: its output is never strictly largest; softmax "
    "sees it",
)
def middle_class_is_masked(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(10):
        offsets = 0.8 * torch.rand(10, generator=generator, dtype=torch.float64) - 0.4
        cloud = torch.cat([offsets, -offsets])  # symmetric, so that no class leans to a side
        X = torch.cat([cloud - 1, cloud, cloud + 1]).unsqueeze(1)
        labels = torch.arange(3).repeat_interleave(20)
        line = torch.linspace(-3, 3, 601, dtype=torch.float64).unsqueeze(1)
        low, middle, high = one_hot_regression(X, labels, 3).predict(line).unbind(dim=1)
        worst = max(worst, float((middle - torch.maximum(low, high)).max()))
        if MulticlassModel(fitted(X, labels, 3, max_iter=20)).predict(X).ne(labels).any():
            worst = math.inf
    return Evidence(
        "largest lead of the middle output",
        worst,
        roundings(64),
        "64 float64 roundings; the exact lead is at most 0",
        10,
    )


@claim(
    "Z5.1", "a linear model moves one way only: its derivative in feature i has the sign of w_i wherever it is taken"
)
def derivative_keeps_its_sign(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        model = LinearRegression(randint(1, 8, generator)).double()
        nn.init.normal_(model.linear.weight, generator=generator)
        x = 100 * torch.randn(
            20, model.linear.in_features, generator=generator, dtype=torch.float64, requires_grad=True
        )
        (gradients,) = torch.autograd.grad(model(x).sum(), x)
        wrong += int((gradients.sign() != model.linear.weight.detach().sign()).sum())
    return Evidence("derivatives of another sign", wrong, 0, "exact: the derivative is w_i", CASES, "==")


@claim(
    "Z5.1",
    "so XOR defeats it: least squares gives 1/2 at all four corners, while the product x₁x₂ as a feature fits exactly",
)
def xor_defeats_a_linear_model(generator: torch.Generator) -> Evidence:
    corners = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 0], dtype=torch.float64)
    half = least_squares(corners, y).predict(corners)
    worst = gap(half, torch.full_like(y, 0.5))
    bent = torch.cat([corners, corners.prod(dim=1, keepdim=True)], dim=1)
    worst = max(worst, gap(least_squares(bent, y).predict(bent), y))
    for _ in range(CASES):
        model = LinearRegression(2).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter, generator=generator)
        outputs = model(corners).detach()
        worst = max(
            worst, gap(outputs[0] + outputs[3], outputs[1] + outputs[2])
        )  # why no threshold separates the corners
    source = "64 float64 roundings, for sums of at most 4 products"
    return Evidence("largest deviation from what is exact", worst, roundings(64), source, CASES)


def repayment(generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Yearly incomes in thousands from 1 to 1,050, and the probability to repay: log-odds linear in the logarithm of
    the income."""
    slope = 1 + float(torch.rand((), generator=generator, dtype=torch.float64))
    income = torch.logspace(0, math.log10(1050), 200, dtype=torch.float64)
    return income, sigmoid(slope * (income / 50).log())


@claim(
    "Z5.2",
    "a score linear in income cannot fit probabilities of repayment that one linear in log income fits without "
    "excess loss",
)
def log_income_makes_linearity_plausible(generator: torch.Generator) -> Evidence:
    worst = 0.0
    steps_of_income = torch.tensor([1.0, 50.0, 1000.0, 1050.0], dtype=torch.float64).unsqueeze(1)
    for _ in range(3):
        income, probability = repayment(generator)
        distribution = torch.stack([1 - probability, probability], dim=1)
        entropy = -(distribution * distribution.log()).sum(dim=1)
        excess, ratios = [], []
        for feature in (lambda income: income / 100, torch.log):
            model = fitted(feature(income).unsqueeze(1), distribution, 2, tol=1e-9)
            with torch.no_grad():
                excess.append(
                    float((cross_entropy(model(feature(income).unsqueeze(1)), distribution) - entropy).mean())
                )
                score = model(feature(steps_of_income)) @ torch.tensor([-1.0, 1.0], dtype=torch.float64)
                ratios.append(float((score[1] - score[0]) / (score[3] - score[2])))
        # From 1 to 50 thousand and from 1,000 to 1,050: 49/50 of a step to the one model, ln 50 / ln 1.05 = 80 steps to
        # the other.
        as_expected = abs(ratios[0] - 49 / 50) < 1e-9 and ratios[1] > 50 and excess[0] > 0.01
        worst = max(worst, abs(excess[1]) if as_expected else math.inf)
    return Evidence(
        "excess loss with log income; raw income loses over 0.01", worst, 1e-9, "the tolerance of the fit", 3
    )


def log_odds(p: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return (p / (1 - p)).log()


def logarithm(p: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return p.log()


@claim(
    "ZE13",
    "what is linear in the score is the log-odds of the probability, not its logarithm",
    right=log_odds,
    printed=logarithm,
)
def log_odds_are_linear(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        slope = 0.5 + float(torch.rand((), generator=generator, dtype=torch.float64))
        model = SoftmaxRegression(1, 2).double()
        with torch.no_grad():
            model.linear.weight.copy_(torch.tensor([[0.0], [slope]]))
            evenly = torch.linspace(-2, 2, 81, dtype=torch.float64).unsqueeze(1)
            line = form(MulticlassModel(model).probabilities(evenly)[:, 1])
        worst = max(worst, float(line.diff(n=2).abs().max()))
    # |score| <= 3, where the log-odds magnify an error of p by at most 1/p(1-p) < 23, and a second difference has four
    # of them.
    return Evidence(
        "largest second difference", worst, roundings(4 * 23 * 8), "8 roundings of p, times 23, times 4", CASES
    )
