"""A finished image classifier as the evaluation classifier of a generative model (`--classifier RUN`)."""

import os
from pathlib import Path

from quoin.data import ImageInfo
from quoin.errors import UserError, format_value
from quoin.runs.kinds.tabular import TrainedTabular
from quoin.runs.run import Run
from quoin.tasks.evaluation_classifier import EvaluationClassifier
from quoin.train import DeviceContext

__all__ = ["open_classifier"]


def open_classifier(path: Path | str, data_info: ImageInfo, device_context: DeviceContext) -> EvaluationClassifier:
    """The image classifier of the finished run at `path`, which must know images and classes like these."""
    name, makes_one = format_value(str(path)), "`quoin train lenet` makes one"
    if not os.path.isdir(path):  # not Path: a name too long to be a folder's is then none
        raise UserError(
            f"--classifier: no run folder at {name}; {makes_one}, and without the flag a small one is trained"
        )
    run = Run.open(path)
    run.check_single()
    if run.kind != "classification":
        raise UserError(
            f"--classifier expects the run of an image classifier, but {name} is one of {run.recipe.name}: {makes_one}"
        )
    if run.folder.result is None:
        raise UserError(f"--classifier expects a finished run, but {name} is not: `quoin resume` it, or give another")
    trained: TrainedTabular = run.trained  # type: ignore[assignment]
    if (
        trained.data_info.feature_shape != data_info.image_shape
        or trained.data_info.class_names != data_info.class_names
    ):
        wanted = f"images {data_info.image_shape} of {data_info.num_classes} classes as these data have"
        got = f"{trained.data_info.feature_shape} of {trained.data_info.num_classes}"
        raise UserError(
            f"--classifier expects a classifier of {wanted}, but {name} knows {got}: train one on these data"
        )
    # The scale is float64, which not every device has: it is applied before the images move.
    return EvaluationClassifier(
        trained.model.to(device_context.device),
        lambda images: trained.feature_scaler.transform(images.cpu()).to(device_context.device),
    )
