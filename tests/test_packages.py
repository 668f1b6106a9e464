"""The distribution of the packages, read from the source with `ast`: who may import whom, and what no package may do.

Each rule is a function from a package's folder to the list of its violations: empty for Quoin, and shown not to be
empty on a small package that breaks it.
"""

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from quoin.cli.packages import packages_table

HOUSE = Path(__file__).parents[1] / "src" / "quoin"
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"

BLOCKS = (
    "tensor plot autodiff prob layers info optim data models expressivity losses metrics generate inspect "
    "train options documents callbacks own_code display"
)
SPINE = f"{BLOCKS} estimators tasks runs"
MAY_IMPORT = {
    "errors": "",
    "display": "",
    "lazy": "",
    "processor": "",
    "workers": "",
    "callbacks": "",
    "own_code": "",
    "documents": "",
    "options": "own_code",
    "tensor": "",
    "plot": "tensor display",
    "autodiff": "tensor plot",
    "prob": "tensor",
    "layers": "tensor",
    "info": "tensor prob callbacks",
    "optim": "tensor autodiff",
    "data": "tensor prob documents callbacks",
    "models": "tensor prob layers",
    "expressivity": "tensor layers",
    "losses": "tensor prob info",
    "metrics": "tensor prob info losses",
    "generate": "tensor prob",
    "inspect": "tensor plot autodiff layers",
    "estimators": "tensor prob layers info optim data models losses metrics",
    "train": "tensor plot optim data options documents callbacks display",
    "tasks": BLOCKS,
    "runs": SPINE,
    "recipes": SPINE,
    "notes": f"{SPINE} workers",
    "bench": f"{SPINE} recipes notes",
    "lab": f"{SPINE} recipes notes bench workers",
    "cli": f"{SPINE} recipes notes bench lab",
    "__main__": "cli",
}
LOADS_BY_NAME = {
    ("runs/catalog.py", "quoin.recipes")
}  # the one that looks for recipes, and imports whichever was asked for
ANYWHERE = ("torch", "numpy", "jaxtyping")
GUESTS = {  # third parties and the paths where they may be imported
    "matplotlib": ("plot/", "notes/figures/"),
    "sklearn": ("data/", "estimators/", "bench/"),
    "rich": ("cli/", "train/progress.py"),
    "safetensors": ("train/", "models/pretrained.py"),
    "IPython": ("display/notebook.py",),
    "networkx": ("autodiff/", "plot/", "data/graphs.py"),
    "constriction": ("info/range_coding.py",),
    "tokenizers": ("data/bpe.py", "data/tokenizer_json.py", "runs/export/scripts/tokenizer.py"),
    "sacrebleu": ("metrics/translation.py",),
    "polars": ("data/", "bench/"),
    "PIL": ("data/", "bench/", "lab/parts/"),
    "platformdirs": ("data/cache.py",),
    "optuna": ("runs/sweep",),
    "pooch": ("data/fetching.py",),
    "tensorboard": ("train/tensorboard_logger.py",),
    "marimo": ("lab/", "cli/lab_command.py"),
    "anywidget": ("lab/parts/", "cli/lab_command.py"),
    "traitlets": ("lab/parts/",),
    "playwright": ("bench/lab_page.py",),
    "starlette": ("lab/frontend.py", "lab/server.py"),
    "uvicorn": ("lab/server.py",),
    "triton": ("layers/kernels/",),
    "fla": ("bench/",),
    "scipy": ("bench/",),
    "keras": ("bench/",),
    "jax": ("bench/",),
    "hmmlearn": ("bench/",),
    "performer_pytorch": ("bench/",),
    "statsmodels": ("bench/",),
    "nltk": ("bench/",),
    "transformers": ("bench/", "runs/export/huggingface/"),
    "diffusers": ("bench/", "runs/export/huggingface/"),
    "onnxruntime": ("bench/", "runs/export/"),
}
NOT_A_ROOM = {"utils", "util", "common", "misc", "core", "helpers", "helper"}
RUNS_WHAT_IT_READS = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
NAMED_BY_CALLER = {
    ("tensor/shapes.py", "arguments"),  # check_shapes("n d, m d", query=query, key=key): the names are the message's
    ("data/fetching.py", "settings"),  # `requests` gives its own to whom it calls back
    ("notes/figures/figure.py", "named"),  # a figure hands on what it is given, likewise
    ("layers/init.py", "named"),  # a decorator hands on what it is given, its types by ParamSpec
}
MOST_LINES = 400
# of classes in two packages; one side of each is bench's, a command's or a claim's own, and no part of the library
SAME_NAME = {
    "Counted",
    "Finding",
    "Problem",
    "Table",
    "Tables",
    "Target",
    "Text",
    "Work",
}
SHARED_BY_TESTS = {"seeded": "seeds.py", "assert_near": "near.py"}  # written once, and where


