"""Settings from files: what `--print-config` prints is what `--config` reads, for every recipe and every kind of value.

The reader of TOML is the standard library's; the writer is ours and is tried against it.
"""

import dataclasses
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import refused, tried
from quoin.cli.commands import parse
from quoin.cli.config_file import GivenConfig, RunPlace, config_text, config_values, read_given_config
from quoin.cli.flags import Parser, add_options, read_options
from quoin.cli.toml_text import format_toml
from quoin.errors import UserError
from quoin.options import ValidatedOptions, flag_name, option
from quoin.runs import RunConfig, find_recipe, recipe_names

QUICK = ["--max-steps", "2", "--num-threads", "1", "--json"]

# ---- the writer -------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SCALARS = st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False))


@given(st.one_of(SCALARS, st.lists(SCALARS, max_size=5)))
def test_the_writer_against_the_standard_reader(value):
    found = tomllib.loads(f"x = {format_toml(value)}\ny = 1\n")
    assert found == {"x": value, "y": 1}
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize(
    "text", ['a"b', "a\\b", "C:\\new\\table", "\r\n\t\b\f\0\x7f\x1b", "é語😀", "'''", '"""', "#", ""]
)
def test_texts_that_need_escapes(text):
    assert tomllib.loads(f"x = {format_toml(text)}") == {"x": text}


def test_what_toml_cannot_hold():
    with pytest.raises(UserError, match="TOML"):
        format_toml("a\udc80b")
    with pytest.raises(TypeError):
        format_toml(None)


# ---- every recipe, every kind of option -------------------------------------------------------------------------


def read_back(file: Path, *words: str) -> tuple[Any, Any, dict[str, Any]]:
    """The options, runtime options and flags of the run that `quoin train --config FILE` would start."""
    parsed = parse(["train", "--config", str(file), *words])
    found = vars(parsed)
    recipe = find_recipe(parsed.recipe)
    return (
        read_options(recipe.options, parsed),
        read_options(RunConfig, parsed),
        {name: found[name] for name in ("recipe", "runs", "name", "note", "tags", "seeds", "folds")},
    )


@pytest.mark.parametrize("name", recipe_names())
def test_the_printed_file_is_read_back_as_it_was(name, tmp_path):
    file = tmp_path / "c.toml"
    code, out, err = tried("train", name, "--seed", 7, "--num-threads", 3, "--print-config")
    assert (code, err) == (0, "")
    file.write_text(out, encoding="utf-8")
    options, run_config, place = read_back(file)
    recipe = find_recipe(name)
    assert options == recipe.options(seed=7)  # type: ignore[call-arg]
    assert run_config == RunConfig(num_threads=3)
    assert place == {"recipe": name, "runs": Path("runs"), "name": None, "note": "", "tags": (), "seeds": 0, "folds": 0}
    # complete: every option has its line, if only as a comment, and its help above
    held = tomllib.loads(out)
    for kind in (recipe.options, RunConfig, RunPlace):
        for each in dataclasses.fields(kind):
            assert each.name in held or f"\n# {each.name} =\n" in out
            assert " ".join(each.metadata["help"].split()) in " ".join(out.replace("\n# ", " ").split())
    assert tried("train", "--config", file, "--print-config")[1] == out


@dataclass(frozen=True)
class EveryKind(ValidatedOptions):
    """One option of each type that options have."""

    whole: int = option(1, "a whole number")
    number: float = option(0.5, "a number; 100% of it")
    words: str = option("", "text")
    switch: bool = option(True, "true or false")
    choice: Literal["a", "b-c", "0.5"] = option("a", "one of three")
    maybe_whole: int | None = option(None, "a whole number or none")
    maybe_number: float | None = option(0.5, "a number or none")
    maybe_words: str | None = option(None, "text or none")
    wholes: tuple[int, ...] = option((1, 2), "whole numbers")
    numbers: tuple[float, ...] = option((), "numbers")
    texts: tuple[str, ...] = option((), "texts")


FLOATS = st.floats(-1e30, 1e30)
EVERY_KIND = st.builds(
    EveryKind,
    whole=st.integers(-(2**62), 2**62),
    number=FLOATS,
    words=TEXTS,
    switch=st.booleans(),
    choice=st.sampled_from(["a", "b-c", "0.5"]),
    maybe_whole=st.none() | st.integers(-9, 9),
    maybe_number=FLOATS,
    maybe_words=st.none() | TEXTS,
    wholes=st.lists(st.integers(-9, 9), max_size=4).map(tuple),
    numbers=st.lists(FLOATS, max_size=4).map(tuple),
    texts=st.lists(TEXTS, max_size=4).map(tuple),
)
RECIPE: Any = SimpleNamespace(name="mine", reference="mine", summary="Mine.", options=EveryKind)


def parser_with(values: dict[str, Any]) -> Parser:
    parser = Parser("quoin train", "")
    add_options(parser, EveryKind, "options")
    GivenConfig("f", "mine", values).apply(parser, RECIPE, {})
    return parser


