"""`quoin list`, `quoin doctor` and `quoin bench`."""

import argparse
import sys

from quoin.cli.show import print_json, print_table

__all__ = ["bench", "doctor", "list_recipes"]


def list_recipes(parsed: argparse.Namespace) -> int:
    from quoin.data import LABELLED_SOURCES, PAIR_SOURCES, SOURCES, TEXT_SOURCES
    from quoin.runs import find_recipe, recipe_names

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
    print_table(("source", "what --data can name"), (SOURCES | TEXT_SOURCES | PAIR_SOURCES | LABELLED_SOURCES).items())
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
    from quoin.bench import attention_findings, attention_tables, choose_rows, run_row, summary

    rows = choose_rows(parsed.names)
    together = [row.name for row in rows if row.group]  # told in one table by length; a single one like any other row
    together = together if len(together) > 1 else []
    found = {}
    for number, row in enumerate(rows, 1):
        at = f"[{number}/{len(rows)}] " if len(rows) > 1 else ""
        found[row.name] = run_row(row, rounds=parsed.rounds or row.rounds, tell=lambda text, at=at: print(at + text, file=sys.stderr))
        if not parsed.json and row.name not in together:
            print_table(*summary(found[row.name]))
            print()
    swept = [found[name] for name in together]
    if parsed.json:
        told = [{"name": "attention", "findings": [each._asdict() for each in attention_findings(swept)]}] if swept else []
        print_json([each.as_json() for each in found.values()] + told)
        return 0
    for table in attention_tables(swept) if swept else []:
        print_table(table.columns, table.rows, title=table.title)
        print()
    return 0
