"""Kinds of learning, one file each: their losses, what is watched, their pictures; EM, counting and studies of several networks too."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.tasks.image_classification import attending_classifier, image_classifier
    from quoin.tasks.language_modeling import carried_language_task, language_task, recurrent_model
    from quoin.tasks.supervised import Classification, Regression, SupervisedTask, in_squared_unit, rows_at_once
    from quoin.tasks.supervised_data import classes, learner, numbers, raw_images
    from quoin.tasks.vae import vae_decoder, vae_task

__all__ = [
    "Classification",
    "Regression",
    "SupervisedTask",
    "attending_classifier",
    "carried_language_task",
    "classes",
    "image_classifier",
    "in_squared_unit",
    "language_task",
    "learner",
    "numbers",
    "raw_images",
    "recurrent_model",
    "rows_at_once",
    "vae_decoder",
    "vae_task",
]

export_lazily(__name__)