@given(EVERY_KIND, TEXTS, st.lists(TEXTS, max_size=3).map(tuple))
def test_every_kind_of_value_is_read_back_as_it_was(options, note, tags):
    place = RunPlace(note=note, tags=tags)
    text = config_text(RECIPE, config_values(RECIPE, options, RunConfig(), place))
    values = tomllib.loads(text)
    assert values.pop("recipe") == "mine"
    parsed = parser_with(values).parse([])
    assert read_options(EveryKind, parsed) == options
    assert (parsed.note, parsed.tags) == (note, tags)
    for name in ("number", "maybe_number"):
        assert isinstance(getattr(read_options(EveryKind, parsed), name), float)


FLAGS = {  # another value for each option, as a flag and as it is then
    "whole": ("5", 5),
    "number": ("2", 2.0),
    "words": ("w", "w"),
    "switch": (None, False),
    "choice": ("b-c", "b-c"),
    "maybe_whole": ("4", 4),
    "maybe_number": ("4", 4.0),
    "maybe_words": ("q", "q"),
    "wholes": ("9", (9,)),
    "numbers": ("9", (9.0,)),
    "texts": ("t", ("t",)),
}
IN_FILE = {
    "whole": 3,
    "number": 3,
    "words": "file",
    "switch": True,
    "choice": "0.5",
    "maybe_whole": 3,
    "maybe_number": 3.5,
    "maybe_words": "file",
    "wholes": [3, 3],
    "numbers": [3],
    "texts": ["file"],
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_wins_over_the_file_and_the_file_over_the_default(name):
    given, value = FLAGS[name]
    words = [f"--no-{name}"] if given is None else [flag_name(name), given]
    read = read_options(EveryKind, parser_with(IN_FILE).parse(words))
    for each in dataclasses.fields(EveryKind):
        in_file = tuple(IN_FILE[each.name]) if isinstance(IN_FILE[each.name], list) else IN_FILE[each.name]
        assert getattr(read, each.name) == (value if each.name == name else in_file)
    assert isinstance(read.number, float)  # where the file says 3
    assert all(isinstance(each, float) for each in read.numbers)
    assert read_options(EveryKind, parser_with({}).parse([])) == EveryKind()


def test_flags_of_the_run_win_as_well(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('recipe = "lenet"\nruns = "there"\nname = "n"\nnote = "a"\ntags = ["x", "y"]\nseeds = 3\n')
    _, _, place = read_back(file)
    file.write_text(file.read_text() + 'lr = "auto"\n')
    assert place | {"recipe": "lenet"} == {
        "recipe": "lenet",
        "runs": Path("there"),
        "name": "n",
        "note": "a",
        "tags": ("x", "y"),
        "seeds": 3,
        "folds": 0,
    }
    words = ["--runs", "r", "--name", "m", "--note", "b", "--tag", "z", "--seeds", "0", "--lr", "0.5", "--print-config"]
    found = json.loads(tried("train", "--config", file, *words, "--json")[1])
    assert {name: found[name] for name in (*place, "lr")} == {
        "recipe": "lenet",
        "runs": "r",
        "name": "m",
        "note": "b",
        "tags": ["z"],
        "seeds": 0,
        "folds": 0,
        "lr": 0.5,
    }
    assert tomllib.loads(tried("train", "--config", file, "--print-config")[1])["lr"] == "auto"


def test_nothing_is_trained_or_written(here):
    assert tried("train", "mlp", "--print-config", "--name", "x")[0] == 0
    assert not list(here.iterdir())


def test_a_run_is_what_the_file_says(here):
    Path("c.toml").write_text('recipe = "mlp"\nhidden_dims = [5]\nlr = 1\nname = "small"\nnote = "n"\ntags = ["t"]\n')
    code, _, err = tried("train", "--config", "c.toml", *QUICK)
    assert code == 0, err
    config = json.loads(Path("runs/small/config.json").read_text())
    assert (config["recipe"], config["options"]["hidden_dims"], config["options"]["lr"]) == ("mlp", [5], 1.0)
    assert (config["note"], config["tags"], config["settings"]["max_steps"]) == ("n", ["t"], 2)


# ---- the file of a run ------------------------------------------------------------------------------------------


def test_once_more_like_a_run(here, monkeypatch):
    (here / "deep" / "er").mkdir(parents=True)
    (here / "t.csv").write_text("a,b,label\n" + "".join(f"{i},{i * i % 7},{'xy'[i % 2]}\n" for i in range(24)))
    words = ["mlp", "--data", "csv:t.csv", "--hidden-dims", "3", "--optimizer", "adam", "--beta1", "0.8", *QUICK]
    assert tried("train", *words, "--name", "one", "--note", "only of this one")[0] == 0
    assert tried("train", "--config", "runs/one", *QUICK)[0] == 0
    one, again = (json.loads(Path(f"runs/{name}/config.json").read_text()) for name in ("one", "mlp-1"))
    for part in ("recipe", "options", "settings", "data"):
        assert again[part] == one[part], part
    assert (again["note"], again["tags"]) == ("", [])
    result = [json.loads(Path(f"runs/{name}/result.json").read_text())["metrics"] for name in ("one", "mlp-1")]
    assert result[0] == result[1]
    # with a flag that wins, from a folder elsewhere: its data are found; of a multirun, as often
    Path("runs/one/config.json").write_text(json.dumps(one | {"multirun": {"over": "seed", "count": 3}}))
    monkeypatch.chdir(here / "deep" / "er")
    words = ["mlp", "--config=../../runs/one/config.json", "--seed", 5]
    found = json.loads(tried("train", *words, "--print-config", "--json")[1])
    assert {name: found[name] for name in one["options"]} == one["options"] | {"seed": 5, "data": "csv:../../t.csv"}
    assert (found["seeds"], found["folds"], found["name"], found["note"]) == (3, 0, "", "")


# ---- mistakes ---------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[str, list[str]]] = {
    "no TOML": ("lr = 0.1\nlr 0.2\n", ["not TOML", "line 2"]),
    "twice": ("lr = 0.1\nlr = 0.2\n", ["not TOML", "line 2"]),
    "not text": ("lr = 0.1 # \udcff\n", ["not TOML", "utf-8"]),
    "too deep": (f"lr = {'[' * 5000}", ["not TOML"]),
    "an unknown key": ("learning = 0.1\n", ["no option 'learning'", "quoin train mlp"]),
    "a key with dashes": ("batch-size = 3\n", ["'batch-size'", "did you mean 'batch_size'"]),
    "a name of elsewhere": ("learning_rate = 3\n", ["did you mean 'lr'"]),
    "an option of another recipe": ("num_heads = 3\n", ["no option 'num_heads'", "mlp"]),
    "tag": ('tag = ["a"]\n', ["did you mean 'tags'"]),
    "a table": ("[options]\nlr = 0.1\n", ["table [options]", "no tables"]),
    "a table of an option": ("[lr]\nx = 0.1\n", ["lr expects a number"]),
    "text for a number": ('lr = "fast"\n', ["lr expects a number", "'fast'"]),
    "a fraction for a whole number": ("epochs = 1.5\n", ["epochs expects a whole number", "1.5"]),
    "a switch for a number": ("epochs = true\n", ["epochs expects a whole number", "True"]),
    "a number for a switch": ("compile = 1\n", ["compile expects true or false"]),
    "a number for text": ("note = 3\n", ["note expects text"]),
    "one for a list": ("hidden_dims = 8\n", ["a list of whole numbers", "hidden_dims = [8]"]),
    "text in a list": ('hidden_dims = [8, "a"]\n', ["a list of whole numbers"]),
    "a list in a list": ("hidden_dims = [[8]]\n", ["a list of whole numbers"]),
    "a date": ("epochs = 2026-01-01\n", ["epochs expects a whole number"]),
    "out of range": ("lr = -1\n", ["lr must be above 0.0", "-1"]),
    "not finite": ("lr = inf\n", ["lr must be a finite number"]),
    "a large number": (f"epochs = {10**30}\n", ["epochs", "at most"]),
    "no choice": ('optimizer = "addam"\n', ["optimizer", "did you mean 'adam'"]),
    "one seed": ("seeds = 1\n", ["seeds", "2 to 10000"]),
    "json": ("json = true\n", ["json", "command line only"]),
    "an unknown recipe": ('recipe = "mpl"\n', ["no recipe 'mpl'", "did you mean 'mlp'"]),
    "a recipe that is no name": ("recipe = 3\n", ["recipe expects a name"]),
    "a bad name": ('name = "a/b"\n', ["--name", "holds a /"]),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_costs_one_line(what, here):
    text, parts = MISTAKES[what]
    Path("c.toml").write_text(text, errors="surrogateescape")
    line = refused("train", "--config", "c.toml", *QUICK)
    for part in parts:
        assert part in line
    if what not in ("an unknown recipe", "a bad name"):
        assert "c.toml" in line
    assert [each.name for each in here.iterdir()] == ["c.toml"]


def test_the_file_is_for_another_recipe(here):
    Path("c.toml").write_text('recipe = "lenet"\n')
    line = refused("train", "mlp", "--config", "c.toml")
    assert "'lenet'" in line
    assert "'mlp'" in line
    assert tried("train", "lenet", "--config", "c.toml", "--print-config")[0] == 0


def test_no_file(here):
    for name in ("c.toml", "x" * 300, "a\0b", "here/c.toml"):
        assert "cannot be read" in refused("train", "mlp", "--config", name)
    Path("folder").mkdir()
    assert "'folder' cannot be read" in refused("train", "--config", "folder")
    Path("c.json").write_text('{"lr": 0.1}')
    assert "config.json of a run" in refused("train", "mlp", "--config", "c.json")
    assert "--config" in refused("train", "mlp", "--config")


def test_the_words_are_read_as_the_parser_reads_them(here):
    Path("a.toml").write_text("lr = 1\n")
    Path("b.toml").write_text("lr = 2\n")
    assert read_given_config([]).values == {}
    assert read_given_config(["mlp", "--config", "a.toml"]).values == {"lr": 1}
    assert read_given_config(["--config=b.toml", "--lr", "3"]).values == {"lr": 2}
    assert read_given_config(["--config=a.toml", "--config", "b.toml"]).values == {"lr": 2}
