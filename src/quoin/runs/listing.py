"""What `quoin list` and `quoin map` say of recipes and their options, stored: to import fifty recipes takes longer.

`make index` writes it anew, and a test holds that it was written.
"""

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from quoin.errors import UserError
from quoin.options import flag_name
from quoin.runs.catalog import Recipe, find_recipe, recipe_names
from quoin.runs.packaged import packaged_recipes
from quoin.runs.run_config import RunConfig

__all__ = ["ListedRecipe", "describe_options", "describe_recipes", "list_packaged", "listed_options", "listed_recipes"]

LISTING = Path(__file__).with_name("listing.json")


@dataclass(frozen=True)
class ListedRecipe:
    """A recipe in words; `data` is what it learns from by default, `target` the bound that a default run keeps."""

    name: str
    summary: str
    subject: str
    keywords: list[str]
    notes: list[str]
    data: str
    target: str
    origin: str = "quoin"  # or the installed package that offers it, with its version

    def matches(self, query: str) -> bool:
        """Whether every word of the query begins a word of its name, summary, keywords, subject or data."""
        text = " ".join((self.name, self.summary, *self.keywords, self.subject, self.data)).lower()
        words = re.findall(r"[^\W_]+", text)
        return all(any(each.startswith(word) for each in words) for word in re.findall(r"[^\W_]+", query.lower()))


def listed_options() -> dict[str, str]:
    """Every option of `quoin train` with its help, as the first recipe that has it says."""
    return json.loads(LISTING.read_text(encoding="utf-8"))["options"]


def listed_recipes() -> list[ListedRecipe]:
    """The stored listing, by name."""
    return [ListedRecipe(**each) for each in json.loads(LISTING.read_text(encoding="utf-8"))["recipes"]]


def describe_options() -> dict[str, str]:
    """The same as `listed_options` from the recipes themselves."""
    found: dict[str, str] = {}
    for kind in (RunConfig, *(find_recipe(name).options for name in recipe_names())):
        for each in fields(kind):
            found.setdefault(flag_name(each.name), each.metadata["help"])
    return dict(sorted(found.items()))


def describe_recipes() -> list[ListedRecipe]:
    """The same as `listed_recipes` from the recipes themselves."""
    return [_described(find_recipe(name)) for name in recipe_names()]


def _described(recipe: Recipe) -> ListedRecipe:
    return ListedRecipe(
        name=recipe.name,
        summary=recipe.summary,
        subject=recipe.subject,
        keywords=list(recipe.keywords),
        notes=list(recipe.notes),
        data=recipe.data,
        target=str(recipe.target or ""),
        origin=recipe.origin,
    )


def list_packaged() -> tuple[list[ListedRecipe], list[str]]:
    """The recipes that installed packages offer, which are imported for this, and what is wrong with others.

    Where the name is one of Quoin's, or of two packages, the recipe is listed as PACKAGE:NAME, by which it is found.
    """
    offered, found, wrong = packaged_recipes(), [], []
    taken = Counter([*recipe_names(), *(each.name for each in offered)])
    for each in offered:
        try:
            described = _described(Recipe(each.name, each.load(), package=each))
        except UserError as mistake:
            wrong.append(str(mistake))
            continue
        found.append(replace(described, name=f"{each.package}:{each.name}") if taken[each.name] > 1 else described)
    return found, wrong


if __name__ == "__main__":
    recipes = [{name: value for name, value in asdict(each).items() if name != "origin"} for each in describe_recipes()]
    listing = {"options": describe_options(), "recipes": recipes}
    LISTING.write_text(json.dumps(listing, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
