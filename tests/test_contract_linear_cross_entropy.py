"""The last layer and its loss in one against the definition: values, gradients, dtypes, and what is in memory."""

import sys
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from near import assert_each_near
from quoin.errors import UserError
from quoin.layers import linear_cross_entropy as fast
from quoin.layers import linear_cross_entropy_definition as definition
from quoin.layers.kernels import on_device_of
from quoin.layers.linear_cross_entropy import counted_as_on
from quoin.models import GPT
from seeds import seeded

N, D, V = 37, 8, 29
CHUNKS = (1, 5, 36, 37, 100)


def example(dtype=torch.float64, classes=V) -> tuple[Tensor, ...]:
    rng = seeded(0)
    hidden, weight, bias = (
        torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((N, D), (classes, D), (classes,))
    )
    return *(each.to(dtype) for each in (hidden, weight, bias)), torch.randint(classes, (N,), generator=rng)


def assert_all_near(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert_each_near(one, other, 1e-12)


def gradients(loss, *inputs: Tensor) -> list[Tensor]:
    """The loss, and its gradients."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    value = loss(*leaves)
    return [value.detach(), *torch.autograd.grad(value, leaves)]


@pytest.mark.parametrize("chunk_size", CHUNKS)
@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_values_and_gradients_are_the_definitions(reduction, chunk_size):
    hidden, weight, bias, targets = example()
    token_weights = torch.randn(N, generator=seeded(1), dtype=torch.float64)  # of any sign: what comes from above

    def reduced(losses: Tensor) -> Tensor:
        return (losses * token_weights).sum() if reduction == "none" else -0.3 * getattr(losses, reduction)()

    def ours(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        found = fast(hidden, weight, targets, bias=bias, reduction=reduction, chunk_size=chunk_size)
        return (found * token_weights).sum() if reduction == "none" else -0.3 * found

    expected = gradients(lambda h, w, b: reduced(definition(h, w, targets, bias=b)), hidden, weight, bias)
    assert_all_near(gradients(ours, hidden, weight, bias), expected)
    without = gradients(lambda h, w: fast(h, w, targets, reduction="sum", chunk_size=chunk_size), hidden, weight)
    assert_all_near(without, gradients(lambda h, w: definition(h, w, targets).sum(), hidden, weight))


def test_the_definition_is_torchs():
    hidden, weight, bias, targets = example()
    expected = functional.cross_entropy(functional.linear(hidden, weight, bias), targets, reduction="none")
    torch.testing.assert_close(definition(hidden, weight, targets, bias=bias), expected)


@pytest.mark.parametrize("frozen", ["hidden", "weight"])
def test_what_is_frozen_gets_no_gradient_and_the_other_its_own(frozen):
    hidden, weight, _, targets = example()
    (weight if frozen == "hidden" else hidden).requires_grad_()
    for reduction in ("sum", "none"):
        value = fast(hidden, weight, targets, reduction=reduction, chunk_size=8).sum()
        ours = torch.autograd.grad(value, weight if frozen == "hidden" else hidden)
        theirs = torch.autograd.grad(
            definition(hidden, weight, targets).sum(), weight if frozen == "hidden" else hidden
        )
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_under_autocast_it_is_as_near_to_the_truth_as_the_definition(dtype, reduction):
    hidden, weight, _, targets = example(torch.float32)
    truth = gradients(lambda h, w: definition(h, w, targets).sum(), hidden.double(), weight.double())

    def cast(loss):
        def run(h: Tensor, w: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=dtype):
                return loss(h, w)

        return run

    ours = gradients(cast(lambda h, w: fast(h, w, targets, reduction=reduction, chunk_size=10).sum()), hidden, weight)
    plain = gradients(cast(lambda h, w: definition(h, w, targets).sum()), hidden, weight)
    assert [each.dtype for each in ours] == [torch.float32] * 3
    for found, beside, exact in zip(ours, plain, truth):
        scale = exact.abs().max()
        assert (found - exact).abs().max() / scale < 1.5 * (beside - exact).abs().max() / scale + 1e-6
    assert (ours[0] - truth[0]).abs() > 0  # it was cast at all


def test_large_sums_do_not_overflow_in_float16():
    hidden, weight = torch.full((4096, 2), 60.0, dtype=torch.float16), torch.zeros(3, 2, dtype=torch.float16)
    weight.requires_grad_()
    fast(hidden, weight.float(), torch.zeros(4096, dtype=torch.long), reduction="mean", chunk_size=4096).backward()
    torch.testing.assert_close(weight.grad[0].float(), torch.full((2,), -40.0), rtol=1e-2, atol=0)  # type: ignore[index]


def test_a_tied_table_gets_both_gradients():
    model = GPT(V, embed_dim=D, num_heads=2, num_layers=1, context_length=6, generator=seeded(2)).double()
    tokens = torch.randint(V, (5, 7), generator=seeded(3))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    plain = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum")
    expected = torch.autograd.grad(plain, list(model.parameters()))
    hidden = model.transformer(model._embed(inputs, 0), causal=True).flatten(0, 1)
    pieces = fast(hidden, model.token_embedding.weight, targets.flatten(), reduction="sum", chunk_size=4)
    for loss in (model(inputs, targets), pieces):
        torch.testing.assert_close(loss, plain)
        torch.testing.assert_close(torch.autograd.grad(loss, list(model.parameters())), expected)


def test_at_no_time_are_all_logits_there():
    """Of the tensors that autograd keeps, and of the largest that an operation made, none has n v numbers."""
    hidden, weight, _, targets = example(torch.float32, classes=1000)
    largest, kept = 0, 0

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            nonlocal largest
            out = operation(*args, **(kwargs or {}))
            if isinstance(out, Tensor) and out.numel() != weight.numel():
                largest = max(largest, out.numel())
            return out

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel()
        return tensor

    def measured(loss) -> tuple[int, int]:
        nonlocal largest, kept
        largest = kept = 0
        leaves = [each.clone().requires_grad_() for each in (hidden, weight)]
        with Sizes(), torch.autograd.graph.saved_tensors_hooks(keep, lambda each: each):
            loss(*leaves).backward()
        return largest, kept

    whole = measured(lambda h, w: definition(h, w, targets).sum())
    assert min(whole) >= N * 1000
    for reduction in ("sum", "none"):
        found = measured(lambda h, w, how=reduction: fast(h, w, targets, reduction=how, chunk_size=5).sum())  # pyright: ignore
        assert found[0] == 5 * 1000
        assert found[1] <= 2 * (hidden.numel() + weight.numel() + N)


def test_it_is_differentiated_once_and_refuses_more():
    hidden, weight, _, targets = example()
    hidden.requires_grad_()
    for reduction in ("sum", "none"):
        loss = fast(hidden, weight, targets, reduction=reduction, chunk_size=5).sum()
        with pytest.raises(UserError, match="linear_cross_entropy_definition"):
            torch.autograd.grad(loss, hidden, create_graph=True)


def test_mistakes_are_told():
    hidden, weight, _, targets = example()
    with pytest.raises(UserError, match="chunk_size"):
        fast(hidden, weight, targets, chunk_size=0)
    with pytest.raises(UserError, match="token"):
        fast(hidden[:0], weight, targets[:0])
    with pytest.raises(UserError):
        fast(hidden, weight[:, :3], targets)


def test_pieces_are_as_large_as_the_device_likes():
    from quoin.layers.linear_cross_entropy import _chunk_size

    assert _chunk_size(32 * 1024, 50257, "cuda") == 8192
    assert _chunk_size(32 * 1024, 65, "cuda") == 32 * 1024
    assert _chunk_size(2048, 65, "cpu") == 2048
    assert 128 <= _chunk_size(8192, 50257, "cpu") < 512


@pytest.mark.parametrize("weighted", [False, True])
def test_padded_classes_as_on_a_gpu_count_for_nothing(weighted, monkeypatch):
    module = sys.modules[fast.__module__]
    hidden, weight, bias, targets = example()
    token_weights = torch.randn(N, generator=seeded(1), dtype=torch.float64) if weighted else None
    arguments = (hidden, weight, bias, targets, token_weights, 10, True, True, True)
    expected = module._compute_in_pieces(*arguments)
    monkeypatch.setattr(module, "_padding", lambda classes, device: 3)
    for ours, theirs in zip(module._compute_in_pieces(*arguments), expected, strict=True):
        assert_each_near(ours, theirs, 1e-12)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_counted_as_on_a_gpu_it_is_the_same(reduction):
    """The operator that stands for the kernel there, which changes the logits in place, and the padding."""
    hidden, weight, bias, targets = example()

    def loss(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return fast(h, w, targets, bias=b, reduction=reduction, chunk_size=10).square().sum()

    expected = gradients(loss, hidden, weight, bias)
    with counted_as_on("cuda"):
        assert_all_near(gradients(loss, hidden, weight, bias), expected)


@pytest.mark.filterwarnings("ignore")
def test_compiled_it_is_one_operator():
    hidden, weight, bias, targets = example()
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def loss(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return fast(h, w, targets, bias=b, reduction="sum", chunk_size=10)

    from torch._dynamo.backends.common import aot_autograd

    seen = torch.compile(loss, backend=aot_autograd(fw_compiler=backend), fullgraph=True)
    assert_all_near(gradients(seen, hidden, weight, bias), gradients(loss, hidden, weight, bias))
    forward, backward = ({str(node.target) for node in graph.graph.nodes} for graph in graphs)
    assert "quoin.linear_cross_entropy.default" in forward
    assert not {"aten.mm.default", "quoin.linear_cross_entropy.default"} & backward  # nothing left but to scale


def test_linear_layers_without_bias_may_be_modules():
    head = nn.Linear(D, V, bias=False, dtype=torch.float64)
    hidden, _, _, targets = example()
    fast(hidden, head.weight, targets, chunk_size=4).backward()
    assert head.weight.grad is not None


class Elsewhere(torch.Tensor):
    """A tensor that says it lies on another device: this machine need not have one."""

    told = torch.device("cpu")

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.told


def test_kernels_are_launched_on_the_device_of_their_tensors(monkeypatch):
    """Triton launches on the current device, which need not be the one that the tensors lie on."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    tensor = torch.zeros(1).as_subclass(Elsewhere)
    tensor.told = torch.device("cuda", 1)
    entered = on_device_of(tensor)
    assert isinstance(entered, torch.cuda.device)
    assert entered.idx == 1
    for there in (torch.device("cuda", 0), torch.device("cpu")):
        tensor.told = there
        assert isinstance(on_device_of(tensor), nullcontext)
