"""tokenizer.json, the file of the library `tokenizers`: our vocabularies written in it, and read from it.

It is plain JSON, so that the library is not needed to write it. What a file holds is ours again where we would have
written the same one; any other is kept as it is, and the library does its work (`HuggingFaceTokenizer`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.bpe import BPETokenizer, byte_letters
from quoin.data.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer, WordTokenizer, token_array, utf8
from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["HuggingFaceTokenizer", "read_tokenizer_json", "tokenizer_json"]

UNKNOWN = "<unk>"  # in no vocabulary of ours: what has no token is an error there too, and not left out
_WORD = re.compile(r"\w")


def tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of a tokenizer.json that encodes as `tokenizer` does.

    >>> tokenizer_json(CharTokenizer("abc"))["model"]
    {'type': 'WordLevel', 'vocab': {'a': 0, 'b': 1, 'c': 2}, 'unk_token': '<unk>'}
    """
    match tokenizer:
        case HuggingFaceTokenizer():
            return tokenizer.content
        case CharTokenizer():
            vocab = _numbered(tokenizer.characters)
            model = {"type": "WordLevel", "vocab": vocab, "unk_token": UNKNOWN}
            return _whole(_split(r"[\s\S]"), {"type": "Fuse"}, model)
        case WordTokenizer():
            vocab = _numbered((*tokenizer.characters, *tokenizer.words))
            model = _byte_pairs(vocab, [], unk_token=UNKNOWN, ignore_merges=True)  # words that are there stay whole
            return _whole(_split(_words_of(tokenizer.characters)), {"type": "Fuse"}, model)
        case ByteTokenizer():
            return _whole(_byte_level(use_regex=False), _byte_level(), _byte_pairs(_numbered(byte_letters()), []))
        case BPETokenizer():
            letters = [tokenizer.shown(token) for token in range(tokenizer.vocab_size)]
            merges = [[letters[left], letters[right]] for left, right in tokenizer.merges]
            return _whole(_byte_level(), _byte_level(), _byte_pairs(_numbered(letters), merges))
    raise UserError(
        f"expected a tokenizer of Quoin's, got {type(tokenizer).__name__}; tokenizer.json cannot be written for others"
    )


def _numbered(words: Sequence[str]) -> dict[str, int]:
    for word in words:
        utf8(word)  # half of a character cannot be written
    return {word: token for token, word in enumerate(words)}


def _whole(pre_tokenizer: dict[str, Any], decoder: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _words_of(characters: Sequence[str]) -> str:
    r"""What `\w+|\W` finds in texts of these characters. They are listed: libraries do not agree on what \w is."""
    letters = [f"\\x{{{ord(each):x}}}" for each in characters if _WORD.match(each)]
    return rf"[{''.join(letters)}]+|[\s\S]" if letters else r"[\s\S]"


def _byte_level(*, use_regex: bool = True) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _byte_pairs(
    vocab: dict[str, int], merges: list[list[str]], *, unk_token: str | None = None, ignore_merges: bool = False
) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk_token,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": vocab,
        "merges": merges,
    }


@shown
class HuggingFaceTokenizer:
    """A tokenizer that the library `tokenizers` described, whatever it is made of.

    Args:
        content: Of its tokenizer.json.
        vocab_size: How many tokens the model has that reads them: often more than the tokenizer knows, never fewer.
    """

    def __init__(self, content: Mapping[str, Any], vocab_size: int) -> None:
        self.content, self.vocab_size = dict(content), vocab_size
        try:
            import tokenizers
        except ImportError:
            raise UserError(
                "this tokenizer needs the library `tokenizers`, which is not installed: pip install 'quoin[text]'"
            ) from None
        try:
            self._library = tokenizers.Tokenizer.from_str(json.dumps(self.content))
        except Exception as error:  # the library raises no other kind
            raise UserError(
                f"expected the tokenizer.json of the library `tokenizers`, got another ({format_value(str(error))}); "
                "restore the file"
            ) from error
        self._library.no_truncation()
        self._library.no_padding()
        largest = max(self._library.get_vocab(with_added_tokens=True).values(), default=-1)
        if largest >= vocab_size:
            raise UserError(
                f"expected a tokenizer of at most {vocab_size} tokens, as the model has, got token {largest}; it is "
                "another model's"
            )
        self._check_joins()

    def _check_joins(self) -> None:
        """Texts are sampled token by token: a text must be that of its tokens, one after the other."""
        tokens = sorted(self._library.get_vocab(with_added_tokens=True).values())
        texts = {token: self._library.decode([token], skip_special_tokens=False) for token in tokens[:500]}
        plain = [token for token, text in texts.items() if text and text.isascii()]  # and not a part of a character
        for pair in pairwise(plain):
            joined, got = "".join(texts[token] for token in pair), self._library.decode(pair, skip_special_tokens=False)
            if got != joined:
                raise UserError(
                    "expected a tokenizer whose tokens join to the text, as those of byte-level BPE do, got one that "
                    f"makes {format_value(got, 40)} of {format_value([texts[token] for token in pair], 40)}, as "
                    "SentencePiece's do; take a model with byte-level BPE, as GPT-2 and Llama 3 have it"
                )

    def encode(self, text: str) -> Int[Tensor, "seq"]:
        utf8(text)
        try:
            ids = self._library.encode(text, add_special_tokens=False).ids
        except Exception as error:  # the library raises no other kind
            raise UserError(f"expected a text of the vocabulary, got another ({format_value(str(error))})") from error
        if self._library.decode(ids, skip_special_tokens=False) != text:
            raise UserError(
                f"expected a text that this tokenizer gives back as it was, got {format_value(text, 40)}, which it "
                "changes; give it without what is lost, such as accents or spaces at the beginning"
            )
        return torch.tensor(ids, dtype=torch.int64)

    def decode(self, tokens: Int[Tensor, "seq"] | Sequence[int]) -> str:
        """The text of the tokens; one that the tokenizer does not know has none."""
        return self._library.decode(token_array(tokens, self.vocab_size).tolist(), skip_special_tokens=False)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "huggingface", "content": self.content, "vocab_size": self.vocab_size}


def read_tokenizer_json(content: Mapping[str, Any], vocab_size: int) -> Tokenizer:
    """The tokenizer of a model of so many tokens.

    >>> read_tokenizer_json(tokenizer_json(CharTokenizer("abc")), 3).encode("cab")
    tensor([2, 0, 1])
    """
    for guess in (_as_characters, _as_bytes, _as_words, _as_byte_pairs):
        try:
            found = guess(content["model"])
            if found.vocab_size == vocab_size and tokenizer_json(found) == content:
                return found
        except (UserError, LookupError, TypeError, ValueError, AttributeError):
            continue  # not this kind
    return HuggingFaceTokenizer(content, vocab_size)


def _in_order(model: Mapping[str, Any]) -> list[str]:
    return sorted(model["vocab"], key=model["vocab"].__getitem__)


def _as_characters(model: Mapping[str, Any]) -> Tokenizer:
    return CharTokenizer(_in_order(model))


def _as_bytes(model: Mapping[str, Any]) -> Tokenizer:
    return ByteTokenizer()


def _as_words(model: Mapping[str, Any]) -> Tokenizer:
    words = _in_order(model)
    return WordTokenizer([each for each in words if len(each) == 1], [each for each in words if len(each) > 1])


def _as_byte_pairs(model: Mapping[str, Any]) -> Tokenizer:
    vocab = model["vocab"]
    return BPETokenizer([(vocab[left], vocab[right]) for left, right in model["merges"]])
