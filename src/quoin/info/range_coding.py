"""Arithmetic coding at full speed where every distribution is known before coding starts: constriction's range
coder (extra `coding`).

The bytes are constriction's own and not those of arithmetic.py, whose coder steps its model and so needs no
distribution in advance; both spend -log2 p(s) bits a symbol but for some thousandths of a percent. Distributions are
floats: decode where they come out the same to the last bit.   n symbols of an alphabet of k
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from quoin.errors import UserError
from quoin.prob import check_probs
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["range_decode", "range_encode"]


def range_encode(
    symbols: Integer[Tensor, "n"] | ArrayLike, probs: Float[Tensor, "n k"] | Float[Tensor, "k"] | ArrayLike
) -> bytes:
    """`symbols` as bytes under one distribution for all of them, or a distribution for each; `arithmetic_encode` with
    the same distributions is its definition.
    """
    symbols = number_tensor(symbols, "symbols", probs)
    probs = float_tensor(probs, "probs", symbols)
    probabilities = _checked(probs, len(symbols))
    k = probabilities.shape[-1]
    if (
        symbols.ndim != 1
        or symbols.is_floating_point()
        or (len(symbols) and not 0 <= int(symbols.min()) <= int(symbols.max()) < k)
    ):
        raise UserError(
            f"expected one axis of symbols from 0 to {k - 1}, got {_described(symbols)}; number the alphabet from 0"
        )
    if k == 1:
        return b""  # constriction wants two symbols; one has no information
    coding, encoder = _constriction(), _constriction().queue.RangeEncoder()
    whole = symbols.detach().cpu().numpy().astype(np.int32)
    if probabilities.ndim == 1:
        encoder.encode(whole, coding.model.Categorical(probabilities, perfect=False))
    else:
        encoder.encode(whole, coding.model.Categorical(perfect=False), probabilities)
    return encoder.get_compressed().astype("<u4").tobytes()


def range_decode(
    data: bytes, probs: Float[Tensor, "n k"] | Float[Tensor, "k"] | ArrayLike, count: int
) -> Int[Tensor, "n"]:
    """The `count` symbols that `range_encode` made `data` of under the same distributions."""
    probs = float_tensor(probs, "probs")
    probabilities = _checked(probs, count)
    if len(data) % 4:
        raise UserError(f"expected bytes of range_encode, four to a word, got {len(data)}; were they cut?")
    if probabilities.shape[-1] == 1 or count == 0:
        if data:
            raise UserError(
                f"expected no bytes for {count} symbols of these distributions, got {len(data)}; ask for as many "
                "as were coded"
            )
        return torch.zeros(count, dtype=torch.int64)
    coding = _constriction()
    decoder = coding.queue.RangeDecoder(np.frombuffer(data, "<u4").astype(np.uint32))
    try:
        if probabilities.ndim == 1:
            symbols = decoder.decode(coding.model.Categorical(probabilities, perfect=False), count)
        else:
            symbols = decoder.decode(coding.model.Categorical(perfect=False), probabilities)
    except AssertionError as error:  # what constriction raises where no symbol fits; it may also not notice
        raise UserError(
            "expected bytes of range_encode under these distributions, got others; give the same distributions and "
            "all the bytes"
        ) from error
    if not decoder.maybe_exhausted():
        raise UserError(
            f"expected the bytes to end with symbol {count}, got more; ask for as many symbols as were coded"
        )
    return torch.from_numpy(symbols.astype(np.int64))


def _checked(probs: Tensor, count: int) -> np.ndarray:
    check_probs(probs, "probs")
    if probs.ndim > 2 or (probs.ndim == 2 and len(probs) != count):
        raise UserError(
            f"expected one distribution (k,) or one for each of {count} symbols (n, k), got shape "
            f"{tuple(probs.shape)}; reshape it"
        )
    return np.ascontiguousarray(probs.detach().cpu().double().numpy())


def _described(symbols: Tensor) -> str:
    kind = f"{str(symbols.dtype).removeprefix('torch.')} of shape {tuple(symbols.shape)}"
    return kind if symbols.numel() == 0 else f"{kind} from {symbols.min().item()} to {symbols.max().item()}"


def _constriction() -> Any:
    try:
        import constriction  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            "expected the package constriction, got none; pip install 'quoin[coding]', or use arithmetic_encode"
        ) from error
    return constriction.stream  # pyright: ignore[reportAttributeAccessIssue]
