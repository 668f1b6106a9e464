"""From an option to its part, and from a part to what is told: schedules of every optimizer of every recipe, settings
of `quoin.fit`, secondary metrics by a second way of computing them, the panels of every report.

Tasks are only built, or make one step: whether an option does anything at all is asked in test_options_work.py.
"""

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import nn

import quoin
from commands import refused, tried
from observing import stepped_rates
from quoin import plot
from quoin.plot.plots import COLORS
from quoin.runs import find_recipe, recipe_names
from quoin.train import DeviceContext, RunFolder
from quoin.train.gradient_updater import GradientUpdater

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL: dict[str, Any] = {
    "num_pairs": 200,
    "num_texts": 200,
    "num_examples": 64,
    "batch_size": 8,
    "num_samples": 20,
    "num_importance_samples": 5,
    "num_repeats": 20,
    "max_degree": 1,
    "num_bandwidths": 2,
    "num_doublings": 0,
}
EPOCHS, WARMUP = 3, 0.25
# The schedule of recipes that offer no choice, as (warm-up, shape).
FIXED = {
    **dict.fromkeys(("approximate-function", "elbo-gradients", "forward-reverse-kl"), (0.0, "cosine")),
    **dict.fromkeys(("linear-attention-copy", "performer-copy"), (0.1, "cosine")),
    "optimizer-race": (0.0, "constant"),
}
OWN = {"ppca": "its schedule is zero in the last step: test_the_last_step_of_ppca"}
CLASSES = ["Precision, recall and F1 score by class", "ROC curves", "Calibration"]
CLASSIFIER = ["Confusion matrix", "Misclassified examples", *CLASSES]
BINARY = [*CLASSIFIER[:3], "ROC curve", "Calibration"]
LANGUAGE = ["Bits per token on the test text", "Sample"]
COMPARISON = ["Training and test accuracy, with and without dropout"]
RACE = ["Loss by steps", "Loss by seconds", "Learning-rate sweep"]
VAE = ["Samples", "Reconstructions", "Latent space", "KL per latent dimension", "Latent traversal"]
WEIGHTS = "Attention weights: "
PANELS: dict[str, list[str]] = {
    **dict.fromkeys(("alexnet", "attention-digits", "densenet", "googlenet", "lenet", "mlp", "nin"), CLASSIFIER),
    **dict.fromkeys(("resnet", "resnext", "softmax-regression", "vgg", "vit"), CLASSIFIER),
    **dict.fromkeys(("gru-lm", "lstm-lm", "markov-source", "rnn-lm", "transformer-lm"), LANGUAGE),
    **dict.fromkeys(("vae", "vae-conv"), VAE),
    "approximate-function": ["The function and its two networks", "Maximum errors", "Errors"],
    "batchnorm-study": ["Training loss with and without batch norm", *CLASSIFIER],
    "cross-entropy-descent": ["The distributions", "Cross-entropies reached"],
    "diffusion-2d": ["Samples", "Denoising", "Samplers"],
    "diffusion-digits": ["Samples", "Samples by class", "Denoising", "Samples by guidance scale"],
    "elbo-gradients": ["Gradient variance at the prior", "Gradient variance at the posterior", "ELBO gap"],
    "flow-matching-2d": ["Samples", "Flow", "Density"],
    "forward-reverse-kl": ["The two fits", "Both KL divergences of each fit"],
    "gan": ["Samples", "Classes", "Latent interpolation"],
    "gcn": ["True and predicted factions", "Feature propagation by layer"],
    "gd-bound": ["Suboptimality and its two bounds", "Tightness of the bounds", "Distance to the minimiser"],
    "gmm": ["The fitted mixture", "Log-likelihood by iteration"],
    "hmm": ["Negative log-likelihood by iteration", "True and fitted transition and emission", "Test likelihood"],
    "inductive-bias": ["Test accuracy by training set size", "Images", *CLASSIFIER],
    "linear-attention-copy": ["Accuracy by position", "Attention weights"],
    "linear-regression": ["Predicted vs. true"],
    "logistic-regression": BINARY,
    "markov-chain": ["Transition probabilities", "Stationary distribution", "Test likelihood"],
    "mlp-dropout": [*COMPARISON, *CLASSIFIER],
    "mlp-regression": ["MLP and linear regression", "Predicted vs. true"],
    "momentum-phase": ["Convergence rate by learning rate and momentum", "Measured and predicted"],
    "nadaraya-watson": ["Fits", "Error by bandwidth", "Weights"],
    "ngram": ["Bits per character by order"],
    "optimizer-race": [*RACE, *CLASSIFIER],
    "performer-copy": ["Accuracy by position", "Transferred weights", "Attention weights"],
    "pixelcnn": ["Samples", "Completions", "Mean NLL per pixel", "NLL per pixel"],
    "polynomial-fit": ["Error by degree", "Fits by degree"],
    "ppca": ["ELBO and log evidence", "Posterior means", "Posterior covariance"],
    "random-features": ["RMSE to kernel ridge regression", "Predictions with random features vs. the kernel"],
    "regions-during-training": ["Linear regions by epoch", "Linear regions during training", *BINARY],
    "ridge": ["Error by weight decay", "Predicted vs. true"],
    "sequence-classification": ["Accuracy by length", "Confusion matrix", *BINARY[2:]],
    "signal-classification": ["Example signals", *CLASSIFIER],
    "svm": ["Confusion matrix", "Precision, recall and F1 score by class", "ROC curve"],
    "translate-dates": ["Exact match by source length", *(WEIGHTS + s for s in ("22-DEC-2030", "13 Jun 2043"))],
    "translate-numbers": ["Exact match by source length", *(WEIGHTS + s for s in ("61", "61, head by head"))],
}
SLOW = {"gan", "performer-copy", "diffusion-digits", "ngram", "translate-dates", "inductive-bias"}  # sample a lot


