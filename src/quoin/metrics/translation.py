"""How good translations are: the fraction that is right as a whole, and BLEU."""

from collections.abc import Sequence
from typing import Literal

from quoin.errors import Mistake

__all__ = ["bleu", "exact_match"]


def exact_match(said: Sequence[str], right: Sequence[str]) -> float:
    """The share of sentences that are right to the last character.

    >>> exact_match(["2001-02-03", "1999-12-30"], ["2001-02-03", "1999-12-31"])
    0.5
    """
    _check_sentences(said, right)
    return sum(map(str.__eq__, said, right)) / len(said)


def bleu(said: Sequence[str], right: Sequence[str], *, tokens: Literal["words", "characters"] = "words") -> float:
    """BLEU from 0 to 100, by sacrebleu: the geometric mean of the n-gram precisions p_1 .. p_4, times a penalty for brevity.

        100 min(1, exp(1 - r / c)) (p_1 p_2 p_3 p_4)^{1/4}  for c tokens said where r are right

    Words are sacrebleu's own (13a). It is a number of a whole corpus: the counts of all sentences are added up.

    >>> round(bleu(["the cat sat on the mat"], ["the cat sat on a mat"]), 1)
    53.7
    """
    _check_sentences(said, right)
    try:
        import sacrebleu
    except ImportError:
        raise Mistake("expected sacrebleu for BLEU, but it is not installed: pip install 'quoin[text]'") from None
    return sacrebleu.corpus_bleu(list(said), [list(right)], tokenize={"words": "13a", "characters": "char"}[tokens]).score


def _check_sentences(said: Sequence[str], right: Sequence[str]) -> None:
    if len(said) != len(right) or not said:
        raise Mistake(f"expected as many sentences as there are right ones, one or more, got {len(said)} and {len(right)}: pair them up")
