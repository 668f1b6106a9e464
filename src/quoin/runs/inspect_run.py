"""What is inside a trained run: its layers as a table, and plots of what they make of the run's own test images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from quoin import inspect, plot
from quoin.data import PreparedData
from quoin.display import Listing, shown
from quoin.errors import UserError
from quoin.inspect import LayerSummary
from quoin.inspect.layer_outputs import find_layer
from quoin.inspect.receptive_field import layer_receptive_fields
from quoin.models import num_parameters
from quoin.plot import Panel
from quoin.tasks.attention_panels import attention_panels
from quoin.tasks.supervised import SupervisedTask
from quoin.tensor.eval_mode import eval_mode
from quoin.train import Task, report

__all__ = ["Inspection", "inspect_task", "report_panels", "report_remarks"]

EXAMPLES = 6  # images whose saliency is shown, and channels whose patches are
EXAMINED = 500  # test images, at most, that are searched for patches or for dead units


@shown
@dataclass(frozen=True)
class Inspection:
    """What was found, and in a sentence each, what could not be found."""

    layers: list[LayerSummary]
    num_parameters: int
    panels: list[Panel]
    remarks: list[str]

    def __repr__(self) -> str:
        return f"Inspection({len(self.layers)} layers, {self.num_parameters:,} parameters, {len(self.panels)} panels)"

    def _repr_html_(self) -> str:
        panels = "\n".join(panel._repr_html_() for panel in self.panels)
        remarks = "".join(report.paragraph(each) for each in self.remarks)
        return f"{Listing(self.layers)._repr_html_()}{panels}{remarks}"


def inspect_task(task: Task, name: str | Path, *, layer: str | None = None, rows: Sequence[int] = ()) -> Inspection:
    """Look into the model of a task: all of it, or one layer more closely; at these test rows, counted from 1, if any
    are given."""
    if not isinstance(task, SupervisedTask):
        raise UserError(
            f"expected a run of one network that learns from examples, got {name}, which is none; choose another "
            "recipe's"
        )
    model, data = task.model, task.data
    if layer is not None:
        find_layer(model, layer)
    if strange := [row for row in rows if not 1 <= row <= data.test.num_rows]:
        raise UserError(
            f"expected test rows from 1 to {data.test.num_rows}, got {strange[0]}; choose others with --row"
        )
    examined = data.test.features[:EXAMINED]
    layers = inspect.layer_summary(model, examined)
    panels, remarks = _panels_of_any(task, layers), []
    try:
        attention = attention_panels(model, data, [row - 1 for row in rows] or [0], layer=layer)
    except UserError as error:  # a text too long for a map: the rest can still be seen
        attention, remarks = [], [f"no attention to show: {error}"]
    remarks += missing_maps(model)
    if data.test_images is not None:
        try:
            panels = [*image_panels(model, data, layer=layer, rows=[row - 1 for row in rows]), *attention, *panels]
        except UserError:  # a layer that attends need not put out maps
            if layer is None or not attention:
                raise
            panels = attention + panels
        if not _has_convolutions(model):
            remarks.append("the model has no convolutions: no kernels or patches to show")
    elif attention:
        panels = attention + panels
    elif layer is not None or rows:
        given = f"{name} on {data.data_info.source}"
        raise UserError(
            f"expected a run on images or with attention for --layer and --row, got {given}; leave them out"
        )
    else:
        remarks.append(
            f"the rows of {data.data_info.source} are not images: no kernels, feature maps, saliency or patches to show"
        )
    return Inspection(layers, num_parameters(model), [panel for panel in panels if _can_plot(panel, remarks)], remarks)


def _can_plot(panel: Panel, remarks: list[str]) -> bool:
    try:
        return isinstance(panel.plot, plot.Plot)
    except Exception as error:  # the rest can still be seen
        remarks.append(report.describe_plot_error(f"panel {panel.title!r}", error))
        return False


def missing_maps(model: nn.Module) -> list[str]:
    """A sentence where the user's own attention offers no weights to show."""
    return [
        f"no attention maps: {name} has only forward; give it weights(query, key, *, mask=None, causal=False)"
        for name in inspect.attentions_without_weights(model)
    ]


def report_remarks(task: Task) -> list[str]:
    """What the report of a run cannot show."""
    return missing_maps(task.model) if isinstance(task, SupervisedTask) else []


def report_panels(task: Task) -> Iterator[Panel]:
    """For the report of a run on images with a convolutional model, and of one whose model attends; nothing for
    others."""
    if not isinstance(task, SupervisedTask) or task.data.test.num_rows == 0:
        return
    if task.data.test_images is not None and _has_convolutions(task.model):
        yield from image_panels(task.model, task.data)
    yield from attention_panels(task.model, task.data, [0])


def image_panels(
    model: nn.Module, data: PreparedData, *, layer: str | None = None, rows: Sequence[int] = ()
) -> Iterator[Panel]:
    """Kernels, feature maps, saliency and patches, as far as the model has them."""
    assert data.test_images is not None
    chosen = list(rows) or _one_of_each_class(data)
    of_maps = chosen if rows else chosen[:1]
    yield from _kernels(model, data, layer)
    for row in of_maps:
        yield _feature_maps(model, data, row, layer)
    yield _saliency(model, data, chosen)
    yield from _patches(model, data, layer)


def _has_convolutions(model: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in model.modules())


