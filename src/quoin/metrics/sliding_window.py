"""The negative log-likelihood of a text under a model of bounded context: each token once, in overlapping windows.

n tokens to predict, T tokens in a window
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Integer
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.tensor.blocks import rows_per_block

__all__ = ["sliding_window_nll"]

LOGITS_PER_BLOCK = 2**24  # of one forward pass: 64 MB


@torch.no_grad()
def sliding_window_nll(
    model: Callable[[Tensor], Tensor],
    tokens: Integer[Tensor, "tokens"],
    *,
    window: int,
    stride: int,
    fraction: Callable[[int], slice] | None = None,
) -> Float[Tensor, "predicted"]:
    """-ln P(x_t | what its window shows of x_{<t}) for t = 1 .. n; `tokens[0]` is only read, and `model` gives (b, T,
    vocabulary) logits.

    Every window of `window` tokens predicts the last `stride` of its positions, so each token is predicted once, from
    at least window - stride tokens before it wherever there are so many.

    Args:
        fraction: Says of so many windows which to read, where others read the rest; all unless given. What they predict
            is given back.
    """
    if not 1 <= stride <= window:
        raise UserError(
            f"expected windows that predict from 1 to all {window} of their tokens anew, got {stride}: change stride"
        )
    if tokens.ndim != 1 or len(tokens) < 2:
        raise UserError(
            f"expected one sequence of two or more tokens to predict from, got shape {tuple(tokens.shape)}: give a "
            "longer text"
        )
    num_predicted = len(tokens) - 1
    window = min(window, num_predicted)
    stride = min(stride, window)
    ends = torch.arange(stride, num_predicted + stride, stride).clamp(
        max=num_predicted
    )  # one past the last prediction of each window
    starts = (ends - window).clamp(min=0)
    read = range(len(starts))[fraction(len(starts)) if fraction else slice(None)]
    if not read:
        return torch.empty(0, device=tokens.device)
    span = torch.arange(window + 1)
    found, done, rows = [], read.start, None
    while done < read.stop:
        some = starts[done : min(done + (rows or 1), read.stop)]
        seen = tokens[(some[:, None] + span).to(tokens.device)].long()
        logits = model(seen[:, :-1])
        found.append(
            functional.cross_entropy(logits.flatten(0, 1).float(), seen[:, 1:].flatten(), reduction="none").reshape(
                len(some), -1
            )
        )
        done += len(some)
        rows = rows or rows_per_block(logits[0].numel(), LOGITS_PER_BLOCK)
    costs = torch.cat(found)
    indices = torch.arange(read.start * stride, min(read.stop * stride, num_predicted))
    number = indices // stride
    return costs[(number - read.start).to(costs.device), (indices - starts[number]).to(costs.device)]
