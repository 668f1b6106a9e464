"""The recipes as pages: what each trains, by which options, to which target, and what was measured."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from generator.sources import source_page
from generator.text import code, heading, href, link, prose, table
from quoin.notes import entries
from quoin.options import flag_name
from quoin.runs import find_recipe, recipe_names
from quoin.runs.catalog import SUBJECTS, Recipe

__all__ = ["recipe_pages"]

MEASURED = Path(__file__).parents[1] / "howto" / "generate.md"
REACHED = Path(__file__).parents[1] / "recipes.json"  # written by `make recipes SEEDS=10 TABLE=docs/recipes.json`


def recipe_pages() -> dict[str, str]:
    """Path to Markdown: the list, and a page for each."""
    recipes = [find_recipe(name) for name in recipe_names()]
    return {"recipes/index.md": _contents(recipes)} | {f"recipes/{each.name}.md": _page(each) for each in recipes}


def _contents(recipes: list[Recipe]) -> str:
    page = "recipes/index.md"
    said = (
        "<p>A recipe is one file: options, model, quality target. <code>quoin train RECIPE</code> trains it on data "
        "that come with the package or on yours, and the run ends in a report. A default run meets its target on at "
        "least nine of the seeds 0 to 9, on one CPU; <code>make recipes SEEDS=10</code> trains them all and prints the "
        "table.</p>"
    )
    parts = [heading("Recipes", 1), said]
    for subject in SUBJECTS:
        rows = [
            (
                code(each.name, href(page, f"recipes/{each.name}.md")),
                prose(each.summary),
                code(each.data),
                prose(str(each.target or "")),
            )
            for each in recipes
            if each.subject == subject
        ]
        parts += [heading(subject, 2), table(("recipe", "what it trains", "data", "target"), rows)]
    return "\n\n".join([*parts, *_reached(page)])


def _reached(page: str) -> list[str]:
    """What every recipe reached, when, on which machine; nothing before it was measured."""
    if not REACHED.exists():
        return []
    told = json.loads(REACHED.read_text(encoding="utf-8"))
    rows = [
        (
            code(name, href(page, f"recipes/{name}.md")),
            code(row["metric"]),
            prose(row["target"]),
            prose(row["reached"] if isinstance(row["reached"], str) else f"{row['reached']:.4g}"),
            "met" if row["met"] else "missed",
            prose(str(row["seconds"])),
            prose(row["date"]),
            prose(f"{row['machine']}, torch {row['torch']}"),
        )
        for name, row in told["rows"].items()
    ]
    seeds = f"Seeds 0 to {told['seeds'] - 1}" if told["seeds"] > 1 else "Seed 0"
    places = dict.fromkeys(f"{row['machine']}, torch {row['torch']}" for row in told["rows"].values())
    missing = [each for each in recipe_names() if each not in told["rows"]]
    said = f"{seeds}, on {'; '.join(places)}."
    if missing:
        said += f" Not measured yet: {', '.join(missing)}."
    how = f"<p>{prose(said)}</p>"
    return [
        heading("Measured", 2),
        how,
        table(("recipe", "metric", "target", "reached", "", "seconds", "day", "machine"), rows),
    ]


def _page(recipe: Recipe) -> str:
    page = f"recipes/{recipe.name}.md"
    crumbs = f'<p class="crumbs">{link("recipes", href(page, "recipes/index.md"))} › {prose(recipe.subject)}</p>'
    docs = [part for part in (recipe.module.__doc__ or "").strip().split("\n\n") if part]
    file = f"quoin/recipes/{recipe.name.replace('-', '_')}.py"
    rows = [
        ("data", code(recipe.data)),
        ("target", prose(f"{recipe.target}, met by a default run on at least nine of ten seeds")),
        ("best weights by", code(recipe.monitor.metric) if recipe.monitor else "none: those of the last step"),
        ("found by", prose(", ".join(recipe.keywords))),
        ("notes", _notes(page, recipe)),
        ("source", link(code(file.removeprefix("quoin/")), href(page, source_page(file)))),
    ]
    parts = [heading(f"`{recipe.name}`", 1), crumbs, *(f"<p>{prose(part)}</p>" for part in docs)]
    parts += [f"```sh\nquoin train {recipe.name}\n```"]
    parts += ['<dl class="item">' + " ".join(f"<dt>{key}</dt> <dd>{value}</dd>" for key, value in rows) + "</dl>"]
    parts += _measured(page, recipe.name)
    parts += [
        heading("Options", 2),
        f"<p>Those of every run, such as the device, are in {code('quoin train --help')}.</p>",
    ]
    parts.append(
        table(
            ("option", "default", "what it does"),
            [_option(each, recipe.options()) for each in dataclasses.fields(recipe.options)],
        )
    )
    return "\n\n".join(parts)


def _notes(page: str, recipe: Recipe) -> str:
    where = {entry.id: entry.area for entry in entries()}
    return ", ".join(code(id, href(page, f"notes/area-{where[id]}.md", id)) for id in recipe.notes) or "none"


def _option(field: Any, defaults: Any) -> tuple[str, str, str]:
    bounds = field.metadata.get("bounds", {})
    limits = "; " + ", ".join(f"{word} {value:g}" for word, value in bounds.items()) if bounds else ""
    return (
        code(flag_name(field.name)),
        code(_shown(getattr(defaults, field.name))),
        prose(field.metadata["help"] + limits),
    )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return {"": "none", "True": "on", "False": "off", "None": "none"}.get(str(value), str(value))


def _measured(page: str, name: str) -> list[str]:
    """The row of the table of measured sample quality, if the recipe has one."""
    lines = MEASURED.read_text(encoding="utf-8").splitlines() if MEASURED.exists() else []
    head = next((line for line in lines if line.startswith("| | MMD²")), None)
    row = next((line for line in lines if line.startswith(f"| `{name}` |")), None)
    if head is None or row is None:
        return []
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in (head, row)]
    others = link("beside the others", href(page, "howto/generate.md"))
    how = f"<p>Mean and standard deviation over seeds 0 to 9, 1,000 samples each; {others}.</p>"
    return [
        heading("Measured", 2),
        how,
        table([prose(cell) for cell in cells[0][1:]], [[prose(cell) for cell in cells[1][1:]]]),
    ]