def _one_of_each_class(data: PreparedData) -> list[int]:
    """The first test row of each of the first classes; of numbers, the first rows."""
    targets = data.test.targets.tolist()
    if data.data_info.class_names is None:
        return list(range(min(EXAMPLES, len(targets))))
    firsts = {target: row for row, target in reversed(list(enumerate(targets)))}
    return [firsts[target] for target in sorted(firsts)][:EXAMPLES]


def _kernels(model: nn.Module, data: PreparedData, layer: str | None) -> list[Panel]:
    if layer is not None and not isinstance(find_layer(model, layer), nn.Conv2d):
        return []
    if _has_convolutions(model):
        found = inspect.kernels(model, layer)
        caption = "The weights of each kernel: blue is positive, vermilion is negative."
        if found.weight.shape[1] > 1:
            caption += " A row for each of the first output channels, a column for each of the first input channels."
        return [Panel(f"Kernels of {found.layer}", lambda: inspect.plot_kernels(found), caption)]
    try:
        channels, height, width = data.data_info.feature_shape
        found = inspect.pixel_weights(model, (channels, height, width))
    except UserError:  # the first dense layer does not read the pixels
        return []
    caption = "The weights of each unit, pixel by pixel: blue is positive, vermilion is negative."
    return [Panel(f"Weights of {found.layer}, as images", lambda: inspect.plot_kernels(found), caption)]


def _feature_maps(model: nn.Module, data: PreparedData, row: int, layer: str | None) -> Panel:
    image = data.test.features[row]
    found = inspect.feature_maps(model, image, None if layer is None else [layer])
    if layer is None:
        assert data.test_images is not None
        found.insert(0, inspect.FeatureMaps("image", "", data.test_images[row]))
    caption = (
        "Each row shows a layer, or its first maps, on a scale of its own; a dense layer's units are single squares."
    )
    what = f"test row {row + 1}" if layer is None else f"{layer}, test row {row + 1}"
    return Panel(f"Feature maps of {what}", lambda: inspect.plot_feature_maps(found), caption)


def _saliency(model: nn.Module, data: PreparedData, rows: list[int]) -> Panel:
    assert data.test_images is not None
    features = data.test.features[rows]
    with torch.no_grad(), eval_mode(model):
        outputs = model(features).cpu()
    seen = inspect.saliency(inspect.input_gradient(model, features)).cpu()[:, None]
    images, rescaled = plot.viewable(data.test_images[rows])
    grid = torch.cat([images, seen.expand(-1, images.shape[1], -1, -1)])
    captions = [_describe_output(output, data, row) for output, row in zip(outputs, rows)] + [
        f"row {row + 1}" for row in rows
    ]
    caption = (
        "Under each image, its saliency map: the absolute gradient of the score with respect to each pixel; white is "
        "the largest."
    )
    caption = f"{caption} {rescaled}".rstrip()
    return Panel("Saliency", lambda: plot.image_grid(grid, captions, columns=len(rows)), caption)


def _describe_output(output: Tensor, data: PreparedData, row: int) -> str:
    names = data.data_info.class_names
    if names is None:
        return f"row {row + 1}"
    read, true = names[int(output.argmax())][:12], names[int(data.test.targets[row])][:12]
    return f"predicted {read}" if read == true else f"{read}, true {true}"


def _patches(model: nn.Module, data: PreparedData, layer: str | None) -> list[Panel]:
    assert data.test_images is not None
    channels, height, width = data.data_info.feature_shape
    paths = (
        [layer]
        if layer is not None
        else [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]
    )
    if not paths:
        return []
    fields = layer_receptive_fields(model, paths, (channels, height, width))
    # The last convolution whose units do not see the whole image yet: deep enough to be informative, and still local. A
    # 1 x 1 one may be a mere shortcut, and is taken only where there is no other.
    partial = [path for path in paths if fields[path].largest != (height, width)] or paths[:1]
    wide = [path for path in partial if getattr(model.get_submodule(path), "kernel_size", None) != (1, 1)]
    path = (wide or partial)[-1]
    features, (images, rescaled) = data.test.features[:EXAMINED], plot.viewable(data.test_images[:EXAMINED])
    found = inspect.top_activating_patches(model, features, path, fields=fields[path])
    found = ([patches for patches in found if patches[0].activation > 0] or found)[:EXAMPLES]
    caption = (
        f"A row for each of the first active channels: of {len(features)} test images, the patches of highest "
        "activation, each labelled with the channel and its activation. Grey is outside the image."
    )
    caption = f"{caption} {rescaled}".rstrip()
    return [Panel(f"Top-activating patches of {path}", lambda: inspect.plot_patches(images, found), caption)]


def _panels_of_any(task: SupervisedTask, layers: list[LayerSummary]) -> list[Panel]:
    """What can be shown whatever the data are."""
    features, targets = task.data.test.features[:EXAMINED], task.data.test.targets[:EXAMINED]
    panels = []
    if zeros := {row.layer: row.zeros for row in layers if row.zeros is not None}:
        caption = f"The fraction of each ReLU's outputs on {len(features)} test examples that is exactly zero."
        panels.append(Panel("Dead units", lambda: plot.bars(zeros, x_label="fraction of zeros"), caption))
    if any(parameter.requires_grad for parameter in task.model.parameters()):
        with eval_mode(task.model):
            found = inspect.stability_report(
                task.model, features, lambda outputs: task.loss_fn(outputs, targets).mean()
            )
        caption = (
            "The RMS of every module's output, and the norm of the gradient there: a steady decline or rise "
            "means vanishing or exploding gradients."
        )
        panels.append(Panel("Activations and gradients by layer", found.plot, caption))
    return panels
