"""`quoin list` and `quoin doctor`."""

import argparse
import re
import sys
from dataclasses import asdict

from quoin.cli.output import print_json, print_table
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["doctor", "list_recipes"]


def list_recipes(parsed: argparse.Namespace) -> int:
    from quoin.data import ALL_SOURCES
    from quoin.runs.catalog import SUBJECTS
    from quoin.runs.listing import list_packaged, listed_recipes

    packaged, wrong = list_packaged()
    for each in wrong:
        print(f"note: {each}", file=sys.stderr)
    recipes = [*listed_recipes(), *packaged]
    query = " ".join(parsed.words)
    if query:
        words = sorted({word for each in recipes for word in each.keywords})
        family = re.sub(r"(?<=[a-z])\d+", "", query)  # resnet18 is a size of resnet
        matching = [each for each in recipes if each.matches(query)]
        recipes = matching or [each for each in recipes if each.matches(family)]
        if not recipes:
            hint = (
                f"{did_you_mean(query, words, 'no recipe has it')}; `quoin map {query}` looks through everything else"
            )
            raise UserError(f"expected a word of a recipe, got {format_value(query)}; {hint}")
    if parsed.json:
        print_json([asdict(each) for each in recipes])
        return 0
    origins = dict.fromkeys(each.origin for each in packaged)
    tables = {
        subject: [each for each in recipes if each.subject == subject and each.origin == "quoin"]
        for subject in SUBJECTS
    }
    tables |= {f"From {origin}": [each for each in recipes if each.origin == origin] for origin in origins}
    for title, members in tables.items():
        if members:
            rows = [(each.name, each.summary, each.data, each.target) for each in members]
            print_table(("recipe", "what it does", "data", "target"), rows, title=title)
            print()
    if query:
        return 0
    print_table(("source", "what --data can name"), ALL_SOURCES.items())
    return 0


def doctor(parsed: argparse.Namespace) -> int:
    from quoin.cli.doctor import examine

    found = examine()
    if parsed.json:
        print_json([{"what": each.what, "found": each.found, "ok": each.ok, "help": each.help} for each in found])
    else:
        rows = [
            (each.what, each.found, "ok" if each.ok else "missing" if each.needed else "optional") for each in found
        ]
        print_table(("what", "found", ""), rows)
        for each in found:
            if not each.ok:
                print(f"\n{each.what}: {each.help}")
    return 0 if all(each.ok or not each.needed for each in found) else 1
