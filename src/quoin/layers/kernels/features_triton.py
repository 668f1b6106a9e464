"""What the kernels of linear attention share: rows of matrices, products, and features with their gradients."""

import triton
import triton.language as tl

__all__ = ["dot", "features_of", "grad_of_input", "load_directions", "load_rows", "store_rows"]

GIVEN, ELU_PLUS_ONE, EXPONENTIAL = 0, 1, 2  # where features come from: KIND
LOWEST = tl.constexpr(-1e30)  # a scale below all others, yet finite: the difference of two must be a number


@triton.jit
def load_rows(pointer, stride, rows, N, width, WIDTH: tl.constexpr, EVEN: tl.constexpr):
    """Rows of a matrix, zero where there are none. EVEN: all are there."""
    columns = tl.arange(0, WIDTH)
    places = pointer + rows[:, None].to(tl.int64) * stride + columns[None, :]
    if EVEN:
        found = tl.load(places)
    else:
        found = tl.load(places, mask=(rows[:, None] < N) & (columns[None, :] < width), other=0.0)
    return found


@triton.jit
def store_rows(pointer, stride, rows, N, width, values, WIDTH: tl.constexpr, EVEN: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    places = pointer + rows[:, None].to(tl.int64) * stride + columns[None, :]
    if EVEN:
        tl.store(places, values)
    else:
        tl.store(places, values, mask=(rows[:, None] < N) & (columns[None, :] < width))


@triton.jit
def load_directions(W, w_f, F, D, KIND: tl.constexpr, BF: tl.constexpr, BD: tl.constexpr, DOT: tl.constexpr):
    """The directions of random features, in two pieces of which the second is what the first rounds away."""
    if KIND == 2:
        f, d = tl.arange(0, BF)[:, None], tl.arange(0, BD)[None, :]
        whole = tl.load(W + f * w_f + d, mask=(f < F) & (d < D), other=0.0)
        first = whole.to(DOT)
        rest = (whole - first.to(tl.float32)).to(DOT)
    else:
        first, rest = 0, 0
    return first, rest


@triton.jit
def dot(a, b, DOT: tl.constexpr, PRECISION: tl.constexpr):
    """a b, summed in float32."""
    return tl.dot(a.to(DOT), b.to(DOT), input_precision=PRECISION)


@triton.jit
def features_of(
    x, weight, weight_rest, scale, feature_mask, log_features,
    KIND: tl.constexpr, IS_QUERY: tl.constexpr, EVEN: tl.constexpr, DOT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """φ of a block of rows in float32, and its logarithmic scale."""
    x = x.to(tl.float32)
    if KIND == 2:
        projected = dot(x, tl.trans(weight), DOT, PRECISION)
        if tl.float32 != DOT:  # a direction must not be another one because the inputs have few digits
            projected += dot(x, tl.trans(weight_rest), DOT, PRECISION)
        if not EVEN:
            projected = tl.where(feature_mask[None, :], projected, LOWEST)
        largest = tl.max(projected, 1)
        values = tl.exp(projected - largest[:, None])
        log_scale = largest - 0.5 * scale * tl.sum(x * x, 1) - log_features
    elif KIND == 1:
        low = tl.minimum(x, 0.0)
        if IS_QUERY:
            low -= tl.minimum(tl.max(x, 1), 0.0)[:, None]
        values = tl.maximum(x, 0.0) + tl.exp(low)
        if not EVEN:
            values = tl.where(feature_mask[None, :], values, 0.0)
        log_scale = tl.zeros((x.shape[0],), tl.float32)
    else:
        values = x
        log_scale = tl.zeros((x.shape[0],), tl.float32)
    return values, log_scale


@triton.jit
def grad_of_input(
    grad, x, weight, weight_rest, scale, values,
    KIND: tl.constexpr, IS_QUERY: tl.constexpr, DOT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient of x from that of φ(x); the logarithmic scale is a constant."""
    x = x.to(tl.float32)
    if KIND == 2:
        along = grad * values
        found = dot(along, weight, DOT, PRECISION) - scale * x * tl.sum(along, 1)[:, None]
        if tl.float32 != DOT:
            found += dot(along, weight_rest, DOT, PRECISION)
    elif KIND == 1:
        low = tl.minimum(x, 0.0)
        if IS_QUERY:
            low -= tl.minimum(tl.max(x, 1), 0.0)[:, None]
        found = grad * tl.where(x > 0, 1.0, tl.exp(low))
    else:
        found = grad
    return found
