"""Nothing outside a run folder is ever touched: every entry of one in turn is a link, for every command that opens a
run.

The place that a link leads to is a copy of what stood there, so that whoever followed it would find all in order, with
folders beside it that a careless prune would take along. A path that the user gives may lead through links; what is in
the run may not.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from commands import KEPT, seen, tried
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser

QUICK = ["--max-steps", "4", "--checkpoint-every", "2", "--num-threads", "1"]

# For each command that takes a run, and each kind of run it takes: its words, the run as RUN.
WORDS: dict[str, dict[str, list[list[str]]]] = {
    "train": {"table": [["vae", "--classifier", "RUN", "--runs", "made", *QUICK]]},
    "resume": {"table": [["RUN"]], "study": [["RUN"]]},
    "eval": {"table": [["RUN"]]},
    "predict": {"table": [["RUN", "rows.npz"]]},
    "generate": {"text": [["RUN", "--max-tokens", "3"]], "points": [["RUN", "-n", "3"]]},
    "compare": {"table": [["RUN", "RUN"]], "text": [["RUN", "RUN"]], "study": [["RUN", "RUN"]]},
    "inspect": {"table": [["RUN"], ["RUN", "--format", "svg"]]},
    "export": {"table": [["RUN", "--to", "safetensors", "-o", "made", "--force"]]},
    "compress": {"text": [["short.txt", "--model", "RUN", "-o", "made.quoin", "--force"]]},
    "decompress": {"text": [["short.txt.quoin", "--model", "RUN", "-o", "made.txt", "--force"]]},
}
FILES = ["config.json", "environment.json", "metrics.jsonl", "result.json", "report.html", "lock"]
SAVED = [f"checkpoints/00000004/{name}" for name in ("tensors.safetensors", "state.json", "manifest.json")]
PARTS = [*FILES, "checkpoints", "checkpoints/00000002", "checkpoints/00000004"]
DRAFTS = [
    ".metrics.jsonl.draft",
    "checkpoints/.00000004.draft",
    "checkpoints/.git",
]  # names that were once taken for drafts
OUTPUTS = {  # what commands leave in a run by a name of their own, and the run in which they do
    "table": ["inspect.html", "inspect", "inspect/dead-units.svg", *DRAFTS],
    "points": ["samples.png", "strip.png", "traversal.png"],
}


def test_every_command_that_takes_a_run_is_listed():
    """By the arguments of its parser; `train` takes one as an option of a recipe."""
    takes = {"train"}
    for name, (_, add_words) in COMMANDS.items():
        parser = Parser(name, "")
        add_words(parser, [])
        takes |= {name} if any("RUN" in str(action.metavar) for action in parser._actions) else set()  # pyright: ignore
    assert takes == WORDS.keys()


# ---- the runs ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of each kind, and what the commands read; the table's run has all that `inspect` leaves, and is not
    finished."""
    place = tmp_path_factory.mktemp("trained")
    (place / "text.txt").write_text("the cat sat on the mat. " * 20)
    (place / "short.txt").write_text("cat")
    np.savez(place / "rows.npz", features=np.zeros((2, 4)))
    table = ["mlp", "--data", "iris", "--hidden-dims", "4", *QUICK]
    kinds = {"table": table, "text": ["ngram", "--data", f"text:{place}/text.txt", *QUICK], "points": ["gmm", *QUICK]}
    for kind, words in (kinds | {"study": [*table, "--seeds", "2"]}).items():
        assert tried("train", *words, "--runs", place / "made")[0] == 0
        (place / "made" / f"{words[0]}-1").rename(place / kind)
    for words in (
        ["inspect", place / "table"],
        ["inspect", place / "table", "--format", "svg"],
        ["generate", place / "points", "-n", "3"],
    ):
        assert tried(*words)[0] == 0
    assert tried("compress", place / "short.txt", "--model", place / "text")[0] == 0
    (place / "table" / "result.json").unlink()  # as after a kill: then `resume` saves and prunes
    (place / "study" / "seed-1" / "report.html").unlink()
    return place


@pytest.fixture
def place(trained, here) -> Path:
    """The working folder beside one of victims."""
    (here / "in").mkdir()
    (here / "outside").mkdir()
    for name in ("rows.npz", "short.txt", "short.txt.quoin"):
        shutil.copy(trained / name, here / "in")
    os.chdir(here / "in")
    return here


class Case(NamedTuple):
    kind: str  # of the run
    entry: str
    way: str  # in which the entry is spoilt

    @property
    def is_file(self) -> bool:
        return "." in self.entry.rpartition("/")[2].lstrip(".0123456789") or self.entry.endswith("lock")

    @property
    def is_worst(self) -> bool:
        """Whether all would be in order for someone who follows links."""
        return self.way == ("file" if self.is_file else "folder")

    def __str__(self) -> str:
        return " ".join(self)


def cases() -> Iterator[Case]:
    """Each entry as a link to a file, to a folder, to nothing; a file also as another name of one outside (a hard
    link), and as a pipe."""
    entries = {kind: [*PARTS, *SAVED, *OUTPUTS.get(kind, [])] for kind in ("table", "text", "points")}
    entries["study"] = [
        *FILES,
        "seed-0",
        "seed-1",
        *(f"seed-{n}/{part}" for n in range(2) for part in (*PARTS, *SAVED)),
    ]
    for kind, names in entries.items():
        for entry in names:
            yield from (Case(kind, entry, way) for way in ("file", "folder", "nothing"))
            yield from (Case(kind, entry, way) for way in ("hard", "pipe") if Case(kind, entry, way).is_file)


