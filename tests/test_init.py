"""Starting weights: each rule is torch's own, draw for draw, and `init_weights` reaches every linear layer."""

import math

import pytest
import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import init_weights, kaiming_normal, small_normal, torch_default, xavier_normal
from quoin.models import MLP, TiedMLP
from seeds import seeded

# rule -> (the same in torch.nn.init, the variance for n_in inputs and n_out outputs)
RULES = {
    small_normal: (lambda w, g: nn.init.normal_(w, std=0.01, generator=g), lambda n_in, n_out: 1e-4),
    torch_default: (
        lambda w, g: nn.init.kaiming_uniform_(w, a=math.sqrt(5), generator=g),
        lambda n_in, n_out: 1 / (3 * n_in),
    ),
    xavier_normal: (lambda w, g: nn.init.xavier_normal_(w, generator=g), lambda n_in, n_out: 2 / (n_in + n_out)),
    kaiming_normal: (
        lambda w, g: nn.init.kaiming_normal_(w, nonlinearity="relu", generator=g),
        lambda n_in, n_out: 2 / n_in,
    ),
}


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (300, 200), (200, 300)])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_draws_what_torch_draws(rule, shape):
    theirs = RULES[rule][0](torch.empty(shape), seeded(5))
    torch.testing.assert_close(rule(*shape, seeded(5)), theirs)
    assert not torch.equal(rule(*shape, seeded(6)), theirs)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_has_its_variance(rule):
    outputs, inputs = 500, 300
    weight = rule(outputs, inputs, seeded(1)).double()
    expected = RULES[rule][1](inputs, outputs)
    # Of n normal draws the variance deviates by sqrt(2/n), of uniform ones by less: six of them.
    assert abs(float(weight.square().mean()) / expected - 1) < 6 * math.sqrt(2 / weight.numel())
    assert abs(float(weight.mean())) < 6 * math.sqrt(expected / weight.numel())


def test_the_framework_default_is_that_of_linear():
    bound = 1 / math.sqrt(50)
    ours, theirs = torch_default(2000, 50, seeded(0)), nn.Linear(50, 2000).weight.detach()
    for weight in (ours, theirs):
        assert float(weight.abs().max()) <= bound
        assert float(weight.abs().max()) > 0.999 * bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_initialise_reaches_every_layer_in_order(dtype):
    model = MLP([5, 4, 3, 2], generator=seeded(0)).to(dtype)
    nn.init.ones_(model.head.bias)
    init_weights(model, xavier_normal, generator=seeded(9))
    generator = seeded(9)
    for layer in (layer for layer in model.modules() if isinstance(layer, nn.Linear)):
        expected: Tensor = xavier_normal(layer.out_features, layer.in_features, generator)
        torch.testing.assert_close(layer.weight, expected.to(dtype), rtol=0, atol=0)
        assert layer.weight.requires_grad
        assert not layer.bias.any()
    init_weights(nn.Linear(3, 2, bias=False), kaiming_normal)


def test_initialise_from_the_default_generator():
    torch.manual_seed(0)
    first = small_normal(3, 2)
    torch.manual_seed(0)
    assert torch.equal(first, small_normal(3, 2))


def test_what_cannot_be_initialised_is_told():
    with pytest.raises(UserError, match=r"at least one torch\.nn\.Linear"):
        init_weights(nn.ReLU(), kaiming_normal)
    with pytest.raises(UserError, match="lazy"):
        init_weights(TiedMLP(3, 2, repeats=2), kaiming_normal)
    for rule in RULES:
        with pytest.raises(UserError, match="positive number of outputs and inputs, got 3 and 0"):
            rule(3, 0)
