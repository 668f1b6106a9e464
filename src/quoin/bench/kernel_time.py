"""Where the seconds of an implementation on torch go: into matrix products and convolutions, which run at some fraction
of the machine's measured peak, and into all the rest.

`python -m quoin.bench.kernel_time MODULE FUNCTION REPEATS THREADS ...` runs the implementation as worker.py does, its
last repeat under torch's profiler, and prints one line of JSON. A program that calls the same kernels cannot be quicker
than they are: `KernelTime.largest_gain`.
"""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quoin.bench.benchmark import Benchmark, Implementation, missing_packages
from quoin.bench.worker import THREADS, Repeats, take_cores
from quoin.errors import UserError
from quoin.processor import num_cores

__all__ = ["KernelTime", "flops_of", "kernel_table", "kernel_time", "kernel_times", "measure_kernel_time"]

REPEATS = 4  # the set-up, two to warm up, and the one that is looked at
PEAK_SIZES = (512, 1024, 2048)  # of the square matrices that the peak is measured with


@dataclass(frozen=True)
class KernelTime:
    """One repeat, taken apart: its seconds, those of the kernels, and their floating-point operations.

    Args:
        products: Seconds in matrix products, attention's among them.
        convolutions: Seconds in convolutions, forward and backward.
        plain_seconds: The repeat before, without the profiler, which slows what is not a kernel.
        peak: Floating-point operations a second of the quickest matrix product on this machine and these threads.
    """

    seconds: float
    plain_seconds: float
    products: float
    convolutions: float
    product_flops: float
    convolution_flops: float
    peak: float

    @property
    def kernel_fraction(self) -> float:
        """The fraction of the repeat that kernels take, the profiler's own time aside."""
        return min(1.0, (self.products + self.convolutions) / self.plain_seconds)

    @property
    def fraction_of_peak(self) -> float:
        """How quick the kernels are beside the quickest matrix product."""
        inside = self.products + self.convolutions
        return (self.product_flops + self.convolution_flops) / inside / self.peak if inside else 0.0

    @property
    def largest_gain(self) -> float:
        """How many times as quick the repeat would be if nothing but its kernels took time."""
        inside = self.products + self.convolutions
        return self.plain_seconds / inside if inside else float("inf")


COLUMNS = ("benchmark", "implementation", "seconds", "in kernels", "of the peak", "at most as quick")


