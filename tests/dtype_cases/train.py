"""Cases for `quoin.train`: see tests/dtypes.py. Most of it takes tasks, folders and places."""

import torch
from torch import nn

from quoin import train as q

LOSSES = [200, 100, 3]


def added(x):
    totals = q.Totals()
    for each in LOSSES:
        totals.add({"loss": x(each)}, 2)
    return totals.means()


def descended(x):
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    descent = q.Descent(torch.optim.SGD([weight], 0.1), total_steps=1, place=q.Place())
    descent.begin()
    descent.add(weight * x(LOSSES), 0.5)
    return weight.grad


def loaded(x):
    model = nn.Linear(2, 1)
    q.load_strictly(model, {"weight": x([[100, 3]]), "bias": x([200])})
    return model.weight, model.bias


CASES = {
    "Totals.add": added,
    "Descent.add": descended,
    "Classification.measure": lambda x: q.Classification.measure(None, x([[0, 200, 3], [1, 2, 0]]), torch.tensor([1, 0])),
    "Regression.measure": lambda x: q.Regression.measure(None, x([0, 100, 3]), x([150, 20, 9])),
    "load_strictly": loaded,
    "in_squared_unit": lambda x: q.in_squared_unit(x([200, 3]), 2.0),
    "rows_at_once": lambda x: q.rows_at_once(x([[1, 2], [3, 4]])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

FILES = "takes a model or a state and the name of a file; tensors are written and read as they are"
NO_NUMBERS = dict.fromkeys(["load_weights", "save_weights", "read_checkpoint", "write_checkpoint", "RunFolder"], FILES)
NO_NUMBERS |= dict.fromkeys(["Goal", "Task"], "a protocol")
NO_NUMBERS |= {
    "SupervisedTask": "the abstract of Classification and Regression, on data of float32",
    "Diverged": "an error",
    "Ending": "a result of a loop",
    "Loop": "runs a task",
    "Place": "a device and a dtype",
    "Progress": "shows metrics in Python floats",
    "choose_place": "takes the names of a device and a dtype",
    "describe_environment": "takes a place and a seed",
    "settle_layout": "takes a task",
    "torch_as_it_was": "takes nothing",
}
