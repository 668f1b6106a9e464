"""What tools see: editors, type checkers and documentation generators find every public name, though packages load them
on first use."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import griffe
import pytest

import quoin

SOURCE = Path(quoin.__file__).parent
PACKAGES = sorted(
    path.parent.name for path in SOURCE.glob("*/__init__.py") if "__all__" in path.read_text(encoding="utf-8")
)


def exported(package: str) -> list[str]:
    return importlib.import_module(f"quoin.{package}").__all__


def test_the_wheel_says_that_it_is_typed():
    assert (SOURCE / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_completion_shows_every_public_name(package):
    assert {*exported(package)} <= {*dir(importlib.import_module(f"quoin.{package}"))}


@pytest.fixture(scope="module")
def documented():
    return griffe.load("quoin", search_paths=[str(SOURCE.parent)], resolve_aliases=True)


@pytest.mark.parametrize("package", PACKAGES)
def test_documentation_tools_find_every_public_name(package, documented):
    found = documented[package]
    assert {str(name) for name in found.exports} == {*exported(package)}
    for name in exported(package):
        target = found[name].final_target if found[name].is_alias else found[name]
        assert target.path.startswith("quoin."), name


def test_documentation_tools_find_the_short_ways(documented):
    found = [documented[name].final_target.path for name in ("fit", "open_run", "resume")]
    assert found == [f"quoin.runs.fit_module.{name}" for name in ("fit", "open_run", "resume")]


@pytest.mark.deep
def test_type_checkers_infer_every_public_name(tmp_path):
    lines = [
        f"from quoin.{package} import {name}\nreveal_type({name})" for package in PACKAGES for name in exported(package)
    ]
    lines += [f"from quoin import {name}\nreveal_type({name})" for name in ("fit", "open_run", "resume")]
    (tmp_path / "asks.py").write_text("\n".join(lines))
    asked = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(tmp_path / "asks.py")]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("{"), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    told = json.loads(done.stdout)["generalDiagnostics"]
    assert not [each["message"] for each in told if each["severity"] == "error"]
    types = [each["message"] for each in told if each["severity"] == "information"]
    assert len(types) == len(lines)
    assert not [message for message in types if 'is "Unknown"' in message]


def test_a_name_spelt_otherwise_is_suggested():
    asked = "import quoin.layers; quoin.layers.MultiheadAttention"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True).stderr
    assert told.splitlines()[-1].endswith("Did you mean: 'MultiHeadAttention'?")
