"""Logits into the gradient of their cross-entropy, where they lie: a Triton kernel that reads each row twice, the
second time from the cache, and writes it once."""

import triton
import triton.language as tl

__all__ = ["softmax_gradient"]


@triton.jit
def softmax_gradient(
    LOGITS, TARGETS, WEIGHTS, LOSSES, stride, CLASSES, COLUMNS, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr
):
    """A row's loss log Σ_k e^x_k - x_y; the row becomes softmax(x) - one_hot(y), times its weight, and 0 from CLASSES
    to COLUMNS."""
    row = tl.program_id(0).to(tl.int64)
    place, target = LOGITS + row * stride, tl.load(TARGETS + row)
    largest, total, own = tl.full((), -1e30, tl.float32), tl.zeros((), tl.float32), tl.zeros((), tl.float32)
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(place + column, mask=column < CLASSES, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), 0)
        largest = new
        own += tl.sum(tl.where(column == target, x, 0.0), 0)  # not loaded alone: other threads may have written by then
    log_sum = largest + tl.log(total)
    tl.store(LOSSES + row, log_sum - own)
    weight = tl.load(WEIGHTS + row).to(tl.float32) if WEIGHTED else 1.0
    for start in range(0, COLUMNS, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(place + column, mask=column < CLASSES, other=-float("inf")).to(tl.float32)
        gradient = (tl.exp(x - log_sum) - tl.where(column == target, 1.0, 0.0)) * weight
        tl.store(place + column, gradient.to(LOGITS.dtype.element_ty), mask=column < COLUMNS)