def build(name: str, **given: Any) -> tuple[Any, Any]:
    """A task on little data, and its options."""
    recipe = find_recipe(name)
    known = {each.name for each in dataclasses.fields(recipe.options)}
    small = {} if name == "inductive-bias" else SMALL | ({"batch_size": 1} if name == "gcn" else {})
    options = recipe.options(**{key: value for key, value in (small | given).items() if key in known})
    return recipe.build(options, DeviceContext()), options


def updaters(found: Any, seen: set[int]) -> Iterator[tuple[Any, GradientUpdater]]:
    """Every optimizer of a task and of the tasks inside it, with the task it belongs to."""
    if id(found) in seen:
        return
    seen.add(id(found))
    inside: Any = ()
    if isinstance(found, dict | list | tuple):
        inside = found.values() if isinstance(found, dict) else found
    elif type(found).__module__.startswith("quoin.") and not isinstance(found, GradientUpdater):
        inside = vars(found).values() if hasattr(found, "__dict__") else ()
    for each in list(inside):
        if isinstance(each, GradientUpdater) and id(each) not in seen:
            seen.add(id(each))
            yield found, each
        else:
            yield from updaters(each, seen)


def factor(warmup: float, shape: str, progress: float) -> float:
    """Linear up to `warmup`, then the shape over the rest."""
    if progress < warmup:
        return progress / warmup
    left = (progress - warmup) / (1 - warmup)
    return {"constant": 1.0, "cosine": 0.5 + 0.5 * math.cos(math.pi * left)}[shape]


@pytest.mark.parametrize("name", [name for name in recipe_names() if name not in OWN])
def test_every_optimizer_follows_the_schedule_over_the_whole_run(name):
    """As long as --epochs, with the shape of --schedule and the warm-up of --warmup-ratio."""
    task, options = build(name, epochs=EPOCHS, schedule="cosine", warmup_ratio=WARMUP)
    found = list(updaters(task, set()))
    assert bool(found) == (hasattr(options, "optimizer") or name == "optimizer-race" or name in FIXED)
    warmup, shape = FIXED.get(name, (getattr(options, "warmup_ratio", 0.0), getattr(options, "schedule", "")))
    for owner, updater in found:
        # Networks of a study may have batches of their own; with fewer rows they make as many steps as with all.
        batches = task.batches if name == "inductive-bias" else getattr(owner, "batches", task.batches)
        assert updater.total_steps == EPOCHS * batches.num_batches
        for progress in (0.0, 0.05, 0.2, 0.25, 0.5, 0.9):
            assert updater.schedule(progress) == pytest.approx(factor(warmup, shape, progress), abs=1e-12), progress


def test_the_last_step_of_ppca():
    """Its cosine runs over one step less, so that the last step stands still."""
    task, options = build("ppca", epochs=EPOCHS)
    rates: dict[int, list[list[float]]] = {}
    with stepped_rates(rates):
        for _ in range(EPOCHS):
            for rows in task.batches:
                task.step(rows)
    (steps,) = rates.values()
    total = EPOCHS * task.batches.num_batches
    assert len(steps) == total
    expected = [options.lr * factor(0.0, "cosine", (step + 1) / total) for step in range(total)]
    assert [rate for (rate,) in steps] == pytest.approx(expected, abs=1e-12)


def test_the_rates_of_the_command_line(tmp_path):
    rates: dict[int, list[list[float]]] = {}
    asked = ("--epochs", 2, "--batch-size", 256, "--lr", 0.2, "--schedule", "cosine", "--warmup-ratio", 0.3)
    with stepped_rates(rates):
        code, out, err = tried("train", "mlp", *asked, "--num-threads", 1, "--json", "--runs", tmp_path)
    assert code == 0, err
    (steps,) = rates.values()
    assert len(steps) == json.loads(out)["steps"]
    expected = [0.2 * factor(0.3, "cosine", step / len(steps)) for step in range(len(steps))]
    assert [group[0] for group in steps] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in SLOW else []) for name in recipe_names()]
)
def test_the_panels_of_a_report(name):
    task, _ = build(name, epochs=1)
    task.step(next(iter(task.batches)))
    titles = [each.title for each in task.panels()]
    # Of translations the first sentences are named; which others are shown depends on the data.
    shown = titles[: len(PANELS[name])] if name.startswith("translate") else titles
    assert shown == PANELS[name]
    assert len(set(titles)) == len(titles)


