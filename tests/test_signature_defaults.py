"""What callers leave out means the same wherever a parameter has that name: the defaults of all public signatures."""

import importlib
import inspect
import pkgutil

import pytest

import quoin
from quoin import tasks
from quoin.train.gradient_task import GradientTask

PACKAGES = [each.name for each in pkgutil.iter_modules(quoin.__path__) if each.ispkg]
NOT_A_LIBRARY = {"cli", "lab", "recipes", "bench"}  # programs, whose options test_option_table.py holds
# None, False, 0 and the empty text ask for nothing; the numbers are those of torch, torch.distributions and the papers.
DEFAULTS = {
    "causal": False,
    "clockwise": False,
    "dilation": 1,
    "dropout": 0.0,
    "eos_token_id": None,
    "fit_intercept": True,
    "generator": None,
    "keepdim": False,
    "lengths": None,
    "mask": None,
    "max_seq_len": 0,
    "min_std": 1e-3,
    "num_paths": 1,
    "padding": 0,
    "random_state": None,
    "rank": 0,
    "redraw_interval": 0,
    "sample_shape": (),
    "sample_weight": None,
    "seed": 0,
    "show_progress": True,
    "smooth": False,
    "title": "",
    "world_size": 1,
}
# Photographs as ImageNet has them, but for networks that were made for others.
FOR_PHOTOGRAPHS = {"image_shape": (3, 224, 224), "num_classes": 1000}
OF_THEIR_OWN = {
    ("models.lenet", "image_shape"): (1, 28, 28),
    ("models.lenet", "num_classes"): 10,
    ("models.cifar_resnet18", "num_classes"): 10,
    ("models.GatedPixelCNN", "num_classes"): None,
    ("models.PixelModel", "num_classes"): None,
    ("models.UNet", "num_classes"): 0,
}


def signatures():
    """Of every public function, class and method that can tell it."""
    for package in sorted(set(PACKAGES) - NOT_A_LIBRARY):
        module = importlib.import_module(f"quoin.{package}")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not (inspect.isfunction(value) or inspect.isclass(value)):
                continue
            functions = {name: value}
            if inspect.isclass(value):
                own = {key: each for key, each in vars(value).items() if inspect.isfunction(each) and key[0] != "_"}
                functions |= {f"{name}.{key}": each for key, each in own.items()}
            for where, function in functions.items():
                try:
                    yield f"{package}.{where}", inspect.signature(function)
                except (TypeError, ValueError):
                    continue


EVERY = [
    (where, each.name, each.default)
    for where, signature in signatures()
    for each in signature.parameters.values()
    if each.default is not inspect.Parameter.empty
]


@pytest.mark.parametrize("name", DEFAULTS)
def test_one_name_has_one_default(name):
    found = {where: default for where, parameter, default in EVERY if parameter == name}
    assert len(found) >= 3
    assert {where: default for where, default in found.items() if default != DEFAULTS[name]} == {}


@pytest.mark.parametrize("name", FOR_PHOTOGRAPHS)
def test_networks_are_for_photographs_unless_they_were_made_for_others(name):
    found = {where: default for where, parameter, default in EVERY if parameter == name}
    assert len(found) >= 10
    wanted = {where: OF_THEIR_OWN.get((where, name), FOR_PHOTOGRAPHS[name]) for where in found}
    assert found == wanted


def test_which_tasks_several_processes_can_train():
    """Those of gradient descent on rows, but for studies of few numbers; others have closed forms, or say so."""
    modules = [
        importlib.import_module(f"{tasks.__name__}.{each.name}") for each in pkgutil.iter_modules(tasks.__path__)
    ]
    classes = {each for module in modules for each in vars(module).values() if inspect.isclass(each)}
    said = {
        each.__name__: each.is_data_parallel
        for each in classes
        if "is_data_parallel" in vars(each) and each is not GradientTask
    }
    assert GradientTask.is_data_parallel is True
    assert said == {
        "ELBOGradients": False,
        "ForwardReverseKL": False,
        "FunctionApproximation": False,
        "PPCATask": False,
        "SequenceClassificationTask": True,
    }
