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

from quoin.display import shown
from quoin.notes.map import Entry, entries, index
from quoin.options import CALLED_ELSEWHERE
from quoin.runs.listing import listed_options

__all__ = ["Hit", "search"]

# How well a text answers: the name itself, a keyword, a part of the name, its first sentence, anywhere.
EXACT, KEYWORD, PART, SUMMARY, TEXT = 5, 4, 3, 2, 1

ENDINGS = {"loss", "score", "scores", "metric", "layer", "module", "criterion", "fn", "func", "emb", "pos", "scheduler"}


@shown
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
    found = _found(words)
    if not any(hit.rank >= PART for hit in found):  # mutual_info_score, GaussianNLLLoss, resnet18
        have = {hit.name for hit in found}
        found += [hit for hit in _found(_without_endings(words)) if hit.name not in have]
    order = {"name": 0, "option": 1, "command": 1, "recipe": 2, "item": 3}
    return sorted(found, key=lambda hit: (-hit.rank, order[hit.kind], len(hit.name), hit.name))


def _found(words: list[str]) -> list[Hit]:
    return [*_names(words), *_options(words), *_items(words), *_recipes(words)]


def _without_endings(words: list[str]) -> list[str]:
    """The words without the endings that other libraries give their names, and without sizes."""
    short = [re.sub(r"(?<=[a-z])\d+d?$", "", word) for word in words]
    while len(short) > 1 and short[-1] in ENDINGS:
        short.pop()
    return short


def _meant(words: list[str]) -> list[str]:
    """What the keywords name for these words, or for them without their endings."""
    asked = {"".join(words), "".join(_without_endings(words))}
    return list(
        dict.fromkeys(
            name for keyword, names in _keywords().items() if "".join(_words(keyword)) in asked for name in names
        )
    )


def _options(words: list[str]) -> list[Hit]:
    meant = {*_meant(words), CALLED_ELSEWHERE.get("-".join(words), "")}
    hits = []
    for flag, help in listed_options().items():
        rank = KEYWORD if flag in meant else min(PART, _rank(words, flag.strip("-"), help, ""))
        if rank >= SUMMARY:
            what = f"an option of `quoin train`, where the recipe has it: {help}"
            hits.append(Hit("option", flag, what, ("quoin train mlp --help",), rank))
    return hits


def _names(words: list[str]) -> list[Hit]:
    meant = _meant(words)
    hits = [_of_torch(name) for name in meant if name.startswith("torch.")]
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
    text = f"{name} {summary} {rest}"
    if not all(word in text.lower() for word in words):  # to split every docstring into words takes most of the time
        return 0
    return TEXT if _has(words, _words(text)) else 0


def _has(words: list[str], text: list[str]) -> bool:
    """Whether every word stands in the text, longer ones also as the beginning of one ("normal" in "normalization")."""
    return all(any(word == each or (len(word) > 3 and each.startswith(word)) for each in text) for word in words)


@functools.cache
def _split(text: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)  # MultiHead, NLLLoss
    if re.search("[\u00c0-\u024f]", spaced):  # Fréchet is Frechet; mathematics' own characters stay
        spaced = "".join(each for each in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(each))
    return tuple(re.findall(r"[^\W_]+", spaced.lower()))


def _words(text: str) -> list[str]:
    return list(_split(text))


@functools.cache
def _keywords() -> dict[str, list[str]]:
    """Words that people look for, and the public names that are meant."""
    return tomllib.loads(Path(__file__).with_name("keywords.toml").read_text(encoding="utf-8"))