def test_every_recipe_has_its_panels_here():
    assert PANELS.keys() == set(recipe_names())


class Looking(nn.Linear):
    """Notes what is around a step."""

    def __init__(self) -> None:
        super().__init__(2, 1)
        self.seen: set[tuple[bool, int]] = set()

    def forward(self, input: Any) -> Any:
        if self.training:
            self.seen.add((torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()))
        return super().forward(input)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_settings_of_fit_are_around_each_step(deterministic, num_threads, tmp_path):
    model, inputs = Looking(), torch.rand(16, 2)
    given: dict[str, Any] = {"deterministic": deterministic, "num_threads": num_threads, "show_progress": False}
    saved: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        save = RunFolder.save_checkpoint
        patch.setattr(
            RunFolder, "save_checkpoint", lambda folder, state, step: saved.append(step) or save(folder, state, step)
        )
        run = quoin.fit(
            model, (inputs, inputs[:, :1]), batch_size=4, max_steps=5, checkpoint_every=2, runs=tmp_path, **given
        )
    assert model.seen == {(deterministic, num_threads)}
    assert json.loads((run.path / "result.json").read_text())["steps"] == 5
    assert {2, 4} <= set(saved)
    assert 3 not in saved


def test_fit_refuses_a_device_that_is_not_there(tmp_path):
    with pytest.raises(quoin.errors.UserError, match="cuda:77"):
        quoin.fit(Looking(), (torch.rand(4, 2), torch.rand(4, 1)), device="cuda:77", runs=tmp_path)


def test_where_nothing_is_chosen_by_validation_the_last_step_is_the_best(tmp_path):
    asked = ("--epochs", 3, "--steps-per-epoch", 4, "--num-threads", 1, "--json", "--runs", tmp_path)
    assert find_recipe("forward-reverse-kl").monitor is None
    for more, last in (((), 12), (("--max-steps", 6), 6)):
        code, out, err = tried("train", "forward-reverse-kl", *asked, *more)
        assert code == 0, err
        result = json.loads((Path(json.loads(out)["run"]) / "result.json").read_text())
        assert (result["best_step"], result["steps"]) == (last, last)
    assert "--monitor" in refused("train", "forward-reverse-kl", *asked, "--patience", 1)


def kl_by_quadrature(p: Any, q: Any) -> float:
    """Of two densities by their logarithms; beyond 30 nothing is left of either."""
    return quad(lambda x: math.exp(p(x)) * (p(x) - q(x)), -30, 30, points=[-2, 0, 2], limit=400, epsabs=1e-11)[0]


def test_both_divergences_are_those_of_quadrature(monkeypatch):
    task, _ = build("forward-reverse-kl", mode_distance=2.0, mixture_weight=0.3, epochs=3, steps_per_epoch=5)
    for rows in task.batches:
        task.step(rows)

    def p(x: float) -> float:
        return float(numpy.logaddexp(math.log(0.3) + norm.logpdf(x, -2, 1), math.log(0.7) + norm.logpdf(x, 2, 1)))

    def fit(which: int) -> Any:
        mean, std = (float(task.model[name].detach()[which]) for name in ("mean", "log_std"))
        return lambda x: norm.logpdf(x, mean, math.exp(std))

    covering, seeking = fit(0), fit(1)
    told = task.evaluate("validation")
    assert told["forward_kl"] == pytest.approx(kl_by_quadrature(p, covering), abs=1e-6)
    assert told["reverse_kl"] == pytest.approx(kl_by_quadrature(seeking, p), abs=1e-6)
    assert task.evaluate("train") == task.evaluate("test") == {}
    shown: dict[str, float] = {}
    bars = plot.bars
    monkeypatch.setattr(plot, "bars", lambda values, **look: shown.update(values) or bars(values, **look))
    assert all(each.plot for each in task.panels())
    expected = {
        "KL(P, Q), wide fit": (p, covering),
        "KL(Q, P), wide fit": (covering, p),
        "KL(P, Q), narrow fit": (p, seeking),
        "KL(Q, P), narrow fit": (seeking, p),
    }
    assert shown == pytest.approx({k: kl_by_quadrature(a, b) for k, (a, b) in expected.items()}, abs=1e-6)


def test_more_lines_than_colors_are_told_apart():
    """By their dashes: no two lines look alike."""
    many = [f"line {number}" for number in range(2 * len(COLORS) + 3)]
    drawn = plot.curves({name: ([0.0, 1.0], [0.0, number]) for number, name in enumerate(many)}).figure
    bands = plot.curve_bands({"": {name: plot.Band([0.0, 1.0], *3 * [[0.0, 1.0]]) for name in many}}).figure
    for figure in (drawn, bands):
        lines: list[Any] = [line for line in figure.axes[0].get_lines() if numpy.size(line.get_xdata()) == 2]
        looks = {(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in lines}
        assert len(looks) == len(lines) == len(many)
