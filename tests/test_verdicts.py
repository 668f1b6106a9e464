"""A result that is a test's verdict is true by its verdict: `if markov_test(joint)` asks what it says.

The source is read for every dataclass and named tuple that is called a test, or carries a truth value. Each is either
tried here, once where its verdict is yes and once where it is no, or listed with what it is instead of a verdict.
"""

import ast
from pathlib import Path

import pytest
import torch

import quoin
from quoin.autodiff import check_gradient
from quoin.cli.doctor import Finding
from quoin.notes.claims import Evidence
from quoin.optim import hessian_test, is_convex, is_convex_set
from quoin.prob import MarkovChain, energy_test, lumpability_test, markov_test
from quoin.tensor import is_norm

HIDDEN = MarkovChain(torch.full((3,), 1 / 3), torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
ROWS = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
REMEMBERS = torch.tensor([[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.5], [0.0, 0.0]]])  # X_2 = X_0 while X_1 tells nothing


def generator():
    return torch.Generator().manual_seed(0)


# class: a case whose verdict is yes, and one whose verdict is no; by the mathematics, not by the code
VERDICTS = {
    "MarkovTest": [
        (lambda: markov_test(torch.full((2, 2, 2), 1 / 8)), lambda: markov_test(REMEMBERS)),
        (
            lambda: lumpability_test(HIDDEN, torch.tensor([0, 1, 2])),
            lambda: lumpability_test(HIDDEN, torch.tensor([0, 0, 1])),
        ),
    ],
    "TwoSampleTest": [
        (
            lambda: energy_test(ROWS[:30], ROWS[30:], generator=generator()),
            lambda: energy_test(ROWS, ROWS + 5, generator=generator()),
        )
    ],
    "NormTest": [
        (
            lambda: is_norm(lambda x: x.abs().sum(), generator=generator()),
            lambda: is_norm(lambda x: x.square().sum(), generator=generator()),
        )
    ],
    "HessianTest": [
        (
            lambda: hessian_test(lambda x: x.square().sum(), ROWS),
            lambda: hessian_test(lambda x: -x.square().sum(), ROWS),
        )
    ],
    "SegmentSearch": [
        (
            lambda: is_convex(lambda x: x.square().sum(), ROWS, generator=generator()),
            lambda: is_convex(lambda x: -x.square().sum(), ROWS, generator=generator()),
        ),
        (
            lambda: is_convex_set(lambda x: bool(x.norm() < 1), ROWS, generator=generator()),
            lambda: is_convex_set(lambda x: bool(x.norm() > 1), ROWS, generator=generator()),
        ),
    ],
    "GradientCheck": [
        (
            lambda: check_gradient(lambda x: x.square().sum(), torch.ones(2)),
            lambda: check_gradient(lambda x: x.square().sum(), torch.ones(2), torch.ones(2)),
        )
    ],
    "Evidence": [
        (lambda: Evidence("gap", 1.0, 2.0, "two", cases=1), lambda: Evidence("gap", 3.0, 2.0, "two", cases=1))
    ],
    "cli/doctor.py Finding": [
        (lambda: Finding("Python", "3.11", True), lambda: Finding("keras", "not installed", False, needed=False))
    ],
}
NO_VERDICT = {
    "TransformerOptions": "options",
    "LanguageLayout": "a description: what a model is built of",
    "_Block": "the same, of one block",
    "Difference": "a number beside its tolerance: `is_met` says whether it is within",
    "Written": "files and numbers: `is_equal` says whether all are within their tolerance",
    "DemonstrationOptions": "options",
    "PointHole": "what two forms of a rule say, either may be asked for",
    "OpenOrTrained": "a model, with what is known of it",
    "LRRangeTest": "a curve: `burst` says how it ended",
    "RankBounds": "two numbers: `decided` says whether they meet, either may be right",
    "CP": "factors, with what is known of them",
    "Approximation": "a network, with what is known of its error",
    "EM": "a fit",
    "Fit": "a fit",
    "HingeFit": "a fit",
    "ScoresFit": "a fit",
    "GeneralizationGap": "two errors and their difference",
    "GradientOptions": "options; whether the optimizer is the recipe's own is one of its properties",
    "EarlyStop": "an epoch and how it was found",
    "bench/attention_findings.py Finding": "of three values: nothing may be asked of it",
    "Translation": "a text",
    "TrainerState": "a state",
    "TrainOutput": "how a run ended",
    "RunResult": "how a run ended",
    "DeviceContext": "a device and what is to be done there",
    "Node": "part of a graph",
    "Leaf": "part of a graph",
    "Call": "part of a graph",
    "Dataset": "data",
    "TextColumn": "a column to look for: `required` says whether it must be there",
    "ColumnEncoding": "how a column's cells become features",
    "TableEncoder": "how a table becomes features: `is_identity` says whether it is left as it is",
    "ImageFile": "a file: `readable` says whether it may be opened",
    "Entry": "an item of the notes",
    "Recipe": "a recipe",
    "Monitor": "which metric is watched",
    "RunConfig": "options",
    "Options": "options",
    "CodeAccess": "what the user lets run",
    "Comparison": "tables and notes",
    "CoordinateAxis": "an axis of a plot",
    "ExampleLayout": "how an example is laid out",
    "ScriptCheck": "a call of a script",
    "LoopCheck": "calls of exported parts, one after another",
    "MetricDifference": "a difference with its p-value; what level it is held against is the reader's",
    "ModuleObjective": "a loss and metrics",
    "PermutationTest": "a p-value; what level it is held against is the reader's",
    "ReadExamples": "data, and how they were read",
    "SweepRange": "numbers to search",
    "SweepResult": "how a sweep ended",
    "TrialOutput": "how a trial ended",
    "_Cell": "a cell of a table",
    "AugmentOptions": "options",
    "DataOptions": "options",
    "RecurrentOptions": "options",
    "BatchPiece": "rows: `is_live` says whether they count",
    "Benchmark": "work to be timed, and where it can be",
    "CountedStep": "counts of a step, and how they were made",
    "Machine": "rates, given or not",
    "Placement": "where a tensor goes",
    "Plan": "numbers of a run; whether it fits is one of them, and the limit may be the reader's",
    "Remedy": "flags and the peak they give: `fits` says whether that is enough",
    "StaticTransformerBlocks": "a cache",
    "StepTime": "seconds, and how they were found",
    "_Plan": "how the work of a kernel is cut up",
    "CodedText": "a text coded in several ways, each with its length; it decodes back or is an error",
    "DrawnEdge": "an edge of a picture",
    "EMStates": "the states of EM so far",
    "Exhibit": "a question with its picture",
    "Number": "a number beside a picture",
    "Handle": "a control of the lab",
    "Slider": "a control of the lab",
    "Switch": "a control of the lab",
    "TrainedModel": "a recipe with its options; `is_ready` says whether it is trained",
    "View": "what an exhibit shows; `reached` says whether the surprise can be seen",
}


