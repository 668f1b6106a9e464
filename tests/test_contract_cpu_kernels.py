"""The contract of the blocks with kernels of their own on the CPU: each equals its definition and torch's, in value and
gradient, takes the kernel where it should, and is torch's own under whatever looks on.

Small inputs are sent through the kernels too: the sizes from which on they are worth it are set to zero.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from quoin import layers
from quoin.layers import AvgPool2d, Linear, Tanh, avg_pool, fast_call, onednn
from quoin.layers.onednn import is_plain_cpu

HAS_ONEDNN = onednn._is_x86() and torch.backends.mkldnn.is_available()
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13}
LARGE = {  # a block whose kernel is taken for this input, torch's own, and the function that the kernel goes through
    "pooling": (lambda: AvgPool2d(2), lambda: nn.AvgPool2d(2), (8, 4, 33, 32), (avg_pool, "_means_of_slices")),
    "tanh": (lambda: Tanh(), lambda: nn.Tanh(), (32, 3, 16, 16), (onednn, "_onednn_tanh")),
    "dense": (lambda: Linear(256, 128), lambda: nn.Linear(256, 128), (4, 32, 256), (onednn, "_onednn_product")),
}
pair = st.tuples(st.integers(1, 4), st.integers(1, 4))


@pytest.fixture
def every_size(monkeypatch):
    """The kernels for any size, and on any x86 processor."""
    for module, name in ((avg_pool, "FEWEST"), (onednn, "FEWEST"), (onednn, "FEWEST_PRODUCTS")):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(onednn, "_mkl_is_slow", lambda: True)


@pytest.fixture
def calls(monkeypatch):
    """How often each kernel was called."""
    counts = dict.fromkeys(LARGE, 0)
    monkeypatch.setattr(onednn, "_mkl_is_slow", lambda: True)

    def counted(name, kernel):
        def call(*arguments):
            counts[name] += 1
            return kernel(*arguments)

        return call

    for name, (_, _, _, (module, kernel)) in LARGE.items():
        monkeypatch.setattr(module, kernel, counted(name, getattr(module, kernel)))
    return counts


def agree(ours: Tensor, theirs: Tensor, inputs: list[Tensor]) -> None:
    """In value, and in the gradient of every input along a random direction."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    tolerance = TOLERANCE[ours.dtype]
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    along = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(1), dtype=theirs.dtype)
    grads = (torch.autograd.grad(output, inputs, along) for output in (ours, theirs))
    for our_grad, their_grad in zip(*grads, strict=True):
        scale = max(1.0, float(their_grad.abs().max()))
        torch.testing.assert_close(our_grad, their_grad, rtol=0, atol=4 * tolerance * scale)


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.usefixtures("every_size")
def test_touching_windows_agree_with_the_definition():
    @settings(max_examples=120, deadline=None, derandomize=True)
    @given(pair, pair, st.integers(1, 18), st.booleans(), st.sampled_from(list(TOLERANCE)), st.integers(0, 10_000))
    def holds(window, more, channels, last, dtype, seed):
        sides = [size + extra for size, extra in zip(window, more, strict=True)]  # seldom multiples of the window
        layout = torch.channels_last if last else torch.contiguous_format
        x = numbers(2, channels, *sides, dtype=dtype, seed=seed).contiguous(memory_format=layout).requires_grad_()
        ours = AvgPool2d(window)(x)
        agree(ours, layers.avg_pool2d_definition(x, window), [x])
        with torch.no_grad():
            assert torch.equal(AvgPool2d(window)(x), ours)
        assert ours.is_contiguous(memory_format=layout)
        if channels < avg_pool.FEW_CHANNELS:  # else channels last are torch's
            assert torch.autograd.grad(ours.sum(), x)[0].is_contiguous(memory_format=layout)

    holds()


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize(
    "options",
    [
        {"stride": 1},
        {"stride": (2, 3)},
        {"padding": 1},
        {"ceil_mode": True},
        {"divisor_override": 3},
        {"padding": 1, "count_include_pad": False},
    ],
    ids=str,
)
def test_other_windows_are_torchs(options):
    x = numbers(2, 3, 7, 9).requires_grad_()
    agree(AvgPool2d(2, **options)(x), nn.AvgPool2d(2, **options)(x), [x])


