"""What a trained model does, as panels for the report: confusion matrix and worst errors, or predicted against true."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin import plot
from quoin.data import PreparedData
from quoin.plot import Panel
from quoin.tasks.signal_panels import example_signals, signals_panel

__all__ = ["classifier_panels", "regression_panels"]

WORST = 12
LONGEST = 20  # letters of a class name
MOST_CLASSES = 40  # beyond this a confusion matrix is unreadable


def classifier_panels(probabilities: Float[Tensor, "samples classes"], data: PreparedData) -> list[Panel]:
    """The confusion matrix of the test split, and the errors the model was most confident in."""
    names, labels = _names(data), data.test.targets.cpu()
    predicted = probabilities.argmax(-1)
    wrong = int((predicted != labels).sum())
    caption = f"Rows are the true class, columns the predicted one; {wrong} of {len(labels)} test examples are wrong."
    panels = []
    if data.test.signal_shape is not None:
        panels.append(example_signals(probabilities, names, data))
    if len(names) <= MOST_CLASSES:
        counts = torch.bincount(labels * len(names) + predicted, minlength=len(names) ** 2).reshape(len(names), -1)
        panels.append(
            Panel(
                "Confusion matrix",
                lambda: plot.heatmap(
                    counts,
                    row_labels=names,
                    column_labels=names,
                    x_label="predicted",
                    y_label="true",
                    show_values=len(names) <= 20,
                ),
                caption,
            )
        )
    if wrong:
        panels.append(_worst_mistakes(probabilities, predicted, labels, data))
    return panels


def _names(data: PreparedData) -> list[str]:
    """The classes as a plot has space for them."""
    assert data.data_info.class_names is not None
    return [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in data.data_info.class_names]


def _worst_mistakes(probabilities: Tensor, predicted: Tensor, labels: Tensor, data: PreparedData) -> Panel:
    names = _names(data)
    true_probability = probabilities.gather(1, labels[:, None])[:, 0].masked_fill(predicted == labels, 2.0)
    worst = true_probability.argsort(stable=True)[: min(WORST, int((predicted != labels).sum()))]
    sure = [
        f"{names[int(predicted[i])]} ({probabilities[i, predicted[i]]:.0%}), true {names[int(labels[i])]}"
        for i in worst
    ]
    caption = (
        "Predicted class, its probability, and true class; sorted by the probability of the true class, lowest first."
    )
    if data.test_images is not None:
        images, rescaled = plot.viewable(data.test_images[worst])
        return Panel("Misclassified examples", lambda: plot.image_grid(images, sure), f"{caption} {rescaled}".rstrip())
    if data.test.signal_shape is not None:
        return signals_panel("Misclassified examples", data, worst.tolist(), sure, caption)
    rows = {f"test row {int(i) + 1}: {text}": float(probabilities[i, predicted[i]]) for i, text in zip(worst, sure)}
    return Panel("Misclassified examples", lambda: plot.bars(rows, x_label="predicted probability"), caption)


def regression_panels(outputs: Float[Tensor, "samples"], data: PreparedData) -> list[Panel]:
    """Predicted against true on the test split, in the target's own unit; `outputs` are standardised."""
    scale = data.target_scaler
    assert scale is not None
    name = data.data_info.target_name
    return [
        Panel(
            "Predicted vs. true",
            lambda: plot.scatter(scale.inverse_transform(data.test.targets.cpu()), scale.inverse_transform(outputs)),
            f"Each dot is a test example; on the diagonal the prediction of {name} is exact.",
        )
    ]
