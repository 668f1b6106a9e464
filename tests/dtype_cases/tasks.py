"""Cases for `quoin.tasks`: see tests/dtypes.py."""

from types import SimpleNamespace

import torch

from quoin import tasks as q

CASES = {
    "Classification.compute_metrics": lambda x: q.Classification.compute_metrics(
        SimpleNamespace(threshold=None), x([[0, 200, 3], [1, 2, 0]]), torch.tensor([1, 0])
    ),
    "Classification.compute_metrics threshold": lambda x: q.Classification.compute_metrics(
        SimpleNamespace(threshold=0.75), x([[0, 2], [1, 2], [100, 120]]), torch.tensor([1, 1, 0])
    ),
    "Regression.compute_metrics": lambda x: q.Regression.compute_metrics(None, x([0, 100, 3]), x([150, 20, 9])),
    "in_squared_unit": lambda x: q.in_squared_unit(x([200, 3]), 2.0),
    "eval_batch_size": lambda x: q.eval_batch_size(x([[1, 2], [3, 4]])),
}

ROUNDINGS: dict[str, float] = {}

OPTIONS = "takes a recipe's options: numbers come from the data they name"
NO_NUMBERS = dict.fromkeys(
    [
        "load_classification_data",
        "load_regression_data",
        "load_raw_images",
        "supervised_task",
        "fine_tuned_classifier",
        "image_classifier",
        "attention_image_classifier",
        "signal_classifier",
        "make_mlp",
    ],
    OPTIONS,
)
NO_NUMBERS |= dict.fromkeys(
    ["language_task", "stateful_language_task", "recurrent_model", "vae_decoder", "vae_task"], OPTIONS
)
NO_NUMBERS |= dict.fromkeys(
    ["make_optimizer", "weight_decay_groups"], "passes weights on, whatever their dtype: the rules have cases"
)
NO_NUMBERS |= {"SupervisedTask": "the abstract of Classification and Regression, on data of float32"}
