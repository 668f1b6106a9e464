"""What `quoin list` and `quoin map` say of recipes and their options, stored: to import fifty recipes takes longer.

`make index` writes it anew, and a test holds that it was written.
"""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from quoin.options import flag_name
from quoin.runs.catalog import find_recipe, recipe_names
from quoin.runs.run_config import RunConfig

__all__ = ["ListedRecipe", "describe_options", "describe_recipes", "listed_options", "listed_recipes"]

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
    return [
        ListedRecipe(
            name=each.name,
            summary=each.summary,
            subject=each.subject,
            keywords=list(each.keywords),
            notes=list(each.notes),
            data=each.data,
            target=str(each.target),
        )
        for each in map(find_recipe, recipe_names())
    ]


if __name__ == "__main__":
    listing = {"options": describe_options(), "recipes": [asdict(each) for each in describe_recipes()]}
    LISTING.write_text(json.dumps(listing, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