def spoil(trained: Path, place: Path, case: Case) -> None:
    """A copy of the run with a link, or a pipe, in the place of an entry; what a link leads to is a copy of what was
    there."""
    shutil.copytree(trained / case.kind, place / "in" / case.kind)
    path, outside = place / "in" / case.kind / case.entry, place / "outside"
    path.parent.mkdir(exist_ok=True)
    folder = outside / "folder"
    shutil.copytree(path, folder) if path.is_dir() else folder.mkdir()
    for name in KEPT:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (outside / "file").write_bytes(path.read_bytes() if path.is_file() else b"")
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if case.way == "pipe":
        os.mkfifo(path)
    elif case.way == "hard":
        os.link(outside / "file", path)
    else:
        path.symlink_to(outside / case.way)


def attempt(place: Path, case: Case, words: list[str]) -> None:
    """One command on the spoilt run: if it is refused it is so in one line, and the victims are as they were."""
    before = seen(place / "outside")
    code, _, err = tried(*[case.kind if word == "RUN" else word for word in words])
    assert seen(place / "outside") == before, words
    assert code in (0, 1, 2), (words, code)
    if code:
        assert len(err.splitlines()) == 1, (words, err)
        assert err.startswith("quoin: "), err
        assert len(err) <= 300, err
    # none but a link itself is a reason to refuse
    if case.way not in ("hard", "pipe") and case.entry in (
        *PARTS,
        "seed-0",
        "seed-1",
    ):
        assert code == 2, words
        assert f"{case.entry} to be" in err, (words, err)
    if case.entry in written(words):
        assert (code == 2) == (case.way != "hard"), (words, err)


def written(words: list[str]) -> list[str]:
    """The entries that a command writes by a name of its own."""
    if words[0] == "generate":
        return ["samples.png"]
    return (
        (["inspect", "inspect/dead-units.svg"] if "--format" in words else ["inspect.html"])
        if words[0] == "inspect"
        else []
    )


def on(kind: str) -> list[list[str]]:
    return [[name, *words] for name, by_kind in WORDS.items() for words in by_kind.get(kind, [])]


def is_quick(case: Case, words: list[str]) -> bool:
    """The worst way for every entry, all ways for the parts of one kind; where the run is good to go on with, only who
    writes there."""
    if case.entry in DRAFTS:
        return case.is_worst and words[0] == "resume"
    if case.entry in (*OUTPUTS["table"], *OUTPUTS["points"]):
        return case.entry in written(words) and case.way != "pipe"
    if case.way == "hard":
        return case.kind == "table" and words[0] == "resume" and case.entry in ("lock", "metrics.jsonl")
    if case.entry.endswith(tuple(SAVED)):
        return case.is_worst and case.kind == "table" and words[0] in ("resume", "eval", "predict")
    return (case.is_worst or case.kind == "table") and (case.kind != "study" or words[0] == "resume")


EVERY = [(case, [words for words in on(case.kind) if is_quick(case, words)]) for case in cases()]


@pytest.mark.parametrize(("case", "commands"), [pytest.param(*each, id=str(each[0])) for each in EVERY if each[1]])
def test_a_link_in_a_run_is_not_followed(case, commands, trained, place):
    spoil(trained, place, case)
    for words in commands:
        attempt(place, case, words)


@pytest.mark.deep
@pytest.mark.parametrize(("case", "commands"), [pytest.param(*each, id=str(each[0])) for each in EVERY])
def test_a_link_in_a_run_is_not_followed_by_any_command(case, commands, trained, place):
    spoil(trained, place, case)
    for words in on(case.kind):
        if words not in commands:
            attempt(place, case, words)


# ---- what the user named ----------------------------------------------------------------------------------------


def test_a_path_that_leads_through_links_is_the_users_own(trained, place):
    """runs/ on another disk, and a run that is a link itself, are followed; what is written lands in the run that they
    lead to."""
    disk = place / "disk"
    shutil.copytree(trained / "table", disk / "table")
    shutil.copytree(trained / "points", disk / "points")
    Path("runs").symlink_to(disk)
    Path("mine").symlink_to(disk / "points")
    assert tried("resume", "runs/table")[0] == 0
    assert (disk / "table" / "result.json").is_file()
    assert tried("generate", "mine", "-n", "2", "--strip")[0] in (0, 2)
    (disk / "points" / "samples.png").unlink()
    assert tried("generate", "mine", "-n", "2")[0] == 0
    assert (disk / "points" / "samples.png").is_file()
    assert not list(disk.rglob(".*"))


def test_the_page_of_compare_is_written_through_a_link_only_when_named(trained, place):
    shutil.copytree(trained / "table", "table")
    page = place / "outside" / "page.html"
    page.write_text("mine")
    before = seen(place / "outside")
    Path("compare.html").symlink_to(page)
    code, _, err = tried("compare", "table", "table")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "compare.html" in err
    assert seen(place / "outside") == before
    assert tried("compare", "table", "table", "--out", "compare.html")[0] == 0
    assert page.read_text() != "mine"
