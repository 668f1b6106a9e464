"""The last layer of a language model and its loss in one: cross-entropy of logits that are never all in memory.

The logits of n tokens over v classes, their softmax and its gradient are the largest tensors of a training step. They
are needed only between the two products with W, so they are made for a piece of the tokens at a time, turned into their
gradient where they lie, and used up. A loss that is one number has its gradient up to a factor once its value is known,
and the backward pass has nothing left to compute.

    n tokens, d features, v classes
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.layers.kernels import has_kernels
from quoin.tensor import check_shapes

__all__ = ["counted_as_on", "linear_cross_entropy", "linear_cross_entropy_definition"]

Reduction = Literal["sum", "mean", "none"]

# On a GPU: below this many rows a product with W no longer keeps it busy, and above this many logits there is nothing
# to gain. On the CPU a piece should stay in the cache.
MIN_GPU_TOKENS, GPU_LOGITS = 2**13, 2**29
MIN_CPU_TOKENS, CPU_LOGITS = 2**7, 2**23
ALIGNMENT = 64  # classes: rows of logits then begin where tensor cores can read them
FLOAT16_SCALE = 2.0**-7  # of a sum over thousands of tokens, which would overflow

_counted_device = ""  # not a ContextVar: torch.compile reads it


def linear_cross_entropy_definition(
    hidden: Float[Tensor, "tokens dim"],
    weight: Float[Tensor, "classes dim"],
    targets: Int[Tensor, "tokens"],
    *,
    bias: Float[Tensor, "classes"] | None = None,
) -> Float[Tensor, "tokens"]:
    """log Σ_k exp(w_k·h + b_k) - (w_y·h + b_y) of each token."""
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits.to(_wide(logits.dtype)), targets, reduction="none")


def linear_cross_entropy(
    hidden: Float[Tensor, "tokens dim"],
    weight: Float[Tensor, "classes dim"],
    targets: Int[Tensor, "tokens"],
    *,
    bias: Float[Tensor, "classes"] | None = None,
    reduction: Reduction = "mean",
    chunk_size: int | None = None,
) -> Float[Tensor, "*tokens"]:
    """`linear_cross_entropy_definition` without all its logits in memory: their mean, their sum, or one for each token.

    Under autocast the products are in its dtype; sums are in float32 at least. It can be differentiated once.

    Args:
        targets: From 0 to v - 1; no value is passed over.
        reduction: With "none" every token's loss may have its own weight in what is minimised, and the backward pass
            computes the logits again.
        chunk_size: Tokens whose logits are in memory at a time; chosen by the sizes and the device unless given.

    >>> hidden, weight = torch.eye(3), torch.eye(3)
    >>> linear_cross_entropy(hidden, weight, torch.tensor([0, 1, 1]), reduction="none", chunk_size=2)
    tensor([0.5514, 0.5514, 1.5514])
    """
    check_shapes("n d, v d, n", hidden=hidden, weight=weight, targets=targets)
    if len(targets) == 0 or (chunk_size is not None and chunk_size < 1):
        raise UserError(
            f"expected a token or more, and a chunk_size of 1 or more, got {len(targets)} and {chunk_size}; give more"
        )
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        hidden = hidden.to(torch.get_autocast_dtype(device))
    if chunk_size is None:
        if _plain_is_quicker(hidden, weight):
            losses = linear_cross_entropy_definition(hidden, weight, targets, bias=bias)
            return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
        chunk_size = _chunk_size(len(targets), weight.shape[0], _device_type(hidden))
    if reduction == "none":
        return _LossOfEachToken.apply(hidden, weight, bias, targets, chunk_size)  # pyright: ignore
    total = _SummedLoss.apply(hidden, weight, bias, targets, chunk_size)
    return total if reduction == "sum" else total / len(targets)  # pyright: ignore


@contextmanager
def counted_as_on(device: str) -> Iterator[None]:
    """Inside, the logits come in the pieces that they have on `device`, "cpu" or "cuda", and by as many calls, wherever
    they lie: a plan counts the step of another machine on this one."""
    global _counted_device
    before, _counted_device = _counted_device, device
    try:
        yield
    finally:
        _counted_device = before


def _device_type(tensor: Tensor) -> str:
    return _counted_device or tensor.device.type


def _plain_is_quicker(hidden: Tensor, weight: Tensor) -> bool:
    """Whether all logits are no larger than a piece of them would be."""
    tokens, classes = len(hidden), len(weight)
    return tokens <= _chunk_size(tokens, classes, _device_type(hidden))


def _chunk_size(tokens: int, classes: int, device: str) -> int:
    least, most = (MIN_CPU_TOKENS, CPU_LOGITS) if device == "cpu" else (MIN_GPU_TOKENS, GPU_LOGITS)
    pieces = -(-tokens // max(least, most // classes))
    return -(-tokens // (pieces * least)) * least if pieces > 1 else tokens  # pieces of nearly one size


def _padding(classes: int, device: str) -> int:
    return -classes % ALIGNMENT if device == "cuda" else 0


class _SummedLoss(torch.autograd.Function):
    """The sum over the tokens. Its gradient is computed with its value: backward only scales it."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, targets, chunk_size):
        needed = ctx.needs_input_grad[:3]
        losses, *gradients = _in_pieces(hidden, weight, bias, targets, None, chunk_size, *needed)
        ctx.save_for_backward(*gradients)
        return losses.sum()

    @staticmethod
    def backward(ctx, *grad_outputs):
        _refuse_second_derivative()
        (upstream,) = grad_outputs
        gradients = (
            (each * upstream).to(each.dtype) if needed else None
            for each, needed in zip(ctx.saved_tensors, ctx.needs_input_grad)
        )
        return *gradients, None, None


