"""Two classes and more for the pages: a test for an illness, losses along a ray of weights, tables with a class."""

from __future__ import annotations

import functools
import warnings
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.data import make_blobs
from quoin.errors import UserError
from quoin.estimators import LinearSVM, LogisticClassifier, SoftmaxClassifier
from quoin.lab.parts.own_table import read_table
from quoin.losses import cross_entropy_from_probs, hinge_loss, logistic_loss
from quoin.metrics import accuracy, confusion_matrix, minimize_expected_cost, zero_one_loss
from quoin.models import GaussianDiscriminant
from quoin.prob import (
    binary_decision,
    distribution_cross_entropy,
    kl_divergence,
    lp_distance,
    margin,
    total_variation_distance,
)
from quoin.tensor import one_hot

__all__ = [
    "CLASSIFIERS",
    "LENGTHS",
    "HeldOut",
    "costs_of",
    "decide",
    "distances",
    "held_out",
    "least_cost_actions",
    "losses_at",
    "losses_by_length",
    "own_classes",
    "patients",
    "stated",
]

CLASSIFIERS = {"softmax": SoftmaxClassifier, "logistic": LogisticClassifier, "SVM": LinearSVM}
LENGTHS = torch.logspace(-2, 3, 251, dtype=torch.float64)  # of the weight, in the exhibit on margins


def losses_by_length(
    x: Float[Tensor, " n"], signs: Float[Tensor, " n"], lengths: Float[Tensor, " lengths"]
) -> Float[Tensor, " lengths"]:
    """The mean logistic loss of the score w x at each weight w."""
    scores = lengths.unsqueeze(1) * x
    return logistic_loss(margin(scores, signs.expand_as(scores))).mean(dim=1)


def losses_at(margins: Float[Tensor, " n"]) -> dict[str, Float[Tensor, " n"]]:
    """The three losses of a margin."""
    wrong = zero_one_loss(binary_decision(margins), torch.ones_like(margins, dtype=torch.long))
    return {"logistic": logistic_loss(margins), "hinge": hinge_loss(margins), "0-1": wrong.to(margins.dtype)}


def distances(p: Float[Tensor, "*batch n"], q: Float[Tensor, "*batch n"]) -> dict[str, Float[Tensor, "*batch"]]:
    """Five ways to compare two distributions."""
    return {
        "L¹": lp_distance(p, q, 1),
        "L²": lp_distance(p, q, 2),
        "TV": total_variation_distance(p, q),
        "KL": kl_divergence(p, q),
        "CE": distribution_cross_entropy(p, q),
    }


@functools.lru_cache(maxsize=1)
def patients(count: int = 2000) -> tuple[GaussianDiscriminant, Float[Tensor, " n"], Int[Tensor, " n"]]:
    """One measurement of the well, N(0, 1), and of the ill, N(2, 1), half of each: the model, and people drawn from
    it."""
    double = functools.partial(torch.tensor, dtype=torch.float64)
    model = GaussianDiscriminant(double([0.5, 0.5]), double([[0.0], [2.0]]), double([[1.0]]))
    sample = model.sample(count, generator=torch.Generator().manual_seed(0))
    return model, sample.x[:, 0], sample.y


def stated(x: Float[Tensor, " n"], sharp: bool) -> Float[Tensor, "n 2"]:
    """P(c | x), or its square normalised: surer than it should be."""
    probabilities = patients()[0].posterior(x.unsqueeze(1))
    squares = probabilities.square()
    return squares / squares.sum(dim=-1, keepdim=True) if sharp else probabilities


def decide(ill: Float[Tensor, " n"], threshold: float) -> Bool[Tensor, " n"]:
    """Who is treated: those whose probability to be ill is above the threshold."""
    return ill > threshold


def costs_of(actions: Int[Tensor, " n"] | Bool[Tensor, " n"], labels: Int[Tensor, " n"], miss: float) -> float:
    """The mean cost: `miss` for each ill one who is not treated, 1 for each well one who is."""
    table = torch.tensor([[0.0, miss], [1.0, 0.0]], dtype=torch.float64)  # (actions, classes)
    return float(table[actions.long(), labels].mean())


