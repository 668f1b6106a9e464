"""The Triton kernels on a GPU beside the definitions: values and gradients, dtypes, shapes, masks, groups of heads."""

import pytest
import torch

from kernel_cases import CROSS, KINDS, SHAPES, errors
from quoin.layers.attention import FeatureMapAttention, LinearAttention, PerformerAttention
from quoin.layers.attention.features import Features
from quoin.layers.linear_cross_entropy import linear_cross_entropy, linear_cross_entropy_definition

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),  # what its first call in a thread says
]
LARGE = [
    (1, 4, 4, 4096, 4096, 64, 64),
    (2, 4, 2, 1000, 1000, 64, 48),
    (1, 2, 2, 2048, 2048, 128, 128),
    (1, 2, 2, 512, 512, 32, 128),
    (1, 2, 2, 512, 512, 128, 32),
]
BOUND = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}  # the last two eight roundings of theirs


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", list(BOUND))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES + LARGE)
def test_causal(kind, shape, dtype, masked):
    assert max(errors(kind, shape, dtype, "cuda", masked=masked, causal=True)) < BOUND[dtype]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", list(BOUND))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES + CROSS + LARGE)
def test_not_causal(kind, shape, dtype, masked):
    assert max(errors(kind, shape, dtype, "cuda", masked=masked, causal=False)) < BOUND[dtype]


@pytest.mark.parametrize("kind", ["elu", "performer"])
def test_large_inputs_overflow_nowhere(kind):
    assert max(errors(kind, SHAPES[0], torch.float32, "cuda", masked=False, causal=True, size=6.0)) < 1e-4


class Squares(torch.nn.Module):
    """A feature map of the user's own."""

    def forward(self, x, *, is_query):
        return Features(x.square() + 0.1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("of", ["linear", "performer", "own"])
def test_the_module_gives_on_a_gpu_what_it_gives_on_the_cpu(of, causal):
    generator = torch.Generator().manual_seed(0)
    make = {
        "linear": LinearAttention,
        "performer": lambda: PerformerAttention(32, 64, generator=torch.Generator().manual_seed(1)),
        "own": lambda: FeatureMapAttention(Squares()),
    }[of]
    attention = make().eval()
    query, key, value = (torch.randn(2, heads, 300, 32, generator=generator) for heads in (4, 2, 2))
    mask = torch.rand(2, 1, 1, 300, generator=generator) > 0.2
    for seen in (None, mask):
        want = attention(query, key, value, mask=seen, causal=causal)
        moved = None if seen is None else seen.cuda()
        got = attention.cuda()(query.cuda(), key.cuda(), value.cuda(), mask=moved, causal=causal)
        assert (want - got.cpu()).abs().max() < 2e-5 * want.abs().max()
        attention.cpu()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dtype", "head_dim"), [(torch.float64, 32), (torch.float32, 160)])
def test_what_no_kernel_covers_is_the_same_too(dtype, head_dim, causal):
    generator = torch.Generator().manual_seed(0)
    attention = LinearAttention(chunk_size=64)
    tensors = [torch.randn(2, heads, 300, head_dim, generator=generator, dtype=dtype) for heads in (4, 2, 2)]
    there, here = ([each.detach().to(device).requires_grad_() for each in tensors] for device in ("cuda", "cpu"))
    want, got = attention(*here, causal=causal), attention(*there, causal=causal)
    want.square().sum().backward()
    got.square().sum().backward()
    for one, other in zip((want, *(each.grad for each in here)), (got, *(each.grad for each in there))):
        assert (one - other.cpu()).abs().max() < (1e-10 if dtype == torch.float64 else 1e-4) * one.abs().max()


def test_compiled_it_is_the_same_and_one_graph():
    query, key, value = (torch.randn(1, 2, 256, 32, device="cuda", requires_grad=True) for _ in range(3))
    attention = LinearAttention()
    want = attention(query, key, value, causal=True)
    got = torch.compile(attention, fullgraph=True)(query, key, value, causal=True)
    assert torch.equal(want, got)
    torch.library.opcheck(torch.ops.quoin.linear_attention.default, (query, key, value, None, None, None, 0.0, 1, True))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("dtype", list(BOUND))
@pytest.mark.parametrize("classes", [50257, 1000])
def test_the_loss_of_a_language_model(classes, dtype, reduction, compiled):
    generator = torch.Generator("cuda").manual_seed(0)
    hidden, weight = (torch.randn(n, 64, generator=generator, device="cuda") for n in (3000, classes))
    hidden, weight = (hidden / 8).to(dtype), weight.to(dtype)  # larger logits lose what a half precision cannot hold
    targets = torch.randint(classes, (3000,), generator=generator, device="cuda")
    exact, quick = (
        [each.detach().to(kind).requires_grad_() for each in (hidden, weight)] for kind in (torch.float64, dtype)
    )
    function = torch.compile(linear_cross_entropy) if compiled else linear_cross_entropy
    want = linear_cross_entropy_definition(*exact, targets)
    got = function(*quick, targets, reduction=reduction, chunk_size=1024)
    assert (want.sum() - got.double().sum()).abs() < BOUND[dtype] * want.sum()
    want.sum().backward()
    got.sum().backward()
    for one, other in zip(exact, quick):
        assert (one.grad - other.grad.double()).abs().max() < BOUND[dtype] * one.grad.abs().max()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_on_a_gpu_that_is_not_the_current_one():
    query, key, value = (torch.randn(1, 2, 300, 32, requires_grad=True) for _ in range(3))
    hidden, weight, targets = torch.randn(50, 16), torch.randn(100, 16), torch.arange(50)
    want = LinearAttention()(query, key, value, causal=True)
    there = [each.detach().to("cuda:1").requires_grad_() for each in (query, key, value)]
    got = LinearAttention()(*there, causal=True)
    assert (want - got.cpu()).abs().max() < 2e-5 * want.abs().max()
    for one, other in zip(torch.autograd.grad(want.sum(), (query, key, value)), torch.autograd.grad(got.sum(), there)):
        assert (one - other.cpu()).abs().max() < 2e-5 * one.abs().max().clamp(min=1)
    found = linear_cross_entropy(*(each.to("cuda:1") for each in (hidden, weight, targets)), chunk_size=20)
    assert float(found) == pytest.approx(float(linear_cross_entropy(hidden, weight, targets)), rel=1e-4)
