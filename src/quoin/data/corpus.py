"""A text in tokens, ready for a language model: three splits, the tokenizer, and how many characters each split has.

p splits: training, validation and test text (see text.py)
"""

from collections.abc import Iterable
from typing import NamedTuple, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.memory import explain_out_of_memory
from quoin.data.sources import TokenizerName
from quoin.data.text import Text, load_text
from quoin.data.token_batches import StoredTokens, read_windows
from quoin.data.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer, WordTokenizer
from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["Corpus", "CorpusSplit", "check_length", "fit_tokenizer", "last_token", "load_corpus", "tokenize_text"]

LEAST_CHARACTERS = 10  # so that no split is empty


@shown
class CorpusSplit(NamedTuple):
    """One split in tokens."""

    tokens: Int[Tensor, "seq"] | StoredTokens
    num_characters: int
    before: (
        int | None
    )  # the token before the first, which a model may read to predict it; None at the beginning of the text

    def in_memory(self) -> Int[Tensor, "seq"]:
        """All of its tokens at once."""
        return read_windows(self.tokens, torch.tensor([0]), len(self.tokens))[0]


@shown
class Corpus(NamedTuple):
    """A text in tokens; bits per character divide by `num_characters` of a split, whatever the tokens are."""

    name: str
    tokenizer: Tokenizer
    train: CorpusSplit
    validation: CorpusSplit
    test: CorpusSplit
    fingerprint: str  # of the text, or of the token file


@explain_out_of_memory(
    "the text does not fit in memory: write its tokens to a file with `quoin tokenize` and give tokens:PATH, or "
    "give less"
)
def load_corpus(source: str, tokenizer: TokenizerName = "char", vocab_size: int = 2000) -> Corpus:
    """The tokens of `topics`, `text:PATH` or `tokens:PATH`; the last brings its own tokenizer and may be larger than
    memory.

    Args:
        tokenizer: "char", "word", "byte" or "bpe"; words and byte pairs are those of the training split.
        vocab_size: Most tokens of a word or byte-pair tokenizer; the other two ignore it.
    """
    form, _, path = source.partition(":")
    if form == "tokens" and path:
        from quoin.data.token_file import open_tokens

        return open_tokens(path)
    text = load_text(source)
    check_length(source, len(text.content))
    return tokenize_text(
        text, fit_tokenizer(tokenizer, vocab_size, characters=text.content, training=[text.splits().train])
    )


def fit_tokenizer(
    name: TokenizerName, vocab_size: int, *, characters: Iterable[str], training: Iterable[str]
) -> Tokenizer:
    """The tokenizer of this name for a text.

    Args:
        name: "char", "word", "byte" or "bpe".
        vocab_size: Most tokens of a word or byte-pair tokenizer; the other two ignore it.
        characters: Those of the whole text, since a model without one of them could give the text no probability at
            all.
        training: The training text in pieces, of which common words and byte pairs are learnt.
    """
    match name:
        case "char":
            return CharTokenizer(sorted(set(characters)))
        case "word":
            return WordTokenizer.fit(training, vocab_size, alphabet=characters)
        case "byte":
            return ByteTokenizer()
        case "bpe":
            from quoin.data.bpe import BPETokenizer

            return BPETokenizer.fit(training, vocab_size)
    raise UserError(
        f"expected a tokenizer, got {format_value(name)}: {did_you_mean(str(name), get_args(TokenizerName))}"
    )


def tokenize_text(text: Text, tokenizer: Tokenizer) -> Corpus:
    """`text` in tokens, split by split: no token reaches over from one into the next."""
    check_length(text.name, len(text.content))
    splits = text.splits()
    train, validation, test = (tokenizer.encode(split) for split in splits)
    return Corpus(
        name=text.name,
        tokenizer=tokenizer,
        train=CorpusSplit(train, len(splits.train), None),
        validation=CorpusSplit(validation, len(splits.validation), last_token(train)),
        test=CorpusSplit(test, len(splits.test), last_token(validation)),
        fingerprint=text.fingerprint,
    )


def last_token(tokens: Int[Tensor, "seq"] | StoredTokens) -> int:
    return int(read_windows(tokens, torch.tensor([len(tokens) - 1]), 1))


def check_length(name: str, num_characters: int) -> None:
    """Raise an error for a text too short to be split."""
    if num_characters < LEAST_CHARACTERS:
        got = f"{format_value(name)} has {num_characters}"
        raise UserError(f"expected a text of {LEAST_CHARACTERS} characters or more, but {got}: give a longer one")
