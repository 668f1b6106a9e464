"""Run folders that somebody edited or a disk damaged: whatever they hold, every command that opens one answers 0, 1 or
2 in one line."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from commands import tried
from quoin.data.data_info import DataInfo
from quoin.train import RunFolder
from quoin.train.checkpoint import checkpoint_steps
from run_folders import KINDS, USED, command_words, copy_to_resume, opening_commands, trained_once

COMMANDS = ["resume", "eval", "predict", "generate", "compare", "inspect", "export", "compress", "decompress"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs by kind; the working folder is where they are."""
    before, threads = os.getcwd(), torch.get_num_threads()
    shared = trained_once(tmp_path_factory)
    folder = tmp_path_factory.mktemp("damage") / "here"
    shutil.copytree(shared, folder)
    os.chdir(folder)
    yield json.loads((folder / "trained.json").read_text())
    os.chdir(before)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def answer(command: str, kind: str, whole: str, run: str = "run") -> tuple[int, str]:
    """What `command` says of the folder `run`; an exception or a warning fails the test by itself."""
    torch.set_num_threads(1)
    code, _, err = tried(*command_words(command, kind, run, whole))
    assert code in (0, 1, 2), (code, err)
    assert "Traceback" not in err
    if code:
        assert len(err.splitlines()) == 1, err
        assert len(err) <= 301, err  # and the line's end
        assert err.startswith("quoin: ")
    return code, err


def test_every_command_that_opens_a_run_is_tried(runs):
    assert opening_commands() == set(COMMANDS)


def test_every_kind_of_data_info_is_among_the_runs(runs):
    """A new kind of data needs a run here; each is read back as what it was."""
    whole = [RunFolder.open(Path(run)).config["data"] for run in runs.values()]
    for kind in DataInfo.__subclasses__():
        names = set(kind.__dataclass_fields__)
        assert any(data is not None and data.keys() == names for data in whole), kind


def test_every_whole_run_is_opened(runs):
    """The damage that follows is to runs that these commands answer with 0; the others are refused for what they
    are."""
    asked = [
        command for command in COMMANDS if command not in ("resume", "inspect")
    ]  # these two draw at length, and are tried below
    for kind, run in runs.items():
        copy_to_resume(run)
        codes = {command: answer(command, kind, run)[0] for command in asked}
        assert codes == {command: 0 if command in USED[kind] else 2 for command in asked}, kind


# ---- each damage that was seen, by name -------------------------------------------------------------------------


def edit(file: str, **changes):
    def damage(run: Path) -> None:
        value = json.loads((run / file).read_text())
        for place, new in changes.items():
            *way, last = place.split("__")
            inner = value
            for name in way:
                inner = inner[name]
            inner[last] = new
        (run / file).write_text(json.dumps(value))

    return damage


def metrics_line(text: str, *, last: bool = False):
    """The line stands before the whole ones, where no kill can have torn it, or after them."""

    def damage(run: Path) -> None:
        whole = (run / "metrics.jsonl").read_text()
        (run / "metrics.jsonl").write_text(f"{whole}{text}\n" if last else f"{text}\n{whole}")

    return damage


def stray_checkpoint(name: str):
    def damage(run: Path) -> None:
        newest = max((run / "checkpoints").iterdir())
        shutil.copytree(newest, run / "checkpoints" / name)

    return damage


def line(**values: object) -> str:
    return json.dumps({"step": 1, "epoch": 0.5, "seconds": 0.1, **values})