class _LossOfEachToken(torch.autograd.Function):
    """The losses one by one. What each counts is known only in the backward pass, which makes the logits again."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, targets, chunk_size):
        ctx.save_for_backward(hidden, weight, bias, targets)
        ctx.chunk_size = chunk_size
        return _in_pieces(hidden, weight, bias, targets, None, chunk_size, False, False, False)[0]

    @staticmethod
    def backward(ctx, *grad_outputs):
        _refuse_second_derivative()
        (upstream,) = grad_outputs
        needed = ctx.needs_input_grad[:3]
        hidden, weight, bias, targets = ctx.saved_tensors
        _, *gradients = _in_pieces(hidden, weight, bias, targets, upstream, ctx.chunk_size, *needed)
        return *(each if wanted else None for each, wanted in zip(gradients, needed)), None, None


def _refuse_second_derivative() -> None:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # by create_graph=True
        raise UserError(
            "expected one derivative of linear_cross_entropy, got create_graph=True, which is for a second; take "
            "linear_cross_entropy_definition"
        )


def _compute_in_pieces(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    token_weights: Tensor | None,
    chunk_size: int,
    hidden_grad: bool,
    weight_grad: bool,
    bias_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The losses, and the gradients of their sum weighted by `token_weights`, those that are wanted."""
    losses, d_hidden, d_weight, d_bias = _empty(hidden, weight, bias, hidden_grad, weight_grad, bias_grad)
    to_gradient = _softmax_gradient_on(hidden)
    with torch.autocast(hidden.device.type, enabled=False):
        classes, padding = len(weight), _padding(len(weight), _device_type(hidden))
        narrow = functional.pad(weight.to(hidden.dtype), (0, 0, 0, padding)) if padding else weight.to(hidden.dtype)
        start = 0
        for h, y in zip(hidden.split(chunk_size), targets.split(chunk_size)):
            rows = slice(start, start := start + len(h))
            logits = h @ narrow.T
            if bias is not None:
                logits[:, :classes] += bias
            w = None if token_weights is None else token_weights[rows]
            losses[rows] = to_gradient(logits, y, w, classes)  # what were logits is now the gradient
            if hidden_grad:
                torch.mm(logits, narrow, out=d_hidden[rows])
            if weight_grad:
                found = _wide_product(logits.T, h)  # of the padding too, or its columns begin where they should not
                d_weight = found if rows.start == 0 else d_weight.add_(found)
            if bias_grad:
                d_bias += logits[:, :classes].sum(dim=0, dtype=d_bias.dtype)
            del logits
    d_weight = d_weight[:classes].to(weight.dtype) if weight_grad else d_weight.to(weight.dtype)
    return losses, d_hidden, d_weight, d_bias if bias is None else d_bias.to(bias.dtype)