@pytest.mark.usefixtures("every_size")
def test_pooling_of_what_is_no_batch_of_images_is_torchs():
    assert torch.equal(AvgPool2d(2)(numbers(3, 5, 6)), nn.AvgPool2d(2)(numbers(3, 5, 6)))
    assert AvgPool2d(2)(numbers(0, 3, 6, 6)).shape == (0, 3, 3, 3)
    half = numbers(2, 3, 6, 6).bfloat16()
    assert torch.equal(AvgPool2d(2)(half), nn.AvgPool2d(2)(half))
    with pytest.raises(RuntimeError, match="too small"):
        AvgPool2d(2)(numbers(2, 3, 1, 6))


@pytest.mark.usefixtures("every_size")
@pytest.mark.skipif(not HAS_ONEDNN, reason="no oneDNN for x86")
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_tanh_agrees_with_the_definition(layout):
    x = (4 * numbers(3, 5, 7, 6)).contiguous(memory_format=layout)
    x[0, 0, 0] = torch.tensor([0.0, -0.0, 1e-30, -1e-5, 30.0, -200.0])
    x.requires_grad_()
    ours = Tanh()(x)
    agree(ours, layers.tanh(x), [x])
    assert ours.is_contiguous(memory_format=layout)
    exact = torch.tanh(x.detach().double())
    assert (
        float(((ours.detach() - exact).abs() / exact.abs().clamp_min(1e-37)).max()) < 1.5e-7
    )  # of the value, near 0 too
    limits = Tanh()(torch.tensor([float("inf"), -float("inf"), float("nan")]))
    assert limits[:2].tolist() == [1, -1]
    assert bool(limits[2].isnan())


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("shape", [(0,), (5, 0, 3)])
def test_tanh_of_nothing(shape):
    assert Tanh()(torch.zeros(shape)).shape == shape


@pytest.mark.usefixtures("every_size")
def test_dense_layers_agree_with_the_definition():
    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.integers(1, 5), min_size=1, max_size=3), pair, st.booleans(), st.booleans(), st.integers(0, 99))
    def holds(batch, sizes, has_bias, turned, seed):
        layer = Linear(*sizes, bias=has_bias)
        x = numbers(*batch, sizes[0], seed=seed)
        x = (x.mT.contiguous().mT if turned else x).requires_grad_()  # the same numbers, column by column
        bias = layer.bias if has_bias else torch.zeros(sizes[1])
        inputs = [x, layer.weight, *([bias] if has_bias else [])]
        ours = layer(x)
        agree(ours, layers.affine_definition(x, layer.weight, bias), inputs)
        with torch.no_grad():
            assert torch.equal(layer(x), ours)

    holds()


@pytest.mark.usefixtures("every_size")
def test_dense_layers_of_other_inputs_are_torchs():
    layer, plain = Linear(6, 4), nn.Linear(6, 4)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer(numbers(6)), plain(numbers(6)))
    assert layer(numbers(0, 6)).shape == (0, 4)
    assert torch.equal(layer.double()(numbers(3, 6).double()), plain.double()(numbers(3, 6).double()))
    layer, plain = layer.float(), plain.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(numbers(3, 6)).dtype == torch.bfloat16
    for wrong in (numbers(3, 5), numbers(3, 6).double()):
        with pytest.raises(RuntimeError):
            layer(wrong)
    with pytest.raises(RuntimeError, match="dtype"):
        layer.bfloat16()(numbers(3, 6))


@pytest.mark.usefixtures("every_size")
def test_only_what_asks_for_a_gradient_gets_one(calls):
    layer, x = Linear(6, 4), numbers(3, 6)
    layer.weight.requires_grad_(False)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert torch.equal(layer.bias.grad, torch.full((4,), 3.0))
    layer.requires_grad_(False)
    assert not layer(x).requires_grad
    assert calls["dense"] == 2 * HAS_ONEDNN


