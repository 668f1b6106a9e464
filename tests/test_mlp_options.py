"""What stands in the hidden layers of an MLP: activation, initial weights, norm and dropout, by argument and by
command."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from commands import refused, tried
from quoin.data import keyed_generator
from quoin.errors import UserError
from quoin.layers import Linear, dense_batch_norm_definition, layer_norm_definition
from quoin.models import MLP, mlp_definition
from quoin.runs import Run, find_recipe
from quoin.tasks.mlp import make_mlp
from quoin.tasks.mlp_options import MLPOptions
from seeds import seeded

QUICK = ("--max-steps", "3", "--num-threads", "1", "--device", "cpu", "--json")
# from the papers, entry by entry
ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "leaky-relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "elu": lambda x: torch.where(x > 0, x, x.exp() - 1),
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + (-x).exp()),
    "tanh": lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
}
# variance of a weight of a layer from 300 to 200 units, and whether it is normal (kurtosis 3) or uniform (9/5)
INITS = {
    "kaiming": (2 / 300, 3.0),
    "xavier": (2 / 500, 3.0),
    "normal": (1e-4, 3.0),
    "torch": (1 / 900, 1.8),
}


def linears(model: nn.Module) -> list[nn.Linear]:
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)]


def shaken(model: MLP) -> MLP:
    """The model in float64, its vectors away from the zeros and ones that they start with."""
    draw = seeded(3)
    for parameter in model.double().parameters():
        if parameter.ndim == 1:
            parameter.data += torch.rand(parameter.shape, generator=draw, dtype=torch.float64)
    return model


@pytest.mark.parametrize(("unit", "phi"), [(nn.ReLU, torch.relu), (nn.Tanh, torch.tanh)])
def test_batch_norm_stands_between_a_layer_and_its_activation(unit, phi):
    """Two hidden layers are h = φ(BN(W x + b)) twice, and no norm is on the output."""
    model = shaken(MLP([3, 5, 4, 2], norm=nn.BatchNorm1d, activation=unit, generator=seeded(0)))
    x = torch.randn(9, 3, generator=seeded(1), dtype=torch.float64)
    first, second, head = linears(model)
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm1d)]
    by_hand = x
    for layer, norm in zip((first, second), norms, strict=True):
        z = by_hand @ layer.weight.T + layer.bias
        mean, variance = z.mean(0), z.var(0, unbiased=False)
        by_hand = phi(norm.weight * (z - mean) / (variance + norm.eps).sqrt() + norm.bias)
    torch.testing.assert_close(model(x), by_hand @ head.weight.T + head.bias)
    defined = x
    for layer, norm in zip((first, second), norms, strict=True):
        defined = dense_batch_norm_definition(defined, layer.weight, layer.bias, norm.weight, norm.bias, phi)
    torch.testing.assert_close(model(x), defined @ head.weight.T + head.bias)
    assert not torch.allclose(model.eval()(x), model.train()(x))  # running averages against those of the batch


def test_layer_norm_is_the_definitions_and_the_same_in_evaluation():
    model = shaken(MLP([3, 5, 2], norm=nn.LayerNorm, generator=seeded(0)))
    x = torch.randn(9, 3, generator=seeded(1), dtype=torch.float64)
    first, head = linears(model)
    norm = next(layer for layer in model.modules() if isinstance(layer, nn.LayerNorm))
    hidden = layer_norm_definition(x @ first.weight.T + first.bias, norm.weight, norm.bias).output.relu()
    torch.testing.assert_close(model(x), hidden @ head.weight.T + head.bias)
    assert torch.equal(model.eval()(x), model.train()(x))


def test_without_norm_and_dropout_it_is_the_definition_and_has_no_further_layer():
    model = shaken(MLP([3, 5, 2], generator=seeded(0)))
    x = torch.randn(9, 3, generator=seeded(1), dtype=torch.float64)
    weights, biases = zip(*((layer.weight, layer.bias) for layer in linears(model)))
    torch.testing.assert_close(model(x), mlp_definition(x, weights, biases).output)
    assert [type(layer) for layer in model.features] == [Linear, nn.ReLU]


def test_dropout_comes_last_and_only_in_training():
    model = MLP([6, 50, 3], norm=nn.LayerNorm, dropout=0.5, generator=seeded(0))
    assert [type(layer) for layer in model.features] == [Linear, nn.LayerNorm, nn.ReLU, nn.Dropout]
    x = torch.randn(4, 6, generator=seeded(1))
    torch.manual_seed(0)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), MLP([6, 50, 3], norm=nn.LayerNorm, generator=seeded(0))(x))
    with pytest.raises(UserError, match="dropout probability"):
        MLP([2, 3, 1], dropout=1.0)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_what_its_name_says(name):
    model = make_mlp(3, 2, MLPOptions(hidden_dims=(4,), activation=name), seed=0).double()
    x = torch.randn(7, 3, generator=seeded(1), dtype=torch.float64)
    first, head = linears(model)
    hidden = ACTIVATIONS[name](functional.linear(x, first.weight, first.bias))
    torch.testing.assert_close(model(x), functional.linear(hidden, head.weight, head.bias))


@pytest.mark.parametrize("name", INITS)
def test_every_init_has_its_distribution(name):
    weight = linears(make_mlp(300, 1, MLPOptions(hidden_dims=(200,), init=name), seed=0))[0].weight.detach().double()
    variance, kurtosis = INITS[name]
    standard = weight / math.sqrt(variance)
    # six standard errors at 60,000 weights: of a mean square sqrt(2 / n), of a mean fourth power at most sqrt(96 / n)
    assert float(standard.square().mean()) == pytest.approx(1, abs=6 * math.sqrt(2 / 60_000))
    assert float(standard.pow(4).mean()) == pytest.approx(kurtosis, abs=6 * math.sqrt(96 / 60_000))


@pytest.mark.parametrize("recipe", ["mlp", "mlp-regression"])
def test_both_recipes_take_them_and_a_run_is_opened_with_them(recipe, tmp_path):
    words = ("--activation", "silu", "--init", "xavier", "--norm", "batch", "--dropout", "0.25", "--hidden-dims", "7")
    code, _, err = tried("train", recipe, *words, *QUICK, "--runs", tmp_path)
    assert code == 0, err
    features = next(layer for layer in Run.open(tmp_path / f"{recipe}-1").model.modules() if isinstance(layer, MLP))
    assert [type(layer) for layer in features.features] == [Linear, nn.BatchNorm1d, nn.SiLU, nn.Dropout]
    assert features.features[3].p == 0.25


def test_wrong_choices_are_told_in_one_line(here):
    assert "did you mean 'leaky-relu'" in refused("train", "mlp", "--activation", "leakyrelu")
    assert "choose from batch, layer, none" in refused("train", "mlp", "--norm", "instance")
    assert "below 1" in refused("train", "mlp", "--dropout", "1")
    assert "choose a --batch-size" in refused("train", "mlp", "--norm", "batch", "--batch-size", "1")
    assert not (here / "runs").exists()


def test_the_defaults_build_what_they_always_did():
    options = find_recipe("mlp").options()
    model = make_mlp(64, 10, options, seed=5)  # pyright: ignore[reportArgumentType]
    before = MLP([64, 128, 10], generator=keyed_generator("weights", 5)).state_dict()
    assert list(model.state_dict()) == list(before)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
