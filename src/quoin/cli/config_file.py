"""`quoin train --config FILE` and `--print-config`: the flags of a run, kept in a file.

A TOML file has one line for each flag, `batch_size = 32` for `--batch-size 32`, and no tables; `recipe` names the
recipe. What is not in it keeps the recipe's default, and a flag wins over it. The config.json of a run is read as well,
to train again as that run was trained. Nothing heavy is imported.
"""

import dataclasses
import os
import textwrap
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quoin.cli.flags import AUTO, Parser
from quoin.cli.toml_text import format_toml
from quoin.errors import UserError, did_you_mean, format_value
from quoin.options import (
    CALLED_ELSEWHERE,
    ValidatedOptions,
    check_option,
    choices_of,
    flag_name,
    option,
    takes_own_part,
)
from quoin.own_code import is_code_reference
from quoin.runs.catalog import Recipe, find_recipe, is_recipe_file
from quoin.runs.run_config import RunConfig

__all__ = ["ABOUT_FILES", "GivenConfig", "RunPlace", "config_text", "config_values", "read_given_config"]

ABOUT_FILES = """\
settings from a file:
  a line for each flag, as in batch_size = 32, hidden_dims = [64, 64], tags = ["a"]; recipe = "mlp" names the recipe
  quoin train mlp --lr 0.1 --print-config > mine.toml    every option as a line of TOML, with its help
  quoin train --config mine.toml --epochs 50             a flag wins over the file, the file over the defaults
  quoin train --config runs/mlp-1 --seed 1               once more with the options of a run"""
_NOT_IN_FILES = ("json", "require_target", "config", "print_config")


@dataclass(frozen=True)
class RunPlace(ValidatedOptions):
    """Where a run is kept, what it is called and how often it is repeated: flags that are no recipe's."""

    runs: str = option("runs", "where run folders are created")
    name: str = option("", "name of the run's folder; RECIPE-N unless given")
    note: str = option("", "a note on the run, for its report and `quoin runs`")
    tags: tuple[str, ...] = option((), "tags, by which `quoin runs --tag` filters")
    seeds: int = option(
        0, "train with so many seeds, each in a subfolder; 0 for a single run", at_least=0, at_most=10_000
    )
    folds: int = option(0, "k-fold cross-validation: train k times; 0 for a single run", at_least=0, at_most=10_000)
    jobs: int = option(
        0,
        "how many of those train at a time, each in its own process; 0 for one after another",
        at_least=0,
        at_most=1024,
    )


@dataclass(frozen=True)
class GivenConfig:
    """What `--config` gave: values by the names of options.

    Args:
        where: How errors call the file; empty where there is none.
        recipe: The one that it names; empty where it names none.
        started_in: Of the file of a run, the folder from which paths among the values are seen; None for the present.
    """

    where: str = ""
    recipe: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    started_in: Path | None = None

    def recipe_beside(self, reference: str) -> Recipe:
        """The recipe that the command names; a file that is for another is an error."""
        found = find_recipe(reference)
        if self.recipe not in ("", reference) and find_recipe(self.recipe).reference != found.reference:
            raise UserError(
                f"{self.where} is for recipe {format_value(self.recipe)}, the command says {format_value(reference)}: "
                "leave out the one that is wrong"
            )
        return found

    def apply(self, parser: Parser, recipe: Recipe, auto: Mapping[str, str]) -> None:
        """Make the values those that `parser` takes where no flag is given.

        Args:
            auto: The options that take the word `auto`.
        """
        owners = {
            each.name: kind for kind in (recipe.options, RunConfig, RunPlace) for each in dataclasses.fields(kind)
        }
        for name, value in self.values.items():
            if name not in owners:
                raise UserError(f"{self.where}: {_unknown(name, value, owners, recipe)}")
        values = {
            name: value if name in auto and value == AUTO else self._checked(owners[name], name, value)
            for name, value in self.values.items()
        }
        if self.started_in is not None:
            from quoin.runs.paths import options_seen_from_here

            values |= options_seen_from_here(values, self.started_in)
        if values.get("name") == "":  # as --print-config writes it: the run is given a number
            del values["name"]
        places = {each.name for each in dataclasses.fields(RunPlace)}
        parser.set_defaults(**{name if name in places else f"option_{name}": value for name, value in values.items()})

    def _checked(self, kind: type[ValidatedOptions], name: str, value: Any) -> Any:
        hint, value = typing.get_type_hints(kind)[name], tuple(value) if isinstance(value, list) else value
        try:
            check_option(kind, name, value)
            if name in ("seeds", "folds") and value == 1:
                raise UserError(f"{name} expects 0 or a whole number from 2 to 10000, got 1")
        except UserError as mistake:
            told = str(mistake).replace(flag_name(name), name, 1)
            if typing.get_origin(hint) is tuple and not isinstance(value, (tuple, dict)):
                told += f"; write {name} = [{format_value(value)}]"
            raise UserError(f"{self.where}: {told}") from None
        of_floats = float in (hint, *typing.get_args(hint))
        if of_floats and isinstance(value, tuple):
            return tuple(map(float, value))
        return float(value) if of_floats and value is not None else value


