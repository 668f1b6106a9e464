"""Automatic differentiation: back-propagation by hand, the tape, and the traced graph."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.autodiff import (
    RELU,
    SIGMOID,
    TANH,
    Graph,
    Node,
    Var,
    backward,
    backward_pass,
    finite_differences,
    forward_pass,
    replay,
    same_bits,
    trace,
)
from quoin.losses import cross_entropy
from quoin.metrics import empirical_risk
from quoin.models import mlp_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings

CASES = 20
DIFFERENCES = 1000 * torch.finfo(torch.float64).eps ** (2 / 3)
DIFFERENCES_SOURCE = (
    "1000 ε^(2/3): the error of central differences at their best step, for derivatives of moderate size"
)


@claim(
    ("Z5.14", "Z5.15"),
    "back-propagation by hand through what the forward pass kept gives autograd's gradient, weight decay included",
)
def backpropagation_by_hand(generator: torch.Generator) -> Evidence:
    worst, functions = 0.0, {RELU: torch.relu, TANH: torch.tanh, SIGMOID: torch.sigmoid}
    for case in range(CASES):
        sizes = [randint(1, 6, generator) for _ in range(randint(2, 5, generator))]
        weights = [normal(b, a, generator=generator).requires_grad_() for a, b in pairwise(sizes)]
        biases = [normal(b, generator=generator).requires_grad_() for b in sizes[1:]]
        x, decay = normal(7, sizes[0], generator=generator).requires_grad_(), float(torch.rand((), generator=generator))
        labels = torch.randint(sizes[-1], (7,), generator=generator)
        activation = list(functions)[case % 3]
        with torch.no_grad():
            forward = forward_pass(x, weights, biases, activation)
            adjoint = (torch.softmax(forward.output, -1) - nn.functional.one_hot(labels, sizes[-1])) / 7
            ours = backward_pass(forward, weights, adjoint, activation, weight_decay=decay)
        through = mlp_definition(x, weights, biases, functions[activation])
        loss = empirical_risk(cross_entropy, through.output, labels) + decay / 2 * sum(
            W.square().sum() for W in weights
        )
        theirs = torch.autograd.grad(loss, [*weights, *biases, x])
        worst = max(worst, *(gap(a, b) for a, b in zip([*ours.weights, *ours.biases, ours.x], theirs, strict=True)))
        worst = max(worst, *(gap(a, b) for a, b in zip(forward.activations[1:], through.hidden, strict=True)), 0.0)
    return Evidence(
        "largest |by hand - autograd|, relative", worst, roundings(1024), "1024 float64 roundings, 4 layers", CASES
    )


Program = Callable[[Any], Any]


def random_program(generator: torch.Generator) -> Program:
    """A program of a square matrix, as well of a `Var` as of a tensor: six steps, with a loop, a branch and a
    detach."""
    steps: list[Program] = [
        lambda x: x.tanh() * x,
        lambda x: x.sin() - x.cos(),
        lambda x: (x.tanh()).exp() / (1 + x**2),
        lambda x: (x * x + 1).log() + x.relu(),
        lambda x: (x**2 + 0.5).sqrt() - x.abs(),
        lambda x: x.sigmoid() @ x.mT,
        lambda x: x - x.mean(0, keepdim=True) * x[:1],
        lambda x: x[torch.tensor([0, 0, 2])] + x.sum(1, keepdim=True) / 3,
        lambda x: x.reshape((9,)).reshape((3, 3)).mT * x.detach(),
        lambda x: x @ x[0] + x if x.sum() > 0 else 2 / (x**2 + 1) - x**3 / 9,
    ]
    chosen = [steps[randint(0, len(steps) - 1, generator)] for _ in range(6)]

    def program(x: Any) -> Any:
        for step in chosen:
            x = step(x).tanh()
        return (x * x[0]).mean()

    return program


@claim(
    "Z2.6",
    "the tape's adjoints, and those of its adjoints, are autograd's on random programs with loops and branches",
    not_shown="all programs: random ones, of the operations that the tape knows",
)
def tape_agrees_with_torch(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        program, start, direction = (
            random_program(generator),
            normal(3, 3, generator=generator),
            normal(3, 3, generator=generator),
        )
        variable, tensor = Var(start), start.clone().requires_grad_()
        gradient = backward(program(variable))[variable]
        hvp = backward((gradient * direction).sum())[variable]
        (expected,) = torch.autograd.grad(program(tensor), tensor, create_graph=True)
        (expected_hvp,) = torch.autograd.grad((expected * direction).sum(), tensor)
        for ours, theirs in ((gradient.value, expected), (hvp.value, expected_hvp)):
            worst = max(worst, gap(ours / theirs.abs().max(), theirs / theirs.abs().max()))
    source = "2^16 float64 roundings, for two sweeps through 6 steps of about 10 operations, where terms cancel"
    return Evidence("largest |tape - autograd|, relative", worst, roundings(2**16), source, 2 * CASES)


class Twisted(nn.Module):
    """A network with what makes recording hard: a layer used twice, dropout, a view, writing in place, two outputs of
    one call."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.twice, self.drop, self.last = nn.Linear(4, 4), nn.Dropout(0.4), nn.Linear(4, 3)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.5, generator=generator)

    def forward(self, x: Float[Tensor, "n 4"]) -> Float[Tensor, "n 3"]:
        h = self.drop(self.twice(torch.tanh(self.twice(x))))
        h += 1
        left, right = h.sin().chunk(2, dim=-1)
        swapped = torch.cat([right, left], dim=-1)
        variance, mean = torch.var_mean(swapped, dim=-1, keepdim=True)
        return self.last((swapped - mean) / (1 + variance).sqrt() * h)


def traced_loss(dtype: torch.dtype, generator: torch.Generator) -> Graph:
    model, x = Twisted(generator).to(dtype), normal(5, 4, generator=generator).to(dtype)
    labels = torch.randint(3, (5,), generator=generator)
    return trace(lambda x: empirical_risk(cross_entropy, model(x), labels), x)


@claim("Z5.16", "a traced graph, run again, gives every one of its values bit for bit")
def replay_is_exact(generator: torch.Generator) -> Evidence:
    wrong = count = 0
    for case in range(CASES):
        graph = traced_loss(torch.float64 if case % 2 else torch.float32, generator)
        wrong += sum(not same_bits(node.value, value) for node, value in zip(graph.nodes, replay(graph), strict=True))
        count += len(graph.nodes)
    return Evidence("values with other bits", wrong, 0, "exact: the same operations on the same numbers", count, "==")


@claim(
    "Z5.16", "the adjoint at each node is the derivative of the output by that node's value, all else computed from it"
)
def adjoints_are_derivatives(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(5):
        graph = traced_loss(torch.float64, generator)
        for node in graph.nodes:
            if node.adjoint is not None:
                direction = normal(*node.shape, generator=generator)
                direction = direction / direction.norm()
                worst = max(
                    worst, gap(_directional_derivative(graph, node, direction), (node.adjoint * direction).sum())
                )
                cases += 1
    return Evidence("largest |difference quotient - adjoint|, relative", worst, DIFFERENCES, DIFFERENCES_SOURCE, cases)


def _directional_derivative(graph: Graph, node: Node, direction: Tensor) -> Tensor:
    """How the output moves as the value of one node moves in a direction."""

    def moved(t: Tensor) -> Tensor:
        return replay(graph, {node.index: node.value + t * direction})[graph.outputs[0]]

    return finite_differences(moved, torch.zeros((), dtype=torch.float64)).output
