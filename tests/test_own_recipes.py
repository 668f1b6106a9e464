"""Recipes of one's own: files by path, recipes of installed packages, `quoin new`. Code never runs unasked."""

import dataclasses
import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import refused, stopping, tried, without_progress
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser
from quoin.errors import UserError
from quoin.options import flag_name
from quoin.runs import Run, RunConfig, find_recipe, recipe_names, resume
from quoin.runs.packaged import packaged_recipes
from quoin.runs.run_code import CodeAccess
from quoin.train import RunFolder
from tasks import difference, left_behind

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = ("--max-steps", 3, "--num-threads", 1, "--json")
NEW = "sepal length (cm),sepal width (cm),petal length (cm),petal width (cm)\n5,3,1.4,0.2\n"
MARK = "from pathlib import Path\nPath({!r}).touch()\n"  # seen if it runs


@pytest.fixture
def own(here) -> Path:
    """The file that `quoin new` writes."""
    assert tried("new", "my_recipe.py")[0] == 0
    return here / "my_recipe.py"


def trained(*words: object) -> dict:
    code, out, err = tried("train", *words, *QUICK)
    assert code == 0, err
    return json.loads(out)


def config_of(run: str) -> dict:
    return json.loads(Path(run, "config.json").read_text())


def evaluated(*words: object) -> dict:
    code, out, err = tried("eval", *words, "--json")
    assert code == 0, err
    return json.loads(out)


# ---- a recipe file ----------------------------------------------------------------------------------------------


def test_a_file_trains_and_its_run_keeps_a_copy_and_its_hash(own):
    found = trained("my_recipe.py", "--width", 5)
    assert found["run"] == "runs/my-recipe-1"
    assert found["target"]["metric"] == "test_accuracy"
    config = config_of(found["run"])
    (record,) = config["code"]
    assert record == {
        "path": "my_recipe.py",
        "copy": "my_recipe.py",
        "sha256": hashlib.sha256(own.read_bytes()).hexdigest(),
        "use": "recipe",
    }
    assert Path(found["run"], "code", "my_recipe.py").read_bytes() == own.read_bytes()
    assert (config["recipe"], config["options"]["width"], config["kind"]) == ("my-recipe", 5, "classification")
    assert not list(own.parent.glob("__pycache__"))  # nothing is written beside it


def test_the_copy_of_a_recipe_of_ours_trains_to_the_same_numbers(here):
    tried("new", "mlp.py", "--from", "mlp")
    mine, ours = trained("./mlp.py", "--data", "iris"), trained("mlp", "--data", "iris")
    assert mine["metrics"] == ours["metrics"]
    assert (mine["run"], ours["run"]) == ("runs/mlp-1", "runs/mlp-2")
    assert evaluated("runs/mlp-2") == ours["metrics"]
    assert "never runs unasked" in refused("eval", "runs/mlp-1")  # of the same name, and known to be another's


def test_help_shows_its_summary_its_flags_and_its_target(own):
    _, out, _ = tried("train", "my_recipe.py", "--help")
    for text in ("A small network of mine", "--width", "test_accuracy at least 0.8", "--batch-size", "--device"):
        assert text in out
    own.write_text(own.read_text().replace("TARGET = ", "WANTED = "))
    assert "no quality target" in tried("train", "my_recipe.py", "--help")[1]
    assert trained("my_recipe.py")["target"] is None
    assert "has no TARGET" in refused("train", "my_recipe.py", "--require-target")


def test_a_range_test_of_it(own):
    code, out, _ = tried("lr", "my_recipe.py", "--lr-steps", 5, "--json", "--num-threads", 1)
    assert code == 0
    assert (json.loads(out)["recipe"], json.loads(out)["default"]) == ("my-recipe", 0.01)


def test_the_least_that_a_recipe_may_have(own):
    text = own.read_text().replace('"""A small network of mine that classifies the rows of a table."""', "")
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("TARGET", "MONITOR")))
    own.write_text(text.replace("def model(", "def make(").replace("= model(", "= make("))
    found = trained("my_recipe.py")
    recipe = find_recipe("my_recipe.py")
    assert (recipe.summary, recipe.target, recipe.monitor, recipe.notes, recipe.keywords) == ("", None, None, (), ())
    assert evaluated(found["run"], "--code", "my_recipe.py") == found["metrics"]
    Path("new.csv").write_text(NEW)
    told = refused("predict", found["run"], "new.csv", "--code", "my_recipe.py")
    assert "has no function model(options, data_info)" in told


