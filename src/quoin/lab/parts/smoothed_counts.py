"""Counts of a small text's n-grams and the smoothed probabilities that they become, as they are and as printed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data import CharTokenizer
from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.text_pictures import shown
from quoin.lab.parts.ticks import digits
from quoin.models import laplace_bigram, laplace_trigram, laplace_unigram, ngram_counts_definition
from quoin.notes.claims.language import contexts_are_counted

__all__ = ["MOST_ORDER", "MOST_ROWS", "SmoothedCounts", "draw_smoothed", "smoothed_counts"]

MOST_ORDER, MOST_ROWS = 3, 9
NAMES = ("nothing", "the letter before", "the two letters before")


class SmoothedCounts(NamedTuple):
    """A row for each context of `order` - 1 letters, a column for each letter."""

    letters: list[str]
    contexts: list[str]
    counts: Int[Tensor, "context vocab"]
    table: Float[Tensor, "context vocab"]
    last: int  # the row of the context with which the text ends
    backwards: Float[Tensor, " n"]  # nats of each letter of the text read backwards


def smoothed_counts(text: str, order: int, epsilon: float, printed: bool) -> SmoothedCounts:
    """The n-grams of `order` letters counted and smoothed by ε pseudo-counts.

    Args:
        printed: Whether a context is counted where nothing follows it. A single letter has no context: there the
            printed form is right.
    """
    tokenizer = CharTokenizer.fit(text)
    tokens, letters = tokenizer.encode(text), [shown(each) for each in tokenizer.characters]
    m = len(letters)
    counts, singles = ngram_counts_definition(tokens, m, order), torch.bincount(tokens, minlength=m).double()
    if order == 1:
        table = laplace_unigram(singles, epsilon)
    else:
        smooth = laplace_bigram if order == 2 else laplace_trigram
        table = smooth(counts, laplace_unigram(singles, 1.0), epsilon)
    counts, table = counts.reshape(-1, m), table.reshape(-1, m)
    if printed and order > 1:  # the same counts and pseudo-counts, over another total
        contexts = _numbered(tokens, m, order - 1)
        totals = [form_of(contexts_are_counted, which)(contexts, len(table)) + epsilon for which in (False, True)]
        table = table * (totals[0] / totals[1].double().clamp_min(1e-300)).unsqueeze(1)
    grams = _numbered(tokens.flip(0), m, order)
    return SmoothedCounts(
        letters,
        [_name(number, letters, order - 1) for number in range(len(table))],
        counts,
        table,
        int(_numbered(tokens, m, order - 1)[-1]),
        -table.flatten()[grams].log(),
    )


def _numbered(tokens: Int[Tensor, " n"], m: int, length: int) -> Int[Tensor, " grams"]:
    """Each stretch of `length` tokens as one number, whose digits to the base m they are; the empty one is 0."""
    powers = m ** torch.arange(length - 1, -1, -1)
    return (tokens.unfold(0, length, 1) * powers).sum(dim=-1) if length else torch.zeros(len(tokens) + 1).long()


def _name(number: int, letters: list[str], length: int) -> str:
    return "".join(letters[number // len(letters) ** place % len(letters)] for place in range(length - 1, -1, -1))


def draw_smoothed(picture: Picture, found: SmoothedCounts, order: int, role: str) -> None:
    """Counts, the probabilities that they became, the sum of each row, and the handle `order`. Of pairs before a letter
    only those that occur have a row, the most frequent ones."""
    often = found.counts.sum(dim=1)
    rows = range(len(often))
    if order == MOST_ORDER:
        seen = [row for row in sorted(rows, key=lambda row: -int(often[row])) if often[row] and row != found.last]
        rows = sorted([found.last, *seen[: MOST_ROWS - 1]])
    chosen, names = torch.tensor(rows), [found.contexts[row] for row in rows]
    height = min(290, 58 * len(rows))
    left = picture.axes(box=(40, 50, 250, height), bare=True, title="how often it occurs")
    left.cells(found.counts[chosen].double(), role="ink", numbers=True, rows=names, columns=found.letters)
    right = picture.axes(box=(330, 50, 230, height), bare=True, title="probability of the next")
    right.cells(found.table[chosen], role=role, most=1.0, numbers=True, rows=names, columns=found.letters)
    for place, row in enumerate(rows):
        total = float(found.table[row].sum())
        ink = "printed" if abs(total - 1) > 1e-6 else "ink"
        picture.text(632, 50 + height * (place + 0.5) / len(rows) + 4, digits(total), role=ink, anchor="end")
    picture.text(632, 40, "sum", role="faint", anchor="end", size=13)
    more = int((often > 0).sum()) - int((often[chosen] > 0).sum())
    words = f"rows: {NAMES[order - 1]}" + (f"; {more} more occur" if more else "")
    picture.text(632, 398, words, role="faint", size=13, anchor="end")
    picture.text(40, 398, "order n", role="faint", size=13)
    # to the left, where a narrow window shows it without scrolling
    scale = picture.axes((1, MOST_ORDER), (0, 1), box=(120, 372, 160, 20), bare=True)
    scale.line([1, MOST_ORDER], [0, 0], "faint", width=1.4)
    for each in range(1, MOST_ORDER + 1):
        if each != order:  # under the handle it would be covered
            scale.points([each], [0], "faint", size=3)
        scale.text(each, 0, str(each), "hand" if each == order else "faint", anchor="middle", dy=24)
    scale.handle("order", order, 0, label="order n", along="x")
