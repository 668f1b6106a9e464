"""Dense layers and the MLP: what they compute, what they count, and how they are put together."""

import copy
import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.inspect import intermediates
from quoin.layers import (
    affine_definition,
    collapse,
    convolution_as_dense,
    dense_definition,
    graph_as_dense,
    recurrence_as_dense,
    tanh,
)
from quoin.models import (
    MLP,
    TiedMLP,
    export_dense,
    functional_model,
    mlp_definition,
    num_parameters,
    one_hidden_layer_definition,
    parameter_vector,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_networks import CASES, ROUNDING, ROUNDING_SOURCE, inputs_of, linears, random_mlp
from quoin.notes.claims.rounding import gap, max, randint, roundings


@claim("D1-17", "affine layers without activation collapse into one affine map")
def affine_maps_collapse(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, activation=nn.Identity)
        x = inputs_of(model, generator)
        one = collapse([layer.weight for layer in linears(model)], [layer.bias for layer in linears(model)])
        worst = max(worst, gap(affine_definition(x, one.weight, one.bias), model(x)))
    return Evidence("largest |one affine map - the stack|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("D1-19", "entry i of a dense layer is ReLU(Σ_j A_ij x_j + b_i)")
def dense_in_coordinates(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        inputs, outputs = randint(1, 8, generator), randint(1, 8, generator)
        A = torch.randn(outputs, inputs, generator=generator, dtype=torch.float64)
        b = torch.randn(outputs, generator=generator, dtype=torch.float64)
        x = torch.randn(inputs, generator=generator, dtype=torch.float64)
        entries = [
            max(0.0, math.fsum(a * v for a, v in zip(row, x.tolist(), strict=True)) + offset)
            for row, offset in zip(A.tolist(), b.tolist(), strict=True)
        ]
        expected = torch.tensor(entries, dtype=torch.float64)
        worst = max(
            worst, gap(dense_definition(x, A, b), expected), gap(torch.relu(nn.functional.linear(x, A, b)), expected)
        )
    return Evidence(
        "largest |layer - sum by hand|", worst, roundings(64), "64 float64 roundings of sums of 8 terms", CASES
    )


@claim("D1-21", "the 2-5-1 network has 5·2 + 5 + 1·5 + 1 = 21 parameters")
def parameters_of_the_example(generator: torch.Generator) -> Evidence:
    count = num_parameters(MLP([2, 5, 1], generator=generator))
    return Evidence("parameters of MLP([2, 5, 1])", count, 21, "exact: a count", 1, "==")


@claim("D1.6-3", "dense 128, dropout, dense 10 on 784 inputs has 128·784 + 128 + 10·128 + 10 = 101,770 parameters")
def parameters_of_the_keras_classifier(generator: torch.Generator) -> Evidence:
    model = MLP([784, 128, 10], dropout=0.2, output_activation=lambda: nn.Softmax(dim=-1), generator=generator)
    return Evidence(
        "parameters of the dense-dropout-dense classifier", num_parameters(model), 101_770, "exact: a count", 1, "=="
    )


@claim(
    "D1-0",
    "a network is a function of θ in R^p: θ decides f_θ, and p is the sum of (inputs + 1)·outputs over the layers",
)
def network_as_a_function_of_its_parameters(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator)
        x = inputs_of(model, generator)
        theta = torch.randn(num_parameters(model), generator=generator, dtype=torch.float64)
        fits = len(theta) == sum((n + 1) * m for n, m in zip(model.sizes, model.sizes[1:]))
        before, there = model(x), functional_model(model, theta)(x)
        untouched = torch.equal(before, functional_model(model, parameter_vector(model))(x))
        torch.nn.utils.vector_to_parameters(theta, model.parameters())
        worst = max(worst, gap(there, model(x)) if fits and untouched else math.inf)
    return Evidence("largest |f_θ - the model with θ written into it|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def hidden_layers(model: MLP) -> int:
    return model.depth


def all_layers(model: MLP) -> int:
    return model.num_layers


@claim(
    "DE1",
    "the depth of n dense layers is the number n - 1 of hidden ones; n counts them all",
    right=hidden_layers,
    printed=all_layers,
)
def depth_counts_hidden_layers(form: Callable[[MLP], int], generator: torch.Generator) -> Evidence:
    worst = 0
    for _ in range(CASES):
        model = random_mlp(generator)
        hidden = sum(isinstance(module, nn.ReLU) for module in model.modules())
        worst = max(worst, abs(form(model) - hidden), abs(model.num_layers - len(linears(model))))
    return Evidence("largest |depth - hidden layers counted|", worst, 0, "exact: a count", CASES, "==")


@claim("Z5.4", "on a batch, H = σ(X W1 + b1) and O = H W2 + b2 are the rows that the network gives one by one")
def batch_form(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        sizes = [randint(1, 8, generator) for _ in range(3)]
        model = MLP(sizes, activation=nn.Tanh, generator=generator).double()
        first, last = linears(model)
        X = inputs_of(model, generator)
        batch = one_hidden_layer_definition(X, first.weight.T, first.bias, last.weight.T, last.bias, tanh)
        rows = [mlp_definition(x, [first.weight, last.weight], [first.bias, last.bias], tanh).output for x in X]
        worst = max(worst, gap(batch.output, torch.stack(rows)), gap(batch.output, model(X)))
    return Evidence("largest |batch - row by row|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("D0-3", "hooks on a model show the same intermediates that its definition gives back")
def intermediates_are_those_of_the_definition(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator)
        x = inputs_of(model, generator)
        steps = [step.output for step in intermediates(model, x) if isinstance(step.module, nn.ReLU)]
        hidden = mlp_definition(
            x, [layer.weight for layer in linears(model)], [layer.bias for layer in linears(model)]
        ).hidden
        whole = len(steps) == len(hidden) == model.depth
        worst = max([worst, *map(gap, steps, hidden)]) if whole else math.inf
    return Evidence("largest |hooked - defined|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim(
    "D0-1",
    "the same numbers make the same network in another framework: its layers, exported, give the same output in numpy",
)
def frameworks_are_interchangeable(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator)
        x = inputs_of(model, generator)
        *hidden, last = export_dense(model)
        h = x.numpy()
        for kernel, bias in hidden:
            h = np.maximum(h @ kernel + bias, 0)
        worst = max(worst, gap(torch.from_numpy(h @ last[0] + last[1]), model(x)))
    return Evidence("largest |numpy - torch|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z6", "the gradient of a layer used several times is the sum of the gradients it would have at each use")
def gradient_of_tied_parameters(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        repeats = randint(2, 4, generator)
        tied = TiedMLP(6, 3, repeats=repeats).double()
        x = torch.randn(16, randint(1, 8, generator), generator=generator, dtype=torch.float64)
        tied(x)  # the first batch decides the input width
        untied = copy.deepcopy(tied)
        untied.body = nn.Sequential(*(copy.deepcopy(shared_layer) for shared_layer in tied.body))
        separate = num_parameters(untied) - num_parameters(tied) == (repeats - 1) * (6 * 6 + 6)
        for model in (tied, untied):
            model(x).square().sum().backward()
        (shared,) = {id(layer): layer for layer in linears(tied.body)}.values()
        summed = torch.stack([gradient_of(layer) for layer in linears(untied.body)]).sum(dim=0)
        worst = max(worst, gap(gradient_of(shared), summed) if separate else math.inf)
    return Evidence(
        "largest |tied - sum over uses|, relative", worst, roundings(1024), "1024 roundings: 16 rows, 6 layers", CASES
    )


def gradient_of(layer: nn.Linear) -> Float[Tensor, "m n"]:
    assert layer.weight.grad is not None
    return layer.weight.grad


@claim("D1.1-20", "convolution, recurrence and neighbour mixing are dense layers whose matrix is masked and tied")
def structured_layers_are_dense(generator: torch.Generator) -> Evidence:
    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    worst = 0.0
    for _ in range(CASES):
        size, extra, steps, nodes = (randint(1, 5, generator) for _ in range(4))
        kernel, x = normal(size), normal(size + extra)
        slid = torch.conv1d(x.reshape(1, 1, -1), kernel.reshape(1, 1, -1)).flatten()
        worst = max(worst, gap(convolution_as_dense(kernel, len(x)) @ x, slid))

        recurrent = nn.RNN(extra, size, dtype=torch.float64)
        weight_ih, weight_hh, *biases = recurrent.parameters()
        sequence, h = normal(steps, extra), torch.zeros(size, dtype=torch.float64)
        for matrix in recurrence_as_dense(weight_ih, weight_hh, steps):
            h = dense_definition(torch.cat([sequence.flatten(), h]), matrix, biases[0] + biases[1], tanh)
        worst = max(worst, gap(h, recurrent(sequence)[1][0]))

        adjacency, weight, H = normal(nodes, nodes), normal(size, extra), normal(nodes, size)
        worst = max(worst, gap(graph_as_dense(adjacency, weight) @ H.flatten(), (adjacency @ H @ weight).flatten()))
    return Evidence("largest |structured dense - layer|, relative", worst, ROUNDING, ROUNDING_SOURCE, 3 * CASES)


def columns_permuted(weight: Float[Tensor, "m n"], order: Int[Tensor, "n"]) -> Float[Tensor, "m n"]:
    return weight[:, order]


def weight_unchanged(weight: Float[Tensor, "m n"], order: Int[Tensor, "n"]) -> Float[Tensor, "m n"]:
    return weight


@claim(
    ("Z7.1", "ZE14"),
    "permuting the inputs of an MLP changes nothing if the first layer's columns are permuted alike, and only then",
    right=columns_permuted,
    printed=weight_unchanged,
)
def input_order_is_a_matter_of_weights(
    form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, least_input=3)
        x, order = inputs_of(model, generator), torch.randperm(model.sizes[0], generator=generator)
        with torch.no_grad():
            before, first = model(x), linears(model)[0]
            first.weight.copy_(form(first.weight, order).clone())
            worst = max(worst, gap(model(x[:, order]), before))
    return Evidence("largest change of the output", worst, ROUNDING, ROUNDING_SOURCE, CASES)
