"""A fast call is the call: in value, with hooks, parametrised, replaced."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from quoin.layers import FeedForward
from quoin.layers.fast_call import fast_call, submodules

LAYERS = {
    "linear": lambda: nn.Linear(6, 4),
    "linear without bias": lambda: nn.Linear(6, 4, bias=False),
    "norm": lambda: nn.LayerNorm(6, eps=0.1),
    "norm without weights": lambda: nn.LayerNorm(6, elementwise_affine=False),
    "dropout in evaluation": lambda: nn.Dropout(0.5).eval(),
    "dropout of probability zero": lambda: nn.Dropout(0.0),
    "another": lambda: nn.RMSNorm(6),
    "parametrised": lambda: parametrizations.weight_norm(nn.Linear(6, 4)),
    "feed-forward": lambda: FeedForward(6),
    "feed-forward with an activation of its own": lambda: FeedForward(6, activation=nn.PReLU()),
    "stack": lambda: nn.Sequential(nn.Linear(6, 3), nn.GELU()),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_fast_call_is_the_call(name, context):
    module, x = LAYERS[name](), torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    with context():
        assert torch.equal(fast_call(module, x), module(x))


def test_dropout_in_training_drops():
    with torch.no_grad():
        assert (fast_call(nn.Dropout(0.5), torch.ones(1000)) == 0).any()


@pytest.mark.parametrize("find", [lambda module: module, lambda module: module.down_proj])
def test_hooks_are_fast_call(find):
    module, x, seen = FeedForward(6), torch.randn(3, 6), []
    find(module).register_forward_hook(lambda *_: seen.append("after"))
    find(module).register_forward_pre_hook(lambda *_: seen.append("before"))
    with torch.no_grad():
        fast_call(module, x)
    assert seen == ["before", "after"]


def test_submodules_are_the_attributes():
    owner = FeedForward(6)
    assert submodules(owner, "up_proj", "activation") == [owner.up_proj, owner.activation]
    owner.up_proj = nn.Identity()
    assert isinstance(submodules(owner, "up_proj")[0], nn.Identity)


@pytest.mark.parametrize(
    "table", [nn.Embedding(9, 4), nn.Embedding(9, 4, padding_idx=3), nn.Embedding(9, 4, max_norm=0.5)]
)
def test_tokens_are_looked_up_as_by_the_table(table):
    tokens = torch.tensor([[0, 3, 8], [1, 1, 2]])
    with torch.no_grad():
        assert torch.equal(fast_call(table, tokens), table(tokens))
        with pytest.raises(IndexError):
            fast_call(table, tokens + 1)
