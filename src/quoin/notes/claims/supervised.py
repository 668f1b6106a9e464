"""The blocks of supervised learning by their values: losses of labels and numbers, decisions, held-out rows and folds,
and the Bayes classifier of normal classes."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import kfold
from quoin.layers import elu, elu_derivative, gelu, gelu_derivative
from quoin.losses import (
    cross_entropy_from_probs,
    density_nll,
    hinge_loss,
    mae,
    mean_power_error,
    mse,
    nll_loss,
    squared_loss,
)
from quoin.metrics import cross_validate, held_out_loss
from quoin.models import GaussianDiscriminant
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.gaussians import random_distribution
from quoin.notes.claims.random_tensors import normal, uniform
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.prob import BinaryModel, CategoricalModel, bayes_rule_definition, binary_decision

CASES = 30


@claim(
    ("Z4.6", "Z4.7"),
    "-ln P(Y | X) = -ln Π P(y_i | x_i) is the sum of the examples' losses, and -Σ_j y_j ln p_j for one-hot y; a class "
    "that the target gives no weight costs nothing",
)
def likelihood_of_labels(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, k = randint(1, 6, generator), randint(2, 5, generator)
        probabilities = normal(n, k, generator=generator).softmax(dim=1)
        labels = torch.randint(k, (n,), generator=generator)
        product = math.prod(float(row[label]) for row, label in zip(probabilities, labels))
        worst = max(worst, abs(float(nll_loss(probabilities.log(), labels).sum()) + math.log(product)))
        worst = max(worst, abs(float(cross_entropy_from_probs(probabilities, labels).sum()) + math.log(product)))
        target = normal(n, k, generator=generator).softmax(dim=1)
        target[:, 0] = 0  # no weight on the first class, which the prediction may rule out
        target = target / target.sum(dim=1, keepdim=True)
        ruled_out = torch.cat([torch.zeros(n, 1).double(), normal(n, k - 1, generator=generator).softmax(dim=1)], dim=1)
        stated = [
            -sum(float(y) * math.log(float(p)) for y, p in zip(*rows) if y > 0) for rows in zip(target, ruled_out)
        ]
        worst = max(worst, gap(cross_entropy_from_probs(ruled_out, target), torch.tensor(stated, dtype=torch.float64)))
    return Evidence("largest |loss - sum of logs|", worst, roundings(128), "128 float64 roundings", 3 * CASES)


@claim(
    "D1.3-9",
    "(1/d) Σ |v_j - w_j|^p, for powers from 1 to 5: the absolute error at p = 1, twice the mean squared loss at p = 2",
)
def mean_powers(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, d, power = randint(1, 4, generator), randint(1, 6, generator), uniform(1, 5, generator)
        v, w = normal(n, d, generator=generator), normal(n, d, generator=generator)
        for p, found in ((power, mean_power_error(v, w, power)), (1, mae(v, w)), (2, mse(v, w))):
            stated = [sum(abs(a - b) ** p for a, b in zip(*rows)) / d for rows in zip(v.tolist(), w.tolist())]
            worst = max(worst, gap(found, torch.tensor(stated, dtype=torch.float64)))
        worst = max(worst, gap(mse(v, w), 2 * squared_loss(v, w).mean(dim=1)))
    return Evidence("largest |loss - sum by hand|", worst, roundings(64), "64 float64 roundings", 4 * CASES)


@claim(
    ("M7", "M11"),
    "y = 1 exactly if s(x) ≥ 0, the more probable label of the model; the hinge loss max(0, 1 - m) is the convex bound "
    "of the 0-1 loss with slope -1 up to m = 1",
)
def decisions_and_hinges(generator: torch.Generator) -> Evidence:
    wrong = 0
    scores = torch.cat([2 * normal(500, generator=generator), torch.tensor([0.0, -0.0, 1e-300, -1e-300]).double()])
    decisions = binary_decision(scores)
    wrong += sum(int(d) != (1 if s >= 0 else -1) for d, s in zip(decisions, scores.tolist()))
    model = BinaryModel(lambda x: x)
    more = [model.log_prob(torch.full((500,), y), scores[:500]) for y in (1, -1)]
    wrong += int((torch.where(more[0] >= more[1], 1, -1) != decisions[:500]).sum())
    wrong += int((model.predict(scores) != decisions).sum())
    margins = 3 * normal(500, generator=generator)
    losses = hinge_loss(margins)
    wrong += sum(not abs(float(loss) - max(0.0, 1 - m)) <= 1e-15 for loss, m in zip(losses, margins.tolist()))
    wrong += int((~(losses >= (margins <= 0).double())).sum())  # never below the 0-1 loss
    return Evidence("numbers that are another", wrong, 0, "exact: a count", 4 * 500, "==")


@claim(
    "M15",
    "the density model nearest to a sample without inputs is its table of frequencies: there E[-ln P(y)] is the "
    "sample's entropy, and no other distribution is lower",
)
def frequencies_are_the_best_density(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        k = randint(2, 6, generator)
        y = torch.cat([torch.arange(k), torch.randint(k, (40,), generator=generator)])
        frequencies = torch.bincount(y, minlength=k).double() / len(y)
        model = CategoricalModel(k).double()
        (scores,) = model.parameters()
        with torch.no_grad():
            worst = max(worst, abs(float(density_nll(model, y)) - math.log(k)))  # it starts uniform
            scores.copy_(frequencies.log().reshape(scores.shape))
            least = float(density_nll(model, y))
            worst = max(worst, abs(least + float((frequencies * frequencies.log()).sum())))
            scores.add_(normal(*scores.shape, generator=generator))
            worst = max(worst, least - float(density_nll(model, y)))
    return Evidence("largest distance from the entropy, or fall below", worst, roundings(64), "64 roundings", CASES)


def mean_model(x: Float[Tensor, "rows features"], y: Float[Tensor, "rows"]):
    return lambda new: y.mean() + 0 * new


@claim(
    ("Z3.26", "Z3.28", "D1.3-5"),
    "K folds: each row is validated on once and trained on K - 1 times; the error averaged over folds is that of hand "
    "loops, and the held-out loss is a mean over rows, whatever the batches",
)
def folds_count_every_row_once(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n = randint(5, 30, generator)
        k = randint(2, min(n, 6), generator)
        x, y = normal(n, generator=generator), normal(n, generator=generator)
        folds = kfold(n, k, generator=generator)
        validated = torch.cat([each.validation for each in folds]).sort().values
        sizes = [len(each.validation) for each in folds]
        whole = all(torch.equal(torch.cat(list(each)).sort().values, torch.arange(n)) for each in folds)
        if not (whole and torch.equal(validated, torch.arange(n)) and max(sizes) - min(sizes) <= 1 and len(folds) == k):
            worst = math.inf
        found = cross_validate(mean_model, squared_loss, x, y, folds)
        by_hand, trained = [], []
        for train, validation in folds:
            mean = float(y[train].mean())
            by_hand.append(sum((mean - float(y[i])) ** 2 / 2 for i in validation) / len(validation))
            trained.append(sum((mean - float(y[i])) ** 2 / 2 for i in train) / len(train))
        worst = max(worst, abs(found.validation_error - sum(by_hand) / k), abs(found.training_error - sum(trained) / k))
        mean_loss = sum((2 * a - b) ** 2 / 2 for a, b in zip(x.tolist(), y.tolist())) / n
        batch_size = randint(1, n, generator)
        worst = max(worst, abs(held_out_loss(lambda x: 2 * x, squared_loss, x, y, batch_size=batch_size) - mean_loss))
    return Evidence("largest |error - hand loop|, folds being whole", worst, roundings(128), "128 roundings", CASES)


@claim(
    ("D5.2-1", "D5.2-2"),
    "p(c, x) = P(c) N(x; μ_c, Σ_c) and Bayes' rule give P(c | x) and its argmax",
)
def bayes_classifier_of_normal_classes(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(6):
        q, d = randint(2, 4, generator), randint(1, 3, generator)
        priors = normal(q, generator=generator).softmax(dim=0)
        classes = [random_distribution(d, generator) for _ in range(q)]
        means, covariances = (torch.stack([getattr(c, name) for c in classes]) for name in ("mean", "covariance"))
        model = GaussianDiscriminant(priors, means, covariances)
        x = 2 * normal(40, d, generator=generator)
        likelihood = torch.stack([c.log_prob(x) for c in classes], dim=1)
        worst = max(worst, gap(model.log_joint(x), likelihood + priors.log()))
        joint = priors * likelihood.exp()
        posterior = joint / joint.sum(dim=1, keepdim=True)
        worst = max(worst, gap(model.posterior(x), posterior))
        worst = max(worst, gap(bayes_rule_definition(priors, likelihood.exp()), posterior))
        worst = max(worst, 0.0 if torch.equal(model.predict(x), joint.argmax(dim=1)) else math.inf)
    return Evidence("largest difference from Bayes' rule by hand", worst, roundings(2**12), "4096 roundings", 6 * 4)


@claim(
    ("D1-6", "D1-7"),
    "GELU is x Φ(x), Φ as the integral of the normal density, ELU e^x - 1 below 0; their derivatives are those of "
    "central differences, ELU's without a jump at 0",
)
def gelu_and_elu(generator: torch.Generator) -> Evidence:
    worst, h = 0.0, 1e-4
    x = torch.cat([4 * normal(100, generator=generator), torch.linspace(-1e-6, 1e-6, 3).double()])
    for value in x.tolist():  # Φ by the midpoint rule from 0 to x: its error is below x³ max|φ''| / (24 · 4000²)
        steps = value * (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
        area = 0.5 + value / 4000 * float((-steps.square() / 2).exp().sum()) / math.sqrt(2 * math.pi)
        one = torch.tensor(value, dtype=torch.float64)
        worst = max(worst, abs(float(gelu(one)) - value * area))
        worst = max(worst, abs(float(elu(one)) - (value if value > 0 else math.expm1(value))))
    smooth = x[x.abs() > 1e-3]  # differences across ELU's joint are of first order only
    for f, derivative in ((gelu, gelu_derivative), (elu, elu_derivative)):
        worst = max(worst, float((derivative(smooth) - (f(smooth + h) - f(smooth - h)) / (2 * h)).abs().max()))
    edge = elu_derivative(torch.tensor([-1e-9, 0.0, 1e-9], dtype=torch.float64))
    worst = max(worst, float((edge - 1).abs().max()))
    return Evidence("largest |value - by hand|", worst, 1e-6, "midpoint rule and differences, 1e-8 each", len(x))
