"""Cases for `quoin.tensor`: see tests/dtypes.py."""

from quoin.tensor import log_sum_exp, softmax

CASES = {
    "softmax": lambda x: softmax(x([[0, 255, 250], [3, 1, 2]])),
    "log_sum_exp": lambda x: log_sum_exp(x([[0, 255, 250], [3, 1, 2]])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {}
