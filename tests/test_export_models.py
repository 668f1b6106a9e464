"""Every architecture passes torch.export with a free batch, and a free length where it reads sequences: the program
computes what the model does at sizes it was not traced at."""

import ast
import inspect
import math
from pathlib import Path
from typing import get_type_hints

import pytest
import torch
from torch import nn

import export_layers
import export_networks
from export_cases import TOLERANCE, Case, bounds, exported, largest_difference
from quoin import layers, models

SOURCE = Path(models.__file__).parents[1]
CASES = {f"{package}.{name}": case for package, table in
         (("models", export_networks), ("layers", export_layers)) for name, case in table.CASES.items()}  # fmt: skip
# One of each kind that is stored differently: buffers, a loop, a table of positions, batch norms, Cholesky factors.
SAVED = ("models.GaussianDiscriminant", "models.NgramModel", "models.RecurrentLanguageModel/LSTM",
         "models.TransformerLanguageModel", "models.small_resnet")  # fmt: skip


def networks(package) -> set[str]:
    """The modules that a package exports, and the functions that build one."""
    found = {name: getattr(package, name) for name in package.__all__}
    return {
        name
        for name, each in found.items()
        if (inspect.isclass(each) and issubclass(each, nn.Module))
        or (inspect.isfunction(each) and _builds_a_module(each))
    }


def _builds_a_module(function) -> bool:
    annotation = inspect.signature(function).return_annotation
    return inspect.isclass(annotation) and issubclass(annotation, nn.Module)


def test_functions_that_build_a_network_are_found():
    """The next test would pass over what this one does not see."""
    assert {"lenet", "GPT", "small_resnet", "conv_vae", "gpt2_from_config", "nin_block"} <= networks(models)
    assert not {"mlp_definition", "gelu", "quantize", "RecurrentState"} & networks(models)
    for name in models.__all__:
        each = getattr(models, name)
        if inspect.isfunction(each) and name not in networks(models):
            hint = get_type_hints(each).get("return")
            assert not (inspect.isclass(hint) and issubclass(hint, nn.Module)), f"{name} builds a network unseen"


@pytest.mark.parametrize(("package", "table"), [(models, export_networks), (layers, export_layers)])
def test_every_architecture_has_a_case_or_a_reason_to_have_none(package, table):
    covered = {name.split("/")[0] for name in table.CASES}
    assert networks(package) - covered - set(table.EXCEPTIONS) == set(), "give them a case, or a reason to have none"
    assert covered - networks(package) == set(), "no such architecture"
    assert not covered & set(table.EXCEPTIONS), "an exception that has a case is none"
    assert set(table.EXCEPTIONS) <= networks(package)
    assert all(len(reason.split()) > 3 for reason in table.EXCEPTIONS.values())


def _marked(deep: bool) -> list:
    return [pytest.param(case, id=name) for name, case in CASES.items() if case.deep == deep]


def check(case: Case) -> None:
    module = case.module()
    program = exported(case, module)
    free = bounds(program)
    assert len(free) == 1 + case.free_length
    assert all(low <= max(2, case.min_seq) for low, _ in free)  # torch takes 0 and 1 for special in any case
    assert sorted(high for _, high in free) == sorted([math.inf] + [case.max_seq or math.inf] * case.free_length)
    assert largest_difference(case, module, program.module()) <= TOLERANCE


@pytest.mark.parametrize("case", _marked(deep=False))
def test_the_program_has_a_free_batch_and_length(case):
    check(case)


@pytest.mark.deep
@pytest.mark.parametrize("case", _marked(deep=True))
def test_the_program_of_a_published_network_has_a_free_batch(case):
    check(case)


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_program_computes_the_same(name, tmp_path):
    case, path = CASES[name], tmp_path / "model.pt2"
    module = case.module()
    torch.export.save(exported(case, module), path)
    assert largest_difference(case, module, torch.export.load(path).module()) <= TOLERANCE


class Counted(nn.Module):
    """What the check must catch: its number of rows becomes a constant of the program."""

    def forward(self, x):
        return x / len(x)