def _unknown(name: str, value: Any, known: Mapping[str, Any], recipe: Recipe) -> str:
    """Why a key is none, and what to write."""
    if isinstance(value, dict):
        return f"expected lines such as batch_size = 32, got a table [{name}]: take that line out, there are no tables"
    if name in _NOT_IN_FILES:
        return f"{name} has its place on the command line only, as {flag_name(name)}: take it out"
    meant = CALLED_ELSEWHERE.get(name.replace("_", "-"), "").removeprefix("--").replace("-", "_")
    hint = did_you_mean(meant if meant in known else name, [*known, "recipe"])
    return f"no option {format_value(name)} of `quoin train {recipe.name}`: {hint}"


def read_given_config(words: Sequence[str]) -> GivenConfig:
    """What the file holds that `--config` among the words names; without one, nothing.

    The words are looked at before they are parsed: which flags there are depends on the recipe, which the file may
    name.
    """
    given = ""
    for word, following in zip(words, [*words[1:], ""]):
        given = following if word == "--config" else word[9:] if word.startswith("--config=") else given
    if not given:
        return GivenConfig()
    path = Path(given)
    if os.path.isdir(path):  # os.path: a name too long to be one is then no folder
        path /= "config.json"
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a name that holds a null byte is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"--config {format_value(given)} cannot be read ({reason}): give a TOML file or a run's folder"
        ) from None
    where = f"--config {format_value(str(path))}"
    return _of_run(content, path, where, words) if path.suffix == ".json" else _of_toml(content, where)


def _of_toml(content: bytes, where: str) -> GivenConfig:
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # of UTF-8 and of TOML
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)[:100]
        raise UserError(f"{where} is not TOML ({why}): `quoin train RECIPE --print-config` prints one") from None
    recipe = values.pop("recipe", "")
    if not isinstance(recipe, str):
        raise UserError(f"{where}: recipe expects a name, as `quoin list` shows, got {format_value(recipe)}")
    return GivenConfig(where, recipe, values)


def _of_run(content: bytes, path: Path, where: str, words: Sequence[str]) -> GivenConfig:
    """The options of a run. Code that it was trained with is the user's to name again: what a run folder names never
    runs by itself."""
    from quoin.train.folder import FORMAT
    from quoin.train.run_files import read_config

    try:
        config = read_config(content, path, format=FORMAT)
    except UserError as mistake:
        raise UserError(f"--config expects TOML or the config.json of a run: {mistake}") from None
    if config["kind"] in ("module", "sweep"):
        raise UserError(f"{where} is of a {config['kind']}, expected the run of a recipe: give another, or a TOML file")
    values = config["options"] | config["settings"]
    recipe = next((each["path"] for each in config.get("code", []) if each["use"] == "recipe"), None)
    if recipe is None and is_recipe_file(config["recipe"]):
        raise UserError(
            f"{where}: expected the name of a recipe, got {format_value(config['recipe'])}; restore the file"
        )
    if recipe is not None and (not words or words[0].startswith("-")):
        raise UserError(f"{where} is of your own recipe: name its file, as in quoin train {recipe} --config ...")
    for name, value in config["options"].items():
        if isinstance(value, str) and is_code_reference(value):
            del values[name]
            if not any(word == flag_name(name) or word.startswith(f"{flag_name(name)}=") for word in words):
                raise UserError(f"{where} was trained with your code: name it again with {flag_name(name)} {value}")
    if multirun := config.get("multirun"):
        values[f"{multirun['over']}s"] = multirun["count"]
    return GivenConfig(where, "" if recipe else config["recipe"], values, path.parent / config["folder"])


def config_values(recipe: Recipe, options: Any, run_config: RunConfig, place: RunPlace) -> dict[str, Any]:
    """All that a config file can hold, with its value."""
    return {"recipe": recipe.reference} | dataclasses.asdict(place) | dataclasses.asdict(options) | vars(run_config)


def config_text(recipe: Recipe, values: Mapping[str, Any]) -> str:
    """The values of `config_values` as a TOML file, each under its help."""
    lines = [
        *_comment(recipe.summary),
        "# quoin train --config FILE; flags win over the file. A line that is left out keeps its default.",
        f"recipe = {format_toml(values['recipe'])}",
    ]
    for title, kind in (
        ("The run", RunPlace),
        (f"Options of {recipe.name}", recipe.options),
        ("Runtime options", RunConfig),
    ):
        lines.append(f"\n# ---- {title} ----")
        hints = typing.get_type_hints(kind)
        for each in dataclasses.fields(kind):
            value = values[each.name]
            lines += ["", *_comment(_about(each, hints[each.name], value))]
            # TOML has no null: what is not given stays a comment
            lines.append(f"# {each.name} =" if value is None else f"{each.name} = {format_toml(value)}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 100, initial_indent="# ", subsequent_indent="# ")


def _about(each: dataclasses.Field[Any], hint: Any, value: Any) -> str:
    told = each.metadata.get("help", "")
    if choices := choices_of(hint):
        told += f"; one of {', '.join(choices)}{', or FILE.py:NAME' if takes_own_part(hint) else ''}"
    if value != each.default and each.default is not None:
        told += f" (default: {format_toml(each.default)})"
    return told
