"""Training tasks, one kind of learning per file: losses, metrics and plots; also EM, n-gram counts and comparisons of
several models."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.tasks.image_classification import attention_image_classifier, fine_tuned_classifier, image_classifier
    from quoin.tasks.language_modeling import language_task, recurrent_model, stateful_language_task
    from quoin.tasks.mlp import make_mlp
    from quoin.tasks.optimizer import make_optimizer, weight_decay_groups
    from quoin.tasks.signal_classification import signal_classifier
    from quoin.tasks.supervised import Classification, Regression, SupervisedTask, eval_batch_size, in_squared_unit
    from quoin.tasks.supervised_data import (
        load_classification_data,
        load_raw_images,
        load_regression_data,
        supervised_task,
    )
    from quoin.tasks.vae import vae_decoder, vae_task

__all__ = [
    "Classification",
    "Regression",
    "SupervisedTask",
    "attention_image_classifier",
    "eval_batch_size",
    "fine_tuned_classifier",
    "image_classifier",
    "in_squared_unit",
    "language_task",
    "load_classification_data",
    "load_raw_images",
    "load_regression_data",
    "make_mlp",
    "make_optimizer",
    "recurrent_model",
    "signal_classifier",
    "stateful_language_task",
    "supervised_task",
    "vae_decoder",
    "vae_task",
    "weight_decay_groups",
]

export_lazily(__name__)