# ---- opening its runs -------------------------------------------------------------------------------------------


def test_its_runs_open_with_the_file_or_with_the_copy_if_the_user_says_so(own):
    found = trained("my_recipe.py", "--checkpoint-every", 1)
    run = found["run"]
    told = refused("eval", run)
    assert "--code my_recipe.py" in told
    assert "--trust-code" in told
    assert evaluated(run, "--code", "my_recipe.py") == found["metrics"]
    assert evaluated("--code", "my_recipe.py", run) == found["metrics"]  # the flag takes one word, wherever it is
    (own.parent / "elsewhere").mkdir()
    own.rename(own.parent / "elsewhere" / "renamed.py")
    assert evaluated(run, "--trust-code") == found["metrics"]
    assert evaluated(run, "--code", "elsewhere/renamed.py") == found["metrics"]
    assert not list(Path(run).rglob("__pycache__"))
    Path("new.csv").write_text(NEW)
    assert tried("predict", run, "new.csv", "--trust-code")[0] == 0
    assert "is no code of" in refused("eval", trained("mlp", "--data", "iris")["run"], "--code", "elsewhere/renamed.py")
    # What needs no code asks for none: of a finished run, its result.
    assert tried("resume", run, "--json")[0] == 0
    opened = Run.open(run)
    assert (opened.metrics, opened.kind, opened.recipe_name) == (found["metrics"], "classification", "my-recipe")
    with pytest.raises(UserError, match="never runs unasked"):
        _ = opened.options


def test_a_file_that_changed_is_told_and_used(own):
    run = trained("my_recipe.py")["run"]
    own.write_text(own.read_text() + "\nWIDER = 2\n")
    code, _, err = tried("eval", run, "--code", "my_recipe.py")
    assert (code, err.count("\n")) == (0, 1)
    assert "my_recipe.py changed since runs/my-recipe-1 was started" in err
    Path(run, "result.json").unlink()
    code, _, err = tried("resume", run, "--code", "my_recipe.py", "--json")
    assert code == 0
    assert "results may differ" in err
    assert tried("eval", run, "--trust-code")[2] == ""


OPENING = (["resume"], ["eval"], ["inspect"], ["predict", "new.csv"], ["generate"])


def opened_by_all(run: str, *more: str) -> list[int]:
    Path("new.csv").write_text(NEW)
    Path(run, "result.json").unlink(missing_ok=True)  # so that `resume` has something to do
    return [tried(command, run, *words, *more)[0] for command, *words in OPENING]


def test_nothing_that_a_run_folder_names_or_holds_runs_by_itself(own):
    run = trained("my_recipe.py")["run"]
    config = config_of(run)
    evil = own.parent / "evil.py"
    evil.write_text(MARK.format("ran"))
    for path in (str(evil), "evil.py", "./evil.py"):  # config.json edited to lead to another file
        config["code"][0]["path"] = path
        Path(run, "config.json").write_text(json.dumps(config))
        assert {*opened_by_all(run)} == {2}
        opened_by_all(run, "--trust-code")  # the copies, whose hashes are right: not what lies at the path
        assert not Path("ran").exists()
    config["code"] = []  # none recorded, and an unknown name
    Path(run, "config.json").write_text(json.dumps(config))
    assert {*opened_by_all(run), *opened_by_all(run, "--trust-code")} == {2}
    config["recipe"] = "evil.py"
    Path(run, "config.json").write_text(json.dumps(config))
    assert {*opened_by_all(run), *opened_by_all(run, "--trust-code")} == {2}
    config["package"] = "evil"
    Path(run, "config.json").write_text(json.dumps(config))
    assert {*opened_by_all(run), *opened_by_all(run, "--trust-code")} == {2}
    assert not Path("ran").exists()


def test_a_copy_that_was_altered_does_not_run(own):
    run = trained("my_recipe.py")["run"]
    copy = Path(run, "code", "my_recipe.py")
    copy.write_text(MARK.format("ran") + copy.read_text())
    assert {*opened_by_all(run, "--trust-code")} == {2}
    assert "is not the file that the run was started with" in refused("eval", run, "--trust-code")
    copy.unlink()
    copy.symlink_to(own)
    assert refused("eval", run, "--trust-code")
    copy.unlink()
    assert "has lost its copy" in refused("eval", run, "--trust-code")
    assert not Path("ran").exists()
    for path in ("../../../my_recipe.py", "/etc/passwd", "code/../../x"):
        config = config_of(run)
        config["code"][0]["copy"] = path
        Path(run, "config.json").write_text(json.dumps(config))
        assert "a path inside code/" in refused("eval", run, "--trust-code")