REFUSED = ["resume", "compare"]  # the commands that read metrics and results
NAMED = {  # damage: (kinds of runs, what it does, the commands that must refuse it)
    "a metrics line that is a list": (["classifier"], metrics_line("[1, 2]"), REFUSED),
    "a metrics line that is a number": (["classifier"], metrics_line("3"), REFUSED),
    "a metrics line without epoch": (
        ["classifier"],
        metrics_line('{"step": 1, "seconds": 1, "train_loss": 1}'),
        REFUSED,
    ),
    "a metrics line of text": (["classifier"], metrics_line(line(train_loss="low")), REFUSED),
    "a metrics line of no JSON": (["classifier"], metrics_line("nothing"), REFUSED),
    "a metrics line of a value 1e308": (
        ["classifier"],
        metrics_line(line(train_loss=1e308, validation_loss=-1e308)),
        [],
    ),
    "an epoch of 1e308": (["classifier"], metrics_line(line(epoch=1e308, train_loss=1.0)), []),
    "a metrics line of 400 digits": (["classifier"], metrics_line(line(train_loss=10**400)), REFUSED),
    "a metrics line [[[": (["classifier"], metrics_line("[[["), REFUSED),
    "a last metrics line [[[": (["classifier"], metrics_line("[[[", last=True), []),
    "a last metrics line of 100,000 brackets": (["classifier"], metrics_line("[" * 100_000, last=True), []),
    "a last metrics line of a list": (["classifier"], metrics_line("[1]", last=True), REFUSED),
    "a metric called as a formula": (
        ["classifier"],
        metrics_line(line(**{"train_$\\frac{$": 1.0, "validation_$x$ $": 2.0})),
        [],
    ),
    "a metric called by a control character": (
        ["classifier"],
        metrics_line(line(**{"train_\x00\x1b[2J": 1.0})),
        REFUSED,
    ),
    "metrics that are NaN": (["classifier"], metrics_line(line(train_loss=float("nan"))), REFUSED),
    **{
        f"a checkpoint called {name}": (["classifier"], stray_checkpoint(name), [])
        for name in ("²", "٣", "-1", "9" * 30, "0" * 30, "7")
    },
    "a study of a number": (["seeds", "classifier"], edit("config.json", multirun=5), COMMANDS),
    "a study of text": (["folds"], edit("config.json", multirun="seed"), COMMANDS),
    "a study over something else": (["seeds"], edit("config.json", multirun={"over": "days", "count": 2}), COMMANDS),
    "a study of 10**12 runs": (["seeds"], edit("config.json", multirun__count=10**12), COMMANDS),
    "no study where there is one": (["seeds"], edit("config.json", multirun=None), COMMANDS),
    "class names of a number": (
        ["classifier", "labels", "images", "drawn-images"],
        edit("config.json", data__class_names=3),
        ["predict"],
    ),
    "class names of numbers": (
        ["classifier", "labels", "drawn-images"],
        edit("config.json", data__class_names=[1, 2]),
        [],
    ),
    "class names of text": (["classifier", "labels", "drawn-images"], edit("config.json", data__class_names="xy"), []),
    "one class too few": (["classifier", "labels"], edit("config.json", data__class_names=["x"]), ["predict"]),
    "feature names of a number": (
        ["classifier", "regression"],
        edit("config.json", data__feature_names=3),
        ["predict"],
    ),
    "feature names of lists": (
        ["classifier", "regression"],
        edit("config.json", data__feature_names=[[], {}]),
        ["predict"],
    ),
    "one feature name too few": (
        ["classifier", "regression"],
        edit("config.json", data__feature_names=["a"]),
        ["predict"],
    ),
    "a shape of text": (["classifier", "regression"], edit("config.json", data__feature_shape=["2"]), ["predict"]),
    "a shape of -2": (["classifier"], edit("config.json", data__feature_shape=[-2, -1]), ["predict"]),
    "an image of 10**9 pixels a side": (
        ["drawn-images", "pixels"],
        edit("config.json", data__image_shape=[1, 10**9, 10**9]),
        ["generate"],
    ),
    "data of text": (["classifier", "language", "seeds"], edit("config.json", data="digits"), COMMANDS),
    "data of a list": (["translation"], edit("config.json", data=[1]), COMMANDS),
    "data that say nothing": (["classifier", "language"], edit("config.json", data={}), ["predict"]),
    "no data where there are some": (["classifier", "language", "pixels"], edit("config.json", data=None), ["predict"]),
    "a vocabulary of text": (
        ["language"],
        edit("config.json", data__tokenizer_json="abc"),
        ["generate", "compress", "compare"],
    ),
    "a vocabulary of numbers": (
        ["language", "counts"],
        edit("config.json", data__tokenizer_json__characters=[1, 2]),
        ["generate"],
    ),
    "a vocabulary of another kind": (
        ["language", "byte-pairs"],
        edit("config.json", data__tokenizer_json__kind=["bpe"]),
        ["generate"],
    ),
    "words that are none": (
        ["counts"],
        edit("config.json", data__tokenizer_json__words=[[], None]),
        ["generate", "compress"],
    ),
    "merges of text": (["byte-pairs"], edit("config.json", data__tokenizer_json__merges=[["a", "b"]]), ["generate"]),
    "merges of three": (["byte-pairs"], edit("config.json", data__tokenizer_json__merges=[[97, 98, 99]]), ["generate"]),
    "a source vocabulary of a number": (
        ["translation"],
        edit("config.json", data__source_tokenizer_json=7),
        ["predict"],
    ),
    "a target vocabulary of null": (
        ["translation"],
        edit("config.json", data__target_tokenizer_json=None),
        ["predict"],
    ),
    "a text vocabulary of a list": (["labels"], edit("config.json", data__tokenizer_json=[]), ["predict"]),
    "result metrics of a list": (["classifier", "seeds"], edit("result.json", metrics=[1]), ["compare"]),
    "result metrics of text": (
        ["classifier", "drawn-images"],
        edit("result.json", metrics={"test_loss": "low"}),
        ["compare"],
    ),
    "a result of 1e308": (
        ["classifier"],
        edit("result.json", metrics={"test_loss": 1e308, "test_$\\frac{$": -1e308}),
        [],
    ),
    "units beyond all memory": (
        ["classifier"],
        edit("config.json", options__hidden_dims=[10**9, 10**9]),
        ["predict", "resume"],
    ),
    "a language model beyond all memory": (
        ["language"],
        edit("config.json", options__hidden_dim=10**9),
        ["generate", "resume"],
    ),
    "an option of another type": (["regression", "mixture"], edit("config.json", options__seed="zero"), REFUSED),
    "a recipe that is none": (["classifier"], edit("config.json", recipe="mlp" * 60), COMMANDS[:4]),
    "an environment of a list": (["classifier"], edit("environment.json", threads=[1]), ["resume", "eval", "inspect"]),
}


