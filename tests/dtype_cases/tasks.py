"""Cases for `quoin.tasks`: see tests/dtypes.py."""

import torch

from quoin import tasks as q

CASES = {
    "Classification.measure": lambda x: q.Classification.measure(None, x([[0, 200, 3], [1, 2, 0]]), torch.tensor([1, 0])),
    "Regression.measure": lambda x: q.Regression.measure(None, x([0, 100, 3]), x([150, 20, 9])),
    "in_squared_unit": lambda x: q.in_squared_unit(x([200, 3]), 2.0),
    "rows_at_once": lambda x: q.rows_at_once(x([[1, 2], [3, 4]])),
}

ROUNDINGS: dict[str, float] = {}

OPTIONS = "takes a recipe's options: numbers come from the data they name"
NO_NUMBERS = dict.fromkeys(["classes", "numbers", "raw_images", "learner", "image_classifier", "attending_classifier"], OPTIONS)
NO_NUMBERS |= dict.fromkeys(["language_task", "carried_language_task", "recurrent_model", "vae_decoder", "vae_task"], OPTIONS)
NO_NUMBERS |= {"SupervisedTask": "the abstract of Classification and Regression, on data of float32"}
