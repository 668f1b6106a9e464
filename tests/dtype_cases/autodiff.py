"""Cases for `quoin.autodiff`: see tests/dtypes.py."""

import torch

from quoin.autodiff import (
    RELU,
    SIGMOID,
    TANH,
    QuadraticModel,
    TaylorPolynomial,
    Var,
    backward,
    backward_pass,
    check_gradient,
    concatenate,
    derivatives,
    directional_derivative,
    directional_derivative_definition,
    finite_differences,
    forward_pass,
    gradient,
    gradient_definition,
    hessian,
    hessian_definition,
    jacobian,
    jacobian_definition,
    jvp,
    plot_graph,
    quadratic_model,
    replay,
    same_bits,
    taylor,
    trace,
    vjp,
)

POINT, WAY = [3, 20], [100, 2]
WEIGHTS = [[[1, 2], [3, 0]], [[100, 2]]]
BIASES = [[2, 1], [3]]
INPUTS = [[0, 3], [7, 20]]


def f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _cost(x):
    return (x**2).sum()


def _map(x):
    return torch.stack([x[0] * x[1], x[0] + x[1], x[1] ** 2])


def _passes(x, inputs, activation):
    weights, biases = [x(each) for each in WEIGHTS], [x(each) for each in BIASES]
    forward = forward_pass(inputs, weights, biases, activation)
    back = backward_pass(forward, weights, torch.ones_like(forward.output), activation, weight_decay=0.5)
    return [forward.output, back.weights, back.biases, back.x]


def _slopes(output, *variables):
    """The value of an output made of variables, and its adjoint at each."""
    adjoints = backward(output)
    return [output.value, *(adjoints[each].value for each in variables)]


def _of_variables(call):
    def of(x):
        a, b = Var(x(POINT)), Var(x(WAY))
        return _slopes(call(a, b), a, b)

    return of


def _made(graph):
    return [node.value for node in graph.nodes] + [node.adjoint for node in graph.nodes if node.adjoint is not None]


CASES = {
    "gradient": lambda x: gradient(_cost, x(POINT)),
    "gradient_definition": lambda x: gradient_definition(_cost, x(POINT)),
    "vjp": lambda x: vjp(_map, x(POINT), x([1, 2, 3])),
    "vjp adjoint": lambda x: vjp(_map, f64(POINT), x([1, 2, 200])),
    "jvp": lambda x: jvp(_map, x(POINT), x(WAY)),
    "jvp tangent": lambda x: jvp(_map, f64(POINT), x(WAY)),
    "directional_derivative": lambda x: directional_derivative(_cost, x(POINT), x(WAY)),
    "directional_derivative direction": lambda x: directional_derivative(_cost, f64(POINT), x(WAY)),
    "directional_derivative_definition": lambda x: directional_derivative_definition(_cost, x(POINT), x(WAY)),
    "directional_derivative_definition direction": lambda x: directional_derivative_definition(
        _cost, f64(POINT), x(WAY)
    ),
    "jacobian": lambda x: jacobian(_map, x(POINT)),
    "jacobian_definition": lambda x: jacobian_definition(_map, x(POINT)),
    "hessian": lambda x: hessian(lambda z: z[0] ** 2 * z[1], x(POINT)),
    "hessian_definition": lambda x: hessian_definition(lambda z: z[0] ** 2 * z[1], x(POINT)),
    "finite_differences": lambda x: finite_differences(_cost, x([3, 2]), step=1.0),
    "check_gradient": lambda x: check_gradient(_cost, x([3, 2])).agrees,
    "check_gradient gradient": lambda x: check_gradient(_cost, f64([3, 100]), x([6, 200])).agrees,
    "derivatives": lambda x: derivatives(lambda z: z**3, x(3), 3),
    "taylor": lambda x: taylor(lambda z: z**3, x(3), 3)(x([1, 2, 5])),
    "TaylorPolynomial": lambda x: TaylorPolynomial(x(3), x([1, 20, 7]))(x([1, 20])),
    "TaylorPolynomial points": lambda x: TaylorPolynomial(f64(3), f64([1, 20, 7]))(x([1, 20])),
    "quadratic_model": lambda x: quadratic_model(_cost, x(POINT))(x([[1, 20], [5, 100]])),
    "quadratic_model points": lambda x: quadratic_model(_cost, f64(POINT))(x([[1, 20], [5, 100]])),
    "QuadraticModel": lambda x: QuadraticModel(x(POINT), x(7), x([1, 100]), x([[2, 1], [1, 20]]))(
        x([[1, 20], [5, 100]])
    ),
    "forward_pass": lambda x: _passes(x, x(INPUTS), RELU),
    "forward_pass points": lambda x: (
        forward_pass(x(INPUTS), [f64(each) for each in WEIGHTS], [f64(each) for each in BIASES]).output
    ),
    "backward_pass": lambda x: _passes(x, x(INPUTS), TANH),
    "backward_pass sigmoid": lambda x: _passes(x, x(INPUTS), SIGMOID),
    "Var": _of_variables(lambda a, b: (a * b + a / b - b).sum()),
    "Var powers": _of_variables(lambda a, b: (a**3 + b**2).sum()),
    "Var exp": _of_variables(lambda a, b: (a.tanh() * b.log() + b.sqrt() * a.sigmoid()).mean()),
    "Var relu": _of_variables(lambda a, b: ((a - b).relu() + (b - a).abs()).sum()),
    "Var matrix": _of_variables(lambda a, b: a.reshape([1, 2]) @ b.reshape([2, 1])),
    "backward": _of_variables(lambda a, b: (a * a * b).sum()),
    "concatenate": _of_variables(lambda a, b: (concatenate([a, b]) ** 2).sum()),
    # The function is the caller's and runs as it is: one that takes whole numbers itself, as an embedding does.
    "trace": lambda x: trace(lambda z: _cost(z.double()), x(POINT)).nodes[-1].value,
    "trace adjoints": lambda x: _made(trace(_cost, f64(POINT), adjoint=x(200))),
    "replay": lambda x: replay(trace(lambda z: _cost(z.double()), x(POINT)))[-1],
    "replay changed": lambda x: replay(trace(_cost, f64(POINT)), {0: x(WAY)})[-1],
    "plot_graph": lambda x: plot_graph(trace(_cost, x(POINT))).alt,
    "same_bits": lambda x: [same_bits(x(POINT), x(POINT)), same_bits(x(POINT), x([3, 0]))],
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "BackwardPass": RESULT,
    "Derivative": RESULT,
    "Differences": RESULT,
    "ForwardPass": RESULT,
    "GradientCheck": RESULT,
    "Graph": RESULT,
    "Node": RESULT,
    "Activation": "a pair of functions; those that are named have cases in forward_pass and backward_pass",
    "Rule": "a pair of functions; all of them are tried through Var",
}
