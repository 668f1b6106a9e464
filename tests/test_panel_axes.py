"""What the axes of every panel of every recipe's report say: the words, which of them are logarithmic, and the lines.

A panel that several recipes share is drawn by the first of them. Numbers are those of a task after one step; what they
are is asked in test_panel_numbers.py.
"""

from typing import Any

import pytest

from quoin.runs import recipe_names
from quoin.tasks import point_generation
from test_wiring import PANELS, build

pytestmark = pytest.mark.usefixtures("one_thread")

NONE = ("", "", "")
# The words of x and y, those of several axes joined by "; ", and the axes that are logarithmic.
AXES: dict[str, tuple[str, str, str]] = {
    "Accuracy by length": ("tokens of a text", "test accuracy", ""),
    "Accuracy by position": ("position in the copy", "test accuracy", ""),
    "Bits per character by order": ("order n", "bits per character", ""),
    "Both KL divergences of each fit": ("nats", "", ""),
    "Calibration": ("predicted probability", "examples; fraction correct", ""),
    "Classes": ("class", "", ""),
    "Confusion matrix": ("predicted", "true", ""),
    "Convergence rate by learning rate and momentum": ("ηL", "convergence rate; m", ""),
    "Cross-entropies reached": ("nats", "", ""),
    "Distance to the minimiser": ("steps", "|θ - θ*|", ""),
    "ELBO and log evidence": ("nats per example", "", ""),
    "ELBO gap": ("optimizer step", "KL(q‖p(z | x)) in nats", "y"),
    "Error by bandwidth": ("bandwidth", "leave-one-out rmse", "x"),
    "Error by degree": ("degree", "rmse", "y"),
    "Error by weight decay": ("weight decay", "rmse", "x"),
    "Errors": ("x", "network − g", ""),
    "Exact match by source length": ("exact match, by characters of the source (how many)", "", ""),
    "Fits": ("x", "y", ""),
    "Fits by degree": ("x", "y", ""),
    "Gradient variance at the posterior": ("total variance", "", ""),
    "Gradient variance at the prior": ("total variance", "", ""),
    "KL per latent dimension": ("nats per image", "", ""),
    "Latent interpolation": ("t", "", ""),
    "Latent traversal": ("value of the latent", "", ""),
    "Learning-rate sweep": ("learning rate", "validation loss", "xy"),
    "Linear regions by epoch": ("epoch", "regions", ""),
    "Log-likelihood by iteration": ("iteration", "mean of ln p(x)", ""),
    "Loss by seconds": ("seconds", "training loss", "y"),
    "Loss by steps": ("steps", "training loss", "y"),
    "MLP and linear regression": ("error", "", ""),
    "Maximum errors": ("error", "", ""),
    "Measured and predicted": ("ηL", "convergence rate", ""),
    "Negative log-likelihood by iteration": ("iteration", "−ln P(o) per observation", ""),
    "Posterior means": ("exact posterior mean", "encoder's mean", ""),
    "Predicted vs. true": ("true", "predicted", ""),
    "Predictions with random features vs. the kernel": ("kernel ridge", "16 random features", ""),
    "RMSE to kernel ridge regression": ("random features D", "rmse to the kernel's predictions", "xy"),
    "ROC curve": ("false positive rate", "true positive rate", ""),
    "ROC curves": ("false positive rate", "true positive rate", ""),
    "Samplers": ("function evaluations (NFE)", "squared MMD", "xy"),
    "Samples by class": ("", "class", ""),
    "Samples by guidance scale": ("class", "guidance scale", ""),
    "Stationary distribution": ("probability in the long run", "", ""),
    "Suboptimality and its two bounds": ("steps", "suboptimality", "xy"),
    "Test accuracy by training set size": ("training rows", "test accuracy", "x"),
    "Test likelihood": ("bits per symbol", "", ""),
    "The distributions": ("outcome", "probability", ""),
    "The function and its two networks": ("x", "y", ""),
    "The two fits": ("x", "density", ""),
    "Tightness of the bounds": ("steps", "suboptimality / bound", "xy"),
    "Training and test accuracy, with and without dropout": ("accuracy", "", ""),
    "Training loss with and without batch norm": ("epoch", "loss", ""),
    "Transferred weights": ("features", "test accuracy", "x"),
    "Transition probabilities": ("next symbol", "symbol", ""),
    "Bits per token on the test text": ("bits", "", ""),  # of its colour bar
    # Pictures, tables and clouds of points, whose rows and columns have names of their own.
    **dict.fromkeys(("Attention weights", "Completions", "Denoising", "Density", "Example signals", "Flow"), NONE),
    **dict.fromkeys(("Feature propagation by layer", "Images", "Latent space", "Linear regions during training"), NONE),
    **dict.fromkeys(("Mean NLL per pixel", "Misclassified examples", "NLL per pixel", "Posterior covariance"), NONE),
    **dict.fromkeys(("Precision, recall and F1 score by class", "Reconstructions", "Sample", "Samples"), NONE),
    **dict.fromkeys(("The fitted mixture", "True and fitted transition and emission", "Weights"), NONE),
    "True and predicted factions": NONE,
}
# The lines by name, where these do not come from the data; levels without their numbers.
LINES: dict[str, list[str]] = {
    "Calibration": ["calibrated", "mean of a bin"],
    "ELBO gap": ["score", "score, baseline", "paths", "analytic KL", "Bonnet-Price"],
    "Accuracy by length": ["recurrent", "transformer", "bag-of-words", "Bayes classifier", "majority class"],
    "Accuracy by position": ["exact", "linear, elu + 1", "Performer", "chance"],
    "Bits per character by order": ["validation", "test", "uniform distribution"],
    "Error by bandwidth": ["gaussian", "boxcar", "triangular", "epanechnikov", "noise"],
    "Error by degree": ["train", "validation", "test"],
    "Error by weight decay": [
        "train",
        "test",
        "test, SGD without weight decay",
        "test, minimum-norm least squares",
    ],
    "Errors": ["constructed", "trained"],
    "Learning-rate sweep": ["SGD", "momentum", "Nesterov", "RMSProp", "Adam", "AdamW"],
    "Predicted vs. true": ["exact"],
    "RMSE to kernel ridge regression": ["train", "validation", "test", "1/√D"],
    "Samplers": ["DDPM", "DDIM", "Heun", "DPM-Solver-2"],
    "Test accuracy by training set size": ["CNN", "MLP", "CNN, pixels scrambled", "MLP, pixels scrambled"],
    "The function and its two networks": ["g", "constructed", "trained"],
    "The two fits": ["P", "Q minimizing KL(P, Q)", "Q minimizing KL(Q, P)"],
    "Tightness of the bounds": ["η = 0.1/L", "η = 0.3/L", "η = 1/L", "worst-case cost, η = 1/L"],
    "Distance to the minimiser": ["η = 0.1/L", "η = 0.3/L", "η = 1/L"],
    "Transferred weights": [
        "exact attention's weights under Performer attention",
        "trained with 128 features",
        "chance",
    ],
}
QUICKER = {"num_timesteps": 12, "num_steps": 4, "steps_per_epoch": 3}
SLOW = {"diffusion-digits", "flow-matching-2d", "gan", "performer-copy"}


