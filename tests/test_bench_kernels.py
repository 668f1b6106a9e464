"""Where a benchmark's time goes: operations counted as torch counts them, seconds that add up, the page that tells."""

import dataclasses
import json
import time

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from commands import tried
from quoin.bench import Benchmark, Implementation, KeptResults, KernelTime, kernel_table, write_overview
from quoin.bench.benchmarks import BENCHMARKS
from quoin.bench.kernel_time import KINDS, flops_of, kernel_time, kernel_times, measure_kernel_time
from quoin.errors import UserError


def square_sum(found):
    (found**2).sum().backward()


def parameters(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(shape, generator=generator).requires_grad_() for shape in shapes]


def counted(function, *arguments):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        square_sum(function(*arguments))
    events = [each for each in profiler.events() or () if each.name in KINDS]
    assert events
    return sum(flops_of(each.name, each.input_shapes, each.concrete_inputs) for each in events)


CASES = {
    "product": (torch.mm, [(3, 4), (4, 5)]),
    "products of a batch": (torch.bmm, [(2, 3, 4), (2, 4, 5)]),
    "dense layer": (nn.functional.linear, [(6, 4), (5, 4), (5,)]),
    "dense layer at positions": (nn.functional.linear, [(2, 6, 4), (5, 4), (5,)]),
    "convolution": (nn.functional.conv2d, [(2, 3, 8, 7), (4, 3, 3, 2), (4,)]),
    "stride, padding and dilation": (
        lambda x, w: nn.functional.conv2d(x, w, stride=2, padding=1, dilation=2),
        [(2, 4, 12, 11), (6, 4, 3, 3)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_counted_as_torch_counts_them(name):
    function, shapes = CASES[name]
    with FlopCounterMode(display=False) as counter:
        square_sum(function(*parameters(*shapes)))
    assert counted(function, *parameters(*shapes)) == counter.get_total_flops()


def test_groups_read_a_part_of_the_channels_forward_and_in_both_gradients():
    """Torch's own counter takes the gradient of the weights of groups for twice what it is."""
    arguments = parameters((2, 4, 6, 6), (6, 2, 3, 3))
    found = counted(lambda x, w: nn.functional.conv2d(x, w, groups=2), *arguments)
    assert found == 3 * 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3)


def test_attention_is_two_products_forward_and_five_backward():
    """Torch's own counter does not know the CPU's fused kernel."""
    heads, queries, keys, dim = 2, 8, 5, 16
    arguments = parameters((1, heads, queries, dim), (1, heads, keys, dim), (1, heads, keys, dim))
    found = counted(nn.functional.scaled_dot_product_attention, *arguments)
    assert found == (2 + 5) * 2 * heads * queries * keys * dim


def test_a_recurrent_layer_multiplies_every_vector_by_two_matrices():
    inputs, hidden, steps, rows = 6, 5, 7, 3
    lstm, x = nn.LSTM(inputs, hidden), torch.rand(steps, rows, inputs, requires_grad=True)
    found = counted(lambda x: lstm(x)[0], x)
    assert found == 3 * 2 * steps * rows * 4 * hidden * (inputs + hidden)  # forward, and two gradients


def test_an_image_that_asks_for_no_gradient_costs_none():
    x, w = torch.rand(2, 3, 8, 8), torch.rand(4, 3, 3, 3, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        square_sum(nn.functional.conv2d(x, w))
    assert counted(nn.functional.conv2d, x, w) == counter.get_total_flops()


def products(repeats):
    a = torch.rand(300, 300)
    for _ in range(repeats.count):
        for _ in range(4):
            torch.mm(a, a)
        repeats.end()


def idle(repeats):
    for _ in range(repeats.count):
        time.sleep(0.02)
        repeats.end()


def convolutions(repeats):
    x, conv = torch.rand(4, 8, 32, 32), nn.Conv2d(8, 16, 3)
    repeats.timed(lambda: conv(x).sum().backward())


@pytest.mark.deep
def test_a_repeat_is_taken_apart():
    found = measure_kernel_time(products, 4, 1)
    assert found.product_flops == 4 * 2 * 300**3  # of the last repeat alone
    assert found.convolutions == found.convolution_flops == 0
    assert 0 < found.products <= found.seconds
    assert found.peak > 0
    folded = measure_kernel_time(convolutions, 3, 1)
    assert folded.products == 0
    assert (
        folded.convolution_flops == 2 * 2 * 4 * 30 * 30 * 16 * 8 * 9
    )  # the kernel's gradient; the images ask for none


@pytest.mark.deep
def test_who_only_waits_has_no_kernels():
    found = measure_kernel_time(idle, 3, 1)
    assert (found.kernel_fraction, found.fraction_of_peak) == (0.0, 0.0)
    assert found.largest_gain == float("inf")


def test_fractions_are_those_of_the_seconds():
    found = KernelTime(2.5, 2.0, products=0.5, convolutions=0.3, product_flops=6e9, convolution_flops=2e9, peak=2e10)
    assert found.kernel_fraction == pytest.approx(0.4)
    assert found.fraction_of_peak == pytest.approx(0.5)  # 8e9 in 0.8 s
    assert found.largest_gain == pytest.approx(2.5)


FAKE = """
import torch
def matrices(repeats):
    a = torch.rand(64, 64)
    repeats.timed(lambda: a @ a)
def falls(repeats):
    raise RuntimeError("out of breath")
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    (tmp_path / "fake_kernels.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def row(*names, needs=()):
    implementations = tuple(Implementation(name, "fake_kernels", name, needs=needs) for name in names)
    return Benchmark("fake", "nothing", implementations, 1, on_torch=names[:1])


@pytest.mark.deep
def test_an_implementation_is_taken_apart_in_a_process_of_its_own(fakes):
    found = kernel_times(row("matrices", "falls"))  # only what is named, so that the second is not even tried
    assert list(found) == ["matrices"]
    assert found["matrices"].product_flops == 2 * 64**3
    told = []
    assert kernel_times(row("matrices", needs=("no_such_package",)), on_progress=told.append) == {}
    assert told == ["fake: matrices is not installed: pip install no_such_package"]


def test_one_that_fails_is_told_in_one_line(fakes):
    benchmark = row("falls")
    with pytest.raises(UserError, match=r"^expected a repeat of falls in fake, got RuntimeError: out of breath; run"):
        kernel_time(benchmark, benchmark.implementations[0])
    told = []
    assert kernel_times(benchmark, on_progress=told.append) == {}  # the others still have their turn
    assert len(told) == 1
    assert "out of breath" in told[0]


def test_every_name_is_that_of_an_implementation():
    for benchmark in BENCHMARKS:
        names = {each.name for each in benchmark.implementations}
        assert "Quoin" in benchmark.on_torch or not benchmark.on_torch
        assert any(name in names for name in benchmark.on_torch) or not benchmark.on_torch


def test_what_was_kept_is_on_the_page(tmp_path):
    kept, told = KeptResults(tmp_path / "kept"), KernelTime(2.5, 2.0, 0.5, 0.3, 6e9, 2e9, 2e10)
    benchmark = row("matrices")
    assert kept.read_kernels(benchmark) is None
    kept.write_kernels("fake", {"matrices": told})
    assert kept.read_kernels(benchmark) == {"matrices": told}
    assert kept.read_kernels(dataclasses.replace(benchmark, on_torch=())) is None  # of other implementations
    page, here = tmp_path / "page.md", kept.measured("fake", kernels=True)
    write_overview(page, [], {}, kernels={"fake": {"matrices": told}}, kernels_measured={"fake": here})
    assert "| fake | matrices | 2.0000 | 40% | 50% | 2.50 times |" in page.read_text()
    assert f"- `fake`: {here}" in page.read_text()
    assert here.startswith("20")
    write_overview(page, [], {})
    assert "Where the time goes" not in page.read_text()
    (tmp_path / "kept" / "fake.kernels.json").write_text('{"kernels": {"matrices": {"seconds": 1}}}')
    assert kept.read_kernels(benchmark) is None


def test_the_table_has_a_line_for_each_implementation():
    told = KernelTime(2.5, 2.0, 0.5, 0.3, 6e9, 2e9, 2e10)
    columns, rows = kernel_table({"one": {"a": told, "b": told}, "two": {"a": told}})
    assert [row[:2] for row in rows] == [("one", "a"), ("one", "b"), ("two", "a")]
    assert all(len(row) == len(columns) for row in rows)


@pytest.mark.deep
def test_the_command_profiles_and_keeps(tmp_path, monkeypatch):
    words = ["bench", "decode", "--num-repeats", "1", "--kernels", "--json", "--keep", str(tmp_path / "kept")]
    code, out, _ = tried(*words)
    assert code == 0
    taken = next(each for each in json.loads(out) if "kernels" in each)
    assert taken["name"] == "decode"
    assert taken["kernels"]["Quoin"]["product_flops"] > 0
    assert (tmp_path / "kept" / "decode.kernels.json").exists()
    code, _, err = tried(*words)
    assert code == 0
    assert "under the profiler" not in err  # kept, and not measured again
