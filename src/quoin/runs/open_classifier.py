"""A finished image classifier as the judge of what a generative model draws (`--classifier RUN`)."""

import os
from pathlib import Path

from quoin.data import ImageFacts
from quoin.errors import Mistake, shown
from quoin.runs.kinds.tabular import TrainedTabular
from quoin.runs.run import Run
from quoin.tasks.evaluation_classifier import Judge
from quoin.train import Place

__all__ = ["open_classifier"]


def open_classifier(path: Path | str, facts: ImageFacts, place: Place) -> Judge:
    """The image classifier of the finished run at `path`, which must know images and classes like these."""
    name, makes_one = shown(str(path)), "`quoin train lenet` makes one"
    if not os.path.isdir(path):  # not Path: a name too long to be a folder's is then none
        raise Mistake(f"--classifier: no run folder at {name}; {makes_one}, and without the flag a small judge is trained")
    run = Run.open(path)
    run.check_single()
    if run.kind != "classification":
        raise Mistake(f"--classifier expects the run of an image classifier, but {name} is one of {run.recipe.name}: {makes_one}")
    if run.folder.result is None:
        raise Mistake(f"--classifier expects a finished run, but {name} is not: `quoin resume` it, or give another")
    trained: TrainedTabular = run.trained  # type: ignore[assignment]
    if trained.facts.feature_shape != facts.image_shape or trained.facts.class_names != facts.class_names:
        wanted = f"images {facts.image_shape} of {facts.num_classes} classes as these data have"
        came = f"{trained.facts.feature_shape} of {trained.facts.num_classes}"
        raise Mistake(f"--classifier expects a classifier of {wanted}, but {name} knows {came}: train one on these data")
    # The scale is float64, which not every device has: it is applied before the images move.
    return Judge(trained.model.to(place.device), lambda images: trained.feature_scale.apply(images.cpu()).to(place.device))
