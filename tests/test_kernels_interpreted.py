"""The Triton kernels in Triton's interpreter, on the CPU in float32, beside the definitions.

In a process of its own: Triton reads TRITON_INTERPRET when it is first imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRITON = Path(sys.prefix) / "triton"  # where `make deep` installs it
pytestmark = [pytest.mark.deep, pytest.mark.skipif(not TRITON.is_dir(), reason="needs Triton: make deep installs it")]
CODE = """
import json, sys, torch
from kernel_cases import CROSS, SHAPES, errors
from quoin.layers.kernels import linear_attention
linear_attention.PROGRAMS = 8  # several blocks in a segment, several segments
kind, causal = sys.argv[1], sys.argv[2] == "causal"
found = [
    errors(kind, shape, torch.float32, "cpu", masked=masked, causal=causal)
    for shape in SHAPES + ([] if causal else CROSS) for masked in (False, True)
]
query, key, value = (torch.randn(1, 2, 100, 16, requires_grad=True) for _ in range(3))
torch.library.opcheck(torch.ops.quoin.linear_attention.default, (query, key, value, None, None, None, 0.0, 1, causal))
print(json.dumps(found))
"""

WHOLE = """
import sys, torch
from unittest import mock
from quoin.layers.attention import LinearAttention, PerformerAttention
from quoin.layers.kernels import linear_attention
query, key, value = (torch.randn(1, 2, 100, 16, requires_grad=True) for _ in range(3))
performer = PerformerAttention(16, 32, generator=torch.Generator().manual_seed(0)).eval()
with mock.patch("quoin.layers.kernels.KERNEL_DEVICES", ("cpu",)):
    for attention in (LinearAttention(), performer):
        want = attention(query, key, value, causal=True)
        got = torch.compile(attention, fullgraph=True, backend="aot_eager")(query, key, value, causal=True)
        exported = torch.export.export(attention, (query, key, value), {"causal": True})
        assert "quoin.linear_attention" in str(exported), exported
        for each in (got, exported.module()(query, key, value, causal=True)):
            assert torch.equal(want, each)
            grads = [torch.autograd.grad(one.sum(), (query, key, value), retain_graph=True) for one in (want, each)]
            assert all(map(torch.equal, *grads))
"""

LOSS = """
import torch
from unittest import mock
from quoin.layers import linear_cross_entropy, linear_cross_entropy_definition
from quoin.layers.kernels import cross_entropy
cross_entropy.BLOCK = 64  # several blocks in a row
generator = torch.Generator().manual_seed(0)
for classes in (37, 64, 200):
    hidden, weight = (torch.randn(n, 16, generator=generator, requires_grad=True) for n in (50, classes))
    targets = torch.randint(classes, (50, 2), generator=generator)[:, 0]  # one beside another that is not read
    upstream = torch.randn(50 if classes != 64 else 1, generator=generator).expand(50)
    want = linear_cross_entropy_definition(hidden.double(), weight.double(), targets)
    with mock.patch("quoin.layers.kernels.KERNEL_DEVICES", ("cpu",)), mock.patch(
        "quoin.layers.linear_cross_entropy._padding", lambda classes, device: -classes % 64
    ):
        got = linear_cross_entropy(hidden, weight, targets, reduction="none", chunk_size=20)
        grads = torch.autograd.grad(got, (hidden, weight), upstream)
        summed = torch.autograd.grad(
            linear_cross_entropy(hidden, weight, targets, reduction="sum", chunk_size=20), (hidden, weight)
        )
    assert (want - got).abs().max() < 1e-5
    for upward, found in ((upstream.double(), grads), (torch.ones(50, dtype=torch.float64), summed)):
        for one, other in zip(torch.autograd.grad(want, (hidden, weight), upward, retain_graph=True), found):
            assert (one - other).abs().max() < 1e-5 * one.abs().max(), classes
"""


DEVICES = """
import torch
from contextlib import contextmanager
from unittest import mock
from quoin.layers.kernels import cross_entropy, linear_attention
launched_for = []

@contextmanager
def watched(tensor):
    launched_for.append(tensor.shape)
    yield

query, key, value = (torch.randn(1, 2, 70, 16, requires_grad=True) for _ in range(3))
with mock.patch.object(linear_attention, "on_device_of", watched), mock.patch.object(
    cross_entropy, "on_device_of", watched
):
    linear_attention.attend_elu_plus_one(query, key, value, None, causal=True).sum().backward()
    cross_entropy.softmax_gradient(torch.randn(5, 64), torch.zeros(5, dtype=torch.long), None, 37)
assert launched_for == [(1, 2, 70, 16), (1, 2, 70, 16), (5, 64)], launched_for
"""


def test_kernels_are_launched_where_the_tensors_lie():
    run("-c", DEVICES)


def test_the_loss_of_logits_that_become_their_gradient():
    run("-c", LOSS)


def test_torch_compile_and_export_see_one_operator():
    run("-c", WHOLE)


@pytest.mark.parametrize("causal", ["causal", "not causal"])
@pytest.mark.parametrize("kind", ["elu", "given", "scaled", "performer"])
def test_the_kernels_compute_the_definition(kind, causal):
    found = json.loads(run("-c", CODE, kind, causal).splitlines()[-1])
    assert len(found) >= 6
    assert max(max(each) for each in found) < 5e-6


def run(*words: str) -> str:
    """What Python prints that has these words, with Triton and its interpreter."""
    found_here = os.pathsep.join([str(Path(__file__).parent), str(TRITON), *filter(None, sys.path)])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": found_here}
    command = [sys.executable, "-W", "ignore", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