DRAWING = ("resume", "compare", "inspect")
DRAWN = ("metric", "epoch", "result", "checkpoint")  # damage of such a name reaches what these commands draw


@pytest.mark.parametrize("name", NAMED)
def test_each_damage_by_name(name, runs):
    """Every command; those that draw at length, where the damage reaches them. All of them on all kinds are a matter of
    `make deep`."""
    kinds, _, refusing = NAMED[name]
    reached = [
        each for each in COMMANDS if each in refusing or each not in DRAWING or any(word in name for word in DRAWN)
    ]
    for kind in kinds:
        refuse_or_answer(name, kind, reached if kind == kinds[0] else refusing, runs)


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMED)
def test_each_damage_by_name_to_all_that_it_is_named_for(name, runs):
    for kind in NAMED[name][0]:
        refuse_or_answer(name, kind, COMMANDS, runs)


def refuse_or_answer(name: str, kind: str, commands: list[str], runs: dict[str, str]) -> None:
    _, damage, refusing = NAMED[name]
    for command in commands:
        copy_to_resume(runs[kind])
        damage(Path("run"))
        code, _ = answer(command, kind, runs[kind])
        assert code == 2 or command not in refusing, (kind, command)


# ---- states that are well sealed and lack something -------------------------------------------------------------


def reseal(checkpoint: Path, state: object) -> None:
    """Write `state` as the checkpoint's, with the hashes that belong to it."""
    content = json.dumps(state).encode()
    (checkpoint / "state.json").write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["files"]["state.json"] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    del manifest["sha256"]
    sealed = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    manifest["sha256"] = hashlib.sha256(sealed).hexdigest()
    (checkpoint / "manifest.json").write_bytes(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())