def carries_truth(node: ast.ClassDef) -> bool:
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    properties = [
        each for each in node.body if isinstance(each, ast.FunctionDef) and each.decorator_list and each.returns
    ]
    return any("bool" in ast.unparse(each.annotation).split(" | ") for each in fields) or any(
        ast.unparse(each.returns) == "bool" for each in properties if each.returns
    )


def results() -> dict[str, bool]:
    """Every such class as 'Name', and as 'path Name' where its name alone is listed neither way; with whether it
    defines __bool__."""
    root, found = Path(quoin.__file__).parent, {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            marks = {ast.unparse(each).split("(")[0] for each in (*node.bases, *node.decorator_list)}
            if not marks & {"NamedTuple", "dataclass", "dataclasses.dataclass"}:
                continue
            if carries_truth(node) or node.name.endswith(("Test", "Check", "Search", "Verdict")):
                name = f"{path.relative_to(root)} {node.name}" if node.name == "Finding" else node.name
                found[name] = any(isinstance(each, ast.FunctionDef) and each.name == "__bool__" for each in node.body)
    return found


def test_every_result_with_a_truth_value_is_listed_and_every_verdict_defines_bool():
    found = results()
    assert not set(VERDICTS) & set(NO_VERDICT)
    assert set(found) == set(VERDICTS) | set(NO_VERDICT)
    assert {name for name, defines in found.items() if defines} == set(VERDICTS)


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, pairs in VERDICTS.items() for place in range(len(pairs))]
)
def test_a_test_is_true_by_its_verdict(name, place):
    yes, no = VERDICTS[name][place]
    assert bool(yes()) is True
    assert bool(no()) is False
    assert type(yes()).__name__ == name.split()[-1]
