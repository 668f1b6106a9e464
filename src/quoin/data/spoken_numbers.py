"""Whole numbers in English words, as the British say them."""

import torch

from quoin.errors import UserError

__all__ = ["number_words", "sample_number"]

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GROUPS = ((1_000_000, "million"), (1000, "thousand"), (100, "hundred"))

MOST_DIGITS = 6  # of the sampled numbers


def number_words(number: int) -> str:
    """A number below a billion in words.

    >>> number_words(342_817)
    'three hundred and forty-two thousand eight hundred and seventeen'
    >>> number_words(1_000_021)
    'one million and twenty-one'
    """
    if not 0 <= number < 10**9:
        raise UserError(f"expected a whole number from 0 to 999,999,999, got {number}: give one in between")
    for size, name in _GROUPS:
        if number >= size:
            count, rest = divmod(number, size)
            joined = " and " if 0 < rest < 100 else " " if rest else ""
            return f"{number_words(count)} {name}{joined}{number_words(rest) if rest else ''}"
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


def sample_number(generator: torch.Generator) -> tuple[str, str]:
    """A number in digits and in words; each length up to six digits is equally probable, so that short numbers come
    too."""
    digits = int(torch.randint(1, MOST_DIGITS + 1, (), generator=generator))
    least = 0 if digits == 1 else 10 ** (digits - 1)
    number = int(torch.randint(least, 10**digits, (), generator=generator))
    return str(number), number_words(number)
