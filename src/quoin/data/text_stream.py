"""Text as its tokens come, one by one: what is sure is given out, half of a character waits for its other half."""

from quoin.data.tokenizers import Tokenizer
from quoin.display import shown

__all__ = ["TextStream"]

_BROKEN = "\ufffd"  # what a tokenizer makes of bytes that are no character, or not yet


@shown
class TextStream:
    """The pieces that `push` gives and the one of `finish`, put together, are `tokenizer.decode` of all tokens.

    >>> from quoin.data import ByteTokenizer
    >>> stream = TextStream(ByteTokenizer())
    >>> [stream.push(byte) for byte in "aé!".encode()], stream.finish()
    (['a', '', 'é', '!'], '')
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._waiting, self._given = (
            tokenizer,
            [],
            0,
        )  # given: characters of the waiting tokens that are out

    def push(self, token: int) -> str:
        """What is sure after this token: all but a character at the end that is not whole."""
        self._waiting.append(token)
        text = self._tokenizer.decode(self._waiting)
        sure = text.removesuffix(
            _BROKEN
        )  # bytes cut off within a character become one such character, whatever comes before them
        piece, self._given = sure[self._given :], len(sure)
        if sure == text:
            self._waiting, self._given = [], 0
        return piece

    def finish(self) -> str:
        """What is left, whole or not."""
        piece = self._tokenizer.decode(self._waiting)[self._given :]
        self._waiting, self._given = [], 0
        return piece
