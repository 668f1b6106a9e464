"""Text as its tokens come, one by one: what is sure is given out, half of a character waits for its other half."""

from quoin.data.vocabulary import Vocabulary

__all__ = ["TextStream"]

_BROKEN = "\ufffd"  # what a vocabulary makes of bytes that are no character, or not yet


class TextStream:
    """The pieces that `push` gives and the one of `finish`, put together, are `vocabulary.decode` of all tokens.

    >>> from quoin.data import ByteVocabulary
    >>> said = TextStream(ByteVocabulary())
    >>> [said.push(byte) for byte in "aé!".encode()], said.finish()
    (['a', '', 'é', '!'], '')
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._waiting, self._given = vocabulary, [], 0  # given: characters of the waiting tokens that are out

    def push(self, token: int) -> str:
        """What is sure after this token: all but a character at the end that is not whole."""
        self._waiting.append(token)
        text = self._vocabulary.decode(self._waiting)
        sure = text.removesuffix(_BROKEN)  # bytes cut off within a character become one such mark, whatever comes before them
        piece, self._given = sure[self._given :], len(sure)
        if sure == text:
            self._waiting, self._given = [], 0
        return piece

    def finish(self) -> str:
        """What is left, whole or not."""
        piece = self._vocabulary.decode(self._waiting)[self._given :]
        self._waiting, self._given = [], 0
        return piece