def kernel_table(found: dict[str, dict[str, KernelTime]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows for a person: `found` holds every benchmark's implementations."""
    rows = [
        (
            benchmark,
            name,
            f"{each.plain_seconds:.4f}",
            f"{each.kernel_fraction:.0%}",
            f"{each.fraction_of_peak:.0%}",
            f"{each.largest_gain:.2f} times",
        )
        for benchmark, inside in found.items()
        for name, each in inside.items()
    ]
    return COLUMNS, rows


def kernel_times(
    benchmark: Benchmark, *, on_progress: Callable[[str], None] = lambda text: None
) -> dict[str, KernelTime]:
    """Those implementations of a benchmark taken apart that run on torch's kernels; one that is not installed, or
    fails, is named instead."""
    found: dict[str, KernelTime] = {}
    for each in benchmark.implementations:
        if each.name in benchmark.on_torch:
            if missing := missing_packages(each):
                on_progress(f"{benchmark.name}: {each.name} is {missing}")
                continue
            try:
                found[each.name] = kernel_time(benchmark, each)
            except UserError as failure:
                on_progress(str(failure))
    return found


def kernel_time(benchmark: Benchmark, implementation: Implementation) -> KernelTime:
    """Run one implementation of a benchmark in a process of its own, and take a repeat of it apart."""
    threads = min(benchmark.threads, num_cores())
    named = dict.fromkeys(THREADS, str(threads))
    command = [sys.executable, "-m", "quoin.bench.kernel_time", implementation.module, implementation.function]
    ended = subprocess.run(
        [*command, str(REPEATS), str(threads), *implementation.arguments],
        capture_output=True,
        text=True,
        env=os.environ | named | dict(implementation.environment),
    )
    if ended.returncode:
        last = next((line for line in reversed(ended.stderr.splitlines()) if line.strip()), "it ended without a word")
        raise UserError(f"expected a repeat of {implementation.name} in {benchmark.name}, got {last}; run it without "
                        "--kernels to see more")  # fmt: skip
    return KernelTime(**json.loads(ended.stdout.splitlines()[-1]))


class _LookedAt(Repeats):
    """Repeats without a runner, the last of them under the profiler."""

    def __init__(self, count: int, threads: int) -> None:
        from torch.profiler import ProfilerActivity, profile

        super().__init__(count, threads, sys.stdin, io.StringIO())
        self.profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
        self.took: list[float] = []

    def end(self) -> None:
        now = time.perf_counter()
        self.took.append(now - self._began)
        self._done += 1
        if self._done == self.count:
            self.profiler.__exit__(None, None, None)
        elif self._done == self.count - 1:
            self.profiler.__enter__()
        self._began = time.perf_counter()
        self._paused += self._began - now


def measure_kernel_time(run: Callable[[Repeats], Any], count: int, threads: int) -> KernelTime:
    """A repeat of `run`, in this process."""
    repeats = _LookedAt(count, threads)
    run(repeats)
    seconds, flops = ({"products": 0.0, "convolutions": 0.0} for _ in range(2))
    for event in repeats.profiler.events() or ():
        if (kind := KINDS.get(event.name)) is not None:
            seconds[kind] += event.self_cpu_time_total / 1e6
            flops[kind] += flops_of(event.name, event.input_shapes, event.concrete_inputs)
    return KernelTime(
        seconds=repeats.took[-1],
        plain_seconds=repeats.took[-2],
        products=seconds["products"],
        convolutions=seconds["convolutions"],
        product_flops=flops["products"],
        convolution_flops=flops["convolutions"],
        peak=measured_peak(threads),
    )


def measured_peak(threads: int) -> float:
    """Floating-point operations a second of the quickest square matrix product in float32, by either of torch's
    libraries."""
    import torch

    torch.set_num_threads(threads)
    best = 0.0
    for size in PEAK_SIZES:
        a, b = torch.rand(size, size), torch.rand(size, size)
        for product in (torch.mm, _onednn_product):
            with contextlib.suppress(RuntimeError, AttributeError):  # a build without oneDNN
                product(a, b)
                for _ in range(5):
                    began = time.perf_counter()
                    product(a, b)
                    best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best


def _onednn_product(a: Any, b: Any) -> Any:
    import torch

    return torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")


def _product(shapes: Sequence[Sequence[int]], first: int) -> float:
    """Two operations for each of rows x inner x columns."""
    a, b = shapes[first], shapes[first + 1]
    return 2.0 * _size(a) * b[-1]


def _linear(shapes: Sequence[Sequence[int]]) -> float:
    """x Wᵀ, the weight by its rows."""
    return 2.0 * _size(shapes[0]) * shapes[1][0]


def _convolution(out: Sequence[int], weight: Sequence[int]) -> float:
    return 2.0 * _size(out) * _size(weight[1:])


def _size(shape: Sequence[int]) -> int:
    found = 1
    for each in shape:
        found *= each
    return found


def _convolved(shapes: Sequence[Sequence[int]], values: Sequence[Any]) -> Sequence[int]:
    """The shape of what `mkldnn_convolution(input, weight, bias, padding, stride, dilation, groups)` gives."""
    x, weight = shapes[0], shapes[1]
    padding, stride, dilation = (tuple(each) for each in values[3:6])
    sides = [
        (side + 2 * padding[i] - dilation[i] * (weight[2 + i] - 1) - 1) // stride[i] + 1 for i, side in enumerate(x[2:])
    ]
    return (x[0], weight[0], *sides)


def _attention(shapes: Sequence[Sequence[int]]) -> float:
    """Q Kᵀ and the weights times V, every key for every query."""
    query, key, value = shapes[:3]
    return 2.0 * _size(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _recurrence(shapes: Sequence[Sequence[int]]) -> float:
    """The input's and the hidden state's weights times every vector of the sequence."""
    inputs, of_input, of_hidden = shapes[:3]
    return 2.0 * _size(inputs[:-1]) * (_size(of_input) + _size(of_hidden))


KINDS = {
    "aten::mm": "products",
    "aten::addmm": "products",
    "aten::bmm": "products",
    "aten::baddbmm": "products",
    "mkldnn::_linear_pointwise": "products",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "products",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": "products",
    "aten::mkldnn_rnn_layer": "products",
    "aten::mkldnn_rnn_layer_backward": "products",
    "aten::mkldnn_convolution": "convolutions",
    "aten::_convolution": "convolutions",  # a transposed one is called inside it, and has no event of its own
    "aten::_slow_conv2d_forward": "convolutions",
    "aten::convolution_backward": "convolutions",
}


def flops_of(name: str, shapes: Sequence[Any], values: Sequence[Any]) -> float:
    """Floating-point operations of one call of torch's, by the shapes and values of its arguments."""
    match name:
        case "aten::mm" | "aten::bmm":
            return _product(shapes, 0)
        case "aten::addmm" | "aten::baddbmm":
            return _product(shapes, 1)
        case "mkldnn::_linear_pointwise":
            return _linear(shapes)
        case "aten::_scaled_dot_product_flash_attention_for_cpu":
            return _attention(shapes)
        case "aten::_scaled_dot_product_flash_attention_for_cpu_backward":
            return 2.5 * _attention(shapes[1:])  # five products for the two of the forward pass
        case "aten::mkldnn_rnn_layer":
            return _recurrence(shapes)
        case "aten::mkldnn_rnn_layer_backward":
            return 2 * _recurrence(shapes)  # by the inputs and by the weights
        case "aten::mkldnn_convolution":
            return _convolution(_convolved(shapes, values), shapes[1])
        case "aten::convolution_backward":
            wanted = sum(bool(each) for each in values[-1][:2]) if values and values[-1] else 2
            return wanted * _convolution(shapes[0], shapes[2])
        case _:
            return 0.0


def main(module: str, function: str, count: str, threads: str, *arguments: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    take_cores(int(threads))
    run = getattr(importlib.import_module(module), function)
    found = measure_kernel_time(lambda repeats: run(repeats, *arguments), int(count), int(threads))
    print(json.dumps(asdict(found)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
