"""Layers called by their functions are the layers: in value, with hooks, parametrised, replaced."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from quoin.layers.direct import direct, part

LAYERS = {
    "linear": lambda: nn.Linear(6, 4),
    "linear without bias": lambda: nn.Linear(6, 4, bias=False),
    "norm": lambda: nn.LayerNorm(6, eps=0.1),
    "norm without weights": lambda: nn.LayerNorm(6, elementwise_affine=False),
    "dropout at rest": lambda: nn.Dropout(0.5).eval(),
    "dropout of nothing": lambda: nn.Dropout(0.0),
    "another": lambda: nn.RMSNorm(6),
    "parametrised": lambda: parametrizations.weight_norm(nn.Linear(6, 4)),
    "stack": lambda: nn.Sequential(nn.Linear(6, 3), nn.GELU()),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_direct_is_the_call(name, context):
    module, x = LAYERS[name](), torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    with context():
        assert torch.equal(direct(module, x), module(x))


@pytest.mark.parametrize("table", [nn.Embedding(9, 4), nn.Embedding(9, 4, padding_idx=3), nn.Embedding(9, 4, max_norm=0.5)])
def test_direct_looks_up_as_the_table_does(table):
    tokens = torch.tensor([[0, 3, 8], [1, 1, 2]])
    with torch.no_grad():
        given = direct(table, tokens)
        assert torch.equal(given, table(tokens))
        with pytest.raises(IndexError):
            direct(table, tokens + 1)


def test_dropout_in_training_drops():
    with torch.no_grad():
        assert (direct(nn.Dropout(0.5), torch.ones(1000)) == 0).any()


def test_hooks_are_called():
    module, x, seen = nn.Linear(6, 4), torch.randn(3, 6), []
    module.register_forward_hook(lambda *_: seen.append("after"))
    module.register_forward_pre_hook(lambda *_: seen.append("before"))
    with torch.no_grad():
        direct(module, x)
    assert seen == ["before", "after"]


class Whole(nn.Module):
    inner: nn.Module = part()
    other: nn.Module | None = part()

    def __init__(self):
        super().__init__()
        self.inner, self.other = nn.Linear(2, 2), None


def test_a_part_is_an_ordinary_submodule():
    whole = Whole()
    assert whole.inner is whole._modules["inner"]
    assert whole.other is None
    assert set(whole.state_dict()) == {"inner.weight", "inner.bias"}
    copied = copy.deepcopy(whole)
    assert copied.inner is copied._modules["inner"]
    assert copied.inner is not whole.inner
    whole.inner, whole.other = nn.Identity(), nn.ReLU()
    assert isinstance(whole.inner, nn.Identity)
    assert isinstance(whole.other, nn.ReLU)
    del whole.inner
    with pytest.raises(AttributeError, match="inner"):
        whole.inner  # noqa: B018
