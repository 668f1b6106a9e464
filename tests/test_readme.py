"""Every example of the README, run in order in an empty folder as a newcomer would, with `...` standing for what
varies."""

import dataclasses
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import without_progress
from quoin.cli.packages import packages_table
from quoin.runs import find_recipe, recipe_names

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def matches(expected: str, got: str) -> bool:
    return doctest.OutputChecker().check_output(expected.rstrip() + "\n", got.rstrip() + "\n", FLAGS)


def run_console(block: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", block, flags=re.MULTILINE):
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        told = without_progress(done.stdout)
        assert matches(expected, told), f"$ {command}\nexpected:\n{expected}\ngot:\n{told}"


def run_python(block: str, folder: Path, names: dict) -> None:
    test = doctest.DocTestParser().get_doctest(block, names, "README.md", "README.md", 0)
    printed: list[str] = []
    failed = (
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=printed.append, clear_globs=False).failed
    )
    names.update(test.globs)
    assert not failed, "".join(printed)


@pytest.mark.deep
def test_examples_run_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) >= 4
    names: dict = {}
    for language, block in BLOCKS:
        if language == "console":
            run_console(block, tmp_path)
        else:
            run_python(block, tmp_path, names)


@pytest.mark.parametrize("got", ["runs/mlp-3\n", "", "metric value\n"])
def test_a_wrong_output_is_noticed(got):
    assert not matches("1,200 steps in ... s; run runs/mlp-1\n", got)


def test_the_map_of_rooms_is_what_the_docstrings_say():
    printed = re.search(r"<!-- packages -->\n(.*?)\n<!-- /packages -->", README, flags=re.DOTALL)
    assert printed is not None
    assert printed[1] == packages_table(), "run `quoin map --packages` and paste its output into README.md"


def test_the_table_of_data_has_every_recipe_once():
    table = README.partition("| data | recipes |")[2].partition("\n\n")[0]
    named = re.findall(r"`([\w-]+)`", table)
    assert sorted(named) == sorted(recipe_names())
    without = re.findall(r"`([\w-]+)`", table.splitlines()[-1])
    for name in recipe_names():
        kinds = {each.name for each in dataclasses.fields(find_recipe(name).options)}
        assert ("data" in kinds) == (name not in without), name
