"""The ranges and defaults of every recipe's options, its target and monitor, beside a second statement of them; and
from the options of an optimizer to the optimizer of every network.

option_table.txt and target_table.txt are kept by hand: who changes a default, a bound or a target changes what
everybody's runs are, and says so there.
"""

import dataclasses
import math
import re
import typing
from pathlib import Path
from typing import Any

import pytest
import torch

from quoin.errors import UserError
from quoin.options import check_option, flag_name
from quoin.runs import RunConfig, find_recipe, recipe_names
from test_wiring import build, updaters

pytestmark = pytest.mark.usefixtures("one_thread")

HERE = Path(__file__).parent
CONFIG = {  # the settings of a run
    "num_threads": ("[0,1024]", 0),
    "processes": ("[1,1024]", 1),
    "checkpoint_every": ("[0,inf)", 0),
    "max_steps": ("[0,inf)", 0),
    "log_every": ("[1,inf)", 50),
    **dict.fromkeys(("compile", "checkpoint_activations", "shard", "deterministic"), ("-", False)),
    "device": ("-", "auto"),
    "precision": ("-", "float32"),
    "memory_format": ("-", "auto"),
    "log": ("-", ()),
}
UNDECAYED = {"ridge": "its baseline has no weight decay"}


def entries(name: str) -> list[str]:
    """The lines of a table, those that go on joined."""
    lines = [line for line in (HERE / name).read_text().splitlines() if not line.startswith("#")]
    return re.sub(r"\n    +", " ", "\n".join(lines)).splitlines()


