"""Every option of every recipe does something: another value changes what the run does, not only what its config says.

Options are found in the recipes' dataclasses and another value is derived from a field's type, so a new option needs no
line here. The tables hold what cannot be guessed: values that bite, other options under which one matters, small sizes
for speed.
"""

import dataclasses
import functools
import itertools
import json
import typing
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image

from commands import refused, tried
from observing import Seen, difference, other_values, rates_of_all_differ
from quoin.errors import UserError
from quoin.options import choices_of, flag_name
from quoin.runs import Recipe, find_recipe, recipe_names
from quoin.tasks.options import DemonstrationOptions

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = (
    "gan",
    "gmm",
    "lenet",
    "mlp",
    "optimizer-race",
    "transformer-lm",
)  # six unlike ones; the others are for `make deep`


def recipes(*quick: str) -> list[Any]:
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.deep) for name in recipe_names()]


# Less to compute, by the name of the option; what is not named here has the recipe's own default.
SMALL: dict[str, Any] = {
    "epochs": 1,
    "max_iter": 1,
    "num_bandwidths": 1,
    "max_degree": 0,
    "num_doublings": 0,
    "num_pairs": 200,
    "num_texts": 200,
    "num_samples": 20,
    "num_importance_samples": 5,
    "num_repeats": 20,
    "batch_size": 8,
    "batch_sizes": (2, 8),
    "num_examples": 64,
    "num_rows": 40,
    "performer_features": (4, 8),
}
OF_TABLES = {
    "target",
    "ignore",
}  # name columns of a CSV file; recipes of images take none, and must then refuse these by name
# Options of a file of another kind, such as its columns, and that file; its symbols are numbers too.
OF_FILES = {"emission": "events", "id_column": "events", "time_column": "events", "symbol_column": "events"}
OF_FILES |= {"text_column": "texts", "source_column": "texts", "target_column": "texts"}
OF_PICTURES = {
    "image_size": "pictures",
    "image_channels": "pictures",
    "skip_broken": "broken",
}  # change what is read of images:FOLDER, the one named here; other data must refuse these by name
OF_TWO_CLASSES = {"class_weight", "threshold"}  # matter only where classes are unequal, or two
OF_OWN_DATA = {"fold": "csv"}  # refused with the generated data of a recipe, and what is given instead
SMALL_DATA = {
    "digits": "npz",
    "topics": "text",
    "waves": "signals",
}  # the form of a small file for the data that a recipe has by default
# Values that bite where the derived ones may not.
TELLING: dict[str, list[Any]] = {
    "batch_size": [1, 4],
    "classifier": [""],
    "max_grad_norm": [1e-3],
    "monitor": ["validation_loss"],
    "fold": ["1/3"],
    "kernel_size": [3],
    "ignore": [("a",)],
    "image_channels": [1],
    "image_size": [8],
    "kl_warmup_ratio": [0.9],
    "loss": [f"{Path(__file__).with_name('own_example.py')}:loss"],
    "min_variance": [0.9],
    "num_kv_heads": [1],
    "num_rows": [20],
    "pseudo_counts": [(0.5,)],
    "skip_broken": [True],
    "target": [("b",), "b"],
    "vocab_size": [20, 100, 300],
    "id_column": ["other_case"],
    "time_column": ["other_time"],
    "symbol_column": ["kind"],
    "text_column": ["body"],
    "source_column": ["body"],
    "target_column": ["title"],
    "embed_dim": [32, 24, 48],
}
# What suits one recipe.
OF_ONE: dict[str, dict[str, Any]] = {
    "gcn": {"batch_size": 1},
    "inductive-bias": {"num_rows": (20, 40)},
    "markov-source": {"sequence_length": 20_000},
    "nin": {"seed": 1},  # with seed 0 both of two classes begin, and stay, where the last ReLU is zero
    "ppca": {"latent_dim": 2},  # below the columns that --ignore leaves
}
# Another option without which one has nothing to say; taken where the recipe has that option.
CONTEXT: dict[str, dict[str, Any]] = {
    "epochs": {"schedule": "cosine"},
    "num_features": {"attention": "performer"},
    "optimizer": {"weight_decay": 0.1},  # which alone tells adam from adamw
    "momentum": {"optimizer": "momentum"},
    "beta1": {"optimizer": "adam"},
    "beta2": {"optimizer": "adam"},
    "alpha": {"optimizer": "rmsprop"},
    "rho": {"optimizer": "adadelta"},
    "micro_batch_size": {"batch_size": 8},
    "pseudo_counts": {"smoothing": "laplace"},
    "tie_embeddings": {"embed_dim": 32, "hidden_dim": 32, "num_heads": 2},
    "num_kv_heads": {"block": "llama", "num_heads": 2, "embed_dim": 32},
    "vocab_size": {"tokenizer": "word", "source_tokenizer": "word", "target_tokenizer": "word"},
}
# What an option claims to change, where any difference would be too little.
CLAIMS = {"batch_size": "rows", "micro_batch_size": "shapes"}
RATES = {"epochs", "lr", "schedule", "warmup_ratio"}  # every optimizer of a run follows these
INERT = {("ngram", "seed"): "counts: nothing is drawn"}
EPOCHS = {"epochs", "max_iter", "num_bandwidths", "max_degree", "num_doublings"}  # one of which every recipe has
ONE_EPOCH = {"markov-chain": "counts every sequence once"}  # but for these
# files and sizes that small images do not have: tried in test_fine_tuning.py and test_image_recipes.py
# Gaps and test sets: in test_tables.py and test_own_table.py.
ELSEWHERE = {"missing", "test_data", "freeze", "image_mean", "image_std", "pretrained", "pretrained_sha256", "size"}
# When a run stops and what it keeps: see test_a_run_stops_when_asked.
BY_THE_RUN = EPOCHS | {"patience", "monitor"}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    """A small source of every form that is read from a file."""
    folder = tmp_path_factory.mktemp("sources")
    draw = numpy.random.default_rng(0)
    for name in ("images", "others"):
        numpy.savez(
            folder / f"{name}.npz", features=draw.integers(0, 17, (90, 8, 8)) / 16, targets=numpy.arange(90) % 3
        )
    numpy.savez(folder / "signals.npz", features=draw.standard_normal((60, 2, 12)), targets=numpy.arange(60) % 3)
    numpy.savez(folder / "two.npz", features=draw.random((90, 8, 8)), targets=numpy.arange(90) % 3 // 2)
    for number, pixels in enumerate(draw.integers(0, 256, (90, 10, 10, 3), dtype=numpy.uint8)):
        for name in ("pictures", "broken"):
            (folder / name / f"c{number % 3}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / name / f"c{number % 3}" / f"{number}.png")
    (folder / "broken" / "c0" / "0.png").write_text("no picture")  # must be left out, or all is refused
    lines = [f"{x:.3f},{b},{c},{y}" for x, (b, c, y) in zip(draw.random(60), draw.integers(0, 2, (60, 3)))]
    (folder / "one.csv").write_text("\n".join(["x,y", *(f"{x:.3f},{x * x:.3f}" for x in draw.random(60))]))
    (folder / "table.csv").write_text("\n".join(["a,b,c,y", *lines]))
    words = (
        "the",
        "model",
        "of",
        "a",
        "law",
        "is",
        "drawn",
        "from",
        "data",
        "and",
        "so",
        "are",
        "these",
        "words",
        "again",
    )
    (folder / "text.txt").write_text("\n".join(" ".join(draw.choice(words, 9)) for _ in range(120)))
    (folder / "pairs.tsv").write_text(
        "\n".join(f"{' '.join(draw.choice(words, 4))}\t{'even' if n % 2 else 'odd'}" for n in range(80))
    )
    write_columns(folder)
    # Where images are judged, by the classifier of a run: one of its own would be trained anew in every case.
    trained = tried(
        "train",
        "lenet",
        "--data",
        f"npz:{folder / 'images.npz'}",
        "--max-steps",
        2,
        "--num-threads",
        1,
        "--json",
        "--runs",
        folder,
    )
    names = {"npz": "images.npz", "csv": "table.csv", "text": "text.txt", "tsv": "pairs.tsv", "signals": "signals.npz"}
    found = {form: f"{form}:{folder / name}" for form, name in names.items()}
    found |= {name: f"csv:{folder / name}.csv" for name in ("events", "texts")}
    found |= {
        "others": f"npz:{folder / 'others.npz'}",
        "two": f"npz:{folder / 'two.npz'}",
        "one": f"csv:{folder / 'one.csv'}",
    }
    found |= {name: f"images:{folder / name}" for name in ("pictures", "broken")}
    return found | {"classifier": json.loads(trained[1])["run"]}


def write_columns(folder: Path) -> None:
    """An event log and a table of texts, with more columns of each kind than one."""
    draw = numpy.random.default_rng(1)
    events = ["case,time,event,other_case,other_time,kind"]
    for row in range(300):
        a, b, c = draw.integers(0, 3, 3)
        events.append(f"{row % 20},{row},{a},{row % 15},{draw.integers(1000)},{'uvw'[b if c else a]}")
    (folder / "events.csv").write_text("\n".join(events))
    words = ("the", "model", "of", "a", "law")
    texts = [
        ",".join(
            [" ".join(draw.choice(words, 4)), " ".join(draw.choice(words, 3)), "xxy"[n % 3], words[n % 5], f"{n}a"]
        )
        for n in range(60)
    ]
    (folder / "texts.csv").write_text(
        "\n".join(["text,body,label,title,source,tgt", *(f"{line},{line[:3]}" for line in texts)])
    )


class Cases:
    """The options of one recipe, each with other values, under which it is looked at."""

    def __init__(self, name: str, files: dict[str, str]) -> None:
        self.recipe, self.files = find_recipe(name), files
        self.kinds = typing.get_type_hints(self.recipe.options)
        self.seen = functools.cache(self._seen)

    def base(self, option: str) -> Any:
        """The options that are the same on both sides."""
        small = SMALL | {"classifier": self.files["classifier"]}
        form = OF_PICTURES.get(option) or OF_FILES.get(option) or SMALL_DATA.get(self.recipe.data)
        if form := "csv" if option in OF_TABLES else form:
            small["data"] = self.files[form]
        if option in OF_TWO_CLASSES:
            small["data"] = self.files["texts" if self.recipe.name == "sequence-classification" else "two"]
        small |= OF_ONE.get(self.recipe.name, {}) | CONTEXT.get(option, {})
        if issubclass(self.recipe.options, DemonstrationOptions):
            if option in OF_OWN_DATA:
                small["data"] = self.files[OF_OWN_DATA[option]]
            if option == "data" or "data" in small:  # what shapes the generated data is refused with others
                small = {name: value for name, value in small.items() if name not in self.recipe.options.demonstration}
        names = {each.name for each in dataclasses.fields(self.recipe.options)}
        return self.recipe.options(**{name: value for name, value in small.items() if name in names})

    def contexts(self, option: str) -> list[Any]:
        """The base and, since an option may matter only under a choice among others, one for each such choice."""
        try:
            base = self.base(option)
            self.seen(base)
        except UserError:
            return []
        if option in BY_THE_RUN:
            return [base]
        choices = [
            name
            for name, kind in self.kinds.items()
            if name not in {option, *ELSEWHERE} and (kind is bool or choices_of(kind))
        ]
        others = [{name: value} for name in choices for value in other_values(self.kinds[name], getattr(base, name))]
        return [base, *(context for other in others if (context := self.taken(base, other)))]

    def taken(self, base: Any, other: dict[str, Any]) -> Any:
        """The options with another choice, or None where it does not go with the others of the base."""
        try:
            return dataclasses.replace(base, **other)
        except UserError:
            return None

    def changed(self, option: str, base: Any) -> list[Any]:
        """The options with each other choice, or with the first other value that the recipe takes."""
        value = getattr(base, option)
        candidates = self.other_sources() if option == "data" else TELLING.get(option, [])
        candidates = list(dict.fromkeys([*candidates, *other_values(self.kinds[option], value)]))
        found = []
        for candidate in candidates:
            if candidate == value:
                continue
            try:
                changed = dataclasses.replace(base, **{option: candidate})
                self.seen(changed)
            except UserError:
                continue
            found.append(changed)
            if not choices_of(self.kinds[option]):
                break
        return found

    def is_refused(self, option: str) -> bool:
        """Whether a recipe that takes no tables, or no pictures, says so of this option."""
        try:
            self.seen(dataclasses.replace(self.base(""), **{option: TELLING[option][0]}))
        except UserError as mistake:
            return flag_name(option) in str(mistake)
        return False

    def other_sources(self) -> list[str]:
        """A recipe takes the first that is of its kind."""
        return [
            *(self.files[form] for form in ("others", "csv", "one", "text", "tsv", "events")),
            "circles",
            "linear",
            "topics",
            "numbers",
            "dates",
        ]

    def _seen(self, options: Any, again: int = 0) -> Seen:
        return Seen(self.recipe, options)

    def tells(self, option: str, one: Any, other: Any) -> bool:
        """Whether what the option claims to change is seen to differ."""
        base = self.seen(one)
        rates = (base.stage(1) or {}).get("rates") or []
        if option in BY_THE_RUN:  # of these, only a schedule that is under way has more to say
            return (
                option not in RATES
                or all(each.count(each[0]) == len(each) for each in rates)
                or rates_of_all_differ(base, self.seen(other))
            )
        if option in RATES and rates:
            return rates_of_all_differ(base, self.seen(other))
        return bool(difference(base, self.seen(other), noise=self.seen(one, 1), only=CLAIMS.get(option, "")))


@pytest.mark.parametrize("name", recipes(*QUICK))
def test_every_option_changes_what_is_done(name, files):
    cases = Cases(name, files)
    options = [
        each.name
        for each in dataclasses.fields(cases.recipe.options)
        if (name, each.name) not in INERT and each.name not in ELSEWHERE
    ]
    faults = {option: fault for option in options if (fault := _fault(cases, option))}
    assert not faults


def _fault(cases: Cases, option: str) -> str:
    """Nothing if under some context every two values of the option are told apart."""
    contexts = cases.contexts(option)
    if (option in OF_TABLES or option in OF_PICTURES) and not contexts:
        return "" if cases.is_refused(option) else "is not refused by name"
    for base in contexts:
        try:
            cases.seen(base)
        except UserError:
            continue  # this choice does not go with the others of the base
        values = [base, *cases.changed(option, base)]
        if len(values) == 1:
            return "no other value is taken: give TELLING one"
        if all(cases.tells(option, one, other) for one, other in itertools.combinations(values, 2)):
            return ""
    return "changes nothing"


@pytest.mark.parametrize("name", recipes("lenet", "mlp"))
def test_the_same_options_do_the_same(name, files):
    """Else a difference would tell nothing. Pictures may show seconds."""
    cases = Cases(name, files)
    found = difference(cases.seen(cases.base("")), cases.seen(cases.base(""), 1))
    assert not found or found.startswith("panel"), found


def _spelt(field: dataclasses.Field, value: Any) -> list[Any]:
    """The words for an option that is not at its default; a test asks for epochs by itself."""
    if value == field.default or field.name in EPOCHS:
        return []
    return [flag_name(field.name), *(value if isinstance(value, tuple) else [value])]


@pytest.mark.parametrize("name", recipes("gmm", "mlp", "transformer-lm"))
def test_a_run_stops_when_asked(name, files, tmp_path, monkeypatch):
    """After --epochs or what a recipe has for it, after --max-steps steps, and after --patience epochs that bring no
    better model."""
    cases = Cases(name, files)
    base = cases.base("")
    counted = [each.name for each in dataclasses.fields(base) if each.name in EPOCHS]
    assert len(counted) == (name not in ONE_EPOCH)
    words = [
        word for each in dataclasses.fields(cases.recipe.options) for word in _spelt(each, getattr(base, each.name))
    ]
    build = Recipe.build

    def idle(recipe: Recipe, options: Any, place: Any) -> Any:
        """A task that takes no time over its steps and never gets better."""
        task: Any = build(recipe, options, place)
        metrics = {monitor.metric.removeprefix("validation_"): 1.0} if (monitor := recipe.monitor) else {"loss": 1.0}
        metrics |= {recipe.target.metric.partition("_")[2]: 1.0}
        task.step, task.evaluate, task.panels = lambda rows: {"loss": torch.zeros(())}, lambda part: metrics, list
        return task

    monkeypatch.setattr(Recipe, "build", idle)

    def steps(*asked: object) -> int:
        code, out, err = tried("train", name, *words, *asked, "--num-threads", 1, "--json", "--runs", tmp_path)
        assert code == 0, err
        return json.loads(out)["steps"]

    def epochs(count: int) -> tuple[str, int]:
        return flag_name(counted[0]), getattr(base, counted[0]) + count - base.num_epochs

    if name in ONE_EPOCH:
        assert base.num_epochs == 1
        assert [steps("--max-steps", count) for count in (1, 2)] == [1, 2]
        assert steps() == cases.seen(base).task.batches.num_batches > 2
        assert "--monitor" in refused("train", name, *words, "--patience", 1, "--runs", tmp_path)
        return
    once = steps(*epochs(1))
    assert steps(*epochs(3)) == 3 * once
    assert steps(*epochs(3), "--max-steps", once + 1) == once + 1
    if cases.recipe.monitor is None:
        assert "--monitor" in refused("train", name, *words, "--patience", 1, "--runs", tmp_path)
        monitor = ("--monitor", "validation_loss")
        assert steps(*epochs(4), *monitor, "--patience", 1) == 2 * once
    else:
        assert [steps(*epochs(4), "--patience", patience) for patience in (0, 1, 2)] == [4 * once, 2 * once, 3 * once]


@pytest.mark.parametrize("name", recipe_names())
def test_a_fraction_and_a_probability_lie_between_0_and_1(name):
    for each in dataclasses.fields(find_recipe(name).options):
        words, numeric = each.metadata["help"], each.type in (float, float | None)
        if not numeric or not any(word in words for word in ("fraction", "probability")):
            continue
        for value in (-0.1, 1.5):
            with pytest.raises(UserError, match=each.name.replace("_", ".")):
                find_recipe(name).options(**{each.name: value})
