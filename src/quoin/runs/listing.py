"""What `quoin list` says of every recipe, stored beside this file: to import fifty recipes takes longer than to read.

`make index` writes it anew, and a test holds that it was written.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from quoin.runs.catalog import find_recipe, recipe_names

__all__ = ["ListedRecipe", "describe_recipes", "listed_recipes"]

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


def listed_recipes() -> list[ListedRecipe]:
    """The stored listing, by name."""
    return [ListedRecipe(**each) for each in json.loads(LISTING.read_text(encoding="utf-8"))]


def describe_recipes() -> list[ListedRecipe]:
    """The same from the recipes themselves."""
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
    listing = [asdict(each) for each in describe_recipes()]
    LISTING.write_text(json.dumps(listing, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
