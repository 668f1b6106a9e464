"""The contract of networks built from dense layers: each equals its definition, its peer or its untied, unstructured
twin."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import sigmoid, tanh
from quoin.models import (
    MLP,
    TiedMLP,
    export_dense,
    functional_model,
    import_dense,
    mlp_definition,
    num_parameters,
    one_hidden_layer_definition,
    parameter_vector,
)
from quoin.tensor import softmax
from quoin.train import load_weights, save_weights
from seeds import seeded

DTYPES = [torch.float32, torch.float64]


def linears(model: nn.Module) -> list[nn.Linear]:
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


def parameters_of(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    return [layer.weight for layer in linears(model)], [layer.bias for layer in linears(model)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_batch_form_agrees_with_the_module(dtype, seed):
    generator = seeded(seed)
    sizes = torch.randint(1, 7, (3,), generator=generator).tolist()
    model = MLP(sizes, generator=generator).to(dtype)
    first, last = linears(model)
    for layer in (first, last):
        nn.init.normal_(layer.bias, generator=generator)
    X = torch.randn(5, sizes[0], generator=generator, dtype=dtype, requires_grad=True)
    ours = one_hidden_layer_definition(X, first.weight.T, first.bias, last.weight.T, last.bias)
    torch.testing.assert_close(ours.output, model(X))
    torch.testing.assert_close(ours.hidden[0], model.features(X))
    arguments = [X, *model.parameters()]
    upstream = torch.randn(ours.output.shape, generator=generator, dtype=dtype)
    torch.testing.assert_close(
        torch.autograd.grad(ours.output, arguments, upstream), torch.autograd.grad(model(X), arguments, upstream)
    )


def test_the_batch_form_names_the_axis():
    with pytest.raises(UserError, match="axis d of W1 to be 3 as in X, got 4"):
        one_hidden_layer_definition(
            torch.zeros(2, 3), torch.zeros(4, 5), torch.zeros(5), torch.zeros(5, 1), torch.zeros(1)
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("definition", "module"), [(sigmoid, nn.Sigmoid), (softmax, lambda: nn.Softmax(dim=-1))])
def test_the_output_layer_may_have_its_own_activation(definition, module, dtype):
    model = MLP([3, 4, 2], activation=nn.Tanh, output_activation=module, generator=seeded(0)).to(dtype)
    x = torch.randn(5, 3, generator=seeded(1), dtype=dtype)
    torch.testing.assert_close(mlp_definition(x, *parameters_of(model), tanh, definition).output, model(x))
    assert list(model.state_dict()) == list(MLP([3, 4, 2]).state_dict())  # it holds no weights of its own


# ---- functions of theta


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_realisation_is_the_model_with_those_parameters(dtype):
    model = MLP([3, 4, 2], generator=seeded(0)).to(dtype)
    before = parameter_vector(model)
    theta = torch.randn(num_parameters(model), generator=seeded(1), dtype=dtype, requires_grad=True)
    x = torch.randn(5, 3, generator=seeded(2), dtype=dtype)
    there = functional_model(model, theta)(x)
    (gradient,) = torch.autograd.grad(there.square().sum(), theta)
    assert torch.equal(parameter_vector(model), before)
    nn.utils.vector_to_parameters(theta.detach(), model.parameters())
    torch.testing.assert_close(there, model(x))
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    torch.testing.assert_close(gradient, torch.cat([piece.flatten() for piece in expected]))


def test_tied_parameters_count_once_and_move_together():
    model = TiedMLP(4, 2, repeats=3)
    x = torch.randn(5, 3, generator=seeded(0))
    model(x)
    assert num_parameters(model) == (3 * 4 + 4) + (4 * 4 + 4) + (4 * 2 + 2)
    theta = torch.randn(num_parameters(model), generator=seeded(1))
    there = functional_model(model, theta)(x)
    nn.utils.vector_to_parameters(theta, model.parameters())
    torch.testing.assert_close(there, model(x))


def test_realisation_refuses():
    model = MLP([2, 5, 1])
    for theta, words in (
        (torch.zeros(20), "21 parameters, got 20"),
        (torch.zeros(21, 1), "theta with 1 axis"),
        (torch.zeros(21, dtype=torch.int64), "float type"),
    ):
        with pytest.raises(UserError, match=words):
            functional_model(model, theta)
    with pytest.raises(UserError, match="lazy"):
        num_parameters(TiedMLP(3, 2, repeats=1))
    assert num_parameters(nn.ReLU()) == len(parameter_vector(nn.ReLU())) == 0


# ---- dropout, tying, files, other frameworks


def test_an_mlp_with_dropout_is_the_one_without_in_evaluation_and_drops_in_training():
    model = MLP([6, 50, 3], dropout=0.5, generator=seeded(0))
    twin = MLP([6, 50, 3], generator=seeded(0))
    x = torch.randn(4, 6, generator=seeded(1))
    torch.testing.assert_close(model.eval()(x), twin(x), rtol=0, atol=0)
    torch.manual_seed(0)
    assert not torch.equal(model.train()(x), model(x))
    for dropout in (-0.1, 1.0, float("nan")):
        with pytest.raises(UserError, match="dropout probability"):
            MLP([2, 3, 1], dropout=dropout)


def test_a_tied_layer_is_one_layer_applied_repeatedly():
    model = TiedMLP(4, 2, repeats=3)
    x = torch.randn(5, 2, 3, generator=seeded(0))
    first, shared, head = (model(x), linears(model))[1]
    expected = mlp_definition(
        x.flatten(1), [first.weight, *[shared.weight] * 3, head.weight], [first.bias, *[shared.bias] * 3, head.bias]
    ).output
    torch.testing.assert_close(model(x), expected)
    for bad in ((0, 2, 1), (2, 0, 1), (2, 2, 0)):
        with pytest.raises(UserError, match="positive hidden_dim"):
            TiedMLP(bad[0], bad[1], repeats=bad[2])
    with pytest.raises(UserError, match="batch"):
        model(torch.zeros(6))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_survive_a_file_tied_ones_once(tmp_path, dtype):
    x = torch.randn(5, 3, generator=seeded(0), dtype=dtype)
    models = [TiedMLP(4, 2, repeats=3).to(dtype) for _ in range(2)]
    before = [model(x) for model in models]
    assert not torch.equal(*before)
    path = save_weights(models[0], tmp_path / "w.safetensors")
    load_weights(models[1], path)
    assert torch.equal(models[1](x), before[0])
    assert path.stat().st_size < 1500 + num_parameters(models[0]) * dtype.itemsize
    with torch.no_grad():
        linears(models[1].body)[0].weight.add_(1)  # still one layer
    assert torch.equal(models[1].body[2][0].weight, models[1].body[0][0].weight)  # type: ignore[index]


def test_bad_weights_are_told_in_one_line_and_change_nothing(tmp_path):
    path = save_weights(MLP([3, 4, 2], generator=seeded(0)), tmp_path / "w.safetensors")
    (tmp_path / "torn.safetensors").write_bytes(path.read_bytes()[:40])
    for model, file, words in (
        (MLP([3, 5, 2]), path, "shape"),
        (MLP([3, 4, 4, 2]), path, "lacks"),
        (MLP([3, 4, 2]), tmp_path / "none.safetensors", "No such file"),
        (MLP([3, 4, 2]), tmp_path / "torn.safetensors", "does not read"),
        (TiedMLP(3, 2, repeats=2), path, "lazy"),
    ):
        before = parameter_vector(model) if isinstance(model, MLP) else None
        with pytest.raises(UserError, match=words) as caught:
            load_weights(model, file)
        assert "\n" not in str(caught.value)
        assert before is None or torch.equal(parameter_vector(model), before)
    with pytest.raises(UserError):
        save_weights(MLP([3, 2]), tmp_path / "no" / "such" / "folder.safetensors")


def test_dense_layers_travel_to_numpy_and_back():
    model, other = (MLP([3, 4, 2], generator=seeded(seed)) for seed in (0, 1))
    layers = export_dense(model)
    assert [(kernel.shape, bias.shape) for kernel, bias in layers] == [((3, 4), (4,)), ((4, 2), (2,))]
    import_dense(other, layers)
    assert torch.equal(parameter_vector(other), parameter_vector(model))
    layers[0][0][:] = 0  # copies: the model does not move with them
    assert model.features[0].weight.any()  # type: ignore[union-attr]


def test_what_does_not_fit_another_framework_is_told_and_changes_nothing():
    model = MLP([3, 4, 2], generator=seeded(0))
    before, layers = parameter_vector(model), export_dense(MLP([3, 4, 2], generator=seeded(1)))
    for bad, words in (
        (layers[:1], "each of 2 dense layers, got 1"),
        ([layers[0], (layers[1][0].T, layers[1][1])], r"shapes \(4, 2\) and \(2,\) for dense layer 2, got \(2, 4\)"),
    ):
        with pytest.raises(UserError, match=words):
            import_dense(model, bad)
        assert torch.equal(parameter_vector(model), before)
    with pytest.raises(UserError, match="lazy"):
        export_dense(TiedMLP(3, 2, repeats=1))
    with pytest.raises(UserError, match="bias"):
        export_dense(nn.Linear(2, 2, bias=False))


def test_jax_computes_the_same_network():
    jax = pytest.importorskip("jax")
    model = MLP([5, 7, 3], generator=seeded(0))
    x = torch.randn(6, 5, generator=seeded(1))
    (kernel, bias), last = export_dense(model)
    with jax.default_matmul_precision("highest"):
        theirs = jax.nn.relu(x.numpy() @ jax.numpy.asarray(kernel) + bias) @ last[0] + last[1]
    np.testing.assert_allclose(np.asarray(theirs), model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


KERAS = """
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np
model = keras.Sequential([
    keras.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dropout(0.2),
    keras.layers.Dense(10, activation="softmax"),
])
x = np.random.default_rng(0).normal(size=(4, 784)).astype("float32")
kernels = model.get_weights()
np.savez(sys.argv[1], *kernels, x=x, y=np.asarray(model(x)), count=model.count_params())
"""


def test_keras_computes_the_same_classifier(tmp_path):
    if find_spec("keras") is None or find_spec("jax") is None:  # importing keras here would settle on TensorFlow
        pytest.skip("keras or jax is not installed")
    done = subprocess.run([sys.executable, "-c", KERAS, str(tmp_path / "k.npz")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "k.npz", allow_pickle=False) as archive:
        told = dict(archive)
    ours = MLP([784, 128, 10], dropout=0.2, output_activation=lambda: nn.Softmax(dim=-1)).eval()
    assert num_parameters(ours) == int(told["count"]) == 101_770
    import_dense(ours, [(told["arr_0"], told["arr_1"]), (told["arr_2"], told["arr_3"])])
    np.testing.assert_allclose(ours(torch.from_numpy(told["x"])).detach().numpy(), told["y"], atol=1e-5)


# ---- the example script


def test_the_example_script_runs_and_draws(tmp_path):
    script = Path(__file__).parents[1] / "examples" / "nn251.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "n.svg")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "21 parameters, depth 1, width 5" in done.stdout
    formula, module = (line.split()[-1] for line in done.stdout.split("by formula ")[1].splitlines()[0].split(","))
    assert formula == module
    assert (tmp_path / "n.svg").read_text().startswith("<svg")
