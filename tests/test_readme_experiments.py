"""The commands of the pages on own code and on experiments, as a researcher runs them in an empty folder: a
recipe from `quoin new`, a new attention over three seeds against two baselines on an own text, the LaTeX table, a
sweep."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import blocks

pytestmark = pytest.mark.deep

BLOCKS = [block for page in ("docs/howto/code.md", "docs/howto/experiments.md") for block in blocks(page)]
COMMANDS = [block.text.splitlines() for block in BLOCKS if block.language == "sh"]
FILES = {
    block.first.removeprefix("# "): block.text
    for block in BLOCKS
    if block.language == "python" and block.first.startswith("# ")
}


def run(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=folder, env=os.environ | {"PATH": path}, text=True, capture_output=True
    )
    assert done.returncode == 0, f"$ {command}\n{done.stderr[-2000:]}"
    return done.stdout


def test_the_commands_run_as_printed(tmp_path):
    assert [block[0].split()[1] for block in COMMANDS] == ["new", "train", "sweep"]
    assert list(FILES) == ["my_attention.py"]
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words = re.findall(r"\w+", "The cat sat on a mat and saw one red dog run to its den by noon")
    text = " ".join(words[(7 * i * i + i // 3) % len(words)] for i in range(20_000))
    (tmp_path / "my.txt").write_text(re.sub(r"((?:\S+ ){9}\S+) ", r"\1.\n", text))
    told = {command: run(command, tmp_path) for block in COMMANDS for command in block}
    table = (tmp_path / "table.tex").read_text()
    assert "\\toprule" in table
    assert all(name in table for name in ("mine", "exact", "linear"))
    assert len(re.findall(r"\\pm", table)) >= 3
    generated = next(out for command, out in told.items() if command.startswith("quoin generate"))
    assert generated.startswith("The ")
    best = next(out for command, out in told.items() if command.startswith("quoin sweep"))
    assert best.splitlines()[:8] == told["quoin resume runs/sweep-mlp-1"].splitlines()[:8]
