"""What a trained model does, as panels for the report: confusion matrix and worst errors, or predicted against true."""

from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import PreparedData
from quoin.display import format_number, short_names
from quoin.metrics import confusion_matrix
from quoin.plot import Panel
from quoin.tasks.classifier_panels import quality_panels
from quoin.tasks.signal_panels import example_signals, signals_panel

__all__ = ["classifier_panels", "regression_panels"]

WORST = 12
LONGEST = 20  # letters of a class name
MOST_CLASSES = 40  # beyond this a confusion matrix is unreadable


def classifier_panels(
    outputs: Float[Tensor, "samples classes"],
    predicted: Int[Tensor, "samples"],
    data: PreparedData,
    *,
    gives_probabilities: bool = True,
    test_name: str = "test",
    threshold: float | None = None,
) -> list[Panel]:
    """The confusion matrix of the test split, the errors the model was most confident in, and how good it is by class,
    as a ranking and as a forecast.

    Args:
        outputs: Logits, or scores of which a softmax is no probability.
        test_name: What to call the test split.
        threshold: That of two classes, if it was chosen.
    """
    names, labels = _names(data), data.test.targets.cpu()
    wrong = int((predicted != labels).sum())
    caption = (
        f"Rows are the true class, columns the predicted one; {wrong} of {len(labels)} {test_name} examples are wrong."
    )
    if threshold is not None:
        caption += f" {names[1]} is predicted from a probability of {format_number(threshold)} on, chosen on the "
        caption += "validation split."
    panels = []
    if data.test.signal_shape is not None:
        panels.append(example_signals(outputs.softmax(-1), names, data))
    if len(names) <= MOST_CLASSES:
        counts = confusion_matrix(predicted, labels, len(names))
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
    if wrong and gives_probabilities:
        panels.append(_worst_mistakes(outputs.softmax(-1), predicted, labels, data, test_name))
    return panels + quality_panels(
        outputs, predicted, labels, names, gives_probabilities=gives_probabilities, test_name=test_name
    )


def _names(data: PreparedData) -> list[str]:
    """The classes as a plot has space for them."""
    assert data.data_info.class_names is not None
    return short_names(data.data_info.class_names, LONGEST)


def _worst_mistakes(
    probabilities: Tensor, predicted: Tensor, labels: Tensor, data: PreparedData, test_name: str
) -> Panel:
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
        return Panel(
            "Misclassified examples",
            lambda: plot.image_grid(images, sure, smooth=True),
            f"{caption} {rescaled}".rstrip(),
        )
    if data.test.signal_shape is not None:
        return signals_panel("Misclassified examples", data, worst.tolist(), sure, caption)
    rows = {
        f"{test_name} row {int(i) + 1}: {text}": float(probabilities[i, predicted[i]]) for i, text in zip(worst, sure)
    }
    return Panel("Misclassified examples", lambda: plot.bars(rows, x_label="predicted probability"), caption)


def regression_panels(outputs: Float[Tensor, "samples"], data: PreparedData, test_name: str = "test") -> list[Panel]:
    """Predicted against true on the test split, in the target's own unit; `outputs` are standardised."""
    scale = data.target_scaler
    assert scale is not None
    name = data.data_info.target_name
    return [
        Panel(
            "Predicted vs. true",
            lambda: plot.scatter(scale.inverse_transform(data.test.targets.cpu()), scale.inverse_transform(outputs)),
            f"Each dot is a {test_name} example; on the diagonal the prediction of {name} is exact.",
        )
    ]