# torch.compile would move the gradient into the backward pass, and keep all logits for it: to it this is one operator.
_in_pieces_operator = torch.library.custom_op("quoin::linear_cross_entropy", _compute_in_pieces, mutates_args=())


@_in_pieces_operator.register_fake
def _(hidden, weight, bias, targets, token_weights, chunk_size, hidden_grad, weight_grad, bias_grad):
    losses, d_hidden, d_weight, d_bias = _empty(hidden, weight, bias, hidden_grad, weight_grad, bias_grad)
    return losses, d_hidden, d_weight.to(weight.dtype), d_bias if bias is None else d_bias.to(bias.dtype)


def _in_pieces(*arguments) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (_in_pieces_operator if torch.compiler.is_compiling() else _compute_in_pieces)(*arguments)


def _empty(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, hidden_grad: bool, weight_grad: bool, bias_grad: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = _wide(hidden.dtype)
    return (
        hidden.new_empty(len(hidden), dtype=wide),
        torch.empty_like(hidden, memory_format=torch.contiguous_format) if hidden_grad else hidden.new_empty(0),
        hidden.new_empty(weight.shape if weight_grad else (0,), dtype=wide),
        hidden.new_zeros(len(weight) if bias_grad and bias is not None else 0, dtype=wide),
    )


def _softmax_gradient(logits: Tensor, targets: Tensor, token_weights: Tensor | None, classes: int) -> Tensor:
    """The loss of each row; the logits become softmax - one_hot(target), times the row's weight, and padding zero."""
    seen = logits[:, :classes]
    wide = seen.to(_wide(seen.dtype))  # the same memory, where it is wide already
    row = targets.unsqueeze(-1)
    log_sum = wide.logsumexp(dim=-1, keepdim=True)
    losses = (log_sum - wide.gather(-1, row)).squeeze(-1)
    probs = wide.sub_(log_sum).exp_()
    probs.scatter_add_(-1, row, probs.new_full((), -1.0).expand_as(row))
    if token_weights is not None:
        probs *= token_weights.unsqueeze(-1)
    seen.copy_(probs)
    logits[:, classes:] = 0
    return losses


def _softmax_gradient_on(hidden: Tensor) -> Callable[[Tensor, Tensor, Tensor | None, int], Tensor]:
    """`_softmax_gradient`, or on CUDA a kernel that does not write the logits out wide."""
    if _counted_device == "cuda":
        return _softmax_gradient_operator
    if not has_kernels(hidden):
        return _softmax_gradient
    from quoin.layers.kernels.cross_entropy import softmax_gradient

    return softmax_gradient


@torch.library.custom_op("quoin::softmax_gradient", mutates_args=("logits",))
def _softmax_gradient_operator(logits: Tensor, targets: Tensor, token_weights: Tensor | None, classes: int) -> Tensor:
    """The kernel as a plan counts it: one call."""
    if has_kernels(logits):
        from quoin.layers.kernels.cross_entropy import softmax_gradient

        return softmax_gradient(logits, targets, token_weights, classes)
    return _softmax_gradient(logits, targets, token_weights, classes)


@_softmax_gradient_operator.register_fake
def _(logits, targets, token_weights, classes):
    return logits.new_empty(len(logits), dtype=_wide(logits.dtype))


def _wide_product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right, summed and given in float32 at least."""
    if left.dtype not in (torch.bfloat16, torch.float16):
        return left @ right
    scale = FLOAT16_SCALE if left.dtype is torch.float16 else 1.0
    right = right * scale if scale != 1 else right
    found = torch.mm(left, right, out_dtype=torch.float32) if left.is_cuda else (left @ right).float()
    return found / scale if scale != 1 else found


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
