"""Every example of README and docs, run page by page in an empty folder as a newcomer would, with `...` standing for
what varies; and every other block is run by another test, or in the list of those that cannot run here."""

import dataclasses
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from commands import without_progress
from pages import PAGES, Block, blocks, is_example, read
from quoin.cli.packages import packages_table
from quoin.runs import find_recipe, recipe_names

WITH_EXAMPLES = [page for page in PAGES if any(map(is_example, blocks(page)))]
DATA = "docs/howto/data.md"

# Blocks that other tests run.
ELSEWHERE = {
    DATA: "test_five_data_sets.py",
    "docs/howto/code.md": "test_readme_experiments.py",
    "docs/howto/experiments.md": "test_readme_experiments.py",
}
# Commands that only have to succeed.
COMMANDS = {
    ("docs/howto/gpu.md", "quoin train lenet --processes 2"),
    ("docs/howto/gpu.md", "quoin plan transformer-lm --size gpt2 --batch-size 512"),
    ("docs/scaling.md", "quoin plan transformer-lm --embed-dim 4096 --num-heads"),
}
# What cannot run here, and why. A block that is new must be run or stand here, by its page and how it begins.
NOT_RUN = {
    ("README.md", "make demo"): "installs",
    ("docs/start.md", "make demo"): "installs",
    ("docs/start.md", "python3 -m venv .venv"): "installs",
    ("docs/howto/gpu.md", "quoin train transformer-lm --size gpt2 --data tokens"): "eight GPUs",
    ("docs/howto/lab.md", "quoin lab"): "a server, which runs until it is stopped; it has tests of its own",
    ("docs/processes.md", "quoin train transformer-lm --processes 4"): "hours; test_several_processes.py has less",
    ("docs/processes.md", "torchrun --nnodes 2 --node-rank 0"): "two machines",
    ("docs/processes.md", "#!/bin/bash"): "SLURM",
    ("docs/citing.md", "@software{quoin,"): "no code",
}
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
    test = doctest.DocTestParser().get_doctest(block, names, "page", "page", 0)
    printed: list[str] = []
    failed = (
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=printed.append, clear_globs=False).failed
    )
    names.update(test.globs)
    assert not failed, "".join(printed)


@pytest.mark.deep
@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in filter(is_example, blocks(page)):
        if block.language == "console":
            run_console(block.text, tmp_path)
        else:
            run_python(block.text, tmp_path, names)


def listed(block: Block, among: Iterable[tuple[str, str]]) -> bool:
    return any(block.page == page and block.text.startswith(begin) for page, begin in among)


def commands() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if listed(block, COMMANDS)]


@pytest.mark.deep
@pytest.mark.parametrize("block", commands(), ids=lambda block: block.first[:20])
def test_commands_succeed(block, tmp_path):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", block.text], cwd=tmp_path, env=environment, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_block_is_run_or_listed():
    other = [block for page in PAGES for block in blocks(page) if not is_example(block)]
    assert [block for block in other if block.page not in ELSEWHERE and not listed(block, [*COMMANDS, *NOT_RUN])] == []
    for entry in (*COMMANDS, *NOT_RUN):  # none is left of a block that is gone
        assert sum(listed(block, [entry]) for block in other) == 1, entry
    assert {block.language for block in other if block.page in ELSEWHERE} == {"sh", "python"}
    assert len(WITH_EXAMPLES) >= 7
    text = "".join(map(read, PAGES))
    assert len(re.findall(r"(?m)^```", text)) == 2 * sum(len(blocks(page)) for page in PAGES)  # none was overlooked
    assert "~~~" not in text


@pytest.mark.parametrize("got", ["runs/mlp-3\n", "", "metric value\n"])
def test_a_wrong_output_is_noticed(got):
    assert not matches("1,200 steps in ... s; run runs/mlp-1\n", got)


def test_the_map_of_packages_is_what_the_docstrings_say():
    printed = re.search(r"<!-- packages -->\n(.*?)\n<!-- /packages -->", read("docs/design.md"), flags=re.DOTALL)
    assert printed is not None
    assert printed[1] == packages_table(), "run `quoin map --packages` and paste its output into docs/design.md"


def test_the_table_of_data_has_every_recipe_once():
    table = read(DATA).partition("| data | recipes |")[2].partition("\n\n")[0]
    named = re.findall(r"`([\w-]+)`", table)
    assert sorted(named) == sorted(recipe_names())
    without = re.findall(r"`([\w-]+)`", table.splitlines()[-1])
    for name in recipe_names():
        kinds = {each.name for each in dataclasses.fields(find_recipe(name).options)}
        assert ("data" in kinds) == (name not in without), name


def test_the_readme_is_short():
    assert len(read("README.md").splitlines()) <= 130