def names_to(value: object, depth: int) -> list[tuple[str, ...]]:
    """The ways to everything with a name, down to a depth."""
    if not isinstance(value, dict) or not depth:
        return []
    return [
        way
        for name, inner in value.items()
        for way in [(name,), *((name, *rest) for rest in names_to(inner, depth - 1))]
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("seeds", "folds")])
def test_a_state_that_lacks_something(kind, runs):
    run = copy_to_resume(runs[kind])
    checkpoint = max((run / "checkpoints").iterdir())
    state = json.loads((checkpoint / "state.json").read_text())
    commands = [command for command in ("eval", "predict", "generate") if answer(command, kind, runs[kind])[0] == 0]
    for way in names_to(state, 2):
        for new in ("gone", 5):
            changed = json.loads(json.dumps(state))
            inner = changed
            for name in way[:-1]:
                inner = inner[name]
            if new == "gone":
                del inner[way[-1]]
            else:
                inner[way[-1]] = {"$float": "nan"} if way[-1] == "weights" else new
            reseal(checkpoint, changed)
            codes = [answer(command, kind, runs[kind])[0] for command in commands]
            assert len(way) > 1 or new != "gone" or set(codes) == {2}, (way, codes)


# ---- any damage -------------------------------------------------------------------------------------------------

DEEP = ["[" * 100_000, "[" * 200 + "]" * 200, '{"a":' * 40 + "1" + "}" * 40]
RAW = [*DEEP, "9" * 5000, "9" * 400, "1e999", "NaN", "-Infinity", '"\\ud800"', '"\\u0000"', "\x00", "1e", "{]"]
NAMES = ["null", "../..", "/", "auto", "digits", "cpu", "1/2", "seed", "fold", "bytes"]
ODD = [*NAMES, "", " ", "²", "٣", "-1", "$\\frac{$", "$", "\x1b[2J", "\n", "\ud800", "\0", "a" * 5000]
# No whole number between 10 and 2**63: where an option allows it, it is legal and only takes its time.
NUMBERS = [-(10**30), -1, 0, 1, 2, 3, 0.5, -0.0, 1.5, 1e-320, 1e308, -1e308, 2**63, 10**30, 10**400]
MARKED = st.sampled_from([["raw", each] for each in RAW])
LEAVES = st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(ODD), MARKED)
OBJECTS = st.dictionaries(st.sampled_from(["kind", "over", "mean", "$", "a"]), LEAVES, max_size=2)
VALUES = st.one_of(LEAVES, st.lists(LEAVES, max_size=3), OBJECTS)
FILES = [
    "config.json",
    "config.json",
    "config.json",
    "metrics.jsonl",
    "metrics.jsonl",
    "result.json",
    "result.json",
    "environment.json",
]
HOWS = ["replace"] * 9 + ["delete", "delete", "double", "rename", "cut", "bytes", "empty", "gone", "checkpoint"]
STRAYS = ["²", "٣", "-1", "9" * 30, "0" * 30, "１２", "00000002", "00000000", "12", "+1", "1e3", " 1", "_"]
OFTEN = ("data", "multirun", "metrics", "tokenizer_json", "class_names")  # what the commands look into beyond the type
MARK = "the raw text goes here"


@st.composite
def damages(draw) -> dict:
    kind = draw(st.sampled_from(list(USED)))
    return {
        "kind": kind,
        "command": draw(st.sampled_from([*(sorted(USED[kind]) * 4), *COMMANDS])),
        "file": draw(st.sampled_from(FILES)),
        "how": draw(st.sampled_from(HOWS)),
        "at": draw(st.integers(0, 2**20)),
        "way": draw(st.lists(st.integers(0, 2**20), min_size=1, max_size=5)),
        "value": draw(VALUES),
        "name": draw(st.sampled_from([*ODD, *STRAYS])),
    }


