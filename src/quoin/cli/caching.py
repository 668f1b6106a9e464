"""`quoin cache`: what is in the cache folder, and its removal."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser
from quoin.cli.output import format_size, print_json, print_table
from quoin.data.cache import DRAFT, CacheEntry, cache_entries, cache_folder, remove_entry
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["add_cache", "cache"]


WORDS = {
    "images": "decoded images",
    "fetched": "fetched data",
    "models": "a model of the lab",
    "stills": "pictures of the lab",
}


def add_cache(parser: Parser, words: Sequence[str]) -> None:
    """The words of the command."""
    parser.description = (
        "List what Quoin keeps to be quicker next time, and remove it.\n\n"
        "The cache is the folder QUOIN_CACHE, or the platform's place for caches. Decoded images take at most "
        "QUOIN_CACHE_SIZE, such as\n"
        "20G (default: 50G): the longest unused are removed first. Fetched data sets are removed by this command only."
    )
    parser.epilog = """\
examples:
  quoin cache                             what there is, its size, and when it was last used
  quoin cache rm images/3f29c1            one entry, by its name or how it begins
  quoin cache rm --all --yes"""
    parser.add_argument("action", nargs="?", default="list", metavar="list|rm", help="what to do (default: list)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries to remove")
    parser.add_switch("--all", "remove every entry")
    parser.add_switch("--yes", "remove without asking")
    add_json(parser)
    parser.set_defaults(run=run_later("caching.cache"))


def cache(parsed: argparse.Namespace) -> int:
    if parsed.action not in ("list", "rm"):
        raise UserError(f"quoin cache expects list or rm, got {format_value(parsed.action)}")
    if parsed.action == "list":
        if parsed.names or parsed.all or parsed.yes:
            raise UserError("`quoin cache` only lists: to remove entries, write `quoin cache rm NAME`")
        return _list(parsed.json)
    if bool(parsed.names) == parsed.all:
        raise UserError("`quoin cache rm` expects names of entries, as `quoin cache` lists them, or --all")
    entries = cache_entries()
    chosen = entries if parsed.all else [_named(name, entries) for name in dict.fromkeys(parsed.names)]
    if chosen and not parsed.yes:
        _ask(chosen)
    gone = {entry.name: remove_entry(entry) for entry in chosen}
    if parsed.json:
        print_json(
            {"removed": [name for name in gone if gone[name]], "in_use": [name for name in gone if not gone[name]]}
        )
    else:
        for name in gone:
            print(f"{name}: {'removed' if gone[name] else 'kept, a process reads it'}")
    return 0 if all(gone.values()) else 1


def _list(as_json: bool) -> int:
    entries = cache_entries()
    if as_json:
        rows = [
            {"name": entry.name, "what": _what(entry), "bytes": entry.num_bytes, "last_used": entry.last_used}
            for entry in entries
        ]
        print_json({"folder": str(cache_folder()), "entries": rows})
        return 0
    if entries:
        rows = [(entry.name, _what(entry), format_size(entry.num_bytes), _date(entry.last_used)) for entry in entries]
        print_table(("name", "what", "size", "last used"), rows)
        print()
    total = sum(entry.num_bytes for entry in entries)
    print(f"{cache_folder()}: {format_size(total)}" if entries else f"{cache_folder()}: nothing cached")
    return 0


def _what(entry: CacheEntry) -> str:
    try:
        info = json.loads((entry.path / "info.json").read_bytes())
        return f"{info['num_images']:,} images of {' x '.join(map(str, info['shape']))} from {info['source']}"
    except (OSError, ValueError, KeyError, TypeError):
        if entry.path.suffix == DRAFT:
            return "an unfinished draft of decoded images"
        return WORDS[entry.name.partition("/")[0]]


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _named(name: str, entries: list[CacheEntry]) -> CacheEntry:
    """The entry of this name, or the only one whose name, with or without its kind, begins with it."""
    exact = [entry for entry in entries if entry.name == name]
    found = exact or [
        entry for entry in entries if name and (entry.name.startswith(name) or entry.path.name.startswith(name))
    ]
    if len(found) == 1:
        return found[0]
    hint = (
        "it begins several names; give more of it"
        if found
        else did_you_mean(name, [entry.name for entry in entries], "`quoin cache` lists all")
    )
    raise UserError(f"expected an entry of the cache, got {format_value(name)}: {hint}")


def _ask(chosen: list[CacheEntry]) -> None:
    """Go on only if the user agrees."""
    for entry in chosen:
        print(f"{entry.name}  {_what(entry)}, {format_size(entry.num_bytes)}", file=sys.stderr)
    if not sys.stdin.isatty():
        raise UserError("nothing removed: give --yes to remove without being asked")
    print(
        f"remove {len(chosen)} {'entry' if len(chosen) == 1 else 'entries'}? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing removed")
