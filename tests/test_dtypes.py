"""Integers, booleans and short floats: every public function gives the float64 answer to its dtype's rounding, or
refuses.

The cases stand in tests/dtype_cases/<package>.py. A public name that is neither a case nor said to take no numbers
fails here.
"""

import importlib
import inspect
import types

import pytest
import torch

from dtypes import DTYPES, ROUNDINGS, answer_or_refusal

PACKAGES = (
    "tensor",
    "plot",
    "autodiff",
    "prob",
    "layers",
    "info",
    "optim",
    "data",
    "models",
    "expressivity",
    "losses",
    "metrics",
)
PACKAGES += ("generate", "inspect", "estimators", "train", "tasks")


def cases_of(package: str) -> types.ModuleType:
    return importlib.import_module(f"dtype_cases.{package}")


ALL = [(package, name) for package in PACKAGES for name in cases_of(package).CASES]


@pytest.mark.parametrize(("package", "name"), ALL, ids=lambda value: value)
def test_every_dtype_gives_the_right_answer_or_a_refusal(package, name):
    cases = cases_of(package)
    reference = torch.int64 if name in getattr(cases, "WHOLE", ()) else torch.float64
    for dtype in DTYPES:
        outcome = answer_or_refusal(
            cases.CASES[name], dtype, roundings=cases.ROUNDINGS.get(name, ROUNDINGS), reference=reference
        )
        assert outcome == "answered" or dtype != reference, f"{reference} must be answered"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_case_or_a_reason(package):
    module, cases = importlib.import_module(f"quoin.{package}"), cases_of(package)
    public = {
        name
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) or inspect.isclass(getattr(module, name))
    }
    # "Normal.log_prob" and "norm p=1" are cases of Normal and norm.
    tried = {name.partition(" ")[0].partition(".")[0] for name in cases.CASES}
    assert public - tried - cases.NO_NUMBERS.keys() == set(), "add a case, or a reason why it takes no numbers"
    assert (tried | cases.NO_NUMBERS.keys()) - public == set(), "no public function or class has this name"
    assert not tried & cases.NO_NUMBERS.keys()
