"""Attention over a long sequence on the GPU: linear attention and Performer beside exact attention and
flash-linear-attention, which is run where it is installed.

16 heads of 64 in bfloat16, causal. Calls are launched one after another; with `graph` they are replays of a CUDA
graph, where no time of Python's counts.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from quoin.bench.worker import Repeats
from quoin.layers.attention import LinearAttention, PerformerAttention

__all__ = ["exact", "flash_linear_attention", "linear", "performer"]

HEADS, HEAD_DIM, FEATURES = 16, 64, 256
CALLS = 10  # of a repeat, at least: more of a shorter sequence


def linear(repeats: Repeats, length: str, passes: str, way: str) -> dict[str, float]:
    """φ = elu + 1, by Quoin's kernels."""
    attention = LinearAttention()
    return _run(repeats, lambda q, k, v: attention(q, k, v, causal=True), int(length), passes, way)


def performer(repeats: Repeats, length: str, passes: str, way: str) -> dict[str, float]:
    """256 positive random features, by Quoin's kernels."""
    attention = PerformerAttention(HEAD_DIM, FEATURES, generator=torch.Generator().manual_seed(0)).cuda().eval()
    return _run(repeats, lambda q, k, v: attention(q, k, v, causal=True), int(length), passes, way)


def exact(repeats: Repeats, length: str, passes: str, way: str) -> dict[str, float]:
    """torch's scaled dot-product attention, by the kernel that torch chooses."""
    attend = functional.scaled_dot_product_attention
    return _run(repeats, lambda q, k, v: attend(q, k, v, is_causal=True), int(length), passes, way)


def flash_linear_attention(repeats: Repeats, length: str, passes: str, way: str) -> dict[str, float]:
    """`chunk_linear_attn` with elu + 1 before it and its own normalisation."""
    from fla.ops.linear_attn import chunk_linear_attn  # pyright: ignore[reportMissingImports]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = ((each if each is v else functional.elu(each) + 1).transpose(1, 2) for each in (q, k, v))
        return chunk_linear_attn(q, k, v, normalize=True)[0].transpose(1, 2)

    return _run(repeats, attend, int(length), passes, way)


def _run(repeats: Repeats, attend: Callable[..., Tensor], length: int, passes: str, way: str) -> dict[str, float]:
    """`passes` is forward, or both: forward and backward; `way` is eager, or graph."""
    generator = torch.Generator("cuda").manual_seed(0)
    shape = (1, HEADS, length, HEAD_DIM)
    tensors = [torch.randn(shape, generator=generator, device="cuda").bfloat16() for _ in range(4)]
    query, key, value, upstream = tensors
    leaves = [each.requires_grad_(passes == "both") for each in (query, key, value)]

    def call() -> Any:
        output = attend(*leaves)
        return output if passes == "forward" else torch.autograd.grad(output, leaves, upstream)

    work = _captured(call) if way == "graph" else call
    count = CALLS * max(1, 16_384 // length)

    def calls() -> float:
        began = repeats.clock()
        for _ in range(count):
            work()
        torch.cuda.synchronize()
        return repeats.clock() - began

    return {"ms a call": 1000 * repeats.timed(calls) / count, "GPU MiB": torch.cuda.max_memory_allocated() / 2**20}


def _captured(call: Callable[[], Any]) -> Callable[[], None]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