def way_to(value: object, places: list[int]) -> tuple:
    """The way to a node of a JSON value: at each level any of the children, so that a long list does not take all
    tries."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    inner += [name for name in inner if name in OFTEN and value[name]] * 5
    if not inner or not places:
        return ()
    name = inner[places[0] % len(inner)]
    return name, *way_to(value[name], places[1:])


def in_raw_text(value: object, raw: list[str]) -> object:
    """`value` with a mark wherever raw text is to stand."""
    if isinstance(value, list) and len(value) == 2 and value[0] == "raw":
        raw.append(value[1])
        return MARK
    if isinstance(value, dict):
        return {name: in_raw_text(each, raw) for name, each in value.items()}
    return [in_raw_text(each, raw) for each in value] if isinstance(value, list) else value


def damaged_text(text: str, damage: dict) -> str:
    """One node of a JSON text replaced, deleted, doubled or renamed."""
    holder, raw = {"it": json.loads(text)}, []
    way = ("it", *way_to(holder["it"], damage["way"]))
    inner = holder
    for name in way[:-1]:
        inner = inner[name]
    last, new = way[-1], in_raw_text(damage["value"], raw)
    if way == ("it", "settings", "compile") and new is True:
        new = 5  # it would start a C++ compiler
    if damage["how"] == "replace" or len(way) == 1:
        inner[last] = new
    elif damage["how"] == "delete":
        del inner[last]
    elif isinstance(inner, list):
        inner.append(inner[last])
    elif damage["how"] == "double":
        inner[damage["name"]] = inner[last]
    else:
        inner[damage["name"]] = inner.pop(last)
    written = json.dumps(holder["it"])
    for each in raw:
        written = written.replace(json.dumps(MARK), each, 1)
    return written


def apply(damage: dict, run: Path) -> None:
    file, how = run / damage["file"], damage["how"]
    if how == "checkpoint":
        stray = run / "checkpoints" / damage["name"].replace("\0", "").replace("/", "").replace("\ud800", "")[:100]
        if not stray.exists():
            stray.mkdir(parents=True)
    elif not file.exists():
        file.write_text(json.dumps(in_raw_text(damage["value"], [])))
    elif how == "gone":
        file.unlink()
    elif how in ("cut", "bytes", "empty"):
        content = file.read_bytes()
        at = damage["at"] % len(content)
        file.write_bytes(
            {"cut": content[:at], "bytes": content[:at] + b"\xff\x00\xfe" + content[at:], "empty": b""}[how]
        )
    elif damage["file"] == "metrics.jsonl":
        lines = file.read_text().splitlines()
        number = damage["at"] % len(lines)
        lines[number] = damaged_text(lines[number], damage)
        file.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    else:
        file.write_bytes(damaged_text(file.read_text(), damage).encode("utf-8", "surrogatepass"))


EXAMPLES = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[
        Phase.explicit,
        Phase.generate,
    ],  # a failure is told as it came: each try to make it smaller is a run of its own
    suppress_health_check=list(HealthCheck),
)


def try_damage(damage: dict, runs: dict[str, str]) -> None:
    kind, command, run = damage["kind"], damage["command"], copy_to_resume(runs[damage["kind"]])
    inside = run / f"{kind[:-1]}-{damage['at'] // 2 % 2}" if kind in ("seeds", "folds") and damage["at"] % 2 else run
    apply(damage, inside)
    answer(command, kind, runs[kind], str(run if command in ("resume", "compare") else inside))


@EXAMPLES
@given(damage=damages())
def test_any_damage_is_answered_in_one_line(damage, runs):
    try_damage(damage, runs)


@pytest.mark.deep
@settings(EXAMPLES, max_examples=2000)
@given(damage=damages())
def test_any_damage_is_answered_in_one_line_at_length(damage, runs):
    try_damage(damage, runs)


def test_odd_names_are_no_checkpoints(tmp_path):
    for name in [*STRAYS, "00000004"]:
        (tmp_path / name).mkdir()
    assert checkpoint_steps(tmp_path) == [0, 2, 4]
