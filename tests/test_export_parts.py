"""What is exported of a run of every kind: each input has the name by which the model itself calls it."""

import inspect
import json

import pytest

from quoin.runs import Run
from quoin.runs.export.parts import PARTS, exportable_of
from run_folders import KINDS, trained_once

STUDIES = {"seeds", "folds"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in STUDIES])
def test_an_input_stands_where_the_model_takes_it(kind, tmp_path_factory):
    shared = trained_once(tmp_path_factory)
    run = Run.open(shared / json.loads((shared / "trained.json").read_text())[kind])
    assert run.kind in PARTS
    for part in exportable_of(run).parts:
        for function in (part.module.forward, part.ours or part.module.forward):
            taken = list(inspect.signature(function).parameters)
            named = [each.name for each in part.inputs]
            for name in set(taken) & set(named):
                assert taken.index(name) == named.index(name), (part.name, taken, named)
