"""The tokenizer of an exported model, from quoin.json: text to tokens and back."""

import itertools
import json
import re
import unicodedata
from typing import Any

ENDINGS = re.compile("'(?:s|t|re|ve|m|ll|d)")
PIECES = re.compile(" ?L+| ?N+| ?O+|[ S]+(?![LNO])|[ S]+")  # of letters, numbers, spaces and others


class JSONTokenizer:
    """Tokens of characters, words, bytes or byte pairs; `special` tokens, if any, come before all of them."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.kind, self.special = told["kind"], len(told.get("special", ()))
        self.ranks: dict[tuple[bytes, bytes], int] = {}
        if self.kind in ("char", "word"):
            self.spelt: list[Any] = [*told["characters"], *told.get("words", ())]
        else:
            self.spelt = [bytes([byte]) for byte in range(256)]
            known = set(self.spelt)
            for rank, (left, right) in enumerate(told.get("merges", ())):
                pair = self.spelt[left], self.spelt[right]
                self.ranks[pair] = rank
                if pair[0] + pair[1] not in known:
                    self.spelt.append(pair[0] + pair[1])
                    known.add(pair[0] + pair[1])
        self.tokens = {piece: token for token, piece in enumerate(self.spelt)}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        pieces: list[Any]
        if self.kind == "char":
            pieces = list(text)
        elif self.kind == "word":
            words = re.findall(r"\w+|\W", text, re.DOTALL)
            pieces = [piece for word in words for piece in ([word] if word in self.tokens else word)]
        elif self.kind == "byte":
            pieces = [bytes([byte]) for byte in text.encode()]
        else:
            pieces = [piece for word in split_words(text) for piece in self.merged(word.encode())]
        if unknown := [piece for piece in pieces if piece not in self.tokens]:
            raise SystemExit(f"the model has no token for {unknown[0]!r}: leave it out")
        return [self.special + self.tokens[piece] for piece in pieces]

    def merged(self, word: bytes) -> list[bytes]:
        """Byte-pair encoding: the pair of the lowest rank is merged until there is none."""
        parts = [bytes([byte]) for byte in word]
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, len(self.ranks)), pair) for pair in itertools.pairwise(parts)]
            rank, pair = min(ranked, key=lambda each: each[0])
            if rank == len(self.ranks):
                break
            found, at = [], 0
            while at < len(parts):
                both = tuple(parts[at : at + 2]) == pair
                found.append(pair[0] + pair[1] if both else parts[at])
                at += 2 if both else 1
            parts = found
        return parts

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens."""
        pieces = [self.spelt[token - self.special] for token in tokens if token >= self.special]
        return "".join(pieces) if self.kind in ("char", "word") else b"".join(pieces).decode("utf-8", "replace")


class LibraryTokenizer:
    """A tokenizer that came with an imported model: the library `tokenizers` does its work."""

    def __init__(self, told: dict[str, Any]) -> None:
        try:
            import tokenizers
        except ImportError:
            raise SystemExit("this model's tokenizer needs the library tokenizers: pip install tokenizers") from None
        self.library = tokenizers.Tokenizer.from_str(json.dumps(told["content"]))
        self.library.no_truncation()
        self.library.no_padding()

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, with none added at its beginning or end."""
        return self.library.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens; one that the tokenizer does not know has none."""
        return self.library.decode(tokens, skip_special_tokens=False)


def open_tokenizer(told: dict[str, Any]) -> JSONTokenizer | LibraryTokenizer:
    """The tokenizer that quoin.json tells."""
    return LibraryTokenizer(told) if told["kind"] == "huggingface" else JSONTokenizer(told)


def split_words(text: str) -> list[str]:
    """Words with the space before them, as GPT-2 splits a text; classes of characters stand for the characters."""
    classes, found, at = "".join(map(class_of, text)), [], 0
    while at < len(text):
        match = ENDINGS.match(text, at) or PIECES.match(classes, at)
        assert match is not None
        found.append(text[at : match.end()])
        at = match.end()
    return found


def class_of(character: str) -> str:
    """L for a letter, N for a number, S for white space, O for any other; a space is itself."""
    if character == " ":
        return " "
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":
        return "S"
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "O"
