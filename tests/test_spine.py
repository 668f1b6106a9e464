"""One step, one run, short recipes: what holds the spine together, read from the source and tried on real runs."""

import ast
import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import quoin
from commands import tried
from quoin.errors import UserError
from quoin.options import ValidatedOptions, default, option
from quoin.runs import Run, find_recipe, recipe_names
from quoin.runs.kinds import KINDS, LANGUAGE_MODELING, trained_class
from quoin.train import RunFolder
from quoin.train.durable import Directory
from run_folders import USED, command_words, copy_run, opening_commands, trained_once

HOUSE = Path(quoin.__file__).parent
STEP = "train/gradient_updater.py"
# Beside the step: what differentiates or plays through training to show it, peers, L-BFGS, gradients by the input.
NO_TRAINING = ("autodiff/", "notes/", "bench/", "optim/", "losses/", "inspect/", "generate/")
TIMED = "runs/plan_time.py"  # a backward pass to measure this machine by: nothing there moves a weight
MOST_LINES = 80
DEEPEST = 5  # a run, its epochs, a kind, what varies it, and the recipe


def sources(pattern: str = "**/*.py") -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(HOUSE.glob(pattern)):
        yield path.relative_to(HOUSE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def calls_of_backward(tree: ast.AST) -> list[int]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [node.lineno for node in calls if node.func.attr == "backward" and not _is_updater(node.func.value)]  # type: ignore[attr-defined]


def _is_updater(value: ast.expr) -> bool:
    """`self.updater.backward(loss, weight)` asks the one step for it."""
    return (
        ast.unparse(value).split(".")[-1].split("[")[0] in {"updater", "updaters", "rival"}
        or ast.unparse(value) == "self"
    )


def test_only_the_step_calls_backward_to_train():
    found = {
        file: lines
        for file, tree in sources()
        if (lines := calls_of_backward(tree)) and not file.startswith(NO_TRAINING)
    }
    assert found.keys() == {STEP, TIMED}
    assert len(found[STEP]) == len(found[TIMED]) == 1
    assert "optim" not in (HOUSE / TIMED).read_text(encoding="utf-8")


def test_a_backward_elsewhere_would_be_seen():
    assert calls_of_backward(ast.parse("def step(self):\n    loss.mean().backward()\n")) == [2]
    assert calls_of_backward(ast.parse("self.updater.backward(loss, 1.0)")) == []


def nested(tree: ast.Module) -> list[str]:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outer = [node for node in ast.walk(tree) if isinstance(node, definitions[:2])]
    return [
        inner.name for each in outer for inner in ast.walk(each) if inner is not each and isinstance(inner, definitions)
    ]


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_short_and_nests_nothing(name):
    path = HOUSE / "recipes" / f"{name.replace('-', '_')}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    assert nested(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_a_nested_definition_would_be_seen():
    assert nested(ast.parse("def build():\n    class Task:\n        def step(self): ...\n")) == ["Task", "step"]


def depth(kind: type) -> int:
    return 1 + max((depth(base) for base in kind.__bases__ if base is not ValidatedOptions), default=0)


@pytest.mark.parametrize("name", recipe_names())
def test_options_are_composed(name):
    assert depth(find_recipe(name).options) <= DEEPEST


def test_a_changed_default_keeps_help_and_range():
    @dataclasses.dataclass(frozen=True)
    class Base(ValidatedOptions):
        lr: float = option(0.1, "the learning rate", above=0.0)

    @dataclasses.dataclass(frozen=True)
    class Other(ValidatedOptions):
        size: int = option(3, "how large")

    @dataclasses.dataclass(frozen=True)
    class Changed(Other, Base):
        lr: float = default(0.2)
        size: int = default(4, "how wide")

    fields = {each.name: each for each in dataclasses.fields(Changed)}
    assert (Changed().lr, Changed().size) == (0.2, 4)
    assert fields["lr"].metadata == {"help": "the learning rate", "bounds": {"above": 0.0}}
    assert fields["size"].metadata["help"] == "how wide"
    assert Base().lr == 0.1
    with pytest.raises(UserError, match="above"):
        Changed(lr=0.0)
    with pytest.raises(TypeError, match="no base class has this option"):

        class Wrong(ValidatedOptions):
            nothing: int = default(1)


# ---- runs -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    root = tmp_path_factory.mktemp("kinds") / "here"
    shutil.copytree(trained_once(tmp_path_factory), root)
    return root, json.loads((root / "trained.json").read_text())


@pytest.fixture
def folders(trained, monkeypatch) -> dict[str, str]:
    """One run of every kind, in the working folder."""
    monkeypatch.chdir(trained[0])
    return trained[1]


def test_every_command_opens_the_config_of_a_run_once(folders, monkeypatch):
    opened: list[str] = []
    read = Directory.read
    monkeypatch.setattr(Directory, "read", lambda self, name: opened.append(f"{self.path}/{name}") or read(self, name))
    seen = 0
    for kind, run in folders.items():
        for command in sorted(opening_commands()):
            opened.clear()
            tried(*command_words(command, kind, str(copy_run(run)), folders["regression"]))
            configs = [path for path in opened if path == "run/config.json"]
            seen += len(configs)
            assert len(configs) <= 1, f"{command} on {kind}: {len(configs)} times"
    assert seen > 80


def test_what_a_kind_can_do_is_what_its_commands_do(folders):
    """`USED` says which commands have something to do for each kind; the abilities say the same."""
    told = {"predict": "predict", "generate": "generate", "inspect": "inspect"}
    for kind, run in folders.items():
        opened = Run.open(run)
        for command, ability in told.items() if kind != "module" else ():  # whose model is in the user's Python
            if opened.kind == LANGUAGE_MODELING and ability == "inspect":
                continue  # the model decides, by having attention or not: test_inspect_text.py
            assert opened.can(ability) == (command in USED[kind]), (kind, command)


def test_a_kind_that_cannot_says_what_it_can(folders):
    with pytest.raises(UserError, match="translates sentences and cannot generate: use `quoin predict`"):
        Run.open(folders["translation"]).generate(3)
    with pytest.raises(
        UserError, match="is a language model and cannot predict: use `quoin eval --data`, `quoin generate`"
    ):
        Run.open(folders["language"]).predict(["a"])
    with pytest.raises(UserError, match="holds several runs"):
        Run.open(folders["seeds"]).predict([])


def test_every_kind_has_a_class():
    assert all(trained_class(kind).is_a for kind in KINDS)


def test_a_kind_that_nobody_knows_is_one_line(folders):
    run = copy_run(folders["classifier"])
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"kind": "sorcery"}))
    with pytest.raises(UserError, match=r"expected a kind of run .* got 'sorcery'"):
        Run.open(run)


