"""ReLU, dense layers and the multilayer perceptron."""

import math

import torch
from torch import Tensor, nn

from quoin.claims.claim import Evidence, claim
from quoin.claims.rounding import gap, randint, roundings
from quoin.layers import affine_definition, dense_definition, relu
from quoin.models import MLP, mlp_definition
from quoin.objectives import cross_entropy, empirical_risk

CASES = 30
ROUNDING = roundings(256)
ROUNDING_SOURCE = "256 float64 roundings, for sums of at most 8 terms through at most 4 layers"


def random_mlp(generator: torch.Generator, *, activation: type[nn.Module] = nn.ReLU, least_input: int = 1) -> MLP:
    """An MLP of random sizes in float64, its biases random too."""
    sizes = [randint(least_input, 8, generator), *(randint(1, 8, generator) for _ in range(randint(1, 3, generator))), 3]
    model = MLP(sizes, activation=activation, generator=generator).double()
    for layer in linears(model):
        nn.init.normal_(layer.bias, generator=generator)
    return model


def linears(model: MLP) -> list[nn.Linear]:
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


def inputs_of(model: MLP, generator: torch.Generator) -> Tensor:
    return torch.randn(16, model.sizes[0], generator=generator, dtype=torch.float64)


@claim("Z5.8", "the derivative of ReLU is 0 below zero, 1 above, and 0 at zero by convention, in both of its forms")
def relu_derivative(generator: torch.Generator) -> Evidence:
    size = torch.rand(1000, generator=generator, dtype=torch.float64) + 1e-300
    x = torch.cat([-size, torch.zeros(1, dtype=torch.float64), size]).requires_grad_()
    expected = torch.cat([torch.zeros(1001), torch.ones(1000)])
    wrong = 0
    for form in (relu, MLP([1, 1, 1]).features[2]):
        (slope,) = torch.autograd.grad(form(x).sum(), x)
        wrong += int((slope != expected).sum())
    return Evidence("points with another derivative", wrong, 0, "exact", 2 * len(x), "==")


@claim("D1-13", "the derivative of ReLU jumps at zero: difference quotients are 0 on the left and 1 on the right")
def relu_one_sided_derivatives(generator: torch.Generator) -> Evidence:
    step = 2.0 ** -torch.arange(1, 1000, dtype=torch.float64)
    at_zero = relu(torch.zeros(1, dtype=torch.float64))
    right, left = (relu(step) - at_zero) / step, (relu(-step) - at_zero) / -step
    worst = max(gap(right, torch.ones_like(step)), gap(left, torch.zeros_like(step)))
    return Evidence("largest distance from 1 (right), 0 (left)", worst, 0.0, "exact: powers of two divide exactly", 2 * len(step))


@claim("D1-11", "ReLU commutes with a positive factor, so scaling one layer up and the next down leaves a network as it was")
def positive_homogeneity(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator)
        x, factor = inputs_of(model, generator), math.exp(float(torch.randn((), generator=generator)))
        worst = max(worst, gap(relu(factor * x), factor * relu(x)))
        weights, biases = [layer.weight.detach() for layer in linears(model)], [layer.bias.detach() for layer in linears(model)]
        weights[:2] = [factor * weights[0], weights[1] / factor]
        biases[0] = factor * biases[0]
        worst = max(worst, gap(mlp_definition(x, weights, biases).output, model(x)))
    return Evidence("largest change under rescaling", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("D1-12", "a unit that is negative on all the data gets no gradient, in any weight that enters or leaves it")
def dead_unit_has_no_gradient(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = MLP([4, 6, 3], generator=generator).double()
        x, labels = inputs_of(model, generator), torch.randint(3, (16,), generator=generator)
        (first, last), dead = linears(model), randint(0, 5, generator)
        with torch.no_grad():
            first.bias[dead] = -1 - (x @ first.weight[dead]).max()
        loss = empirical_risk(cross_entropy, model(x), labels)
        entering, offset, leaving = torch.autograd.grad(loss, (first.weight, first.bias, last.weight))
        at_dead = torch.cat([entering[dead], offset[dead : dead + 1], leaving[:, dead]])
        alive = bool(entering.abs().sum() > 0)  # were all gradients zero, nothing would be shown
        worst = max(worst, gap(at_dead, torch.zeros_like(at_dead)) if alive else math.inf)
    return Evidence("largest gradient at a dead unit", worst, 0.0, "exact: a sum of zeros", CASES)


@claim("D1-17", "affine layers without activation collapse into one affine map")
def affine_maps_collapse(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, activation=nn.Identity)
        x = inputs_of(model, generator)
        weight, bias = torch.eye(model.sizes[0], dtype=torch.float64), torch.zeros(model.sizes[0], dtype=torch.float64)
        for layer in linears(model):
            weight, bias = layer.weight @ weight, layer.weight @ bias + layer.bias
        worst = max(worst, gap(affine_definition(x, weight, bias), model(x)))
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
        worst = max(worst, gap(dense_definition(x, A, b), expected), gap(torch.relu(nn.functional.linear(x, A, b)), expected))
    return Evidence("largest |layer - sum by hand|", worst, roundings(64), "64 float64 roundings of sums of 8 terms", CASES)


@claim("D1-21", "the 2-5-1 network has 5·2 + 5 + 1·5 + 1 = 21 parameters")
def parameters_of_the_example(generator: torch.Generator) -> Evidence:
    count = sum(parameter.numel() for parameter in MLP([2, 5, 1], generator=generator).parameters())
    return Evidence("parameters of MLP([2, 5, 1])", count, 21, "exact: a count", 1, "==")


def columns_permuted(weight: Tensor, order: Tensor) -> Tensor:
    return weight[:, order]


def weight_unchanged(weight: Tensor, order: Tensor) -> Tensor:
    return weight


@claim(
    ("Z7.1", "ZE14"),
    "permuting the inputs of an MLP changes nothing if the first layer's columns are permuted alike, and only then",
    right=columns_permuted,
    printed=weight_unchanged,
)
def input_order_is_a_matter_of_weights(form, generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, least_input=3)
        x, order = inputs_of(model, generator), torch.randperm(model.sizes[0], generator=generator)
        with torch.no_grad():
            before, first = model(x), linears(model)[0]
            first.weight.copy_(form(first.weight, order).clone())
            worst = max(worst, gap(model(x[:, order]), before))
    return Evidence("largest change of the output", worst, ROUNDING, ROUNDING_SOURCE, CASES)