def drawn_by(name: str) -> list[str]:
    """The panels of a recipe that no recipe before it has."""
    before = {title for other in recipe_names() if other < name for title in PANELS[other]}
    return [title for title in PANELS[name] if title not in before]


def words(texts: list[str]) -> str:
    return "; ".join(sorted({text for text in texts if text}))


def lines_of(figure: Any) -> list[str]:
    """Names of lines in a legend, those of levels without the level."""
    named = [line.get_label() for axes in figure.axes for line in axes.get_lines()]
    return [name.rpartition(" (")[0] or name for name in named if not name.startswith("_")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.deep] if name in SLOW else []) for name in recipe_names() if drawn_by(name)],
)
def test_axes_say_what_they_show(name, monkeypatch):
    monkeypatch.setattr(point_generation, "BUDGETS", (2, 4))
    task, _ = build(name, epochs=2, **QUICKER)
    task.step(next(iter(task.batches)))
    for panel in task.panels():
        if panel.title not in drawn_by(name) or panel.title.startswith("Attention weights:"):
            continue
        figure: Any = getattr(panel.plot, "figure", None)
        assert figure is not None, panel.title
        axes = figure.axes
        logarithmic = "".join(way for way in "xy" if any(getattr(each, f"get_{way}scale")() == "log" for each in axes))
        told = words([each.get_xlabel() for each in axes]), words([each.get_ylabel() for each in axes]), logarithmic
        if panel.title == "Latent space":  # the two latents of largest divergence
            assert all(word.startswith("latent ") for word in told[:2])
            assert told[0] != told[1]
            continue
        assert told == AXES[panel.title], panel.title
        if panel.title in LINES:
            assert lines_of(figure) == LINES[panel.title], panel.title
        named = [line for each in axes[:1] for line in each.get_lines() if not line.get_label().startswith("_")]
        looks = {(line.get_color(), str(line._dash_pattern), str(line.get_marker())) for line in named}
        assert len(looks) == len(named), f"{panel.title}: two lines look alike"
