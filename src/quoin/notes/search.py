"""Find by any word: public names, items of the notes and recipes whose name, title, keywords or docstring have it.

    >>> [hit.name for hit in search("huffman")][0]
    'quoin.info.huffman_code'

Reads the stored index and imports no torch.
"""

import functools
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import NamedTuple

from quoin.notes.map import Entry, entries, index

__all__ = ["Hit", "search"]

# How well a text answers: the name itself, a keyword, a part of the name, its first sentence, anywhere.
EXACT, KEYWORD, PART, SUMMARY, TEXT = 5, 4, 3, 2, 1


class Hit(NamedTuple):
    """Something found: `lines` are for pasting, into Python or a terminal."""

    kind: str  # "name", "option", "command", "recipe" or "item"
    name: str
    what: str
    lines: tuple[str, ...]
    rank: int


def search(query: str) -> list[Hit]:
    """What answers to the words of `query`, all of them, whatever their case: the best first."""
    words = _words(re.sub(r"^(torch|quoin|nn|F)\.(?=\w)", "", query.removeprefix("torch.")))  # nn.Embedding
    if not words:
        return []
    found = [*_names(words), *_items(words), *_recipes(words)]
    order = {"name": 0, "option": 1, "command": 1, "recipe": 2, "item": 3}
    return sorted(found, key=lambda hit: (-hit.rank, order[hit.kind], len(hit.name), hit.name))


def _names(words: list[str]) -> list[Hit]:
    meant = [
        name for keyword, names in _keywords().items() if "".join(_words(keyword)) == "".join(words) for name in names
    ]
    hits = [_of_torch(name) for name in meant if name.startswith("torch.")]
    hits += [_option(name) for name in meant if name.startswith("--")]
    hits += [Hit("command", name, "a command.", (f"{name} --help",), KEYWORD) for name in meant if name[:6] == "quoin "]
    for path, (summary, rest) in index()["names"].items():
        package, name = path.rsplit(".", 1)
        rank = KEYWORD if path.removeprefix("quoin.") in meant else _rank(words, name, summary, rest)
        if rank:
            hits.append(Hit("name", path, summary, (f"from {package} import {name}",), rank))
    return hits


def _of_torch(path: str) -> Hit:
    package, name = path.rsplit(".", 1)
    return Hit("name", path, "torch's own, used as it is.", (f"from {package} import {name}",), KEYWORD)


def _option(flag: str) -> Hit:
    what = "an option of `quoin train`, where the recipe has it; `quoin train RECIPE --help` says what it takes."
    return Hit("option", flag, what, ("quoin train mlp --help",), KEYWORD)


def _items(words: list[str]) -> list[Hit]:
    """Items of the notes; none is the thing itself, so that a name or a recipe as good comes first."""
    return [
        Hit("item", entry.id, entry.title, _lines_of(entry), rank)
        for entry in entries()
        if (rank := min(SUMMARY, _rank(words, entry.title, entry.title, "")))
    ]


def _lines_of(entry: Entry) -> tuple[str, ...]:
    code = [
        f"from {path.rsplit('.', 1)[0]} import {path.rsplit('.', 1)[1]}"
        for path in entry.implementations
        if path.count(".") == 2
    ]
    checks = [f"quoin check {entry.id}"] if entry.claims else []
    plots = [f"quoin figure {entry.id}"] if entry.figures else []
    return (*code[:1], *checks, *plots, *(f"quoin train {name}" for name in entry.recipes[:1]))


def _recipes(words: list[str]) -> list[Hit]:
    hits = []
    for name, (summary, keywords, rest) in index()["recipes"].items():
        rank = _rank(words, name, summary, rest)
        if any(_words(each) == words for each in keywords.split("; ")):
            rank = max(rank, KEYWORD)
        elif _has(words, _words(keywords)):
            rank = max(rank, SUMMARY)
        if rank:
            hits.append(Hit("recipe", name, summary, (f"quoin train {name}",), rank))
    return hits


def _rank(words: list[str], name: str, summary: str, rest: str) -> int:
    """How well a thing of this name and this docstring answers; 0 where it does not."""
    parts = _words(name)
    if "".join(parts) == "".join(words):
        return EXACT
    joined = "".join(words)  # MultiheadAttention is MultiHeadAttention, but unet is no relu_network
    if _has(words, parts) or (
        len(joined) > 3 and any("".join(parts[i:]).startswith(joined) for i in range(len(parts)))
    ):
        return PART
    if _has(words, _words(summary)):
        return SUMMARY
    return TEXT if _has(words, _words(f"{name} {summary} {rest}")) else 0


def _has(words: list[str], text: list[str]) -> bool:
    """Whether every word stands in the text, longer ones also as the beginning of one ("normal" in "normalization")."""
    return all(any(word == each or (len(word) > 3 and each.startswith(word)) for each in text) for word in words)


@functools.cache
def _split(text: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)  # MultiHead -> Multi Head
    if re.search("[\u00c0-\u024f]", spaced):  # Fréchet is Frechet; mathematics' own characters stay
        spaced = "".join(each for each in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(each))
    return tuple(re.findall(r"[^\W_]+", spaced.lower()))


def _words(text: str) -> list[str]:
    return list(_split(text))


@functools.cache
def _keywords() -> dict[str, list[str]]:
    """Words that people look for, and the public names that are meant."""
    return tomllib.loads(Path(__file__).with_name("keywords.toml").read_text(encoding="utf-8"))