def option_table() -> dict[str, dict[str, tuple[str, str]]]:
    """For each option and recipe ("" for all others) the range and the default."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for line in entries("option_table.txt"):
        if not line.startswith(" "):
            name, bounds, value = line.split()
            own = found[name] = {"": (bounds, value)}
            continue
        what, _, recipes = line.strip().partition(": ")
        for recipe in recipes.split():
            bounds, value = own.get(recipe, own[""])
            own[recipe] = (what[3:], value) if what.startswith("in ") else (bounds, what)
    return found


def spoken(value: Any) -> str:
    """A default as the table has it."""
    if isinstance(value, tuple):
        return f"({','.join(map(spoken, value))})"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return repr(value)
    return re.sub(r"e([+-])0?", lambda sign: f"e{sign[1].strip('+')}", f"{value:g}") if value < 2**53 else str(value)


TABLE = option_table()


@pytest.mark.parametrize("name", recipe_names())
def test_options_have_the_defaults_of_the_table(name):
    for each in dataclasses.fields(find_recipe(name).options):
        if each.name in TABLE:
            told = TABLE[each.name].get(name, TABLE[each.name][""])[1]
            assert spoken(each.default) == told, each.name
        else:  # a name, a text, or left to others: no number that could go wrong
            assert isinstance(each.default, str) or each.default in (None, ()), each.name


def inside(bounds: str, whole: bool) -> tuple[list[Any], list[tuple[Any, str]]]:
    """What stands in a range at its ends, and what is just outside, with what is said of it."""
    low, high = (float(end) for end in bounds[1:-1].split(","))
    values, strange = [], []
    for end, closed, words, way in (
        (low, bounds[0] == "[", ("at least", "above"), -1),
        (high, bounds[-1] == "]", ("at most", "below"), 1),
    ):
        if math.isinf(end):
            continue
        number = int(bounds[1:-1].split(",")[way > 0]) if whole and "e" not in bounds else int(end) if whole else end
        beyond = number + way if whole else math.nextafter(number, way * math.inf)
        within = number - way if whole else math.nextafter(number, -way * math.inf)
        values.append(number if closed else within)
        strange.append((beyond if closed else number, f"must be {words[not closed]} "))
    return values, strange


def check_ends(kind: Any, name: str, bounds: str) -> None:
    hint = typing.get_type_hints(kind)[name]
    inner, whole = typing.get_args(hint), hint is int or int in typing.get_args(hint)
    several = typing.get_origin(hint) is tuple
    assert several or not inner or type(None) in inner
    values, strange = inside(bounds, whole)
    for value in values:
        check_option(kind, name, (value,) if several else value)
    for value, words in strange:
        with pytest.raises(UserError) as told:
            check_option(kind, name, (value,) if several else value)
        assert str(told.value).startswith(f"{flag_name(name)} {words}"), told.value
        assert "got" in str(told.value)


@pytest.mark.parametrize("name", recipe_names())
def test_options_end_where_the_table_says(name):
    """The ends are taken where they belong to the range, and what is next to them outside is refused."""
    kind = find_recipe(name).options
    for each in dataclasses.fields(kind):
        bounds = TABLE.get(each.name, {}).get(name, TABLE.get(each.name, {}).get("", ("-", "")))[0]
        words = {"[": "at least", "(": "above", "]": "at most", ")": "below"}
        expected = {} if bounds == "-" else {
            words[mark]: float(end) for mark, end in zip(bounds[:: len(bounds) - 1], bounds[1:-1].split(","))
            if not math.isinf(float(end))
        }  # fmt: skip
        assert each.metadata.get("bounds", {}) == expected, each.name
        if bounds != "-":
            check_ends(kind, each.name, bounds)


def test_every_line_of_the_table_is_of_an_option():
    known = {name: {each.name for each in dataclasses.fields(find_recipe(name).options)} for name in recipe_names()}
    for option, of in TABLE.items():
        assert any(option in names for names in known.values()), option
        assert all(option in known[recipe] for recipe in of if recipe), option


def test_the_settings_of_a_run():
    for each in dataclasses.fields(RunConfig):
        bounds, value = CONFIG[each.name]
        assert each.default == value, each.name
        if bounds != "-":
            check_ends(RunConfig, each.name, bounds)
        else:
            assert not each.metadata.get("bounds"), each.name


def test_targets_and_monitors():
    told: dict[str, list[str]] = {name: [] for name in recipe_names()}
    for line in entries("target_table.txt"):
        what, _, recipes = line.partition(": ")
        for recipe in recipes.split():
            told[recipe].append(what)
    for name in recipe_names():
        recipe = find_recipe(name)
        target, monitor = recipe.target, recipe.monitor
        sign, bound = (">=", target.at_least) if target.at_least is not None else ("<=", target.at_most)
        asked = [f"target {target.metric} {sign} {bound:g}"]
        if monitor is not None:
            asked.insert(0, f"monitor {monitor.metric} {'highest' if monitor.greater_is_better else 'lowest'}")
            assert not monitor.is_required  # data of a user's may have no validation split
        assert told[name] == asked, name


WITH_OPTIMIZER = [name for name in recipe_names() if hasattr(find_recipe(name).options(), "optimizer")]
ASKED = {"lr": 0.0123, "weight_decay": 0.034, "beta1": 0.81, "beta2": 0.92, "optimizer": "adamw"}


@pytest.mark.parametrize("name", WITH_OPTIMIZER)
def test_every_network_is_trained_as_the_options_say(name):
    """By the optimizer, the rates, the clipping, the batches and the micro-batches that were asked for."""
    task, options = build(name, **ASKED, max_grad_norm=0.56, micro_batch_size=4, ema_decay=0.77, seed=3, epochs=3)
    known = {each.name for each in dataclasses.fields(options)}
    found = list(updaters(task, set()))
    assert found
    moved: set[int] = set()
    learning: set[int] = set()
    for owner, updater in found:
        assert type(updater.optimizer) is torch.optim.AdamW
        for group in updater.optimizer.param_groups:
            assert (group["lr"], group["betas"]) == (0.0123, (0.81, 0.92))
            vectors = all(each.ndim <= 1 for each in group["params"])
            assert group["weight_decay"] == 0.034 or ((vectors or name in UNDECAYED) and group["weight_decay"] == 0)
        groups = updater.optimizer.param_groups
        assert any(group["weight_decay"] for group in groups) or owner is not task
        moved |= {id(each) for group in groups for each in group["params"]}
        learning |= {id(each) for each in updater.model.parameters() if each.requires_grad}
        if "max_grad_norm" in known:
            assert updater.max_grad_norm == 0.56
        if "ema_decay" in known and updater.ema is not None:
            assert updater.ema.decay == 0.77
        if "micro_batch_size" in known and hasattr(owner, "micro_batch_size"):
            assert owner.micro_batch_size == 4
    assert ("ema_decay" in known) == any(updater.ema is not None for _, updater in found)
    assert moved == learning
    batches = task.batches
    assert batches.seed == 3
    if "batch_size" in known and name != "approximate-function":
        assert batches.batch_size == options.batch_size or "steps_per_epoch" in known


@pytest.mark.parametrize("name", WITH_OPTIMIZER)
def test_without_clipping_or_pieces_none_are_made(name):
    options = find_recipe(name).options
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    task, _ = build(name)
    kinds = {"sgd": "SGD", "momentum": "SGD", "adam": "Adam", "adamw": "AdamW"}
    for owner, updater in updaters(task, set()):
        assert type(updater.optimizer).__name__ == kinds[defaults["optimizer"]]
        assert updater.max_grad_norm == defaults.get("max_grad_norm", 1.0 if "copy" in name else 0.0)
        for group in updater.optimizer.param_groups:
            assert group["lr"] == defaults["lr"]
            assert group.get("momentum", 0.0) == (0.9 if defaults["optimizer"] == "momentum" else 0.0)
            if "betas" in group:
                assert group["betas"] == (defaults["beta1"] or 0.9, defaults["beta2"] or 0.999)
        if hasattr(owner, "micro_batch_size"):
            assert owner.micro_batch_size == owner.batches.batch_size
