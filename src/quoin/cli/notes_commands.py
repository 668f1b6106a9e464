"""`quoin check`, `quoin figure` and `quoin map`: the notes' ids, what checks them and what draws them."""

import argparse
from pathlib import Path

from quoin import notes
from quoin.cli.output import print_json, print_table
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["check", "figure", "map_notes"]

MOST_HITS = 10


def check(parsed: argparse.Namespace) -> int:
    if parsed.num_workers is not None and parsed.num_workers < 1:
        raise UserError(f"--num-workers must be at least 1, got {parsed.num_workers}")
    if not 0 <= parsed.seed < 2**62:
        raise UserError(f"--seed must be from 0 to 2^62, got {parsed.seed}")
    notes.select(parsed.words)  # a wrong word is told before torch is paid for
    from quoin.notes import claims

    chosen = claims.select(claims.collect(), parsed.words)
    outcomes = list(claims.check(chosen, seed=parsed.seed, num_workers=parsed.num_workers))
    failed = [outcome for outcome in outcomes if outcome.verdict != "holds"]
    if parsed.json:
        print_json([outcome.as_json() for outcome in outcomes])
    else:
        rows = [
            (" ".join(each.ids), each.statement, str(each.evidence), each.verdict, f"{each.seconds:.2f}")
            for each in outcomes
        ]
        print_table(("id", "what it says", "evidence", "verdict", "seconds"), rows)
        for each in failed:
            print(f"\n{each.id} fails: {each.evidence.counterexample or each.evidence}")
        partly = [each for each in outcomes if each.not_shown]
        if parsed.words:
            for each in partly:
                print(f"\n{' '.join(each.ids)} not shown: {each.not_shown}")
        print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} claims hold")
        if partly and not parsed.words:
            print(f"{len(partly)} of them show a part of their theorem: `quoin check ID` says what is not shown")
    return 1 if failed else 0


def figure(parsed: argparse.Namespace) -> int:
    from quoin.plot import FORMATS

    if parsed.format not in FORMATS:
        raise UserError(f"--format {format_value(parsed.format)}: {did_you_mean(parsed.format, FORMATS)}")
    if parsed.gallery and parsed.format == "html":
        raise UserError("--gallery expects pictures, got --format html; leave it out, or choose png")
    notes.select(parsed.words)
    from quoin.notes import figures

    chosen = figures.select(figures.collect(), parsed.words)
    paths = figures.plot_all(chosen, parsed.out, parsed.format)
    index = parsed.out / "index.html"
    if parsed.gallery:
        _write_page(index, figures.gallery(chosen, dict(zip(chosen, paths))))
    if parsed.json:
        print_json(
            [{"ids": list(each.ids), "caption": each.caption, "path": str(path)} for each, path in zip(chosen, paths)]
        )
    else:
        print_table(
            ("id", "caption", "file"), [(" ".join(each.ids), each.caption, path) for each, path in zip(chosen, paths)]
        )
        if parsed.gallery:
            print(f"\ngallery: {index}")
    return 0


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} could not be written ({error.strerror}): choose another place with --out") from None


def map_notes(parsed: argparse.Namespace) -> int:
    if parsed.packages:
        from quoin.cli.packages import package_duties, packages_table

        print_json(package_duties()) if parsed.json else print(packages_table())
        return 0
    if parsed.words and not all(map(notes.is_id, parsed.words)):
        return _find(" ".join(parsed.words), parsed)
    chosen = notes.select(parsed.words)
    if parsed.missing:
        chosen = [entry for entry in chosen if not entry.is_implemented]
    if parsed.json:
        print_json([entry.as_json() for entry in chosen])
        return 0
    for number, name in notes.areas().items():
        rows = [(e.id, e.kind, e.title, _where(e)) for e in chosen if e.area == number]
        if rows:
            print_table(("id", "kind", "title", "where"), rows, title=f"{number} {name}")
            print()
    counted = [entry for entry in chosen if entry.needs_implementation]
    noun = "id" if len(chosen) == 1 else "ids"
    computing = [entry for entry in chosen if entry.implementations]
    provided = f"{sum(e.is_implemented for e in counted)} of {len(counted)} that software can provide"
    checked = f"{sum(bool(e.checked_by) for e in computing)} of {len(computing)} that compute something"
    told = f"; checked by a claim: {checked}" if computing else ""
    print(f"{len(chosen)} {noun}; implemented: {provided}{told}")
    return 0


def _find(query: str, parsed: argparse.Namespace) -> int:
    """What answers to a word, the best first, each with lines to paste."""
    found = notes.search(query)
    if not found:
        known = [*(name.rpartition(".")[2] for name in notes.index()["names"]), *notes.index()["recipes"]]
        elsewhere = "nothing here has it: `quoin map --packages` lists the packages, `quoin list` the recipes"
        hint = did_you_mean(query.replace(" ", "_"), known, elsewhere)
        raise UserError(f"expected a word of a name, title, keyword or docstring, got {format_value(query)}; {hint}")
    if parsed.json:
        print_json([hit._asdict() for hit in found])
        return 0
    shown = found if parsed.all else found[:MOST_HITS]
    for hit in shown:
        name = f"{hit.name} (an item of the notes)" if hit.kind == "item" else hit.name.removeprefix("quoin.")
        print(f"{name}: {hit.what}" if hit.what else name)
        for line in hit.lines:
            print(f"    {line}")
    for number, name in notes.areas().items():
        if query.lower() in name.lower():
            print(f"area {number} of the notes, {name}: `quoin map {number}`")
    if len(found) > len(shown):
        print(f"\n{len(found) - len(shown)} more that only mention it or match less: `quoin map {query} --all`")
    return 0


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    """The first few; a common block is used by dozens of claims, and `--json` lists them all."""
    return names if len(names) <= 4 else (*names[:3], f"{len(names) - 3} more")


def _where(entry: notes.Entry) -> str:
    parts = [
        ("", entry.implementations),
        ("checked by ", entry.claims),
        ("checked in use by ", _some(entry.used_by_claims)),
        ("plotted by ", entry.figures),
        ("used by ", entry.recipes),
    ]
    return (
        "; ".join(word + ", ".join(name.removeprefix("quoin.") for name in names) for word, names in parts if names)
        or "-"
    )
