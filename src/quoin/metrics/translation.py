"""How good translations are: exact match, and BLEU."""

from collections.abc import Sequence
from typing import Literal

from quoin.errors import UserError

__all__ = ["bleu", "exact_match"]


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The fraction of hypotheses that equal their references, character by character.

    >>> exact_match(["2001-02-03", "1999-12-30"], ["2001-02-03", "1999-12-31"])
    0.5
    """
    _check_sentences(hypotheses, references)
    return sum(map(str.__eq__, hypotheses, references)) / len(hypotheses)


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, tokens: Literal["words", "characters"] = "words"
) -> float:
    """BLEU from 0 to 100, by sacrebleu: the geometric mean of the n-gram precisions p_1 .. p_4, times a penalty for
    brevity.

        100 min(1, exp(1 - r / c)) (p_1 p_2 p_3 p_4)^{1/4}  for c tokens in the hypotheses and r in the references

    It is a number of a whole corpus: the counts of all sentences are added up.

    Args:
        tokens: What n-grams are made of: words as sacrebleu cuts them (13a), or single characters.

    >>> round(bleu(["the cat sat on the mat"], ["the cat sat on a mat"]), 1)
    53.7
    """
    _check_sentences(hypotheses, references)
    try:
        import sacrebleu
    except ImportError:
        raise UserError("expected sacrebleu for BLEU, but it is not installed: pip install 'quoin[text]'") from None
    return sacrebleu.corpus_bleu(
        list(hypotheses), [list(references)], tokenize={"words": "13a", "characters": "char"}[tokens]
    ).score


def _check_sentences(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references) or not hypotheses:
        raise UserError(
            f"expected as many hypotheses as references, one or more, got {len(hypotheses)} and {len(references)}: "
            "pair them up"
        )