# ---- modules beside it ------------------------------------------------------------------------------------------


@pytest.fixture
def project(own) -> Path:
    """A recipe that imports a module beside it, one of a package, and in `build` one of a folder without __init__."""
    folder = own.parent / "project"
    (folder / "parts").mkdir(parents=True)
    (folder / "late").mkdir()
    text = own.read_text().replace(
        "from torch import", "import my_layers\nfrom parts.deep import SCALE\nfrom torch import"
    )
    text = text.replace("self.hidden(features).tanh()", "my_layers.activate(SCALE * self.hidden(features))")
    text = text.replace(
        "    optimizer = tasks", "    from late.still import RATE\n    assert RATE == 1\n    optimizer = tasks"
    )
    (folder / "my_recipe.py").write_text(text)
    (folder / "my_layers.py").write_text("def activate(x):\n    return x.tanh()\n")
    (folder / "parts" / "__init__.py").write_text("from parts import deep\n")
    (folder / "parts" / "deep.py").write_text("SCALE = 2.0\n")
    (folder / "late" / "still.py").write_text("RATE = 1\n")
    (folder / "json.py").write_text(MARK.format("ran"))  # hides nothing that is installed
    return folder


def test_modules_beside_it_are_kept_with_it(project):
    found = trained("project/my_recipe.py")
    run, config = found["run"], config_of(found["run"])
    names = {"my_recipe.py", "my_layers.py", "parts/__init__.py", "parts/deep.py", "late/still.py", "late/__init__.py"}
    assert {each["copy"]: each["sha256"] for each in config["code"]} == {
        name: hashlib.sha256((project / name).read_bytes() if (project / name).exists() else b"").hexdigest()
        for name in names
    }
    assert not Path("ran").exists()
    assert not list(project.rglob("__pycache__"))
    # With what lies there now, a change of any told; with the copies, whatever became of it.
    assert evaluated(run, "--code", "project/my_recipe.py") == found["metrics"]
    (project / "parts" / "deep.py").write_text("SCALE = 20.0\n")
    code, out, err = tried("eval", run, "--code", "project/my_recipe.py", "--json")
    assert (code, json.loads(out) == found["metrics"]) == (0, False)
    assert "parts/deep.py changed since" in err
    assert evaluated(run, "--trust-code") == found["metrics"]
    shutil.rmtree(project)
    assert evaluated(run, "--trust-code") == found["metrics"]
    # Only what was recorded is found among the copies, and only as it was.
    recorded = Path(run, "code", "parts", "deep.py").read_text()
    Path(run, "code", "parts", "deep.py").write_text(MARK.format("ran") + recorded)
    assert "is not the file that" in refused("eval", run, "--trust-code")
    Path(run, "code", "parts", "deep.py").write_text(recorded)
    for name in ("numpy.py", "my_layers/__init__.py", "parts/deep/__init__.py"):
        (path := Path(run, "code", name)).parent.mkdir(exist_ok=True)
        path.write_text(MARK.format("ran"))
    assert evaluated(run, "--trust-code") == found["metrics"]
    assert not Path("ran").exists()


def test_parts_from_another_folder_are_kept_apart(project):
    """A recipe and an optimizer, each with a module beside it of the same name."""
    other = project.parent / "other"
    other.mkdir()
    (other / "my_layers.py").write_text("SLOWER = 0.5\n")
    (other / "opt.py").write_text(
        "import my_layers\nimport torch\n\nclass Mine(torch.optim.SGD):\n"
        "    def __init__(self, parameters, lr):\n        super().__init__(parameters, lr * my_layers.SLOWER)\n"
    )
    words = ("project/my_recipe.py", "--optimizer", "other/opt.py:Mine", "--lr", 0.1)
    found = trained(*words)
    run = found["run"]
    uses = {each["copy"]: (each["path"], each["use"]) for each in config_of(run)["code"]}
    assert uses["2/opt.py"] == ("other/opt.py", "option")
    assert uses["2/my_layers.py"] == ("other/my_layers.py", "import")
    assert uses["my_layers.py"] == ("project/my_layers.py", "import")
    named = ("--code", "other/opt.py", "--code", "project/my_recipe.py")
    assert evaluated(run, *named) == found["metrics"]
    assert "your code other/opt.py" in refused("eval", run, *named[2:])
    shutil.rmtree(project)
    shutil.rmtree(other)
    assert evaluated(run, "--trust-code") == found["metrics"]


