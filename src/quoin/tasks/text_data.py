"""The text of a language model in tokens: of a tokenizer that is learnt of it, or of one that is known already."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from quoin.data import Corpus, Tokenizer, check_same_tokenizer, load_corpus, load_text
from quoin.data.corpus import tokenize_text
from quoin.tasks.pretrained_files import read_pretrained_language_model
from quoin.tasks.sequence_options import TextOptions

__all__ = ["corpus", "recorded_tokenizer"]

_recorded: ContextVar[Tokenizer | None] = ContextVar("recorded_tokenizer", default=None)


@contextmanager
def recorded_tokenizer(tokenizer: Tokenizer | None) -> Iterator[None]:
    """Inside, texts are read by this tokenizer, which a run that was begun remembers; None learns one of the text."""
    token = _recorded.set(tokenizer)
    try:
        yield
    finally:
        _recorded.reset(token)


def corpus(options: TextOptions) -> Corpus:
    """The text that `options` name, in tokens; those of the weights that it starts from, if any."""
    known = _recorded.get()
    if known is None and (pretrained := getattr(options, "pretrained", "")):
        known = read_pretrained_language_model(pretrained, "transformer-lm").tokenizer
    if known is None:
        return load_corpus(options.data, options.tokenizer, options.vocab_size)
    if options.data.startswith("tokens:"):
        found = load_corpus(options.data)
        check_same_tokenizer(known, found.tokenizer, options.data)
        return found
    return tokenize_text(load_text(options.data), known)