def least_cost_actions(probabilities: Float[Tensor, "n 2"], miss: float) -> Int[Tensor, " n"]:
    """The action of least expected cost for each."""
    return minimize_expected_cost(probabilities, probabilities.new_tensor([[0.0, miss], [1.0, 0.0]])).output


class OwnClasses(NamedTuple):
    """A table with a class, its columns brought to mean 0 and variance 1, the rows in random order."""

    names: tuple[str, ...]
    classes: tuple[str, ...]
    X: Float[Tensor, "rows columns"]
    labels: Int[Tensor, " rows"]


@functools.lru_cache(maxsize=4)
def own_classes(file: bytes | None) -> OwnClasses:
    """The columns of numbers of a file and its class (the first column of words, else the last of numbers); without a
    file two blobs."""
    if file is None:
        blobs = make_blobs(160, [(0.0, 0.0), (2.0, 1.0)], noise=1.0, generator=torch.Generator().manual_seed(6))
        names, X = ("x", "y"), blobs.features.double()
        words = [["ant", "bee", "cat"][label] for label in blobs.targets.tolist()]
    else:
        table = read_table(file)
        names = tuple(table.numbers)
        words = next(iter(table.words.values()), None)
        if words is None:
            *names, last = names
            words = [f"{each:g}" for each in table.numbers[last].tolist()]
        if len(names) < 2:
            raise UserError(f"expected two columns of numbers and a class, got {len(names)}; choose another file")
        X = torch.stack([table.numbers[name] for name in names], dim=-1).double()
    classes = tuple(sorted(set(words)))
    if not 2 <= len(classes) <= 6:
        raise UserError(f"expected a column of two to six classes, got {len(classes)}; keep six at most")
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))[:2000]
    labels = torch.tensor([classes.index(word) for word in words])[order]
    X = (X - X.mean(dim=0)) / X.std(dim=0).clamp_min(1e-12)
    return OwnClasses(tuple(names), classes, X[order], labels)


class HeldOut(NamedTuple):
    """What a classifier made of the rows that it did not see."""

    held: int  # the first rows, which it did not see
    predicted: Int[Tensor, " held"]
    right: float
    commonest: float  # what is right of them if the commonest class of the others is always said
    loss: float
    confusion: Int[Tensor, "classes classes"]


@functools.lru_cache(maxsize=8)
def held_out(file: bytes | None, kind: str) -> HeldOut:
    """Fit on three quarters of the rows and look at the first quarter."""
    given = own_classes(file)
    held = len(given.labels) // 4
    train = given.labels[held:]
    if len(set(train.tolist())) < len(given.classes) or held < 1:
        raise UserError("expected rows of every class to learn from, got too few; add rows")
    if kind != "softmax" and len(given.classes) > 2:
        raise UserError(f"expected two classes for {kind}, got {len(given.classes)}; choose softmax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few steps: the held-out rows say how good it is
        model = CLASSIFIERS[kind](l2=1e-2, max_iter=200, tol=1e-7).fit(given.X[held:].numpy(), train.numpy())
    predicted = torch.as_tensor(model.predict(given.X[:held].numpy()))
    labels, shown = given.labels[:held], given.X[:held].numpy()
    if isinstance(model, LinearSVM):
        losses = hinge_loss((2 * labels - 1) * torch.as_tensor(model.decision_function(shown)))
    else:
        probabilities = torch.as_tensor(model.predict_proba(shown))
        losses = cross_entropy_from_probs(probabilities, one_hot(labels, len(given.classes), dtype=torch.float64))
    return HeldOut(
        held,
        predicted,
        accuracy(predicted, labels),
        accuracy(train.mode().values.expand(held), labels),
        float(losses.mean()),
        confusion_matrix(predicted, labels, len(given.classes)),
    )
