"""`quoin list`, `quoin doctor` and `quoin bench`."""

import argparse
import sys

from quoin.cli.show import print_json, print_table

__all__ = ["bench", "doctor", "list_recipes"]


def list_recipes(parsed: argparse.Namespace) -> int:
    from quoin.data import SOURCES
    from quoin.recipes import find_recipe, recipe_names

    recipes = [find_recipe(name) for name in recipe_names()]
    if parsed.json:
        print_json(
            [
                {
                    "name": each.name,
                    "summary": each.summary,
                    "data": getattr(each.options(), "data", None),
                    "target": {"metric": each.target.metric, "bound": each.target.bound},
                    "notes": list(each.notes),
                }
                for each in recipes
            ]
        )
        return 0
    rows = [(each.name, each.summary, each.data, each.target) for each in recipes]
    print_table(("recipe", "what it does", "data", "target"), rows)
    print()
    print_table(("source", "what --data can name"), SOURCES.items())
    return 0


def doctor(parsed: argparse.Namespace) -> int:
    from quoin.cli.checkup import examine

    found = examine()
    if parsed.json:
        print_json([{"what": each.what, "found": each.found, "ok": each.ok, "help": each.help} for each in found])
    else:
        rows = [(each.what, each.found, "ok" if each.ok else "missing" if each.needed else "optional") for each in found]
        print_table(("what", "found", ""), rows)
        for each in found:
            if not each.ok:
                print(f"\n{each.what}: {each.help}")
    return 0 if all(each.ok or not each.needed for each in found) else 1


def bench(parsed: argparse.Namespace) -> int:
    from quoin.bench import choose_rows, run_row, summary

    rows = choose_rows(parsed.names)
    found = []
    for row in rows:
        found.append(run_row(row, rounds=parsed.rounds or row.rounds, tell=lambda text: print(text, file=sys.stderr)))
        if not parsed.json:
            print_table(*summary(found[-1]))
            print()
    if parsed.json:
        print_json([each.as_json() for each in found])
    return 0