def test_what_lies_beside_it_stands_in_for_no_package_that_a_library_does_without(project, monkeypatch):
    site = project.parent / "site"
    site.mkdir()
    (site / "a_library.py").write_text(
        "try:\n    import not_installed\nexcept ImportError:\n    not_installed = None\n"
    )
    (project / "not_installed").mkdir()
    (project / "not_installed" / "some.py").write_text(MARK.format("ran"))
    monkeypatch.syspath_prepend(site)
    text = (project / "my_recipe.py").read_text()
    (project / "my_recipe.py").write_text(text.replace("import my_layers", "import a_library\nimport my_layers"))
    assert find_recipe("project/my_recipe.py").module.a_library.not_installed is None
    del sys.modules["a_library"]


def test_a_file_is_imported_once_for_each_content_of_it_and_its_modules(project):
    path = "project/my_recipe.py"
    first = find_recipe(path)
    assert find_recipe(path).module is first.module
    assert first.reference == path
    (project / "my_layers.py").write_text("def activate(x):\n    return x.relu()\n")
    second = find_recipe(path)
    assert second.module is not first.module
    other = project.parent / "other"
    shutil.copytree(project, other)
    (other / "my_layers.py").write_text("activate = 'another module of the same name'\n")
    assert find_recipe("other/my_recipe.py").module.my_layers.activate == "another module of the same name"
    assert callable(second.module.my_layers.activate)
    assert callable(find_recipe(path).module.my_layers.activate)


def test_a_mistake_in_a_module_beside_it_names_the_module(project):
    (project / "my_layers.py").write_text("\n\nimport nothing_of_the_kind\n")
    told = refused("train", "project/my_recipe.py")
    assert "project/my_recipe.py' does not import (my_layers.py, line 3): ModuleNotFoundError" in told
    (project / "my_layers.py").write_text("x = = 1\n")
    assert "project/my_recipe.py' imports my_layers.py, which is no Python, line 1" in refused(
        "train", "project/my_recipe.py"
    )


# ---- several runs -----------------------------------------------------------------------------------------------


def test_seeds_and_folds_of_it_and_their_resuming(project):
    found = trained("project/my_recipe.py", "--seeds", 2)
    run = found["run"]
    assert find_recipe("project/my_recipe.py").name == "my-recipe"
    assert trained("project/my_recipe.py", "--folds", 2)["multirun"] == {"over": "fold", "count": 2}
    shutil.rmtree(Path(run, "seed-1"))
    Path(run, "result.json").unlink()
    assert "never runs unasked" in refused("resume", run)
    shutil.rmtree(project)
    Path("project").mkdir()
    Path("project/my_recipe.py").write_text(MARK.format("ran"))  # at the path that the run names
    code, out, err = tried("resume", run, "--trust-code", "--json")
    assert code == 0, err
    assert json.loads(out)["metrics"] == found["metrics"]
    assert not Path("ran").exists()
    assert evaluated(f"{run}/seed-1", "--trust-code").keys() == found["metrics"].keys()


# ---- kinds of learning ------------------------------------------------------------------------------------------


def test_a_kind_of_its_own_trains_and_says_what_it_is_not(own):
    text = own.read_text().replace(
        "class MyNetwork", "class Mine(tasks.Classification):\n    kind = 'ranking'\n\n\nclass MyNetwork"
    )
    own.write_text(text.replace("tasks.Classification, net", "Mine, net"))
    found = trained("my_recipe.py")
    run = found["run"]
    assert config_of(run)["kind"] == "ranking"
    assert evaluated(run, "--code", "my_recipe.py") == found["metrics"]
    Path(run, "result.json").unlink()
    assert tried("resume", run, "--code", "my_recipe.py")[0] == 0
    Path(run, "report.html").unlink()
    Run.open(run, code=CodeAccess(trust_copies=True)).report()
    assert Path(run, "report.html").exists()
    Path("new.csv").write_text(NEW)
    for command, *words in (["predict", "new.csv"], ["generate"], ["inspect"], ["eval", "--data", "iris"]):
        assert "is of a kind of its own" in refused(command, run, *words, "--code", "my_recipe.py")


