"""Cases for `quoin.train`: see tests/dtypes.py. Most of it takes tasks, folders and places."""

import torch
from torch import nn

from quoin import train as q

LOSSES = [200, 100, 3]


def added(x):
    totals = q.MeanMetrics()
    for each in LOSSES:
        totals.add({"loss": x(each)}, 2)
    return totals.compute()


def descended(x):
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    updater = q.GradientUpdater(
        nn.Identity(), torch.optim.SGD([weight], 0.1), total_steps=1, device_context=q.DeviceContext()
    )
    updater.zero_grad()
    updater.backward(weight * x(LOSSES), 0.5)
    return weight.grad


def loaded(x):
    model = nn.Linear(2, 1)
    q.load_state_dict_strict(model, {"weight": x([[100, 3]]), "bias": x([200])})
    return model.weight, model.bias


CASES = {
    "MeanMetrics.add": added,
    "GradientUpdater.backward": descended,
    "load_state_dict_strict": loaded,
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

FILES = "takes a model or a state and the name of a file; tensors are written and read as they are"
NO_NUMBERS = dict.fromkeys(["load_weights", "save_weights", "read_checkpoint", "write_checkpoint", "RunFolder"], FILES)
NO_NUMBERS |= dict.fromkeys(["Monitor", "Task"], "names a metric, a protocol")
NO_NUMBERS |= {
    "GradientTask": "the abstract of tasks",
    "Logger": "a protocol",
    "RunEvent": "what a loop tells",
    "first_nonfinite_tensor": "takes a model and a function",
    "NonFiniteLossError": "an error",
    "TrainOutput": "a result of a loop",
    "Trainer": "runs a task",
    "DeviceContext": "a device and a dtype",
    "Progress": "shows metrics in Python floats",
    "check_finite": "takes metrics, Python floats or sums of losses",
    "setup_device": "takes the names of a device and a dtype",
    "describe_environment": "takes a place and a seed",
    "torch_as_it_was": "takes nothing",
    "keep_freed_memory": "takes nothing",
}
