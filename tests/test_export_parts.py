"""What is exported of a run of every kind, before any other runtime has a part in it."""

import inspect
import json
from collections.abc import Callable

import pytest
import torch

from quoin.runs import Run
from quoin.runs.export.compare import compare_part
from quoin.runs.export.exportable import Exportable
from quoin.runs.export.parts import PARTS, exportable_of
from quoin.runs.export.written import Difference
from run_folders import KINDS, trained_once

EACH = [kind for kind in KINDS if kind not in ("seeds", "folds")]


def exported(kind: str, factory: pytest.TempPathFactory) -> Exportable:
    shared = trained_once(factory)
    run = Run.open(shared / json.loads((shared / "trained.json").read_text())[kind])
    assert run.kind in PARTS
    return exportable_of(run)


@pytest.mark.parametrize("kind", EACH)
def test_an_input_stands_where_the_model_takes_it(kind, tmp_path_factory):
    for part in exported(kind, tmp_path_factory).parts:
        for function in (part.module.forward, part.ours or part.module.forward):
            taken = list(inspect.signature(function).parameters)
            named = [each.name for each in part.inputs]
            for name in set(taken) & set(named):
                assert taken.index(name) == named.index(name), (part.name, taken, named)


@pytest.mark.parametrize("kind", EACH)
def test_the_exported_modules_answer_as_the_run_does(kind, tmp_path_factory):
    exportable = exported(kind, tmp_path_factory)
    modules = {part.name: answers_of(part.module) for part in exportable.parts}
    checks = [(part, modules[part.name]) for part in exportable.parts]
    checks += [(loop, loop.opened(modules.__getitem__)) for loop in exportable.loops]
    for part, opened in checks:
        with torch.no_grad():
            for found in compare_part(part, opened):
                assert not isinstance(found, Difference) or found.is_met, found


def answers_of(module: torch.nn.Module) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The module's answers, a single one as a tuple too."""

    def answers(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = module(*inputs)
        return found if isinstance(found, tuple) else (found,)

    return answers
