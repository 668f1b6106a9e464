"""The tool behind `make mutants`, tried on a small project of its own: a fault that a test sees, one that none sees."""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mutation.blocks import instrument, number_blocks
from mutation.operators import changes
from mutation.project import Project, code_lines, drawn

SUMS = '''"""Sums."""

from dataclasses import dataclass


@dataclass
class Scale:
    factor: int = 3


def total(values, start=0):
    """Their sum.

    >>> total([1, 2])
    3
    """
    for value in values:
        start = start + value
    return start


def scaled(values):
    return Scale().factor * total(values)


def unseen(values):
    if len(values) > 2:
        return total(values)
    return 0
'''
TESTS = """from sums import scaled, unseen
import subprocess
import sys


def test_scaled():
    assert scaled([1, 2, 3]) == 18


def test_in_another_process():
    program = "from sums.other import double; assert double(3) == 6"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_called():
    unseen([1, 2, 3])


def test_that_reads_the_source():
    import inspect
    assert "start + value" in inspect.getsource(__import__("sums").total)
"""
EXAMPLE = """def half(value):
    '''
    >>> half(4)
    2.0
    '''
    return value / 2
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("toy")
    (root / "src" / "sums").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "sums" / "__init__.py").write_text(SUMS)
    (root / "src" / "sums" / "other.py").write_text("def double(value):\n    return value * 2\n")
    (root / "src" / "sums" / "examples.py").write_text(EXAMPLE)
    (root / "tests" / "test_sums.py").write_text(TESTS)
    (root / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["src"]\naddopts = "--doctest-modules --import-mode=importlib"\n'
    )
    (root / ".gitignore").write_text("/build/\n__pycache__/\n")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def command(root: Path, *words: object) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("mutants.py")
    asked = [sys.executable, script, "--root", root, "--package", "sums", "--preload", "", *words]
    return subprocess.run([str(word) for word in asked], capture_output=True, text=True)


def verdicts(root: Path, seed: int = 1) -> list[dict]:
    return [json.loads(line) for line in (root / "build" / "mutants" / f"seed-{seed}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def tried(toy) -> dict[str, dict]:
    """Every line of the toy changed once."""
    command(toy, "-n", 1000)
    return {f"{each['mutant']['before']} -> {each['mutant']['after']}": each for each in verdicts(toy)}


def test_caught_and_survived_are_told_apart(tried):
    for name, verdict in tried.items():
        function = verdict["mutant"]["function"]
        caught = {"total": True, "scaled": True, "Scale": True, "double": True, "half": True, "unseen": False}[function]
        assert bool(verdict["how"]) == caught, name
        assert verdict["complete"] or caught
        assert (verdict["num_tests"] > 0) == (verdict["mutant"]["before"] != "return 0")  # which no test executes
    assert Counter(each["mutant"]["function"] for each in tried.values()).keys() >= {"total", "double", "unseen"}


def test_examples_in_docstrings_are_tests_too(tried):
    """Of a function that only its example runs."""
    (verdict,) = (each for each in tried.values() if each["mutant"]["function"] == "half")
    assert verdict["caught_by"] == "src/sums/examples.py::sums.examples.half"


def test_the_source_of_a_mutant_is_not_what_catches_it(tried):
    assert not any("reads_the_source" in each["caught_by"] for each in tried.values())


def test_nothing_is_written_into_the_tree(tried, toy):
    assert (toy / "src" / "sums" / "__init__.py").read_text() == SUMS
    assert subprocess.run(["git", "status", "--short"], cwd=toy, capture_output=True, text=True).stdout.count("\n") == 4


def test_it_goes_on_where_it_was(tried, toy):
    """With half of the verdicts lost, one of them torn, only those are tried; what is there stays as it is."""
    log = toy / "build" / "mutants" / "seed-1.jsonl"
    lines = log.read_text().splitlines()
    kept = [line.replace('"caught_by": "', '"caught_by": "kept ') for line in lines[: len(lines) // 2]]
    log.write_text("\n".join(kept) + "\n" + lines[-1][:40] + "\n")
    told = command(toy, "-n", 1000)
    after = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    assert [json.dumps(each) for each in after[: len(kept)]] == kept
    assert [each["mutant"] for each in after[len(kept) :]] == [
        json.loads(line)["mutant"] for line in lines[len(kept) :]
    ]
    assert "survived" in told.stdout
    log.write_text("\n".join(lines) + "\n")


def test_several_at_a_time_give_the_same_verdicts(tried, toy):
    """Each mutant once, whichever process takes it; what was caught is caught."""
    log = toy / "build" / "mutants" / "seed-1.jsonl"
    lines = log.read_text()
    log.unlink()
    told = command(toy, "-n", 1000, "--jobs", 3)
    assert told.stdout.count("\nsurvived") > 1, told.stderr
    told_again = {f"{each['mutant']['before']} -> {each['mutant']['after']}": each for each in verdicts(toy)}
    assert len(verdicts(toy)) == len(lines.splitlines())
    assert {name: bool(each["how"]) for name, each in told_again.items()} == {
        name: bool(each["how"]) for name, each in tried.items()
    }
    log.write_text(lines)


def test_none_at_a_time_is_refused(toy):
    told = command(toy, "--jobs", 0)
    assert told.returncode == 2
    assert "expected one mutant at a time or more, got --jobs 0" in told.stderr


def test_a_judged_survivor_is_set_apart(tried, toy):
    survivors = [each["mutant"] for each in tried.values() if not each["how"]]
    told = command(toy, "-n", 1000)
    assert told.returncode == 1
    assert told.stdout.count("\nsurvived") == len(survivors) > 1
    entries = [{name: each[name] for name in ("file", "function", "before", "after")} for each in survivors]
    text = "".join(
        "[[harmless]]\n"
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entry.items())
        + 'why = "none uses it"\n'
        for entry in entries
    )
    (toy / "tests" / "mutants_judged.toml").write_text(text)
    told = command(toy, "-n", 1000)
    (toy / "tests" / "mutants_judged.toml").unlink()
    assert "\nsurvived" not in told.stdout
    assert told.returncode == 0


def test_the_choice_is_uniform_over_lines_and_depends_on_the_seed_only(toy, tmp_path):
    project = Project(toy, "sums", tmp_path / "copy")
    project.make_copy()
    lines = code_lines(project)
    first = Counter()
    for seed in range(60 * len(lines)):
        mutant = next(drawn(project, seed))
        first[mutant.file, mutant.line] += 1
    assert first.keys() == set(lines)
    chi_square = sum((count - 60) ** 2 / 60 for count in first.values())
    assert chi_square < len(lines) + 5 * (2 * len(lines)) ** 0.5  # five deviations; the seeds are fixed
    one, same, other = (list(drawn(project, seed)) for seed in (7, 7, 8))
    assert one == same != other
    assert sorted((each.file, each.line) for each in one) == sorted(lines)  # each line once


def test_an_edit_elsewhere_leaves_what_is_drawn(toy, tmp_path):
    projects = [Project(toy, "sums", tmp_path / name) for name in ("one", "other")]
    for each in projects:
        each.make_copy()
    longer = "LONGER = 5\n\n\n" + (projects[1].source / "other.py").read_text()
    (projects[1].source / "other.py").write_text(longer)
    one, other = ([(m.file, m.before, m.after) for m in drawn(project, 3)] for project in projects)
    assert len(other) == len(one) + 1
    assert [each for each in other if each in one] == one


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a + b", {"x = a - b"}),
        ("x = a * 2", {"x = a / 2", "x = a * 3", "x = a * 1"}),
        ("x = not a", {"x = a"}),
        ("x = a and b", {"x = a or b"}),
        ("f(a, b, key=True)", {"pass", "f(b, a, key=True)", "f(a, b)", "f(a, b, key=False)"}),
        ("x = b if a else c", {"x = c if a else b", "x = b if not a else c"}),
        ("a.b = c", {"pass"}),
        ("a = 'text'", set()),
        ("a: int = b", set()),
        ("assert a > 1", set()),
        ("raise ValueError(f'{a + 1}')", {"pass"}),
        ("a += b", {"pass", "a -= b"}),
    ],
)
def test_the_faults_of_a_statement(source, expected):
    found = set()
    for index in range(len(changes(ast.parse(source)))):
        tree = ast.parse(source)
        changes(tree)[index].make()
        found.add(ast.unparse(ast.fix_missing_locations(tree)))
    assert found == expected


def test_marks_say_what_was_executed():
    source = "def f(a):\n    'd'\n    if a:\n        return 1\n    return 2\n"
    tree = ast.parse(source)
    assert sorted(number_blocks(tree).values()) == [0, 0, 1, 2]
    hits = bytearray(13)
    names: dict = {"__quoin_hits__": hits}
    exec(compile(instrument(tree, 10), "f", "exec"), names)
    assert names["f"].__doc__ == "d"
    assert not any(hits)
    assert names["f"](1) == 1
    assert list(hits[10:]) == [1, 1, 0]
    assert names["f"](0) == 2
    assert list(hits[10:]) == [1, 1, 1]