# ---- mistakes ---------------------------------------------------------------------------------------------------

BASE = """
from dataclasses import dataclass
from quoin.options import option
from quoin.tasks.options import EpochOptions, RunOptions

@dataclass(frozen=True)
class Options(EpochOptions):
    {field}

def build(options, device_context):
    {build}
"""
MISTAKES = {  # a file, and what is said of it
    "syntax": ("x = 1\ndef build(:\n", "is no Python, line 2: invalid syntax"),
    "import": ("import os\n\nimport nothing_at_all\n", "does not import (line 3): ModuleNotFoundError"),
    "raises": ("def f():\n    return 1 / 0\n\nf()\n", "does not import (line 2): ZeroDivisionError"),
    "exit": ("import sys\nsys.exit()\n", "ends the program when it is imported"),
    "empty": ("", "has no class Options: a recipe is a Python file with a class Options and a function build; `"),
    "no build": ("class Options: ...\n", "has no function build(options, device_context)"),
    "plain class": ("class Options: ...\ndef build(o, d): ...\n", "lacks seed, patience and monitor"),
    "no class": ("def Options(): ...\ndef build(o, d): ...\n", "lacks seed, patience and monitor"),
    "no epochs": (BASE.replace("(EpochOptions)", "(RunOptions)"), "has no num_epochs"),
    "no dataclass": (
        BASE.replace("@dataclass(frozen=True)", "").replace("{field}", "width: int = 3"),
        "write @dataclass(frozen=True) above it",
    ),
    "not frozen": (BASE.replace("(frozen=True)", ""), "cannot inherit non-frozen"),
    "no default": (
        BASE.replace("frozen=True", "frozen=True, kw_only=True").replace("{field}", "width: int"),
        "the option width has no default",
    ),
    "type": (BASE.replace("{field}", "width: dict = None"), "the option width is of type"),
    "numbers to choose from": (
        BASE.replace("{field}", "from typing import Literal; width: Literal[1, 2] = 1"),
        "the option width is of type",
    ),
    "unknown type": (BASE.replace("{field}", "width: 'Nothing' = 1"), "the type of an option cannot be read"),
    "default": (BASE.replace("{field}", "width: int = option(0, 'units', at_least=1)"), "--width must be at least 1"),
    "target": (BASE + "TARGET = 0.9\n", "TARGET is 0.9, expected a Target(...) or None"),
    "monitor": (BASE + "MONITOR = 'loss'\n", "MONITOR is 'loss', expected a Monitor(...) or None"),
    "notes": (BASE + "KEYWORDS = 'mine'\n", "KEYWORDS is 'mine', expected a tuple"),
    "model": (BASE + "model = 3\n", "model is 3, expected a function"),
    "nothing built": (BASE, "build gives NoneType, and a run needs a task"),
    "no task": (BASE.replace("{build}", "return 'task'"), "build gives str, which has no kind, batches"),
    "exit in build": (BASE.replace("{build}", "raise SystemExit(3)"), "ends the program (exit 3)"),
    "not UTF-8": (b"x = '\xff'\n", "is no Python, line 1"),
    "null bytes": (b"x = 1\0\n", "is no Python"),
    "huge": (b"#" * (10 * 2**20 + 1), "of at most 10,485,760 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_in_a_recipe_file_is_one_line(what, here):
    content, told = MISTAKES[what]
    if isinstance(content, str):
        content = content.replace("{field}", "pass").replace("{build}", "pass").encode()
    Path("mine.py").write_bytes(content)
    assert told in refused("train", "mine.py", *QUICK)
    assert not Path("runs").exists()


def test_a_place_that_is_no_recipe_file_is_one_line(here):
    Path("folder.py").mkdir()
    assert "got the folder 'folder.py'" in refused("train", "folder.py")
    assert "cannot be read (No such file" in refused("train", "nothing.py")
    assert "cannot be read" in refused("train", "./nothing")
    Path("mine.py").write_text("")
    assert "did you mean the file 'mine.py'?" in refused("train", "mine")
    assert "the recipe comes first" in refused("train", "--epochs", "2", "mine.py")


def test_an_option_that_clashes_with_a_flag_of_the_command_is_told(here):
    """With every flag that `quoin train` has beside the recipe's own, read from its parser."""
    for command in ("train", "lr"):
        parser = Parser(f"quoin {command}", "")
        COMMANDS[command][1](parser, ["mlp"])
        options = {flag_name(each.name) for each in dataclasses.fields(find_recipe("mlp").options)}
        taken = {flag for flag in parser.flags if flag.startswith("--")} - options - {"--lr"}
        if command == "train":
            assert {flag_name(each.name) for each in dataclasses.fields(RunConfig)} < taken
        for flag in sorted(taken):
            name = flag.removeprefix("--").replace("-", "_")
            Path("mine.py").write_text(BASE.format(field=f"{name}: int = option(1, 'mine')", build="pass"))
            assert f"the option {name} " in (told := refused(command, "mine.py"))
            assert "clashes with" in told


def test_what_it_prints_leaves_standard_output_to_the_command(own):
    text = own.read_text().replace(
        "        return self.output(", "        print('in forward')\n        return self.output("
    )
    own.write_text("print('at import')\n" + text.replace("    net = model(", "    print('in build')\n    net = model("))
    code, out, err = tried("train", "my_recipe.py", *QUICK)
    assert code == 0
    for words in ("at import", "in build", "in forward"):
        assert words in err
    run = json.loads(out)["run"]  # nothing but JSON
    assert evaluated(run, "--code", "my_recipe.py")
    Path("new.csv").write_text(NEW)
    code, out, err = tried("predict", run, "new.csv", "--code", "my_recipe.py")
    assert out.splitlines()[0].startswith("class,")
    assert "in forward" in err


# ---- quoin new --------------------------------------------------------------------------------------------------


def test_new_refuses_what_it_should(own):
    before = own.read_bytes()
    assert "is there already" in refused("new", "my_recipe.py", "--from", "mlp")
    assert own.read_bytes() == before
    assert tried("new", "my_recipe.py", "--from", "mlp", "--force")[0] == 0
    assert b"copied from Quoin's `mlp`" in own.read_bytes()
    for name in ("my-recipe.py", "recipe", "1st.py", "class.py", "my recipe.py", ".py", "a.txt"):
        assert "expected the name of a Python module" in refused("new", name)
    assert "cannot be written (No such file" in refused("new", "nowhere/mine.py")
    assert "no recipe 'mpl'" in refused("new", "mine.py", "--from", "mpl")
    assert "got the file" in refused("new", "mine.py", "--from", "my_recipe.py")
    Path("folder.py").mkdir()
    assert "got the folder" in refused("new", "folder.py", "--force")


def test_new_copies_every_recipe_with_the_same_flags(here):
    for name in recipe_names():
        assert tried("new", "mine.py", "--from", name, "--force")[0] == 0
        copied, ours = find_recipe("mine.py"), find_recipe(name)
        described = [
            [(each.name, each.default, each.metadata) for each in dataclasses.fields(recipe.options)]
            for recipe in (copied, ours)
        ]
        assert described[0] == described[1]
        assert (copied.summary, copied.target, copied.monitor) == (ours.summary, ours.target, ours.monitor)
        COMMANDS["train"][1](Parser("quoin train", ""), ["mine.py"])


@pytest.mark.deep
@pytest.mark.parametrize(
    "name", ["lenet", "rnn-lm", "vae", "gmm", "gd-bound", "hmm", "translate-dates", "diffusion-2d"]
)
def test_a_copied_recipe_trains_to_the_same_numbers(name, here):
    assert tried("new", "mine.py", "--from", name)[0] == 0
    assert trained("mine.py")["metrics"] == trained(name)["metrics"]
    assert evaluated("runs/mine-1", "--trust-code") == trained(name)["metrics"]


# ---- recipes of installed packages ------------------------------------------------------------------------------


@pytest.fixture
def installed(own, monkeypatch):
    """A package with three recipes: one of a name of its own, one of a name of ours, one that does not import."""
    site = own.parent / "site"
    package, about = site / "acme_recipes", site / "acme_recipes-1.5.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").touch()
    for name in ("net", "mlp"):
        (package / f"{name}.py").write_text(own.read_text())
    (package / "broken.py").write_text("import nothing_of_the_kind\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-recipes\nVersion: 1.5\n")
    names = {"acme-net": "net", "mlp": "mlp", "acme-broken": "broken", "acme-missing": "missing"}
    lines = "".join(f"{name} = acme_recipes.{module}\n" for name, module in names.items())
    (about / "entry_points.txt").write_text(f"[quoin.recipes]\n{lines}")
    monkeypatch.syspath_prepend(site)
    yield site
    for name in [name for name in sys.modules if name.split(".")[0] == "acme_recipes"]:
        del sys.modules[name]


def test_a_package_offers_recipes(installed, monkeypatch):
    assert [each.origin for each in packaged_recipes()] == ["acme-recipes 1.5"] * 4
    found = trained("acme-net", "--width", 4)
    run = found["run"]
    assert (run, config_of(run)["package"], config_of(run)["code"]) == ("runs/acme-net-1", "acme-recipes", [])
    assert json.loads(Path(run, "environment.json").read_text())["recipe_package"] == "acme-recipes 1.5"
    assert evaluated(run) == found["metrics"]  # installed: it may run by its name
    assert find_recipe(find_recipe("acme-net").reference).module is find_recipe("acme-net").module
    # Of a name of ours, ours is meant.
    assert trained("mlp", "--data", "iris")["run"] == "runs/mlp-1"
    assert "package" not in config_of("runs/mlp-1")
    theirs = trained("acme-recipes:mlp")
    assert config_of(theirs["run"])["package"] == "acme-recipes"
    assert evaluated(theirs["run"]) == theirs["metrics"]
    assert "acme-recipes 1.5 does not import (ModuleNotFoundError" in refused("train", "acme-broken")
    Path(run, "result.json").unlink()
    about = installed / "acme_recipes-1.5.dist-info"
    (about / "METADATA").write_text((about / "METADATA").read_text().replace("1.5", "2.0"))
    assert "recipe_package acme-recipes 1.5 is now acme-recipes 2.0" in tried("resume", run)[2]
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(installed)])
    assert "no installed package 'acme-recipes' offers a recipe 'acme-net'" in refused("eval", run)


