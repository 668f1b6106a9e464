"""How well targets are said: the loss of padded sequences, the share that is right as a whole, and BLEU.

    b sequences, t tokens of the longest, v tokens of the vocabulary
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from quoin.errors import Mistake
from quoin.objectives.cross_entropy import cross_entropy_definition
from quoin.tensor import check_shapes, valid_mask

__all__ = ["bleu", "exact_match", "sequence_cross_entropy", "sequence_cross_entropy_definition"]


def sequence_cross_entropy_definition(logits: Tensor, target: Tensor, lengths: Tensor) -> Tensor:  # (b, t, v), (b, t), (b,) -> (b, t)
    """-ln P(y_i) at each of the first l positions of a sequence of length l, and 0 at its padding.

    Notes: M14.
    """
    check_shapes("b t v, b t, b", logits=logits, target=target, lengths=lengths)
    rows = []
    for scores, tokens, length in zip(logits, target, lengths.tolist()):
        said = cross_entropy_definition(scores[:length], tokens[:length])
        rows.append(torch.cat([said, said.new_zeros(len(tokens) - length)]))
    return torch.stack(rows)


def sequence_cross_entropy(logits: Tensor, target: Tensor, lengths: Tensor) -> Tensor:  # (b, t, v), (b, t), (b,) -> (b, t)
    """`sequence_cross_entropy_definition` on torch's kernel; what stands at padding, be it NaN, changes neither value nor gradient.

    Notes: M14.
    """
    check_shapes("b t v, b t, b", logits=logits, target=target, lengths=lengths)
    real = valid_mask(lengths, target.shape[1])
    logits = logits.masked_fill(~real.unsqueeze(-1), 0)
    losses = functional.cross_entropy(logits.flatten(0, 1), target.masked_fill(~real, 0).flatten(), reduction="none")
    return losses.view_as(target).masked_fill(~real, 0)


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