@pytest.mark.parametrize("told", [*KINDS, "multirun"])
def test_a_run_that_tells_another_kind_is_answered_in_one_line(told, folders):
    """Every kind of run says in turn that it is of every kind; some of it fits, nothing of it is a traceback."""
    for kind, run in folders.items():
        config = json.loads((copy_run(run) / "config.json").read_text())
        Path("run/config.json").write_text(json.dumps(config | {"kind": told}))
        for command in ("generate", "predict", "compress", "inspect"):
            code, _, err = tried(*command_words(command, kind, "run", folders["regression"]))
            assert code in (0, 2), (kind, command)
            assert len(err.strip().splitlines()) <= 1, err
            assert len(err) <= 300


def test_a_finished_run_is_told_without_its_data(folders, monkeypatch):
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("the data were loaded")

    for kind in ("classifier", "language", "translation", "mixture"):
        run = copy_run(folders[kind])
        before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != "lock"}
        recipe = find_recipe(RunFolder.open(run).recipe)
        monkeypatch.setattr(recipe.module, "build", refuse)
        code, out, err = tried("resume", run)
        assert code == 0, err
        assert "was finished already" in err
        assert all(name in out for name in Run.open(run).metrics or {})
        assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != "lock"}


def test_a_run_generates_by_its_seed(folders):
    text, points = Run.open(folders["language"]), Run.open(folders["points"])
    for run, what in ((text, "the "), (points, 5)):
        one, again, other = (run.generate(what, seed=seed) for seed in (0, 0, 1))
        assert str(one) == str(again) != str(other)
    assert len(points.generate(5)) == 5


def test_a_run_gives_its_parts(folders):
    run = Run.open(copy_run(folders["classifier"]))
    assert (run.kind, run.recipe.name, run.options.hidden_dims) == ("classification", "mlp", (3,))
    assert run.metrics is not None
    assert run.metrics["test_loss"] == pytest.approx(run.evaluate()["test_loss"])
    assert run.history[-1]["epoch"] == 1
    assert run.model is run.trained.model
    (run.path / "report.html").unlink()
    assert run.report().is_file()