def test_the_list_shows_where_each_comes_from(installed):
    code, out, err = tried("list", "--json")
    listed = {each["name"]: each["origin"] for each in json.loads(out)}
    assert code == 0
    assert {name for name, origin in listed.items() if origin == "quoin"} == {*recipe_names()}
    assert {name: origin for name, origin in listed.items() if origin != "quoin"} == {
        "acme-net": "acme-recipes 1.5",
        "acme-recipes:mlp": "acme-recipes 1.5",
    }
    wrong = [line for line in err.splitlines() if line.startswith("note: ")]
    assert [line.split("'")[1] for line in wrong] == ["acme-broken", "acme-missing"]
    code, out, _ = tried("list")
    assert code == 0
    assert "From acme-recipes 1.5" in out
    assert "acme-net" in tried("list", "rows")[1]


def test_two_packages_that_offer_one_name(installed):
    about = installed / "zenith-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: zenith\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[quoin.recipes]\nacme-net = acme_recipes.net\n")
    assert "acme-recipes and zenith both offer a recipe 'acme-net'" in refused("train", "acme-net")
    assert trained("zenith:acme-net")["run"] == "runs/acme-net-1"


# ---- killed -----------------------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_of_an_own_recipe_ends_in_the_same_bits(number, project):
    words = ("project/my_recipe.py", "--epochs", 6, "--num-threads", 1, "--checkpoint-every", 5)
    stopped = subprocess.run(stopping(number, "train", *words), capture_output=True, text=True)
    assert stopped.returncode == (130 if number == signal.SIGINT else -number), stopped.stderr
    if number == signal.SIGINT:
        told = without_progress(stopped.stderr)
        assert told.rstrip().endswith("quoin resume runs/my-recipe-1 --code project/my_recipe.py")
    shutil.copytree("runs/my-recipe-1", "again")
    command = [sys.executable, "-m", "quoin.cli", "resume", "runs/my-recipe-1", "--code", "project/my_recipe.py"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    resume("again", code=CodeAccess(trust_copies=True))
    assert tried("train", *words, "--runs", "whole")[0] == 0
    whole = left_behind(RunFolder.open(Path("whole/my-recipe-1")))
    for run in ("runs/my-recipe-1", "again"):
        assert difference(whole, left_behind(RunFolder.open(Path(run)))) is None
