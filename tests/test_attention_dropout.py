"""Dropout of attention weights on the CPU: a layer that can be watched, and in training alone."""

import pytest
import torch
from torch import nn

from quoin.layers import ALiBi, ExactAttention
from seeds import seeded


def watched(attend: ExactAttention) -> list[torch.Tensor]:
    """The weights that reach its dropout, collected as it is called."""
    found: list[torch.Tensor] = []
    attend.dropout.register_forward_hook(lambda layer, given, output: found.append(given[0]))
    return found


def inputs(num_heads=2, length=5, head_dim=4):
    return torch.randn(3, 2, num_heads, length, head_dim, generator=seeded(0), dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_dropout_layer_sees_the_weights_in_training_and_nothing_otherwise(bias, causal):
    attend = ExactAttention(dropout=0.3, bias=ALiBi(2).double() if bias else None)
    seen, (q, k, v) = watched(attend), inputs()
    attend.eval()(q, k, v, causal=causal)
    assert seen == []
    ExactAttention(dropout=0.0).train()(q, k, v, causal=causal)
    torch.manual_seed(0)
    output = attend.train()(q, k, v, causal=causal)
    (weights,) = seen
    torch.testing.assert_close(weights, attend.weights(q, k, causal=causal))
    torch.manual_seed(0)
    torch.testing.assert_close(output, nn.functional.dropout(weights, 0.3) @ v)


@pytest.mark.parametrize("causal", [False, True])
def test_dropout_that_drops_nothing_changes_nothing(causal):
    """Also with a bias and a mask, of which a hidden score is minus infinity."""
    q, k, v = inputs()
    mask = torch.tensor([True, True, False, True, True])
    for bias in (None, ALiBi(2).double()):
        trained, plain = ExactAttention(dropout=1e-12, bias=bias).train(), ExactAttention(bias=bias)
        torch.testing.assert_close(trained(q, k, v, mask=mask, causal=causal), plain(q, k, v, mask=mask, causal=causal))


def test_without_dropout_the_fused_kernel_is_called(monkeypatch):
    called = []
    fused = nn.functional.scaled_dot_product_attention

    def counted(*given, **named):
        called.append(1)
        return fused(*given, **named)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", counted)
    for attend in (ExactAttention().train(), ExactAttention(dropout=0.3).eval()):
        attend(*inputs())
    assert len(called) == 2