class Import(NamedTuple):
    module: str  # in full: `quoin.train.durable`
    line: int
    runs_at_once: bool  # at the import of the file: not inside a function, not for type checkers only


def files(house: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every file of the package: its path from there, and its tree."""
    for path in sorted(house.rglob("*.py")):
        yield path.relative_to(house).as_posix(), _parsed(path.read_bytes())


@functools.cache  # every rule reads every file
def _parsed(text: bytes) -> ast.Module:
    return ast.parse(text)


def package_of(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


@functools.cache
def imports(file: str, tree: ast.Module) -> list[Import]:
    """Everything `file` imports, wherever in it, by statement, by `import_module("quoin...")` or as an attribute
    `quoin.package`."""
    package = ["quoin", *file.split("/")[:-1]]

    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                yield from (Import(each.name, node.lineno, at_once) for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = ".".join(
                    [*(package[: len(package) - level + 1] if level else []), *([module] if module else [])]
                )
                yield from (Import(f"{base}.{each.name}", node.lineno, at_once) for each in names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[place, *_]):
                start = place.values[0] if isinstance(place, ast.JoinedStr) else place
                if isinstance(start, ast.Constant) and re.match(r"quoin\.\w", str(start.value)):
                    yield Import(str(start.value).rstrip("."), node.lineno, at_once)
            case ast.Attribute(value=ast.Name(id="quoin"), attr=attr) if not attr.startswith("_"):
                yield Import(f"quoin.{attr}", node.lineno, at_once)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            at_once = False
        for child in ast.iter_child_nodes(node):
            for_types = (
                isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and child in node.body
            )
            yield from walk(child, at_once and not for_types)

    return list(walk(tree, True))


# ---- the rules --------------------------------------------------------------------------------------------------


def walls(house: Path) -> list[str]:
    """A package imports only what its line of the table names; all may import errors, lazy, display and processor."""
    wrong = []
    for file, tree in files(house):
        package = package_of(file)
        if file == "__init__.py":
            allowed: set[str] = {"runs"}  # quoin.fit, quoin.resume and quoin.open_run are the short way to it
        elif package not in MAY_IMPORT:
            wrong.append(f"{file}: package {package!r} is not in the table")
            continue
        else:
            allowed = {package, "errors", "lazy", "display", "processor", *MAY_IMPORT[package].split()}
        for each in imports(file, tree):
            parts = each.module.split(".")
            if (file, each.module) in LOADS_BY_NAME:
                continue
            if parts[0] == "quoin" and len(parts) > 1 and not parts[1].startswith("_") and parts[1] not in allowed:
                wrong.append(f"{file}:{each.line} imports {each.module}")
    return wrong


def guests(house: Path) -> list[str]:
    """Third parties stand only where they may, and there are no others."""
    wrong = []
    for file, tree in files(house):
        for each in imports(file, tree):
            name = each.module.split(".")[0]
            if name in sys.stdlib_module_names or name in ("quoin", *ANYWHERE):
                continue
            if not any(file.startswith(place) for place in GUESTS.get(name, ())):
                wrong.append(f"{file}:{each.line} imports {name}")
    return wrong


def light(house: Path) -> list[str]:
    """What the command line imports before it knows what is asked, and every recipe file, bring in no torch at their
    import."""
    trees = dict(files(house))
    starts = [
        file
        for file in trees
        # every.py is no command: it trains as soon as it is run.
        if (file.startswith("cli/") and file != "cli/train_all.py")
        or re.fullmatch(r"recipes/[a-z]\w*\.py|notes/(map|__init__)\.py|(options|errors)\.py", file)
    ]
    wrong = []
    for start in starts:
        seen, todo = set(), [(start, start)]
        while todo:
            file, way = todo.pop()
            if file in seen:
                continue
            seen.add(file)
            for each in imports(file, trees[file]):
                if not each.runs_at_once:
                    continue
                if each.module.split(".")[0] == "torch":
                    wrong.append(f"{way} -> torch (line {each.line})")
                parts = each.module.split(".")[1:] if each.module.split(".")[0] == "quoin" else []
                for length in range(1, len(parts) + 1):  # importing a.b.c runs a, a.b and a.b.c
                    inside = "/".join(parts[:length])
                    todo += [
                        (name, f"{way} -> {name}")
                        for name in (f"{inside}.py", f"{inside}/__init__.py")
                        if name in trees
                    ]
    return wrong


def sizes(house: Path) -> list[str]:
    """A package's list of its public names is as long as it is."""
    counted = {
        path.relative_to(house).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in house.rglob("*.py")
        if path.name != "__init__.py"
    }
    return [f"{file} has {lines} lines" for file, lines in counted.items() if lines > MOST_LINES]


def names(house: Path) -> list[str]:
    """There is no package for things that have none."""
    return [
        str(path.relative_to(house))
        for path in house.rglob("*")
        if path.stem in NOT_A_ROOM and path.suffix in ("", ".py")
    ]


RUNS_USERS_CODE = ("own_code.py", "exec")  # the files that the user names, and the only place that runs them


def refusals(house: Path) -> list[str]:
    """No `**kwargs` parameter; nothing that runs code from a file or from text."""
    wrong = []
    for file, tree in files(house):
        wrong += [
            f"{file}:{each.line} {each.module}"
            for each in imports(file, tree)
            if each.module.split(".")[0] in RUNS_WHAT_IT_READS
        ]
        wrong += [f"{file}:{each.line} {each.module}" for each in imports(file, tree) if each.module == "torch.load"]
        for node in ast.walk(tree):
            match node:
                case ast.arguments(kwarg=ast.arg(arg=name)) if (file, name) not in NAMED_BY_CALLER:
                    wrong.append(f"{file} has a parameter **{name}")
                case ast.Call(func=ast.Name(id="eval" | "exec" as name)) if (file, name) != RUNS_USERS_CODE:
                    wrong.append(f"{file}:{node.lineno} {name}(")
                case ast.Attribute(
                    value=ast.Name(id="torch" | "builtins" as owner), attr="load" | "eval" | "exec" as name
                ):
                    wrong.append(f"{file}:{node.lineno} {owner}.{name}")
                case ast.keyword(arg="allow_pickle", value=value) if not (
                    isinstance(value, ast.Constant) and value.value is False
                ):
                    wrong.append(f"{file} allow_pickle")
    return wrong


def surfaces(house: Path) -> list[str]:
    """Every package says in `__all__` what is public."""
    packages = [file for file, _ in files(house) if re.fullmatch(r"[a-z]\w*(/__init__)?\.py", file)]
    trees = dict(files(house))
    told = {file for file in packages for node in trees[file].body if ast.unparse(node).startswith("__all__")}
    return [f"{file} has no __all__" for file in packages if file not in told]


def one_class_a_name(house: Path) -> list[str]:
    """No two packages have a public class of one name: a reader would take one for the other."""
    found: dict[str, set[str]] = {}
    for file, tree in files(house):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(package_of(file))
    return [
        f"{name} is a class of {', '.join(sorted(where))}"
        for name, where in found.items()
        if len(where) > 1 and name not in SAME_NAME
    ]


RULES: list[tuple[Callable[[Path], list[str]], dict[str, str]]] = [
    (walls, {"tensor/a.py": "def f():\n    from quoin.train import Loop\n"}),
    (walls, {"layers/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import quoin.models\n"}),
    (walls, {"data/a.py": "from quoin import plot\n"}),
    (walls, {"data/deep/a.py": "from ...train import x\n"}),
    (walls, {"models/a.py": "import quoin\n\ndef f():\n    return quoin.notes.claims.check\n"}),
    (walls, {"optim/a.py": "import importlib\nimportlib.import_module(f'quoin.cli.{1}')\n"}),
    (walls, {"options.py": "from quoin.tensor import x\n"}),
    (walls, {"attic/a.py": ""}),
    (guests, {"models/a.py": "def f():\n    import sklearn.datasets\n"}),
    (guests, {"train/trainer.py": "from rich.console import Console\n"}),
    (guests, {"cli/a.py": "import tyro\n"}),
    (guests, {"layers/a.py": "import matplotlib.pyplot\n"}),
    (
        light,
        {
            "cli/__init__.py": "from quoin.data import x",
            "data/__init__.py": "from quoin.data.a import x",
            "data/a.py": "import torch",
        },
    ),
    (
        light,
        {
            "recipes/__init__.py": "",
            "recipes/mlp.py": "try:\n    from torch import nn\nexcept ImportError:\n    pass\n",
        },
    ),
    (light, {"notes/map.py": "from quoin.errors import UserError\n", "errors.py": "class A:\n    import torch\n"}),
    (sizes, {"tensor/a.py": "\n" * 401}),
    (names, {"tensor/utils.py": ""}),
    (names, {"core/__init__.py": ""}),
    (refusals, {"layers/a.py": "def f(*a, **kwargs): ...\n"}),
    (refusals, {"layers/a.py": "f = lambda **how: how\n"}),
    (refusals, {"train/a.py": "import pickle\n"}),
    (refusals, {"train/a.py": "import torch\nx = torch.load('a')\n"}),
    (refusals, {"train/a.py": "from torch import load\n"}),
    (refusals, {"train/a.py": "exec('1')\n"}),
    (refusals, {"data/a.py": "import numpy\nx = numpy.load('a', allow_pickle=True)\n"}),
    (surfaces, {"tensor/__init__.py": "from quoin.tensor.a import x\n"}),
    (surfaces, {"errors.py": "x = 1\n"}),
    (one_class_a_name, {"prob/a.py": "class Distribution: ...\n", "models/b.py": "class Distribution: ...\n"}),
]


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_law(rule):
    assert rule(HOUSE) == []


@pytest.mark.parametrize(
    ("rule", "sources"), RULES, ids=[f"{rule.__name__}-{next(iter(source))}" for rule, source in RULES]
)
def test_a_breach_is_seen(rule, sources, tmp_path):
    for file, text in sources.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert len(rule(tmp_path)) >= 1


def test_what_is_allowed_passes(tmp_path):
    sources = {
        "__init__.py": "",
        "errors.py": "__all__ = []\n",
        "cli/__init__.py": "__all__ = []\nfrom quoin.data import load\n\ndef f():\n    import torch\n",
        "data/__init__.py": "__all__ = []\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "data/a.py": "import sklearn\nfrom quoin.errors import UserError\nfrom quoin.tensor import "
        "x\nf(**{})\nmodel.eval()\n",
        "tensor/__init__.py": "__all__: list[str] = []\n",
        "models/a.py": "import quoin\nv = quoin.__version__\n",
    }
    for file, text in sources.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert [violation for rule, _ in RULES for violation in rule(tmp_path)] == []


def test_what_tests_share_is_written_once():
    found = [
        (node.name, file)
        for file, tree in files(Path(__file__).parent)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in SHARED_BY_TESTS
    ]
    assert sorted(found) == sorted(SHARED_BY_TESTS.items())


# ---- what reading cannot show -----------------------------------------------------------------------------------


def test_public_names_exist():
    packages = sorted(path.stem for path in HOUSE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    for package in packages:
        if package.startswith("_"):
            continue
        module = importlib.import_module(f"quoin.{package}")
        assert len(set(module.__all__)) == len(module.__all__), package
        assert [name for name in module.__all__ if not hasattr(module, name)] == [], package
    assert {"tensor", "train", "cli"} <= set(packages)


def test_the_design_page_maps_the_packages():
    printed = re.search(
        r"<!-- packages -->\n(.*?)\n<!-- /packages -->", DESIGN.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert printed is not None, "docs/design.md lacks the markers of the map of packages"
    assert printed[1] == packages_table()


LIGHT = ["--help", "list", "list --json", "train --help", "map Z3.9", "map --packages"]
LIGHT += ["train mpl", "train mlp --data digit", "train --lr x", "train mlp --lr -1", "check Q1"]


def test_nothing_light_imports_torch():
    code = (
        "import sys\nfrom quoin.cli import main\nmain(sys.argv[1].split())\nsys.exit(99 if 'torch' in "
        "sys.modules else 0)"
    )
    for words in LIGHT:
        done = subprocess.run([sys.executable, "-c", code, words], capture_output=True)
        assert done.returncode == 0, (words, done.stderr)
    done = subprocess.run(
        [sys.executable, "-c", code.replace("main(sys.argv[1].split())", "import torch")], capture_output=True
    )
    assert done.returncode == 99  # the check can fail