@pytest.mark.usefixtures("every_size")
def test_gradients_of_gradients():
    x = numbers(2, 3, 5, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(AvgPool2d(2), (x,))
    for block, given_x in ((Tanh(), numbers(3, 4)), (Linear(4, 2), numbers(3, 4))):
        x = given_x.requires_grad_()
        plain = torch.tanh if isinstance(block, Tanh) else lambda x, block=block: x @ block.weight.mT + block.bias
        found = []
        for function in (block, plain):
            (grad,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
            found.append(torch.autograd.grad(grad.square().sum(), x)[0])
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LARGE)
def test_kernels_are_taken_for_large_inputs_alone(name, calls):
    make, _, shape, _ = LARGE[name]
    block = make()
    block(numbers(*shape))
    taken = calls[name]
    assert taken == (1 if HAS_ONEDNN or name == "pooling" else 0)
    block(numbers(1, *shape[1:]))
    assert calls[name] == taken


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class WatchingFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def under(context, block, x):
    with context:
        return block(x)


def dual(block, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(block(forward_ad.make_dual(x, torch.ones_like(x)))).primal


def exported(block, x):
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(block, (x[:2],), dynamic_shapes=({0: batch},), strict=False)
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("mkldnn" in each or "slice" in each for each in names), names
    return program.module()(x)


LOOKERS = {
    "compile": lambda block, x: torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)(x),
    "export": exported,
    "trace": lambda block, x: torch.jit.trace(block, x, check_trace=False)(x),
    "vmap": lambda block, x: torch.vmap(lambda one: block(one[None])[0])(x),
    "jvp": lambda block, x: torch.func.jvp(block, (x,), (torch.ones_like(x),))[0],
    "grad": lambda block, x: torch.func.vjp(block, x)[0],
    "dual numbers": dual,
    "dispatch mode": lambda block, x: under(Watching(), block, x),
    "function mode": lambda block, x: under(WatchingFunctions(), block, x),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("looker", LOOKERS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_blocks_are_torchs_where_something_compiles_them_or_looks_on(name, looker, calls):
    make, make_plain, shape, _ = LARGE[name]
    block, plain, x = make(), make_plain(), numbers(*shape)
    plain.load_state_dict(block.state_dict())
    found = LOOKERS[looker](block, x)
    assert calls[name] == 0
    torch.testing.assert_close(found, plain(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LARGE)
def test_blocks_on_other_devices_are_torchs(name, calls):
    make, make_plain, shape, _ = LARGE[name]
    assert make().to("meta")(torch.empty(shape, device="meta")).shape == make_plain()(numbers(*shape)).shape
    assert calls[name] == 0


def test_plain_tensors():
    class Own(Tensor):
        pass

    x = numbers(2)
    assert is_plain_cpu(x, nn.Parameter(x))
    assert not is_plain_cpu(x, x.to("meta"))
    assert not is_plain_cpu(x.as_subclass(Own))


@pytest.mark.skipif(not HAS_ONEDNN, reason="no oneDNN for x86")
@pytest.mark.filterwarnings("ignore:TF32:UserWarning")
def test_whoever_switches_onednn_off_has_it_off(calls):
    with torch.backends.mkldnn.flags(enabled=False):
        for name in ("tanh", "dense"):
            make, _, shape, _ = LARGE[name]
            make()(numbers(*shape))
            assert calls[name] == 0


def test_one_token_passes_the_module_by():
    layer, x = Linear(6, 4), numbers(1, 6)
    with torch.no_grad():
        assert torch.equal(fast_call.fast_call(layer, x), nn.functional.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize(
    ("name", "avx512", "family", "slow"),
    [
        ("AMD EPYC 9755", True, 26, True),
        ("AMD EPYC 9654", True, 25, False),  # Zen 4 takes 512 bits in two halves
        ("AMD EPYC 7763", False, 25, False),
        ("Intel(R) Xeon(R)", True, 26, False),
        ("AMD EPYC", True, 0, False),
    ],
)
def test_mkl_is_passed_by_where_it_leaves_half_of_a_processor_idle(monkeypatch, name, avx512, family, slow):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": name, "avx512_f": avx512})
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(onednn, "processor_text", lambda: f"cpu family : {family}\n" if family else "")
    assert onednn._mkl_is_slow.__wrapped__() is slow