class Padded(nn.Module):
    """Free, and another thing than the model at other sizes: it adds the size that it was traced at."""

    def forward(self, x):
        return x + (3 if torch.compiler.is_exporting() else x.shape[0])


def test_a_size_that_becomes_a_constant_fails():
    with pytest.raises(torch._dynamo.exc.UserError, match="batch"):
        check(Case(Counted, export_networks.rows(4)))


def test_a_program_that_computes_another_thing_fails():
    with pytest.raises(AssertionError):
        check(Case(Padded, export_networks.rows(4)))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")  # torch.onnx warns of parts of torch that it uses itself
@pytest.mark.parametrize(
    "name", ["RecurrentLanguageModel/LSTM", "RecurrentTextEncoder/lengths", "RecurrentEncoder", "Seq2Seq/attention"]
)
def test_onnx_keeps_the_loop_of_a_recurrent_network(name, tmp_path):
    """The length is free in the other runtime as well."""
    onnxruntime = pytest.importorskip("onnxruntime")
    case = export_networks.CASES[name]
    module, path = case.module(), tmp_path / "model.onnx"
    with torch.no_grad():  # or the loop is converted with its gradient, which torch 2.13 cannot where sizes are free
        torch.onnx.export(exported(case, module), dynamo=True, verbose=False).save(path)  # pyright: ignore
    session = onnxruntime.InferenceSession(path)

    def run(*inputs):
        named = {each.name: x.numpy() for each, x in zip(session.get_inputs(), inputs, strict=True)}
        return [torch.from_numpy(each) for each in session.run(None, named)]

    assert largest_difference(case, module, run) <= TOLERANCE


# What makes a size a constant, and can be seen in the source: the length of a tensor as Python counts it.

TENSORS = {"Tensor"}
CONTAINERS = {"Sequence", "list", "tuple", "Mapping", "dict", "Iterable", "Iterator", "Callable", "Collection"}


def _is_tensor(annotation: ast.expr | None) -> bool:
    names = {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)} if annotation else set()
    return bool(names & TENSORS) and not names & CONTAINERS


def _module_classes() -> set[str]:
    return {
        each.__qualname__
        for package in (models, layers)
        for name in networks(package)
        if inspect.isclass(each := getattr(package, name))
    }


def lengths_of_tensors(tree: ast.Module, modules: set[str]) -> list[str]:
    """`len(x)` of a parameter that is a tensor, in what a forward pass may call: the methods of modules but for their
    making and fitting, and the checks of arguments."""
    functions = [
        each
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef) and owner.name in modules
        for each in owner.body
        if isinstance(each, ast.FunctionDef) and each.name not in ("__init__", "fit", "set_rows")
        and not any(isinstance(mark, ast.Name) and mark.id == "classmethod" for mark in each.decorator_list)
    ]  # fmt: skip
    functions += [
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.lstrip("_").startswith("check")
    ]
    found = []
    for function in functions:
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        tensors = {each.arg for each in arguments if _is_tensor(each.annotation)}
        found += [
            f"{function.name}: len({call.args[0].id})"
            for call in ast.walk(function)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "len"
            and isinstance(call.args[0], ast.Name) and call.args[0].id in tensors
        ]  # fmt: skip
    return found


def test_no_forward_pass_counts_the_rows_of_a_tensor_by_len():
    """x.shape[0] is a free size of a program, len(x) a constant."""
    modules = _module_classes()
    found = {
        str(path.relative_to(SOURCE)): lines
        for package in ("layers", "models", "tensor")
        for path in (SOURCE / package).rglob("*.py")
        if (lines := lengths_of_tensors(ast.parse(path.read_text()), modules))
    }
    assert found == {}


def test_len_of_a_tensor_is_seen_where_it_matters():
    source = """
class Net:
    def forward(self, x: Float[Tensor, "batch d"], parts: Sequence[Tensor]):
        return len(x) + len(parts) + len(self.layers)
    def fit(self, x: Tensor):
        return len(x)
def check_rows(x: Tensor | None):
    return len(x)
def other(x: Tensor):
    return len(x)
"""
    assert lengths_of_tensors(ast.parse(source), {"Net"}) == ["forward: len(x)", "check_rows: len(x)"]
